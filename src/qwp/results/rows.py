"""The figures of a result as names and values, for people."""

from __future__ import annotations

from qwp.judging.verdict import FAILED, UNDECIDED, UNJUDGED, Quality, runs_of
from qwp.showing.durations import seconds as shown_seconds


def quality_rows(quality: Quality) -> list[tuple[str, str]]:
    """The unsupervised figures as names and values."""
    fitted = quality.fitted
    if quality.verdict == UNJUDGED:
        return []
    ordered = quality.partners is None
    judged = f"the {quality.n_words:,} most frequent words" if ordered else f"{quality.n_words:,} items"
    return [
        *_estimate_rows(quality),
        *([] if quality.partners is None else [("have a partner", str(quality.partners))]),
        ("judged on", f"{judged} of each side"),
        ("mutual pairs", f"{fitted.pairs:,} ({100 * fitted.share:.1f} %), mean CSLS {fitted.mean_csls:.3f}"),
        ("held-out words", f"{quality.ratio:.2f} times what chance reaches{_deviations(quality)}"),
    ]


def _estimate_rows(quality: Quality) -> list[tuple[str, str]]:
    """The share of right translations as it is estimated, overall and for frequent and rare words."""
    found = quality.estimate
    if found is None or quality.verdict in (FAILED, UNDECIDED):
        return []
    shown = found.bands if quality.partners is None else []
    bands = [f"{100 * band.share.p1:.0f} % of words {band.first:,} to {band.last:,}" for band in shown]
    return [("estimated right", "; ".join([f"about {found.overall}", *bands]) + "; not measured")]


def _deviations(quality: Quality) -> str:
    """How far from chance in its deviations, where that is known."""
    if quality.deviation is None or quality.z is None:
        return ""
    return f" (± {quality.deviation:.2f} in {runs_of(quality.runs)}, z = {quality.z:.1f})"


def times(seconds: dict[str, float]) -> str:
    """The total and each stage."""
    stages = ", ".join(f"{name} {shown_seconds(value)}" for name, value in seconds.items())
    return f"{shown_seconds(sum(seconds.values()))} ({stages})"
