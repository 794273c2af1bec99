from __future__ import annotations

import contextlib
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwp import arrays
from qwp.maps import procrustes as procrustes_module
from qwp.maps.procrustes import (
    _NEWTON_SCHULZ,
    _QUINTICS,
    HALF_RESTORED,
    KINDS,
    MOST_RESTORED,
    Maps,
    choose_dewhiten,
    clip_singular_values,
    fitted,
    held_out_margin,
    least_squares,
    orthogonality_error,
    polar,
    polar_steps,
    polar_svd,
    procrustes,
    reweighted,
)
from qwp.search.retrieval import Pairs, retriever
from tests.libraries import as_strict, assert_close, assert_same, host
from tests.problems import planted, rotation

Array = npt.NDArray[Any]

TOLERANCE = {"float32": 1e-5, "float64": 1e-10}
dtypes = st.sampled_from(["float32", "float64"])
seeds = st.integers(0, 2**31 - 1)


def with_singular_values(values: Array, seed: int) -> tuple[Array, Array]:
    """Return a matrix with these singular values and its polar factor, both (d, d)."""
    left, right = rotation(len(values), seed), rotation(len(values), seed + 1)
    return np.asarray(left * values @ right), left @ right


@given(
    d=st.integers(1, 40),
    seed=seeds,
    smallest=st.floats(0.05, 1.0),
    scale=st.sampled_from([1e-12, 1e-3, 1.0, 1e3, 1e12]),
    dtype=dtypes,
)
@settings(max_examples=30)
def test_polar_of_known_factors(d: int, seed: int, smallest: float, scale: float, dtype: str) -> None:
    values = np.random.default_rng(seed).uniform(smallest, 1.0, d)
    m, expected = with_singular_values(scale * values, seed)
    for function in (polar, polar_svd):
        found = function(m.astype(dtype))
        assert found.dtype == dtype
        # Rounding the input moves the result by its precision over the smallest singular value.
        assert_close(found, expected, atol=max(TOLERANCE[dtype], 1e-5 * (dtype == "float32") / smallest))
        assert orthogonality_error(found) < TOLERANCE[dtype]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("d", [1, 2, 50])
