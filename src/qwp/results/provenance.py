"""Where a result came from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from qwp.results.schema import HASH, Flag, Int, ListOf, MapOf, Number, Optional, Record, Scalar, Text
from qwp.showing.terminal import visible
from qwp.spaces.embeddings import UNNAMED, Embeddings, name_of
from qwp.spaces.subwords import Subwords

VERSION = Text(most=100)
METHOD = Text(most=100)
CONFIG = MapOf(Scalar())
SEED = Int()
SUPERVISION = MapOf(Optional(HASH))
# What `Identity.to_dict` gives.
IDENTITY = Record(
    {
        "version": VERSION,
        "code": Optional(VERSION),
        "method": METHOD,
        "config": CONFIG,
        "seed": SEED,
        "inputs": MapOf(HASH),
        "supervision": SUPERVISION,
        "hub": Optional(Text()),
        "order": ListOf(Text()),
    }
)
_SHOWN_DIGITS = 12


@dataclass(frozen=True)
class Identity:
    """Everything that decides a result.

    inputs: hash of the vectors of each space, by "src" and "tgt" or by the names of the languages, the hub last.
    supervision: hashes of what the user knew besides them. hub: of several languages, the one the others are put onto.
    code: `code_version` of the program, by which an interrupted run of other code is told; None for a finished result,
    which is the same run whatever code reads it.
    """

    version: str
    method: str
    config: Mapping[str, Any]
    seed: int
    inputs: Mapping[str, str]
    supervision: Mapping[str, str | None] = field(default_factory=dict)
    hub: str | None = None
    code: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; the order of the inputs is part of it."""
        values = asdict(self)
        values["order"] = list(self.inputs)
        plain: dict[str, Any] = json.loads(json.dumps(values))
        return plain

    def difference(self, other: Identity | Mapping[str, Any]) -> str | None:
        """The first thing in which `other` differs, in words ("seed was 1, now 0" where this one is now), or None."""
        was, now = (other.to_dict() if isinstance(other, Identity) else other), self.to_dict()
        # The version first: where it differs, the parameters may have other names for no other reason.
        names = ("version", "code", "method", "hub", "order", "inputs", "supervision", "seed", "config")
        return next((words for name in names if (words := _in_words(name, was.get(name), now[name]))), None)


def _in_words(name: str, was: Any, now: Any) -> str | None:
    """How one part of two identities differs, or None where it does not."""
    if _same(was, now):
        return None
    if name == "version":
        return f"it was made by qwp {was}, this is qwp {now}"
    if name == "code":
        return None if was is None or now is None else f"it was made by other code: {was}, this is {now}"
    if name == "order":
        return f"the languages were {_listed(was)}, now they are {_listed(now)}"
    if not isinstance(was, Mapping) or not isinstance(now, Mapping):
        return f"{name} was {was!r}, now {now!r}"
    return _first_entry(name, was, now)


