"""The report on an experiment as an HTML page: tables, charts, and how the claims of the paper come out.

The page is one file. Its script shows tooltips and switches between pictures; without it the content is still there.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from qwp.experiments.cells import unpack
from qwp.experiments.claims import DOES_NOT, HOLDS, ClaimOutcome
from qwp.experiments.data import languages
from qwp.experiments.measured import BEST, LEVEL_WITH_BEST
from qwp.experiments.paper import AVERAGE
from qwp.experiments.report import (
    CLAIMS_TITLE,
    TIME_HEAD,
    Entry,
    ExperimentReport,
    PlanPicture,
    Row,
    TableView,
    about_claims,
    about_table,
    about_times,
    cites,
    time_rows,
)
from qwp.showing import html
from qwp.showing.charts import Dot, NumberedDot, PlotLine, banded_lines, colour, numbered_dots, plan_chart, swatch
from qwp.showing.html import HEAT, SERIES, Markup, element, join
from qwp.version import __version__

_COLOURS = "".join(f".c{i}{{--c:var(--c{i})}}" for i in range(SERIES))
CSS = f"""
{_COLOURS}
header,nav,main{{max-width:1180px;margin:0 auto;padding:0 16px}}
header{{padding-top:28px}}
h1{{margin:0}}
h2{{margin:0 0 4px;font-size:1.2rem}}
h3{{margin:18px 0 4px;font-size:1rem}}
p{{margin:4px 0 12px;color:var(--soft);max-width:80ch}}
nav{{display:flex;flex-wrap:wrap;gap:6px 14px}}
main{{padding-bottom:40px}}
table{{font-size:.9rem}}
th,td{{padding:5px 10px;text-align:left;white-space:nowrap;vertical-align:top}}
thead th{{border-bottom:1px solid var(--rule)}}
tr.first>*{{border-top:1px solid var(--rule)}}
td.best .value{{font-weight:700}}
td.level .value{{font-style:italic}}
thead th:first-child,tbody th:first-child{{position:sticky;left:0;background:var(--card)}}
.sign{{color:var(--accent)}}
.soft{{color:var(--soft);font-size:.88em}}
.up{{color:var(--ok)}}.down{{color:var(--bad)}}
figcaption{{font-weight:600;font-size:.9rem}}
.charts{{display:grid;grid-template-columns:repeat(auto-fit,minmax(270px,1fr));gap:12px;margin:8px 0 16px}}
.charts figure{{max-width:460px}}
svg .line{{stroke:var(--c)}}
svg .dashed{{stroke-dasharray:4 4;stroke-width:1.3}}
svg .band{{fill:var(--c);fill-opacity:.14}}
svg .dot{{fill:var(--c)}}
svg .hollow{{fill:var(--card);stroke:var(--c)}}
svg .number{{fill:var(--on);font-size:10px;font-weight:700}}
.legend,.claims,.names{{list-style:none;padding:0;margin:6px 0}}
.legend{{display:flex;flex-wrap:wrap;gap:4px 18px;font-size:.9rem}}
.legend li{{display:flex;align-items:center;gap:6px}}
.swatch{{width:26px;flex:none}}
.claims li{{display:grid;grid-template-columns:11.5em 1fr;gap:4px 14px;padding:10px 0;
 border-top:1px solid var(--rule)}}
.verdict{{font-weight:600;font-size:.9rem}}
.verdict.yes{{color:var(--ok)}}.verdict.no{{color:var(--bad)}}.verdict.open{{color:var(--soft)}}
.beside{{display:grid;grid-template-columns:minmax(0,560px) minmax(0,1fr);gap:16px;align-items:center;
 margin-bottom:12px}}
.names{{font-size:.88rem;columns:2 210px}}
.names li{{break-inside:avoid;padding:1px 0 1px 2em;text-indent:-2em}}
.names .badge{{text-indent:0}}
.badge{{display:inline-block;min-width:1.7em;text-align:center;border-radius:1em;background:var(--c);
 color:var(--on);font-size:.8em;font-weight:700}}
