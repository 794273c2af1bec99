"""Lines on standard error, never wrapped, never obeyed by the terminal."""

from __future__ import annotations

import rich.console
from rich.text import Text

from qwp.showing import streams
from qwp.showing.escapes import visible


class Console(rich.console.Console):
    """rich's, which leaves a pipe without a reader to whoever wrote."""

    def on_broken_pipe(self) -> None:
        """Not as in rich, which would end the process here, whichever stream it was."""
        raise  # called while the BrokenPipeError is handled


def stderr() -> Console:
    """Where progress, warnings and errors go. Writing there never fails."""
    # In a notebook rich would put every line into a piece of HTML of its own, whatever file it was told.
    return Console(file=streams.stderr(), highlight=False, force_jupyter=False)


def note(text: str, style: str = "", *, on: rich.console.Console | None = None) -> None:
    """One line on stderr. on: the console of a bar that is shown there."""
    (on or stderr()).print(Text(visible(text), style=style), soft_wrap=True)
