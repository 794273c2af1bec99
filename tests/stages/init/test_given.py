"""Initial maps from a lexicon, words spelt alike, a matrix, or the identity."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from qwp.errors import InputError
from qwp.maps.pairs import KnownPairs
from qwp.maps.procrustes import Maps, orthogonality_error
from qwp.stages.init.given import GivenMatrix, IdenticalStrings, Identity, LexiconPairs, orthogonal_matrix
from qwp.stages.problem import Problem, View
from qwp.stages.stage import Initializer, Monitor, State
from tests.libraries import assert_close, assert_same, host
from tests.problems import planted, rotation
from tests.stages.problems import prepared, problem_of


def test_a_matrix_is_taken_and_made_exactly_orthogonal() -> None:
    w = rotation(6, 0)
    assert_close(orthogonal_matrix(w, 6, 6), w, atol=1e-12)
    rounded = np.round(w, 4)
    repaired = orthogonal_matrix(rounded, 6, 6)
    assert orthogonality_error(rounded) > 1e-6
    assert orthogonality_error(repaired) < 1e-12
    assert_close(repaired, w, atol=1e-3)


def test_a_bad_given_matrix_is_explained() -> None:
    with pytest.raises(InputError, match=r"shape \(5, 5\).*\(6, 6\)"):
        orthogonal_matrix(rotation(5, 0), 6, 6)
    with pytest.raises(InputError, match=r"not orthogonal.*3.*0\.001 expected.*polar"):
        orthogonal_matrix(2 * rotation(5, 0), 5, 5)
    broken = rotation(5, 0)
    broken[1, 2] = np.nan
    with pytest.raises(InputError, match="NaN or infinite"):
        orthogonal_matrix(broken, 5, 5)


@pytest.mark.parametrize("shape", [(4, 6), (6, 4)])
def test_a_matrix_between_spaces_of_different_width_has_orthonormal_rows_or_columns(shape: tuple[int, int]) -> None:
    w = rotation(6, 0)[: shape[0], : shape[1]]
    assert_close(orthogonal_matrix(w, *shape), w, atol=1e-12)
    with pytest.raises(InputError, match=r"shape \(\d, \d\); the vectors need"):
        orthogonal_matrix(w.T, *shape)


def map_of(initializer: Initializer, problem: Problem, order: str = "given", *, projected: bool = False) -> Maps:
    """Return the map of an initializer; check that it has no history."""
    found = initializer(problem, State(order=order, projected=projected), Monitor())
    assert found.maps is not None
    assert (found.history, found.candidates) == ((), ())
    return found.maps


@pytest.mark.parametrize("order", ["given", "estimated"])
def test_a_lexicon_gives_the_same_map_in_any_order(order: str) -> None:
    planted_problem = planted(150, 120, d=8, shuffle=True, seed=1)
    estimates = np.random.default_rng(0).permutation(150), np.random.default_rng(1).permutation(120)
    rows = planted_problem.gold[:60, 0], planted_problem.gold[:60, 1]
    problem = problem_of(planted_problem, estimates=estimates, known=KnownPairs(rows))
    maps = map_of(LexiconPairs(), problem, order)
    assert maps.tgt is None
    assert_close(maps.src, planted_problem.w, atol=1e-9)


def test_held_out_pairs_take_no_part() -> None:
    planted_problem = planted(150, d=8, seed=1)
    right, wrong = planted_problem.gold[:60], planted_problem.gold[60:90]
    others = wrong[:, 0], wrong[::-1, 1]
    known = KnownPairs((right[:, 0], right[:, 1]), validation=others, held_out=others)
    problem = problem_of(planted_problem, known=known)
    assert_close(map_of(LexiconPairs(), problem).src, planted_problem.w, atol=1e-9)


@pytest.mark.parametrize("order", ["given", "estimated"])
def test_identical_strings_lead_to_the_map_in_any_order(order: str) -> None:
    planted_problem = planted(150, 120, d=8, shuffle=True, seed=1)
    estimates = np.random.default_rng(0).permutation(150), np.random.default_rng(1).permutation(120)
    problem = problem_of(planted_problem, estimates=estimates, identical=True)
    assert_close(map_of(IdenticalStrings(), problem, order).src, planted_problem.w, atol=1e-9)


def test_without_identical_strings_there_is_no_map_from_them() -> None:
    with pytest.raises(InputError, match="identical strings: no pair is covered by the two vocabularies"):
        map_of(IdenticalStrings(), problem_of(planted(100, d=8)))


def test_the_identity_and_a_matrix() -> None:
    planted_problem = planted(100, d=6, seed=1)
    problem = problem_of(planted_problem, matrix=planted_problem.w)
    assert_same(map_of(Identity(), problem).src, np.eye(6))
    assert_close(map_of(GivenMatrix(), problem).src, planted_problem.w, atol=1e-12)


def test_a_matrix_is_projected_with_the_spaces() -> None:
    # 9 of 12 directions of the source have variance, and the target has 9: the projected spaces have 9.
    planted_problem = planted(200, d=9, seed=1)
    turn = rotation(12, 3)[:9]
    wide = planted_problem.src @ turn
    src = prepared(wide, [f"s{i}" for i in range(200)])
    padded = np.pad(planted_problem.tgt, ((0, 0), (0, 3)))
    tgt = replace(prepared(planted_problem.tgt, [f"t{i}" for i in range(200)]), vectors=padded)
    problem = Problem((View(src, tgt),), matrix=turn.T @ planted_problem.w)
    whole, projected = map_of(GivenMatrix(), problem), map_of(GivenMatrix(), problem, projected=True)
    assert_close(wide @ host(whole.src), padded, atol=1e-9)
    view = problem.views[0].projected
    assert view.x.shape[1] < 12
    assert_close(view.x @ host(projected.src), view.y, atol=1e-9)


def test_what_is_missing_is_explained() -> None:
    with pytest.raises(InputError, match=r"start='lexicon' needs lexicon=...; none was given"):
        LexiconPairs().check_supervision(lexicon=False, matrix=True)
    with pytest.raises(InputError, match=r"start='matrix' needs start_matrix=...; none was given"):
        GivenMatrix().check_supervision(lexicon=True, matrix=False)
    LexiconPairs().check_supervision(lexicon=True, matrix=False)
    GivenMatrix().check_supervision(lexicon=False, matrix=True)
    for initializer in (Identity(), IdenticalStrings()):
        initializer.check_supervision(lexicon=False, matrix=False)


def test_no_seed_is_used() -> None:
    assert not any(each.uses_seed for each in (LexiconPairs(), IdenticalStrings(), Identity(), GivenMatrix()))