select{{font:inherit;max-width:100%;color:inherit;background:var(--bg);border:1px solid var(--rule);
 border-radius:6px;padding:3px 6px}}
.heats{{display:flex;align-items:flex-start;flex-wrap:wrap;gap:20px;margin:10px 0}}
{HEAT}svg.plan{{max-width:640px;min-width:520px}}
.plan .empty{{fill:none;stroke:var(--rule)}}
.plan .mass{{fill:var(--heat)}}
.plan .word{{fill:var(--ink);font-size:9.5px;stroke:none}}
#tip{{position:fixed;z-index:9;max-width:min(320px,90vw);padding:6px 9px;border-radius:6px;background:var(--ink);
 color:var(--bg);font-size:.82rem;pointer-events:none}}
[hidden]{{display:none!important}}
@media (max-width:760px){{section{{padding:14px 12px}}.beside,.claims li{{grid-template-columns:1fr}}
 h1{{font-size:1.4rem}}
 tbody th:first-child{{white-space:normal;min-width:5.5em}}.heat td,.heat th{{padding:7px 8px}}}}
@media print{{body{{font-size:11px}}nav,label{{display:none}}section{{border:0;padding:0}}
 figure,.claims li,tr{{break-inside:avoid}}.scroll{{overflow:visible}}}}
