"""HTML markup: elements that escape their text, tables, whole pages with their colours, and the blocks of notebooks."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence

SERIES = 7
"""Colours of data series, `c0` to `c6`. All have a contrast of at least 3 with a card, and with `on` of at least 4."""

_COLOURS = {
    "bg": ("#f6f7f9", "#12161c"),
    "card": ("#fff", "#1a2029"),
    "ink": ("#1c2430", "#e6eaf0"),
    "soft": ("#5a6675", "#9ba7b6"),
    "rule": ("#e1e5ea", "#2d3642"),
    "grid": ("#eceff3", "#262e39"),
    "accent": ("#0b61a4", "#7ab8f0"),
    "src": ("#1d5fd0", "#7fb2ff"),
    "tgt": ("#b8480b", "#ffab70"),
    "ok": ("#146c3c", "#7ddba3"),
    "okbg": ("#e4f5ea", "#15301f"),
    "bad": ("#a51d1d", "#ff9d9d"),
    "badbg": ("#fdeaea", "#3a1a1c"),
    "unsure": ("#8a5300", "#f0c070"),
    "unsurebg": ("#fdf3e0", "#33270f"),
    "chip": ("#f0f2f5", "#252d38"),
    "heat": ("#0b61a4", "#4da3e8"),
    "cap": ("58%", "44%"),  # share of `heat` in the hottest cell of a table
    "on": ("#fff", "#0d1117"),
    "c0": ("#0072b2", "#56b4e9"),
    "c1": ("#c2410c", "#f5914e"),
    "c2": ("#00805c", "#3fc79a"),
    "c3": ("#a8437f", "#e48cc0"),
    "c4": ("#8a6100", "#e6b64d"),
    "c5": ("#4c6fd0", "#98b0ff"),
    "c6": ("#5a6570", "#aab4bf"),
}
"""Colours of the light and the dark scheme."""
LIGHT = {name: light for name, (light, _) in _COLOURS.items()}
DARK = {name: dark for name, (_, dark) in _COLOURS.items()}

CHARTS = """
.grid{stroke:var(--grid)}.axis{stroke:var(--soft)}
.tick,.label,.key{fill:var(--soft);font-size:12px}.label,.key{font-size:12.5px}
.line{fill:none;stroke:var(--src);stroke-width:2;stroke-linejoin:round;stroke-linecap:round}
.ideal{stroke:var(--soft);stroke-dasharray:5 4}
.dot{fill:var(--src);stroke:var(--card)}
.dot:hover{stroke:var(--ink);stroke-width:2}
.hover{fill:transparent}.hover:hover{fill:var(--src);fill-opacity:.5}
circle.src,rect.src{fill:var(--src)}circle.tgt,rect.tgt{fill:var(--tgt)}
.whisker{stroke-width:2;stroke-opacity:.65}.whisker.src{stroke:var(--src)}.whisker.tgt{stroke:var(--tgt)}
.pair{stroke:var(--soft);stroke-opacity:.55}
.leader{stroke:var(--soft);stroke-opacity:.45;stroke-width:.7;stroke-dasharray:2 2}
.word{font-size:12.5px;paint-order:stroke;stroke:var(--card);stroke-width:3px;stroke-linejoin:round}
.word.src{fill:var(--src)}.word.tgt{fill:var(--tgt)}
"""
"""Rules for the parts of a chart, in pages and in files."""


HEAT = """.heat td,.heat th{text-align:center;padding:9px 14px}
.heat caption{text-align:left;color:var(--soft)}
.heat td[style]{background:color-mix(in srgb,var(--heat) calc(6% + var(--cap)*var(--v)),var(--card));
 border:2px solid var(--card);print-color-adjust:exact;-webkit-print-color-adjust:exact}
"""
"""Rules for tables of class `heat`, whose cells `heat_cell` makes."""


def _variables(colours: dict[str, str]) -> str:
    return ";".join(f"--{name}:{value}" for name, value in colours.items())


BASE = f"""
:root{{color-scheme:light dark;{_variables(LIGHT)}}}
@media (prefers-color-scheme:dark){{:root{{{_variables(DARK)}}}}}
@media print{{:root{{{_variables(LIGHT)}}}body{{background:#fff}}section{{break-inside:avoid}}}}
*{{box-sizing:border-box}}
body{{margin:0;background:var(--bg);color:var(--ink);line-height:1.5;
font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif;font-size:16px}}
h1{{font-size:1.65rem;line-height:1.25;margin:0 0 16px;overflow-wrap:anywhere}}
a{{color:var(--accent)}}
section{{background:var(--card);border:1px solid var(--rule);border-radius:12px;padding:18px 20px;margin:18px 0 0}}
.scroll{{overflow-x:auto}}
table{{border-collapse:collapse;font-variant-numeric:tabular-nums}}
thead th{{color:var(--soft);font-weight:600;font-size:.85rem}}
tbody th{{font-weight:500}}
figure{{margin:0;min-width:0;max-width:620px}}
figcaption{{margin-bottom:6px}}
svg{{display:block;width:100%;height:auto;font-family:inherit}}
{CHARTS}"""
"""Rules of every page."""


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
    from qwp.showing.terminal import visible  # imported here, because it imports rich, and readers of files import this

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


def heat_cell(text: str, share: float, title: str) -> Markup:
    """Return a cell of a heat map. share: of the full colour, 0 to 1."""
    return element("td", text, style=f"--v:{share:.2f}", title=title)


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
