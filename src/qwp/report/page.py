"""A self-contained HTML page about one alignment: no network, no JavaScript, charts as inline SVG made here.

The page is also well-formed XML, so each `<svg>` can be cut out, and the tests can read the whole page with a strict
parser.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from qwp.judging.verdict import FAILED, SUCCEEDED
from qwp.report.svg import CSS, MISSING, Picture, decimals_of, is_figure, number
from qwp.report.word_map import WordMap
from qwp.showing.terminal import in_markup as escape


@dataclass(frozen=True)
class Section:
    """A part of a page. body: HTML; missing: what is said where it is empty."""

    name: str
    heading: str
    body: str
    missing: str = "None."

    def html(self) -> str:
        """As an element."""
        content = self.body or f'<p class="none">{escape(self.missing)}</p>'
        return f'<section id="{self.name}"><h2>{escape(self.heading)}</h2>{content}</section>'


def lead(text: str) -> str:
    """What is to be said before a table or a chart."""
    return f'<p class="lead">{_with_code(text)}</p>'


def after(text: str) -> str:
    """A remark below a table or a chart."""
    return f'<p class="note after">{_with_code(text)}</p>'


def _with_code(text: str) -> str:
    """Text whose parts between backticks are code."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if index % 2 else part for index, part in enumerate(parts))


# --------------------------------------------------------------------------- tables


def facts(rows: Iterable[tuple[str, str]], css: str = "facts") -> str:
    """Names and values."""
    body = "".join(f'<tr><th scope="row">{escape(k)}</th><td>{escape(v)}</td></tr>' for k, v in rows)
    return f'<div class="scroll"><table class="{css}"><tbody>{body}</tbody></table></div>' if body else ""


def _table(head: str, body: str) -> str:
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def table(rows: Sequence[Mapping[str, object]]) -> str:
    """One row per mapping; the columns are all the keys, in the order in which they first appear."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    if not columns:
        return ""
    # A column of figures is set flush right; one word in it makes it text.
    css = {key: ' class="num"' if all(is_figure(row.get(key)) for row in rows) else "" for key in columns}
    head = "".join(f'<th scope="col"{css[key]}>{escape(key)}</th>' for key in columns)
    decimals = {key: decimals_of(row.get(key) for row in rows) for key in columns}
    lines = ("".join(f"<td{css[k]}>{_cell(row.get(k), decimals[k])}</td>" for k in columns) for row in rows)
    return _table(head, "".join(f"<tr>{line}</tr>" for line in lines))


def _cell(value: object, decimals: int | None) -> str:
    # A word may run from right to left; its neighbours may not.
    return f"<bdi>{escape(value)}</bdi>" if isinstance(value, str) else escape(number(value, decimals))


# --------------------------------------------------------------------------- translations


def translations(rows: Sequence[tuple[str, Sequence[tuple[str, float]], float | None, bool | None]]) -> str:
    """(word, [(translation, score), ...] best first, confidence of the first, whether it is right), None: unknown."""
    if not rows:
        return ""
    is_judged = any(right is not None for *_, right in rows)
    body = "".join(
        f'<tr><th scope="row"><bdi>{escape(word)}</bdi></th><td>{_chips(found)}</td>'
        f'<td class="num">{escape(number(sure, 2))}</td>'
        + (f'<td class="mark">{_mark(right)}</td>' if is_judged else "")
        + "</tr>"
        for word, found, sure, right in rows
    )
    judged = [right for *_, right in rows if right is not None]
    note = after(f"{sum(judged)} of {len(judged)} checked examples are right.") if judged else ""
    head = (
        '<th scope="col">Word</th><th scope="col">Translations, best first, with their CSLS</th>'
        '<th scope="col" class="num">Confidence</th>'
    )
    if is_judged:
        head += '<th scope="col" class="mark">Right</th>'
    return _table(head, body) + note


def _mark(right: bool | None) -> str:
    if right is None:
        return ""
    css, sign, words = ("yes", "✓", "right") if right else ("no", "✗", "wrong")
    return f'<span class="{css}" role="img" aria-label="{words}" title="{words}">{sign}</span>'


def _chips(found: Sequence[tuple[str, float]]) -> str:
    return "".join(
        f'<span class="chip{"" if rank else " first"}"><bdi>{escape(word)}</bdi>'
        f"<small>{escape(f'{score:.3f}' if math.isfinite(score) else MISSING)}</small></span>"
        for rank, (word, score) in enumerate(found)
    )


# --------------------------------------------------------------------------- pictures


def charts(pictures: Sequence[Picture]) -> str:
    """Side by side where there is room."""
    return f'<div class="charts">{"".join(map(_figure, pictures))}</div>' if pictures else ""


def beside(picture: Picture, table: str) -> str:
    """A chart and its figures, side by side where there is room."""
    return f'<div class="charts">{_figure(picture)}{table}</div>'


def _figure(picture: Picture) -> str:
    body = picture.svg() or '<p class="none">No finite values to draw.</p>'
    caption = f'<strong>{escape(picture.title)}</strong> <span class="note">{escape(picture.note)}</span>'
    return f"<figure><figcaption>{caption}</figcaption>{body}</figure>"


def word_map(picture: WordMap) -> str:
    """The map with its legend."""
    drawing = picture.svg()
    if drawing is None:
        return ""
    legend = (
        '<p class="legend"><span><i class="s"></i>source word</span><span><i class="t"></i>target word</span>'
        "<span>a line joins the two words of a pair: the shorter, the better they match</span></p>"
    )
    return f'{legend}<div class="scroll">{drawing}</div>'


# --------------------------------------------------------------------------- provenance


def provenance(values: Mapping[str, object]) -> str:
    """Settings, which may be nested, behind a line that opens them."""
    found = facts(_flattened(values), "prov") or '<p class="none">None was recorded.</p>'
    summary = "<summary>Provenance: version, settings, seed, hashes</summary>"
    return f'<section id="provenance"><details>{summary}{found}</details></section>'


def _flattened(values: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Nested settings as rows with dotted names. Seeds stay as they are: no separators, no rounding."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flattened(value, f"{prefix}{key}.")
        elif isinstance(value, str):
            yield f"{prefix}{key}", value
        else:
            yield f"{prefix}{key}", json.dumps(value, ensure_ascii=False, default=str)


# The policy makes the browser itself refuse anything that is not in this file.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def render(
    *, title: str, verdict: str, explanation: str, sections: Sequence[Section], settings: Mapping[str, object]
) -> str:
    """The whole page as text. settings: the provenance; may be nested."""
    head = (
        '<meta charset="utf-8"/><meta name="viewport" content="width=device-width, initial-scale=1"/>'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}"/>'
        f"<title>{escape(title)}</title><style>{CSS}</style>"
    )
    parts = [_banner(verdict, explanation), *(section.html() for section in sections), provenance(settings)]
    body = "\n".join(parts)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n'
        f"<body><main><h1>{escape(title)}</h1>\n{body}\n</main></body></html>\n"
    )


def _banner(verdict: str, explanation: str) -> str:
    css, sign = {SUCCEEDED: ("ok", "✓"), FAILED: ("bad", "✗")}.get(verdict, ("unsure", "!"))
    return (
        f'<div class="verdict {css}" role="status"><span class="sign" aria-hidden="true">{sign}</span>'
        f"<span>{escape(explanation)}</span></div>"
    )
