"""The report on an experiment as a page: tables, charts and what is found of the claims of the paper.

One file that needs nothing else: no network, no library. The page is well-formed XML; the script shows tips and chooses
among pictures, and what it does not reach is there without it.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from qwp.experiments import wording
from qwp.experiments.cells import unpack
from qwp.experiments.charts import Dot, Line, line_chart, numbered_dots, plan_chart, swatch
from qwp.experiments.claims import DOES_NOT, HOLDS, Outcome
from qwp.experiments.data import languages
from qwp.experiments.figures import AVERAGE
from qwp.experiments.measured import BEST, LEVEL_WITH_BEST
from qwp.experiments.report import Entry, PlanPicture, Report, Row, View
from qwp.showing.terminal import in_markup as escape
from qwp.version import __version__

_LIGHT = (
    "--cap:58%;--bg:#f6f7f9;--card:#fff;--ink:#1b2430;--soft:#5b6776;--line:#d9dee5;--accent:#0b61a4;--heat:#0b61a4;--on:#fff;"
    "--good:#12703c;--bad:#a8321f;--c0:#0072b2;--c1:#c2410c;--c2:#00805c;--c3:#a8437f;--c4:#8a6100;"
    "--c5:#4c6fd0;--c6:#5a6570"
)
_DARK = (
    "--cap:44%;--bg:#12161c;--card:#1a2029;--ink:#e6eaf0;--soft:#9ba7b6;--line:#2e3742;--accent:#7ab8f0;--heat:#4da3e8;--on:#0d1117;"
    "--good:#5fce8f;--bad:#f28b7a;--c0:#56b4e9;--c1:#f5914e;--c2:#3fc79a;--c3:#e48cc0;--c4:#e6b64d;"
    "--c5:#98b0ff;--c6:#aab4bf"
)
_COLOURS = "".join(f".c{i}{{--c:var(--c{i})}}" for i in range(7))
STYLE = f"""
:root{{color-scheme:light dark;{_LIGHT}}}
@media (prefers-color-scheme:dark){{:root{{{_DARK}}}}}
{_COLOURS}
*{{box-sizing:border-box}}
body{{margin:0;background:var(--bg);color:var(--ink);
 font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}}
header,nav,main{{max-width:1180px;margin:0 auto;padding:0 16px}}
header{{padding-top:28px}}
h1{{margin:0;font-size:1.7rem;line-height:1.2}}
h2{{margin:0 0 4px;font-size:1.2rem}}
h3{{margin:18px 0 4px;font-size:1rem}}
p{{margin:4px 0 12px;color:var(--soft);max-width:80ch}}
nav{{display:flex;flex-wrap:wrap;gap:6px 14px;margin-bottom:14px}}
a{{color:var(--accent)}}
section{{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:18px;margin:0 0 18px}}
.scroll{{overflow-x:auto}}
table{{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.9rem}}
th,td{{padding:5px 10px;text-align:left;white-space:nowrap;vertical-align:top}}
th{{font-weight:600}}
thead th{{border-bottom:1px solid var(--line);color:var(--soft)}}
tr.first>*{{border-top:1px solid var(--line)}}
tbody th{{font-weight:500}}
td.best .value{{font-weight:700}}
td.level .value{{font-style:italic}}
thead th:first-child,tbody th:first-child{{position:sticky;left:0;background:var(--card)}}
.sign{{color:var(--accent)}}
.soft{{color:var(--soft);font-size:.88em}}
.up{{color:var(--good)}}.down{{color:var(--bad)}}
figure{{margin:0}}
figcaption{{font-weight:600;font-size:.9rem}}
.charts{{display:grid;grid-template-columns:repeat(auto-fit,minmax(270px,1fr));gap:12px;margin:8px 0 16px}}
.charts figure{{max-width:460px}}
svg{{display:block;width:100%;height:auto;font-family:inherit}}
.grid{{stroke:var(--line)}}
.axis{{stroke:var(--soft)}}
.tick,.label{{fill:var(--soft);font-size:11px}}
.label{{font-size:11.5px}}
.line{{stroke:var(--c);fill:none;stroke-width:2}}
.dashed{{stroke-dasharray:4 4;stroke-width:1.3}}
.band{{fill:var(--c);opacity:.16}}
.dot{{fill:var(--c);stroke:var(--card);stroke-width:1}}
.hollow{{fill:var(--card);stroke:var(--c);stroke-width:1.3}}
.leader{{stroke:var(--soft);stroke-width:.8}}
.number{{fill:var(--on);font-size:9.5px;font-weight:700}}
.legend,.claims,.names{{list-style:none;padding:0;margin:6px 0}}
.legend{{display:flex;flex-wrap:wrap;gap:4px 18px;font-size:.9rem}}
.legend li{{display:flex;align-items:center;gap:6px}}
.swatch{{width:26px;flex:none}}
.claims li{{display:grid;grid-template-columns:11.5em 1fr;gap:4px 14px;padding:10px 0;
 border-top:1px solid var(--line)}}
