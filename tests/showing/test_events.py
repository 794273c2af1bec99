"""What a running fit tells."""

from __future__ import annotations

from qwp.showing.bar import STAGE_NAMES
from qwp.showing.events import Progress
from qwp.stages.stage import STAGES, Monitor


def test_stages_tell_these_events() -> None:
    events: list[Progress] = []
    figures = {"objective": 0.5}
    Monitor(events.append).tell("loop", 2, 9, figures)
    assert events == [Progress("loop", 2, 9, {"objective": 0.5})]
    # The figures of an event stay what they were.
    figures["objective"] = 0.4
    assert events[0].figures == {"objective": 0.5}


def test_every_stage_that_is_told_has_a_name_for_people() -> None:
    assert set(STAGE_NAMES) == set(STAGES) - {"prepare"}
