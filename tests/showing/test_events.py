"""Progress events of a fit."""

from __future__ import annotations

from qwp.showing.bar import STAGE_NAMES
from qwp.showing.events import Progress
from qwp.stages.stage import STAGES, Monitor


def test_stages_report_events() -> None:
    events: list[Progress] = []
    figures = {"objective": 0.5}
    Monitor(events.append).report("loop", 2, 9, figures)
    assert events == [Progress("loop", 2, 9, {"objective": 0.5})]
    # Later changes of the figures do not affect the event.
    figures["objective"] = 0.4
    assert events[0].figures == {"objective": 0.5}


def test_every_reported_stage_has_a_display_name() -> None:
    assert set(STAGE_NAMES) == set(STAGES) - {"prepare"}
