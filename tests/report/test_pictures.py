"""The pictures of a report."""

from __future__ import annotations

from qwp.report.findings import find
from qwp.report.pictures import bands, curves, pictures
from qwp.results.alignment import Alignment
from qwp.spaces.lexicon import Lexicon


def test_curves_take_what_the_records_hold() -> None:
    history = [
        {"stage": "start", "step": 1, "objective": 3.0},
        {"stage": "loop", "step": 1, "objective": 2.0},
        {"stage": "loop", "step": 2, "objective": 1.0},
        {"stage": "refine", "step": 1, "n_pairs": 5},
        {"stage": "other", "step": 1},
    ]
    drawn = curves(history)
    assert {name: (list(c.x), list(c.y)) for name, c in drawn.items()} == {
        "start-objective": ([1.0], [3.0]),
        "loop-objective": ([1.0, 2.0], [2.0, 1.0]),
        "refine-n_pairs": ([1.0], [5.0]),
    }


def test_pictures_are_those_that_can_be_drawn(alignment: Alignment, lexicon: Lexicon) -> None:
    measured = pictures(find(alignment, {"gold": lexicon}))
    assert list(measured) == ["bands", "reliability", "hubness", "loop-objective", "map"]
    assert all(picture.title and picture.svg() for picture in measured.values())
    assert list(pictures(find(alignment, {}))) == ["bands", "hubness", "loop-objective", "map"]


def test_bands_have_a_second_series_only_where_something_was_measured(alignment: Alignment, lexicon: Lexicon) -> None:
    assert [name for name, _ in bands(find(alignment, {}).bands).series] == ["estimated"]
    both = bands(find(alignment, {"gold": lexicon}).bands)
    assert [name for name, _ in both.series] == ["estimated", "measured with the lexicon"]
    assert both.x_ticks == [(1.0, "300")]
