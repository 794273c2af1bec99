"""What a running fit tells."""

from __future__ import annotations

from qwp.methods import Progress as OfTheMethods
from qwp.methods.run import STAGES
from qwp.showing.bar import _NAMES
from qwp.showing.events import Progress


def test_methods_tell_these_events() -> None:
    assert OfTheMethods is Progress


def test_every_stage_that_is_told_has_a_name_for_people() -> None:
    assert set(_NAMES) == set(STAGES) - {"prepare"}
