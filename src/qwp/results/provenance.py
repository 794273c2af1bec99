"""The provenance of a result: what determines it, and how its inputs were read."""

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
# The JSON of `Identity.to_dict`.
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
    """Everything that determines a result. Two runs with equal identities have the same result.

    Attributes:
        version: of qwp.
        method: its name.
        config: the parameters that change the result.
        seed: the random seed.
        inputs: hash of the vectors of each space, by "src", "tgt" and "via 1", or by language with the hub last.
        supervision: hashes of the seed lexicon and other supervision.
        hub: with several languages, the one that the others are aligned onto.
        code: `code_version` of an interrupted run, which other code cannot continue; None for a finished result.
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
        """Return plain JSON types, including the order of the inputs."""
        values = asdict(self)
        values["order"] = list(self.inputs)
        plain: dict[str, Any] = json.loads(json.dumps(values))
        return plain

    def difference(self, other: Identity | Mapping[str, Any]) -> str | None:
        """Return the first difference of another, earlier identity in words, such as "seed was 1, now 0", or None."""
        was, now = (other.to_dict() if isinstance(other, Identity) else other), self.to_dict()
        # The version first: another version may have other names of the same parameters.
        names = ("version", "code", "method", "hub", "order", "inputs", "supervision", "seed", "config")
        return next((words for name in names if (words := _in_words(name, was.get(name), now[name]))), None)


def _in_words(name: str, was: Any, now: Any) -> str | None:
    """Return how one part of two identities differs in words, or None."""
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
    """Return the first entry in which two objects differ. A missing entry equals None."""
    for key in sorted(set(was) | set(now), key=str):
        if not _same(was.get(key), now.get(key)):
            if name in ("inputs", "supervision"):
                what = f"input for {key}" if name == "inputs" else key.replace("_", " ")
                # Most often it is the same file, read with another --max-vocab.
                hint = "; another file, or other words of it, see --max-vocab" if name == "inputs" else ""
                return f"it had another {what}: sha256 {_short(was.get(key))}, now {_short(now.get(key))}{hint}"
            return f"{name}.{key} was {was.get(key)!r}, now {now.get(key)!r}"
    return None


def _same(was: Any, now: Any) -> bool:
    """Whether two JSON values are equal: true differs from 1, as in JSON but not in Python; 1 equals 1.0."""
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        return was.keys() == now.keys() and all(_same(was[key], now[key]) for key in was)
    return bool(was == now) and isinstance(was, bool) == isinstance(now, bool)


def _listed(names: Any) -> str:
    return ", ".join(str(name) for name in names) if isinstance(names, list) else repr(names)


def _short(digest: Any) -> str:
    return "none" if digest is None else f"{str(digest)[:_SHOWN_DIGITS]}..."


# How a file was read: arguments of `qwp.load` that read the same vectors again.
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
        # File names need not be UTF-8.
        "path": Optional(Text(surrogates=True)),
        "sha256": HASH,
        "n_words": Int(1),
        "dim": Int(1),
        "complete": Flag(),
        "vocab_words": Optional(Int(1)),
        "name": Optional(Text()),
        "reading": Optional(_READING),
        "subwords": Optional(_SUBWORDS),
        "source_fingerprint": Optional(HASH),
    },
    optional=frozenset({"complete", "vocab_words", "name", "reading", "subwords", "source_fingerprint"}),
)
_LEG = Record(
    {
        "verdict": Text(),
        "ratio": Number(),
        "estimate": Optional(Number()),
        "pairs": Int(),
        "seconds": Number(),
    }
)
_BRIDGE = Record({"space": _INPUT, "src": _LEG, "tgt": _LEG, "pairs": Int(), "problem": Optional(Text())})
_CANDIDATE = Record(
    {
        "initializer": Text(),
        "order": Text(choices=("given", "estimated")),
        "score": Number(),
        "rescore": Optional(Number()),
    }
)
# The JSON of `Provenance.to_dict`; the first results of version 0.1 lack the optional entries.
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
        "bridges": ListOf(_BRIDGE),
    },
    optional=frozenset({"seconds", "supervision", "order", "candidates", "initializer", "bridges"}),
)


@dataclass(frozen=True)
class InputRecord:
    """The vectors of one language that were aligned.

    Attributes:
        path: of their file, as the user gave it; None without a file.
        sha256: of the words and vectors that were read.
        n_words: number of words.
        dim: number of dimensions.
        complete: False if only the first words of the file were read.
        vocab_words: size of the vocabulary that chose the words of the file; None without a vocabulary.
        name: of the vectors.
        reading: arguments of `qwp.load` that read the same vectors again.
        subwords: n-gram lengths, number and hash of the subwords of a fastText model.
        source_fingerprint: digest by which `qwp align` recognises the unchanged file, read in the same way.

    Results of earlier versions lack the last four, which are None then.
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
    source_fingerprint: str | None = None

    @classmethod
    def of(cls, space: Embeddings) -> InputRecord:
        """Return the record of a space."""
        size, report = (space.sha256(), len(space), space.dim), space.report
        # A file name need not be UTF-8, but JSON must be.
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
        """Whether all requested words of the file were read, not only the first ones."""
        return self.complete or self.vocab_words is not None

    @property
    def known_name(self) -> str | None:
        """The name of the vectors, or of their file in results of earlier versions; None for unnamed arrays."""
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


