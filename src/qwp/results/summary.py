"""Results as they are shown in a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from qwp.judging.verdict import FAILED, SUCCEEDED, UNDECIDED, UNJUDGED, WEAK, Quality, runs_of, worst
from qwp.results.provenance import Provenance
from qwp.results.sides import AlignedSide
from qwp.results.translator import Translation
from qwp.showing import html
from qwp.showing.terminal import seconds as shown_seconds

_NOT_SURE = "#b36b00"
COLOURS = {SUCCEEDED: "#2a8a3e", WEAK: _NOT_SURE, UNDECIDED: _NOT_SURE, UNJUDGED: _NOT_SURE, FAILED: "#c62828"}


def alignment_card(provenance: Provenance, quality: Quality, examples: Mapping[str, list[Translation]]) -> str:
    """Verdict, sizes, estimate and some translations."""
    rows = [
        ("source", str(provenance.src)),
        ("target", str(provenance.tgt)),
        ("method", f"{provenance.method}, seed {provenance.seed}"),
        ("judged", quality.short),
        ("held-out words", f"{quality.ratio:.2f} times what chance reaches"),
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
    """A line a language."""
    verdict = worst(quality.verdict for _, quality in languages.values())
    rows = [(name, str(of.src), quality.short) for name, (of, quality) in languages.items()]
    return html.card(
        COLOURS[verdict],
        html.line(f"{len(languages)} languages aligned onto {hub}", COLOURS[verdict]),
        html.table(rows, ("language", "vectors", "judged")),
    )


_RANKS = slice(100, 1000)


def content_words(side: AlignedSide) -> list[str]:
    """Words of middle frequency that look like content words, most frequent first."""
    ranks = side.frequent(_RANKS.stop).tolist()
    words = [side.space.words[row] for row in ranks[_RANKS] or ranks]
    return [word for word in words if looks_like_content(word)]


def some_words(side: AlignedSide, n: int) -> list[str]:
    """n words, or fewer, spread over the content words; over all frequent words where too few look like one."""
    words = content_words(side)
    if len(words) < n:
        words = [side.space.words[row] for row in side.frequent(_RANKS.stop)]
    return words[:: max(1, len(words) // n)][:n]


def looks_like_content(word: str) -> bool:
    """Has letters and, in scripts that have capitals and therefore spell by sounds, at least four characters."""
    has_letters = any(character.isalpha() for character in word)
    return has_letters and (len(word) > 3 or word.lower() == word.upper())


def quality_rows(quality: Quality) -> list[tuple[str, str]]:
    """The unsupervised figures as names and values."""
    fitted = quality.fitted
    if quality.verdict == UNJUDGED:
        return []
    ordered = quality.counterparts is None
    judged = f"the {quality.n_words:,} most frequent words" if ordered else f"{quality.n_words:,} items"
    return [
        *_estimate_rows(quality),
        *([] if quality.counterparts is None else [("have a partner", str(quality.counterparts))]),
        ("judged on", f"{judged} of each side"),
        ("mutual pairs", f"{fitted.pairs:,} ({100 * fitted.share:.1f} %), mean CSLS {fitted.mean_csls:.3f}"),
        ("held-out words", f"{quality.ratio:.2f} times what chance reaches{_deviations(quality)}"),
    ]


def _estimate_rows(quality: Quality) -> list[tuple[str, str]]:
    """The share of right translations as it is estimated, overall and for frequent and rare words."""
    found = quality.estimate
    if found is None or quality.verdict in (FAILED, UNDECIDED):
        return []
    shown = found.bands if quality.counterparts is None else []
    bands = [f"{100 * band.share.p1:.0f} % of words {band.first:,} to {band.last:,}" for band in shown]
    return [("estimated right", "; ".join([f"about {found.overall}", *bands]) + "; not measured")]


def _deviations(quality: Quality) -> str:
    """How far from chance in its deviations, where that is known."""
    if quality.null_deviation is None or quality.z is None:
        return ""
    return f" (± {quality.null_deviation:.2f} in {runs_of(quality.null_runs)}, z = {quality.z:.1f})"


def times(seconds: dict[str, float]) -> str:
    """The total and each stage."""
    stages = ", ".join(f"{name} {shown_seconds(value)}" for name, value in seconds.items())
    return f"{shown_seconds(sum(seconds.values()))} ({stages})"


# By stage: field, title, name of the steps, name of the value.
_WORTH_A_PICTURE = {
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


class Recorded(NamedTuple):
    """The values y of a field of a stage at the steps x."""

    stage: str
    field: str
    title: str
    x_label: str
    y_label: str
    x: list[float]
    y: list[float]


def recorded(history: Sequence[Mapping[str, Any]]) -> Iterator[Recorded]:
    """The curves that the records hold, stage by stage."""
    for stage, wanted in _WORTH_A_PICTURE.items():
        for field, title, x_label, y_label in wanted:
            records = [each for each in history if each["stage"] == stage and isinstance(each.get(field), int | float)]
            if records:
                x, y = ([float(each[key]) for each in records] for key in ("step", field))
                yield Recorded(stage, field, title, x_label, y_label, x, y)
