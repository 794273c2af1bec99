"""Labels of items in `translate` and `lexicon`: texts instead of names, and files that do not fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from qwp import Alignment
from tests.cli.conftest import qwp


@pytest.fixture
def labels(aligned: Path, tmp_path: Path) -> list[str]:
    """Return options with labels of both sides: source text N, and "target\\ttext N", without one for t5."""
    alignment = Alignment.load(aligned)
    (tmp_path / "src.txt").write_text("".join(f"source text {word[1:]}\n" for word in alignment.src.words))
    lines = ["" if word == "t5" else f"target\ttext {word[1:]}" for word in alignment.tgt.words]
    (tmp_path / "tgt.txt").write_text("\ufeff" + "\n".join(lines))
    return ["--src-labels", str(tmp_path / "src.txt"), "--tgt-labels", str(tmp_path / "tgt.txt")]


def test_translate_shows_labels_and_takes_them(aligned: Path, labels: list[str]) -> None:
    ran = qwp("translate", aligned, "s3", "source text 5", "unheard", "-k", 1, *labels)
    rows = [line.split("\t")[:3] for line in ran.out.splitlines()[1:]]
    assert rows == [["source text 3", "1", "target text 3"], ["source text 5", "1", "t5"]]
    assert "'unheard' is not among the 300 words" in ran.err
    table = qwp("translate", aligned, "s3", "-k", 1, "--format", "table", *labels)
    assert "source text 3" in table.out
    assert "target text 3" in table.out
    back = qwp("translate", aligned, "target text 3", "-k", 1, "--reverse", *labels)
    assert back.out.splitlines()[1].startswith("target text 3\t1\tsource text 3\t")
    # Programs get names.
    found = qwp("translate", aligned, "source text 3", "-k", 1, "--json", *labels).json["translations"]
    assert found["s3"][0]["word"] == "t3"


def test_the_lexicon_shows_labels(aligned: Path, labels: list[str], tmp_path: Path) -> None:
    plain = qwp("lexicon", aligned, "--format", "tsv").out.splitlines()
    ran = qwp("lexicon", aligned, "--format", "tsv", *labels).out.splitlines()
    expected = [line.split("\t") for line in plain[1:]]
    for row in expected:
        row[0] = f"source text {row[0][1:]}"
        row[1] = row[1] if row[1] == "t5" else f"target text {row[1][1:]}"
    assert [line.split("\t") for line in ran[1:]] == expected
    names = qwp("lexicon", aligned, "--format", "muse").out
    assert qwp("lexicon", aligned, "--format", "muse", *labels).out == names


def test_labels_that_do_not_fit_are_refused(aligned: Path, tmp_path: Path) -> None:
    file = tmp_path / "labels.txt"
    file.write_text("one\ntwo\n")
    ran = qwp("translate", aligned, "s3", "--src-labels", file)
    assert ran.code == 2
    assert "has 2 lines, but src has 300 items; expected one line for each item" in ran.err
    file.write_bytes(b"\xff\n" * 300)
    ran = qwp("lexicon", aligned, "--tgt-labels", file)
    assert ran.code == 2
    assert "is not UTF-8 text" in ran.err
    assert qwp("lexicon", aligned, "--tgt-labels", tmp_path / "absent.txt").code == 2
