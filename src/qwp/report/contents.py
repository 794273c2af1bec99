"""What a report says and in which order: the sections of its page, made from its figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qwp.judging.evaluation import DENOMINATORS, Evaluation
from qwp.report import page
from qwp.report.charts import Bars, Curve, Dot, Ranges
from qwp.report.findings import GROUPS, Findings, Hubness, Occurrences, RankBand, Reliability
from qwp.report.page import Section
from qwp.report.svg import Picture, percent
from qwp.report.word_map import WordMap
from qwp.results.summary import quality_rows, recorded, times


def pictures(findings: Findings) -> dict[str, Picture]:
    """All that can be drawn, by the name of its file."""
    found: dict[str, Picture] = {"bands": bands(findings.bands)}
    if findings.reliability is not None:
        found["reliability"] = reliability(findings.reliability)
    found["hubness"] = hubness(findings.hubness)
    found.update(curves(findings.alignment.history))
    found["map"] = WordMap(findings.points)
    return {name: picture for name, picture in found.items() if picture.svg() is not None}


def curves(history: Sequence[dict[str, Any]]) -> dict[str, Curve]:
    """The convergence curves that the records of a run hold, by stage and field."""
    return {
        f"{each.stage}-{each.field}": Curve(each.title, each.x_label, each.y_label, each.x, each.y)
        for each in recorded(history)
    }


def bands(found: Sequence[RankBand]) -> Ranges:
    """Right translations from frequent to rare words, estimated and measured."""
    estimated, measured = [], []
    for place, band in enumerate(found, start=1):
        words = f"words {band.first:,} to {band.last:,}"
        if band.estimated is not None:
            share = band.estimated
            tip = f"{words}: about {percent(share.p1)} % ({percent(share.low)} to {percent(share.high)})"
            estimated.append(Dot(place - 0.1, share.p1, share.low, share.high, tip))
        if band.measured is not None:
            of = band.measured
            tip = f"{words}: {percent(of.share)} % ({percent(of.low)} to {percent(of.high)}) of {of.words:,}"
            measured.append(Dot(place + 0.1, of.share, of.low, of.high, tip))
    ticks = [(float(place), _rank(band.last)) for place, band in enumerate(found, start=1)]
    series = [("estimated", estimated), ("measured with the lexicon", measured)]
    return Ranges(
        "Right translations by frequency",
        "rank of the source word, up to",
        "right, %",
        (0.4, len(found) + 0.6),
        ticks,
        series if measured else series[:1],
        note="from frequent words to rare ones, with 90 % (estimated) and 95 % (measured) intervals"
        if measured
        else "from frequent words to rare ones, with 90 % intervals",
    )


def _rank(last: int) -> str:
    return f"{last // 1000}k" if last >= 10_000 and last % 1000 == 0 else f"{last:,}"


def reliability(found: Reliability) -> Ranges:
    """How many are right of those that seemed so sure."""
    dots = [
        Dot(
            each.confidence,
            each.measured.share,
            each.measured.low,
            each.measured.high,
            f"confidence {each.low:.1f} to {each.high:.1f}, mean {each.confidence:.2f}: "
            f"{percent(each.measured.share)} % right of {each.measured.words:,}",
        )
        for each in found.bins
    ]
    return Ranges(
        "Reliability of the confidence",
        "confidence",
        "right, %",
        (0.0, 1.0),
        [(tenth / 10, f"{tenth / 10:.1f}") for tenth in range(0, 11, 2)],
        [("words of the lexicon", dots)],
        note=f"above the line it is too low, below it too high; calibration error {found.error:.3f}",
        ideal="as it should be",
    )


def hubness(found: Hubness) -> Bars:
    """Target words by how often they are among the nearest."""
    return Bars(
        "Hubs before and after CSLS",
        f"source words that have it among their {found.k} best",
        "target words, %",
        GROUPS,
        [("cosine", found.cosine.shares), ("CSLS", found.csls.shares)],
        note=f"skewness {found.cosine.skewness:.1f} by cosine, {found.csls.skewness:.1f} by CSLS; {found.queries:,} "
        "source words asked",
    )


_NO_LEXICON = (
    "No lexicon was given, so nothing was measured: scores, the reliability of the confidence and the most certain "
    "mistakes are missing. `qwp report DIR --lexicon FILE` adds them; FILE has a word and a translation a line, and "
    "`qwp data list` names those that can be fetched."
)


def default_title(findings: Findings) -> str:
    """What is said of the alignment in a line."""
    of = findings.alignment.provenance
    return f"{_name(of.src.known_name, 'source')} and {_name(of.tgt.known_name, 'target')} in one space"


def _name(name: str | None, otherwise: str) -> str:
    return otherwise if name is None else name


def contents(findings: Findings, more: Sequence[tuple[str, str]] = ()) -> list[Section]:
    """The sections of the page. more: further key figures."""
    drawn = pictures(findings)
    convergence = [drawn[name] for name in curves(findings.alignment.history) if name in drawn]
    found = [
        Section("figures", "Key figures", page.facts([*_facts(findings), *more]) + _part_note(findings)),
        Section("scores", "Scores", _scores(findings)),
        Section("bands", "Frequent and rare words", _bands(findings)),
    ]
    if findings.reliability is not None:
        found += [
            Section("reliability", "Reliability", _reliability(findings)),
            Section("mistakes", "The most certain mistakes", _mistakes(findings), missing="There are none."),
        ]
    return [
        *found,
        Section("translations", "Example translations", _examples(findings)),
        Section("map", "Map of word pairs", _map(findings), missing="No word pairs to draw."),
        Section("hubness", "Hubs", _hubness(findings)),
        Section("curves", "Convergence", page.charts(convergence), missing="No curves were recorded."),
    ]


def headline(found: Evaluation) -> str:
    """P@1 and what it is out of."""
    coverage = found.coverage
    return (
        f"{100 * found.p_at_1():.1f} % (CSLS, over {coverage.covered_source_words:,} covered of "
        f"{coverage.source_words:,} source words, {100 * coverage.share:.1f} %)"
    )


def _facts(findings: Findings) -> list[tuple[str, str]]:
    alignment = findings.alignment
    of = alignment.provenance
    several = len(findings.evaluations) > 1
    words = zip((_name(of.src.known_name, "source"), _name(of.tgt.known_name, "target")), findings.of, strict=True)
    return [
        *((f"P@1, {name}" if several else "P@1", headline(e)) for name, e in findings.evaluations.items()),
        ("words", ", ".join(f"{count:,} {name}" for name, count in words)),
        ("dimensions", str(alignment.src.dim)),
        (
            "method",
            f"{of.method}, seed {of.seed}" + (", with a lexicon" if of.supervision.get("lexicon") else ""),
        ),
        *([] if of.order == "given" else [("order of words", "estimated from the vectors")]),
        *quality_rows(findings.quality),
        ("alignment", times(of.seconds)),
    ]


def _part_note(findings: Findings) -> str:
    """Said where not all words were looked at."""
    if findings.words == findings.of:
        return ""
    src, tgt = (f"{count:,}" for count in findings.words)
    return page.after(
        f"All figures below are for the {src} and {tgt} most frequent words: fewer words compete than in the whole "
        "vocabularies, so scores are a little higher. `--max-words` changes that; `qwp evaluate` scores all."
    )


def _scores(findings: Findings) -> str:
    if not findings.evaluations:
        return page.lead(_NO_LEXICON)
    several = len(findings.evaluations) > 1
    rows = [
        {**({"lexicon": name} if several else {}), **row}
        for name, found in findings.evaluations.items()
        for row in score_rows(found)
    ]
    return page.table(rows) + page.after("In percent. Every target word competes; ties count against the map.")


def score_rows(found: Evaluation) -> list[dict[str, object]]:
    """One row for each retrieval method and denominator, in percent."""
    return [
        {
            "retrieval": method,
            "out of": words,
            **{
                "MAP (XLING)" if name == "MAP" else name: round(100 * score.value, 1)
                for name, score in getattr(scores, key).items()
            },
        }
        for method, scores in found.scores.items()
        for key, words in DENOMINATORS.items()
    ]


def _bands(findings: Findings) -> str:
    picture = bands(findings.bands)
    rows = []
    for band in findings.bands:
        row: dict[str, object] = {"words": f"{band.first:,} to {band.last:,}"}
        if band.estimated is not None:
            row["estimated right, %"] = str(band.estimated).replace(" %", "")
        if band.measured is not None:
            of = band.measured
            row["in the lexicon"] = of.words
            row["measured right, %"] = f"{100 * of.share:.0f} ({100 * of.low:.0f} to {100 * of.high:.0f})"
        rows.append(row)
    return page.table(rows) if picture.svg() is None else page.beside(picture, page.table(rows))


def _reliability(findings: Findings) -> str:
    found = findings.reliability
    assert found is not None
    said = (
        f"The confidence of the best translations was {100 * found.confidence:.1f} % in the mean over the "
        f"{found.measured.words:,} words that the lexicon has; {100 * found.measured.share:.1f} % are right by it. A "
        "right translation that it does not list counts as wrong."
    )
    rows = [
        {
            "confidence": f"{each.low:.1f} to {each.high:.1f}",
            "words": each.measured.words,
            "mean confidence": round(each.confidence, 3),
            "right": round(each.measured.share, 3),
        }
        for each in found.bins
    ]
    return page.lead(said) + page.beside(reliability(found), page.table(rows))


def _mistakes(findings: Findings) -> str:
    rows = [
        {
            "word": each.word,
            "rank": each.rank,
            "translated as": each.translation,
            "confidence": round(each.confidence, 2),
            "the lexicon has": ", ".join(each.gold),
            "at rank": each.gold_rank,
        }
        for each in findings.mistakes
    ]
    if not rows:
        return ""
    said = "What seemed surest and is not in the lexicon. Some of it is right: no lexicon has all translations."
    return page.lead(said) + page.table(rows)


def _examples(findings: Findings) -> str:
    rows = [(each.word, each.translations, each.confidence, each.right) for each in findings.examples]
    return page.translations(rows)


def _map(findings: Findings) -> str:
    drawn = page.word_map(WordMap(findings.points))
    said = (
        "Pairs of content words that seem surest and are unlike each other, in the first two principal components of "
        "both spaces together. It shows what the alignment is like where it works, not how often it does."
    )
    return page.lead(said) + drawn if drawn else ""


def _hubness(findings: Findings) -> str:
    found = findings.hubness
    said = (
        f"A hub is a target word that is among the {found.k} best of far too many source words. Before: by plain "
        "cosine in the common space. After: by CSLS, which subtracts how near a word is to everything."
    )
    rows = [_hub_row(name, each) for name, each in (("cosine (before)", found.cosine), ("CSLS (after)", found.csls))]
    return page.lead(said) + page.charts([hubness(found)]) + page.table(rows)


def _hub_row(name: str, found: Occurrences) -> dict[str, object]:
    return {
        "retrieval": name,
        "skewness": round(found.skewness, 2),
        "words found by none, %": round(100 * found.orphans, 1),
        "largest hubs": ", ".join(f"{word} ({count:,})" for word, count in found.largest),
    }
