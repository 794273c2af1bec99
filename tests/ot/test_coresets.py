from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare, poisson

from qwp import arrays
from qwp.errors import InputError
from qwp.ot.coresets import (
    Bank,
    _LockStepSampler,
    kmeans_plusplus_bank,
    kmeans_plusplus_banks,
    oversampling,
    random_rows,
)
from tests.libraries import as_strict, assert_close, assert_same
from tests.problems import space
from tests.tolerance import rounding

Array = npt.NDArray[Any]


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def bank_of(x: Array, k: int, size: int, stream: np.random.Generator, **options: Any) -> Any:
    """Return a bank with arrays of the library of x."""
    return kmeans_plusplus_bank(x, k, size, stream, **options)


def banks_of(spaces: list[Any], k: int, size: int, streams: list[np.random.Generator]) -> list[Any]:
    """Return the banks of several spaces."""
    return [*kmeans_plusplus_banks(spaces, k, size, streams)]


def squared_distances(x: Array, y: Array) -> Array:
    """Return squared distances (n, m) from differences, exactly zero between equal rows. x: (n, d), y: (m, d)."""
    return np.stack([((x - row) ** 2).sum(axis=1) for row in y], axis=1)


# --------------------------------------------------------------------------- the plain algorithm


def check_plain_kmeans_plusplus(x: Array, counts: Array, uniforms: Array, centres: Array, slack: float) -> None:
    """Each centre is the one that its own uniform number draws by inversion, given those before it.

    x: (n, d); counts: (n,); uniforms, centres: (k,). slack: by how much of the mass the ends of a step of the
    distribution may be off, because a uniform number next to an end draws either neighbour.
    """
    mass = counts
    for number, (uniform, centre) in enumerate(zip(uniforms, centres, strict=True)):
        running = np.cumsum(mass) / mass.sum()
        assert mass[centre] > 0
        assert running[centre] - mass[centre] / mass.sum() - slack <= uniform <= running[centre] + slack
        mass = counts * squared_distances(x, x[centres[: number + 1]]).min(axis=1)


@pytest.mark.parametrize("n", [40, 128, 129, 700])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lock_step_draws_equal_those_of_the_plain_algorithm(n: int, dtype: str) -> None:
    # The same stream in the same order: counts of the bank, then k uniform numbers a coreset.
    k, size, m = 12, 5, 3 * n
    x = space(n, 6, seed=n).astype(dtype)
    bank = bank_of(x, k, size, rng(1), m=m)
    stream = rng(1)
    counts = stream.multinomial(m, np.full(n, 1.0 / n), size=size)
    uniforms = stream.random((k, size))
    assert_same(bank.counts, counts)
    for i in range(size):
        slack = rounding(dtype, 32)
        check_plain_kmeans_plusplus(x.astype(np.float64), counts[i], uniforms[:, i], bank.centres[i], slack)


def compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Yield all tuples of `parts` non-negative integers with this sum."""
    for bars in combinations(range(total + parts - 1), parts - 1):
        edges = (-1, *bars, total + parts - 1)
        yield tuple(b - a - 1 for a, b in pairwise(edges))


def exact_choice_probabilities(x: Array, k: int, m: int, power: float = 1.0) -> dict[tuple[int, ...], float]:
    """Return the probability of every ordered choice of k centres by k-means++ on m i.i.d. samples of the rows of x.

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


# Least number of quantisations below with exactly m samples: Poisson totals vary.
JUST_M = 4000


