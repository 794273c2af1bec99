"""What the tests of the explorer share: a saved alignment of a planted rotation, opened."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from qwp import Alignment
from qwp.explore.pairs import PairTable
from qwp.explore.workspace import Workspace
from qwp.spaces.lexicon import Lexicon


def nobody(what: str, done: int, total: int) -> None:
    """Progress that nobody looks at."""


def pairs_of(workspace: Workspace) -> PairTable:
    """The pairs of a workspace, which are computed now or read from the sidecar."""
    workspace.prepare(nobody)
    assert workspace.pairs is not None
    return workspace.pairs


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
    Workspace("planted", Alignment.load(copy), folder=copy).prepare(nobody)
    return copy


@pytest.fixture
def workspace(folder: Path, prepared: Path) -> Workspace:
    """An opened alignment with a lexicon: s0 is t0, s1 is t1, and s2 is none of what is there."""
    for path in prepared.glob("*.safetensors"):
        shutil.copy(path, folder)
    lexicon = Lexicon((("s0", "t0"), ("s1", "t1"), ("s1", "t300"), ("s2", "elsewhere")))
    return Workspace("planted", Alignment.load(folder), folder=folder, lexicon=lexicon)
