"""What the tests of the explorer share: a saved alignment of a planted rotation, opened."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from qwp import Alignment
from qwp.explore.opened import Explored
from qwp.spaces.lexicon import Lexicon


def nobody(what: str, done: int, total: int) -> None:
    """Progress that nobody looks at."""


@pytest.fixture(scope="session")
def saved(aligned: Alignment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an alignment; read-only."""
    return aligned.save(tmp_path_factory.mktemp("explore") / "planted")


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    """A folder of its own."""
    return Path(shutil.copytree(saved, tmp_path / "planted"))


@pytest.fixture(scope="session")
def prepared(saved: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the same alignment and what the explorer keeps beside it; read-only."""
    copy = Path(shutil.copytree(saved, tmp_path_factory.mktemp("prepared") / "planted"))
    Explored("planted", Alignment.load(copy), folder=copy).lay_out(nobody)
    return copy


@pytest.fixture
def explored(folder: Path, prepared: Path) -> Explored:
    """An opened alignment with a lexicon: s0 is t0, s1 is t1, and s2 is none of what is there."""
    for path in prepared.glob("*.safetensors"):
        shutil.copy(path, folder)
    lexicon = Lexicon((("s0", "t0"), ("s1", "t1"), ("s1", "t300"), ("s2", "elsewhere")))
    return Explored("planted", Alignment.load(folder), folder=folder, lexicon=lexicon)
