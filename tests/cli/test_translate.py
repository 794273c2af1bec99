from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from qwp import Alignment, Embeddings
from qwp.search.spelling import WEIGHT
from tests.cli.conftest import qwp


@pytest.mark.parametrize("retrieval", ["nn", "csls", "softmax"])
def test_translations_are_those_of_the_library(aligned: Path, retrieval: str) -> None:
    ran = qwp("translate", aligned, "s3", "s7", "-k", 2, "--retrieval", retrieval, "--json")
    assert ran.code == 0
    expected = Alignment.load(aligned).translate(["s3", "s7"], k=2, retrieval=retrieval)
    assert ran.json["translations"] == {
        word: [{"word": t.word, "score": t.score} for t in found] for word, found in expected.items()
    }
    assert ran.json["translations"]["s3"][0]["word"] == "t3"


def test_table_and_reverse(aligned: Path) -> None:
    ran = qwp("translate", aligned, "s3", "-k", 1)
    assert "s3" in ran.out
    assert "t3" in ran.out
    back = qwp("translate", aligned, "t5", "--reverse", "--json")
    assert back.json["translations"]["t5"][0]["word"] == "s5"
    assert back.json["direction"] == "tgt-src"


def test_words_from_stdin(aligned: Path) -> None:
    ran = qwp("translate", aligned, "--json", stdin="s1 s2\n\n s1\n")
    assert list(ran.json["translations"]) == ["s1", "s2"]
    empty = qwp("translate", aligned, stdin=" \n")
    assert empty.code == 2
    assert "standard input holds no word" in empty.err


def test_unknown_words_are_reported_and_only_all_unknown_is_an_error(aligned: Path) -> None:
    ran = qwp("translate", aligned, "s1", "S2", "zzz", "--json")
    assert ran.code == 0
    assert ran.json["unknown"] == ["S2", "zzz"]
    assert "'S2' is not among the 300 words" in ran.err
    assert "'s2' is there" in ran.err
    none = qwp("translate", aligned, "t1")
    assert none.code == 2
    assert "try --reverse" in none.err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["-k", "0"], "k=0 is out of range; expected 1 to 1,000,000"),
        (["-k", str(10**12)], "k=1000000000000 is out of range"),
        (["--retrieval", "x"], "'x'"),
        (["--csls-k", "0"], "csls_k=0 is out of range"),
        (["--csls-k", str(10**12)], "csls_k=1000000000000 is out of range"),
        (["--max-memory", "inf"], "max_memory=inf is out of range"),
        (["--max-memory", "nan"], "max_memory=nan is out of range"),
        (["--max-memory", "-1"], "max_memory=-1.0 is out of range"),
        (["--device", "tpu"], "device 'tpu' is not known"),
        (["--device", "cuda:²"], "is not known"),
    ],
)
def test_bad_values(aligned: Path, args: list[str], message: str) -> None:
    ran = qwp("translate", aligned, "s1", *args)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


def test_more_translations_than_words_are_all_of_them(aligned: Path) -> None:
    assert len(qwp("translate", aligned, "s1", "-k", 1000, "--json").json["translations"]["s1"]) == 300


def test_words_that_give_orders_to_a_terminal_are_shown(aligned: Path) -> None:
    word = "\x1b]0;mine\x07\u202ex\x9b"
    ran = qwp("translate", aligned, "s1", word)
    assert ran.code == 0
    assert not set(word) & set("\x1b\x07\u202e\x9b") & set(ran.err + ran.out)
    assert r"\x1b]0;mine\x07\u202ex\x9b" in ran.err
    as_json = qwp("translate", aligned, "s1", word, "--json")
    assert as_json.json["unknown"] == [word]
    assert not set("\x1b\x07\u202e\x9b") & set(as_json.out)


@pytest.mark.slow
def test_input_that_is_not_text_is_no_internal_error(aligned: Path) -> None:
    command, words = [sys.executable, "-m", "qwp", "translate", str(aligned)], b"s1 \xff\xfe\x1b[2J"
    for settings in ({}, {"LC_ALL": "C", "PYTHONUTF8": "0"}, {"PYTHONIOENCODING": "ascii"}):
        env = {**os.environ, **settings}
        ran = subprocess.run(command, input=words, env=env, capture_output=True, check=False, timeout=60)
        assert ran.returncode in (0, 2)
        assert b"Traceback" not in ran.stderr
        assert b"internal error" not in ran.stderr
        assert b"\x1b" not in ran.stderr + ran.stdout


@pytest.fixture
def cognates(aligned: Path, tmp_path: Path) -> Path:
    """The alignment with other words: those of both sides have the same names, one row apart."""
    found = Alignment.load(aligned)
    names = [f"{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(len(found.tgt))]
    src = replace(found.src_side, space=Embeddings(names, found.src.vectors))
    tgt = replace(found.tgt_side, space=Embeddings([*names[1:], names[0]], found.tgt.vectors))
    return replace(found, src_side=src, tgt_side=tgt).save(tmp_path / "cognates")


def test_spelling_is_asked_for_and_labelled(cognates: Path) -> None:
    words = Alignment.load(cognates).src.words[:5]
    plain, ran = (qwp("translate", cognates, *words, "--json", *flags) for flags in ((), ("--spelling",)))
    assert plain.json["spelling"] == 0.0
    assert ran.json["spelling"] == WEIGHT
    expected = Alignment.load(cognates).translate(words, spelling=WEIGHT)
    assert ran.json["translations"] == {
        word: [{"word": t.word, "score": t.score} for t in found] for word, found in expected.items()
    }
    assert ran.json["translations"] != plain.json["translations"]
    text = qwp("translate", cognates, words[0], "--spelling")
    assert "score (csls + spelling)" in text.out
    assert "scores are csls + spelling: 0.7 times the similarity of the letters is added to CSLS" in text.err
    assert "spelling" not in qwp("translate", cognates, words[0]).out


def test_spelling_belongs_to_csls(cognates: Path) -> None:
    ran = qwp("translate", cognates, "aa", "--spelling", "--retrieval", "nn")
    assert ran.code == 2
    assert "was received with retrieval='nn'; expected 'csls'" in ran.err
