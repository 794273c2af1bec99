"""Curves of the records of a run."""

from __future__ import annotations

from qwp.results.curves import recorded


def test_curves_are_those_fields_that_were_recorded_in_their_stage() -> None:
    history = [
        {"stage": "refine", "step": 1, "n_pairs": 10, "mean_csls": 0.25},
        {"stage": "loop", "step": 1, "objective": 2.0},
        {"stage": "loop", "step": 3, "objective": 1.5, "k": 40},
        {"stage": "loop", "step": 4, "objective": None},
        {"stage": "bank", "step": 1, "objective": 9.0},
        {"stage": "refine", "step": 2, "n_pairs": 12, "mean_csls": 0.5},
    ]
    loop, pairs, csls = recorded(history)
    assert (loop.stage, loop.field, loop.x, loop.y) == ("loop", "objective", [1.0, 3.0], [2.0, 1.5])
    assert (pairs.field, pairs.x_label, pairs.y) == ("n_pairs", "round", [10.0, 12.0])
    assert (csls.title, csls.y) == ("Refinement: how well they match", [0.25, 0.5])
    assert list(recorded([])) == []
