"""p-values: uniform if nothing moved, small if something did; the tail and the adjustment."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from qwp.shifts.significance import NoiseModel, SignificanceTest, adjusted, covariates, fisher


def noise(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Make displacements that grow with rarity and shrink with length, and their covariates."""
    rng = np.random.default_rng(seed)
    lengths = np.exp(0.5 * rng.standard_normal(n))
    seen = covariates(2.0 * np.arange(1, n + 1, dtype=np.float64), np.stack([lengths, lengths], axis=1))
    spread = 0.2 + 0.1 * np.arange(n) / n
    return 0.7 * seen[:, 0] - 1.5 * seen[:, 1] + spread * rng.standard_normal(n), seen


def test_fishers_scale() -> None:
    assert fisher(np.array([0.0, 0.5])) == pytest.approx([0.0, np.log(0.5 / 1.5)])
    assert np.isfinite(fisher(np.array([1.0, -1.0, 1.0000001]))).all()
    assert (np.diff(fisher(np.linspace(-1, 1, 50))) <= 0).all()


def test_z_is_standard_for_all_frequencies_and_lengths() -> None:
    displaced, seen = noise(6000)
    z = NoiseModel().expectation(displaced, seen, np.ones(6000, bool)).z(displaced, seen)
    for part in (slice(0, 300), slice(300, 3000), slice(5700, None)):
        assert abs(np.median(z[part])) < 0.25
        assert 0.75 < z[part].std() < 1.3
    assert abs(np.corrcoef(z, seen[:, 1])[0, 1]) < 0.05


def test_the_longer_vector_counts() -> None:
    found = covariates(np.array([1.0, 2.0, 3.0]), np.array([[1.0, 2.0], [4.0, 2.0], [1.0, 8.0]]))
    assert found[:, 0] == pytest.approx(np.log([1.03, 2.03, 3.03]))
    assert found[:, 1] == pytest.approx(np.log([1, 4, 4]))


def test_p_is_uniform_by_sign_flips_and_by_exchange() -> None:
    rng = np.random.default_rng(1)
    z, control = rng.standard_normal((2, 5000))
    for p in (SignificanceTest().by_sign_flips(z), SignificanceTest().by_exchange(z, control)):
        for level in (0.001, 0.01, 0.1, 0.5):
            assert np.mean(p <= level) == pytest.approx(level, abs=3.5 * (level / 5000) ** 0.5 + 0.02 * level)
        assert p.min() > 1e-6


def test_words_that_moved_do_not_mask_each_other() -> None:
    rng = np.random.default_rng(2)
    z = rng.standard_normal(5000)
    z[:500] += 8
    p = SignificanceTest().by_sign_flips(z)
    q = adjusted(p)
    assert (q[:500] <= 0.05).mean() > 0.95
    assert (q[500:] <= 0.05).mean() < 0.02


def test_one_word_far_out_is_found_among_thousands() -> None:
    rng = np.random.default_rng(3)
    z = np.append(rng.standard_normal(5000), 12.0)
    assert adjusted(SignificanceTest().by_sign_flips(z))[-1] < 0.01
    assert (adjusted(SignificanceTest().by_sign_flips(z[:-1])) <= 0.05).sum() == 0


def test_the_tail_fits_its_sample_and_is_never_lighter_than_exponential() -> None:
    rng = np.random.default_rng(4)
    shape, scale = SignificanceTest().pareto(scipy.stats.genpareto.rvs(0.3, scale=2.0, size=20_000, random_state=rng))
    assert shape == pytest.approx(0.3, abs=0.05)
    assert scale == pytest.approx(2.0, rel=0.1)
    assert SignificanceTest().pareto(rng.random(1000))[0] == 0.0
    assert SignificanceTest().pareto(np.zeros(50)) == (0.0, 0.25)


def test_few_words_have_ranks_for_p() -> None:
    z = np.array([-3.0, -2.0, -1.0, 0.5, 2.5])
    # Mirrored, 1, 2 and 3 are the upper half of the null: one of six values is at least 2.5.
    assert SignificanceTest().by_sign_flips(z)[-1] == pytest.approx(2 / 7)
    assert SignificanceTest().by_exchange(np.array([9.0]), np.array([1.0, 2.0]))[0] == pytest.approx(1 / 3)


def test_adjusted_is_benjamini_hochberg() -> None:
    p = np.random.default_rng(5).random(200) ** 2
    assert adjusted(p) == pytest.approx(scipy.stats.false_discovery_control(p))
