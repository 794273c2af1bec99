from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from qwp.spaces import io
from tests.cli.conftest import Problem, leftovers, qwp


@pytest.mark.parametrize("name", ["x.vec", "x.vec.gz", "x.glove", "x.bin", "x.npz", "x.safetensors"])
def test_every_format_restores_the_same_vectors(problem: Problem, tmp_path: Path, name: str) -> None:
    ran = qwp("convert", problem.src, tmp_path / name)
    assert ran.code == 0
    assert "400 words, 24 dimensions written" in ran.out
    given, written = io.load(problem.src), io.load(tmp_path / name)
    assert written.words == given.words
    np.testing.assert_array_equal(written.vectors, given.vectors)


def test_options(problem: Problem, tmp_path: Path) -> None:
    out = tmp_path / "x.dat"
    args = ["--max-vocab", 70, "--digits", 2, "--format", "glove", "--input-format", "text", "--json"]
    ran = qwp("convert", problem.src, out, *args)
    assert ran.code == 0
    assert ran.json["words"] == 70
    lines = out.read_text().splitlines()
    assert len(lines) == 70
    assert all(len(number.partition(".")[2]) == 2 for number in lines[0].split(" ")[1:])


def test_damaged_and_repeated_lines_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "odd.vec"
    path.write_text("5 2\na 1 2\nb 3 4\na 5 6\nc 7\n")
    strict = qwp("convert", path, tmp_path / "x.npz")
    assert strict.code == 2
    assert "line 5" in strict.err
    assert not (tmp_path / "x.npz").exists()
    ran = qwp("convert", path, tmp_path / "x.npz", "--errors", "skip", "--json")
    assert (ran.json["words"], ran.json["duplicates"], ran.json["skipped"]) == (2, 1, 1)
    assert "1 repeated words dropped" in ran.err
    assert "header says 5 words, the file holds 4" in ran.err
    assert len(ran.json["warnings"]) == 3


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["none.vec", "{tmp}/x.npz"], "none.vec does not exist"),
        (["{src}", "{tmp}/x"], "expected one of"),
        (["{src}", "{tmp}"], "is a directory"),
        (["{src}", "{tmp}/x.npz", "--errors", "x"], "expected one of raise, skip"),
        (["{src}", "{tmp}/x.vec", "--digits", "99"], "received digits=99"),
        (["{src}", "{tmp}/x.npz", "--input-format", "x"], "expected one of text"),
    ],
)
def test_bad_input_is_explained(problem: Problem, tmp_path: Path, args: list[str], message: str) -> None:
    ran = qwp("convert", *(a.format(src=problem.src, tmp=tmp_path) for a in args))
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert list(tmp_path.iterdir()) == []


KILLED = """
import os, signal
from qwp.cli.main import main
from qwp.spaces import io

stream = io.stream

def killed(*args, **options):
    yield next(iter(stream(*args, **options)))
    os.kill(os.getpid(), signal.SIGKILL)

io.stream = killed
main()
"""


@pytest.mark.parametrize("name", ["x.npz", "x.safetensors", "x.db"])
def test_a_rerun_removes_the_temporary_files_of_a_killed_run(problem: Problem, tmp_path: Path, name: str) -> None:
    command = [sys.executable, "-c", KILLED, "convert", str(problem.src), str(tmp_path / name)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert leftovers(tmp_path) != []
    assert qwp("convert", problem.src, tmp_path / name).code == 0
    assert leftovers(tmp_path) == []


def test_another_encoding_becomes_utf_8(tmp_path: Path) -> None:
    (tmp_path / "a.vec").write_bytes("2 1\nniño 1\ncasa 2\n".encode("cp1252"))
    assert qwp("convert", tmp_path / "a.vec", tmp_path / "b.vec", "--encoding", "cp1252").code == 0
    assert io.load(tmp_path / "b.vec").words == ["niño", "casa"]
    about = qwp("info", tmp_path / "a.vec", "--encoding", "cp1252", "--json").json
    assert (about["first_words"], about["skipped"]) == (["niño", "casa"], 0)
    refused = qwp("convert", tmp_path / "a.vec", tmp_path / "b.vec", "--encoding", "utf-16")
    assert refused.code == 2
    assert "blanks and digits are not those of ASCII" in refused.err


def test_a_file_is_not_written_over_itself(problem: Problem, tmp_path: Path) -> None:
    path = tmp_path / "a.vec"
    path.write_bytes(problem.src.read_bytes())
    ran = qwp("convert", path, tmp_path / "." / "a.vec", "--max-vocab", 3)
    assert ran.code == 2
    assert f"{path}, to be written, is one of the files to read; expected another name" in ran.err
    assert path.read_bytes() == problem.src.read_bytes()


def test_arrays_stay_without_words_unless_a_file_names_them(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float16)
    np.save(tmp_path / "x.npy", rows)
    assert qwp("convert", tmp_path / "x.npy", tmp_path / "y.npy", "--dtype", "float16").code == 0
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), rows)
    assert np.load(tmp_path / "y.npy").dtype == np.float16
    assert not (tmp_path / "y.words.txt").exists()
    (tmp_path / "w.txt").write_text("a\nb\nc\nd\ne\nf\n")
    assert qwp("convert", tmp_path / "x.npy", tmp_path / "z.npy", "--words", tmp_path / "w.txt").code == 0
    assert io.load(tmp_path / "z.npy").words == list("abcdef")
    ran = qwp("info", tmp_path / "x.npy", "--words", tmp_path / "w.txt", "--json")
    assert ran.json["first_words"] == list("abcdef")
    ran = qwp("convert", tmp_path / "x.npy", tmp_path / "x.vec", "--dtype", "float16")
    assert (ran.code, "which holds float32" in ran.err) == (2, True)
