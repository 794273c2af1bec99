from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from itertools import combinations, pairwise
from typing import Any

import array_api_strict
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from qwp import backend
from qwp.coreset import (
    Bank,
    Coreset,
    _Lockstep,
    coreset_from_bank,
    kmeans_plusplus_bank,
    oversampling,
    random_coreset,
)
from qwp.errors import InputError
from tests.problems import space

Array = npt.NDArray[Any]


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def squared_distances(x: Array, y: Array) -> Array:
    """x: (n, d), y: (m, d). Returns (n, m), from the differences: exactly zero between equal rows."""
    return np.stack([((x - row) ** 2).sum(axis=1) for row in y], axis=1)


# --------------------------------------------------------------------------- the plain algorithm


def plain_kmeans_plusplus(x: Array, counts: Array, uniforms: Array) -> list[int]:
    """One weighted k-means++ by the book: each centre is drawn with its own uniform number by inversion.

    x: (n, d); counts: (n,); uniforms: (k,).
    """
    mass, centres = counts, []
    for uniform in uniforms:
        running = np.cumsum(mass)
        centres.append(int(np.searchsorted(running, uniform * running[-1], side="right")))
        mass = counts * squared_distances(x, x[centres]).min(axis=1)
    return centres


@pytest.mark.parametrize("n", [40, 128, 129, 700, 2500])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lockstep_draws_are_those_of_the_plain_algorithm(n: int, dtype: str) -> None:
    # The same stream in the same order: multinomial counts of the bank, then k uniform numbers a coreset.
    k, size, m = 12, 5, 3 * n
    x = space(n, 6, seed=n).astype(dtype)
    bank = kmeans_plusplus_bank(x, k, size, rng(1), m=m)
    stream = rng(1)
    counts = stream.multinomial(m, np.full(n, 1 / n), size=size)
    uniforms = stream.random((k, size))
    np.testing.assert_array_equal(bank.counts, counts)
    for i in range(size):
        expected = plain_kmeans_plusplus(x.astype(np.float64), counts[i], uniforms[:, i])
        assert bank.centres[i].tolist() == expected


def compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """All tuples of `parts` non-negative integers with this sum."""
    for bars in combinations(range(total + parts - 1), parts - 1):
        edges = (-1, *bars, total + parts - 1)
        yield tuple(b - a - 1 for a, b in pairwise(edges))


def exact_choice_probabilities(x: Array, k: int, m: int, power: float = 1.0) -> dict[tuple[int, ...], float]:
    """Probability of every ordered choice of k centres by k-means++ on m i.i.d. draws from the rows of x.

    The draws are enumerated as count vectors. Choices that repeat a point (all draws fell on fewer than k
    points) are left out: what is missing from one is their probability.
    """
    n = x.shape[0]
    distances = squared_distances(x, x) ** power
    result: Counter[tuple[int, ...]] = Counter()
    for counts in compositions(m, n):
        ways = math.factorial(m) / math.prod(math.factorial(c) for c in counts)
        branches = {(): ways / n**m}
        for _ in range(k):
            longer: dict[Any, float] = {}
            for chosen, probability in branches.items():
                mass = np.array(counts) * (distances[list(chosen)].min(axis=0) if chosen else 1.0)
                if mass.sum() > 0:
                    for i in np.flatnonzero(mass):
                        longer[(*chosen, int(i))] = probability * mass[i] / mass.sum()
            branches = longer
        result.update(branches)
    return dict(result)


