"""Who listens to a fit: nobody, a function of the user, or a bar on standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from qwp.errors import InputError
from qwp.showing.events import PairCallback, Progress, ProgressCallback

if TYPE_CHECKING:
    from qwp.showing.bar import AlignProgress

C = TypeVar("C", bound=Callable[..., None])


@contextmanager
def listening(progress: bool | ProgressCallback | None) -> Iterator[ProgressCallback | None]:
    """The function that gets the events of a fit. progress: True for a bar, False or None for nobody, or a function."""
    if progress is True:
        with _bar() as bar:
            yield bar
    else:
        yield _function(progress)


@contextmanager
def listening_to_pairs(progress: bool | PairCallback | None, n_pairs: int) -> Iterator[PairCallback | None]:
    """The same for many pairs. A bar then says which of them is over, and with which verdict."""
    if progress is not True:
        yield _function(progress)
        return
    with _bar() as bar:

        def show(number: int, event: Progress) -> None:
            bar(event)
            if event.stage == "verdict" and event.done == event.total:
                bar.note(f"pair {number + 1} of {n_pairs}: {event.figures.get('verdict', '')}")

        yield show


def _bar() -> AlignProgress:
    # Only here: rich takes a while to import.
    from qwp.showing.bar import AlignProgress

    return AlignProgress()


def _function(progress: C | bool | None) -> C | None:
    if progress is None or isinstance(progress, bool):
        return None
    if not callable(progress):
        raise InputError(
            f"progress={progress!r} ({type(progress).__name__}) is not known; expected True for a bar on stderr, "
            "False, or a function that is called with every event"
        )
    return progress
