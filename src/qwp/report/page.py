"""The layout of a report: a self-contained HTML page with tables and inline SVG, without network or JavaScript.

The page is also well-formed XML, so each `<svg>` can be cut out, and the tests read it with a strict parser.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np

from qwp.judging.verdict import FAILED, SUCCEEDED
from qwp.report.word_map import WordMap
from qwp.showing import html
from qwp.showing.charts import Picture
from qwp.showing.html import Markup, element, join
from qwp.showing.svg import MISSING

_MONOSPACE = "font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace"
CSS = f"""
main{{max-width:1040px;margin:0 auto;padding:28px 16px 48px}}
h2{{font-size:1.1rem;margin:0 0 12px}}
.verdict{{display:flex;gap:12px;align-items:flex-start;border-radius:12px;padding:14px 18px;font-weight:600;
overflow-wrap:anywhere;border:1px solid currentColor}}
.verdict.ok{{color:var(--ok);background:var(--okbg)}}
.verdict.bad{{color:var(--bad);background:var(--badbg)}}
.verdict.unsure{{color:var(--unsure);background:var(--unsurebg)}}
.verdict .sign{{font-size:1.2rem;line-height:1.25}}
table{{width:100%}}
th,td{{text-align:left;padding:7px 20px 7px 0;border-bottom:1px solid var(--rule);vertical-align:baseline}}
tr:last-child>td,tbody tr:last-child>th{{border-bottom:0}}
.facts th,.provenance th{{color:var(--soft);width:1%;white-space:nowrap;padding-right:28px}}
.facts td{{font-weight:600}}
.num{{text-align:right}}
td.num,th.num{{padding-left:14px}}
.chip{{display:inline-block;background:var(--chip);border-radius:7px;padding:1px 9px;margin:2px 6px 2px 0}}
.chip.first{{font-weight:600}}
.chip small{{color:var(--soft);font-weight:400;margin-left:6px}}
.mark{{text-align:center;font-weight:700}}
.mark .yes{{color:var(--ok)}}.mark .no{{color:var(--bad)}}
p.lead{{margin:0 0 12px;max-width:75ch}}p.after{{margin:12px 0 0}}
code{{{_MONOSPACE};font-size:.9em;background:var(--chip);
border-radius:5px;padding:1px 5px;overflow-wrap:anywhere}}
.none,.note{{color:var(--soft)}}.note{{font-size:.85rem;font-weight:400}}
.none{{margin:0}}figcaption .note{{display:block;min-height:1.3em}}
.charts{{display:grid;gap:22px;grid-template-columns:repeat(auto-fit,minmax(min(100%,380px),1fr))}}
.charts+.scroll,.scroll+.charts,.note+.charts{{margin-top:16px}}.charts>.scroll{{align-self:center}}
svg.map{{min-width:640px}}
.legend{{margin:0 0 8px;display:flex;gap:8px 20px;flex-wrap:wrap;color:var(--soft);font-size:.9rem}}
.legend i{{display:inline-block;width:10px;height:10px;margin-right:7px}}
.legend .s{{background:var(--src);border-radius:50%}}.legend .t{{background:var(--tgt)}}
summary{{cursor:pointer;font-weight:600;font-size:1.1rem}}
details[open] summary{{margin-bottom:10px}}
.provenance td{{{_MONOSPACE};font-size:.85rem;overflow-wrap:anywhere}}
@media (max-width:600px){{.facts tr{{display:block;padding:6px 0;border-bottom:1px solid var(--rule)}}
.facts th,.facts td{{display:block;border:0;padding:0;width:auto}}.facts tr:last-child{{border:0}}
section{{padding:16px 14px}}}}
"""


@dataclass(frozen=True)
class Section:
    """A section of a page; `missing` replaces an empty body."""

    name: str
    heading: str
    body: Markup
    missing: str = "None."

    def html(self) -> Markup:
        """Return the section as an element."""
        return element("section", element("h2", self.heading), self.body or _none(self.missing), id=self.name)


def lead(text: str) -> Markup:
    """Return a paragraph above a table or a chart; parts between backticks become code."""
    return element("p", _with_code(text), class_="lead")


def after(text: str) -> Markup:
    """Return a note below a table or a chart; parts between backticks become code."""
    return element("p", _with_code(text), class_="note after")


def _with_code(text: str) -> Markup:
    return join(*(element("code", part) if index % 2 else part for index, part in enumerate(text.split("`"))))


def _none(text: str) -> Markup:
    return element("p", text, class_="none")


# --------------------------------------------------------------------------- tables


def facts(rows: Iterable[tuple[str, str]], label: str, css: str = "facts") -> Markup:
    """Return a table of names and values."""
    cells = [(element("th", name, scope="row"), element("td", value)) for name, value in rows]
    return html.scrollable(html.table(cells, class_=css), label) if cells else Markup()


def table(rows: Sequence[Mapping[str, object]], label: str) -> Markup:
    """Return a table with one row per mapping; its columns are all keys, in the order of their first appearance."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    # A column of figures is set flush right; one word in it makes it text.
    css = {key: "num" if all(is_figure(row.get(key)) for row in rows) else None for key in columns}
    decimals = {key: decimals_of(row.get(key) for row in rows) for key in columns}
    head = [element("th", key, scope="col", class_=css[key]) for key in columns]
    cells = [[element("td", _cell(row.get(k), decimals[k]), class_=css[k]) for k in columns] for row in rows]
    return html.scrollable(html.table(cells, head), label) if columns else Markup()


