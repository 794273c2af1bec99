"""Several languages, every two of them aligned on their own: the result of `qwp align-all`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

from qwp.errors import InputError
from qwp.judging.verdict import worst
from qwp.results import saved
from qwp.results.alignment import Alignment
from qwp.results.checkpoints import Checkpoint
from qwp.results.joint import Pair, joint_space
from qwp.results.provenance import Identity
from qwp.results.saved import AGAIN, ALIGNMENT, ALL_PAIRS
from qwp.results.schema import HASH, ListOf, Record, Text
from qwp.results.several import MultiAlignment, check_language, check_pair

_NAME = Text(most=1000)
_ENTRY = Record({"src": _NAME, "tgt": _NAME, "sha256": HASH})
_CONTENT = {saved.SCHEMA: Record({"languages": ListOf(_NAME, least=2), "pairs": ListOf(_ENTRY, least=1)})}


@dataclass(frozen=True, eq=False)
class AllPairs:
    """Several languages, every two of them aligned.

    names: the languages. alignments: of every two of them, by their names in alphabetical order, the source first.
    """

    names: tuple[str, ...]
    alignments: Mapping[Pair, Alignment]

    def __repr__(self) -> str:
        failed = len(self.failed)
        return f"AllPairs({', '.join(self.names)}: {len(self.alignments) - failed} pairs aligned, {failed} failed)"

    @property
    def failed(self) -> tuple[Pair, ...]:
        """The pairs whose alignment failed."""
        return tuple(pair for pair, alignment in self.alignments.items() if alignment.quality.failed)

    @property
    def verdict(self) -> str:
        """The worst verdict of all pairs."""
        return worst(alignment.quality.verdict for alignment in self.alignments.values())

    def pair(self, src: str, tgt: str) -> Alignment:
        """Return the alignment of one language onto another. Both directions of a pair have the same maps."""
        check_pair(src, tgt, self.names)
        pair = pair_of(src, tgt)
        return self.alignments[pair] if pair == (src, tgt) else self.alignments[pair].reversed()

    def on(self, device: str = "auto", library: str = "auto") -> AllPairs:
        """Return the same alignments with all searches computed on a device: cpu, cuda, cuda:1, ..."""
        return replace(self, alignments={pair: each.on(device, library) for pair, each in self.alignments.items()})

    def joint(self, hub: str | None = None) -> MultiAlignment:
        """Return all languages in the space of one of them, by orthogonal maps.

        One space for all costs accuracy: `pair` translates better. Languages without a successful alignment that
        connects them with the hub are left out.

        hub: by default the language with the highest estimates.
        """
        if hub is not None and hub not in self.names:
            raise InputError(f"hub {hub!r} is not among the languages {', '.join(self.names)}: give one of them")
        return joint_space(self.alignments, self.names, hub)

    def records(self) -> list[dict[str, Any]]:
        """Return the figures of each pair as plain JSON types."""
        return [pair_record(*pair, alignment) for pair, alignment in self.alignments.items()]

    def save(self, folder: str | Path, *, vectors: bool = True) -> Path:
        """Write a folder for each pair, then the index of all. vectors: as for `Alignment.save`."""
        store = PairStore(Path(folder), vectors=vectors)
        for pair, alignment in self.alignments.items():
            store.save(pair, alignment)
        store.finish(self.names, self.alignments)
        return Path(folder)

    @classmethod
    def load(cls, folder: str | Path, *, check: str = "content") -> AllPairs:
        """Read a finished result; an InputError if it is unfinished or was changed. check: as for `Alignment.load`."""
        folder = Path(folder)
        return saved.read(folder, ALL_PAIRS, partial(cls._load, folder, check))

    @classmethod
    def _load(cls, folder: Path, check: str) -> AllPairs:
        found = saved.read_stored(folder, ALL_PAIRS, _CONTENT)
        alignments: dict[Pair, Alignment] = {}
        for entry in found.content["pairs"]:
            pair = entry["src"], entry["tgt"]
            stored = saved.read_alignment_index(folder / folder_name(*pair))
            if stored.sha256 != entry["sha256"]:
                raise InputError(f"{stored.path} was replaced after {found.path} (its hash differs): {AGAIN}")
            alignments[pair] = Alignment.from_stored(stored, check=check)
        names = tuple(found.content["languages"])
        if set(alignments) != set(pairs_of(names)):
            raise InputError(f"{found.path} is damaged (it does not list every two languages): {AGAIN}")
        return cls(names, alignments)


def pair_of(one: str, other: str) -> Pair:
    """Return two names in alphabetical order, as `pairs_of` does."""
    return (one, other) if one < other else (other, one)


def pairs_of(names: Iterable[str]) -> list[Pair]:
    """Return every two names in alphabetical order, so that a pair does not depend on the order of the arguments."""
    return list(combinations(sorted(names), 2))


def folder_name(src: str, tgt: str) -> str:
    """Return the name of the folder of a pair; an InputError if no folder can have it."""
    return check_language(f"{src}-{tgt}")


def pair_record(src: str, tgt: str, alignment: Alignment) -> dict[str, Any]:
    """Return the figures of a pair as plain JSON types."""
    quality, provenance = alignment.quality, alignment.provenance
    trusted = None if quality.failed else quality.trusted
    return {
        "src": src,
        "tgt": tgt,
        "verdict": quality.verdict,
        "estimate": None if trusted is None else trusted.p1,
        "ratio": quality.ratio,
        "via": [str(each.space.known_name) for each in provenance.bridges if each.problem is None],
        "seconds": sum(provenance.seconds.values()),
        "explanation": quality.explanation,
    }


@dataclass(frozen=True)
class PairStore:
    """The folder in which a run saves each pair as soon as it is finished. The index of all pairs comes last.

    folder: None keeps nothing. vectors: as for `Alignment.save`. force: replace existing results and checkpoints.
    """

    folder: Path | None = None
    vectors: bool = True
    force: bool = False

    def path(self, pair: Pair) -> Path | None:
        """Return the folder of a pair."""
        return None if self.folder is None else self.folder / folder_name(*pair)

    def checkpoint(self, pair: Pair) -> Checkpoint | None:
        """Return the checkpoint of a pair."""
        path = self.path(pair)
        return None if path is None else Checkpoint(path, resume=not self.force)

    def load(self, pair: Pair, direct: Identity, hashes: Iterable[str]) -> Alignment | None:
        """Return the finished alignment of a pair; an InputError if it belongs to another run.

        direct: the identity of the fit without bridges. hashes: of all languages, which may be bridges.
        """
        path = self.path(pair)
        if path is None or self.force or not (path / ALIGNMENT).exists() or Checkpoint(path).path.exists():
            return None
        found = Alignment.load(path, check="size")
        was = found.provenance.identity()
        own = {name: digest for name, digest in was.inputs.items() if name in direct.inputs}
        bridges_known = set(was.inputs.values()) <= set(hashes)
        difference = direct.difference(replace(was, inputs=own if bridges_known else was.inputs))
        if difference is not None:
            raise InputError(
                f"{path} holds the result of another run ({difference}): give --force to replace it, or another --out"
            )
        if self.vectors and not found.holds_vectors:
            raise InputError(f"{path} holds its result without vectors (--save map): give --force to align again")
        return found

    def save(self, pair: Pair, alignment: Alignment) -> None:
        """Write the folder of a pair, and remove its checkpoint."""
        path = self.path(pair)
        if path is not None:
            alignment.save(path, vectors=self.vectors)
            Checkpoint(path).clear()

    def is_finished(self, names: Iterable[str]) -> bool:
        """Return whether the folder has a finished result of these languages."""
        if self.folder is None or self.force or not (self.folder / ALL_PAIRS).exists():
            return False
        return set(saved.read_stored(self.folder, ALL_PAIRS, _CONTENT).content["languages"]) == set(names)

    def finish(self, names: Iterable[str], pairs: Iterable[Pair]) -> None:
        """Write the index of all pairs."""
        if self.folder is None:
            return
        entries = [
            {"src": src, "tgt": tgt, "sha256": saved.read_alignment_index(self.folder / folder_name(src, tgt)).sha256}
            for src, tgt in pairs
        ]
        with saved.writing(self.folder) as target:
            target.stage(ALL_PAIRS, {"languages": list(names), "pairs": entries})
            target.commit()
