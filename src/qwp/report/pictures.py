"""The pictures of a report, by name, made from its figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qwp.report.charts import Bars, Curve, Dot, Ranges
from qwp.report.findings import Findings
from qwp.report.hubness import GROUPS, Hubness
from qwp.report.reliability import RankBand, Reliability
from qwp.report.svg import Picture
from qwp.report.text import percent
from qwp.report.word_map import WordMap
from qwp.results.curves import recorded


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
