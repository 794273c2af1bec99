"""The benchmark moves what it says, and counts what was found of it."""

from __future__ import annotations

import numpy as np

from benchmarks.shift import Condition, Counts, measure, plant
from tests.problems import space

WORDS = [f"w{i}" for i in range(600)]
VECTORS = space(600, 10, seed=0).astype(np.float32)


def test_words_are_moved_and_no_others() -> None:
    made = plant(WORDS, VECTORS, Condition("some", 20, noise=0.0), seed=1)
    then, now = (side @ side.T for side in (made.then.vectors, made.now.vectors))
    kept = np.setdiff1d(np.arange(600), made.rows)
    assert len(set(made.rows.tolist())) == 20
    assert ((made.shares >= 0.3) & (made.shares <= 1.0)).all()
    # Unmoved words keep their similarities, whatever the rotation; moved ones do not.
    assert np.allclose(then[np.ix_(kept, kept)], now[np.ix_(kept, kept)], atol=1e-4)
    assert not np.allclose(then[np.ix_(made.rows, kept)], now[np.ix_(made.rows, kept)], atol=1e-2)


def test_a_line_has_a_figure_for_each_way() -> None:
    line = measure(WORDS, VECTORS, Condition("some", 12, noise=0.1), seeds=1)
    assert line[0] == "some"
    assert float(line[3]) > 50.0
    assert len(line) == 8
    assert measure(WORDS, VECTORS, Condition("nothing", 0), seeds=1)[2].startswith("any: ")


def test_shares_of_nothing_are_zero() -> None:
    assert (Counts(0, 0, 0).false_share, Counts(0, 0, 0).recall, Counts(4, 3, 6).recall) == (0.0, 0.0, 0.5)
    assert Counts(4, 3, 6).false_share == 0.25
