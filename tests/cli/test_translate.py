from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from qwp import Alignment, Embeddings
from qwp.cli import translate
from qwp.search.spelling import Spelling
from qwp.spaces import io
from tests.cli.conftest import qwp


@pytest.mark.parametrize("retrieval", ["nn", "csls", "softmax"])
def test_translations_equal_the_library(aligned: Path, retrieval: str) -> None:
    ran = qwp("translate", aligned, "s3", "s7", "-k", 2, "--retrieval", retrieval, "--json")
    assert ran.code == 0
    expected = Alignment.load(aligned).translate(["s3", "s7"], k=2, retrieval=retrieval)
    assert ran.json["translations"] == {
        word: [{"word": t.word, "score": t.score} for t in found] for word, found in expected.items()
    }
    assert ran.json["translations"]["s3"][0]["word"] == "t3"


def test_table_and_reverse(aligned: Path) -> None:
    ran = qwp("translate", aligned, "s3", "-k", 1, "--format", "table")
    assert "│ s3 " in ran.out
    assert "│ t3 " in ran.out
    back = qwp("translate", aligned, "t5", "--reverse", "--json")
    assert back.json["translations"]["t5"][0]["word"] == "s5"
    assert back.json["direction"] == "tgt-src"


def test_words_from_stdin(aligned: Path) -> None:
    ran = qwp("translate", aligned, "--json", stdin="\ufeffs1\r\ns2\n\n s1\n\ttwo words \n")
    assert list(ran.json["translations"]) == ["s1", "s2"]
    assert ran.json["unknown"] == ["two words"]
    empty = qwp("translate", aligned, stdin=" \n")
    assert empty.code == 2
    assert "standard input holds no word" in empty.err


def test_several_words_on_a_line_of_stdin_get_a_hint(aligned: Path) -> None:
    ran = qwp("translate", aligned, stdin="s1\ns2 s3\n")
    assert ran.code == 0
    assert "'s2 s3' is not among the 300 words" in ran.err
    assert "the 2 words in it are: standard input has one word a line" in ran.err


def test_a_word_with_blanks_is_one_word(tmp_path: Path) -> None:
    vectors = np.random.default_rng(0).standard_normal((30, 5)).astype("f4")
    names = ["New York", "tab\there", *(f"w{i}" for i in range(28))]
    for side in ("a", "b"):
        io.save(Embeddings(names, vectors), tmp_path / f"{side}.npz")
    out = tmp_path / "dir"
    made = qwp("align", tmp_path / "a.npz", tmp_path / "b.npz", "--out", out, "--method", "identical", "--quiet")
    assert made.code in (0, 3)
    ran = qwp("translate", out, "-k", 1, stdin="New York\ntab\there\n")
    assert ran.out.splitlines()[1].split("\t")[:3] == ["New York", "1", "New York"]
    assert len(ran.out.splitlines()) == 2
    assert "1 line left out: words with tabs or line breaks do not fit tsv" in ran.err


def test_tsv_has_a_line_for_each_translation(aligned: Path, tmp_path: Path) -> None:
    ran = qwp("translate", aligned, "s3", "s7", "-k", 2)
    found = Alignment.load(aligned).translate(["s3", "s7"], k=2)
    assert ran.out == "word\trank\ttranslation\tscore\n" + "".join(
        f"{word}\t{rank}\t{t.word}\t{t.score:.6f}\n" for word in found for rank, t in enumerate(found[word], 1)
    )
    assert ran.err == ""
    told = qwp("translate", aligned, "s3", "s7", "-k", 2, "--out", tmp_path / "t.tsv")
    assert (told.out, told.err) == ("", f"written to {tmp_path / 't.tsv'}\n")
    assert (tmp_path / "t.tsv").read_text() == ran.out


def test_unknown_words_are_reported_and_only_all_unknown_is_an_error(aligned: Path) -> None:
    ran = qwp("translate", aligned, "s1", "S2", "zzz", "--json")
    assert ran.code == 0
    assert ran.json["unknown"] == ["S2", "zzz"]
    assert "'S2' is not among the 300 words" in ran.err
    assert "did you mean 's2'?" in ran.err
    none = qwp("translate", aligned, "t1")
    assert (none.code, none.out) == (2, "")
    assert "try --reverse" in none.err
    told = qwp("translate", aligned, "t1", "--json")
    assert told.code == 2
    assert list(told.json) == ["command", "error"]
    assert "'t1' is not among" in told.json["error"]["message"]