@pytest.mark.slow
@pytest.mark.parametrize(("n", "k", "m", "seed"), [(5, 3, 7, 0), (6, 3, 5, 1), (5, 2, 3, 2)])
def test_choices_follow_the_exact_probabilities(n: int, k: int, m: int, seed: int) -> None:
    x = rng(seed).standard_normal((n, 2)) * [1.0, 3.0]
    expected = exact_choice_probabilities(x, k, m)
    bank = bank_of(x, k, 40_000, rng(seed + 10), m=m)
    # Independent Poisson counts with a given total are those of so many i.i.d. draws.
    just_m = bank.counts.sum(axis=1) == m
    centres, counts, draws = bank.centres[just_m], bank.counts[just_m], int(just_m.sum())
    assert draws > JUST_M
    distinct = counts.astype(bool).sum(axis=1) >= k
    seen = Counter(tuple(row) for row in centres[distinct].tolist())
    assert set(seen) <= set(expected)
    choices = sorted(expected)
    observed = [seen[c] for c in choices] + [int((~distinct).sum())]
    wanted = np.array([expected[c] for c in choices] + [1 - sum(expected.values())]) * draws
    common = wanted >= 5
    observed_common = [o for o, c in zip(observed, common, strict=True) if c]
    rare = draws - sum(observed_common)
    # A fixed seed: a correct sampler always passes; a wrong distribution has p below 1e-10 with this many draws.
    result = chisquare([*observed_common, rare + 1e-9], [*wanted[common], wanted[~common].sum() + 1e-9])
    assert result.pvalue > 1e-3


def test_the_chi_square_test_can_fail() -> None:
    # Distances instead of their squares, to show that the test above detects the difference.
    x = rng(0).standard_normal((5, 2)) * [1.0, 3.0]
    right, wrong = (exact_choice_probabilities(x, 3, 7, power) for power in (1.0, 0.5))
    choices = [c for c in sorted(right) if JUST_M * min(right[c], wrong[c]) >= 5]
    a, b = (np.array([p[c] for c in choices]) for p in (right, wrong))
    assert chisquare(JUST_M * b / b.sum(), JUST_M * a / a.sum()).pvalue < 1e-10


def test_many_draws_follow_the_poisson_law() -> None:
    n, m, size = 5000, 12_500, 200
    counts = bank_of(space(n, 3, seed=0), 2, size, rng(3), m=m).counts
    values = np.arange(8)
    observed = [*(int((counts == v).sum()) for v in values), int((counts > values[-1]).sum())]
    wanted = np.append(poisson.pmf(values, m / n), poisson.sf(values[-1], m / n)) * counts.size
    assert chisquare(observed, wanted).pvalue > 1e-3
    totals = counts.sum(axis=1)
    # The totals are independent and spread as Poisson numbers of mean m do: mean and variance are m.
    assert abs(totals.mean() - m) < 6 * (m / size) ** 0.5
    assert totals.var() == pytest.approx(m, rel=0.5)


# --------------------------------------------------------------------------- what a bank holds


def check_bank(x: Array, bank: Any, k: int) -> None:
    """Labels, weights and centres agree with brute force on x (n, d)."""
    exact = x.astype(np.float64)
    slack = 64 * np.finfo(x.dtype).eps * float((x * x).sum(axis=1).max())
    assert bank.labels is not None
    weights = bank.weights()
    assert weights.shape == (len(bank), k)
    for i in range(len(bank)):
        centres, labels, counts = bank.centres[i], bank.labels[i], bank.counts[i]
        to_centres = squared_distances(exact, exact[centres])
        assert labels.min() >= 0
        assert labels.max() < k
        own = to_centres[np.arange(x.shape[0]), labels]
        assert (own <= to_centres.min(axis=1) + slack).all()
        shares = np.array([counts[labels == c].sum() for c in range(k)]) / counts.sum()
        assert_close(weights[i], shares, atol=4 * float(np.finfo(x.dtype).eps))
        assert float(weights[i].sum()) == pytest.approx(1.0, abs=1e-5)


