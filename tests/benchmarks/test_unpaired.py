"""The splits of the benchmark of encoders without pairs, and its tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import unpaired
from benchmarks.unpaired import Encoders, split, tables


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write vectors that hold the number of their text."""
    for name in ("one", "two"):
        np.save(tmp_path / f"{name}.npy", np.arange(100.0)[:, None])
    monkeypatch.setattr(unpaired, "bench_file", lambda name: tmp_path / Path(name).name)
    monkeypatch.setitem(unpaired.ENCODERS, "one - two", Encoders(("one", "two"), 10))


@pytest.mark.parametrize(("overlap", "shared"), [(0.0, 0), (0.5, 20), (1.0, 40)])
def test_held_out_texts_are_on_neither_side_and_the_sides_share_a_part(overlap: float, shared: int) -> None:
    src, tgt, *held_out = (set(each[:, 0].tolist()) for each in split("one - two", 40, overlap, 1))
    assert len(src) == len(tgt) == 40
    assert len(src & tgt) == shared
    assert held_out[0] == held_out[1]
    assert not held_out[0] & (src | tgt)
    other = split("one - two", 40, overlap, 2)
    assert set(other[2][:, 0].tolist()) == held_out[0], "seeds have the same held-out texts"
    assert set(other[0][:, 0].tolist()) != src


def test_too_many_texts_are_refused() -> None:
    with pytest.raises(ValueError, match="need 100 of 90"):
        split("one - two", 50, 0.0, 0)


def test_a_table_has_the_score_of_each_seed() -> None:
    run = {"suite": "main", "encoders": "e5-small - USE", "texts": 2500, "overlap": 0.0, "verdict": "succeeded"}
    found = [{**run, "seed": 0, "there": 88.71, "back": 91.2, "seconds": 80.0}]
    found.append({**run, "seed": 1, "there": 1.0, "back": 90.8, "seconds": 60.0, "verdict": "failed"})
    row = "| e5-small - USE | 2,500, different | 88.7 failed | 91.2 90.8 | failed, succeeded | 70.0 s |"
    assert tables(found).splitlines()[-1] == row
