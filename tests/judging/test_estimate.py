"""The estimate of the share of right translations: its sample, its bands, and what it says of planted spaces."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import confidence as benchmark
from qwp.judging import estimate as module
from qwp.judging.estimate import HALF_WIDTH, Estimate, Share, estimate, found_from, nothing_known, sample
from qwp.judging.verdict import FAILED, SUCCEEDED, WEAK, judge
from qwp.maps.procrustes import Maps
from qwp.search.confidence import CANDIDATES, log_odds
from tests.libraries import host
from tests.problems import SMALL_EFFORT, Array, planted, rotation


def spaces(n: int = 1200, d: int = 20, noise: float = 0.3) -> tuple[Array, Array, Maps]:
    problem = planted(n, d=d, noise=noise)
    return problem.src, problem.tgt, Maps(problem.w)


@given(n=st.integers(1, 60_000))
def test_the_sample_is_of_different_rows_that_thin_out(n: int) -> None:
    rows = sample(n)
    assert len(rows) >= 1
    assert rows[0] >= 0
    assert rows[-1] < n
    assert np.all(np.diff(rows) > 0)
    if n > 10_000:
        assert (rows < n // 4).sum() > len(rows) // 3


def test_a_good_map_is_told_from_a_bad_one() -> None:
    x, y, right = spaces()
    good = estimate(x, y, right, csls_k=10)
    noise = np.random.default_rng(1).standard_normal(y.shape)
    bad = estimate(x, noise / np.linalg.norm(noise, axis=1, keepdims=True), right, csls_k=10)
    assert good.scale.agreement > 0.95
    assert bad.scale.agreement < 0.6
    assert good.overall.p1 > 10 * bad.overall.p1
    lost = estimate(x, y, right, csls_k=10, real=False)
    assert lost.overall.p1 < 0.03
    assert lost.scale == replace(good.scale, real=False)
    assert good.scale.words == 1200


@pytest.mark.parametrize("n", [2, 3, 5])
def test_a_few_words_are_enough_for_an_answer(n: int) -> None:
    x, y, right = spaces(50)
    assert 0.0 < estimate(x[:n], y[:n], right, csls_k=10).overall.p1 < 1.0


def test_bands_are_those_of_the_words_there_are() -> None:
    x, y, right = spaces()
    found = estimate(x, y, right, csls_k=10)
    assert [(band.first, band.last) for band in found.bands] == [(1, 1000), (1001, 1200)]
    few = estimate(x[:800], y, right, csls_k=10)
    assert few.bands == []
    assert few.n_words == len(sample(800))


def test_hubs_are_told_by_a_part_of_many_words() -> None:
    x, y, right = spaces()
    mapped = x @ right.src
    exact, part = (host(module._hubness(mapped, y, 10, pools)) for pools in ((1, 1200), (300, 1000)))
    assert np.corrcoef(exact, part)[0, 1] > 0.6
    assert np.abs(exact - part).mean() < 0.05
    assert np.array_equal(exact, host(module._hubness(mapped, y, 10)))


def test_a_share_and_its_interval() -> None:
    share = Share.of(np.array([0.2, 0.6]))
    # Words of dictionaries are surer than the mean of all.
    assert log_odds(share.p1) == pytest.approx(log_odds(0.4) + module._IN_A_DICTIONARY)
    assert log_odds(share.high) - log_odds(share.p1) == pytest.approx(HALF_WIDTH)
    assert log_odds(share.p1) - log_odds(share.low) == pytest.approx(HALF_WIDTH)
    assert str(Share(0.456, 0.3, 0.61)) == "46 % (30 to 61)"
    none, every = Share.of(np.zeros(3)), Share.of(np.ones(3))
    assert 0.0 < none.low < none.p1 < none.high < 0.02
    assert 0.98 < every.low < every.p1 < every.high < 1.0


def test_the_constants_are_those_that_were_recorded() -> None:
    recorded = json.loads(benchmark.RESULTS.read_text())
    assert (recorded["in_a_dictionary"], recorded["half_width"]) == (module._IN_A_DICTIONARY, HALF_WIDTH)


def test_what_a_search_showed() -> None:
    found = found_from(
        np.array([[0.9, 0.1], [0.4, 0.3]]),
        np.array([[0.9, 0.5, 0.2], [0.8, 0.4, 0.1]]),
        np.array([[7, 1, 2], [3, 8, 5]]),
        np.array([7, 8]),
        np.array([[0, 0], [0, 1]]),
    )
    assert np.asarray(found.preferred).tolist() == [[0, 0], [0, 1]]
    assert np.asarray(found.back_ranks).tolist() == [0, 1]
    assert np.asarray(found.back_others).tolist() == [0.5, 0.8]
    absent = found_from(np.ones((1, 2)), np.ones((1, 3)), np.array([[1, 2, 3]]), np.array([9]), np.zeros((1, 2), int))
    assert np.asarray(absent.back_ranks).tolist() == [CANDIDATES]


def test_it_survives_being_written() -> None:
    x, y, right = spaces()
    found = estimate(x, y, right, csls_k=10)
    assert Estimate.from_dict(json.loads(json.dumps(asdict(found)))) == found
    assert nothing_known(5).overall.high == 1.0


def test_the_verdict_has_it() -> None:
    x, y, right = spaces(400)
    quality = judge(x, y, right, effort=SMALL_EFFORT)
    assert quality.estimate is not None
    assert quality.verdict == SUCCEEDED
    assert str(quality.estimate.overall) in quality.explanation
    assert judge(x, y, right, effort=replace(SMALL_EFFORT, estimated=False)).estimate is None
    wrong = judge(x, y, Maps(rotation(20, 3)), effort=SMALL_EFFORT)
    assert wrong.estimate is not None
    assert wrong.verdict in (FAILED, WEAK)
    assert wrong.estimate.overall.p1 < 0.2
