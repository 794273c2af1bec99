"""The spaces of a fit and how they are prepared."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qwp import Embeddings, InputError, arrays
from qwp.methods.inputs import PreparedSpace, in_estimated_order, prepare
from qwp.spaces import io, normalization
from tests.conftest import planted_embeddings
from tests.libraries import assert_close, assert_same
from tests.problems import space

OPTIONS: dict[str, Any] = {"normalize": "unit,center,unit", "order": "given", "dtype": "float64", "seed": 0}


def prepared(*spaces: Embeddings, **options: Any) -> list[PreparedSpace]:
    return prepare(spaces, arrays.HOST, **{**OPTIONS, **options})


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
        assert side.rows_in_order(some) is some
    plain, _ = prepared(src, tgt, normalize="none", dtype="float32")
    assert_same(plain.vectors, src.vectors)
    assert plain.vectors.dtype == np.float32


def test_rows_in_another_order_know_where_they_went() -> None:
    # Longer vectors for frequent words, as in real ones; then all of them shuffled.
    n = 600
    rng = np.random.default_rng(0)
    rows = space(n, 20, 0) * (1 + np.linspace(3, 0, n))[:, None] + np.linspace(1, 0, n)[:, None]
    shuffled = Embeddings([f"w{i}" for i in range(n)], rows[rng.permutation(n)].astype("f4"))
    [as_read] = prepared(shuffled, order="auto")
    # The estimate is there; it is used where somebody says so.
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
    assert_close(side.vectors[side.rows_in_order(some)], normal[some], atol=1e-12)


def test_an_estimated_order_is_said(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    src, tgt = planted_embeddings(30)
    turned = np.arange(30)[::-1]
    monkeypatch.setattr("qwp.spaces.frequency.orders", lambda spaces, seed: [None, turned])
    with caplog.at_level(logging.WARNING, logger="qwp"):
        first, second = prepared(src, tgt, order="auto")
        # As long as nobody uses it there is nothing to say.
        assert caplog.text == ""
        in_estimated_order([first, second])
        assert "do not all seem to be in order of frequency; an order is estimated" in caplog.text
        caplog.clear()
        in_estimated_order(prepared(src, tgt, order="given"))
        assert caplog.text == ""
    assert first.estimate is None
    assert_same(second.estimate, turned)
    second = second.in_estimated_order()
    assert_same(second.order, turned)
    assert_same(second.rows_in_order(np.array([0, 29])), [29, 0])


def test_the_narrower_space_is_widened_by_zeros() -> None:
    narrow, wide = planted_embeddings(20, d=5)[0], planted_embeddings(20, d=7)[0]
    first, second = prepared(narrow, wide)
    assert first.vectors.shape == second.vectors.shape == (20, 7)
    assert not np.any(np.asarray(first.vectors)[:, 5:])
    assert_same(first.vectors[:, :5], prepared(narrow)[0].vectors)
    assert_same(second.vectors, prepared(wide)[0].vectors)


def test_items_without_order_are_brought_into_one_by_their_traces() -> None:
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


def test_a_record_says_where_a_space_came_from(tmp_path: Path) -> None:
    src, _ = planted_embeddings(20)
    [side] = prepared(src)
    assert (side.record().path, side.record().n_words, side.record().dim) == (None, 20, 12)
    assert side.record().sha256 == src.sha256()
    io.save(src, tmp_path / "src.vec")
    whole, part = io.load(tmp_path / "src.vec"), io.load(tmp_path / "src.vec", max_vocab=5)
    records = [each.record() for each in prepared(whole, part)]
    assert [(r.path, r.n_words, r.complete) for r in records] == [
        (str(tmp_path / "src.vec"), 20, True),
        (str(tmp_path / "src.vec"), 5, False),
    ]
