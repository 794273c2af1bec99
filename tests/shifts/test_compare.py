"""qwp.shift finds planted words, nothing if no word moved, and does not mistake noise of rare words for shift."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import qwp
from qwp.errors import InputError
from qwp.shifts.compare import StableFit, shift
from qwp.shifts.result import Shift
from qwp.shifts.significance import covariates
from qwp.spaces.embeddings import Embeddings
from tests.problems import rotation, space
from tests.shifts.problems import Problem, problem


def shifted(made: Problem, **options: Any) -> Shift:
    """Shift with order="given": planted vectors do not show the order of their words."""
    return shift(made.then, made.now, order="given", **options)


def test_planted_words_are_found() -> None:
    for made in (problem(seed=seed) for seed in range(3)):
        moved = set(shifted(made).moved())
        assert len(moved & made.moved) >= 28
        assert len(moved - made.moved) <= 4


def test_neighbourhoods_rank_the_same_words_first() -> None:
    made = problem(seed=1)
    result = shifted(made, measure="neighbourhood")
    assert result.measure == "neighbourhood"
    assert len({word.word for word in result.top(30)} & made.moved) >= 24
    assert set(result.moved()) <= made.moved


def test_no_discoveries_if_nothing_moved() -> None:
    found = [len(shifted(made).moved()) for made in (problem(n_moved=0, seed=s) for s in range(5))]
    assert sum(count > 0 for count in found) <= 1


def test_rare_words_are_compared_with_rare_words() -> None:
    made = problem(n_moved=0, noise=0.6)
    result = shifted(made)
    ranks = result.ranks[:, 0]
    # By distance the first words are rare; compared with words of similar frequency they are not.
    assert np.mean(ranks[result.order("distance")[:100]]) > 1000
    assert 500 < np.mean(ranks[result.order("z")[:100]]) < 1000


def test_a_control_gives_the_null_distribution() -> None:
    made, still = problem(seed=7), problem(n_moved=0, seed=8)
    found = shifted(made, control=(still.then, still.now))
    assert found.controlled
    assert len(made.moved & set(found.moved())) >= 25
    assert len(set(found.moved()) - made.moved) <= 4
    quiet = problem(n_moved=0, noise=0.05, seed=8)
    # With a control that has less noise than the two times, every word moved.
    assert len(shifted(made, control=(quiet.then, quiet.now)).moved()) > 1000


def test_exact_copies_did_not_move_but_for_the_one_that_did() -> None:
    made = problem(n_moved=0, noise=0.0)
    assert shifted(made).moved() == []
    vectors = made.now.vectors.copy()
    vectors[40] = -vectors[40]
    assert qwp.shift(made.then, Embeddings(made.now.words, vectors)).top(1)[0].word == "w40"


def test_words_of_only_one_space_are_ignored(caplog: pytest.LogCaptureFixture) -> None:
    made = problem()
    words = [word if i % 2 else f"other{i}" for i, word in enumerate(made.now.words)]
    found = qwp.shift(made.then, Embeddings(words, made.now.vectors), order="given")
    assert len(found) == 750
    assert found["w1"].rank_then == found["w1"].rank_now == 2
    few = qwp.shift(made.then.head(60), made.now, order="given")
    assert len(few) == 60
    assert "common words" not in caplog.text
    wide = Embeddings(made.then.words[:70], np.random.default_rng(0).standard_normal((70, 60)))
    qwp.shift(wide, wide, order="given")
    assert "70 common words for 60 dimensions" in caplog.text


def test_incomparable_spaces_raise() -> None:
    made = problem(n=200)
    with pytest.raises(InputError, match="then has 20 dimensions, other has 3"):
        qwp.shift(made.then, Embeddings(["w0"], np.ones((1, 3)), name="other"))
    with pytest.raises(InputError, match="have 0 words with vectors in common, expected at least 50"):
        qwp.shift(made.then, (["x", "y"], np.ones((2, 20))))
    with pytest.raises(InputError, match="measure='angle' is not known"):
        qwp.shift(made.then, made.now, measure="angle")
    wrong: Any = "control.vec"
    with pytest.raises(InputError, match="expected two spaces between which nothing moved"):
        qwp.shift(made.then, made.now, control=wrong)


def test_the_same_call_gives_the_same_result() -> None:
    made = problem(n=400)
    first, again = (shifted(made) for _ in range(2))
    assert np.array_equal(first.p, again.p)
    assert first.words == again.words


def test_words_that_moved_do_not_affect_the_map() -> None:
    n, d = 1200, 15
    x = space(n, d, seed=1).astype(np.float64)
    turn = rotation(d, seed=2)
    rng = np.random.default_rng(3)
    moved = np.zeros(n, dtype=bool)
    moved[rng.choice(n, n // 4, replace=False)] = True
    y = x @ turn
    # A quarter of the words moves to one point, which attracts the means and a map fitted to all words.
    y[moved] = y[0] + 0.3 * rng.standard_normal((moved.sum(), d)) * np.abs(y).mean()
    y = y + 0.05 * np.abs(x).mean() * rng.standard_normal(x.shape)
    lengths = np.ones((n, 2))
    seen = covariates(2.0 * np.arange(1, n + 1, dtype=np.float64), lengths)
    plain, trimmed = (StableFit(rounds=rounds).fit(x, y, seen) for rounds in (0, 5))
    errors = [float(np.linalg.norm(found.map - turn)) for found in (plain, trimmed)]
    assert errors[1] < 0.2 * errors[0]
    assert errors[1] < 0.1
    assert (trimmed.stable[moved]).mean() < 0.05
    assert (trimmed.stable[~moved]).mean() > 0.95
    assert plain.stable.all()
    assert np.median(trimmed.cosines[~moved]) > 0.98


def test_each_word_is_measured_by_a_map_without_it() -> None:
    # Two unrelated spaces: a map that was fitted to a word would bring it nearer.
    rng = np.random.default_rng(4)
    x, y = rng.standard_normal((2, 300, 40))
    seen = covariates(2.0 * np.arange(1, 301, dtype=np.float64), np.ones((300, 2)))
    found = StableFit(rounds=0).fit(x, y, seen)
    fitted = np.sum((found.x @ found.map) * found.y, axis=1)
    assert fitted.mean() > 0.15
    assert abs(found.cosines.mean()) < 0.05