@given(
    n=st.integers(1, 300),
    d=st.integers(1, 8),
    size=st.integers(1, 4),
    seed=st.integers(0, 2**32 - 1),
    dtype=st.sampled_from(["float32", "float64"]),
    data=st.data(),
)
@settings(max_examples=30)
def test_labels_and_weights_agree_with_brute_force(
    n: int, d: int, size: int, seed: int, dtype: str, data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, min(n, 30)))
    x = rng(seed).standard_normal((n, d)).astype(dtype)
    # Enough samples that no bank is empty.
    m = max(60, oversampling(k))
    bank = bank_of(x, k, size, rng(seed), m=m)
    assert bank.labels is not None
    assert len(bank) == size
    assert bank.centres.shape == (size, k)
    assert bank.labels.shape == bank.counts.shape == (size, n)
    assert (np.abs(bank.counts.sum(axis=1) - m) <= 6 * m**0.5).all()
    check_bank(x, bank, k)
    # As many distinct centres as sampled points, unless some points are equal up to rounding.
    exact = x.astype(np.float64)
    apart = squared_distances(exact, exact)[~np.eye(n, dtype=bool)]
    if apart.size and float(apart.min()) < 64 * np.finfo(dtype).eps * float((x * x).sum(axis=1).max()):
        return
    for centres, counts in zip(bank.centres, bank.counts, strict=True):
        assert len(set(centres.tolist())) >= min(k, int((counts > 0).sum()))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_bank_of_several_blocks(dtype: str) -> None:
    size = 80
    x = space(2000, 10, seed=3).astype(dtype)
    assert arrays.cache_blocks(len(x), size, x) > 1
    banks = []
    for threads in (1, 2):
        with arrays.use_threads(threads):
            banks.append(bank_of(x, 8, size, rng(4)))
        check_bank(x, banks[-1], 8)
    # The draws do not depend on the number of threads.
    assert_same(banks[0].counts, banks[1].counts)


def test_a_centre_belongs_to_itself_and_is_not_drawn_again() -> None:
    # In float32 the distance of a point to itself is not zero by rounding; 900 of 1000 points leave no room
    # for error.
    x = space(1000, 50, seed=0).astype(np.float32)
    bank = bank_of(x, 900, 2, rng(0), m=1_000_000)
    assert bank.labels is not None
    for i in range(2):
        assert len(set(bank.centres[i].tolist())) == 900
        assert_same(bank.labels[i, bank.centres[i]], np.arange(900))


def test_every_point_is_a_centre_when_k_is_n() -> None:
    x = rng(5).standard_normal((30, 4))
    bank = bank_of(x, 30, 4, rng(6), m=100_000)
    for i in range(4):
        assert sorted(bank.centres[i].tolist()) == list(range(30))
        counts = bank.counts[i]
        assert_close(bank.weights()[i], counts[bank.centres[i]] / counts.sum())


def test_a_single_centre() -> None:
    x = rng(5).standard_normal((30, 4))
    bank = bank_of(x, 1, 50, rng(6), m=40)
    assert bank.labels is not None
    assert (bank.labels == 0).all()
    assert (bank.weights() == 1.0).all()
    assert (np.take_along_axis(bank.counts, bank.centres, axis=1) > 0).all()


def test_weights_of_the_smallest_coresets() -> None:
    # The default number of samples is 1, 3 and 10 here: some of 200 Poisson totals would be zero.
    for k in (1, 2, 3):
        weights = bank_of(rng(5).standard_normal((30, 4)), k, 200, rng(6)).weights()
        assert np.isfinite(weights).all()
        assert_close(weights.sum(axis=1), 1.0)


def test_one_point() -> None:
    x = np.ones((1, 3))
    bank = bank_of(x, 1, 2, rng(), m=40)
    assert bank.centres.tolist() == [[0], [0]]
    assert_close(bank.points(x, 1), x)
    assert_close(bank.centroids(x, 1, on_sphere=False), x)


@pytest.mark.parametrize("lloyd", [False, True])
def test_duplicated_points_and_empty_cells(lloyd: bool) -> None:
    # Three distinct points, five centres: two cells stay empty and weigh nothing.
    distinct = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    x = distinct[rng(0).integers(3, size=200)]
    bank = bank_of(x, 5, 6, rng(1))
    weights = bank.weights()
    for i in range(6):
        assert len(np.unique(x[bank.centres[i]], axis=0)) == 3
        points = bank.centroids(x, i, on_sphere=True) if lloyd else bank.points(x, i)
        assert points.shape == (5, 2)
        assert int((weights[i] > 0).sum()) == 3
        if lloyd:
            assert (points[weights[i] == 0] == 0).all()
        for point, weight in zip(points[weights[i] > 0], weights[i, weights[i] > 0], strict=True):
            members = (x == np.round(point)).all(axis=1)
            assert weight == pytest.approx(bank.counts[i, members].sum() / bank.counts[i].sum())


