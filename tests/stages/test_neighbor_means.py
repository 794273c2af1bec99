"""Neighbour means: samples without a common item, a round against NumPy, samples of many items, and libraries."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from qwp import arrays
from qwp.arrays import Stream
from qwp.maps.procrustes import orthogonality_error, polar_svd
from qwp.spaces import normalization
from qwp.stages.neighbor_means import NeighborMeans
from tests.libraries import as_strict, assert_close, assert_same, host
from tests.problems import rotation

Array = npt.NDArray[Any]
QUICK = NeighborMeans(queries=150, neighbours=15, rounds=30, interval=10, last_neighbours=5)


def clusters(n: int, d: int, seed: int) -> Array:
    """Return n rows (n, d) around 40 centres, which are the same for every seed."""
    fixed, rng = np.random.default_rng(0), np.random.default_rng(seed)
    centres = fixed.standard_normal((40, d)) * np.arange(1, d + 1) ** -0.5
    return np.asarray(centres[rng.integers(40, size=n)] + 0.25 * rng.standard_normal((n, d)))


def disjoint(n: int = 600, d: int = 12) -> tuple[Array, Array, Array]:
    """Return two samples of one distribution without a common item, the second one rotated, and the rotation."""
    w = rotation(d, 3)
    x, y = normalization.fit(clusters(n, d, 1))[1], normalization.fit(clusters(n, d, 2))[1]
    return np.asarray(x), np.asarray(y @ w), w


def near(w: Array, distance: float = 1.0) -> Array:
    noise = distance * np.random.default_rng(7).standard_normal(w.shape) / len(w) ** 0.5
    return np.asarray(polar_svd(w + noise))


def error(found: Any, w: Array) -> float:
    """Return the mean distance of mapped random unit vectors to their true images."""
    return float(np.linalg.norm(host(found) - w) / len(w) ** 0.5)


def test_samples_without_a_common_item_are_aligned() -> None:
    x, y, w = disjoint()
    first = near(w)
    found = QUICK.fit(x, y, first, 0)
    assert orthogonality_error(found) < 1e-10
    assert error(first, w) > 0.5
    assert error(found, w) < 0.15


def test_a_round_is_procrustes_on_means_of_neighbours() -> None:
    x, y, w = disjoint(80, 5)
    w = near(w, 0.3)
    found = QUICK.fitted(x, y, w, (x, y), 4)

    def images(queries: Array, keys: Array) -> Array:
        similarity = queries @ keys.T
        hubs = np.sort(similarity, axis=0)[-QUICK.csls_k :].mean(axis=0)
        nearest = np.argsort(-(2 * similarity - hubs), axis=1)[:, :4]
        return np.asarray(keys[nearest].mean(axis=1))

    pairs = np.concatenate([x, images(y @ w.T, x)]), np.concatenate([images(x @ w, y), y])
    assert_close(found, polar_svd(pairs[0].T @ pairs[1]), atol=1e-12)


def test_the_blocks_of_a_round_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y, w = disjoint(200, 6)
    whole = QUICK.fitted(x, y, w, (x, y), 7)
    monkeypatch.setattr(arrays, "block_rows", lambda *_: 13)
    assert_close(QUICK.fitted(x, y, w, (x, y), 7), whole, atol=1e-12)


def test_fewer_items_than_neighbours_are_enough() -> None:
    x, y, w = disjoint(8, 3)
    assert orthogonality_error(QUICK.fit(x, y[:5], w, 0)) < 1e-10


def test_rounds_end_when_the_similarity_no_longer_grows() -> None:
    x, y, w = disjoint()
    seen: list[tuple[int, float]] = []
    settings = replace(QUICK, rounds=100)
    settings.fit(x, y, near(w), 0, lambda *step: seen.append(step))
    assert [done for done, _ in seen] == [10 * i for i in range(1, 1 + len(seen))]
    assert len(seen) < 10
    # No further gain is too small for a threshold that no gain reaches.
    seen.clear()
    replace(settings, least_gain=2.0).fit(x, y, near(w), 0, lambda *step: seen.append(step))
    assert [done for done, _ in seen] == [10, 20, 30, 40]


def test_the_similarity_is_that_of_the_nearest_neighbours() -> None:
    x, y, w = disjoint(60, 4)
    similarity = (x @ w) @ y.T
    expected = (similarity[:9].max(axis=1).mean() + similarity[:, :7].max(axis=0).mean()) / 2
    assert QUICK.similarity(x, y, w, (x[:9], y[:7])) == pytest.approx(expected)


def test_large_sides_take_part_with_a_random_sample() -> None:
    x, y, w = disjoint(300, 6)
    settings = replace(QUICK, items=100)
    rng = arrays.rng(5, Stream.NEIGHBOUR_MEANS)
    rows = [np.sort(rng.permutation(300)[:100]) for _ in (x, y)]
    found = settings.fit(x, y, w, 5)
    # The sample is drawn before all queries, so a fit to the sample itself draws other queries.
    assert error(found, w) < 0.5
    changed = x.copy()
    changed[np.setdiff1d(np.arange(300), rows[0])] = 0.0
    assert_same(settings.fit(changed, y, w, 5), found)


def test_results_repeat_and_depend_on_the_seed() -> None:
    x, y, w = disjoint(300, 6)
    first = near(w)
    settings = replace(QUICK, last_rounds=0)
    found = settings.fit(x, y, first, 1)
    assert_same(settings.fit(x, y, first, 1), found)
    assert float(np.abs(host(settings.fit(x, y, first, 2)) - host(found)).max()) > 1e-6


def test_every_array_library_gives_the_same_map() -> None:
    x, y, w = disjoint(120, 5)
    settings = replace(QUICK, queries=50, rounds=4, interval=2)
    expected = settings.fit(x, y, near(w), 0)
    assert_close(settings.fit(as_strict(x), as_strict(y), as_strict(near(w)), 0), expected, atol=1e-9)
    torch = pytest.importorskip("torch", reason="torch is not installed")
    src, tgt, first = (torch.from_numpy(each.copy()) for each in (x, y, near(w)))
    assert_close(settings.fit(src, tgt, first, 0), expected, atol=1e-9)