def bridge_name(number: int) -> str:
    """Return the name of a bridge among the inputs of a run. number: counted from zero."""
    return f"via {number + 1}"


@dataclass(frozen=True)
class LegRecord:
    """The alignment of one side with a bridge.

    Attributes:
        verdict: on this alignment.
        ratio: its held-out agreement relative to the null.
        estimate: its estimated accuracy, 0 to 1; None if it failed.
        pairs: number of pairs in its induced lexicon.
        seconds: the time of its fit.
    """

    verdict: str
    ratio: float
    estimate: float | None
    pairs: int
    seconds: float

    def __str__(self) -> str:
        return self.verdict if self.estimate is None else f"{self.verdict} ({100 * self.estimate:.0f} %)"


@dataclass(frozen=True)
class BridgeRecord:
    """A third space over which the two sides were aligned.

    Attributes:
        space: its vectors.
        src: the alignment of the source with it.
        tgt: the alignment of the target with it.
        pairs: number of pairs of the two sides that it joins.
        problem: why it was not used; None if it was.
    """

    space: InputRecord
    src: LegRecord
    tgt: LegRecord
    pairs: int
    problem: str | None = None

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> BridgeRecord:
        """Return the record of plain JSON types."""
        legs = {side: LegRecord(**values[side]) for side in ("src", "tgt")}
        return cls(**{**values, **legs, "space": InputRecord(**values["space"])})

    def __str__(self) -> str:
        joined = f"{self.pairs:,} joined pairs" if self.problem is None else "not used"
        return f"source {self.src}, target {self.tgt}; {joined}"


@dataclass(frozen=True)
class Provenance:
    """Everything needed to repeat a fit, and what it recorded.

    Attributes:
        version: of qwp.
        method: its name.
        config: the parameters that change the result.
        seed: the random seed.
        backend: the array library and device.
        src: the source vectors.
        tgt: the target vectors.
        seconds: the time of each stage.
        supervision: hashes of the seed lexicon and of the start matrix, None without them.
        order: "given" if the words were in order of frequency, "estimated" if the order was estimated.
        candidates: the initial maps that were tried, with their scores.
        initializer: the one of the final maps; None if the method has a single one.
        bridges: the third spaces over which the two were aligned.
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
    bridges: list[BridgeRecord] = field(default_factory=list)

    @classmethod
    def of(cls, identity: Identity, **others: Any) -> Provenance:
        """Return the provenance of an identity with the other fields."""
        return cls(
            version=identity.version,
            method=identity.method,
            config=dict(identity.config),
            seed=identity.seed,
            supervision=dict(identity.supervision),
            **others,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Provenance:
        """Return the provenance of what `to_dict` returned; the values must fit `PROVENANCE`."""
        inputs = {side: InputRecord(**values[side]) for side in ("src", "tgt")}
        bridges = [BridgeRecord.from_dict(each) for each in values.get("bridges", [])]
        return cls(**{**values, **inputs, "bridges": bridges})

    def inputs(self) -> dict[str, InputRecord]:
        """Return the record of each space by its name in the run."""
        bridges = {bridge_name(number): each.space for number, each in enumerate(self.bridges)}
        return {"src": self.src, "tgt": self.tgt, **bridges}

    def identity(self) -> Identity:
        """Return the identity of this run."""
        inputs = {name: record.sha256 for name, record in self.inputs().items()}
        return Identity(self.version, self.method, self.config, self.seed, inputs, self.supervision)