def test_equal_points_are_not_split() -> None:
    distinct = space(4, 200, seed=1).astype(np.float32)
    x = distinct[rng(0).integers(4, size=300)]
    bank = bank_of(x, 12, 20, rng(1))
    assert ((bank.weights() > 0).sum(axis=1) == 4).all()
    for i in range(20):
        assert len(np.unique(x[bank.centres[i]], axis=0)) == 4


@pytest.mark.parametrize("d", [3, 50, 1000])
def test_a_centre_has_no_mass_left_in_spite_of_rounding(d: int) -> None:
    # The float32 distance of a row to itself is a rounding error of either sign; only the margin makes it
    # zero.
    x = space(400, d, seed=1).astype(np.float32)
    lockstep = _LockStepSampler([x], [np.ones((400, 400), dtype=np.float32)], np.zeros((1, 1, 400)), labels=False)
    lockstep._add(np.arange(400))  # quantisation i gets word i
    distances = np.concatenate(list(lockstep.distances[:, 0]), axis=1)[:, :400]
    assert (np.diag(distances) <= 0).all()
    assert (distances > 0).mean() > 0.99
    assert_close(distances, squared_distances(x, x).T, atol=1e-4)


def test_all_points_equal() -> None:
    for x in (np.ones((20, 3)), np.zeros((20, 3))):
        bank = bank_of(x, 4, 3, rng(1))
        assert_close(bank.points(x, 0), x[:4])
        assert_close(bank.weights(), [[1.0, 0.0, 0.0, 0.0]] * 3)


def test_words_never_drawn_are_never_centres() -> None:
    bank = bank_of(rng(0).standard_normal((100, 3)), 4, 40, rng(1), m=20)
    for centres, counts in zip(bank.centres, bank.counts, strict=True):
        assert (counts[centres] > 0).all()


def test_the_same_stream_gives_the_same_bank() -> None:
    x = rng(0).standard_normal((200, 5))
    one, two, other = (bank_of(x, 10, 3, rng(s)) for s in (7, 7, 8))
    assert_same(one.centres, two.centres)
    assert_same(one.labels, two.labels)
    assert_same(one.counts, two.counts)
    assert (one.centres != other.centres).any()
    assert (one.centres[0] != one.centres[1]).any()


def test_labels_do_not_change_the_centres() -> None:
    x = space(300, 5, seed=0)
    without, with_labels = (bank_of(x, 9, 3, rng(7), labels=labels) for labels in (False, True))
    assert_same(without.centres, with_labels.centres)
    assert_same(without.counts, with_labels.counts)
    assert without.labels is None
    assert with_labels.labels is not None


# --------------------------------------------------------------------------- several spaces


SIZES = (90, 300, 128)


def several(dtype: str = "float64") -> list[Array]:
    """Return spaces of different sizes, (n_s, 6) each."""
    return [space(n, 6, seed=n).astype(dtype) for n in SIZES]


def check_same(bank: Any, expected: Bank) -> None:
    """Assert that two banks of any libraries have the same numbers."""
    for name in ("centres", "counts", "labels"):
        found, wanted = (arrays.to_numpy(getattr(b, name)) for b in (bank, expected))
        assert_same(found, wanted, message=name)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_banks_of_several_spaces_are_those_drawn_one_by_one(dtype: str) -> None:
    spaces = several(dtype)
    banks = banks_of(spaces, 11, 4, [rng(s) for s in (1, 2, 3)])
    for x, bank, seed in zip(spaces, banks, (1, 2, 3), strict=True):
        check_same(bank, bank_of(x, 11, 4, rng(seed)))
        check_bank(x, bank, 11)


