from __future__ import annotations

from pathlib import Path

import pytest

import qwp as library
from qwp.spaces import io
from tests.cli.conftest import qwp
from tests.shifts.problems import problem


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("shift")
    made = problem(n=700, n_moved=12)
    for name, space in (("a.vec", made.then), ("b.vec", made.now)):
        io.save(space, folder / name)
    return folder / "a.vec", folder / "b.vec"


def test_the_command_equals_the_library(files: tuple[Path, Path], tmp_path: Path) -> None:
    expected = library.shift(*files)
    ran = qwp("shift", *files, "--json", "--top", 5)
    assert ran.json["moved"] == len(expected.moved())
    assert [word["word"] for word in ran.json["top"]] == [word.word for word in expected.top(5)]
    assert (ran.json["then"], ran.json["now"], ran.json["words"]) == ("a", "b", 700)
    header, *lines = [line.split("\t") for line in qwp("shift", *files).out.splitlines()]
    assert header[:6] == ["word", "distance", "neighbourhood", "z", "p", "q"]
    assert len(lines) == 20
    assert sum(line[6] == "yes" for line in lines) == min(20, len(expected.moved()))
    assert len(lines[0][-1].split()) == 5
    every = qwp("shift", *files, "--all", "--out", tmp_path / "all.tsv")
    assert "700 words in both a and b" in every.err
    assert len((tmp_path / "all.tsv").read_text().splitlines()) == 701


def test_a_table_for_people(files: tuple[Path, Path]) -> None:
    ran = qwp("shift", *files, "--format", "table", "--top", 3, "--neighbours", 2, "--measure", "neighbourhood")
    assert ran.code == 0
    assert "moved at a false discovery rate of 0.05" in ran.out
    assert "near it in a" in ran.out


def test_a_control(files: tuple[Path, Path]) -> None:
    ran = qwp("shift", *files, "--control", files[0], files[1], "--json")
    assert ran.json["controlled"] is True
    # With itself as control, no shift is significant.
    assert ran.json["moved"] == 0


def test_bad_input_is_explained(files: tuple[Path, Path]) -> None:
    cases: list[tuple[list[str], str]] = [
        (["--fdr", "0"], "fdr=0"),
        (["--top", "0"], "top=0"),
        (["--by", "p"], "--by p is not known; expected one of z, distance"),
        (["--measure", "x"], "--measure x is not known"),
        (["--control", "none.vec", "none.vec"], "none.vec does not exist"),
        (["--max-vocab", "20"], "have 20 words with vectors in common, expected at least 50"),
    ]
    for args, message in cases:
        ran = qwp("shift", *files, *args)
        assert ran.code == 2
        assert message in ran.err


def test_single_words_and_a_figure(files: tuple[Path, Path], tmp_path: Path) -> None:
    expected = library.shift(*files)
    first, second = (word.word for word in expected.top(2))
    ran = qwp("shift", *files, "--word", second, "--word", first, "--json", "--svg", tmp_path / "moved.svg")
    assert [word["word"] for word in ran.json["top"]] == [first, second]
    drawn = (tmp_path / "moved.svg").read_text("utf-8")
    assert f">{first}</text>" in drawn
    assert ", ".join(expected[first].now[:5]) in drawn
    missing = qwp("shift", *files, "--word", "nothing", "--svg", tmp_path / "none.svg")
    assert missing.code == 2
    assert "--word nothing: not among the 700 words of both a and b" in missing.err
    assert not (tmp_path / "none.svg").exists()
