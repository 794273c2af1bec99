from __future__ import annotations

import numpy as np
import pytest

from qwp.errors import InputError
from qwp.migration.comparison import DIFFERENT, MIXED, RELATED, ROTATED, SAME, compare
from tests.migration.problems import encoders
from tests.problems import rotation

TEXTS = encoders(500)
NOISY = encoders(500, noise=0.1)


def named(rows: np.ndarray) -> tuple[list[str], np.ndarray]:
    return TEXTS.ids, rows.astype(np.float32)


def test_copies_and_rotations_are_one_model() -> None:
    same = compare(named(TEXTS.old), named(7 * TEXTS.old))
    assert (same.verdict, same.items, same.dims) == (SAME, 500, (24, 24))
    assert (same.cosine, same.cka, same.overlap) == pytest.approx((1, 1, 1), abs=1e-5)
    rotated = compare(named(TEXTS.old), named(TEXTS.old @ rotation(24, seed=1)))
    assert rotated.verdict == ROTATED
    assert (rotated.cka, rotated.residual, rotated.mean_drift) == pytest.approx((1, 0, 0), abs=1e-4)


def test_two_encoders_are_related_and_noise_is_different() -> None:
    related = compare(named(NOISY.old), named(NOISY.new))
    assert (related.verdict, related.cosine) == (RELATED, None)
    noise = np.random.default_rng(0).standard_normal((500, 24))
    different = compare(named(NOISY.old), named(noise))
    assert different.verdict == DIFFERENT
    assert different.overlap < 0.1 < related.overlap
    assert different.cka < related.cka


def test_the_items_with_another_text_moved_most() -> None:
    rows = TEXTS.old.copy()
    rows[[3, 40]] = rows[[200, 300]]
    found = compare(named(TEXTS.old), named(rows), top=2)
    assert found.verdict == SAME
    assert {each.id for each in found.moved} == {"id3", "id40"}
    assert found.moved[0].drift > 0.3


def test_a_store_that_mixes_two_models_raises_the_alarm() -> None:
    other = encoders(500, old=24, new=24, seed=0).new
    rows = TEXTS.old.copy()
    rows[100:180] = other[100:180]
    found = compare(named(rows), named(TEXTS.old))
    assert found.verdict == MIXED
    assert set(found.other_model) == {f"id{row}" for row in range(100, 180)}


def test_a_sample_is_drawn_and_too_few_items_are_refused() -> None:
    assert compare(named(TEXTS.old), named(TEXTS.new), max_items=100).items == 100
    with pytest.raises(InputError, match="have 0 items in common, expected more than 10"):
        compare(TEXTS.old, TEXTS.new)
    pairs = [(str(row), str(row)) for row in range(500)]
    assert compare(NOISY.old, NOISY.new, pairs=pairs, max_items=100).items == 100