.verdict{{font-weight:600;font-size:.9rem}}
.verdict.yes{{color:var(--good)}}.verdict.no{{color:var(--bad)}}.verdict.open{{color:var(--soft)}}
.beside{{display:grid;grid-template-columns:minmax(0,560px) minmax(0,1fr);gap:16px;align-items:center;
 margin-bottom:12px}}
.names{{font-size:.88rem;columns:2 210px}}
.names li{{break-inside:avoid;padding:1px 0 1px 2em;text-indent:-2em}}
.names .badge{{text-indent:0}}
.badge{{display:inline-block;min-width:1.7em;text-align:center;border-radius:1em;background:var(--c);
 color:var(--on);font-size:.8em;font-weight:700}}
select{{font:inherit;max-width:100%;color:inherit;background:var(--bg);border:1px solid var(--line);
 border-radius:6px;padding:3px 6px}}
.heats{{display:flex;align-items:flex-start;flex-wrap:wrap;gap:20px;margin:10px 0}}
.heat td,.heat th{{text-align:center;padding:9px 14px}}
.heat caption{{text-align:left;color:var(--soft)}}
.heat td[style]{{background:color-mix(in srgb,var(--heat) calc(6% + var(--cap)*var(--v)),var(--card));
 border:2px solid var(--card);print-color-adjust:exact;-webkit-print-color-adjust:exact}}
svg.plan{{max-width:640px;min-width:520px}}
.empty{{fill:none;stroke:var(--line)}}
.mass{{fill:var(--heat)}}
.word{{fill:var(--ink);font-size:9.5px}}
#tip{{position:fixed;z-index:9;max-width:min(320px,90vw);padding:6px 9px;border-radius:6px;background:var(--ink);
 color:var(--bg);font-size:.82rem;pointer-events:none}}
[hidden]{{display:none!important}}
@media (max-width:760px){{section{{padding:14px 12px}}.beside,.claims li{{grid-template-columns:1fr}}
 h1{{font-size:1.4rem}}
 tbody th:first-child{{white-space:normal;min-width:5.5em}}.heat td,.heat th{{padding:7px 8px}}}}
@media print{{:root{{{_LIGHT}}}body{{background:#fff;font-size:11px}}nav,label{{display:none}}section{{border:0;
 padding:0}}
 figure,.claims li,tr{{break-inside:avoid}}.scroll{{overflow:visible}}}}
