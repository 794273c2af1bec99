"""Summaries of results: notebook cards, rows of figures, content words and recorded curves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from qwp.judging.verdict import FAILED, SUCCEEDED, UNDECIDED, UNJUDGED, WEAK, Quality, null_runs_in_words, worst
from qwp.results.provenance import Provenance
from qwp.results.sides import AlignedSide
from qwp.results.translator import Translation
from qwp.showing import html
from qwp.showing.terminal import seconds as shown_seconds

_UNCERTAIN = "#b36b00"
COLOURS = {SUCCEEDED: "#2a8a3e", WEAK: _UNCERTAIN, UNDECIDED: _UNCERTAIN, UNJUDGED: _UNCERTAIN, FAILED: "#c62828"}


def alignment_card(provenance: Provenance, quality: Quality, examples: Mapping[str, list[Translation]]) -> str:
    """Return an HTML card with the verdict, the sizes and some translations."""
    rows = [
        ("source", str(provenance.src)),
        ("target", str(provenance.tgt)),
        ("method", f"{provenance.method}, seed {provenance.seed}"),
        ("verdict", quality.short),
        ("held-out agreement", _against_null(quality)),
    ]
    return html.card(
        COLOURS[quality.verdict],
        html.line(quality.verdict, COLOURS[quality.verdict], quality.explanation),
        html.table(rows),
        html.table(
            [(word, ", ".join(t.word for t in best)) for word, best in examples.items()], ("word", "best first")
        ),
    )


def languages_card(hub: str, languages: Mapping[str, tuple[Provenance, Quality]]) -> str:
    """Return an HTML card with one row for each language."""
    verdict = worst(quality.verdict for _, quality in languages.values())
    rows = [(name, str(of.src), quality.short) for name, (of, quality) in languages.items()]
    return html.card(
        COLOURS[verdict],
        html.line(f"{len(languages)} languages aligned onto {hub}", COLOURS[verdict]),
        html.table(rows, ("language", "vectors", "verdict")),
    )


# Ranks below 100 are mostly function words; words beyond 1,000 are often names.
_RANKS = slice(100, 1000)


def content_words(side: AlignedSide) -> list[str]:
    """Return words of medium frequency that look like content words, most frequent first."""
    ranks = side.frequent(_RANKS.stop).tolist()
    words = [side.space.words[row] for row in ranks[_RANKS] or ranks]
    return [word for word in words if looks_like_content(word)]


def some_words(side: AlignedSide, n: int) -> list[str]:
    """Return up to n words spread evenly over the content words, or over all frequent words if those are too few."""
    words = content_words(side)
    if len(words) < n:
        words = [side.space.words[row] for row in side.frequent(_RANKS.stop)]
    return words[:: max(1, len(words) // n)][:n]


def looks_like_content(word: str) -> bool:
    """Whether a word has letters and, in scripts with capitals, which are alphabets, at least four characters."""
    has_letters = any(character.isalpha() for character in word)
    return has_letters and (len(word) > 3 or word.lower() == word.upper())


def quality_rows(quality: Quality) -> list[tuple[str, str]]:
    """Return the figures of a verdict as names and values."""
    fitted = quality.fitted
    if quality.verdict == UNJUDGED:
        return []
    ordered = quality.counterparts is None
    judged = f"the {quality.n_words:,} most frequent words" if ordered else f"{quality.n_words:,} items"
    return [
        *_accuracy_rows(quality),
        *([] if quality.counterparts is None else [("with a counterpart", f"{quality.counterparts}, estimated")]),
        ("judged on", f"{judged} of each side"),
        ("mutual pairs", f"{fitted.pairs:,} ({100 * fitted.share:.1f} %), mean CSLS {fitted.mean_csls:.3f}"),
        ("held-out agreement", _against_null(quality)),
    ]


def _accuracy_rows(quality: Quality) -> list[tuple[str, str]]:
    """Return the measured accuracy, and the estimated one overall and by frequency."""
    rows, known, found = [], quality.measured, quality.estimate
    if known is not None and known.held_out:
        chance = f"{100 * known.chance:.1f} % by chance, p = {known.p_value:.2g}"
        rows.append(("measured accuracy", f"{known} on {known.words} held-out words; {chance}"))
    if found is None or quality.verdict in (FAILED, UNDECIDED):
        return rows
    if quality.outside_calibration:
        reasons = ", ".join(quality.outside_calibration)
        return [*rows, ("estimated accuracy", f"outside the calibration range ({reasons})")]
    bands = [f"{100 * band.share.p1:.0f} % for words {band.first:,}-{band.last:,}" for band in found.bands]
    return [*rows, ("estimated accuracy", "; ".join([str(found.overall), *bands]) + "; not measured")]


def _against_null(quality: Quality) -> str:
    """Return the ratio to the null runs, and their deviation if there are at least two."""
    found = f"{quality.ratio:.2f} times the null mean of {null_runs_in_words(quality.null_runs)}"
    details = []
    if quality.null_deviation is not None and quality.null_runs > 1:
        details.append(f"relative deviation {quality.null_deviation:.3f}")
    if quality.p_value is not None:
        details.append(f"p = {quality.p_value:.2g} against unrelated spaces")
    return f"{found} ({'; '.join(details)})" if details else found


def times(seconds: dict[str, float]) -> str:
    """Return the total time and that of each stage."""
    stages = ", ".join(f"{name} {shown_seconds(value)}" for name, value in seconds.items())
    return f"{shown_seconds(sum(seconds.values()))} ({stages})"


# By stage: field, title, label of the steps, label of the value.
_CURVES = {
    "initialize": (("objective", "Initialization: trial run", "step", "mean squared distance"),),
    "couple": (("gromov_wasserstein", "Coupling", "stage", "Gromov-Wasserstein"),),
    "loop": (("objective", "Transport loop", "step", "mean squared distance"),),
    "learn": (
        ("n_pairs", "Learning: pairs in the dictionary", "round", "pairs"),
        ("mean_csls", "Learning: how well they match", "step", "mean CSLS"),
    ),
    "train": (
        ("loss", "Training: loss", "step", "loss"),
        ("criterion", "Training: criterion", "epoch", "mean cosine"),
        ("mean_csls", "Training: how well pairs match", "epoch", "mean CSLS"),
    ),
    "refine": (
        ("n_pairs", "Refinement: pairs in the dictionary", "round", "pairs"),
        ("mean_csls", "Refinement: how well they match", "round", "mean CSLS"),
    ),
}


class RecordedCurve(NamedTuple):
    """The values y of a field that a stage recorded at the steps x."""

    stage: str
    field: str
    title: str
    x_label: str
    y_label: str
    x: list[float]
    y: list[float]


def recorded(history: Sequence[Mapping[str, Any]]) -> Iterator[RecordedCurve]:
    """Yield the curves in a history, stage by stage."""
    for stage, wanted in _CURVES.items():
        for field, title, x_label, y_label in wanted:
            records = [each for each in history if each["stage"] == stage and isinstance(each.get(field), int | float)]
            if records:
                x, y = ([float(each[key]) for each in records] for key in ("step", field))
                yield RecordedCurve(stage, field, title, x_label, y_label, x, y)
