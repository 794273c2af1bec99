"""Ranks beside vectors: what they add to inner products, and how much of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from qwp.maps.ranks import RANK_OFFSET, RankPrior, with_ranks
from qwp.ot.solve import Transport
from qwp.ot.supply import Coresets
from qwp.parameters import with_values
from qwp.stages.wasserstein_procrustes import WassersteinProcrustes, make_schedule, wasserstein_procrustes_many
from tests.libraries import as_strict, assert_close, host
from tests.problems import planted, rotation

Array = npt.NDArray[Any]
RANDOM = WassersteinProcrustes(coresets=Coresets(kind="random", pairs_per_step=2), transport=Transport(epsilon=0.1))


def test_three_more_columns_take_squared_differences_of_ranks_off() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((4, 5, 3)), rng.standard_normal((4, 6, 3))
    log_x, log_y = rng.random((4, 5, 1)) * 9, rng.random((4, 6, 1)) * 9
    weight = np.array([0.5, 2.0])
    left, right = with_ranks(x, y, log_x, log_y, weight)
    # Of two pairs of spaces the first two plans are those of the first.
    each = np.repeat(weight, 2)[:, None, None]
    expected = x @ y.swapaxes(1, 2) - each * (log_x - log_y.swapaxes(1, 2)) ** 2
    assert_close(host(left) @ host(right).swapaxes(1, 2), expected, atol=1e-12)
    strict = with_ranks(*(as_strict(part) for part in (x, y, log_x, log_y, weight)))
    for found, same in zip(strict, (left, right), strict=True):
        assert_close(host(found), same, rtol=1e-12)


def test_ranks_deviate_as_inner_products_do() -> None:
    problems = [planted(400, 300, d=8, seed=seed, dtype="float64") for seed in (0, 1)]
    w = np.stack([rotation(8, 2), rotation(8, 3)])
    prior = RankPrior.between([p.src for p in problems], [p.tgt for p in problems], w)
    log_x, log_y = (host(logs) for logs in prior.log_ranks)
    assert_close(log_x[:, 0], np.tile(np.log(np.arange(400) + RANK_OFFSET), 2))
    assert log_y.shape == (600, 1)
    for i, problem in enumerate(problems):
        products = problem.src @ w[i] @ problem.tgt.T
        differences = (log_x[:400] - log_y[:300].T) ** 2
        assert np.std(host(prior.unit)[i] * differences) == pytest.approx(np.std(products), rel=0.05)


def after(prior: float, words: Any, steps: int) -> Array:
    """The map after so many steps from a random rotation. words: makes an array of a library."""
    problem = planted(600, d=12, seed=4, dtype="float32")
    found = wasserstein_procrustes_many(
        [words(problem.src)],
        [words(problem.tgt)],
        words(rotation(12, 9).astype(np.float32)[None]),
        make_schedule("fixed", steps=steps, k=100, epochs=1, n_max=600),
        RANDOM,
        seeds=[0],
        frequency_prior=prior,
    )
    return np.asarray(host(found)[0])


def test_words_in_order_find_each_other_sooner_by_their_ranks() -> None:
    problem = planted(600, d=12, seed=4, dtype="float32")
    without, with_prior = (after(prior, np.asarray, 40) for prior in (0.0, 4.0))
    assert problem.accuracy(with_prior) > 2 * problem.accuracy(without)


def test_every_library_goes_the_same_way() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    assert_close(after(1.0, torch.asarray, 5), after(1.0, np.asarray, 5), atol=1e-4)


@pytest.mark.parametrize("change", [{"coreset": "kmeans++"}, {"epsilon": 1e-3}, {"ot": "unbalanced"}])
def test_plans_that_cannot_take_ranks_are_refused(change: dict[str, Any]) -> None:
    problem = planted(300, d=5, seed=0, dtype="float32")
    schedule = make_schedule("fixed", steps=2, k=50, epochs=1, n_max=300)
    settings = with_values(RANDOM, change)
    w = rotation(5, 0).astype(np.float32)[None]
    with pytest.raises(ValueError, match="ranks are compared"):
        wasserstein_procrustes_many([problem.src], [problem.tgt], w, schedule, settings, seeds=[0], frequency_prior=1.0)
