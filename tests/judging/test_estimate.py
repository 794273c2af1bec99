"""The estimated accuracy: its sample, its bands, the refits behind it, and its values on planted spaces."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import confidence as benchmark
from qwp.judging.estimate import (
    MOST_WORDS,
    Estimate,
    EstimateSettings,
    Refits,
    Share,
    cache_key,
    empty_estimate,
    estimate,
    neighbourhood_means,
    outside_calibration,
    refit_words,
    refits,
    sample,
    search_figures,
)
from qwp.judging.verdict import FAILED, SUCCEEDED, WEAK, judge
from qwp.maps.procrustes import Maps
from qwp.search.calibration import CALIBRATION
from qwp.search.confidence import CONFIDENCE_MODEL, log_odds
from tests.libraries import as_strict, assert_close, host
from tests.problems import SMALL_EFFORT, Array, planted, rotation


def spaces(n: int = 1200, d: int = 20, noise: float = 0.3) -> tuple[Array, Array, Maps]:
    problem = planted(n, d=d, noise=noise)
    return problem.src, problem.tgt, Maps(problem.w)


@given(n=st.integers(1, 60_000))
def test_sample_rows_are_distinct_and_thin_out(n: int) -> None:
    rows = sample(n)
    assert len(rows) >= 1
    assert rows[0] >= 0
    assert rows[-1] < n
    assert np.all(np.diff(rows) > 0)
    if n > 10_000:
        assert (rows < n // 4).sum() > len(rows) // 3


def test_good_and_bad_maps_are_distinguished() -> None:
    x, y, right = spaces()
    good = estimate(x, y, right, csls_k=10)
    noise = np.random.default_rng(1).standard_normal(y.shape)
    bad = estimate(x, noise / np.linalg.norm(noise, axis=1, keepdims=True), right, csls_k=10)
    assert good.scale.agreement > 0.95
    assert bad.scale.agreement < 0.6
    assert good.overall.p1 > 10 * bad.overall.p1
    lost = estimate(x, y, right, csls_k=10, succeeded=False)
    assert lost.overall.p1 < 0.03
    assert lost.scale == replace(good.scale, succeeded=False)
    assert good.scale.words == 1200


@pytest.mark.parametrize("n", [2, 3, 5])
def test_few_words_give_an_estimate(n: int) -> None:
    x, y, right = spaces(50)
    assert 0.0 < estimate(x[:n], y[:n], right, csls_k=10).overall.p1 < 1.0


def test_bands_end_at_the_number_of_words() -> None:
    x, y, right = spaces()
    found = estimate(x, y, right, csls_k=10)
    assert [(band.first, band.last) for band in found.bands] == [(1, 1000), (1001, 1200)]
    few = estimate(x[:800], y, right, csls_k=10)
    assert few.bands == []
    assert few.n_words == len(sample(800))


def test_neighbourhood_means_of_a_sample_are_close() -> None:
    x, y, right = spaces()
    mapped = x @ right.src
    exact, part = (
        host(neighbourhood_means(mapped, y, 10, EstimateSettings(hub_keys=keys))) for keys in ((1, 1200), (300, 1000))
    )
    assert np.corrcoef(exact, part)[0, 1] > 0.6
    assert np.abs(exact - part).mean() < 0.05
    assert np.array_equal(exact, host(neighbourhood_means(mapped, y, 10)))


WORDS = CALIBRATION.words


def test_a_share_and_its_interval() -> None:
    share = Share.of(np.array([0.2, 0.6]))
    # Words of dictionaries are right more often than the mean of all words.
    assert log_odds(share.p1) == pytest.approx(log_odds(0.4) + WORDS.shift)
    assert log_odds(share.high) - log_odds(share.p1) == pytest.approx(WORDS.half_width)
    assert log_odds(share.p1) - log_odds(share.low) == pytest.approx(WORDS.half_width)
    items = Share.of(np.array([0.2, 0.6]), CALIBRATION.items)
    assert log_odds(items.p1) == pytest.approx(log_odds(0.4) + CALIBRATION.items.shift)
    assert str(Share(0.456, 0.3, 0.61)) == "46 % (30-61)"
    none, every = Share.of(np.zeros(3)), Share.of(np.ones(3))
    assert 0.0 < none.low < none.p1 < none.high < 0.02
    assert 0.98 < every.low < every.p1 < every.high < 1.0


def test_constants_match_the_recorded_fit() -> None:
    recorded = json.loads(benchmark.RESULTS.read_text())
    assert (recorded["in_a_dictionary"], recorded["half_width"]) == (WORDS.shift, WORDS.half_width)


def test_search_figures() -> None:
    found = search_figures(
        np.array([[0.9, 0.1], [0.4, 0.3]]),
        np.array([[0.9, 0.5, 0.2], [0.8, 0.4, 0.1]]),
        np.array([[7, 1, 2], [3, 8, 5]]),
        np.array([7, 8]),
        np.array([[0, 0], [0, 1]]),
    )
    assert np.asarray(found.preferred).tolist() == [[0, 0], [0, 1]]
    assert np.asarray(found.back_ranks).tolist() == [0, 1]
    assert np.asarray(found.back_others).tolist() == [0.5, 0.8]
    absent = search_figures(
        np.ones((1, 2)), np.ones((1, 3)), np.array([[1, 2, 3]]), np.array([9]), np.zeros((1, 2), int)
    )
    assert np.asarray(absent.back_ranks).tolist() == [CONFIDENCE_MODEL.candidates]


def test_json_round_trip() -> None:
    x, y, right = spaces()
    found = estimate(x, y, right, csls_k=10)
    assert Estimate.from_dict(json.loads(json.dumps(asdict(found)))) == found
    assert empty_estimate(5).overall.high == 1.0


def test_verdict_contains_the_estimate() -> None:
    x, y, right = spaces(400)
    quality = judge(x, y, right, effort=SMALL_EFFORT)
    assert quality.estimate is not None
    assert quality.verdict == SUCCEEDED
    assert quality.outside_calibration == ["fewer than 1,000 words", "20 dimensions instead of 50 to 300"]
    assert quality.trusted is None
    trusted = replace(quality, outside_calibration=[])
    assert trusted.short == f"succeeded: estimated accuracy {quality.estimate.overall}"
    assert judge(x, y, right, effort=replace(SMALL_EFFORT, estimated=False)).estimate is None
    wrong = judge(x, y, Maps(rotation(20, 3)), effort=SMALL_EFFORT)
    assert wrong.estimate is not None
    assert wrong.verdict in (FAILED, WEAK)
    assert wrong.estimate.overall.p1 < 0.2


# --------------------------------------------------------------------------- refits


def some_spaces(n: int = 600) -> tuple[Array, Array, Maps]:
    return spaces(n, d=12, noise=0.2)


def test_refits_share_no_source_word() -> None:
    x, y, right = some_spaces(400)
    made = refits(x, y, right, csls_k=7, most=300)
    for half, found in enumerate(made):
        # The words of the other half, and rarer words, do not matter.
        others = x.copy()
        others[1 - half : 300 : 2] *= -1.0
        others[300:] = others[:100]
        again = refits(others, np.concatenate([y[:300], -y[300:]]), right, csls_k=7, most=300)[half]
        assert_close(again.src, found.src, atol=1e-9)


def test_refits_are_cached_within_a_process() -> None:
    x, y, right = some_spaces(300)
    made = refits(x, y, right, csls_k=10)
    assert refits(x.copy(), y.copy(), Maps(np.array(right.src)), csls_k=10) is made
    # Each input is part of the key.
    others = [
        refits(x, y, right, csls_k=9),
        refits(x, y[::-1], right, csls_k=10),
        refits(x, y, Maps(rotation(12, 1)), csls_k=10),
        refits(x, y, Maps(right.src, rotation(12, 1)), csls_k=10),
    ]
    assert len({id(each) for each in (made, *others)}) == 5
    # The cache is small: the first refits have been removed.
    assert refits(x, y, right, csls_k=10) is not made
    strict = [as_strict(side) for side in (x, y, right.src)]
    assert cache_key(strict[0], strict[1], Maps(strict[2]), 10) is None


def test_refits_of_a_single_word_are_the_maps() -> None:
    x, y, right = some_spaces(50)
    assert refits(x[:1], y, right, csls_k=10) == (right, right)
    assert refits(x, y[:1], right, csls_k=10) == (right, right)
    few = refits(x[:2], y[:2], right, csls_k=10)
    assert all(np.isfinite(np.asarray(maps.src)).all() for maps in few)


def test_number_of_refit_words() -> None:
    many = np.zeros((MOST_WORDS + 5, 2))
    assert refit_words(many, many) == MOST_WORDS
    assert refit_words(many, many[:70]) == refit_words(many[:70], many) == 70


def test_refits_of_a_right_map_prefer_its_translations() -> None:
    x, y, right = some_spaces()
    cosines = (x @ right.src) @ y.T
    candidates = np.argsort(-cosines, axis=1)[:, :10]
    rows = np.arange(len(x))
    good = Refits(x, y, refits(x, y, right, csls_k=10)).preferred(rows, candidates)
    assert good.shape == (len(x), 2)
    assert np.mean(good == 0) > 0.9
    lost = Maps(rotation(12, 5))
    by_chance = np.argsort(-(x @ lost.src) @ y.T, axis=1)[:, :10]
    bad = Refits(x, y, refits(x, y, lost, csls_k=10)).preferred(rows, by_chance)
    assert np.mean(bad == 0) < 0.7


@settings(max_examples=25)
@given(n=st.integers(1, 30), k=st.integers(1, 8), batch=st.integers(1, 40), seed=st.integers(0, 1000))
def test_the_preferred_candidate_is_the_nearest(n: int, k: int, batch: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((12, 4)), rng.standard_normal((9, 4))
    a, b, c = (rng.standard_normal((4, width)) for width in (3, 3, 4))
    rows, candidates = rng.integers(12, size=n), rng.integers(9, size=(n, k))
    found = Refits(x, y, (Maps(a, b), Maps(c)), batch).preferred(rows, candidates)
    strict_maps = Maps(as_strict(a), as_strict(b)), Maps(as_strict(c))
    strict = Refits(as_strict(x), as_strict(y), strict_maps, batch).preferred(rows, candidates)
    for column, (src, tgt) in enumerate(((x @ a, y @ b), (x @ c, y))):
        cosines = (src / np.linalg.norm(src, axis=1, keepdims=True)) @ (tgt / np.linalg.norm(tgt, axis=1)[:, None]).T
        among = np.take_along_axis(cosines[rows], candidates, axis=1)
        np.testing.assert_allclose(among[np.arange(n), found[:, column]], among.max(axis=1))
    assert np.array_equal(found, strict)


def test_preferred_of_no_words_is_empty() -> None:
    x, y, right = some_spaces(50)
    found = Refits(x, y, (right, right)).preferred(np.zeros(0, dtype=np.int64), np.zeros((0, 10), dtype=np.int64))
    assert found.shape == (0, 2)


def test_the_calibration_range() -> None:
    inside = np.zeros((1000, 50))
    assert outside_calibration(inside, np.zeros((3000, 50)), ordered=True) == []
    assert outside_calibration(inside, inside[:400], ordered=False) == [
        "fewer than 500 items",
        "50 dimensions instead of 256 to 300",
    ]
    assert outside_calibration(np.zeros((500, 256)), np.zeros((600, 256)), ordered=False) == []
    assert outside_calibration(inside, inside[:999], ordered=True) == ["fewer than 1,000 words"]
    for width in (49, 301):
        wide = np.zeros((1000, width))
        assert outside_calibration(wide, wide, ordered=True) == [f"{width} dimensions instead of 50 to 300"]
