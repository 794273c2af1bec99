"""The cases of the benchmark of verdicts."""

from __future__ import annotations

import numpy as np

from benchmarks import judgement
from benchmarks.records import read_records


def test_wrong_lexicons_are_wrong() -> None:
    right = {kind: sum(a == b for a, b in judgement.wrong_lexicon(kind, 400).pairs) for kind in judgement.CONTRADICTED}
    assert right == {"shifted rows": 50, "reversed rows": 0}


def test_cases_of_a_group_take_their_kinds_in_turns() -> None:
    cases = list(judgement.drawn_cases("items", list(judgement.NOISE), 8, {"order": "none"}))
    assert [case.task for case in cases] == [*judgement.NOISE, *judgement.NOISE]
    assert len({case.seed for case in cases}) == 8
    assert cases == list(judgement.drawn_cases("items", list(judgement.NOISE), 8, {"order": "none"}))
    x, y = judgement.unrelated_spaces(cases[0])
    assert x.shape == y.shape
    assert f"{x.shape[0]} x {x.shape[1]}" == cases[0].label


def test_p_values_of_kinds_left_out_of_the_calibration_keep_their_level() -> None:
    found = read_records(judgement.RESULTS)
    p_values = [p for _, p in judgement.left_out(found).values()]
    assert sum(map(len, p_values)) == 1294 + 127
    for level in (0.01, 0.05, 0.5):
        for some in (*p_values, judgement.validation_p_values(found)):
            # Two binomial standard deviations.
            assert np.mean(some <= level) <= level + 2 * np.sqrt(level * (1 - level) / len(some))