def _cell(value: object, decimals: int | None) -> str:
    # A word may run from right to left; its neighbours may not.
    return element("bdi", value) if isinstance(value, str) else number(value, decimals)


def number(value: object, decimals: int | None = None) -> str:
    """Format a cell: integers with separators, fractions with `decimals` (None: as many as needed)."""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, Integral):
        return f"{int(value):,}"
    if isinstance(value, Real):
        return _fraction(float(value), decimals)
    return MISSING if value is None else str(value)


def _fraction(value: float, decimals: int | None) -> str:
    if not math.isfinite(value):
        return MISSING
    if decimals is not None and (value == 0 or 1e-4 <= abs(value) < 1e12):
        return f"{value:,.{decimals}f}"
    return f"{value:,.1f}" if 1000 <= abs(value) < 1e12 else f"{value:.4g}"


def decimals_of(values: Iterable[object]) -> int | None:
    """Return how many decimals line up the fractions of a column; None if it has no fractions."""
    cells = [number(v) for v in values if isinstance(v, Real) and not isinstance(v, Integral)]
    return max((len(cell.partition(".")[2]) for cell in cells if "e" not in cell), default=None)


def is_figure(value: object) -> bool:
    """Return whether a value belongs into a column of figures."""
    return value is None or (isinstance(value, Real) and not isinstance(value, bool))


def translations(rows: Sequence[tuple[str, Sequence[tuple[str, float]], float | None, bool | None]]) -> Markup:
    """Return a table of words with their translations.

    Args:
        rows: word, its translations with their scores (best first), the confidence of the first translation, and
            whether it is right (None: not in the lexicon).
    """
    judged = [right for *_, right in rows if right is not None]
    head: list[object] = ["Word", "Translations, best first, with their CSLS"]
    head.append(element("th", "Confidence", scope="col", class_="num"))
    head += [element("th", "Right", scope="col", class_="mark")] * bool(judged)
    cells = []
    for word, found, confidence, right in rows:
        name = element("th", element("bdi", word), scope="row")
        cells.append([name, element("td", _chips(found)), element("td", number(confidence, 2), class_="num")])
        if judged:
            cells[-1].append(element("td", _mark(right), class_="mark"))
    if not cells:
        return Markup()
    note = after(f"{sum(judged)} of {len(judged)} checked examples are right.") if judged else ""
    return join(html.scrollable(html.table(cells, head, style=None), "Example translations"), note)


def _mark(right: bool | None) -> Markup:
    if right is None:
        return Markup()
    css, sign, words = ("yes", "✓", "right") if right else ("no", "✗", "wrong")
    return element("span", sign, class_=css, role="img", aria_label=words, title=words)


def _chips(found: Sequence[tuple[str, float]]) -> Markup:
    return join(
        *(
            element(
                "span",
                element("bdi", word),
                element("small", f"{score:.3f}" if math.isfinite(score) else MISSING),
                class_="chip" if rank else "chip first",
            )
            for rank, (word, score) in enumerate(found)
        )
    )


# --------------------------------------------------------------------------- pictures


def charts(pictures: Sequence[Picture], table: Markup | str = "") -> Markup:
    """Return charts, and a table of their figures, side by side if there is room."""
    content = join(*map(_figure, pictures), table)
    return element("div", content, class_="charts") if content else content


def _figure(picture: Picture) -> Markup:
    caption = join(element("strong", picture.title), " ", element("span", picture.note, class_="note"))
    return html.figure(picture.svg() or _none("No finite values to draw."), caption)


def word_map(picture: WordMap) -> Markup:
    """Return the map of word pairs with its legend."""
    drawing = picture.svg()
    if drawing is None:
        return Markup()
    legend = element(
        "p",
        element("span", element("i", class_="s"), "source word"),
        element("span", element("i", class_="t"), "target word"),
        element("span", "a line joins the two words of a pair: the shorter, the better they match"),
        class_="legend",
    )
    return join(legend, html.scrollable(drawing, picture.title))


# --------------------------------------------------------------------------- the page


def render(
    *,
    title: str,
    verdict: str,
    explanation: str,
    sections: Sequence[Section],
    settings: Mapping[str, object],
    css: str = "",
) -> str:
    """Return the page. settings: the provenance, which may be nested. css: further rules."""
    parts = [_banner(verdict, explanation), *(section.html() for section in sections), provenance(settings)]
    return html.page(title, element("main", element("h1", title), *parts), css=CSS + css)


def _banner(verdict: str, explanation: str) -> Markup:
    css, sign = {SUCCEEDED: ("ok", "✓"), FAILED: ("bad", "✗")}.get(verdict, ("unsure", "!"))
    mark = element("span", sign, class_="sign", aria_hidden="true")
    return element("div", mark, element("span", explanation), class_=f"verdict {css}", role="status")


def provenance(values: Mapping[str, object]) -> Markup:
    """Return the provenance in a section that opens on request."""
    summary = element("summary", "Provenance: version, settings, seed, hashes")
    found = facts(_flattened(values), "Provenance", "provenance") or _none("No provenance was recorded.")
    return element("section", element("details", summary, found), id="provenance")


def _flattened(values: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield nested settings as rows with dotted names. Seeds stay exact: no separators, no rounding."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flattened(value, f"{prefix}{key}.")
        elif isinstance(value, str):
            yield f"{prefix}{key}", value
        else:
            yield f"{prefix}{key}", json.dumps(value, ensure_ascii=False, default=str)
