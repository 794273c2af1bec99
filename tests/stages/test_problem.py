"""Problems: normalised and ordered spaces, known pairs in each order, orthogonal maps of projected spaces."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

from qwp import Embeddings, InputError, Lexicon, arrays
from qwp.maps.procrustes import orthogonality_error
from qwp.spaces import normalization
from qwp.stages.problem import ESTIMATED, GIVEN, Prepare, PreparedSpace, View, log_estimated_order
from tests.conftest import planted_embeddings
from tests.libraries import assert_close, assert_same
from tests.problems import rotation, space
from tests.tolerance import rounding

OPTIONS: dict[str, Any] = {"normalize": "unit,center,unit", "order": "given", "dtype": "float64"}


def prepared(*spaces: Embeddings, **options: Any) -> list[PreparedSpace]:
    return Prepare(**{**OPTIONS, **options}).spaces(spaces, arrays.HOST, 0)


def test_spaces_are_normalised_in_the_precision_asked_for() -> None:
    src, tgt = planted_embeddings(30, 25)
    for side, given in zip(prepared(src, tgt), (src, tgt), strict=True):
        assert side.space is given
        assert side.order is None
        assert side.vectors.dtype == np.float64
        fitted, rows = normalization.fit(given.vectors.astype("f8"), "unit,center,unit")
        assert_same(side.vectors, rows)
        assert_same(side.normalization.means[0], fitted.means[0])
        some = np.array([3, 0, 3])
        assert side.positions(some) is some
    plain, _ = prepared(src, tgt, normalize="none", dtype="float32")
    assert_same(plain.vectors, src.vectors)
    assert plain.vectors.dtype == np.float32


def test_positions_of_rows_in_another_order() -> None:
    # Frequent words have longer vectors, as in trained embeddings; then all rows are shuffled.
    n = 600
    rng = np.random.default_rng(0)
    rows = space(n, 20, 0) * (1 + np.linspace(3, 0, n))[:, None] + np.linspace(1, 0, n)[:, None]
    shuffled = Embeddings([f"w{i}" for i in range(n)], rows[rng.permutation(n)].astype("f4"))
    [as_read] = prepared(shuffled, order="auto")
    # The estimate is not in use yet.
    assert as_read.order is None
    assert as_read.estimate is not None
    assert_close(as_read.vectors, as_read.normalization.apply(shuffled.vectors.astype("f8")), atol=1e-12)
    side = as_read.in_estimated_order()
    assert side.order is not None
    assert side.estimate is None
    assert side.in_estimated_order() is side
    assert sorted(side.order.tolist()) == list(range(n))
    normal = side.normalization.apply(shuffled.vectors.astype("f8"))
    assert_close(side.vectors, normal[side.order], atol=1e-12)
    some = np.array([7, 0, n - 1, 7])
    assert_close(side.vectors[side.positions(some)], normal[some], atol=1e-12)


def with_estimates(*estimates: Any) -> list[PreparedSpace]:
    """Return two sides of 40 words with estimated orders that are not in use."""
    sides = zip(prepared(*planted_embeddings(40)), estimates, strict=True)
    return [PreparedSpace(side.space, side.vectors, side.normalization, estimate=rows) for side, rows in sides]


def test_an_estimated_order_that_is_used_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    backwards = np.arange(40)[::-1]
    first, second = with_estimates(None, backwards)
    prepare = Prepare(**OPTIONS)
    with caplog.at_level(logging.WARNING, logger="qwp"):
        both = prepare.problem([first, second], seed=0, compare_orders=True).views
        assert [view.order for view in both] == [GIVEN, ESTIMATED]
        alone = prepare.problem(prepared(*planted_embeddings(40)), seed=0).views
        assert [view.order for view in alone] == [GIVEN]
        # No warning while the estimate is not used.
        assert caplog.text == ""
        [view] = prepare.problem([first, second], seed=0).views
        assert "do not all seem to be sorted by frequency, so qwp estimates an order" in caplog.text
        caplog.clear()
        log_estimated_order([first.space, second.space])
        assert "qwp estimates an order" in caplog.text
    assert view.order == ESTIMATED
    assert view.src is first
    assert_same(view.tgt.order, backwards)
    assert_same(view.y, second.vectors[backwards])
    assert_same(view.tgt.positions(np.array([0, 39])), [39, 0])


@pytest.mark.parametrize("kind", ["given", "estimated"])
def test_the_ranks_of_known_pairs_decide_on_the_order(kind: str) -> None:
    backwards = np.arange(40)[::-1].copy()
    # Translations have similar ranks, in the order of the file or in the estimated one.
    sides = with_estimates(None, backwards)
    lexicon = Lexicon(tuple((f"s{i}", f"t{i if kind == 'given' else 39 - i}") for i in range(30)))
    [view] = Prepare(**OPTIONS).problem(sides, seed=0, lexicon=lexicon).views
    assert view.order == kind
    # A few pairs do not decide, so the estimate is used.
    few = Lexicon(lexicon.pairs[:29])
    [view] = Prepare(**OPTIONS).problem(sides, seed=0, lexicon=few).views
    assert view.order == ESTIMATED
    [view] = Prepare(**OPTIONS, fewest_pairs=29).problem(sides, seed=0, lexicon=few).views
    assert view.order == kind


def test_known_pairs_and_identical_words_follow_the_order_of_the_vectors() -> None:
    src = Embeddings(["a", "b", "c"], np.eye(3, dtype="f4"))
    tgt = Embeddings(["x", "b", "y"], np.eye(3, dtype="f4"))
    lexicon = Lexicon((("a", "y"), ("c", "x"), ("b", "nowhere")))
    one, two = prepared(src, tgt, normalize="unit")
    turned = PreparedSpace(tgt, two.vectors[[2, 0, 1]], two.normalization, np.array([2, 0, 1]))
    for target, columns, alike in ((two, [2, 0], 1), (turned, [0, 1], 2)):
        problem = Prepare(**OPTIONS).problem([one, target], seed=0, lexicon=lexicon)
        [view] = problem.views
        rows = problem.known_pairs(view)
        assert (rows[0].tolist(), rows[1].tolist()) == ([0, 2], columns)
        assert_same(view.y[rows[1]], two.vectors[[2, 0]])
        same = view.identical_pairs()
        assert (same[0].tolist(), same[1].tolist()) == ([1], [alike])


def test_pairs_are_held_out_only_if_a_stage_needs_them() -> None:
    sides = prepared(*planted_embeddings(250))
    lexicon = Lexicon(tuple((f"s{i}", f"t{i}") for i in range(250)))
    for hold_out, used, held_out in ((False, 250, 0), (True, 200, 25)):
        known = Prepare(**OPTIONS).problem(sides, seed=0, lexicon=lexicon, hold_out=hold_out).known
        assert known is not None
        assert len(known.used[0]) == used
        assert (0 if known.held_out is None else len(known.held_out[0])) == held_out
    assert Prepare(**OPTIONS).problem(sides, seed=0, hold_out=True).known is None


def test_spaces_of_equal_width_are_not_projected() -> None:
    src, tgt = prepared(*planted_embeddings(40))
    view = View(src, tgt)
    assert_same(view.projected.x, view.x)
    assert_same(view.projected.y, view.y)
    assert view.projected is view.projected
    w = rotation(12, 4)
    assert_same(view.projected.project(w), w)


def test_a_map_of_the_padded_spaces_is_orthogonal_between_the_principal_axes() -> None:
    narrow, wide = planted_embeddings(60, d=5)[0], planted_embeddings(60, d=7)[1]
    problem = Prepare(**OPTIONS).problem(prepared(narrow, wide), seed=0)
    [view] = problem.views
    assert problem.width == 7
    assert view.projected.x.shape == view.projected.y.shape == (60, 5)
    w = view.projected.project(rotation(7, 4))
    assert w.shape == (5, 5)
    assert orthogonality_error(w) < rounding("float64", 100)


def test_the_narrower_space_is_padded_with_zeros() -> None:
    narrow, wide = planted_embeddings(20, d=5)[0], planted_embeddings(20, d=7)[0]
    first, second = prepared(narrow, wide)
    assert first.vectors.shape == second.vectors.shape == (20, 7)
    assert not np.any(np.asarray(first.vectors)[:, 5:])
    assert_same(first.vectors[:, :5], prepared(narrow)[0].vectors)
    assert_same(second.vectors, prepared(wide)[0].vectors)


def test_unordered_items_are_ordered_by_their_traces() -> None:
    src, _ = planted_embeddings(600, d=8)
    side = prepared(src, order="none")[0]
    assert side.order is not None
    assert side.estimate is None
    assert_same(np.sort(side.order), np.arange(600))
    assert_same(side.vectors, prepared(src, order="given")[0].vectors[side.order])


def test_vectors_too_long_for_the_precision_are_refused() -> None:
    src, tgt = planted_embeddings(20)
    vectors = tgt.vectors.astype("f8")
    vectors[3, 2] = 1e20
    huge = Embeddings(tgt.words, vectors)
    with pytest.raises(InputError, match=r"holds the number 1e\+20, whose square is too large for float32"):
        prepared(src, huge, dtype="float32")
    assert np.isfinite(np.asarray(prepared(src, huge)[1].vectors)).all()
