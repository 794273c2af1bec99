from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from qwp.cli.info import of_file
from qwp.spaces import io
from tests.cli.conftest import Problem, qwp


def test_all_irregularities_of_a_file_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "odd.vec"
    path.write_text("9 2\na 3 4\nb 0 0\na 5 6\nc 7\nd 6 8\n")
    ran = qwp("info", path, "--json")
    assert ran.code == 0
    assert ran.json == {
        "command": "info",
        "kind": "vectors",
        "path": str(path),
        "format": "text",
        "bytes": path.stat().st_size,
        "words": 3,
        "dim": 2,
        "header_count": 9,
        "duplicates": 1,
        "skipped": 1,
        "skipped_lines": ran.json["skipped_lines"],
        "zero_vectors": 1,
        "norms": {"min": 0.0, "mean": 5.0, "max": 10.0},
        "first_words": ["a", "b", "d"],
        "warnings": ["header says 9 words, the file holds 5"],
    }
    assert of_file(path, batch=2) == {name: value for name, value in ran.json.items() if name != "command"}
    assert "line 5" in ran.json["skipped_lines"][0]
    shown = qwp("info", path, "--format", "table")
    for expected in ("text", "announces 9 words", "0 to 10, mean 5", "a b d", "line 5"):
        assert expected in shown.out
    assert "header says 9 words" in shown.err
    tsv = qwp("info", path).out.splitlines()
    assert tsv[0] == "name\tvalue"
    assert {"kind\tvectors", "header_count\t9", "norms.max\t10.0", 'first_words\t["a", "b", "d"]'} <= set(tsv)


@pytest.mark.parametrize("name", ["x.bin", "x.npz", "x.safetensors", "x.glove"])
def test_other_formats(problem: Problem, tmp_path: Path, name: str) -> None:
    io.save(io.load(problem.src), tmp_path / name)
    about = qwp("info", tmp_path / name, "--json").json
    assert (about["words"], about["dim"], about["zero_vectors"]) == (400, 24, 0)
    assert about["norms"]["mean"] == pytest.approx(1.0, abs=1e-5)


def test_the_input_format_is_used(tmp_path: Path) -> None:
    path = tmp_path / "one.glove"
    path.write_text("2 1\na 2\nb 3\n")
    assert qwp("info", path, "--json").json["format"] == "text"
    about = qwp("info", path, "--input-format", "glove", "--json").json
    assert (about["format"], about["words"], about["first_words"]) == ("glove", 3, ["2", "a", "b"])
    ran = qwp("info", path, "--input-format", "nonsense")
    assert (ran.code, ran.out) == (2, "")
    assert "expected one of text, glove" in ran.err
    assert "is a folder" in qwp("info", tmp_path, "--input-format", "text").err


@pytest.mark.slow
def test_a_pipe_is_read_once_and_in_full(tmp_path: Path) -> None:
    lines = "".join(f"w{i} {i} 1\n" for i in range(5000))
    command = f"cat <<'END' | {sys.executable} -m qwp info /dev/stdin --json\n5000 2\n{lines}END\n"
    ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    about = json.loads(ran.stdout)
    assert (about["path"], about["words"], about["skipped"]) == ("/dev/stdin", 5000, 0)
    assert about["bytes"] == len("5000 2\n" + lines)


def test_an_alignment(problem: Problem, aligned: Path) -> None:
    ran = qwp("info", aligned, "--json")
    assert ran.code == 0
    saved = json.loads((aligned / "alignment.json").read_text())
    assert ran.json["kind"] == "alignment"
    assert ran.json["verdict"] == "succeeded"
    assert ran.json["provenance"] == saved["provenance"]
    shown = qwp("info", aligned, "--format", "table").out
    provenance = saved["provenance"]
    for expected in (
        *("succeeded", "qwp, seed 0", provenance["src"]["sha256"], provenance["tgt"]["sha256"]),
        *(f"the first words of {problem.src}", "coreset-size", "(prepare ", "unit,center,unit"),
    ):
        assert expected in shown.replace("\n", "") or expected in shown


@pytest.mark.parametrize("broken", ["{", "[]", '{"schema": 99}'])
def test_a_damaged_alignment_is_explained(tmp_path: Path, broken: str) -> None:
    (tmp_path / "alignment.json").write_text(broken)
    ran = qwp("info", tmp_path)
    assert ran.code == 2
    assert "alignment.json" in ran.err


@pytest.mark.parametrize("part", ["maps.safetensors", "src.json", "tgt.safetensors"])
def test_an_incomplete_alignment_is_explained(aligned: Path, tmp_path: Path, part: str) -> None:
    folder = shutil.copytree(aligned, tmp_path / "copy")
    [path] = folder.glob(f"parts-*/{part}")
    path.write_bytes(path.read_bytes()[:-1])
    ran = qwp("info", folder)
    assert (ran.code, ran.out) == (2, "")
    assert f"{path} has " in ran.err
    path.unlink()
    assert f"{path} is missing: align again" in qwp("info", folder).err


def test_missing_files_and_other_files_are_refused(tmp_path: Path) -> None:
    assert "does not exist" in qwp("info", tmp_path / "none").err
    assert "holds no alignment.json" in qwp("info", tmp_path).err
    path = tmp_path / "text.txt"
    path.write_text("just a sentence\n")
    ran = qwp("info", path)
    assert ran.code == 2
    assert "expected a vector file" in ran.err
