"""The example changes in docs/examples work: each test applies one to a copy of the source and runs it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.problems import planted

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "docs" / "examples"

NAMES = ("method", "initializer", "format", "command")

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git applies the diffs")


@pytest.fixture
def vectors(tmp_path: Path) -> tuple[Path, Path]:
    problem = planted(80, d=8, noise=0.0, shuffle=False, seed=0)
    paths = tmp_path / "a.npz", tmp_path / "b.npz"
    for path, rows in zip(paths, (problem.src, problem.tgt), strict=True):
        np.savez(path, words=np.array([f"w{i}" for i in range(len(rows))]), vectors=rows.astype(np.float32))
    return paths


def changed(tmp_path: Path, name: str) -> Path:
    """Return a copy of the source with one of the examples applied."""
    copy = tmp_path / "checkout"
    shutil.copytree(ROOT / "src" / "qwp", copy / "src" / "qwp", ignore=shutil.ignore_patterns("__pycache__"))
    diff = EXAMPLES / f"add-{name}.diff"
    subprocess.run(["git", "apply", "-C1", str(diff)], cwd=copy, check=True, env={**os.environ, "GIT_DIR": "/dev/null"})
    return copy / "src"


def qwp(source: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "qwp", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_each_change_touches_at_most_two_files() -> None:
    assert {path.name for path in EXAMPLES.iterdir()} == {f"add-{name}.diff" for name in NAMES}
    for name in NAMES:
        diff = (EXAMPLES / f"add-{name}.diff").read_text("utf-8")
        assert 1 <= diff.count("diff --git ") <= 2, name


def test_the_new_method_runs_and_its_verdict_is_no_success(tmp_path: Path, vectors: tuple[Path, Path]) -> None:
    source = changed(tmp_path, "method")
    out = tmp_path / "out"
    how = ("align", *vectors, "--out", out, "--method", "random-rotation")
    done = qwp(source, *how, "--draw", 1, "--json")
    about = json.loads(done.stdout)
    assert about["provenance"]["method"] == "random-rotation"
    assert about["provenance"]["config"]["draw"] == 1
    assert about["verdict"] != "succeeded"
    refused = qwp(source, *how, "--draw", -1)
    assert refused.returncode == 2
    assert "draw=-1 is out of range; expected 0 to 1,000" in refused.stderr


def test_the_new_initializer_finds_a_rotation(tmp_path: Path, vectors: tuple[Path, Path]) -> None:
    source = changed(tmp_path, "initializer")
    out = tmp_path / "out"
    done = qwp(source, "align", *vectors, "--out", out, "--start", "axes", "--json")
    assert json.loads(done.stdout)["provenance"]["config"]["start"] == "axes", done.stderr
    words = [f"w{i}" for i in range(20)]
    found = json.loads(qwp(source, "translate", out, *words, "--json").stdout)["translations"]
    assert {word: best[0]["word"] for word, best in found.items()} == {word: word for word in words}


def test_the_new_command_runs(tmp_path: Path, vectors: tuple[Path, Path]) -> None:
    source = changed(tmp_path, "command")
    qwp(source, "align", *vectors, "--out", tmp_path / "out", "--method", "identical", "--quiet")
    shown = qwp(source, "shared", tmp_path / "out", "--json")
    assert len(json.loads(shown.stdout)["words"]) == 80, shown.stderr


def test_the_new_format_reads_what_it_wrote(tmp_path: Path, vectors: tuple[Path, Path]) -> None:
    source = changed(tmp_path, "format")
    lines, back = tmp_path / "a.jsonl", tmp_path / "back.npz"
    for read, written in ((vectors[0], lines), (lines, back)):
        done = qwp(source, "convert", read, written)
        assert done.returncode == 0, done.stderr
    assert json.loads(lines.read_text("utf-8").splitlines()[0])["word"] == "w0"
    np.testing.assert_array_equal(np.load(back)["vectors"], np.load(vectors[0])["vectors"])
