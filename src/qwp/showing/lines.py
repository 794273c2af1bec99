"""Lines for people, broken between words, never obeyed by the terminal."""

from __future__ import annotations

import textwrap

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
    line(on or stderr(), text, style)


def line(console: rich.console.Console, text: str, style: str = "", *, whole: bool = False) -> None:
    """One line, which a terminal shows broken between words; a word that is too long for it stays in one piece.

    whole: not broken, so that it can be copied.
    """
    shown = visible(text)
    if not whole and console.is_terminal:
        shown = "\n".join(textwrap.wrap(shown, console.width, break_long_words=False, break_on_hyphens=False))
    console.print(Text(shown, style=style), soft_wrap=True)
