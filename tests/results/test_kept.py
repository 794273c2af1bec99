from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from qwp import Alignment
from qwp.results import kept
from qwp.results.saved import EXPLORED

SHAPES = {"a": (3,)}


@pytest.fixture
def folder(aligned: Alignment, tmp_path: Path) -> Path:
    return aligned.save(tmp_path / "saved")


def test_what_was_kept_comes_back(folder: Path) -> None:
    origin = Alignment.load(folder).origin
    kept.write(origin, EXPLORED, "test", {"a": np.arange(3.0)})
    found = kept.read(origin, EXPLORED, "test", SHAPES)
    assert found is not None
    np.testing.assert_array_equal(found["a"], np.arange(3.0))
    assert [path.name for path in folder.glob("explorer-*")] == ["explorer-test.safetensors"]


def test_damaged_foreign_and_missing_files_count_for_nothing(folder: Path) -> None:
    origin = Alignment.load(folder).origin
    assert origin is not None
    assert kept.read(origin, EXPLORED, "test", SHAPES) is None
    kept.write(origin, EXPLORED, "test", {"a": np.arange(3.0)})
    assert kept.read(replace(origin, sha256="0" * 64), EXPLORED, "test", SHAPES) is None
    assert kept.read(origin, EXPLORED, "test", {"a": (4,)}) is None
    path = folder / "explorer-test.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    assert kept.read(origin, EXPLORED, "test", SHAPES) is None
    assert kept.read(None, EXPLORED, "test", SHAPES) is None


def test_another_save_removes_it(folder: Path) -> None:
    alignment = Alignment.load(folder)
    kept.write(alignment.origin, EXPLORED, "test", {"a": np.arange(3.0)})
    alignment.save(folder)
    assert not list(folder.glob("explorer-*"))


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path, folder: Path) -> None:
    origin = Alignment.load(folder).origin
    assert origin is not None
    kept.write(replace(origin, folder=tmp_path / "none"), EXPLORED, "test", {"a": np.arange(3.0)})
    kept.write(None, EXPLORED, "test", {"a": np.arange(3.0)})