@pytest.mark.parametrize(("n", "k", "m", "seed"), [(5, 3, 7, 0), (6, 3, 5, 1), (5, 2, 3, 2)])
def test_choices_follow_the_exact_probabilities(n: int, k: int, m: int, seed: int) -> None:
    draws = 20_000
    x = rng(seed).standard_normal((n, 2)) * [1.0, 3.0]
    expected = exact_choice_probabilities(x, k, m)
    bank = kmeans_plusplus_bank(x, k, draws, rng(seed + 10), m=m)
    distinct = bank.counts.astype(bool).sum(axis=1) >= k
    seen = Counter(tuple(row) for row in bank.centres[distinct].tolist())
    assert set(seen) <= set(expected)
    choices = sorted(expected)
    observed = [seen[c] for c in choices] + [int((~distinct).sum())]
    wanted = np.array([expected[c] for c in choices] + [1 - sum(expected.values())]) * draws
    common = wanted >= 5
    observed_common = [o for o, c in zip(observed, common, strict=True) if c]
    rare = draws - sum(observed_common)
    # A fixed seed: a sound sampler passes always, one with a wrong law has p below 1e-10 at this many draws.
    result = chisquare([*observed_common, rare + 1e-9], [*wanted[common], wanted[~common].sum() + 1e-9])
    assert result.pvalue > 1e-3


def test_the_chi_square_test_can_fail() -> None:
    # Distances instead of their squares, to see that the test above tells the difference.
    x = rng(0).standard_normal((5, 2)) * [1.0, 3.0]
    right, wrong = (exact_choice_probabilities(x, 3, 7, power) for power in (1.0, 0.5))
    choices = [c for c in sorted(right) if 20_000 * min(right[c], wrong[c]) >= 5]
    a, b = (np.array([p[c] for c in choices]) for p in (right, wrong))
    assert chisquare(20_000 * b / b.sum(), 20_000 * a / a.sum()).pvalue < 1e-10


# --------------------------------------------------------------------------- what a bank holds


def check_bank(x: Array, bank: Bank, k: int) -> None:
    """Labels, weights and centres agree with brute force on x (n, d)."""
    exact = x.astype(np.float64)
    slack = 64 * np.finfo(x.dtype).eps * float((x * x).sum(axis=1).max())
    for i in range(len(bank)):
        centres, labels, counts = bank.centres[i], bank.labels[i], bank.counts[i]
        to_centres = squared_distances(exact, exact[centres])
        assert labels.min() >= 0
        assert labels.max() < k
        own = to_centres[np.arange(x.shape[0]), labels]
        assert (own <= to_centres.min(axis=1) + slack).all()
        shares = np.array([counts[labels == c].sum() for c in range(k)]) / counts.sum()
        np.testing.assert_allclose(bank.weights(i), shares, atol=1e-12)
        assert float(bank.weights(i).sum()) == pytest.approx(1.0)


@given(
    n=st.integers(1, 300),
    d=st.integers(1, 8),
    size=st.integers(1, 4),
    seed=st.integers(0, 2**32 - 1),
    dtype=st.sampled_from(["float32", "float64"]),
    data=st.data(),
)
@settings(deadline=None, max_examples=60)
def test_labels_and_weights_agree_with_brute_force(
    n: int, d: int, size: int, seed: int, dtype: str, data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, min(n, 30)))
    x = rng(seed).standard_normal((n, d)).astype(dtype)
    bank = kmeans_plusplus_bank(x, k, size, rng(seed))
    assert len(bank) == size
    assert bank.centres.shape == (size, k)
    assert bank.labels.shape == bank.counts.shape == (size, n)
    assert (bank.counts.sum(axis=1) == oversampling(k)).all()
    check_bank(x, bank, k)
    # As many different centres as there are drawn points to choose from, unless some are equal to rounding.
    exact = x.astype(np.float64)
    apart = squared_distances(exact, exact)[~np.eye(n, dtype=bool)]
    if apart.size and float(apart.min()) < 64 * np.finfo(dtype).eps * float((x * x).sum(axis=1).max()):
        return
    for centres, counts in zip(bank.centres, bank.counts, strict=True):
        assert len(set(centres.tolist())) >= min(k, int((counts > 0).sum()))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_bank_of_several_blocks(dtype: str) -> None:
    # More words than one block of any size in use; 2 threads, then 1: the same bank.
    x = space(5000, 10, seed=3).astype(dtype)
    with backend.use_threads(2):
        bank = kmeans_plusplus_bank(x, 8, 3, rng(4))
    with backend.use_threads(1):
        again = kmeans_plusplus_bank(x, 8, 3, rng(4))
    np.testing.assert_array_equal(bank.centres, again.centres)
    np.testing.assert_array_equal(bank.labels, again.labels)
    small = kmeans_plusplus_bank(x[:2100], 8, 3, rng(4))
    check_bank(x[:2100], small, 8)


