from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import array_api_strict
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwp import arrays
from qwp.arrays import Floats
from qwp.errors import InputError
from qwp.search import retrieval
from tests.libraries import assert_close, assert_same, host
from tests.tolerance import rounding

LIBRARIES = pytest.mark.parametrize("xp", [np, array_api_strict], ids=["numpy", "strict"])


def spaces(n: int, m: int, d: int = 4, seed: int = 0) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    src, tgt = rng.standard_normal((n, d)), rng.standard_normal((m, d))
    return (
        src / np.linalg.norm(src, axis=1, keepdims=True),
        tgt / np.linalg.norm(tgt, axis=1, keepdims=True),
    )


def dense_csls(src: Floats, tgt: Floats, k: int) -> Floats:
    """2 cos(x, y) - r(x) - r(y) with the whole matrix in memory, (n, m)."""
    similarity = src @ tgt.T
    r_src = np.sort(similarity, axis=1)[:, -k:].mean(axis=1)
    r_tgt = np.sort(similarity, axis=0)[-k:].mean(axis=0)
    return np.asarray(2 * similarity - r_src[:, None] - r_tgt)


# Memory, in GiB, for a few rows of the spaces below in a block.
LITTLE = 2e-6


@pytest.fixture
def small_blocks() -> Iterator[None]:
    with arrays.use_threads(1), arrays.use_memory(LITTLE):
        assert arrays.block_rows(11, np.zeros(1)) < 8
        yield


# --------------------------------------------------------------------------- pieces


@LIBRARIES
@pytest.mark.parametrize("k", [3, 99])
def test_neighbourhood_means(xp: Any, k: int, small_blocks: None) -> None:
    queries, keys = spaces(8, 11)
    expected = np.sort(queries @ keys.T, axis=1)[:, -k:].mean(axis=1)
    found = retrieval.neighbourhood_means(xp.asarray(queries), xp.asarray(keys), k)
    assert_close(arrays.to_numpy(found), expected)


@LIBRARIES
def test_log_partition(xp: Any, small_blocks: None) -> None:
    queries, keys = spaces(8, 11)
    found = retrieval.log_partition(xp.asarray(queries), xp.asarray(keys), 7.0)
    expected = np.log(np.exp(7 * queries @ keys.T).sum(axis=1))
    assert_close(arrays.to_numpy(found), expected)


def test_log_partition_does_not_overflow() -> None:
    x = np.ones((2, 1), dtype=np.float32)
    assert_close(retrieval.log_partition(x, x, 500.0), 500 + np.log(2), rtol=1e-6)


# --------------------------------------------------------------------------- retrievers


@LIBRARIES
@pytest.mark.parametrize("method", retrieval.METHODS)
def test_retriever_against_dense_formulas(method: str, xp: Any, small_blocks: None) -> None:
    src, tgt = spaces(13, 17)
    similarity = src @ tgt.T
    expected = {
        "nn": similarity,
        "csls": dense_csls(src, tgt, 4),
        "softmax": 30 * similarity - np.log(np.exp(30 * similarity).sum(axis=0)),
    }[method]
    found = retrieval.retriever(xp.asarray(tgt), xp.asarray(src), method=method, csls_k=4)
    indices, scores = (arrays.to_numpy(a) for a in found.top_k(xp.asarray(src[:7]), 5))
    order = np.argsort(-expected[:7], axis=1)[:, :5]
    # In float64 no two keys have nearly equal scores.
    assert_same(indices, order)
    assert_close(scores, np.take_along_axis(expected[:7], order, axis=1))
    # `scores` may omit a constant of each row.
    raw = arrays.to_numpy(found.scores(xp.asarray(src[:7])))
    assert_close(raw - raw[:, :1], expected[:7] - expected[:7, :1], atol=1e-12)


