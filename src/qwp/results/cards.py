"""Results as they are shown in a notebook."""

from __future__ import annotations

from collections.abc import Mapping

from qwp.judging.verdict import FAILED, SUCCEEDED, UNDECIDED, UNJUDGED, WEAK, Quality, worst
from qwp.results.provenance import Provenance
from qwp.results.translations import Translation
from qwp.showing import html

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