def test_a_centre_belongs_to_itself_and_is_not_drawn_again() -> None:
    # In float32 the distance of a point to itself is not zero by rounding; 900 of 1000 points leave no room
    # for error.
    x = space(1000, 50, seed=0).astype(np.float32)
    bank = kmeans_plusplus_bank(x, 900, 2, rng(0), m=1_000_000)
    for i in range(2):
        assert len(set(bank.centres[i].tolist())) == 900
        np.testing.assert_array_equal(bank.labels[i, bank.centres[i]], np.arange(900))


def test_every_point_is_a_centre_when_k_is_n() -> None:
    x = rng(5).standard_normal((30, 4))
    bank = kmeans_plusplus_bank(x, 30, 4, rng(6), m=100_000)
    for i in range(4):
        assert sorted(bank.centres[i].tolist()) == list(range(30))
        np.testing.assert_allclose(bank.weights(i), bank.counts[i, bank.centres[i]] / 100_000)


def test_a_single_centre() -> None:
    x = rng(5).standard_normal((30, 4))
    bank = kmeans_plusplus_bank(x, 1, 50, rng(6))
    assert (bank.labels == 0).all()
    assert (bank.weights(3) == 1.0).all()
    # m = 1: the only drawn word is the centre.
    np.testing.assert_array_equal(bank.centres[:, 0], bank.counts.argmax(axis=1))


def test_one_point() -> None:
    bank = kmeans_plusplus_bank(np.ones((1, 3)), 1, 2, rng())
    assert bank.centres.tolist() == [[0], [0]]
    coreset = coreset_from_bank(np.ones((1, 3)), bank, 1, lloyd=True, on_sphere=False)
    np.testing.assert_allclose(coreset.points, [[1.0, 1.0, 1.0]])


@pytest.mark.parametrize("lloyd", [False, True])
def test_duplicated_points_and_dropped_cells(lloyd: bool) -> None:
    # Three distinct points, five centres: two cells stay empty and are dropped.
    distinct = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    x = distinct[rng(0).integers(3, size=200)]
    bank = kmeans_plusplus_bank(x, 5, 6, rng(1))
    for i in range(6):
        assert len(np.unique(x[bank.centres[i]], axis=0)) == 3
        coreset = coreset_from_bank(x, bank, i, lloyd=lloyd, on_sphere=True)
        assert coreset.points.shape == (3, 2)
        assert (coreset.weights > 0).all()
        for point, weight in zip(coreset.points, coreset.weights, strict=True):
            members = (x == np.round(point)).all(axis=1)
            assert weight == pytest.approx(bank.counts[i, members].sum() / bank.counts[i].sum())


def test_equal_points_are_not_split() -> None:
    distinct = space(4, 200, seed=1).astype(np.float32)
    x = distinct[rng(0).integers(4, size=300)]
    bank = kmeans_plusplus_bank(x, 12, 20, rng(1))
    for i in range(20):
        assert coreset_from_bank(x, bank, i, lloyd=False, on_sphere=True).points.shape == (4, 200)


@pytest.mark.parametrize("d", [3, 50, 200, 300, 1000])
def test_a_centre_has_no_mass_left_in_spite_of_rounding(d: int) -> None:
    # The float32 distance of a row to itself is a rounding error of either sign; only the margin makes it
    # zero.
    x = space(400, d, seed=1).astype(np.float32)
    lockstep = _Lockstep(x, np.ones((400, 400), dtype=np.float32))
    lockstep.add(np.arange(400), 0)  # quantisation i gets word i
    mass = np.concatenate(list(lockstep.mass), axis=1)[:, :400]
    assert (np.diag(mass) == 0).all()
    assert (mass > 0).mean() > 0.99


