"""Fixtures of the explorer: a saved alignment of a planted rotation, and its workspace."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from qwp import Alignment
from qwp.explore.pairs import PairTable
from qwp.explore.workspace import Workspace
from qwp.spaces.lexicon import Lexicon


def ignore_progress(what: str, done: int, total: int) -> None:
    """Ignore the progress."""


def pairs_of(workspace: Workspace) -> PairTable:
    """Return the pairs of a workspace, computed now or read from the sidecar."""
    workspace.prepare(ignore_progress)
    assert workspace.pairs is not None
    return workspace.pairs


@pytest.fixture(scope="session")
def saved(aligned: Alignment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an alignment; read-only."""
    return aligned.save(tmp_path_factory.mktemp("explore") / "planted")


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    """A copy of the folder that tests may change."""
    return Path(shutil.copytree(saved, tmp_path / "planted"))


@pytest.fixture(scope="session")
def prepared(saved: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the same alignment and the sidecars of the explorer; read-only."""
    copy = Path(shutil.copytree(saved, tmp_path_factory.mktemp("prepared") / "planted"))
    Workspace("planted", Alignment.load(copy), folder=copy).prepare(ignore_progress)
    return copy


@pytest.fixture
def workspace(folder: Path, prepared: Path) -> Workspace:
    """A workspace with a lexicon: s0 is t0, s1 is t1, and s2 has no translation in the vocabulary."""
    for path in prepared.glob("*.safetensors"):
        shutil.copy(path, folder)
    lexicon = Lexicon((("s0", "t0"), ("s1", "t1"), ("s1", "t300"), ("s2", "elsewhere")))
    return Workspace("planted", Alignment.load(folder), folder=folder, lexicon=lexicon)
