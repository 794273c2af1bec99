"""The argument `progress` of a fit."""

from __future__ import annotations

import io
import sys

import pytest
from rich.console import Console

from qwp import InputError
from qwp.showing.events import Progress
from qwp.showing.progress import pair_callback, progress_callback

EVENTS = [
    *(Progress("refine", step, 2, {"n_pairs": 10 * step}) for step in (1, 2)),
    Progress("verdict", 1, 1, {"ratio": 2.0, "verdict": "succeeded"}),
]


def console(file: io.StringIO, *, terminal: bool = False) -> Console:
    return Console(file=file, force_terminal=terminal, width=150)


@pytest.mark.parametrize("progress", [None, False])
def test_no_callback(progress: bool | None) -> None:
    with progress_callback(progress) as listener:
        assert listener is None
    with pair_callback(progress, 3) as pair_listener:
        assert pair_listener is None


def test_a_function_is_used_unchanged() -> None:
    events: list[Progress] = []
    with progress_callback(events.append) as listener:
        assert listener == events.append
    numbered: list[tuple[int, Progress]] = []

    def note(number: int, event: Progress) -> None:
        numbered.append((number, event))

    with pair_callback(note, 3) as pair_listener:
        assert pair_listener is note


def test_true_prints_lines_without_a_terminal() -> None:
    shown = io.StringIO()
    with progress_callback(True, console(shown)) as listener:
        assert listener is not None
        for event in EVENTS:
            listener(event)
    assert shown.getvalue().splitlines() == ["refinement 1/2: pairs 10", "refinement 2/2: pairs 20"]


def test_true_shows_a_bar_on_a_terminal() -> None:
    file = io.StringIO()
    with progress_callback(True, console(file, terminal=True)) as listener:
        assert listener is not None
        for event in EVENTS:
            listener(event)
    assert "━" in file.getvalue()


def test_pairs_are_numbered() -> None:
    shown = io.StringIO()
    with pair_callback(True, 2, console(shown)) as listener:
        assert listener is not None
        for number in (0, 1):
            for event in EVENTS:
                listener(number, event)
    assert shown.getvalue().splitlines() == [
        *("refinement 1/2: pairs 10", "refinement 2/2: pairs 20", "pair 1 of 2: succeeded"),
        *("refinement 1/2: pairs 10", "refinement 2/2: pairs 20", "pair 2 of 2: succeeded"),
    ]


@pytest.mark.parametrize("progress", [3, "bar", []])
def test_other_values_are_refused(progress: object) -> None:
    message = r"progress=.* is not known; expected True for a bar on stderr, False, or a function"
    with pytest.raises(InputError, match=message), progress_callback(progress):  # type: ignore[arg-type]
        pass
    with pytest.raises(InputError, match=message), pair_callback(progress, 1):  # type: ignore[arg-type]
        pass


def test_a_program_without_standard_error_continues(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    with pair_callback(True, 1) as listener:
        assert listener is not None
        for event in EVENTS:
            listener(0, event)
