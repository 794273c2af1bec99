"""A small folder of vectors and dictionaries, and an experiment on it whose cells take a tenth of a second."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import write
from tests.problems import planted

TINY = """
title = "Tiny"
measure = "P@1"
retrieval = "nn"
directions = ["en-es", "es-en"]
seeds = [0, 1]

[grid]
coreset_size = [40, 60]

[options]
start = "profiles"
start_words = 100
steps = 3
epochs = 2
bank_size = 2
refine = 1
verdict = "none"

[[systems]]
name = "Random"
preset = "paper"
options = { coreset = "random" }

[[systems]]
name = "KMeans++"
preset = "paper"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """en.vec, es.vec and the dictionaries of both directions."""
    found = tmp_path / "vectors"
    found.mkdir()
    problem = planted(200, d=8)
    write(found / "en.vec", "s", problem.src)
    write(found / "es.vec", "t", problem.tgt)
    pairs = [(f"s{i}", f"t{j}") for i, j in problem.gold[:50]]
    (found / "en-es.txt").write_text("".join(f"{src} {tgt}\n" for src, tgt in pairs))
    (found / "es-en.txt").write_text("".join(f"{tgt} {src}\n" for src, tgt in pairs))
    return found


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The tiny experiment as a file."""
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return path
