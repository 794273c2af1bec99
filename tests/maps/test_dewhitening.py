"""How much of the extent of directions is restored: spaces whose answer is known by how they were made."""

from __future__ import annotations

import numpy as np
import pytest

from qwp import arrays
from qwp.maps.dewhitening import HALF_RESTORED, MOST_RESTORED, chosen, held_out_lead
from qwp.maps.procrustes import reweighted
from qwp.search.retrieval import Pairs, retriever
from tests.libraries import as_strict, assert_close, host
from tests.problems import rotation

ROWS = np.arange(600)


def two_spaces(extents: np.ndarray, noise: float, seed: int = 0, n: int = 600) -> tuple[np.ndarray, np.ndarray]:
    """A space whose directions have these extents and a rotated copy, with as much noise in each direction."""
    rng = np.random.default_rng(seed)
    words = rng.standard_normal((n, len(extents)))
    sides = [(words + noise * rng.standard_normal(words.shape)) * extents for _ in range(2)]
    return host(arrays.unit(sides[0])), host(arrays.unit(sides[1] @ rotation(len(extents), seed + 1)))


def all_rows(n: int = 600) -> Pairs:
    return Pairs(np.arange(n), np.arange(n), np.random.default_rng(9).uniform(0.5, 1.0, n))


@pytest.mark.parametrize("seed", [0, 1])
def test_long_directions_are_restored_half(seed: int) -> None:
    """Three directions outweigh all others, but tell words apart no better than any other three."""
    x, y = two_spaces(np.array([8.0, 6.0, 5.0, *[1.0] * 27]), noise=0.8, seed=seed)
    assert chosen(x, y, all_rows(), reweight=1.0, csls_k=10) == HALF_RESTORED


@pytest.mark.parametrize("seed", [0, 1])
def test_directions_that_are_short_because_they_are_noise_stay_short(seed: int) -> None:
    """The extent itself says what a direction is worth: half of them are small, and nothing but noise."""
    rng = np.random.default_rng(seed)
    words = rng.standard_normal((600, 15))
    sides = [
        np.concatenate([words + 0.6 * rng.standard_normal(words.shape), 0.05 * rng.standard_normal((600, 15))], axis=1)
        for _ in range(2)
    ]
    x, y = arrays.unit(sides[0]), arrays.unit(sides[1] @ rotation(30, seed))
    assert chosen(x, y, all_rows(), reweight=0.0, csls_k=10) == MOST_RESTORED


def test_few_pairs_choose_nothing() -> None:
    x, y = two_spaces(np.array([8.0, 6.0, 5.0, *[1.0] * 27]), noise=0.8)
    few = Pairs(ROWS[:119], ROWS[:119], np.ones(119))
    assert chosen(x, y, few, reweight=1.0, csls_k=10) == MOST_RESTORED


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
    assert_close(held_out_lead(x, y, pairs, 0.9, reweight=0.7, csls_k=4), np.mean(leads), atol=1e-12)


def test_without_any_positive_score_all_pairs_count() -> None:
    x, y = two_spaces(np.linspace(3.0, 1.0, 6), noise=0.4, n=80)
    rows = np.arange(80)
    alike, negative = (Pairs(rows, rows, scores) for scores in (np.ones(80), -np.ones(80)))
    assert_close(
        held_out_lead(x, y, negative, 1.0, reweight=1.0, csls_k=4),
        held_out_lead(x, y, alike, 1.0, reweight=1.0, csls_k=4),
        atol=1e-9,
    )


def test_array_api_strict() -> None:
    x, y = two_spaces(np.array([4.0, 3.0, 1.0, 1.0]), noise=0.4, n=60)
    pairs = all_rows(60)
    theirs = Pairs(*(as_strict(column) for column in (pairs.src, pairs.tgt, pairs.scores)))
    expected = chosen(x, y, pairs, reweight=1.0, csls_k=5)
    assert chosen(as_strict(x), as_strict(y), theirs, reweight=1.0, csls_k=5) == expected
