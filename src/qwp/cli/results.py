"""What `qwp align` does: fit, save, show, and the exit code."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import typer

from qwp.arrays import unit
from qwp.cli import console
from qwp.errors import InputError
from qwp.judging.verdict import FAILED, SUCCEEDED, UNDECIDED, UNJUDGED, WEAK, Quality
from qwp.methods import Aligner
from qwp.methods.settings import Supervision
from qwp.results.alignment import Alignment
from qwp.results.checkpoints import Checkpoint
from qwp.results.corrections import save_anchors
from qwp.results.parts import FEW_SUBWORDS
from qwp.results.provenance import Identity, Provenance, bridge_name
from qwp.results.saved import ALIGNMENT, ALL_PAIRS, SEVERAL
from qwp.results.summary import content_words, quality_rows, times
from qwp.results.translator import QUICK_PAIRS
from qwp.spaces.embeddings import SIDES, Embeddings
from qwp.spaces.frequency import NO_ORDER
from qwp.spaces.io.sources import split_part

_WARNINGS = {
    UNDECIDED: "could not be judged",
    WEAK: "is better than the null distribution, but weak",
    UNJUDGED: "was not judged",
}
_UNSURE = "bold yellow"
STYLES = {SUCCEEDED: "bold green", WEAK: _UNSURE, UNDECIDED: _UNSURE, UNJUDGED: _UNSURE, FAILED: "bold red"}


Fingerprints: TypeAlias = Mapping[str, "str | None"]
"""The fingerprint of each source by name, see `align.source_fingerprint`."""


class PairTask:
    """One `qwp align`: the fit, and what happens to its result.

    names: the name of each input, in the order of the command line.
    """

    alignment: Alignment

    def __init__(self, aligner: Aligner, supervision: Supervision, n_bridges: int = 0) -> None:
        self.names = (*SIDES, *(bridge_name(number) for number in range(n_bridges)))
        self._aligner, self._supervision = aligner, supervision
        self._saved = False

    def identity(self, hashes: Mapping[str, str]) -> Identity:
        """Return what distinguishes this run from others. hashes: of the vectors, by name."""
        return self._aligner.identity({name: hashes[name] for name in self.names}, self._supervision)

    def settings(self) -> Identity:
        """Return the identity without the inputs, which is known before the vectors are read."""
        return replace(self.identity(dict.fromkeys(self.names, "")), inputs={})

    def fit(self, spaces: Sequence[Embeddings], sources: Fingerprints, **run: Any) -> None:
        """Align the first space onto the second. sources: recorded in the result; run: progress and checkpoint."""
        src, tgt, *via = spaces
        lexicon, matrix = self._supervision.lexicon, self._supervision.start_matrix
        self._aligner.fit(src, tgt, lexicon=lexicon, start_matrix=matrix, via=via, **run)
        self.alignment = _with_sources(self._aligner.alignment_, *(sources.get(name) for name in self.names))

    def save(self, out: Path, *, vectors: bool) -> None:
        """Write the result into a folder, with or without the words and vectors, and the lookups if that is quick."""
        self.alignment.save(out, vectors=vectors)
        if self._supervision.lexicon is not None:
            save_anchors(out, self._supervision.lexicon)
        self._saved = True
        if vectors:
            warn_of_subwords(self.alignment)
            _prepare_lookups(out, self._aligner)

    def load(self, out: Path) -> Identity:
        """Read the result of this task from a folder. Returns the identity of the run that saved it."""
        self.alignment = Alignment.load(out)
        self._saved = True
        return self.alignment.provenance.identity()

    def holds_vectors(self) -> bool:
        """Return whether the result was saved with its vectors."""
        return self.alignment.holds_vectors

    def missing_files(self) -> list[str]:
        """Return the files of vectors that were not saved with the result and no longer exist."""
        if self.holds_vectors():
            return []
        provenance = self.alignment.provenance
        paths = dict.fromkeys(record.path for record in (provenance.src, provenance.tgt))
        return [path for path in paths if path is not None and not split_part(Path(path))[0].is_file()]

    def seconds(self) -> dict[str, float]:
        """Return the time of each stage of the fit."""
        return self.alignment.provenance.seconds

    def device(self) -> str:
        """Return the array library and device of the fit."""
        return self.alignment.provenance.backend

    def as_json(self, out: Path | None) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {"command": "align", "out": None if out is None else str(out), **_figures(self.alignment.to_dict())}

    def show(self, out: Path | None) -> None:
        """Print the verdict, the key figures, the folder and the next commands."""
        quality, provenance = self.alignment.quality, self.alignment.provenance
        console.say(quality.explanation, STYLES[quality.verdict])
        console.figures(
            [
                ("method", f"{provenance.method}, seed {provenance.seed}"),
                ("words", f"{len(self.alignment.src):,} source, {len(self.alignment.tgt):,} target"),
                ("dimensions", _dimensions(self.alignment)),
                *_order_row(provenance),
                *((f"bridge {each.space.name}", str(each)) for each in provenance.bridges),
                *quality_rows(quality),
                ("time", times(provenance.seconds)),
                *([] if out is None else [("saved in", str(out))]),
            ]
        )
        if out is not None:
            _show_next(out, self.alignment)

    def show_existing(self, out: Path | None) -> None:
        """Print that the alignment existed before, and its verdict."""
        console.say(f"The alignment already exists in {out}: nothing was computed. --force would align again.")
        console.say(self.alignment.quality.explanation, STYLES[self.alignment.quality.verdict])

    def exit(self, *, explained: bool) -> None:
        """Exit with code 3 if the alignment failed. explained: stdout has the explanation."""
        exit_by(self.alignment.quality, explained=explained, saved=self._saved)


def _with_sources(alignment: Alignment, src: str | None, tgt: str | None, *via: str | None) -> Alignment:
    """Return the alignment with the fingerprints of its sources in its provenance."""
    provenance = alignment.provenance
    records = {
        side: replace(getattr(provenance, side), source_fingerprint=found)
        for side, found in zip(SIDES, (src, tgt), strict=True)
    }
    bridges = [
        replace(bridge, space=replace(bridge.space, source_fingerprint=found))
        for bridge, found in zip(provenance.bridges, via, strict=True)
    ]
    return replace(alignment, provenance=replace(provenance, **records, bridges=bridges))


def _order_row(provenance: Provenance) -> list[tuple[str, str]]:
    """Return the row on the order of the words, if it is not that of the files."""
    if provenance.config.get("order") == NO_ORDER:
        return [("order of words", "none")]
    return [] if provenance.order == "given" else [("order of words", "estimated from the vectors")]


def _dimensions(alignment: Alignment) -> str:
    src, tgt, common = alignment.src_side.dim, alignment.tgt_side.dim, alignment.src_map.shape[1]
    return f"{src}" if src == tgt else f"{src} source, {tgt} target, {common} in common"


def exit_by(quality: Quality, *, explained: bool, saved: bool = True) -> None:
    """Exit with code 3 if the alignment failed. explained: stdout has the explanation."""
    if quality.verdict in _WARNINGS:
        console.warn(f"the result {_WARNINGS[quality.verdict]}" if explained else quality.explanation)
    if quality.failed:
        what = "the result is saved, but the alignment failed" if saved else "the alignment failed"
        console.fail(what if explained else quality.explanation)
        raise typer.Exit(console.EXIT_FAILED)


def expect_alignment(folder: Path) -> None:
    """Refuse a folder of several alignments, and the folder of an unfinished run."""
    if (folder / SEVERAL).exists() or (folder / ALL_PAIRS).exists():
        found = sorted(str(path.parent) for path in folder.glob(f"*/{ALIGNMENT}"))
        raise InputError(f"{folder} holds several alignments: name one of {', '.join(found)}")
    if not (folder / ALIGNMENT).exists() and Checkpoint(folder).path.exists():
        raise InputError(
            f"{folder} holds an interrupted run and no finished alignment: "
            "give its `qwp align` command again to continue it"
        )


# --------------------------------------------------------------------------- parts


def warn_of_subwords(found: Alignment, few: int = FEW_SUBWORDS) -> None:
    """Warn if unknown words will need the file of a fastText model. few: bytes of subwords that are saved."""
    for side in SIDES:
        space = found.side(side).space
        if space.subwords is not None and space.subwords.n_bytes > few and space.report is not None:
            console.warn(
                f"the subwords of {space.name} ({space.subwords.n_bytes / 2**30:.1f} GiB) are not saved: words "
                f"outside of its vocabulary are translated as long as {space.report.path} does not move or change"
            )


def _prepare_lookups(folder: Path, aligner: Aligner) -> None:
    """Save the lookups that fast translation needs beside an alignment, if computing them is quick."""
    found = Alignment.load(folder, check="size").on(aligner.device, aligner.backend)
    if len(found.src) * len(found.tgt) <= QUICK_PAIRS:
        for side in SIDES:
            found.lookup(side)


def _figures(about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of an alignment for the JSON output. about: its index."""
    return {
        "verdict": about["quality"]["verdict"],
        "quality": about["quality"],
        "provenance": about["provenance"],
        "seconds": sum(about["provenance"]["seconds"].values()),
    }


