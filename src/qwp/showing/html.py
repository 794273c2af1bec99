"""HTML and SVG markup: elements that escape their text, tables, whole pages, and the blocks that notebooks show."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence

from qwp.showing.style import BASE
from qwp.showing.terminal import visible

FIGURES = "#3465a4"
"""The colour of figures that are neither good nor bad."""
_CARD = "border-left:4px solid {colour};padding:2px 10px;margin:4px 0"
_CELL = "text-align:left;padding:1px 12px 1px 0;vertical-align:top"
# HTML forbids an end tag for these; all others get one, so that HTML and XML parsers agree.
_VOID = frozenset({"br", "meta", "line", "circle", "rect", "polygon", "polyline"})
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


class Markup(str):
    """A string that is markup already, so `element` does not escape it again."""

    __slots__ = ()


def escape(value: object) -> Markup:
    """Return a value as text for an element or a quoted attribute; control characters become visible escapes."""
    return value if isinstance(value, Markup) else Markup(html.escape(visible(str(value))))


def join(*content: object) -> Markup:
    """Return the content in one piece, with everything escaped that is not `Markup`."""
    return Markup("".join(map(escape, content)))


def element(name: str, /, *content: object, **attributes: object) -> Markup:
    """Return an element with content and attributes, both escaped unless they are `Markup`.

    An attribute named `class_` or `aria_label` is written `class` or `aria-label`. None leaves an attribute out.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    inner = join(*content)
    if not inner and name in _VOID:
        return Markup(f"<{name}{written}/>")
    return Markup(f"<{name}{written}>{inner}</{name}>")


def table(
    rows: Sequence[Sequence[object]],
    head: Sequence[object] = (),
    *,
    caption: str = "",
    style: str | None = _CELL,
    **attributes: object,
) -> Markup:
    """Return a table, or nothing if there are no rows.

    Cells that are `Markup` are complete `<td>` or `<th>` elements; others become the text of one.

    Args:
        style: inline style of each text cell. Notebooks need it because they drop style sheets.
    """
    if not rows:
        return Markup()
    parts = [element("caption", caption)] if caption else []
    parts += [element("thead", _row(head, "th", style))] if head else []
    body = element("tbody", *(_row(cells, "td", style) for cells in rows))
    return element("table", *parts, body, **attributes)


def _row(cells: Sequence[object], name: str, style: str | None) -> Markup:
    scope = "col" if name == "th" else None
    return element(
        "tr",
        *(cell if isinstance(cell, Markup) else element(name, cell, scope=scope, style=style) for cell in cells),
    )


def scrollable(content: Markup, label: str) -> Markup:
    """Return content in a box that scrolls sideways on narrow screens, also by keyboard."""
    return element("div", content, class_="scroll", tabindex=0, role="region", aria_label=label)


def figure(drawing: Markup, caption: object = "") -> Markup:
    """Return a drawing below its caption."""
    return element("figure", element("figcaption", caption) if caption else "", drawing)


def page(title: str, body: Markup, *, css: str, script: str = "") -> str:
    """Return a whole page that needs no other file. The browser refuses to load anything else (content policy).

    Args:
        css: rules in addition to `style.BASE`.
        script: JavaScript without the characters `<` and `&`, so that the page is well-formed XML too.
    """
    policy = _POLICY + ("; script-src 'unsafe-inline'" if script else "")
    head = join(
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=Markup(policy)),
        element("title", title),
        element("style", Markup(BASE + css)),
    )
    end = element("script", Markup(script)) if script else ""
    return f'<!DOCTYPE html>\n<html lang="en">{element("head", head)}\n{element("body", body, end)}</html>\n'


# --------------------------------------------------------------------------- notebooks


def line(text: str, colour: str, rest: str = "") -> Markup:
    """Return a line whose first words are bold and coloured."""
    return element("div", element("b", text, style=f"color:{colour}"), " ", rest)


def card(colour: str, *parts: Markup) -> Markup:
    """Return blocks below each other with a coloured edge."""
    return element("div", *parts, style=_CARD.format(colour=colour))


def never_failing(make: Callable[[], str], shown: object) -> str:
    """Return what `make` returns, or the object as plain text if it raises: a notebook must not stop over it."""
    try:
        return make()
    except Exception:
        return element("pre", repr(shown))


class NotebookCard:
    """Base class of results that notebooks show as a card."""

    def _as_html(self) -> str:
        """Return the card."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        """Show the card in a notebook."""
        return never_failing(self._as_html, self)
