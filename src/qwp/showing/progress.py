"""The argument `progress` of a fit: a progress bar on standard error, a callback of the user, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from qwp.errors import InputError
from qwp.showing.events import PairCallback, Progress, ProgressCallback

if TYPE_CHECKING:
    import rich.console

    from qwp.showing.bar import AlignProgress

C = TypeVar("C", bound=Callable[..., None])


@contextmanager
def progress_callback(
    progress: bool | ProgressCallback | None, console: rich.console.Console | None = None
) -> Iterator[ProgressCallback | None]:
    """Yield the callback for the events of a fit, or None.

    Args:
        progress: True for a progress bar, False or None for no callback, or a function.
        console: console of the bar; standard error by default.
    """
    if progress is True:
        with _bar(console) as bar:
            yield bar
    else:
        yield _checked(progress)


@contextmanager
def pair_callback(
    progress: bool | PairCallback | None, n_pairs: int, console: rich.console.Console | None = None
) -> Iterator[PairCallback | None]:
    """Yield the callback for the events of several pairs, or None. A bar prints the verdict of each finished pair.

    Args:
        progress: True for a progress bar, False or None for no callback, or a function.
        n_pairs: number of pairs.
        console: console of the bar; standard error by default.
    """
    if progress is not True:
        yield _checked(progress)
        return
    with _bar(console) as bar:

        def show(number: int, event: Progress) -> None:
            bar(event)
            if event.stage == "verdict" and event.done == event.total:
                bar.note(f"pair {number + 1} of {n_pairs}: {event.figures.get('verdict', '')}")

        yield show


def _bar(console: rich.console.Console | None) -> AlignProgress:
    from qwp.showing.bar import AlignProgress  # slow to import, because of rich

    return AlignProgress(console=console)


def _checked(progress: C | bool | None) -> C | None:
    if progress is None or isinstance(progress, bool):
        return None
    if not callable(progress):
        raise InputError(
            f"progress={progress!r} ({type(progress).__name__}) is not known; expected True for a bar on stderr, "
            "False, or a function that is called with every event"
        )
    return progress