def test_softmax_is_the_inverted_one() -> None:
    # The probabilities of the queries of the pool given one key sum to 1.
    src, tgt = spaces(9, 5)
    found = retrieval.retriever(tgt, src, method="softmax", temperature=12.0)
    assert_close(np.exp(host(found.scores(src))).sum(axis=0), 1.0)


def test_csls_demotes_a_hub() -> None:
    # Every query is nearest to the hub by cosine; CSLS finds its own counterpart.
    n = 6
    src = np.eye(n, 2 * n)
    partners = 0.4 * src + np.sqrt(1 - 0.4**2) * np.eye(n, 2 * n, n)
    hub = np.full((1, n), 1 / np.sqrt(n)) @ src  # cosine 0.408 to every query
    tgt = np.concatenate([partners, hub])
    nearest, _ = retrieval.retriever(tgt, src, method="nn").top_k(src, 1)
    assert host(nearest)[:, 0].tolist() == [n] * n
    corrected, _ = retrieval.retriever(tgt, src, method="csls", csls_k=n).top_k(src, 1)
    assert host(corrected)[:, 0].tolist() == list(range(n))


@pytest.mark.parametrize("method", retrieval.METHODS)
def test_k_is_clamped(method: str) -> None:
    src, tgt = spaces(3, 5)
    found = retrieval.retriever(tgt, src, method=method, csls_k=100)
    assert found.csls_k == 3
    indices, scores = found.top_k(src, 50)
    assert indices.shape == scores.shape == (3, 5)
    assert np.isfinite(host(scores)).all()
    assert all(sorted(row) == list(range(5)) for row in host(indices).tolist())