def test_all_points_equal() -> None:
    for x in (np.ones((20, 3)), np.zeros((20, 3))):
        bank = kmeans_plusplus_bank(x, 4, 3, rng(1))
        coreset = coreset_from_bank(x, bank, 0, lloyd=False, on_sphere=False)
        np.testing.assert_allclose(coreset.points, x[:1])
        np.testing.assert_allclose(coreset.weights, [1.0])


def test_words_never_drawn_are_never_centres() -> None:
    bank = kmeans_plusplus_bank(rng(0).standard_normal((100, 3)), 4, 40, rng(1), m=8)
    for centres, counts in zip(bank.centres, bank.counts, strict=True):
        assert (counts[centres] > 0).all()


def test_the_same_stream_gives_the_same_bank() -> None:
    x = rng(0).standard_normal((200, 5))
    one, two, other = (kmeans_plusplus_bank(x, 10, 3, rng(s)) for s in (7, 7, 8))
    np.testing.assert_array_equal(one.centres, two.centres)
    np.testing.assert_array_equal(one.labels, two.labels)
    np.testing.assert_array_equal(one.counts, two.counts)
    assert (one.centres != other.centres).any()
    assert (one.centres[0] != one.centres[1]).any()


# --------------------------------------------------------------------------- coresets


def made() -> tuple[Array, Bank]:
    x = space(400, 6, seed=2)
    return x, kmeans_plusplus_bank(x, 15, 2, rng(3))


def cell_means(x: Array, bank: Bank, i: int) -> Array:
    """Mean of the drawn points of each cell, one by one. Returns (k', d)."""
    labels, counts = bank.labels[i], bank.counts[i]
    used = [c for c in range(bank.centres.shape[1]) if counts[labels == c].sum() > 0]
    return np.array([np.average(x[labels == c], axis=0, weights=counts[labels == c]) for c in used])


def test_plain_coreset_holds_the_centres() -> None:
    x, bank = made()
    coreset = coreset_from_bank(x, bank, 1, lloyd=False, on_sphere=True)
    np.testing.assert_array_equal(coreset.points, x[bank.centres[1]])
    np.testing.assert_allclose(coreset.weights, bank.weights(1))


def test_lloyd_moves_centres_to_the_weighted_mean() -> None:
    x, bank = made()
    means = cell_means(x, bank, 0)
    flat = coreset_from_bank(x, bank, 0, lloyd=True, on_sphere=False)
    np.testing.assert_allclose(flat.points, means, atol=1e-12)
    sphere = coreset_from_bank(x, bank, 0, lloyd=True, on_sphere=True)
    expected = means / np.linalg.norm(means, axis=1, keepdims=True)
    np.testing.assert_allclose(sphere.points, expected, atol=1e-12)
    np.testing.assert_allclose(sphere.weights, bank.weights(0))


def test_lloyd_does_not_raise_the_quantisation_error() -> None:
    x, bank = made()
    moved = coreset_from_bank(x, bank, 0, lloyd=True, on_sphere=False).points

    def error(points: Array) -> float:
        return float(bank.counts[0] @ ((x - points[bank.labels[0]]) ** 2).sum(axis=1))

    assert error(moved) < error(x[bank.centres[0]])


@pytest.mark.parametrize("weight_power", [1.0, 0.5, 0.0])
def test_weight_power(weight_power: float) -> None:
    x, bank = made()
    coreset = coreset_from_bank(x, bank, 0, lloyd=False, on_sphere=True, weight_power=weight_power)
    expected = bank.weights(0) ** weight_power
    np.testing.assert_allclose(coreset.weights, expected / expected.sum())
    if weight_power == 0.0:
        np.testing.assert_allclose(coreset.weights, 1 / 15)


