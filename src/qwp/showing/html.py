"""Pieces of HTML for notebooks: every word in them is escaped, and showing never fails."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence

from qwp.showing.terminal import visible

FIGURES = "#3465a4"
"""The colour of what is neither good nor bad."""
_CARD = "border-left:4px solid {colour};padding:2px 10px;margin:4px 0"
_CELL = "text-align:left;padding:1px 12px 1px 0;vertical-align:top"


def escaped(text: str) -> str:
    """Text of strangers as it is: no tag, no entity, no character that is obeyed rather than shown."""
    return html.escape(visible(text))


def line(text: str, colour: str, rest: str = "") -> str:
    """A line whose first words are bold and in a colour."""
    return f'<div><b style="color:{colour}">{escaped(text)}</b> {escaped(rest)}</div>'


def table(rows: Sequence[Sequence[str]], head: Sequence[str] = ()) -> str:
    """Rows of text below their names; nothing where there are no rows."""
    if not rows:
        return ""
    lines = [[f"<th style='{_CELL}'>{escaped(cell)}</th>" for cell in head]] if head else []
    lines += [[f"<td style='{_CELL}'>{escaped(cell)}</td>" for cell in row] for row in rows]
    return "<table>" + "".join(f"<tr>{''.join(cells)}</tr>" for cells in lines) + "</table>"


def card(colour: str, *parts: str) -> str:
    """Pieces below each other, with a coloured edge."""
    return f'<div style="{_CARD.format(colour=colour)}">{"".join(parts)}</div>'


def never_failing(make: Callable[[], str], shown: object) -> str:
    """What `make` returns, or the object as plain text where that fails: a notebook must not stop over it."""
    try:
        return make()
    except Exception:
        return f"<pre>{escaped(repr(shown))}</pre>"
