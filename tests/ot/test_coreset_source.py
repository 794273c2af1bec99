"""The source of coresets for the steps of the loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from qwp.errors import InputError
from qwp.ot import coreset_source
from qwp.ot.coreset_source import Banks, Coresets, CoresetSource, CoresetTable
from qwp.parameters import check, parameters, with_values
from tests.libraries import assert_close, assert_same, host
from tests.problems import planted

Array = npt.NDArray[Any]


# All settings that affect these tests, so that the tests do not depend on the defaults.
SETTINGS = Coresets(kind="kmeans++", weight_power=1.0, sphere_centroids=True, bank_size=4, pairs_per_step=2)


def test_a_table_looks_coresets_up_by_number() -> None:
    points = np.arange(8.0).reshape(4, 2)
    table = CoresetTable(points, np.array([[0, 1], [3, 2], [1, 1]]), np.array([[0.5, 0.5], [0.1, 0.9], [1.0, 0.0]]))
    found, weights = table.get(np.array([1, 0, 1]))
    assert_same(found, [[[6, 7], [4, 5]], [[0, 1], [2, 3]], [[6, 7], [4, 5]]])
    assert_same(weights, [[0.1, 0.9], [0.5, 0.5], [0.1, 0.9]])


def two_pairs() -> tuple[list[Array], list[Array]]:
    """Return the source and target spaces of two pairs, of four different sizes."""
    one, two = planted(70, 90, d=4, seed=0), planted(60, 80, d=4, seed=1)
    return [one.src, two.src], [one.tgt, two.tgt]


@pytest.mark.parametrize("coreset", ["random", "kmeans++", "lloyd"])
def test_coresets_come_from_the_space_of_their_pair(coreset: str) -> None:
    sides = two_pairs()
    source = CoresetSource(sides, replace(SETTINGS, kind=coreset, sphere_centroids=False), [5, 9])
    tables = source.tables(12, 3, 2)
    for side in (0, 1):
        numbers = source.numbers(side, 12, 3, 2)
        assert numbers.shape == (2, 2 * SETTINGS.pairs_per_step)
        for pair, space in enumerate(sides[side]):
            columns = slice(pair * SETTINGS.pairs_per_step, (pair + 1) * SETTINGS.pairs_per_step)
            points, weights = (host(found) for found in tables[side].get(numbers[:, columns].reshape(-1)))
            assert points.shape == (4, 12, 4)
            assert_close(weights.sum(axis=1), 1.0)
            if coreset == "lloyd":
                # Means of the words of this pair and side lie in their bounding box.
                assert (points >= space.min(axis=0) - 1e-12).all()
                assert (points <= space.max(axis=0) + 1e-12).all()
            else:
                nearest = ((points.reshape(-1, 1, 4) - space) ** 2).sum(axis=2).min(axis=1)
                assert (nearest == 0).all()


@pytest.mark.parametrize("coreset", ["random", "kmeans++", "lloyd"])
def test_draws_do_not_depend_on_how_the_steps_are_cut(coreset: str) -> None:
    settings = replace(SETTINGS, kind=coreset, pairs_per_step=3)

    def points(side: int, first: int, steps: int) -> Array:
        source = CoresetSource(two_pairs(), settings, [5, 9])
        table = source.tables(12, first, steps)[side]
        return np.stack([host(table.get(row)[0]) for row in source.numbers(side, 12, first, steps)])

    for side in (0, 1):
        whole = points(side, 0, 7)
        assert_same(np.concatenate([points(side, 0, 2), points(side, 2, 5)]), whole)
        assert (whole[0] != whole[1]).any()


def test_pairs_of_one_seed_and_size_go_through_the_same_batches() -> None:
    xs, ys = two_pairs()
    alike = CoresetSource(([xs[0], xs[0]], [ys[0], ys[0]]), Coresets(kind="random"), [3, 3])
    rows = np.asarray(alike.tables(5, 0, 2)[0].rows)
    half = len(rows) // 2
    assert_same(rows[half:], rows[:half] + len(xs[0]))
    # Cached batches are read-only.
    assert not coreset_source._drawn(len(xs[0]), 5, 3, 0, 0).flags.writeable


def test_every_coreset_is_used_once_per_pass() -> None:
    # A bank of 4 and two pairs a step: a permutation lasts two steps.
    source = CoresetSource(two_pairs(), SETTINGS, [5, 9])
    numbers = source.numbers(0, 12, 0, 40)
    first, second = numbers[:, :2].reshape(20, 4), numbers[:, 2:].reshape(20, 4)
    assert_same(np.sort(first, axis=1), np.tile(np.arange(4), (20, 1)))
    assert_same(np.sort(second, axis=1), np.tile(np.arange(4, 8), (20, 1)))
    assert len(np.unique(first, axis=0)) > 5
    assert (first != second - 4).any()
    assert (numbers != source.numbers(1, 12, 0, 40)).any()


@pytest.mark.parametrize("coreset", ["random", "kmeans++"])
def test_the_two_sides_draw_differently(coreset: str) -> None:
    x = planted(100, d=4, seed=0).src
    source = CoresetSource(([x], [x]), replace(SETTINGS, kind=coreset), [0])
    src, tgt = (
        host(table.get(source.numbers(side, 10, 0, 1)[0])[0]) for side, table in enumerate(source.tables(10, 0, 1))
    )
    assert src.shape == tgt.shape == (2, 10, 4)
    assert (src != tgt).any()


def test_the_size_of_a_bank() -> None:
    assert SETTINGS.coresets_in_bank(500) == 4
    by_size = replace(SETTINGS, bank_size=None)
    sizes = [by_size.coresets_in_bank(k) for k in (1, 500, 1000, 2000, 100_000)]
    assert sizes == [256, 64, 32, 32, 32]


def test_a_bank_is_drawn_once_for_each_size() -> None:
    drawn: list[tuple[int, int]] = []
    source = CoresetSource(two_pairs(), SETTINGS, [5, 9], lambda done, total: drawn.append((done, total)))
    first = source.tables(12, 0, 1)
    assert drawn[-1][0] == drawn[-1][1]
    assert [done for done, _ in drawn] == sorted(done for done, _ in drawn)
    seconds, reports = source.seconds, len(drawn)
    assert seconds > 0.0
    assert all(one is two for one, two in zip(source.tables(12, 7, 3), first, strict=True))
    assert (source.seconds, len(drawn)) == (seconds, reports)
    assert source.tables(13, 7, 3)[0].rows.shape == (8, 13)
    assert source.seconds > seconds


@pytest.mark.parametrize(("coreset", "power"), [("random", 1.0), ("kmeans++", 0.0), ("kmeans++", 1.0), ("lloyd", 0.5)])
def test_the_weights_of_coresets(coreset: str, power: float) -> None:
    source = CoresetSource(two_pairs(), replace(SETTINGS, kind=coreset, weight_power=power), [5, 9])
    for table in source.tables(12, 0, 2):
        weights = host(table.weights)
        assert_close(weights.sum(axis=1), 1.0)
        equal = coreset == "random" or power == 0.0
        assert (np.abs(weights - 1 / 12).max() < 1e-12) == equal


def test_centroids_on_the_sphere_and_off_it() -> None:
    lengths = []
    for sphere in (True, False):
        source = CoresetSource(two_pairs(), replace(SETTINGS, kind="lloyd", sphere_centroids=sphere), [5, 9])
        lengths.append(np.linalg.norm(host(source.tables(12, 0, 1)[0].points), axis=1))
    assert_close(lengths[0], 1.0)
    # A mean of distinct unit vectors is shorter than one.
    assert (lengths[1] < 1 + 1e-12).all()
    assert lengths[1].mean() < 0.99


def test_the_size_of_a_coreset() -> None:
    # 1000; half of few words, at least 200.
    sizes = [SETTINGS.size_for(words) for words in (10, 500, 1500, 5000, 15_000, 200_000)]
    assert sizes == [200, 250, 750, 1000, 1000, 1000]
    assert replace(SETTINGS, size=70).size_for(200_000) == 70
    assert replace(SETTINGS, fewest_points=20).size_for(100) == 50


def test_cached_banks_are_not_drawn_again() -> None:
    kept: dict[str, Banks] = {}

    def cached(key: str, draw: Callable[[], Banks]) -> Banks:
        if key not in kept:
            kept[key] = draw()
        return kept[key]

    def drawn(settings: Coresets, seeds: list[int], k: int = 12) -> tuple[list[CoresetTable], int]:
        calls: list[int] = []
        source = CoresetSource(two_pairs(), settings, seeds, lambda done, _: calls.append(done), cached)
        return source.tables(k, 0, 1), len(calls)

    first, calls = drawn(SETTINGS, [5, 9])
    assert calls > 0
    again, calls = drawn(SETTINGS, [5, 9])
    assert calls == 0
    for one, other in zip(first, again, strict=True):
        assert_same(one.rows, other.rows)
        assert_same(one.weights, other.weights)
    # The key depends on everything that determines a bank, but not on weights and pairing.
    assert drawn(replace(SETTINGS, weight_power=0.5, pairs_per_step=1), [5, 9])[1] == 0
    for settings, seeds, k in (
        (SETTINGS, [5, 8], 12),
        (SETTINGS, [5, 9], 13),
        (replace(SETTINGS, bank_size=5), [5, 9], 12),
        (replace(SETTINGS, weight_power=0.0), [5, 9], 12),
    ):
        assert drawn(settings, seeds, k)[1] > 0
    # Random batches are not cached.
    before = len(kept)
    drawn(replace(SETTINGS, kind="random"), [1, 2])
    assert len(kept) == before


def test_bad_settings_are_explained() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"coreset": "k-means"}, r"coreset='k-means' is not known; expected one of random, kmeans\+\+, lloyd"),
        ({"bank_size": 0}, "bank_size=0 is out of range; expected 1 to 1,000,000"),
        ({"pairs_per_step": 0}, "pairs_per_step=0 is out of range; expected 1 to 10,000"),
        ({"weight_power": -0.5}, r"weight_power=-0\.5 is out of range; expected 0 to 100"),
        ({"weight_power": float("nan")}, "weight_power=nan is out of range"),
        ({"sphere_centroids": "yes"}, r"sphere_centroids='yes' \(str\) has another type than expected: true or false"),
    ]
    check(SETTINGS)
    for change, message in cases:
        assert change.keys() <= parameters(SETTINGS).keys()
        with pytest.raises(InputError, match=message):
            check(with_values(SETTINGS, change))