@pytest.mark.parametrize("size", [4, 500])
def test_lockstep_of_several_spaces_is_that_of_each(size: int) -> None:
    # NumPy takes one space at a time; here all at once, in one block and in several. Float64 avoids near ties.
    k, spaces = 11, several()
    expected = [bank_of(x, k, size, rng(s)) for s, x in enumerate(spaces)]
    streams = [rng(s) for s in range(3)]
    counts = [
        stream.multinomial(oversampling(k), np.full(n, 1.0 / n), size=size).astype(np.float64)
        for stream, n in zip(streams, SIZES, strict=True)
    ]
    uniforms = np.stack([stream.random((k, size)) for stream in streams], axis=1)
    lockstep = _LockStepSampler(spaces, counts, uniforms, labels=True)
    assert (lockstep.n_blocks > 1) == (size == 500)
    for _ in range(k):
        lockstep.step()
    for i, (n, bank) in enumerate(zip(SIZES, expected, strict=True)):
        check_same(Bank(lockstep.centres(i), counts[i], lockstep.labels_of(i, n)), bank)


def test_torch_draws_the_same_banks() -> None:
    torch = pytest.importorskip("torch")
    spaces = several()
    expected = banks_of(spaces, 11, 4, [rng(s) for s in (1, 2, 3)])
    banks = banks_of([torch.asarray(x) for x in spaces], 11, 4, [rng(s) for s in (1, 2, 3)])
    for x, bank, ours in zip(spaces, banks, expected, strict=True):
        assert bank.centres.dtype == torch.int64
        assert bank.counts.dtype == torch.float64
        check_same(bank, ours)
        for power in (0.0, 0.5, 1.0):
            assert_close(arrays.to_numpy(bank.weights(power)), ours.weights(power), atol=1e-14)
        words = torch.asarray(x)
        assert_same(arrays.to_numpy(bank.points(words, 2)), ours.points(x, 2))
        for on_sphere in (False, True):
            found = bank.centroids(words, 2, on_sphere=on_sphere)
            assert_close(arrays.to_numpy(found), ours.centroids(x, 2, on_sphere=on_sphere), atol=1e-13)


# --------------------------------------------------------------------------- coresets


def made() -> tuple[Array, Any]:
    x = space(400, 6, seed=2)
    return x, bank_of(x, 15, 2, rng(3))


def cell_means(x: Array, bank: Any, i: int) -> Array:
    """Return the mean of the samples of each cell, (k, d)."""
    assert bank.labels is not None
    labels, counts = bank.labels[i], bank.counts[i]
    cells = [labels == c for c in range(bank.centres.shape[1])]
    return np.array([np.average(x[cell], axis=0, weights=counts[cell]) for cell in cells])


def test_points_are_the_centres() -> None:
    x, bank = made()
    assert_same(bank.points(x, 1), x[bank.centres[1]])


def test_centroids_are_the_weighted_means() -> None:
    x, bank = made()
    means = cell_means(x, bank, 0)
    assert_close(bank.centroids(x, 0, on_sphere=False), means, atol=1e-12)
    expected = means / np.linalg.norm(means, axis=1, keepdims=True)
    assert_close(bank.centroids(x, 0, on_sphere=True), expected, atol=1e-12)


def test_lloyd_does_not_raise_the_quantisation_error() -> None:
    x, bank = made()
    labels = bank.labels
    assert labels is not None

    def error(points: Array) -> float:
        return float(bank.counts[0] @ ((x - points[labels[0]]) ** 2).sum(axis=1))

    assert error(bank.centroids(x, 0, on_sphere=False)) < error(bank.points(x, 0))


def test_weight_power() -> None:
    _, bank = made()
    expected = bank.weights() ** 0.5
    assert_close(bank.weights(0.5), expected / expected.sum(axis=1, keepdims=True))
    assert_close(bank.weights(0.0), 1 / 15)


def test_weights_known_answer() -> None:
    counts = np.array([[1.0, 0.0, 4.0, 4.0, 0.0], [2.0, 2.0, 2.0, 2.0, 1.0]])
    bank = Bank(np.array([[0, 2, 4], [0, 2, 4]]), counts, np.array([[0, 0, 1, 1, 2], [0, 0, 1, 1, 2]]))
    assert_close(bank.weights(), [[1 / 9, 8 / 9, 0.0], [4 / 9, 4 / 9, 1 / 9]])
    # An empty cell has weight zero under any power except zero.
    root = 8**0.5
    assert_close(bank.weights(0.5), [[1 / (1 + root), root / (1 + root), 0.0], [0.4, 0.4, 0.2]])