"""
# `html.page` forbids `<` and `&` here: XML reads them as markup.
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


def page(report: ExperimentReport) -> str:
    """Return the whole page."""
    done, wanted = (sum(getattr(view, name) for view in report.views) for name in ("done", "wanted"))
    filled = f"{done} of {wanted} cells are computed. qwp {__version__}."
    main = element(
        "main",
        *(_section(view) for view in report.views),
        _claims(report),
        _times(report),
        _pairs(report),
        _plans(report.plans),
        _remarks(report),
    )
    header = element("header", element("h1", report.title), element("p", filled))
    tip = element("div", id="tip", role="tooltip", hidden="hidden")
    return html.page(report.title, join(header, _contents(report), main, tip), css=CSS, script=SCRIPT)


def _contents(report: ExperimentReport) -> Markup:
    links = [(view.name, view.title) for view in report.views]
    links += [("claims", CLAIMS_TITLE)] * bool(report.claims) + [("times", "Time and score")] * _timed(report)
    links += [
        *[("pairs", "Pairs of languages")] * bool(_pairs(report)),
        *[("plans", "Transport plans")] * bool(report.plans),
    ]
    return element("nav", *(element("a", title, href=f"#{name}") for name, title in links), aria_label="Contents")


def _soft(*content: object) -> Markup:
    return element("span", *content, class_="soft")


# --------------------------------------------------------------------------- a table


def _section(view: TableView) -> Markup:
    about = about_table(view, best="bold with ●", level="italics with ○")
    charts = _curves(view) if len(view.heads) == 2 else ""
    table = html.scrollable(_figures(view), view.title)
    return element("section", element("h2", view.title), element("p", about), charts, table, id=view.name)


def _figures(view: TableView) -> Markup:
    head = [element("th", name, scope="col") for name in (*view.heads, *view.columns)]
    lines, before = [], None
    for row in view.rows:
        names = (row.label,) if len(view.heads) == 1 else (row.group if row.group != before else "", row.label)
        css = "first" if len(view.heads) == 2 and row.group != before else None
        before = row.group
        cells = [element("th", name, scope="row") for name in names] + [_cell(entry) for entry in row.entries]
        lines.append(element("tr", *cells, class_=css))
    return element("table", element("thead", element("tr", *head)), element("tbody", *lines))


def _cell(entry: Entry) -> Markup:
    if entry.mean is None:
        content = _soft("–")
    else:
        spread = "" if entry.spread is None else join(" ", _soft(f"± {entry.spread:.2f}"))
        sign = {BEST: "●", LEVEL_WITH_BEST: "○"}.get(entry.mark)
        mark = "" if sign is None else join(" ", element("span", sign, class_="sign"))
        content = join(element("span", f"{entry.mean:.2f}", class_="value"), spread, mark)
    if entry.published is not None:
        way = "up" if (entry.difference or 0.0) >= 0 else "down"
        difference = element("span", f"{entry.difference:+.2f}", class_=way) if entry.difference is not None else ""
        paper = _soft(f"paper {entry.published:.2f}", ", " if difference else "", difference)
        content = join(content, element("br"), paper)
    return element("td", content, class_=entry.mark or "plain", title=_tip(entry))


def _tip(entry: Entry) -> str:
    """Return the tooltip of a cell."""
    if entry.mean is None:
        return "not computed"
    parts = [f"seeds: {', '.join(f'{score:.2f}' for score in entry.ours)}"]
    if entry.mark == BEST:
        parts.append("the best here")
    elif entry.mark and entry.p is not None:
        better = "not significantly worse than the best" if entry.mark == LEVEL_WITH_BEST else "worse than the best"
        parts.append(f"{better}, p = {entry.p:.3f}")
    if entry.seconds is not None:
        parts.append(f"{entry.seconds:.1f} s per fit")
    return "; ".join(parts)


# --------------------------------------------------------------------------- score by size


def _curves(view: TableView) -> Markup:
    """Return a chart for each direction if the columns are sizes."""
    if not all(column.isdigit() for column in view.columns):
        return Markup()
    systems = list(dict.fromkeys(row.label for row in view.rows))
    groups = list(dict.fromkeys(row.group for row in view.rows))
    groups = groups[:1] if len(groups) == 2 else groups  # the average of one direction repeats it
    charts = []
    for group in groups:
        rows = [row for row in view.rows if row.group == group]
        lines = [line for row in rows for line in _lines(row, view.columns, systems.index(row.label))]
        label = f"{view.title}, {group}: {view.about} by {view.above}. " + " ".join(_spoken(line) for line in lines)
        chart = banded_lines([line for line in lines if line.dots], label, view.above, view.about.split(" in ")[0])
        if chart:
            charts.append(html.figure(chart, group))
    if not charts:
        return Markup()
    names = [element("li", swatch(i), name) for i, name in enumerate(systems)]
    names += [element("li", swatch(0, dashed=True), "published")] * view.compared
    legend = element("ul", *names, element("li", "band: all seeds", class_="soft"), class_="legend")
    return join(legend, element("div", *charts, class_="charts"))


def _lines(row: Row, sizes: Sequence[str], number: int) -> Iterator[PlotLine]:
    """Yield the line of the measured scores and that of the published ones."""
    at = [(float(size), entry) for size, entry in zip(sizes, row.entries, strict=True)]
    tip = partial("{}, {:g} points: {}".format, row.label)
    dots = [
        Dot(size, entry.mean, min(entry.ours), max(entry.ours), tip(size, f"{entry.mean:.2f}; {_tip(entry)}"))
        for size, entry in at
        if entry.mean is not None
    ]
    yield PlotLine(row.label, number, dots)
    printed = [(size, entry.published) for size, entry in at if entry.published is not None]
    if printed and dots:
        marks = [Dot(size, value, value, value, tip(size, f"published {value:.2f}")) for size, value in printed]
        yield PlotLine(f"{row.label}, published", number, marks, dashed=True)


def _spoken(line: PlotLine) -> str:
    return f"{line.name}: {', '.join(f'{dot.x:g} points {dot.value:.1f}' for dot in line.dots)}."


# --------------------------------------------------------------------------- claims


def _claims(report: ExperimentReport) -> Markup:
    if not report.claims:
        return Markup()
    claims = element("ul", *map(_claim, report.claims), class_="claims")
    about = element("p", about_claims(report))
    return element("section", element("h2", CLAIMS_TITLE), about, claims, id="claims")


def _claim(claim: ClaimOutcome) -> Markup:
    css, sign = _SIGNS.get(claim.verdict, ("open", "?"))
    quote = join(element("q", claim.says), " ") if claim.says else ""
    mark = element("span", sign, aria_hidden="true")
    about = element("div", element("strong", claim.name), element("br"), claim.numbers(), element("br"))
    return element(
        "li",
        element("span", mark, " ", claim.verdict, class_=f"verdict {css}"),
        element("div", about, _soft(quote, claim.where)),
    )


# --------------------------------------------------------------------------- time and score


def _timed(report: ExperimentReport) -> bool:
    return bool(time_rows(report))


def _times(report: ExperimentReport) -> Markup:
    if not _timed(report):
        return Markup()
    rows = [
        [element("th", table, scope="row"), element("th", system, scope="row"), *figures]
        for table, system, *figures in time_rows(report)
    ]
    table = html.scrollable(html.table(rows, TIME_HEAD, style=None), "Seconds")
    about = f"{about_times(report)} The charts show averages over the directions: up is better, left is faster."
    charts = [_time_chart(view) for view in report.views]
    return element("section", element("h2", "Time and score"), element("p", about), *charts, table, id="times")


def _time_chart(view: TableView) -> Markup:
    """Return a chart of every system with every size, averaged over the directions."""
    found = [
        (row.label, column, entry)
        for row in view.rows
        for column, entry in zip(view.columns, row.entries, strict=True)
        if AVERAGE in (row.group, column) and entry.mean is not None and entry.seconds is not None
    ]
    if not found:
        return Markup()
    systems = list(dict.fromkeys(system for system, _, _ in found))
    dots, names = [], []
    for number, (system, column, entry) in enumerate(found, 1):
        name = system if column == AVERAGE else f"{system}, {column}"
        mean, seconds = entry.mean or 0.0, entry.seconds or 0.0
        index = systems.index(system)
        dots.append(NumberedDot(number, index, seconds, mean, f"{name}: {mean:.2f}, {seconds:.1f} s"))
        badge = element("span", number, class_=f"badge {colour(index)}")
        names.append(element("li", badge, f" {name} ", _soft(f"{mean:.1f}, {seconds:.1f} s")))
    label = f"{view.title}: score by seconds. " + ". ".join(dot.tip for dot in dots)
    chart = numbered_dots(dots, label, "seconds per fit", view.about.split(" in ")[0])
    content = element("div", html.figure(chart), element("ol", *names, class_="names"), class_="beside")
    return join(element("h3", view.title), content)


# --------------------------------------------------------------------------- pairs of languages


def _pairs(report: ExperimentReport) -> Markup:
    tables = [_pair_tables(view) for view in report.views]
    if not any(tables):
        return Markup()
    about = (
        "From the language of the row to that of the column, by the best system of the table or the one you choose. "
        "A table with several sizes shows the best of them."
    )
    return element("section", element("h2", "Pairs of languages"), element("p", about), *tables, id="pairs")


def _pair_tables(view: TableView) -> Markup:
    scores = _several_a_corpus(_by_direction(view))
    if not scores:
        return Markup()
    systems = sorted(scores, key=lambda name: (-len(scores[name]), -statistics.mean(scores[name].values())))
    every = [score for found in scores.values() for score in found.values()]
    low, high = min(every), max(every)
    tables = [(name, _heat_maps(scores[name], low, high, f"{view.title}, {name}")) for name in systems]
    return _chooser("System", tables, view.title)


def _chooser(label: str, choices: Sequence[tuple[str, Markup]], title: str = "") -> Markup:
    """Return a menu of pictures that shows the first one until the user chooses another."""
    select = element("select", *(element("option", name, value=i) for i, (name, _) in enumerate(choices)))
    pictures = [
        element("div", picture, class_="choice", hidden="hidden" if i else None)
        for i, (_, picture) in enumerate(choices)
    ]
    head = element("h3", title) if title else ""
    return element("div", head, element("label", label, " ", select), *pictures, class_="chooser")


def _several_a_corpus(scores: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Leave out the corpora with a single direction: the table has that figure, and a map of one cell says no more."""
    counts = Counter(languages(way)[0] for way in {way for found in scores.values() for way in found})
    kept = {
        name: {way: score for way, score in found.items() if counts[languages(way)[0]] > 1}
        for name, found in scores.items()
    }
    return {name: found for name, found in kept.items() if found}


