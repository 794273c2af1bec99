from __future__ import annotations

from pathlib import Path

import numpy as np

from qwp.spaces import io
from qwp.spaces.embeddings import Embeddings
from tests.cli.conftest import qwp
from tests.migration.problems import encoders

TEXTS = encoders(300, old=20)


def save(path: Path, rows: np.ndarray) -> Path:
    io.save(Embeddings(TEXTS.ids, rows), path)
    return path


def test_two_models_are_compared(tmp_path: Path) -> None:
    a, b = save(tmp_path / "a.npz", TEXTS.old), save(tmp_path / "b.npz", TEXTS.new)
    ran = qwp("compare", a, b, "--json", "--top", 3)
    assert ran.code == 0
    assert (ran.json["command"], ran.json["verdict"], ran.json["items"]) == ("compare", "related models", 300)
    assert len(ran.json["moved"]) == 3
    shown = qwp("compare", a, b, "--format", "table")
    assert "linear CKA" in shown.out
    assert qwp("compare", a, b).out.startswith("id\tdrift\n")


def test_a_mix_of_two_models_is_a_warning(tmp_path: Path) -> None:
    rows = np.concatenate([TEXTS.old[:50], TEXTS.new[50:]])
    ran = qwp("compare", save(tmp_path / "a.npz", rows), save(tmp_path / "b.npz", TEXTS.new), "--json")
    assert ran.code == 0
    assert ran.json["verdict"] == "mixed models"
    assert set(ran.json["other_model"]) == set(TEXTS.ids[:50])
    assert "50 of 300 items have vectors of another model" in ran.err


def test_bad_input_is_explained(tmp_path: Path) -> None:
    a = save(tmp_path / "a.npz", TEXTS.old)
    io.save(Embeddings([f"x{id}" for id in TEXTS.ids], TEXTS.new), tmp_path / "b.npz")
    ran = qwp("compare", a, tmp_path / "b.npz")
    assert ran.code == 2
    assert "0 items in common" in ran.err
    assert qwp("compare", a, tmp_path / "none.npz").code == 2