def test_a_bank_without_labels_says_so() -> None:
    x = space(100, 5, seed=0)
    bank = bank_of(x, 10, 2, rng(), labels=False)
    assert_close(bank.weights(0.0), np.full((2, 10), 0.1))
    assert_same(bank.points(x, 1), x[bank.centres[1]])
    with pytest.raises(InputError, match="drawn without labels: draw it with labels=True"):
        bank.weights()
    with pytest.raises(InputError, match="drawn without labels"):
        bank.centroids(x, 0, on_sphere=True)


def test_random_rows() -> None:
    rows = random_rows(50, 20, rng(1))
    assert rows.shape == (20,)
    assert len(set(rows.tolist())) == 20
    assert 0 <= rows.min() <= rows.max() < 50
    assert_same(random_rows(50, 20, rng(1)), rows)
    assert sorted(random_rows(50, 50, rng(2)).tolist()) == list(range(50))
    # Uniform rows: 4000 draws of 5 out of 20.
    stream = rng(4)
    seen = np.bincount(np.concatenate([random_rows(20, 5, stream) for _ in range(4000)]), minlength=20)
    assert chisquare(seen).pvalue > 1e-3


def test_the_dtype_is_that_of_the_input() -> None:
    x = space(100, 5, seed=0).astype(np.float32)
    bank = bank_of(x, 10, 2, rng())
    found = [bank.points(x, 0), *(bank.centroids(x, 0, on_sphere=s) for s in (False, True))]
    weights = [bank.weights(power) for power in (0.0, 0.5, 1.0)]
    assert {z.dtype for z in (*found, *weights)} == {np.dtype(np.float32)}
    for w in weights:
        assert_close(w.sum(axis=1), 1.0, atol=1e-6)


def test_array_api_strict_runs_to_the_same_result() -> None:
    spaces = several()
    strict = [as_strict(x) for x in spaces]
    ours, theirs = (banks_of(z, 9, 3, [rng(s) for s in (2, 3, 4)]) for z in (spaces, strict))
    for x, strict_x, bank, strict_bank in zip(spaces, strict, ours, theirs, strict=True):
        check_same(strict_bank, bank)
        for power in (0.0, 1.0):
            check_strict(strict_bank.weights(power), bank.weights(power))
        check_strict(strict_bank.points(strict_x, 1), bank.points(x, 1))
        for on_sphere in (False, True):
            found, expected = (b.centroids(z, 1, on_sphere=on_sphere) for z, b in ((strict_x, strict_bank), (x, bank)))
            check_strict(found, expected)


def check_strict(found: Any, expected: Any) -> None:
    assert type(found) is type(as_strict(np.zeros(1)))
    assert_close(found, expected, atol=1e-12)


def test_oversampling() -> None:
    assert [oversampling(k) for k in (1, 2, 3, 10, 2000)] == [1, 3, 10, 231, 30_403_610]


@given(st.integers(1, 10_000))
@settings(max_examples=30)
def test_oversampling_is_never_below_k(k: int) -> None:
    assert oversampling(k) >= k


def test_errors() -> None:
    x = rng(0).standard_normal((10, 3))
    for k in (0, 11):
        with pytest.raises(InputError, match=f"k={k} should be between 1 and the number of points, 10"):
            bank_of(x, k, 1, rng())
        with pytest.raises(InputError, match=f"k={k} should be between 1 and the number of points, 10"):
            random_rows(10, k, rng())
    with pytest.raises(InputError, match="bank_size=0 should be at least 1"):
        bank_of(x, 2, 0, rng())
    # The smallest of several spaces limits k.
    with pytest.raises(InputError, match="k=8 should be between 1 and the number of points, 7"):
        banks_of([x, x[:7]], 8, 1, [rng(), rng()])