def _first_entry(name: str, was: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """The first entry in which two objects differ. One that is missing is the same as none."""
    for key in sorted(set(was) | set(now), key=str):
        if not _same(was.get(key), now.get(key)):
            if name in ("inputs", "supervision"):
                what = f"input for {key}" if name == "inputs" else key.replace("_", " ")
                # Most often the file is the same.
                hint = "; another file, or other words of it as by --max-vocab" if name == "inputs" else ""
                return f"it had another {what}: sha256 {_short(was.get(key))}, now {_short(now.get(key))}{hint}"
            return f"{name}.{key} was {was.get(key)!r}, now {now.get(key)!r}"
    return None


def _same(was: Any, now: Any) -> bool:
    """Whether two JSON values are the same. Python takes true for 1, JSON does not; 1 and 1.0 are one number."""
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        return was.keys() == now.keys() and all(_same(was[key], now[key]) for key in was)
    return bool(was == now) and isinstance(was, bool) == isinstance(now, bool)


def _listed(names: Any) -> str:
    return ", ".join(str(name) for name in names) if isinstance(names, list) else repr(names)


def _short(digest: Any) -> str:
    return "none" if digest is None else f"{str(digest)[:_SHOWN_DIGITS]}..."


# How a file was read, so that it can be read again in the same way: arguments of `qwp.load`.
_READING = Record(
    {
        "format": Text(),
        "errors": Text(),
        "encoding": Text(),
        "dtype": Text(),
        "vocab": Optional(Text(surrogates=True)),
        "words": Optional(Text(surrogates=True)),
        "label": Optional(Text()),
    },
    optional=frozenset({"words", "label"}),
)
_SUBWORDS = Record({"min_chars": Int(), "max_chars": Int(1), "buckets": Int(1), "sha256": HASH})
_INPUT = Record(
    {
        # Names of files need not be UTF-8.
        "path": Optional(Text(surrogates=True)),
        "sha256": HASH,
        "n_words": Int(1),
        "dim": Int(1),
        "complete": Flag(),
        "vocab_words": Optional(Int(1)),
        "name": Optional(Text()),
        "reading": Optional(_READING),
        "subwords": Optional(_SUBWORDS),
        "source_sha256": Optional(HASH),
    },
    optional=frozenset({"complete", "vocab_words", "name", "reading", "subwords", "source_sha256"}),
)
_CANDIDATE = Record(
    {
        "initializer": Text(),
        "order": Text(choices=("given", "estimated")),
        "score": Number(),
        "rescore": Optional(Number()),
    }
)
# What `Provenance.to_dict` gives; the first results of 0.1 had less.
PROVENANCE = Record(
    {
        "version": VERSION,
        "method": METHOD,
        "config": CONFIG,
        "seed": SEED,
        "backend": Text(),
        "src": _INPUT,
        "tgt": _INPUT,
        "seconds": MapOf(Number()),
        "supervision": SUPERVISION,
        "order": Text(choices=("given", "estimated")),
        "candidates": ListOf(_CANDIDATE),
        "initializer": Optional(Text()),
    },
    optional=frozenset({"seconds", "supervision", "order", "candidates", "initializer"}),
)


@dataclass(frozen=True)
class InputRecord:
    """Which vectors went in: their file, as it was named, and a hash of the words and numbers that were read.

    complete: False when only the first words of the file were read. vocab_words: of how many words, a vocabulary, those
    in the file were read; None where there was no vocabulary. name: what the vectors were called. reading: how the file
    was read, as arguments of `qwp.load`. subwords: those of a fastText model, by their n-grams, their number and their
    `Subwords.sha256`. Results of earlier versions do not say these three. source_sha256: hash of the bytes of the file
    and of how it was read, recorded by `qwp align`; None if unknown.
    """

    path: str | None
    sha256: str
    n_words: int
    dim: int
    complete: bool = True
    vocab_words: int | None = None
    name: str | None = None
    reading: dict[str, Any] | None = None
    subwords: dict[str, Any] | None = None
    source_sha256: str | None = None

    @classmethod
    def of(cls, space: Embeddings) -> InputRecord:
        """What there is to say about a space."""
        size, report = (space.sha256(), len(space), space.dim), space.report
        # A name of a file need not be UTF-8; one that is recorded has to be.
        name = space.name.encode("utf-8", "replace").decode()
        subwords = _record_of(space.subwords)
        if report is None:
            return cls(None, *size, name=name, subwords=subwords)
        reading = {
            "format": report.format,
            "errors": report.errors,
            "encoding": report.encoding,
            "dtype": space.vectors.dtype.name,
            "vocab": report.vocab_path,
            "words": report.words_path,
            "label": report.label,
        }
        return cls(report.path, *size, report.complete, report.vocab_words, name, reading, subwords)

    @property
    def whole(self) -> bool:
        """Whether these are all words of the file that anybody asked for."""
        return self.complete or self.vocab_words is not None

    @property
    def known_name(self) -> str | None:
        """What the vectors were called, in results of earlier versions after their file; None if nobody named them."""
        name = name_of(self.path) if self.name is None and self.path is not None else self.name
        return None if self.path is None and name == UNNAMED else name

    def __str__(self) -> str:
        name = "" if self.known_name is None else f"{visible(self.known_name)} "
        return f"{name}{self.n_words:,} x {self.dim}"


def _record_of(subwords: Subwords | None) -> dict[str, Any] | None:
    if subwords is None:
        return None
    shape = subwords.shape
    sizes = {"min_chars": shape.min_chars, "max_chars": shape.max_chars, "buckets": shape.buckets}
    return {**sizes, "sha256": subwords.sha256()}


@dataclass(frozen=True)
class Provenance:
    """Everything needed to run it again: version, method, config, seed, inputs, and the seconds each stage took.

    supervision: hashes of the seed lexicon and of the start matrix, None where there was none. order: whether the words
    were taken in their order for that of frequency ("given"), or one was "estimated" from the vectors. candidates: the
    initial maps that were tried, each with its scores. initializer: the one that the maps come from, None where the
    method does not say.
    """

    version: str
    method: str
    config: dict[str, Any]
    seed: int
    backend: str
    src: InputRecord
    tgt: InputRecord
    seconds: dict[str, float] = field(default_factory=dict)
    supervision: dict[str, str | None] = field(default_factory=dict)
    order: str = "given"
    candidates: list[dict[str, Any]] = field(default_factory=list)
    initializer: str | None = None

    @classmethod
    def of(cls, identity: Identity, **others: Any) -> Provenance:
        """What an identity says, and the `others`."""
        return cls(
            version=identity.version,
            method=identity.method,
            config=dict(identity.config),
            seed=identity.seed,
            supervision=dict(identity.supervision),
            **others,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Provenance:
        """The inverse of `to_dict`, for values that are as `PROVENANCE` says."""
        inputs = {side: InputRecord(**values[side]) for side in ("src", "tgt")}
        return cls(**{**values, **inputs})

    def identity(self) -> Identity:
        """What tells this run of two spaces from others."""
        inputs = {"src": self.src.sha256, "tgt": self.tgt.sha256}
        return Identity(self.version, self.method, self.config, self.seed, inputs, self.supervision)