def _show_next(out: Path, found: Alignment) -> None:
    folder = shlex.quote(str(out))
    examples = example_words(found)
    words = " ".join(shlex.quote(word) for word in examples)
    if any(word.startswith("-") for word in examples):
        words = f"-- {words}"  # a word, not an option
    console.say("Next:")
    console.say(f"  qwp translate {folder} {words}", whole=True)
    console.say(f"  qwp explore {folder}", whole=True)
    console.say(f"  qwp report {folder} --lexicon DICTIONARY.txt", whole=True)
    console.say(f"  qwp evaluate {folder} --lexicon DICTIONARY.txt", whole=True)
    console.say(f"  qwp export {folder} --src-out src.vec --tgt-out tgt.vec", whole=True)


_EXAMPLES = 3


def example_words(found: Alignment) -> list[str]:
    """Return frequent source content words with a reliable translation, the most frequent first.

    Comparing only frequent words is quick, even with large vocabularies.
    """
    names = {side: content_words(found.side(side)) for side in SIDES}
    if not all(names.values()):
        return found.src.words[:_EXAMPLES]
    src, tgt = (unit(found.transform(names[side], side)) for side in SIDES)
    cosines = np.asarray(src @ tgt.T)
    best = cosines.argmax(axis=1)
    rows = np.arange(len(best))
    mutual = cosines.argmax(axis=0)[best] == rows
    differ = np.asarray([word != names["tgt"][j] for word, j in zip(names["src"], best.tolist(), strict=True)])
    # Prefer mutual nearest neighbours, then words with another spelling, then the nearest pairs.
    order = np.lexsort((rows, -cosines[rows, best], ~differ, ~mutual))
    return [names["src"][i] for i in sorted(order[:_EXAMPLES].tolist())]
