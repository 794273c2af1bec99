"""Many pairs of vector files, each aligned with the same settings into its own folder: the list and the jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from qwp.errors import InputError
from qwp.experiments.data import Contents, DataFile, add_warnings, collected_warnings, warnings_of
from qwp.experiments.jobs import JobDevice, JobRecord
from qwp.methods import lexicon_start, make_aligner
from qwp.results.alignment import Alignment
from qwp.results.checkpoints import Checkpoint
from qwp.spaces.embeddings import Embeddings, name_of

_COLUMNS = ("source vectors", "target vectors", "name of the result", "seed lexicon")
_LIKE = "SRC<tab>TGT, optionally <tab>NAME and <tab>LEXICON"
# Not allowed in the names of folders on some systems.
_NOT_IN_NAMES = frozenset('/\\:*?"<>|')


@dataclass(frozen=True)
class ListedPair:
    """One line of a list. name: the folder of its result; lexicon: what it is initialised from or learns from."""

    src: Path
    tgt: Path
    name: str
    lexicon: Path | None = None


def read_pairs(path: Path) -> list[ListedPair]:
    """Read a tab-separated list of pairs. Empty or missing fields at the end are defaults; # begins a comment."""
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path} cannot be read ({reason}); expected a text file of lines {_LIKE}") from error
    pairs: dict[str, ListedPair] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        pair = _pair(f"{path}, line {number}", [field.strip() for field in line.split("\t")])
        if pair.name in pairs:
            raise InputError(f"{path}, line {number} has the name {pair.name!r} of an earlier line: rename one of them")
        pairs[pair.name] = pair
    if not pairs:
        raise InputError(f"{path} names no pairs; expected lines of {_LIKE}")
    return list(pairs.values())


def _pair(where: str, fields: list[str]) -> ListedPair:
    if not 2 <= len(fields) <= len(_COLUMNS) or not all(fields[:2]):
        raise InputError(f"{where} has {len(fields)} columns, or empty ones; expected {_LIKE}")
    src, tgt, name, lexicon = [*fields, "", ""][: len(_COLUMNS)]
    name = name or f"{name_of(src)}-{name_of(tgt)}"
    if name in (".", "..") or _NOT_IN_NAMES & set(name) or not name.isprintable():
        raise InputError(f"{where} names the result {name!r}; expected the name of a folder, without / and the like")
    return ListedPair(Path(src), Path(tgt), name, Path(lexicon) if lexicon else None)


@dataclass(frozen=True)
class Fitted:
    """The result of a fit without words and vectors, which the machine that saves it has already."""

    alignment: Alignment
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class PairJob:
    """The job that aligns one pair.

    Attributes:
        src, tgt, lexicon: files.
        out: folder of the result.
        method: name of the method.
        options: parameters of the method, including the seed.
        vectors: whether to save the vectors with the result.
        resume: whether to resume an interrupted fit from its checkpoint in `out`, which workers must be able to read.
    """

    src: DataFile
    tgt: DataFile
    lexicon: DataFile | None
    out: Path
    method: str
    options: Mapping[str, Any]
    vectors: bool = True
    resume: bool = False

    def sources(self) -> dict[str, DataFile]:
        """Return the files it needs."""
        found = {"src": self.src, "tgt": self.tgt}
        return found if self.lexicon is None else {**found, "lexicon": self.lexicon}

    def affinity(self) -> tuple[str, ...]:
        """Return keys of both sides, so that pairs with the same source follow each other."""
        return (str(self.src), str(self.tgt))

    def compute(self, device: JobDevice, contents: Contents) -> Fitted:
        """Align the pair."""
        lexicon = contents["lexicon"].content if "lexicon" in contents else None
        options = {**self.options, "device": device.name, "threads": device.threads}
        aligner = make_aligner(self.method, **{**options, **lexicon_start(self.method, given=lexicon is not None)})
        checkpoint = Checkpoint(self.out, resume=True) if self.resume else None
        with collected_warnings() as warnings:
            add_warnings(warnings, warnings_of(contents))
            aligner.fit(contents["src"].content, contents["tgt"].content, lexicon=lexicon, checkpoint=checkpoint)
        nothing = Embeddings.unchecked([], contents["src"].content.vectors[:0], contents["src"].content.report)
        return Fitted(_with_spaces(aligner.alignment_, nothing, nothing), tuple(warnings))

    def finish(self, result: Fitted, contents: Contents) -> JobRecord:
        """Save the result in its folder."""
        whole = _with_spaces(result.alignment, contents["src"].content, contents["tgt"].content)
        whole.save(self.out, vectors=self.vectors)
        if self.resume:
            Checkpoint(self.out).clear()
        return {**summary(whole), "warnings": list(result.warnings)}


def summary(alignment: Alignment) -> JobRecord:
    """Return the verdict, the estimate and the time of a result for the list of all."""
    quality = alignment.quality
    return {
        "verdict": quality.verdict,
        "failed": quality.failed,
        "estimate": None if quality.estimate is None else quality.estimate.overall.p1,
        "seconds": sum(alignment.provenance.seconds.values()),
    }


def _with_spaces(alignment: Alignment, src: Embeddings, tgt: Embeddings) -> Alignment:
    sides = [replace(side, source=space) for side, space in ((alignment.src_side, src), (alignment.tgt_side, tgt))]
    return replace(alignment, src_side=sides[0], tgt_side=sides[1])


def digests(sources: Mapping[str, DataFile], known: dict[DataFile, str]) -> dict[str, str]:
    """Return hashes of vector files by name. known: hashes of files read before; new ones are added."""
    for source in sources.values():
        if source not in known:
            known[source] = source.load().content.sha256()
    return {name: known[source] for name, source in sources.items()}
