"""Null data from the spaces of a fit, and the sequential test with them."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import qwp
from qwp import arrays
from qwp.judging.null_data import NullData, permuted_columns, sequential_test, without_correspondence
from qwp.judging.verdict import EFFORTS, FAILED, SUCCEEDED, Quality, judge
from qwp.maps.procrustes import Maps
from qwp.stages.problem import Prepare
from tests.libraries import host
from tests.problems import SMALL_EFFORT, Array, null_maps_of, planted


def test_the_test_stops_at_the_first_fit_that_reaches_the_statistic() -> None:
    values = [1.0, 1.1, 1.3, 1.0]
    assert sequential_test(1.2, values.__getitem__, 4) == NullData(3, 1, 1 / 3)
    assert sequential_test(1.0, values.__getitem__, 4) == NullData(1, 1, 1.0)
    assert sequential_test(1.4, values.__getitem__, 4) == NullData(4, 0, 0.2)


def test_p_values_under_the_null_keep_their_level() -> None:
    rng = np.random.default_rng(1)
    found = []
    for _ in range(2000):
        own, *others = rng.standard_normal(20)
        found.append(sequential_test(own, others.__getitem__, 19).p_value)
    for level in (0.05, 0.1, 0.5):
        assert np.mean(np.array(found) <= level) == pytest.approx(level, abs=3 * np.sqrt(level * (1 - level) / 2000))


def test_columns_keep_their_values_on_the_principal_axes() -> None:
    rows = planted(300, d=8).src
    found = host(permuted_columns(rows, 0, 0))
    assert found.dtype == rows.dtype
    assert np.linalg.norm(found, axis=1) == pytest.approx(1.0)
    # No row is where it was, but the spectrum is nearly the same.
    assert np.abs(np.sum(found * rows, axis=1)).mean() < 0.5
    spectra = [np.linalg.eigvalsh(each.T @ each) for each in (rows, found)]
    assert spectra[1] == pytest.approx(spectra[0], rel=0.3)
    assert not np.array_equal(found, host(permuted_columns(rows, 0, 1)))
    assert np.array_equal(found, host(permuted_columns(rows, 0, 0)))


def test_only_the_target_of_a_problem_changes() -> None:
    rng = np.random.default_rng(0)
    spaces = [qwp.Embeddings([str(row) for row in range(60)], rng.standard_normal((60, 6))) for _ in range(2)]
    prepare = Prepare(order="given")
    problem = prepare.problem(prepare.spaces(spaces, arrays.HOST, 0), seed=0)
    null = without_correspondence(problem, 3)
    assert np.array_equal(host(null.views[0].x), host(problem.views[0].x))
    assert not np.array_equal(host(null.views[0].y), host(problem.views[0].y))
    assert len(null.views) == len(problem.views)


@pytest.mark.parametrize(("finds", "verdict", "fits"), [("noise", SUCCEEDED, 4), ("the same", FAILED, 1)])
def test_a_doubtful_success_is_compared_with_null_data(finds: str, verdict: str, fits: int) -> None:
    problem = planted(300, d=15, noise=0.3, dtype="float32")
    x, y, maps = problem.src, problem.tgt, Maps(problem.w)
    calls: list[int] = []

    def null_fit(number: int) -> tuple[Array, Array, Maps]:
        calls.append(number)
        if finds == "the same":
            return x, y, maps
        other = host(permuted_columns(y, 0, number))
        return x, other, null_maps_of(x, other, [number], seed=0, csls_k=10, effort=SMALL_EFFORT.quick)[0]

    # No success is clear.
    effort = replace(SMALL_EFFORT, clear=np.inf, beyond_doubt=np.inf, null_data=4)
    quality = judge(x, y, maps, effort=effort, null_fit=null_fit)
    assert (quality.verdict, len(calls)) == (verdict, fits)
    assert quality.null_data is not None
    assert quality.null_data.sentence in quality.explanation
    assert quality.null_data.exceedances == (verdict == FAILED)
    # Clear successes and other efforts need no null data.
    assert judge(x, y, maps, effort=replace(SMALL_EFFORT, null_data=4), null_fit=null_fit).null_data is None
    assert judge(x, y, maps, effort=replace(effort, null_data=0), null_fit=null_fit).null_data is None
    assert len(calls) == fits


def test_an_exact_verdict_fits_null_data_with_the_same_method(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((300, 30))
    y = x @ np.linalg.qr(rng.standard_normal((30, 30)))[0] + 0.5 * rng.standard_normal((300, 30))
    doubtful = replace(SMALL_EFFORT, clear=np.inf, beyond_doubt=np.inf, null_data=3)
    monkeypatch.setattr("qwp.methods.aligner.EFFORTS", {**EFFORTS, "exact": doubtful})
    known = [(row, row) for row in range(100)]
    quality = qwp.align(x, y, "procrustes", lexicon=known, verdict="exact", device="cpu", threads=1).quality
    assert (quality.verdict, quality.null_data) == (SUCCEEDED, NullData(3, 0, 0.25))
    assert Quality.from_dict(json.loads(json.dumps(quality.to_dict()))) == quality