def test_polar_equals_the_svd_near_an_orthogonal_matrix(d: int, dtype: str) -> None:
    # As in every step of the loop.
    noise = 0.3 * np.random.default_rng(d).standard_normal((d, d)) / d**0.5
    m = (rotation(d, d) + noise).astype(dtype)
    assert_close(polar(m), polar_svd(m), atol=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("condition", [1e2, 1e6, 1e14])
def test_ill_conditioned_matrices(condition: float, dtype: str) -> None:
    m, expected = with_singular_values(np.geomspace(1.0, 1.0 / condition, 30), 3)
    found = polar(m.astype(dtype))
    assert orthogonality_error(found) < TOLERANCE[dtype]
    # Nearest: no orthogonal matrix has a larger inner product with m than the sum of its singular values.
    assert float(np.sum(host(found) * m)) == pytest.approx(float(np.sum(host(expected) * m)), rel=1e-5)
    precision = float(np.finfo(dtype).eps)
    if condition * precision < 1e-3:
        assert_close(found, expected, atol=100 * condition * precision)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rank", [0, 1, 9])
def test_singular_matrices(rank: int, dtype: str) -> None:
    values = np.zeros(10)
    values[:rank] = np.linspace(1.0, 2.0, rank)
    m = with_singular_values(values, 5)[0].astype(dtype)
    found = polar(m)
    assert np.isfinite(host(found)).all()
    assert orthogonality_error(found) < TOLERANCE[dtype]
    assert float(np.sum(host(found) * m)) == pytest.approx(float(values.sum()), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("factor", [1e-30, 1e30])
def test_extreme_scales_neither_overflow_nor_warn(factor: float) -> None:
    m = (factor * rotation(20, 1)).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        assert_close(polar(m), rotation(20, 1), atol=1e-5)


def test_polar_of_an_orthogonal_matrix_is_itself() -> None:
    w = rotation(25, 4)
    assert_close(polar(w), w, atol=1e-12)
    reflection = np.diag([1.0, 1.0, -1.0])
    assert_close(polar(reflection), reflection, atol=1e-12)


def test_polar_known_answer() -> None:
    # A scaled rotation by 30 degrees, times a symmetric positive matrix on the right.
    c, s = np.cos(np.pi / 6), np.sin(np.pi / 6)
    turn = np.array([[c, -s], [s, c]])
    assert_close(polar(turn @ np.array([[3.0, 1.0], [1.0, 2.0]])), turn, atol=1e-12)


# --------------------------------------------------------------------------- a fixed number of products


def composite(t: Array) -> Array:
    """Apply all polynomials in sequence."""
    for a, b, c in (*_QUINTICS, _NEWTON_SCHULZ):
        t = a * t + b * t**3 + c * t**5
    return t


def test_the_composite_polynomial_takes_the_interval_to_one() -> None:
    for grid in (np.geomspace(0.005, 1.0, 20_001), np.linspace(0.005, 1.0, 20_001)):
        assert float(np.abs(composite(grid) - 1.0).max()) < 1e-6
    # The margin of 1.001 moves the ends.
    assert float(np.abs(composite(np.array([0.005, 1.0]) / 1.001) - 1.0).max()) < 1e-5
    # Below the interval it still moves singular values towards one, without overshoot.
    below = composite(np.geomspace(1e-9, 0.005, 10_001))
    assert float(below.min()) > 0
    assert float(below.max()) < 1.0 + 1e-6
    assert (below > np.geomspace(1e-9, 0.005, 10_001) * 100).all()


def in_the_interval(d: int, seed: int) -> Array:
    """Singular values from 0.005 times their Frobenius norm up, the least of them just that. Returns (d,)."""
    values = np.sort(np.random.default_rng(seed).uniform(0.1, 1.0, d))
    ratio = 0.005 * 1.0001
    # v_0 = ratio * |v| with the others as they are.
    values[0] = ratio * float(np.linalg.norm(values[1:])) / (1.0 - ratio**2) ** 0.5
    return np.asarray(values / np.linalg.norm(values))


@given(d=st.integers(2, 40), seed=seeds, scale=st.sampled_from([1e-6, 1.0, 1e6]))
@settings(max_examples=25)
def test_polar_steps_take_singular_values_to_one(d: int, seed: int, scale: float) -> None:
    values = in_the_interval(d, seed)
    m, expected = with_singular_values(scale * values, seed)
    for dtype, atol in (("float32", 1e-5), ("float64", 1e-6)):
        found = polar_steps(m.astype(dtype))
        assert found.dtype == dtype
        singular = np.linalg.svd(host(found).astype(np.float64), compute_uv=False)
        assert float(np.abs(singular - 1.0).max()) < atol
    assert_close(found, expected, atol=1e-5)


def test_polar_steps_of_a_batch_are_those_of_each() -> None:
    batch = np.random.default_rng(0).standard_normal((3, 12, 12)) * np.array([1e-3, 1.0, 1e3])[:, None, None]
    batch += 4.0 * np.abs(batch).max(axis=(1, 2), keepdims=True) * np.eye(12)
    found = polar_steps(batch)
    assert found.shape == (3, 12, 12)
    for m, w in zip(batch, found, strict=True):
        assert_close(w, polar_steps(m), atol=1e-13)
        assert_close(w, polar_svd(m), atol=1e-6)


def test_polar_steps_of_zero_are_zero() -> None:
    m = np.stack([np.zeros((4, 4)), rotation(4, 0)])
    found = polar_steps(m)
    assert (host(found)[0] == 0).all()
    assert_close(found[1], m[1], atol=1e-6)


def test_polar_handles_matrices_that_need_more_than_the_steps() -> None:
    # Far below the interval of the polynomials: further rounds or the SVD are needed.
    for least in (1e-3, 1e-5, 1e-9, 1e-15):
        m, _ = with_singular_values(np.array([1.0, 0.7, 0.3, least]), 2)
        if least < 1e-3:
            assert orthogonality_error(polar_steps(m)) > 1e-3
        assert orthogonality_error(polar(m)) < 1e-12


def test_torch_gives_the_same_factors() -> None:
    torch = pytest.importorskip("torch")
    batch = rotation(10, 0) + 0.1 * np.random.default_rng(1).standard_normal((3, 10, 10))
    assert_close(polar_steps(torch.asarray(batch)), polar_steps(batch), atol=1e-12)
    assert_close(polar(torch.asarray(batch[0])), polar(batch[0]), atol=1e-12)
    x, y = np.random.default_rng(2).standard_normal((2, 30, 6))
    assert_close(procrustes(torch.asarray(x), torch.asarray(y)), procrustes(x, y), atol=1e-12)


# --------------------------------------------------------------------------- matched rows


def test_procrustes_of_float32_rows_keeps_its_digits() -> None:
    # Directions of very unequal variance: in float32 the weak ones would be wrong.
    scales = np.geomspace(1.0, 1e-2, 6)
    x = (np.random.default_rng(3).standard_normal((400, 6)) * scales).astype(np.float32)
    w = rotation(6, 3)
    found = procrustes(x, (x @ w).astype(np.float32))
    assert found.dtype == np.float32
    assert orthogonality_error(found) < 1e-6
    assert_close(found, w, atol=1e-2)
    exact = polar_svd(x.astype(np.float64).T @ (x @ w).astype(np.float32).astype(np.float64))
    assert_close(found, exact, atol=1e-2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_procrustes_recovers_a_planted_rotation(dtype: str) -> None:
    problem = planted(100, d=8, shuffle=True, seed=1, dtype=dtype)
    rows, columns = problem.gold.T
    found = procrustes(problem.src[rows], problem.tgt[columns])
    assert_close(found, problem.w, atol=TOLERANCE[dtype])


def test_procrustes_is_optimal() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 40, 5))
    best = procrustes(x, y)
    error = float(np.linalg.norm(x @ best - y))
    for seed in range(20):
        nearby = polar(best + 0.1 * np.random.default_rng(seed).standard_normal((5, 5)))
        assert float(np.linalg.norm(x @ nearby - y)) > error
        assert float(np.linalg.norm(x @ rotation(5, seed) - y)) > error


def test_weights_count_as_repeated_pairs() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((2, 12, 4))
    times = rng.integers(0, 4, size=12)
    weighted = procrustes(x, y, times.astype(np.float64))
    assert_close(weighted, procrustes(np.repeat(x, times, axis=0), np.repeat(y, times, axis=0)))


# --------------------------------------------------------------------------- least squares


@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")  # a test of its own, below
@given(p=st.integers(1, 40), d=st.integers(1, 12), seed=seeds)
@settings(max_examples=25)
def test_least_squares_is_the_solution_of_least_norm(p: int, d: int, seed: int) -> None:
    x, y = np.random.default_rng(seed).standard_normal((2, p, d))
    singular = np.linalg.svd(x, compute_uv=False)
    expected = np.linalg.lstsq(x, y, rcond=None)[0]
    # The normal equations square the condition number.
    precision = 1e-14 * (singular[0] / singular[-1]) ** 2
    assert_close(least_squares(x, y), expected, atol=1e-10 + precision * np.abs(expected).max())


@pytest.mark.parametrize("p", [1, 5, 8])
def test_least_squares_with_fewer_pairs_than_dimensions(p: int) -> None:
    x, y = np.random.default_rng(p).standard_normal((2, p, 9))
    w = least_squares(x, y)
    assert_close(x @ w, y, atol=1e-10)
    assert_close(w, np.linalg.pinv(x) @ y, atol=1e-10)
    assert np.linalg.matrix_rank(host(w), tol=1e-8) == p
    # Any other solution adds a component in the null space of x, and has a larger norm.
    unseen = np.eye(9) - np.linalg.pinv(x) @ x
    other = w + 0.1 * unseen @ np.random.default_rng(99).standard_normal((9, 9))
    assert_close(x @ other, y, atol=1e-10)
    assert np.linalg.norm(host(other)) > np.linalg.norm(host(w))


def test_least_squares_ignores_directions_without_extent() -> None:
    x, y = np.random.default_rng(0).standard_normal((2, 30, 5))
    x[:, 2] = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        w = least_squares(x, y)
    assert_close(w[2], 0.0, atol=1e-12)
    assert_close(w, np.linalg.lstsq(x, y, rcond=None)[0], atol=1e-12)


@pytest.mark.parametrize(
    ("x", "expected"), [([[1.0, 0.0]], [[2.0, 3.0], [0.0, 0.0]]), ([[0.0, 0.0]], np.zeros((2, 2)))]
)
def test_least_squares_does_not_warn_of_directions_without_extent(x: list[list[float]], expected: Array) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        assert_close(least_squares(np.array(x), np.array([[2.0, 3.0]])), expected, atol=1e-12)


@pytest.mark.parametrize("p", [3, 50])
def test_ridge_against_the_closed_form(p: int) -> None:
    x, y = np.random.default_rng(p).standard_normal((2, p, 7))
    for ridge in (1e-3, 1.0, 100.0):
        expected = np.linalg.solve(x.T @ x + ridge * np.eye(7), x.T @ y)
        assert_close(least_squares(x, y, ridge=ridge), expected, atol=1e-10)


def test_least_squares_keeps_the_type_and_computes_in_more_digits() -> None:
    scales = np.geomspace(1.0, 1e-3, 6)
    x = (np.random.default_rng(3).standard_normal((200, 6)) * scales).astype(np.float32)
    w = np.random.default_rng(4).standard_normal((6, 6))
    found = least_squares(x, (x.astype(np.float64) @ w).astype(np.float32))
    assert found.dtype == np.float32
    assert_close(found, w, atol=1e-3)


# --------------------------------------------------------------------------- singular values at most one


@given(d=st.integers(1, 25), seed=seeds, dtype=dtypes)
@settings(max_examples=25)
def test_clipped_singular_values(d: int, seed: int, dtype: str) -> None:
    values = np.random.default_rng(seed).uniform(0.0, 2.0, d)
    left, right = rotation(d, seed), rotation(d, seed + 1)
    found = clip_singular_values((left * values @ right).astype(dtype))
    assert found.dtype == dtype
    assert_close(found, left * np.minimum(values, 1.0) @ right, atol=TOLERANCE[dtype])
    singular = np.linalg.svd(host(found).astype(np.float64), compute_uv=False)
    assert_close(np.sort(singular), np.sort(np.minimum(values, 1.0)), atol=TOLERANCE[dtype])


def test_clipping_leaves_small_matrices_alone_and_is_nearest() -> None:
    small = 0.3 * rotation(6, 1) @ np.diag(np.linspace(0.0, 3.0, 6))
    assert_close(clip_singular_values(small), small, atol=1e-12)
    m = 2.0 * np.random.default_rng(2).standard_normal((6, 6))
    best = float(np.linalg.norm(host(clip_singular_values(m)) - m))
    for seed in range(20):
        other = np.random.default_rng(seed).standard_normal((6, 6)) + m
        other /= max(1.0, float(np.linalg.norm(other, 2)))
        assert float(np.linalg.norm(other - m)) > best


# --------------------------------------------------------------------------- both sides, re-weighted


def power_of(gram: Array, power: float) -> Array:
    """Return a power of a positive definite matrix (d, d)."""
    values, vectors = np.linalg.eigh(gram)
    return np.asarray(vectors @ np.diag(values**power) @ vectors.T)


def reweighted_by_hand(
    x: Array, y: Array, power: float, dewhiten: float = 1.0, weights: Array | None = None
) -> tuple[Array, Array]:
    """Return the mapped sides (p, d), step by step: whiten, rotate, re-weight, de-whiten."""
    share = np.ones(len(x)) if weights is None else weights
    gram_x, gram_y = (side.T @ np.diag(share) @ side for side in (x, y))
    white_x, white_y = x @ power_of(gram_x, -0.5), y @ power_of(gram_y, -0.5)
    u, s, vt = np.linalg.svd(white_x.T @ np.diag(share) @ white_y)
    stretch = np.diag(s**power)
    return (
        white_x @ u @ stretch @ u.T @ power_of(gram_x, 0.5 * dewhiten) @ u,
        white_y @ vt.T @ stretch @ vt @ power_of(gram_y, 0.5 * dewhiten) @ vt.T,
    )


def two_sided(maps: Maps) -> tuple[Array, Array]:
    """Return the maps of both sides; fail if one is missing."""
    assert maps.tgt is not None
    return host(maps.src), host(maps.tgt)


def similarities(maps: Maps) -> Array:
    """Return all products of the two maps (2 d, 2 d), which do not depend on the signs of singular vectors."""
    both = np.vstack(two_sided(maps))
    return np.asarray(both @ both.T)


def related(p: int, d: int, seed: int) -> tuple[Array, Array]:
    """Return matched rows (p, d) that share about half of their variance, unequally by direction."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((p, d)) * np.linspace(1.0, 0.3, d)
    return x, x @ rotation(d, seed) + rng.standard_normal((p, d)) * np.linspace(0.1, 1.0, d)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("power", "dewhiten"), [(0.0, 0.75), (0.5, 0.0), (1.0, 0.75), (1.0, 1.0)])
@pytest.mark.parametrize(("p", "d"), [(40, 1), (200, 15)])
def test_reweighted_against_the_formula(p: int, d: int, power: float, dewhiten: float, weighted: bool) -> None:
    x, y = related(p, d, p + d)
    weights = np.random.default_rng(p).uniform(0.1, 2.0, p) if weighted else None
    src, tgt = two_sided(reweighted(x, y, power, weights=weights, dewhiten=dewhiten))
    expected_x, expected_y = reweighted_by_hand(x, y, power, dewhiten, weights)
    # The signs of singular vectors are arbitrary, but equal on both sides.
    signs = np.sign(np.sum((x @ src) * expected_x, axis=0))
    assert_close(x @ src * signs, expected_x, atol=1e-9)
    assert_close(y @ tgt * signs, expected_y, atol=1e-9)


def test_reweighting_an_exact_rotation_makes_the_sides_coincide() -> None:
    x, w = related(80, 7, 0)[0], rotation(7, 5)
    for power in (0.0, 0.5, 3.0):
        src, tgt = two_sided(reweighted(x, x @ w, power))
        assert_close(x @ src, x @ w @ tgt, atol=1e-9)
        # All correlations are one, so the two maps are rotations.
        assert orthogonality_error(src) < 1e-9
        assert_close(src @ tgt.T, w, atol=1e-9)


def test_orthogonal_data_give_orthogonal_maps_whatever_the_powers() -> None:
    # Equal variances and correlations of one: the maps are rotations.
    x, w = np.linalg.qr(np.random.default_rng(1).standard_normal((50, 6)))[0], rotation(6, 2)
    for power, dewhiten in ((0.0, 1.0), (0.5, 0.75), (3.0, 0.0)):
        src, tgt = two_sided(reweighted(x, x @ w, power, dewhiten=dewhiten))
        assert orthogonality_error(src) < 1e-9
        assert orthogonality_error(tgt) < 1e-9
        assert_close(src @ tgt.T, w, atol=1e-9)


def test_reweighting_by_power_zero_only_rotates() -> None:
    x, y = related(60, 8, 3)
    for matrix in reweighted(x, y, 0.0):
        assert matrix is not None
        assert orthogonality_error(matrix) < 1e-9
    # With a larger power, weakly correlated directions shrink, and the map is no rotation.
    assert min(orthogonality_error(host(matrix)) for matrix in reweighted(x, y, 1.0)) > 0.05


@pytest.mark.parametrize("power", [0.0, 1.0])
def test_without_dewhitening_directions_have_the_extent_of_their_correlation(power: float) -> None:
    x, y = related(60, 8, 3)
    src, tgt = two_sided(reweighted(x, y, power, dewhiten=0.0))
    correlations = np.linalg.svd(np.linalg.qr(x)[0].T @ np.linalg.qr(y)[0], compute_uv=False)
    for side in (x @ src, y @ tgt):
        assert_close(side.T @ side, np.diag(correlations ** (2 * power)), atol=1e-9)
    # Shared components are on the same axes with their original variance.
    assert_close((x @ src).T @ (y @ tgt), np.diag(correlations ** (2 * power + 1)), atol=1e-9)


def test_dewhitening_by_power_zero_brings_all_of_the_extent_back() -> None:
    x, y = related(60, 8, 3)
    extents = np.linalg.svd(x, compute_uv=False)
    for dewhiten in (0.0, 0.25, 0.75, 1.0):
        mapped = np.linalg.svd(x @ reweighted(x, y, 0.0, dewhiten=dewhiten).src, compute_uv=False)
        assert_close(mapped, extents**dewhiten, rtol=1e-9)


# --------------------------------------------------------------------------- weights of the re-weighted maps


@given(
    p=st.integers(12, 40),
    d=st.integers(1, 6),
    seed=seeds,
    power=st.sampled_from([0.0, 0.5, 1.0]),
    dewhiten=st.sampled_from([0.0, 0.75, 1.0]),
)
@settings(max_examples=25)
def test_reweighted_weights_count_as_repeated_pairs(p: int, d: int, seed: int, power: float, dewhiten: float) -> None:
    x, y = related(p, d, seed)
    times = np.random.default_rng(seed).integers(0, 4, size=p)
    times[:8] = 1  # enough pairs for every direction, whatever is drawn
    weighted = reweighted(x, y, power, weights=times.astype(np.float64), dewhiten=dewhiten)
    repeated = reweighted(np.repeat(x, times, axis=0), np.repeat(y, times, axis=0), power, dewhiten=dewhiten)
    expected = similarities(repeated)
    assert_close(similarities(weighted), expected, atol=1e-8 * (1 + float(np.abs(expected).max())))


def test_equal_weights_are_none_and_a_pair_without_weight_is_left_out() -> None:
    x, y = related(40, 5, 1)
    plain = similarities(reweighted(x, y, 1.0, dewhiten=0.75))
    assert_close(similarities(reweighted(x, y, 1.0, weights=np.ones(40), dewhiten=0.75)), plain, atol=1e-10)
    wrong = np.vstack([x, 100.0 * np.ones((3, 5))]), np.vstack([y, -100.0 * np.eye(5)[:3]])
    without = np.append(np.ones(40), np.zeros(3))
    assert_close(similarities(reweighted(*wrong, 1.0, weights=without, dewhiten=0.75)), plain, atol=1e-10)
    # Any positive weight has an effect.
    heard = similarities(reweighted(*wrong, 1.0, weights=without + 0.01, dewhiten=0.75))
    assert float(np.abs(heard - plain).max()) > 0.1


def test_the_size_of_all_weights_only_scales() -> None:
    # Whitening removes the factor, de-whitening restores its share.
    x, y = related(40, 5, 1)
    weights = np.random.default_rng(0).uniform(0.0, 1.0, 40)
    for dewhiten in (0.0, 0.75, 1.0):
        one, nine = (reweighted(x, y, 1.0, weights=factor * weights, dewhiten=dewhiten) for factor in (1.0, 9.0))
        assert_close(similarities(nine), 9.0 ** (dewhiten - 1) * similarities(one), atol=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_no_weight_at_all_stays_finite(dtype: str) -> None:
    x, y = (side.astype(dtype) for side in related(20, 5, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for weights in (np.zeros(20, dtype), np.eye(20, dtype=dtype)[0]):
            maps = two_sided(reweighted(x, y, 1.0, weights=weights, dewhiten=0.75))
            assert all(matrix.dtype == dtype and np.isfinite(matrix).all() for matrix in maps)


def test_fitted_returns_maps_of_the_given_kind() -> None:
    assert KINDS == ("reweighted", "orthogonal")
    x, y = related(60, 6, 2)
    weights = np.random.default_rng(1).uniform(0.0, 1.0, 60)
    orthogonal = fitted("orthogonal", x, y, weights=weights, reweight=1.0, dewhiten=0.3)
    assert orthogonal.tgt is None
    assert_same(orthogonal.src, procrustes(x, y, weights))
    both = fitted("reweighted", x, y, weights=weights, reweight=0.8, dewhiten=0.3)
    assert_same(similarities(both), similarities(reweighted(x, y, 0.8, weights=weights, dewhiten=0.3)))
    assert float(np.abs(similarities(both) - similarities(fitted("reweighted", x, y))).max()) > 0.01


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("p", [1, 4, 30])
def test_reweighting_singular_input_stays_finite(p: int, dtype: str) -> None:
    x, y = (side.astype(dtype) for side in related(p, 6, p))
    x[:, 3] = 0.0
    y[:, :2] = 0.0
    for power in (0.0, 1.0):
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            maps = two_sided(reweighted(x, y, power))
            nothing = two_sided(reweighted(np.zeros_like(x), np.zeros_like(y), power))
        for matrix in (*maps, *nothing):
            assert matrix.shape == (6, 6)
            assert matrix.dtype == dtype
            assert np.isfinite(matrix).all()
            assert float(np.abs(matrix).max()) < 10.0


def test_array_api_strict_and_torch_for_the_maps_without_constraint() -> None:
    x, y = related(50, 6, 4)
    libraries: list[Any] = [as_strict]
    with contextlib.suppress(ImportError):
        import torch

        libraries.append(torch.asarray)
    for asarray in libraries:
        a, b = asarray(x), asarray(y)
        assert_close(arrays.to_numpy(least_squares(a, b, ridge=0.1)), least_squares(x, y, ridge=0.1))
        clipped = clip_singular_values(asarray(3.0 * rotation(6, 0)))
        assert_close(arrays.to_numpy(clipped), rotation(6, 0), atol=1e-12)
        weights = np.linspace(0.0, 1.0, 50)
        for kind in KINDS:
            ours = fitted(kind, x, y, weights=weights, reweight=1.0, dewhiten=0.75)
            found = fitted(kind, a, b, weights=asarray(weights), reweight=1.0, dewhiten=0.75)
            src, tgt = (np.eye(6) if matrix is None else arrays.to_numpy(matrix) for matrix in found)
            expected = ours.src @ (np.eye(6) if ours.tgt is None else ours.tgt).T
            assert_close(src @ tgt.T, expected, atol=1e-9)


def test_orthogonality_error_known_answer() -> None:
    assert orthogonality_error(np.eye(3)) == 0.0
    assert orthogonality_error(np.diag([1.0, 2.0, 0.5])) == pytest.approx(3.0)
    assert orthogonality_error(np.array([[1.0, 0.5], [0.0, 1.0]])) == pytest.approx(0.5)


def test_array_api_strict() -> None:
    m = np.random.default_rng(2).standard_normal((6, 6))
    strict = as_strict(m)
    assert_close(arrays.to_numpy(polar(strict)), polar(m), atol=1e-10)
    assert_close(arrays.to_numpy(polar_svd(strict)), polar_svd(m), atol=1e-10)
    batch = np.stack([m, m.T]) + 6.0 * np.eye(6)
    steps = polar_steps(as_strict(batch))
    assert_close(arrays.to_numpy(steps), polar_steps(batch), atol=1e-12)
    weights = as_strict(np.ones(6))
    found = procrustes(strict, strict, weights)
    assert_close(arrays.to_numpy(found), np.eye(6), atol=1e-10)
    assert orthogonality_error(strict) == pytest.approx(orthogonality_error(m))


@pytest.mark.parametrize("rank", [12, 5])
def test_singular_vectors_by_the_polar_factor_are_those_of_the_svd(rank: int) -> None:
    """The decomposition on a GPU gives the same matrix and the same re-weighted maps."""
    rng = np.random.default_rng(rank)
    m = rng.standard_normal((12, rank)) @ rng.standard_normal((rank, 12))
    u, s, v = (host(part) for part in procrustes_module._by_polar(m))
    for axes in (u, v):
        assert orthogonality_error(axes) < 1e-8
    assert np.abs((u * s) @ v.T - m).max() < 1e-8
    assert np.sort(s) == pytest.approx(np.linalg.svd(m)[1][::-1], abs=1e-8)


ROWS = np.arange(600)


def two_spaces(extents: np.ndarray, noise: float, seed: int = 0, n: int = 600) -> tuple[np.ndarray, np.ndarray]:
    """Return a space with these standard deviations and a rotated copy with equal noise in each direction."""
    rng = np.random.default_rng(seed)
    words = rng.standard_normal((n, len(extents)))
    sides = [(words + noise * rng.standard_normal(words.shape)) * extents for _ in range(2)]
    return host(arrays.unit(sides[0])), host(arrays.unit(sides[1] @ rotation(len(extents), seed + 1)))


def all_rows(n: int = 600) -> Pairs:
    return Pairs(np.arange(n), np.arange(n), np.random.default_rng(9).uniform(0.5, 1.0, n))


@pytest.mark.parametrize("seed", [0, 1])
def test_long_directions_are_restored_half(seed: int) -> None:
    """Three directions have the largest variance, but distinguish words no better than three others."""
    x, y = two_spaces(np.array([8.0, 6.0, 5.0, *[1.0] * 27]), noise=0.8, seed=seed)
    assert choose_dewhiten(x, y, all_rows(), reweight=1.0, csls_k=10) == HALF_RESTORED


@pytest.mark.parametrize("seed", [0, 1])
def test_noisy_directions_keep_small_weights(seed: int) -> None:
    """Variance indicates the value of a direction: half of the directions are small and pure noise."""
    rng = np.random.default_rng(seed)
    words = rng.standard_normal((600, 15))
    sides = [
        np.concatenate([words + 0.6 * rng.standard_normal(words.shape), 0.05 * rng.standard_normal((600, 15))], axis=1)
        for _ in range(2)
    ]
    x, y = arrays.unit(sides[0]), arrays.unit(sides[1] @ rotation(30, seed))
    assert choose_dewhiten(x, y, all_rows(), reweight=0.0, csls_k=10) == MOST_RESTORED


def test_few_pairs_give_the_default() -> None:
    x, y = two_spaces(np.array([8.0, 6.0, 5.0, *[1.0] * 27]), noise=0.8)
    few = Pairs(ROWS[:119], ROWS[:119], np.ones(119))
    assert choose_dewhiten(x, y, few, reweight=1.0, csls_k=10) == MOST_RESTORED


def test_the_lead_by_hand() -> None:
    x, y = two_spaces(np.linspace(3.0, 1.0, 6), noise=0.4, n=80)
    answers, given = np.random.default_rng(3).permutation(80), np.linspace(-0.2, 1.0, 80)
    maps = reweighted(x[::2], y[answers[::2]], 0.7, weights=np.clip(given[::2], 0, None), dewhiten=0.9)
    src, tgt = host(arrays.unit(x @ maps.src)), host(arrays.unit(y @ maps.tgt))
    asked, leads = np.arange(1, 80, 2), []
    for words, keys, partners in ((src, tgt, answers), (tgt, src, np.argsort(answers))):
        rows = asked if keys is tgt else answers[asked]
        scores = host(retriever(keys, words[rows], csls_k=4).scores(words[rows]))
        for own, row in zip(scores, rows, strict=True):
            leads.append(own[partners[row]] - np.delete(own, partners[row]).max())
    pairs = Pairs(np.arange(80), answers, given)
    assert_close(held_out_margin(x, y, pairs, 0.9, reweight=0.7, csls_k=4), np.mean(leads), atol=1e-12)


def test_without_any_positive_score_all_pairs_count() -> None:
    x, y = two_spaces(np.linspace(3.0, 1.0, 6), noise=0.4, n=80)
    rows = np.arange(80)
    alike, negative = (Pairs(rows, rows, scores) for scores in (np.ones(80), -np.ones(80)))
    assert_close(
        held_out_margin(x, y, negative, 1.0, reweight=1.0, csls_k=4),
        held_out_margin(x, y, alike, 1.0, reweight=1.0, csls_k=4),
        atol=1e-9,
    )


def test_the_choice_of_dewhitening_on_array_api_strict() -> None:
    x, y = two_spaces(np.array([4.0, 3.0, 1.0, 1.0]), noise=0.4, n=60)
    pairs = all_rows(60)
    theirs = Pairs(*(as_strict(column) for column in (pairs.src, pairs.tgt, pairs.scores)))
    expected = choose_dewhiten(x, y, pairs, reweight=1.0, csls_k=5)
    assert choose_dewhiten(as_strict(x), as_strict(y), theirs, reweight=1.0, csls_k=5) == expected