def _by_direction(view: TableView) -> dict[str, dict[str, float]]:
    """Return the best mean of each system on each direction."""
    found: dict[str, dict[str, float]] = {}
    for row in view.rows:
        for column, entry in zip(view.columns, row.entries, strict=True):
            direction = row.group or column
            if direction != AVERAGE and entry.mean is not None:
                mine = found.setdefault(row.label, {})
                mine[direction] = max(entry.mean, mine.get(direction, 0.0))
    return found


def _heat_maps(scores: Mapping[str, float], low: float, high: float, label: str) -> Markup:
    """Return a table of source by target languages for each corpus."""
    tables = []
    for corpus in dict.fromkeys(languages(direction)[0] for direction in scores):
        here = {languages(way)[1:]: score for way, score in scores.items() if languages(way)[0] == corpus}
        sources, targets = (sorted({pair[side] for pair in here}) for side in (0, 1))
        rows = [
            [
                element("th", src, scope="row"),
                *(_heat_cell(here.get((src, tgt)), low, high, f"{src} → {tgt}") for tgt in targets),
            ]
            for src in sources
        ]
        head = [element("td"), *(element("th", f"→ {lang}", scope="col") for lang in targets)]
        tables.append(html.table(rows, head, caption=corpus, class_="heat", aria_label=label))
    return element("div", *tables, class_="heats")