"""
# Without the two signs that XML reads as markup.
SCRIPT = """
const tip = document.getElementById('tip');
document.querySelectorAll('svg title').forEach(t => {
  const mark = t.parentNode; mark.dataset.tip = t.textContent; t.remove();
});
document.querySelectorAll('td[title]').forEach(t => { t.dataset.tip = t.title; t.removeAttribute('title'); });
function show(event) {
  const mark = event.target.closest ? event.target.closest('[data-tip]') : null;
  if (!mark) { tip.hidden = true; return; }
  tip.textContent = mark.dataset.tip; tip.hidden = false;
  const x = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 6);
  const below = event.clientY + 18, above = event.clientY - tip.offsetHeight - 12;
  const y = below + tip.offsetHeight > window.innerHeight ? above : below;
  tip.style.left = Math.max(4, x) + 'px'; tip.style.top = y + 'px';
}
document.addEventListener('pointermove', show);
document.addEventListener('pointerdown', show);
document.addEventListener('scroll', () => { tip.hidden = true; }, {passive: true});
document.querySelectorAll('.chooser').forEach(box => {
  const select = box.querySelector('select'), all = box.querySelectorAll('.choice');
  select.addEventListener('change', () => all.forEach((one, i) => { one.hidden = String(i) !== select.value; }));
});
"""


_SIGNS = {HOLDS: ("yes", "✓"), DOES_NOT: ("no", "✗")}


def page(report: Report) -> str:
    """The whole page."""
    done, wanted = (sum(getattr(view, name) for view in report.views) for name in ("done", "wanted"))
    body = "".join(
        [
            f"<header><h1>{escape(report.title)}</h1>",
            f"<p>{done} of {wanted} places in the tables are filled. qwp {__version__}.</p></header>",
            _contents(report),
            "<main>",
            *(_section(view) for view in report.views),
            _claims(report),
            _times(report),
            _pairs(report),
            _plans(report.plans),
            _remarks(report),
            "</main>",
        ]
    )
    return (
        '<!DOCTYPE html>\n<html lang="en" xmlns="http://www.w3.org/1999/xhtml"><head><meta charset="utf-8"/>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>'
        f"<title>{escape(report.title)}</title><style>{STYLE}</style></head><body>{body}"
        f'<div id="tip" role="tooltip" hidden="hidden"></div><script>{SCRIPT}</script></body></html>\n'
    )


def _contents(report: Report) -> str:
    links = [(view.name, view.title) for view in report.views]
    links += [("claims", wording.CLAIMS)] * bool(report.claims) + [("times", "Time and score")] * _timed(report)
    links += [("pairs", "Pairs of languages"), *[("plans", "Transport plans")] * bool(report.plans)]
    items = "".join(f'<a href="#{escape(name)}">{escape(title)}</a>' for name, title in links)
    return f'<nav aria-label="Contents">{items}</nav>'


def _figure(svg: str, caption: str = "") -> str:
    below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f"<figure>{below}{svg}</figure>"


# --------------------------------------------------------------------------- a table


def _section(view: View) -> str:
    about = escape(wording.about(view, best="bold with ●", level="italics with ○"))
    charts = _curves(view) if len(view.heads) == 2 else ""
    return (
        f'<section id="{escape(view.name)}"><h2>{escape(view.title)}</h2><p>{about}</p>'
        f'{charts}<div class="scroll" tabindex="0" role="region" aria-label="{escape(view.title)}">'
        f"{_figures(view)}</div></section>"
    )


def _figures(view: View) -> str:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in (*view.heads, *view.columns))
    lines, before = [], None
    for row in view.rows:
        names = (row.label,) if len(view.heads) == 1 else (row.group if row.group != before else "", row.label)
        css = ' class="first"' if len(view.heads) == 2 and row.group != before else ""
        before = row.group
        cells = "".join(f'<th scope="row">{escape(name)}</th>' for name in names)
        lines.append(f"<tr{css}>{cells}{''.join(_cell(entry) for entry in row.entries)}</tr>")
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def _cell(entry: Entry) -> str:
    if entry.mean is None:
        text = '<span class="soft">–</span>'
    else:
        spread = "" if entry.spread is None else f' <span class="soft">± {entry.spread:.2f}</span>'
        sign = {BEST: "●", LEVEL_WITH_BEST: "○"}.get(entry.mark, "")
        text = f'<span class="value">{entry.mean:.2f}</span>{spread}' + (
            f' <span class="sign">{sign}</span>' * bool(sign)
        )
    if entry.published is not None:
        difference = "" if entry.difference is None else f', <span class="{_way(entry)}">{entry.difference:+.2f}</span>'
        text += f'<br/><span class="soft">paper {entry.published:.2f}{difference}</span>'
    return f'<td class="{entry.mark or "plain"}" title="{escape(_tip(entry))}">{text}</td>'


def _way(entry: Entry) -> str:
    return "up" if (entry.difference or 0.0) >= 0 else "down"


def _tip(entry: Entry) -> str:
    """What is known of a cell."""
    if entry.mean is None:
        return "not computed"
    parts = [f"seeds: {', '.join(f'{score:.2f}' for score in entry.ours)}"]
    if entry.mark == BEST:
        parts.append("the best here")
    elif entry.mark and entry.p is not None:
        better = "not significantly worse than the best" if entry.mark == LEVEL_WITH_BEST else "worse than the best"
        parts.append(f"{better}, p = {entry.p:.3f}")
    if entry.seconds is not None:
        parts.append(f"{entry.seconds:.1f} s a fit")
    return "; ".join(parts)


# --------------------------------------------------------------------------- score by size


def _curves(view: View) -> str:
    """A chart for each direction, where the columns are sizes."""
    if not all(column.isdigit() for column in view.columns):
        return ""
    systems = list(dict.fromkeys(row.label for row in view.rows))
    groups = list(dict.fromkeys(row.group for row in view.rows))
    groups = groups[:1] if len(groups) == 2 else groups  # the average of one direction says nothing new
    charts = []
    for group in groups:
        rows = [row for row in view.rows if row.group == group]
        lines = [line for row in rows for line in _lines(row, view.columns, systems.index(row.label))]
        label = f"{view.title}, {group}: {view.about} by {view.above}. " + " ".join(_spoken(line) for line in lines)
        svg = line_chart([line for line in lines if line.dots], label, view.above, view.about.split(" in ")[0])
        if svg:
            charts.append(_figure(svg, group))
    if not charts:
        return ""
    names = "".join(f"<li>{swatch(i)}{escape(name)}</li>" for i, name in enumerate(systems))
    names += f"<li>{swatch(0, dashed=True)}published</li>" * view.compared
    legend = f'<ul class="legend">{names}<li class="soft">band: all seeds</li></ul>'
    return f'{legend}<div class="charts">{"".join(charts)}</div>'


def _lines(row: Row, sizes: Sequence[str], number: int) -> Iterator[Line]:
    """What was measured, and what was published."""
    at = [(float(size), entry) for size, entry in zip(sizes, row.entries, strict=True)]
    tip = partial("{}, {:g} points: {}".format, row.label)
    dots = [
        Dot(size, entry.mean, min(entry.ours), max(entry.ours), tip(size, f"{entry.mean:.2f}; {_tip(entry)}"))
        for size, entry in at
        if entry.mean is not None
    ]
    yield Line(row.label, number, dots)
    printed = [(size, entry.published) for size, entry in at if entry.published is not None]
    if printed and dots:
        marks = [Dot(size, value, value, value, tip(size, f"published {value:.2f}")) for size, value in printed]
        yield Line(f"{row.label}, published", number, marks, dashed=True)


def _spoken(line: Line) -> str:
    return f"{line.name}: {', '.join(f'{dot.x:g} points {dot.y:.1f}' for dot in line.dots)}."


# --------------------------------------------------------------------------- claims


def _claims(report: Report) -> str:
    if not report.claims:
        return ""
    rows = "".join(_claim(each) for each in report.claims)
    return (
        f'<section id="claims"><h2>{wording.CLAIMS}</h2><p>{escape(wording.claims(report))}</p>'
        f'<ul class="claims">{rows}</ul></section>'
    )


def _claim(claim: Outcome) -> str:
    css, sign = _SIGNS.get(claim.verdict, ("open", "?"))
    quote = f"<q>{escape(claim.says)}</q> " if claim.says else ""
    return (
        f'<li><span class="verdict {css}"><span aria-hidden="true">{sign}</span> {claim.verdict}</span>'
        f"<div><strong>{escape(claim.name)}</strong><br/>{escape(claim.numbers())}<br/>"
        f'<span class="soft">{quote}{escape(claim.where)}</span></div></li>'
    )


# --------------------------------------------------------------------------- time and score


def _timed(report: Report) -> bool:
    return bool(wording.times(report))


def _times(report: Report) -> str:
    if not _timed(report):
        return ""
    charts = "".join(_time_chart(view) for view in report.views)
    head = "".join(f'<th scope="col">{name}</th>' for name in wording.TIME_HEAD)
    rows = "".join(
        "<tr>"
        + "".join(f'<th scope="row">{escape(text)}</th>' for text in (table, system))
        + "".join(f"<td>{text}</td>" for text in figures)
        + "</tr>"
        for table, system, *figures in wording.times(report)
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    table = f'<div class="scroll" tabindex="0" role="region" aria-label="Seconds">{table}</div>'
    return (
        f'<section id="times"><h2>Time and score</h2><p>{escape(wording.places(report))} In the charts, averages over '
        f"the directions: up is better, left is quicker.</p>{charts}{table}</section>"
    )


def _time_chart(view: View) -> str:
    """Every system, with every size, on average over the directions."""
    found = [
        (row.label, column, entry)
        for row in view.rows
        for column, entry in zip(view.columns, row.entries, strict=True)
        if AVERAGE in (row.group, column) and entry.mean is not None and entry.seconds is not None
    ]
    if not found:
        return ""
    systems = list(dict.fromkeys(system for system, _, _ in found))
    dots, names = [], []
    for number, (system, column, entry) in enumerate(found, 1):
        name = system if column == AVERAGE else f"{system}, {column}"
        mean, seconds = entry.mean or 0.0, entry.seconds or 0.0
        colour = systems.index(system)
        dots.append((number, colour, seconds, mean, f"{name}: {mean:.2f}, {seconds:.1f} s"))
        names.append(
            f'<li><span class="badge c{colour % 7}">{number}</span> {escape(name)} '
            f'<span class="soft">{mean:.1f}, {seconds:.1f} s</span></li>'
        )
    label = f"{view.title}: score by seconds. " + ". ".join(tip for *_, tip in dots)
    svg = numbered_dots(dots, label, "seconds a fit", view.about.split(" in ")[0])
    return (
        f'<h3>{escape(view.title)}</h3><div class="beside">{_figure(svg)}<ol class="names">{"".join(names)}</ol></div>'
    )


# --------------------------------------------------------------------------- pairs of languages


def _pairs(report: Report) -> str:
    parts = "".join(_pair_tables(view) for view in report.views)
    if not parts:
        return ""
    return (
        '<section id="pairs"><h2>Pairs of languages</h2><p>From the language of the row to that of the column, by the '
        f"best system of the table or the one chosen; with several sizes the best of them.</p>{parts}</section>"
    )


def _pair_tables(view: View) -> str:
    scores = _by_direction(view)
    if not scores:
        return ""
    systems = sorted(scores, key=lambda name: (-len(scores[name]), -statistics.mean(scores[name].values())))
    every = [score for found in scores.values() for score in found.values()]
    low, high = min(every), max(every)
    tables = [(name, _heat(scores[name], low, high, f"{view.title}, {name}")) for name in systems]
    return _chooser("System", tables, view.title)


def _chooser(label: str, choices: Sequence[tuple[str, str]], title: str = "") -> str:
    """One of several pictures, the first unless another is chosen."""
    head = f"<h3>{escape(title)}</h3>" if title else ""
    options = "".join(f'<option value="{i}">{escape(name)}</option>' for i, (name, _) in enumerate(choices))
    hidden = ("", *[' hidden="hidden"'] * (len(choices) - 1))
    pictures = "".join(
        f'<div class="choice"{attribute}>{picture}</div>'
        for attribute, (_, picture) in zip(hidden, choices, strict=True)
    )
    return f'<div class="chooser">{head}<label>{label} <select>{options}</select></label>{pictures}</div>'


def _by_direction(view: View) -> dict[str, dict[str, float]]:
    """The best mean of each system on each direction."""
    found: dict[str, dict[str, float]] = {}
    for row in view.rows:
        for column, entry in zip(view.columns, row.entries, strict=True):
            direction = row.group or column
            if direction != AVERAGE and entry.mean is not None:
                mine = found.setdefault(row.label, {})
                mine[direction] = max(entry.mean, mine.get(direction, 0.0))
    return found


def _heat(scores: Mapping[str, float], low: float, high: float, label: str) -> str:
    """A table for each corpus: languages by languages."""
    parts = []
    for name in dict.fromkeys(languages(direction)[0] for direction in scores):
        here = {languages(way)[1:]: score for way, score in scores.items() if languages(way)[0] == name}
        rows, columns = (list(dict.fromkeys(pair[side] for pair in here)) for side in (0, 1))
        head = "".join(f'<th scope="col">→ {escape(lang)}</th>' for lang in sorted(columns))
        lines = "".join(
            f'<tr><th scope="row">{escape(src)}</th>'
            + "".join(_heat_cell(here.get((src, tgt)), low, high, f"{src} → {tgt}") for tgt in sorted(columns))
            + "</tr>"
            for src in sorted(rows)
        )
        caption = f"<caption>{escape(name)}</caption>" if name else ""
        body = f"{caption}<thead><tr><td></td>{head}</tr></thead><tbody>{lines}</tbody>"
        parts.append(f'<table class="heat" aria-label="{escape(label)}">{body}</table>')
    return f'<div class="heats">{"".join(parts)}</div>'


def _heat_cell(score: float | None, low: float, high: float, name: str) -> str:
    if score is None:
        return '<td class="none"></td>'
    share = 0.5 if high <= low else (score - low) / (high - low)
    return f'<td style="--v:{share:.2f}" title="{escape(f"{name}: {score:.2f}")}">{score:.1f}</td>'


# --------------------------------------------------------------------------- plans


def _plans(plans: Sequence[PlanPicture]) -> str:
    if not plans:
        return ""
    pictures = [(each.direction, _plan(each)) for each in plans]
    return (
        '<section id="plans"><h2>Transport plans</h2><p>The plan between few centres of the two spaces after alignment '
        "(k-means++ and one step of Lloyd on the most frequent words; each centre has the name of the word nearest to "
        "it). Similar source centres are beside each other, target centres where their mass comes from: spaces that "
        f"match show a diagonal.</p>{_chooser('Direction', pictures)}</section>"
    )


def _plan(picture: PlanPicture) -> str:
    plan = unpack(picture.plan).reshape(len(picture.src), len(picture.tgt))
    matched = [
        f"{word} to {picture.tgt[plan[i].argmax()]}" for i, word in enumerate(picture.src) if plan[i].max() > 127
    ]
    label = f"Transport plan of {picture.direction}, {picture.about}. Largest entries: {', '.join(matched) or 'none'}"
    svg = plan_chart(plan, picture.src, picture.tgt, label)
    return f'<div class="scroll">{_figure(svg, f"{picture.direction}: {picture.about}")}</div>'


# --------------------------------------------------------------------------- remarks


def _remarks(report: Report) -> str:
    parts = [
        f"<h2>{title}</h2><ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>"
        for title, texts in (("Failed", report.failures), ("Missing", report.missing))
        if texts
    ]
    if wording.cites(report):
        parts.append(f"<p>Published figures: {escape(report.citation)}</p>")
    return f"<section>{''.join(parts)}</section>" if parts else ""