def test_bad_values(aligned: Path) -> None:
    cases: list[tuple[list[str], str]] = [
        (["-k", "0"], "k=0 is out of range; expected 1 to 1,000,000"),
        (["-k", str(10**12)], "k=1000000000000 is out of range"),
        (["--retrieval", "x"], "--retrieval x is not known"),
        (["--format", "x"], "--format x is not known; expected one of table, tsv, json"),
        (["--format", "tsv", "--out", "none/x.tsv"], "the folder none does not exist"),
        (["--csls-k", "0"], "csls_k=0 is out of range"),
        (["--csls-k", str(10**12)], "csls_k=1000000000000 is out of range"),
        (["--max-memory", "inf"], "max_memory=inf is out of range"),
        (["--max-memory", "nan"], "max_memory=nan is out of range"),
        (["--max-memory", "-1"], "max_memory=-1.0 is out of range"),
        (["--device", "tpu"], "device 'tpu' is not known"),
        (["--device", "cuda:²"], "is not known"),
    ]
    for args, message in cases:
        ran = qwp("translate", aligned, "s1", *args)
        assert (ran.code, ran.out) == (2, "")
        assert message in ran.err


def test_k_larger_than_the_vocabulary_returns_all_words(aligned: Path) -> None:
    assert len(qwp("translate", aligned, "s1", "-k", 1000, "--json").json["translations"]["s1"]) == 300


def test_control_characters_in_words_are_escaped(aligned: Path) -> None:
    word = "\x1b]0;mine\x07\u202ex\x9b"
    ran = qwp("translate", aligned, "s1", word)
    assert ran.code == 0
    assert not set(word) & set("\x1b\x07\u202e\x9b") & set(ran.err + ran.out)
    assert r"\x1b]0;mine\x07\u202ex\x9b" in ran.err
    as_json = qwp("translate", aligned, "s1", word, "--json")
    assert as_json.json["unknown"] == [word]
    assert not set("\x1b\x07\u202e\x9b") & set(as_json.out)


@pytest.mark.slow
def test_binary_input_is_explained(aligned: Path) -> None:
    command, words = [sys.executable, "-m", "qwp", "translate", str(aligned)], b"s1 \xff\xfe\x1b[2J"
    for settings in ({}, {"LC_ALL": "C", "PYTHONUTF8": "0"}, {"PYTHONIOENCODING": "ascii"}):
        env = {**os.environ, **settings}
        ran = subprocess.run(command, input=words, env=env, capture_output=True, check=False, timeout=60)
        assert ran.returncode in (0, 2)
        assert b"Traceback" not in ran.stderr
        assert b"internal error" not in ran.stderr
        assert b"\x1b" not in ran.stderr + ran.stdout


def test_the_first_translation_of_a_large_vocabulary_shows_its_progress(
    aligned: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = Path(shutil.copytree(aligned, tmp_path / "copy"))
    # `align` computes small lookups.
    assert sorted(path.name for path in copy.glob("lookup-[st]*")) == [
        "lookup-src-10.safetensors",
        "lookup-tgt-10.safetensors",
    ]
    (copy / "lookup-tgt-10.safetensors").unlink()
    before = qwp("translate", aligned, "s3", "--json")
    translate.prepare_lookup(Alignment.load(copy), "tgt", 10, shown_from=300 * 300)
    said = "first use: 300 words are compared with 300; the result is cached for the next time"
    assert said in capsys.readouterr().err
    assert qwp("translate", copy, "s3", "--json").json == before.json
    translate.prepare_lookup(Alignment.load(copy), "tgt", 10, shown_from=300 * 300)  # the lookup exists now
    translate.prepare_lookup(Alignment.load(copy), "tgt", 7, shown_from=300 * 300 + 1)
    assert capsys.readouterr().err == ""


@pytest.fixture
def cognates(aligned: Path, tmp_path: Path) -> Path:
    """Return the alignment with the same words on both sides, one row apart."""
    found = Alignment.load(aligned)
    names = [f"{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(len(found.tgt))]
    src = replace(found.src_side, source=Embeddings(names, found.src.vectors))
    tgt = replace(found.tgt_side, source=Embeddings([*names[1:], names[0]], found.tgt.vectors))
    return replace(found, src_side=src, tgt_side=tgt).save(tmp_path / "cognates")


def test_spelling_is_optional_and_labelled(cognates: Path) -> None:
    words = Alignment.load(cognates).src.words[:5]
    plain, ran = (qwp("translate", cognates, *words, "--json", *flags) for flags in ((), ("--spelling",)))
    assert plain.json["spelling"] == 0.0
    assert ran.json["spelling"] == Spelling.weight
    expected = Alignment.load(cognates).translate(words, spelling=Spelling.weight)
    assert ran.json["translations"] == {
        word: [{"word": t.word, "score": t.score} for t in found] for word, found in expected.items()
    }
    assert ran.json["translations"] != plain.json["translations"]
    text = qwp("translate", cognates, words[0], "--spelling", "--format", "table")
    assert "score (csls + spelling)" in text.out
    assert "scores are csls + spelling: 0.7 times the similarity of the letters is added to CSLS" in text.err
    assert "spelling" not in qwp("translate", cognates, words[0]).out


def test_spelling_needs_csls(cognates: Path) -> None:
    ran = qwp("translate", cognates, "aa", "--spelling", "--retrieval", "nn")
    assert ran.code == 2
    assert "was received with retrieval='nn'; expected 'csls'" in ran.err
