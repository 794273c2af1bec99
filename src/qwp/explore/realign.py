"""Aligning again with what a person has said: the pairs that are right are the start, and anchors of the refinement."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from qwp.errors import InputError
from qwp.explore.corrections import RIGHT
from qwp.explore.opened import Explored
from qwp.methods import QWP, make_aligner
from qwp.results.alignment import Alignment
from qwp.showing.events import ProgressCallback

ANCHOR_WEIGHT = 3.0
"""What each pair weighs, in mean weights of the pairs that the rounds find by themselves."""
FEWEST_PAIRS = 20
"""Fewer pairs than this are no start."""
_MOST_FOLDERS = 1000


def realigned(explored: Explored, progress: ProgressCallback | None = None) -> Alignment:
    """The same two spaces aligned with the corrected pairs, by qwp and, where it was qwp before, with its settings."""
    pairs = explored.corrections.lexicon(RIGHT) if explored.corrections.pairs(RIGHT) else None
    covered = 0 if pairs is None else pairs.coverage(explored.alignment.src, explored.alignment.tgt).covered_pairs
    if pairs is None or covered < FEWEST_PAIRS:
        raise InputError(
            f"{covered} pairs are marked as right, expected at least {FEWEST_PAIRS} to align with: mark some more"
        )
    alignment = explored.alignment
    aligner = make_aligner("qwp", seed=alignment.provenance.seed, **settings(alignment))
    aligner.fit(alignment.src, alignment.tgt, lexicon=pairs, progress=progress)
    return aligner.alignment_


def settings(alignment: Alignment) -> dict[str, Any]:
    """The parameters of the next run."""
    known = QWP.parameters()
    before = alignment.provenance.config if alignment.provenance.method == "qwp" else {}
    kept = {name: value for name, value in before.items() if name in known}
    return {**kept, "start": "lexicon", "anchor_weight": ANCHOR_WEIGHT, "refine_weights": "csls"}


def next_folder(folder: Path) -> Path:
    """A folder beside another that is not there yet: NAME-corrected, NAME-corrected-2, ..."""
    base = folder.absolute()
    for number in range(1, _MOST_FOLDERS):
        found = base.with_name(f"{base.name}-corrected" + (f"-{number}" if number > 1 else ""))
        if not found.exists():
            return found
    raise InputError(f"{base.parent} holds {_MOST_FOLDERS - 1} corrected results of {base.name}: remove some")