def test_random_coreset() -> None:
    x = rng(0).standard_normal((50, 3))
    coreset = random_coreset(x, 20, rng(1))
    rows = [int(np.flatnonzero((x == p).all(axis=1))[0]) for p in coreset.points]
    assert len(set(rows)) == 20
    np.testing.assert_allclose(coreset.weights, 1 / 20)
    np.testing.assert_array_equal(random_coreset(x, 20, rng(1)).points, coreset.points)
    assert sorted(random_coreset(x, 50, rng(2)).points[:, 0]) == sorted(x[:, 0])


@pytest.mark.parametrize("kind", ["random", "kmeans++", "lloyd"])
def test_dtype_is_kept(kind: str) -> None:
    x = space(100, 5, seed=0).astype(np.float32)
    if kind == "random":
        coreset = random_coreset(x, 10, rng())
    else:
        bank = kmeans_plusplus_bank(x, 10, 1, rng())
        coreset = coreset_from_bank(x, bank, 0, lloyd=kind == "lloyd", on_sphere=True, weight_power=0.5)
    assert coreset.points.dtype == coreset.weights.dtype == np.float32
    assert float(coreset.weights.sum()) == pytest.approx(1.0, abs=1e-6)


def test_array_api_strict_runs_to_the_same_result() -> None:
    x = space(200, 5, seed=1)
    strict = array_api_strict.asarray(x)
    bank, strict_bank = (kmeans_plusplus_bank(z, 9, 3, rng(2)) for z in (x, strict))
    np.testing.assert_array_equal(backend.to_numpy(strict_bank.centres), bank.centres)
    np.testing.assert_array_equal(backend.to_numpy(strict_bank.labels), bank.labels)
    for lloyd in (False, True):
        ours = coreset_from_bank(x, bank, 1, lloyd=lloyd, on_sphere=True)
        theirs = coreset_from_bank(strict, strict_bank, 1, lloyd=lloyd, on_sphere=True)
        check_equal(ours, theirs)
    check_equal(random_coreset(x, 7, rng(3)), random_coreset(strict, 7, rng(3)))


def check_equal(ours: Coreset, strict: Coreset) -> None:
    assert isinstance(strict.points, type(array_api_strict.zeros(1)))
    np.testing.assert_allclose(backend.to_numpy(strict.points), ours.points, atol=1e-12)
    np.testing.assert_allclose(backend.to_numpy(strict.weights), ours.weights, atol=1e-12)


def test_the_cut_into_blocks_depends_on_sizes_only() -> None:
    x = np.zeros((1, 1))
    for n, size in ((5000, 1), (5000, 32), (20_000, 32), (7, 100_000)):
        with backend.use_threads(1):
            one = backend.cache_blocks(n, size, x)
        with backend.use_threads(3):
            assert backend.cache_blocks(n, size, x) == one
        assert 1 <= one <= n
        assert one == 1 or -(-n // one) * size <= backend.CACHE_ELEMENTS or one == n
        assert backend.cache_blocks(n, size, array_api_strict.zeros(1)) == 1


def test_contiguous() -> None:
    x = np.arange(6.0).reshape(2, 3).T
    found = backend.contiguous(x)
    assert found.flags.c_contiguous
    np.testing.assert_array_equal(found, x)
    strict = array_api_strict.ones((2, 3)).T
    assert backend.contiguous(strict).shape == (3, 2)


@pytest.mark.parametrize(("k", "m"), [(1, 1), (2, 3), (3, 10), (10, 231), (2000, 30_403_610)])
def test_oversampling(k: int, m: int) -> None:
    assert oversampling(k) == m


@given(st.integers(1, 10_000))
def test_oversampling_is_never_below_k(k: int) -> None:
    assert oversampling(k) >= k


def test_errors() -> None:
    x = rng(0).standard_normal((10, 3))
    for k in (0, 11):
        with pytest.raises(InputError, match=f"k={k} should be between 1 and the number of points, 10"):
            kmeans_plusplus_bank(x, k, 1, rng())
        with pytest.raises(InputError, match=f"k={k} should be between 1 and the number of points, 10"):
            random_coreset(x, k, rng())
    with pytest.raises(InputError, match="bank size=0 should be at least 1"):
        kmeans_plusplus_bank(x, 2, 0, rng())
