from __future__ import annotations

from pathlib import Path

import pytest

from qwp import Alignment
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
        (["-k", "0"], "k=0 should be at least 1"),
        (["--retrieval", "x"], "'x'"),
        (["--csls-k", "0"], "should be at least 1"),
    ],
)
def test_bad_values(aligned: Path, args: list[str], message: str) -> None:
    ran = qwp("translate", aligned, "s1", *args)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
