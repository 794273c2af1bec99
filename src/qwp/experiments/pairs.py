"""Many pairs of vector files, each aligned with the same settings into a folder of its own: the list, and the jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from qwp.errors import InputError
from qwp.experiments.data import Material, Source, add_warnings, warnings_kept, warnings_of
from qwp.experiments.engines.jobs import Device, Record
from qwp.methods import make_aligner, starts_from_lexicon
from qwp.results.alignment import Alignment
from qwp.results.checkpoints import Checkpoint
from qwp.spaces.embeddings import Embeddings, name_of

_COLUMNS = ("source vectors", "target vectors", "name of the result", "seed lexicon")
_LIKE = "SRC<tab>TGT, then perhaps <tab>NAME and <tab>LEXICON"
# Not names of folders, or not such that all systems can make them.
_NOT_IN_NAMES = frozenset('/\\:*?"<>|')


@dataclass(frozen=True)
class Pair:
    """One line of a list. name: of the folder of its result; lexicon: what it starts from or learns from."""

    src: Path
    tgt: Path
    name: str
    lexicon: Path | None = None


def read_pairs(path: Path) -> list[Pair]:
    """A list of pairs: tab-separated, empty fields and columns left out at the end are defaults, # begins a remark."""
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{path} cannot be read ({reason}); expected a text file of lines {_LIKE}") from error
    pairs: dict[str, Pair] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        pair = _pair(f"{path}, line {number}", [field.strip() for field in line.split("\t")])
        if pair.name in pairs:
            raise InputError(f"{path}, line {number} has the name {pair.name!r} of an earlier line: name one otherwise")
        pairs[pair.name] = pair
    if not pairs:
        raise InputError(f"{path} names no pairs; expected lines of {_LIKE}")
    return list(pairs.values())


def _pair(where: str, fields: list[str]) -> Pair:
    if not 2 <= len(fields) <= len(_COLUMNS) or not all(fields[:2]):
        raise InputError(f"{where} has {len(fields)} columns, or empty ones; expected {_LIKE}")
    src, tgt, name, lexicon = [*fields, "", ""][: len(_COLUMNS)]
    name = name or f"{name_of(src)}-{name_of(tgt)}"
    if name in (".", "..") or _NOT_IN_NAMES & set(name) or not name.isprintable():
        raise InputError(f"{where} names the result {name!r}; expected the name of a folder, without / and the like")
    return Pair(Path(src), Path(tgt), name, Path(lexicon) if lexicon else None)


@dataclass(frozen=True)
class Found:
    """What a fit leaves, without the words and vectors: they are where the result is saved."""

    alignment: Alignment
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class PairJob:
    """One pair as a job. options: parameters of the method, the seed among them.

    vectors: whether the result keeps them. continued: whether an interrupted fit is continued from what it left in the
    folder, which has to be at hand then.
    """

    src: Source
    tgt: Source
    lexicon: Source | None
    out: Path
    method: str
    options: Mapping[str, Any]
    vectors: bool = True
    continued: bool = False

    def sources(self) -> dict[str, Source]:
        """The files it needs."""
        found = {"src": self.src, "tgt": self.tgt}
        return found if self.lexicon is None else {**found, "lexicon": self.lexicon}

    def kinship(self) -> tuple[str, ...]:
        """Pairs with the same source language follow each other."""
        return (str(self.src), str(self.tgt))

    def compute(self, place: Device, material: Material) -> Found:
        """Align."""
        lexicon = material["lexicon"].content if "lexicon" in material else None
        options = {**self.options, "device": place.device, "threads": place.threads}
        aligner = make_aligner(self.method, **with_lexicon(self.method, options, given=lexicon is not None))
        checkpoint = Checkpoint(self.out, resume=True) if self.continued else None
        with warnings_kept() as warnings:
            add_warnings(warnings, warnings_of(material))
            aligner.fit(material["src"].content, material["tgt"].content, lexicon=lexicon, checkpoint=checkpoint)
        nothing = Embeddings.unchecked([], material["src"].content.vectors[:0], material["src"].content.report)
        return Found(_with_spaces(aligner.alignment_, nothing, nothing), tuple(warnings))

    def keep(self, found: Found, material: Material) -> Record:
        """Save the result in its folder."""
        whole = _with_spaces(found.alignment, material["src"].content, material["tgt"].content)
        whole.save(self.out, vectors=self.vectors)
        if self.continued:
            Checkpoint(self.out).clear()
        return {**summary(whole), "warnings": list(found.warnings)}


def with_lexicon(method: str, options: Mapping[str, Any], *, given: bool) -> dict[str, Any]:
    """The options of a method, which starts from a lexicon that is given, if it can, and not as the others do."""
    if given and starts_from_lexicon(method):
        return {**options, "start": "lexicon"}
    return dict(options)


def summary(alignment: Alignment) -> Record:
    """What a list of results says of one."""
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


def digests(sources: Mapping[str, Source], known: dict[Source, str]) -> dict[str, str]:
    """Hashes of the vectors of files. known: those that were read before, which joins what is read now."""
    for source in sources.values():
        if source not in known:
            known[source] = source.read().content.sha256()
    return {name: known[source] for name, source in sources.items()}