def _heat_cell(score: float | None, low: float, high: float, name: str) -> Markup:
    if score is None:
        return element("td", class_="none")
    share = 0.5 if high <= low else (score - low) / (high - low)
    return html.heat_cell(f"{score:.1f}", share, f"{name}: {score:.2f}")


# --------------------------------------------------------------------------- plans


def _plans(plans: Sequence[PlanPicture]) -> Markup:
    if not plans:
        return Markup()
    about = (
        "The transport plan between a few centres of both spaces after alignment: k-means++ and one Lloyd step on the "
        "most frequent words. Each centre is named after its nearest word. Similar source centres are side by side, "
        "and target centres follow their mass, so spaces that match show a diagonal."
    )
    choice = _chooser("Direction", [(each.direction, _plan(each)) for each in plans])
    return element("section", element("h2", "Transport plans"), element("p", about), choice, id="plans")


def _plan(picture: PlanPicture) -> Markup:
    plan = unpack(picture.plan).reshape(len(picture.src), len(picture.tgt))
    matched = [
        f"{word} to {picture.tgt[plan[i].argmax()]}" for i, word in enumerate(picture.src) if plan[i].max() > 127
    ]
    caption = f"{picture.direction}: {picture.about}"
    label = f"Transport plan of {picture.direction}, {picture.about}. Largest entries: {', '.join(matched) or 'none'}"
    drawing = plan_chart(plan, picture.src, picture.tgt, label)
    return html.scrollable(html.figure(drawing, caption), f"Transport plan of {picture.direction}")


# --------------------------------------------------------------------------- remarks


def _remarks(report: ExperimentReport) -> Markup:
    parts = []
    for title, texts in (("Failed", report.failures), ("Missing", report.missing)):
        if texts:
            parts += [element("h2", title), element("ul", *(element("li", text) for text in texts))]
    if cites(report):
        parts.append(element("p", f"Published figures: {report.citation}"))
    return element("section", *parts) if parts else Markup()