@pytest.mark.parametrize("method", retrieval.METHODS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_zero_vectors_give_no_nan(method: str, dtype: str) -> None:
    src, tgt = (x.astype(dtype) for x in spaces(6, 7))
    src[2] = 0
    tgt[[0, 4]] = 0
    src, tgt = host(arrays.unit(src)), host(arrays.unit(tgt))
    indices, scores = retrieval.retriever(tgt, src, method=method, csls_k=3).top_k(src, 7)
    assert scores.dtype == dtype
    assert np.isfinite(host(scores)).all()
    assert all(sorted(row) == list(range(7)) for row in host(indices).tolist())


def test_bad_options() -> None:
    src, tgt = spaces(3, 5)
    with pytest.raises(InputError, match=r"'cosine' is not known; expected one of nn, csls, softmax"):
        retrieval.retriever(tgt, src, method="cosine")
    with pytest.raises(InputError, match="csls_k=0 should be at least 1"):
        retrieval.retriever(tgt, src, csls_k=0)
    with pytest.raises(InputError, match="no query vectors"):
        retrieval.retriever(tgt, src).top_k(src[:0], 1)
    with pytest.raises(InputError, match="k=0 should be at least 1"):
        retrieval.cross_neighbours(src, tgt, csls_k=0)


# --------------------------------------------------------------------------- both directions


def check_cross(src: Floats, tgt: Floats, k: int, xp: Any) -> None:
    scores = dense_csls(src, tgt, min(k, len(src), len(tgt)))
    found = retrieval.cross_neighbours(xp.asarray(src), xp.asarray(tgt), csls_k=k)
    forward, backward = scores.argmax(axis=1), scores.argmax(axis=0)
    assert_same(arrays.to_numpy(found.forward), forward)
    assert_same(arrays.to_numpy(found.backward), backward)
    assert_close(arrays.to_numpy(found.forward_scores), scores.max(axis=1), atol=1e-12)
    assert_close(arrays.to_numpy(found.backward_scores), scores.max(axis=0), atol=1e-12)
    expected = [(i, j) for i, j in enumerate(forward) if backward[j] == i]
    pairs = found.mutual()
    assert len(pairs) == len(expected) >= 1
    rows, columns = arrays.to_numpy(pairs.src), arrays.to_numpy(pairs.tgt)
    assert list(zip(rows.tolist(), columns.tolist(), strict=True)) == expected
    assert_close(arrays.to_numpy(pairs.scores), scores[rows, columns], atol=1e-12)


@LIBRARIES
@given(n=st.integers(1, 15), m=st.integers(1, 15), k=st.integers(1, 12), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=25)
def test_cross_neighbours_against_dense_formulas(xp: Any, n: int, m: int, k: int, seed: int) -> None:
    src, tgt = spaces(n, m, seed=seed)
    for memory in (None, LITTLE):
        with arrays.use_threads(1), arrays.use_memory(memory):
            check_cross(src, tgt, k, xp)


def test_cross_neighbours_find_a_permutation() -> None:
    src, _ = spaces(200, 1, d=20, seed=5)
    order = np.random.default_rng(6).permutation(200)
    pairs = retrieval.cross_neighbours(src, src[order]).mutual()
    assert_same(pairs.src, np.arange(200))
    assert_same(order[host(pairs.tgt)], np.arange(200))


def test_cross_neighbours_agree_with_the_retriever() -> None:
    src, tgt = spaces(60, 50, d=6, seed=7)
    found = retrieval.cross_neighbours(src, tgt, csls_k=5)
    indices, scores = retrieval.retriever(tgt, src, csls_k=5).top_k(src, 1)
    assert_same(found.forward, indices[:, 0])
    assert_close(found.forward_scores, scores[:, 0])


def test_cross_neighbours_with_zero_vectors() -> None:
    src, tgt = spaces(6, 7)
    src[1] = 0
    tgt[2] = 0
    found = retrieval.cross_neighbours(src, tgt)
    assert np.isfinite(host(found.forward_scores)).all()
    assert np.isfinite(host(found.backward_scores)).all()


@LIBRARIES
def test_union_concatenates_both_directions(xp: Any) -> None:
    src, tgt = spaces(9, 6, seed=8)
    scores = dense_csls(src, tgt, 3)
    pairs = retrieval.cross_neighbours(xp.asarray(src), xp.asarray(tgt), csls_k=3).union()
    rows = [*range(9), *scores.argmax(axis=0).tolist()]
    columns = [*scores.argmax(axis=1).tolist(), *range(6)]
    assert len(pairs) == 15
    assert arrays.to_numpy(pairs.src).tolist() == rows
    assert arrays.to_numpy(pairs.tgt).tolist() == columns
    assert_close(arrays.to_numpy(pairs.scores), scores[rows, columns], atol=1e-12)


# --------------------------------------------------------------------------- a share of the other side


def sampled(src: Any, tgt: Any, keep: float, seed: int = 0, k: int = 5, rows: int = 256) -> retrieval.CrossNeighbours:
    return retrieval.sampled_neighbours(src, tgt, keep, np.random.default_rng(seed), csls_k=k, sample_rows=rows)


def directions(found: retrieval.CrossNeighbours) -> list[Floats]:
    parts = (found.forward, found.forward_scores, found.backward, found.backward_scores)
    return [arrays.to_numpy(part) for part in parts]


def test_sampling_everything_is_the_exact_search() -> None:
    src, tgt = spaces(60, 50, d=6, seed=7)
    exact = retrieval.cross_neighbours(src, tgt, csls_k=5)
    for mine, theirs in zip(directions(sampled(src, tgt, 1.0)), directions(exact), strict=True):
        assert_same(mine, theirs)


@LIBRARIES
@pytest.mark.parametrize("keep", [0.02, 0.3, 0.9])
def test_each_choice_is_the_best_of_its_sample(keep: float, xp: Any) -> None:
    src, tgt = spaces(50, 70, d=6, seed=9)
    scores = dense_csls(src, tgt, 5)
    forward, forward_scores, backward, backward_scores = directions(
        sampled(xp.asarray(src), xp.asarray(tgt), keep, rows=16)
    )
    for best, found, table in ((forward, forward_scores, scores), (backward, backward_scores, scores.T)):
        n, m = table.shape
        size = max(1, round(keep * m))
        # The score is that of the chosen word, and at most the best of all.
        assert_close(found, table[np.arange(n), best.astype(int)], atol=1e-12)
        assert (found <= table.max(axis=1) + 1e-12).all()
        for first in range(0, n, 16):
            rows = slice(first, first + 16)
            # Words that share a draw must each choose the best of it.
            chosen = np.unique(best[rows].astype(int))
            assert len(chosen) <= size
            assert (table[rows][:, chosen] <= found[rows, None] + 1e-12).all()
            # At least `size` words, those of the sample, are not better than the choice.
            assert ((table[rows] <= found[rows, None] + 1e-12).sum(axis=1) >= size).all()


def test_each_block_has_its_own_sample() -> None:
    src, tgt = spaces(1, 100, d=6, seed=10)
    found = sampled(np.repeat(src, 40, axis=0), tgt, 0.1, rows=10)
    # Forty equal words choose the same word within a block, and others in other blocks.
    choices = host(found.forward).reshape(4, 10)
    assert (choices == choices[:, :1]).all()
    assert len(np.unique(choices)) > 1


def test_a_sample_follows_its_random_stream() -> None:
    src, tgt = spaces(700, 600, d=8, seed=11)
    first, again, other = (directions(sampled(src, tgt, 0.2, seed)) for seed in (1, 1, 2))
    for one, two in zip(first, again, strict=True):
        assert_same(one, two)
    assert (first[0] != other[0]).mean() > 0.5
    assert (first[2] != other[2]).mean() > 0.5


def test_threads_change_samples_by_rounding_only() -> None:
    src, tgt = (side.astype(np.float32) for side in spaces(700, 600, d=8, seed=12))
    results = []
    for threads in (1, 3):
        with arrays.use_threads(threads):
            results.append(directions(sampled(src, tgt, 0.2)))
    # Rounding errors of a product of d + 2 columns and of neighbourhood means.
    slack = rounding(np.float32, 8 + 2)
    scores = dense_csls(src.astype(np.float64), tgt.astype(np.float64), 5)
    for forward, forward_scores, backward, backward_scores in results:
        assert_close(forward_scores, scores[np.arange(700), forward.astype(int)], atol=slack)
        assert_close(backward_scores, scores[backward.astype(int), np.arange(600)], atol=slack)
    # With the same samples, the best scores are equal up to rounding, and so are the words unless two are level.
    for one, two in zip(*results, strict=True):
        if one.dtype == np.float32:
            assert_close(one, two, atol=slack)
        else:
            assert (one == two).mean() > 0.99


@pytest.mark.parametrize("keep", [0.1, 0.5])
def test_the_sampled_share_finds_its_true_neighbour(keep: float) -> None:
    src, _ = spaces(1500, 1, d=20, seed=13)
    order = np.random.default_rng(14).permutation(1500)
    found = sampled(src, src[order], keep, k=10)
    # Every word has one counterpart, drawn with probability `keep`: the standard deviation is at most 0.013.
    assert np.mean(order[host(found.forward)] == np.arange(1500)) == pytest.approx(keep, abs=0.05)
    assert np.mean(host(found.backward) == order) == pytest.approx(keep, abs=0.05)


def test_a_tiny_share_keeps_one_candidate() -> None:
    src, tgt = spaces(5, 3)
    found = sampled(src, tgt, 0.001)
    assert len(set(host(found.forward).tolist())) == 1
    assert np.isfinite(host(found.forward_scores)).all()


@pytest.mark.parametrize("n", [64, 65, 128, 300])
def test_means_by_tiles_of_keys(n: int) -> None:
    queries, keys = spaces(40, n)
    keys[::7] = keys[0]  # equal similarities in several tiles
    expected = np.sort(queries @ keys.T, axis=1)[:, -10:].mean(axis=1)
    assert_close(retrieval.tiled_means(queries, keys, 10, tile=64), expected, atol=rounding(np.float64, 10))
