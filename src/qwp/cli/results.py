"""What `qwp align` does for two languages and for several: fit, save, show, and say as JSON and as an exit code."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import typer

from qwp.arrays import unit
from qwp.cli import console
from qwp.errors import InputError
from qwp.judging.verdict import FAILED, SUCCEEDED, UNDECIDED, UNJUDGED, WEAK, Quality, worst
from qwp.methods import Aligner
from qwp.methods.multi import Multi
from qwp.methods.settings import Supervision
from qwp.results import several
from qwp.results.alignment import Alignment
from qwp.results.checkpoints import Checkpoint
from qwp.results.parts import FEW_SUBWORDS
from qwp.results.provenance import Identity, Provenance
from qwp.results.saved import ALIGNMENT, SEVERAL
from qwp.results.several import MultiAlignment
from qwp.results.summary import content_words, quality_rows, times
from qwp.showing.events import ProgressCallback
from qwp.spaces.embeddings import SIDES, Embeddings, name_of
from qwp.spaces.frequency import NO_ORDER
from qwp.spaces.io.sources import split_part


class Task(Protocol):
    """One `qwp align`, from the vectors to the result."""

    def identity(self, spaces: Sequence[Embeddings]) -> Identity:
        """What tells this run on these spaces, which come in the order of the command line, from others."""

    def settings(self) -> Identity:
        """The same without the spaces: what is known before they are read."""

    def fit(self, spaces: Sequence[Embeddings], progress: ProgressCallback, checkpoint: Checkpoint | None) -> None:
        """Align the spaces."""

    def save(self, out: Path, *, vectors: bool) -> None:
        """Write the result into a folder, with or without the words and vectors."""

    def holds_vectors(self) -> bool:
        """Whether they were saved with the result."""

    def lost_files(self) -> list[str]:
        """The files of vectors that were not saved with the result and are not where they were."""

    def load(self, out: Path) -> Identity:
        """Take the result that a folder holds for that of this task. Returns the run it came from."""

    def seconds(self) -> dict[str, float]:
        """Time of each stage of the fit."""

    def place(self) -> str:
        """Where it was computed."""

    def as_json(self, out: Path | None) -> dict[str, Any]:
        """The result as plain JSON types."""

    def show(self, out: Path | None) -> None:
        """The result for people, on stdout."""

    def show_again(self, out: Path | None) -> None:
        """What was found finished, in short."""

    def exit(self, *, explained: bool) -> None:
        """Exit code 3 for a failure. The words go to stderr where stdout did not have them."""


# --------------------------------------------------------------------------- two languages


class Pair:
    """Two languages."""

    def __init__(self, aligner: Aligner, supervision: Supervision) -> None:
        self._aligner, self._supervision = aligner, supervision
        self._saved = False

    @property
    def alignment(self) -> Alignment:
        """The result, once there is one."""
        return self._alignment

    def identity(self, spaces: Sequence[Embeddings]) -> Identity:
        """What tells this run on these spaces from others."""
        src, tgt = spaces
        return self._aligner.identity({"src": src.sha256(), "tgt": tgt.sha256()}, self._supervision)

    def settings(self) -> Identity:
        """What tells this run from others, the spaces aside."""
        return self._aligner.identity({}, self._supervision)

    def fit(self, spaces: Sequence[Embeddings], progress: ProgressCallback, checkpoint: Checkpoint | None) -> None:
        """Align the first onto the second."""
        src, tgt = spaces
        self._aligner.fit(
            src,
            tgt,
            lexicon=self._supervision.lexicon,
            start_matrix=self._supervision.start_matrix,
            progress=progress,
            checkpoint=checkpoint,
        )
        self._alignment: Alignment = self._aligner.alignment_

    def save(self, out: Path, *, vectors: bool) -> None:
        """An ordinary alignment folder, ready to translate where that takes little time."""
        self._alignment.save(out, vectors=vectors)
        self._saved = True
        if vectors:
            tell_of_subwords([self._alignment])
            _prepare_lookups(out, self._aligner)

    def holds_vectors(self) -> bool:
        """Whether they were saved with the result."""
        return self._alignment.holds_vectors

    def lost_files(self) -> list[str]:
        """The files of vectors that were not saved with the result and are not where they were."""
        return _lost_files([self._alignment])

    def load(self, out: Path) -> Identity:
        """Take the result that a folder holds for that of this task."""
        self._alignment = Alignment.load(out)
        self._saved = True
        return self._alignment.provenance.identity()

    def seconds(self) -> dict[str, float]:
        """Time of each stage of the fit."""
        return self._alignment.provenance.seconds

    def place(self) -> str:
        """Where it was computed."""
        return self._alignment.provenance.backend

    def as_json(self, out: Path | None) -> dict[str, Any]:
        """The result as plain JSON types."""
        where = None if out is None else str(out)
        return {"command": "align", "out": where, **_figures(self._alignment.to_dict())}

    def show(self, out: Path | None) -> None:
        """The verdict in words, the key figures, where it is, and what to do next."""
        quality, provenance = self._alignment.quality, self._alignment.provenance
        console.say(quality.explanation, STYLES[quality.verdict])
        console.figures(
            [
                ("method", f"{provenance.method}, seed {provenance.seed}"),
                ("words", f"{len(self._alignment.src):,} source, {len(self._alignment.tgt):,} target"),
                ("dimensions", _dimensions(self._alignment)),
                *_order_row(provenance),
                *quality_rows(quality),
                ("time", times(provenance.seconds)),
                *([] if out is None else [("saved in", str(out))]),
            ]
        )
        if out is not None:
            _show_next(out, self._alignment)

    def show_again(self, out: Path | None) -> None:
        """The verdict of what was found finished."""
        console.say(f"The alignment is already there, in {out}: nothing was computed. --force would align again.")
        console.say(self._alignment.quality.explanation, STYLES[self._alignment.quality.verdict])

    def exit(self, *, explained: bool) -> None:
        """Exit code 3 for a failure. The words go to stderr where stdout did not have them."""
        exit_by(self._alignment.quality, explained=explained, saved=self._saved)


def _order_row(provenance: Provenance) -> list[tuple[str, str]]:
    """Said only where the order of the words was not that of the files."""
    if provenance.config.get("order") == NO_ORDER:
        return [("order of words", "none")]
    return [] if provenance.order == "given" else [("order of words", "estimated from the vectors")]


def _dimensions(alignment: Alignment) -> str:
    src, tgt, common = alignment.src_side.dim, alignment.tgt_side.dim, alignment.src_map.shape[1]
    return f"{src}" if src == tgt else f"{src} source, {tgt} target, {common} in common"


def exit_by(quality: Quality, *, explained: bool, saved: bool = True) -> None:
    """Exit code 3 for a failure. explained: stdout has said why."""
    if quality.verdict in _WARNINGS:
        console.warn(f"the result {_WARNINGS[quality.verdict]}" if explained else quality.explanation)
    if quality.failed:
        what = "the result is saved, but it failed" if saved else "the alignment failed"
        console.fail(what + ("" if explained else f". {quality.explanation}"))
        raise typer.Exit(console.EXIT_FAILED)


# --------------------------------------------------------------------------- several languages


class Several:
    """More than two languages, all in the space of the second file; each is named like its file."""

    def __init__(self, aligner: Aligner, supervision: Supervision, paths: Sequence[Path]) -> None:
        if not isinstance(aligner, Multi):
            raise InputError(
                f"{len(paths)} vector files were given, but method {aligner.method} aligns two: "
                f"add --method {Multi.method}, or leave out {', '.join(str(path) for path in paths[2:])}"
            )
        if supervision.lexicon is not None or supervision.start_matrix is not None:
            raise InputError(
                f"a lexicon or a start matrix serves two languages, {len(paths)} vector files were given: leave it out"
            )
        self._aligner, self._names = aligner, [name_of(str(path)) for path in paths]
        for name, path in zip(self._names, paths, strict=True):
            if self._names.count(name) > 1:
                raise InputError(
                    f"{path} is not the only file named {name!r}, which is to name its language: rename it"
                )
        self._hub = self._names[1]
        several.check_languages(self._hub, self._others())

    def _others(self) -> list[str]:
        return [name for name in self._names if name != self._hub]

    def identity(self, spaces: Sequence[Embeddings]) -> Identity:
        """What tells this run on these spaces from others."""
        hashes = {name: space.sha256() for name, space in zip(self._names, spaces, strict=True)}
        inputs = {name: hashes[name] for name in (*self._others(), self._hub)}
        return self._aligner.identity(inputs, hub=self._hub)

    def settings(self) -> Identity:
        """What tells this run from others, the spaces aside."""
        return self._aligner.identity({}, hub=self._hub)

    def fit(self, spaces: Sequence[Embeddings], progress: ProgressCallback, checkpoint: Checkpoint | None) -> None:
        """Put all into the space of the second."""
        named = dict(zip(self._names, spaces, strict=True))
        self._result: MultiAlignment = self._aligner.fit_all(
            named, hub=self._hub, progress=progress, checkpoint=checkpoint
        )

    def save(self, out: Path, *, vectors: bool) -> None:
        """One alignment folder a language, each ready to translate where that takes little time, and an index."""
        self._result.save(out, vectors=vectors)
        if vectors:
            tell_of_subwords(self._result.alignments.values())
            for name in self._result.alignments:
                _prepare_lookups(out / name, self._aligner)

    def holds_vectors(self) -> bool:
        """Whether they were saved with the result."""
        return all(found.holds_vectors for found in self._result.alignments.values())

    def lost_files(self) -> list[str]:
        """The files of vectors that were not saved with the result and are not where they were."""
        return _lost_files(self._result.alignments.values())

    def load(self, out: Path) -> Identity:
        """Take the result that a folder holds for that of this task."""
        self._result = MultiAlignment.load(out)
        return self._result.identity()

    def seconds(self) -> dict[str, float]:
        """Time of each stage of the fit, all languages together."""
        total: dict[str, float] = {}
        for found in self._result.alignments.values():
            for stage, seconds in found.provenance.seconds.items():
                total[stage] = total.get(stage, 0.0) + seconds
        return total

    def place(self) -> str:
        """Where it was computed."""
        return next(iter(self._result.alignments.values())).provenance.backend

    def as_json(self, out: Path | None) -> dict[str, Any]:
        """The result as plain JSON types."""
        assert out is not None, "several languages are saved"
        languages = [
            {"name": name, "out": str(out / name), **_figures(found.to_dict())}
            for name, found in self._result.alignments.items()
        ]
        return {
            "command": "align",
            "out": str(out),
            "hub": self._hub,
            "verdict": worst(language["verdict"] for language in languages),
            "languages": languages,
            "seconds": sum(language["seconds"] for language in languages),
        }

    def show(self, out: Path | None) -> None:
        """The verdicts, the key figures of each language, where it is, and what to do next."""
        assert out is not None, "several languages are saved"
        found = self._result.alignments
        _show_languages(self._hub, self._qualities())
        first = next(iter(found.values()))
        words = {**{name: len(each.src) for name, each in found.items()}, self._hub: len(first.tgt)}
        console.figures(
            [
                ("method", f"{first.provenance.method}, seed {first.provenance.seed}"),
                ("words", ", ".join(f"{n:,} {name}" for name, n in words.items())),
                ("dimensions", str(first.src.dim)),
                *_order_row(first.provenance),
                ("time", times(self.seconds())),
                ("saved in", f"{out}, a folder a language"),
            ]
        )
        _show_next(out / next(iter(found)), first)

    def show_again(self, out: Path | None) -> None:
        """The verdicts of what was found finished."""
        console.say(f"The alignments are already there, in {out}: nothing was computed. --force would align again.")
        _show_languages(self._hub, self._qualities())

    def exit(self, *, explained: bool) -> None:
        """Exit code 3 where a language failed."""
        _exit_by_all(self._qualities())

    def _qualities(self) -> dict[str, Quality]:
        return {name: found.quality for name, found in self._result.alignments.items()}


def expect_alignment(folder: Path) -> None:
    """Refuse a folder of several alignments, of which its user has to choose one, and that of an unfinished run."""
    if (folder / SEVERAL).exists():
        found = several.read_index(folder)
        folders = ", ".join(str(folder / name) for name in found.languages)
        raise InputError(f"{folder} holds several languages aligned onto {found.hub}: name one of {folders}")
    if not (folder / ALIGNMENT).exists() and Checkpoint(folder).path.exists():
        raise InputError(
            f"{folder} holds an interrupted run and no finished alignment: "
            "give its `qwp align` command again to continue it"
        )


def _show_languages(hub: str, found: dict[str, Quality]) -> None:
    """A line a language."""
    rows = [
        (
            name,
            quality.verdict,
            f"{quality.fitted.pairs:,} ({100 * quality.fitted.share:.1f} %)",
            f"{quality.ratio:.2f}",
            "" if quality.estimate is None else str(quality.estimate.overall),
        )
        for name, quality in found.items()
    ]
    columns = ("language", "verdict", "mutual pairs", "times the null", "estimated accuracy")
    console.table(columns, rows, title=f"Aligned onto {hub}")


def _exit_by_all(found: dict[str, Quality]) -> None:
    """Exit code 3 where a language failed."""
    for name, quality in found.items():
        if quality.verdict in _WARNINGS:
            console.warn(f"{name} {_WARNINGS[quality.verdict]}. {quality.explanation}")
    failed = [name for name, quality in found.items() if quality.failed]
    for name in failed:
        console.fail(f"the result is saved, but {name} failed. {found[name].explanation}")
    if failed:
        raise typer.Exit(console.EXIT_FAILED)


# --------------------------------------------------------------------------- what both need

# Pairs of words that are compared in a second or two; more of them when the first word is translated.
_SOON_COMPARED = 400_000_000
_WARNINGS = {UNDECIDED: "could not be judged", WEAK: "is real, but weak", UNJUDGED: "was not judged"}
_NOT_SURE = "bold yellow"
STYLES = {SUCCEEDED: "bold green", WEAK: _NOT_SURE, UNDECIDED: _NOT_SURE, UNJUDGED: _NOT_SURE, FAILED: "bold red"}


def _lost_files(alignments: Iterable[Alignment]) -> list[str]:
    unsaved = [found.provenance for found in alignments if not found.holds_vectors]
    paths = dict.fromkeys(record.path for of in unsaved for record in (of.src, of.tgt))
    return [path for path in paths if path is not None and not split_part(Path(path))[0].is_file()]


def tell_of_subwords(alignments: Iterable[Alignment], few: int = FEW_SUBWORDS) -> None:
    """Warn where words outside of a vocabulary will need the file of a model. few: bytes that are saved."""
    for found in alignments:
        for side in SIDES:
            space = found.side(side).space
            if space.subwords is not None and space.subwords.n_bytes > few and space.report is not None:
                console.warn(
                    f"the subwords of {space.name} ({space.subwords.n_bytes / 2**30:.1f} GiB) are not saved: words "
                    f"outside of its vocabulary are translated as long as {space.report.path} stays as and where it is"
                )


def _prepare_lookups(folder: Path, aligner: Aligner) -> None:
    """Keep beside a saved alignment what is needed to translate at once, where that takes little time."""
    found = Alignment.load(folder, check="size").on(aligner.device, aligner.backend)
    if len(found.src) * len(found.tgt) <= _SOON_COMPARED:
        for side in SIDES:
            found.lookup(side)


def _figures(about: dict[str, Any]) -> dict[str, Any]:
    """The part of one alignment that goes into the JSON output. about: its index."""
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
    console.say(f"  qwp evaluate {folder} --lexicon DICTIONARY.txt", whole=True)
    console.say(f"  qwp export {folder} --src-out src.vec --tgt-out tgt.vec", whole=True)


_EXAMPLES = 3


def example_words(found: Alignment) -> list[str]:
    """Source words to try: frequent content words whose translation seems sure, most frequent first.

    Only frequent words are compared with each other, which is quick also where the vocabularies are large.
    """
    names = {side: content_words(found.side(side)) for side in SIDES}
    if not all(names.values()):
        return found.src.words[:_EXAMPLES]
    src, tgt = (unit(found.transform(names[side], side)) for side in SIDES)
    cosines = np.asarray(src @ tgt.T)
    best = cosines.argmax(axis=1)
    rows = np.arange(len(best))
    mutual = cosines.argmax(axis=0)[best] == rows
    told = np.asarray([word != names["tgt"][j] for word, j in zip(names["src"], best.tolist(), strict=True)])
    # Pairs that choose each other first, then those that are not just spelt alike, then the nearest.
    order = np.lexsort((rows, -cosines[rows, best], ~told, ~mutual))
    return [names["src"][i] for i in sorted(order[:_EXAMPLES].tolist())]
