"""qwp.shift finds planted words, nothing if no word moved, and does not mistake noise of rare words for shift."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import qwp
from qwp.errors import InputError
from qwp.shifts.compare import Shift, StableFit, nearest, overlap, shift, similarity_of_neighbourhoods
from qwp.shifts.significance import covariates
from qwp.spaces.embeddings import Embeddings
from tests.problems import rotation, space
from tests.shifts.problems import Problem, problem


@pytest.fixture(scope="module")
def made() -> Problem:
    return problem(n=800, n_moved=10)


@pytest.fixture(scope="module")
def found(made: Problem) -> Shift:
    return qwp.shift(made.then, made.now, order="given")


def test_words_come_most_moved_first_with_their_neighbours(made: Problem, found: Shift) -> None:
    top = found.top(8, neighbours=3)
    assert [word.z for word in top] == sorted((word.z for word in top), reverse=True)
    assert {word.word for word in top} <= made.moved
    for word in top:
        assert len(word.then) == len(word.now) == 3
        assert word.overlap <= 0.34
        assert 0 <= word.q <= 0.05
        assert word.neighbourhood > 0.05
    still = next(found[word] for word in found.words if word not in made.moved)
    assert still.distance < 0.2
    assert still.overlap > 0.5
    assert found.top(0) == []


def test_moved_words_depend_on_the_rate(found: Shift) -> None:
    assert len(found.moved(0.001)) <= len(found.moved()) <= len(found.moved(0.5))
    with pytest.raises(InputError, match=r"fdr=1\.5 is no rate"):
        found.moved(1.5)
    with pytest.raises(InputError, match="by='p' is not known; expected one of z, distance"):
        found.top(3, by="p")


def test_repr_and_html(found: Shift) -> None:
    assert repr(found).startswith("Shift(then -> now, 800 words, ")
    assert "moved at an FDR of 0.05" in repr(found)
    assert "words moved" in found._repr_html_()
    about = json.loads(json.dumps(found.to_dict(3)))
    assert (about["words"], len(about["top"]), about["controlled"]) == (800, 3, False)
    with pytest.raises(KeyError, match="'nothing' is not one of the 800 words"):
        found["nothing"]


def units(n: int, d: int, seed: int) -> np.ndarray:
    x = np.random.default_rng(seed).standard_normal((n, d))
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))


def test_a_word_is_not_its_own_neighbour() -> None:
    x = units(50, 6, 0)
    rows = np.array([3, 7, 3])
    expected = [[j for j in np.argsort(-(x @ x[i])) if j != i][:4] for i in rows]
    assert nearest(x, rows, 4).tolist() == expected
    assert nearest(x[:3], np.array([0]), 9).shape == (1, 2)
    assert nearest(x, np.zeros(0, dtype=np.int64), 2).shape == (0, 2)


def test_a_rotation_changes_no_neighbourhood_and_a_moved_word_has_another() -> None:
    x = units(200, 8, 1)
    y = x @ rotation(8, seed=1)
    rows = np.arange(200)
    assert similarity_of_neighbourhoods(x, y, rows) == pytest.approx(np.ones(200))
    y[5] = -y[5]
    changed = similarity_of_neighbourhoods(x, y, rows)
    assert changed[5] < -0.5
    assert np.delete(changed, 5).min() > 0.8


def test_neighbourhood_similarity_matches_its_definition() -> None:
    x, y = units(30, 4, 2), units(30, 4, 3)
    both = sorted({*nearest(x, np.array([9]), 5)[0].tolist(), *nearest(y, np.array([9]), 5)[0].tolist()})
    one, other = x[both] @ x[9], y[both] @ y[9]
    expected = one @ other / np.linalg.norm(one) / np.linalg.norm(other)
    assert similarity_of_neighbourhoods(x, y, np.array([9]), 5) == pytest.approx([expected])


def test_overlap_of_neighbours() -> None:
    assert overlap([1, 2, 3, 4], [4, 3, 9, 8]) == 0.5
    assert overlap([], []) == 0.0


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
