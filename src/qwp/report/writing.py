"""The report on an alignment: its sections, the page, and its pictures one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from qwp.errors import InputError, installed, one_of
from qwp.judging.evaluation import DENOMINATORS, Evaluation
from qwp.report import page
from qwp.report.analysis import (
    GROUPS,
    MAX_WORDS,
    Analysis,
    Hubness,
    MeasuredShare,
    Occurrences,
    RankBand,
    Reliability,
    analyse,
)
from qwp.report.page import Section, render
from qwp.report.word_map import WordMap
from qwp.results.alignment import Alignment
from qwp.results.summary import quality_rows, recorded, times
from qwp.search.retrieval import DEFAULT_CSLS_K
from qwp.showing import svg
from qwp.showing.charts import Bars, Dot, LineChart, Picture, Ranges
from qwp.showing.html import Markup, join
from qwp.showing.svg import percent
from qwp.spaces.io.files import atomic_write, check_folder
from qwp.spaces.lexicon import Lexicon, PairsOfWords


def pictures(analysis: Analysis) -> dict[str, Picture]:
    """Return all pictures that can be drawn, by file name."""
    found: dict[str, Picture] = {"bands": bands(analysis.bands)}
    if len(analysis.evaluations) == 1:
        found["p-at-k"] = p_at_k(*analysis.evaluations.values())
    if analysis.reliability is not None:
        found["reliability"] = reliability(analysis.reliability)
    found["hubness"] = hubness(analysis.hubness)
    found.update(curves(analysis.alignment.history))
    found["map"] = WordMap(analysis.points)
    return {name: picture for name, picture in found.items() if picture.svg() is not None}


def curves(history: Sequence[dict[str, Any]]) -> dict[str, LineChart]:
    """Return the convergence curves of a fit by stage and field."""
    return {
        f"{each.stage}-{each.field}": LineChart(each.title, each.x_label, each.y_label, each.x, each.y)
        for each in recorded(history)
    }


def bands(found: Sequence[RankBand]) -> Ranges:
    """Return a chart of the correct translations from frequent to rare words, estimated and measured."""
    estimated, measured = [], []
    for position, band in enumerate(found, start=1):
        words = f"words {band.first:,} to {band.last:,}"
        if band.estimated is not None:
            share = band.estimated
            tip = f"{words}: about {percent(share.p1)} % ({percent(share.low)} to {percent(share.high)})"
            estimated.append(Dot(position - 0.1, share.p1, share.low, share.high, tip))
        if band.measured is not None:
            of = band.measured
            tip = f"{words}: {percent(of.share)} % ({percent(of.low)} to {percent(of.high)}) of {of.words:,}"
            measured.append(Dot(position + 0.1, of.share, of.low, of.high, tip))
    intervals = "90 % (estimated) and 95 % (measured) intervals" if measured else "90 % intervals"
    series = [("estimated", estimated), ("measured with the lexicon", measured)]
    return Ranges(
        "Correct translations by frequency",
        "rank of the source word, up to",
        "correct, %",
        (0.4, len(found) + 0.6),
        [(float(position), _rank(band.last)) for position, band in enumerate(found, start=1)],
        series if measured else series[:1],
        note=f"from frequent to rare words, with {intervals}",
    )


def _rank(last: int) -> str:
    return f"{last // 1000}k" if last >= 10_000 and last % 1000 == 0 else f"{last:,}"


def reliability(found: Reliability) -> Ranges:
    """Return a reliability diagram: the share of correct translations by confidence."""
    dots = [
        Dot(
            each.confidence,
            each.measured.share,
            each.measured.low,
            each.measured.high,
            f"confidence {100 * each.low:.0f} to {100 * each.high:.0f} %, mean {100 * each.confidence:.0f} %: "
            f"{percent(each.measured.share)} % correct of {each.measured.words:,}",
        )
        for each in found.bins
    ]
    return Ranges(
        "Reliability of the confidence",
        "confidence, %",
        "correct, %",
        (0.0, 1.0),
        [(tenth / 10, f"{10 * tenth}") for tenth in range(0, 11, 2)],
        [("words of the lexicon", dots)],
        note=f"underconfident above the line, overconfident below it; calibration error {100 * found.error:.1f} points",
        ideal="confidence equals share correct",
    )


def hubness(found: Hubness) -> Bars:
    """Return a chart of the target words by the number of source words that have them among their nearest."""
    return Bars(
        "Hubs before and after CSLS",
        f"source words that have it among their {found.k} nearest",
        "target words, %",
        GROUPS,
        [("cosine", found.cosine.shares), ("CSLS", found.csls.shares)],
        note=f"skewness {found.cosine.skewness:.1f} by cosine, {found.csls.skewness:.1f} by CSLS; "
        f"{found.queries:,} source words",
    )


def default_title(analysis: Analysis) -> str:
    """Return a title with the names of both sides."""
    src, tgt = _names(analysis)
    return f"{src} and {tgt} in one space"


def _names(analysis: Analysis) -> tuple[str, str]:
    of = analysis.alignment.provenance
    return of.src.known_name or "source", of.tgt.known_name or "target"


def sections(analysis: Analysis, more: Sequence[tuple[str, str]] = ()) -> list[Section]:
    """Return the sections of the page. more: further key figures."""
    drawn = pictures(analysis)
    convergence = [drawn[name] for name in curves(analysis.alignment.history) if name in drawn]
    facts = page.facts([*_facts(analysis), *more], "Key figures")
    found = [
        Section("figures", "Key figures", join(facts, _truncation_note(analysis))),
        Section("scores", "Scores", join(_scores(analysis), _left_out(analysis))),
        Section("bands", "Frequent and rare words", _bands(analysis.bands)),
    ]
    if analysis.reliability is not None:
        found += [
            Section("reliability", "Reliability", _reliability(analysis.reliability)),
            Section("mistakes", "The most confident mistakes", _mistakes(analysis)),
        ]
    examples = [(each.word, each.translations, each.confidence, each.right) for each in analysis.examples]
    return [
        *found,
        Section("translations", "Example translations", page.translations(examples)),
        Section("map", "Map of word pairs", _map(analysis), missing="No word pairs to draw."),
        Section("hubness", "Hubs", _hubness(analysis.hubness)),
        Section("curves", "Convergence", page.charts(convergence), missing="No curves were recorded."),
    ]


def headline(found: Evaluation) -> str:
    """Format P@1 with its interval and its denominator."""
    coverage, score = found.coverage, found.scores["csls"].covered["P@1"]
    interval = f", {100 * score.low:.1f} to {100 * score.high:.1f} %" if score.low < score.high else ""
    return (
        f"{100 * score.value:.1f} %{interval} (CSLS, over {coverage.covered_source_words:,} covered of "
        f"{coverage.source_words:,} source words, {100 * coverage.share:.1f} %)"
    )


def measured(analysis: Analysis) -> str:
    """Return a sentence with the share of right translations that the lexicons measure; "" without one."""
    found = []
    for name, each in analysis.evaluations.items():
        score = each.scores["csls"].covered["P@1"]
        share = f"{100 * score.value:.1f} % ({100 * score.low:.1f} to {100 * score.high:.1f} %)"
        of = f" of {name}" if len(analysis.evaluations) > 1 else ""
        found.append(f"{share} of {each.coverage.covered_source_words:,} words{of}")
    return f"Measured with a lexicon: the translation is right for {'; '.join(found)}. " if found else ""


def _left_out(analysis: Analysis) -> Markup | str:
    """Return which words no score counts."""
    several = len(analysis.left_out) > 1
    notes = [
        f"{count:,} source words{f' of {name}' if several else ''} are left out of all figures, because the fit was "
        f"given their pairs{'' if name in analysis.evaluations else '; no words are left to score with'}."
        for name, count in analysis.left_out.items()
        if count
    ]
    if not analysis.anchors_known:
        notes.append(
            "Caution: the fit was given known pairs that are not found beside the result. They may be among the words "
            "that are scored."
        )
    return page.after(" ".join(notes)) if notes else ""


def p_at_k(found: Evaluation) -> Ranges:
    """Return a chart of the share of words with a right translation among the first k."""
    steps = (1, 2, 3, 5, 10, 20, 50)
    series: list[tuple[str, list[Dot]]] = []
    for name, ranks in found.ranks.items():
        first = ranks.ranks[np.cumsum(ranks.golds) - ranks.golds]
        offset = 0.1 * (len(series) - 0.5)
        shares = [MeasuredShare.of(int((first <= k).sum()), len(first)) for k in steps]
        dots = [
            Dot(at + offset, of.share, of.low, of.high, f"{name}, P@{k}: {percent(of.share)} % of {of.words:,}")
            for at, (k, of) in enumerate(zip(steps, shares, strict=True))
        ]
        series.append((name, dots))
    return Ranges(
        "P@k",
        "k",
        "right among the first k, %",
        (-0.5, len(steps) - 0.5),
        [(float(at), str(k)) for at, k in enumerate(steps)],
        series[:2],
        note="covered words; lines are 95 % intervals",
    )


def _facts(analysis: Analysis) -> list[tuple[str, str]]:
    alignment = analysis.alignment
    of = alignment.provenance
    several = len(analysis.evaluations) > 1
    words = zip(_names(analysis), analysis.all_words, strict=True)
    lexicon = ", with a lexicon" if of.supervision.get("lexicon") else ""
    return [
        *((f"P@1, {name}" if several else "P@1", headline(e)) for name, e in analysis.evaluations.items()),
        ("words", ", ".join(f"{count:,} {name}" for name, count in words)),
        ("dimensions", str(alignment.src.dim)),
        ("method", f"{of.method}, seed {of.seed}{lexicon}"),
        *([] if of.order == "given" else [("order of words", "estimated from the vectors")]),
        *quality_rows(analysis.quality),
        ("alignment", times(of.seconds)),
    ]


def _truncation_note(analysis: Analysis) -> Markup | str:
    if analysis.words == analysis.all_words:
        return ""
    src, tgt = (f"{count:,}" for count in analysis.words)
    return page.after(
        f"All figures below are for the {src} and {tgt} most frequent words. Fewer words compete than in the whole "
        "vocabularies, so scores are slightly higher. `--max-words` changes the limit; `qwp evaluate` scores all words."
    )


_NO_LEXICON = (
    "The report was made without a lexicon, so it has no scores, no reliability of the confidence and no mistakes. "
    "`qwp report DIR --lexicon FILE` adds them. FILE has a word and a translation per line; `qwp data list` names "
    "dictionaries to download."
)


def _scores(analysis: Analysis) -> Markup | str:
    evaluations = analysis.evaluations
    if not evaluations:
        return "" if analysis.left_out else page.lead(_NO_LEXICON)
    several = len(evaluations) > 1
    rows = [
        {**({"lexicon": name} if several else {}), **row}
        for name, found in evaluations.items()
        for row in score_rows(found)
    ]
    note = page.after(
        "In percent, with 95 % bootstrap intervals. Every target word competes; ties count against the map."
    )
    drawn = "" if several else page.charts([p_at_k(*evaluations.values())])
    return join(page.table(rows, "Scores"), note, drawn)


def score_rows(found: Evaluation) -> list[dict[str, object]]:
    """Return one row for each retrieval method and denominator, in percent."""
    return [
        {
            "retrieval": method,
            "out of": words,
            **{
                "MAP (XLING)" if name == "MAP" else name: score.percent()
                for name, score in getattr(scores, key).items()
            },
        }
        for method, scores in found.scores.items()
        for key, words in DENOMINATORS.items()
    ]


def _bands(found: Sequence[RankBand]) -> Markup:
    picture = bands(found)
    rows = []
    for band in found:
        row: dict[str, object] = {"words": f"{band.first:,} to {band.last:,}"}
        if band.estimated is not None:
            row["estimated correct, %"] = str(band.estimated).replace(" %", "")
        if band.measured is not None:
            of = band.measured
            row["in the lexicon"] = of.words
            row["measured correct, %"] = f"{100 * of.share:.0f} ({100 * of.low:.0f} to {100 * of.high:.0f})"
        rows.append(row)
    table = page.table(rows, "Correct translations by frequency")
    return table if picture.svg() is None else page.charts([picture], table)


def _reliability(found: Reliability) -> Markup:
    explanation = (
        f"The mean confidence of the best translations is {100 * found.confidence:.1f} % over the "
        f"{found.measured.words:,} words of the lexicon; {100 * found.measured.share:.1f} % of them are correct. "
        "A correct translation that the lexicon does not list counts as wrong."
    )
    rows = [
        {
            "confidence, %": f"{100 * each.low:.0f} to {100 * each.high:.0f}",
            "words": each.measured.words,
            "mean confidence, %": round(100 * each.confidence, 1),
            "correct, %": f"{100 * of.share:.1f} ({100 * of.low:.1f} to {100 * of.high:.1f})",
        }
        for each in found.bins
        for of in (each.measured,)
    ]
    table = page.table(rows, "Reliability of the confidence")
    return join(page.lead(explanation), page.charts([reliability(found)], table))


def _mistakes(analysis: Analysis) -> Markup:
    rows = [
        {
            "word": each.word,
            "rank": each.rank,
            "translated as": each.translation,
            "confidence, %": round(100 * each.confidence),
            "the lexicon has": ", ".join(each.gold),
            "at rank": each.gold_rank,
        }
        for each in analysis.mistakes
    ]
    if not rows:
        return Markup()
    explanation = (
        "The most confident translations that are not in the lexicon. Some of them are correct, because no lexicon "
        "lists all translations."
    )
    return join(page.lead(explanation), page.table(rows, "Mistakes"))


def _map(analysis: Analysis) -> Markup:
    drawn = page.word_map(WordMap(analysis.points))
    explanation = (
        "Confident pairs of dissimilar content words, in the first two principal components of both spaces together. "
        "The map shows what a successful part of the alignment looks like, not how large that part is."
    )
    return join(page.lead(explanation), drawn) if drawn else drawn


def _hubness(found: Hubness) -> Markup:
    explanation = (
        f"A hub is a target word that is among the {found.k} nearest of far too many source words. Before: by cosine "
        "in the common space. After: by CSLS, which subtracts the mean similarity of a word to its nearest neighbours."
    )
    rows = [_hub_row(name, each) for name, each in (("cosine (before)", found.cosine), ("CSLS (after)", found.csls))]
    return join(page.lead(explanation), page.charts([hubness(found)]), page.table(rows, "Hubs"))


def _hub_row(name: str, found: Occurrences) -> dict[str, object]:
    return {
        "retrieval": name,
        "skewness": round(found.skewness, 2),
        "orphans, %": round(100 * found.orphans, 1),
        "largest hubs": ", ".join(f"{word} ({count:,})" for word, count in found.largest),
    }


KINDS = ("svg", "png")
_ZOOM = 2  # pixels of a PNG for each unit of the drawing


def write_report(
    alignment: Alignment,
    path: str | PathLike[str],
    lexicon: PairsOfWords | None = None,
    *,
    title: str | None = None,
    words: Sequence[str] = (),
    max_words: int = MAX_WORDS,
    csls_k: int = DEFAULT_CSLS_K,
) -> Analysis:
    """Write a self-contained HTML page about an alignment and return its figures.

    Args:
        alignment: the alignment to report on.
        path: the HTML file to write.
        lexicon: a gold dictionary: a `Lexicon`, a path, pairs of words or a dict. With it the page also has scores,
            the reliability of the confidence and the most confident mistakes.
        title: heading of the page; by default the names of both sides.
        words: source words whose translations the page shows; by default some content words.
        max_words: analyse only the most frequent words of each side, which bounds the time.
        csls_k: neighbours of CSLS.
    """
    check_folder(Path(path))
    gold = {} if lexicon is None else {"lexicon": Lexicon.of(lexicon)}
    analysis = analyse(alignment, gold, words=words, max_words=max_words, csls_k=csls_k)
    write_page(path, analysis, title=title)
    return analysis


def write_page(
    path: str | PathLike[str],
    analysis: Analysis,
    *,
    title: str | None = None,
    more: Sequence[tuple[str, str]] = (),
) -> None:
    """Write the page of a report, completely or not at all. more: further key figures."""
    quality = analysis.quality
    page = render(
        title=default_title(analysis) if title is None else title,
        verdict=quality.verdict,
        explanation=measured(analysis) + quality.explanation,
        sections=sections(analysis, more),
        settings=asdict(analysis.alignment.provenance),
    )
    with atomic_write(Path(path)) as file:
        file.write(page.encode("utf-8"))


def check_plots(folder: Path, kind: str) -> None:
    """Raise an InputError if `write_plots` cannot write to the folder, before any work is done."""
    one_of(KINDS, kind=kind)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; expected the name of a folder for the pictures")
    if not folder.parent.is_dir():
        raise InputError(f"the folder {folder.parent} does not exist, expected a folder to put {folder.name} into")
    if kind == "png":
        installed("plot", "--png")


def write_plots(folder: str | PathLike[str], analysis: Analysis, kind: str = "svg") -> list[Path]:
    """Write each picture of a report to a file, in light colours. kind: `svg`, or `png` (extra `plot`)."""
    where = Path(folder)
    check_plots(where, kind)
    encode: Callable[[str], bytes] = _png if kind == "png" else str.encode
    where.mkdir(exist_ok=True)
    written = []
    for name, picture in pictures(analysis).items():
        drawing = picture.svg()
        assert drawing is not None, "`pictures` leaves out what cannot be drawn"
        path = where / f"{name}.{kind}"
        with atomic_write(path) as file:
            file.write(encode(svg.standalone(drawing)))
        written.append(path)
    return written


def _png(drawing: str) -> bytes:
    import resvg_py

    return bytes(resvg_py.svg_to_bytes(svg_string=drawing, zoom=_ZOOM))
