"""Several languages in one space: ordinary alignments onto a hub, and those of any two of them through it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from qwp.errors import InputError
from qwp.judging.verdict import judge
from qwp.maps.procrustes import Maps
from qwp.results.alignment import AlignedSide, Alignment
from qwp.results.provenance import InputRecord
from qwp.spaces.embeddings import FloatArray
from qwp.spaces.io.files import replacing

INDEX_FILE = "multi.json"
SCHEMA = 1


@dataclass(frozen=True, eq=False)
class MultiAlignment:
    """Languages in the space of one of them.

    hub: the name of the language whose space it is. alignments: by name, every other language aligned onto the hub.
    """

    hub: str
    alignments: Mapping[str, Alignment]

    @property
    def names(self) -> tuple[str, ...]:
        """All languages, the hub last."""
        return (*self.alignments, self.hub)

    @property
    def failed(self) -> tuple[str, ...]:
        """The languages whose alignment is judged not to be real."""
        return tuple(name for name, alignment in self.alignments.items() if alignment.quality.failed)

    def pair(self, src: str, tgt: str) -> Alignment:
        """The alignment of any two of the languages, judged anew. Translations go through the common space."""
        for name in (src, tgt):
            if name not in self.names:
                raise InputError(f"language {name!r} is not among {', '.join(self.names)}")
        if src == tgt:
            raise InputError(f"{src!r} was given twice; expected two languages of {', '.join(self.names)}")
        if tgt == self.hub:
            return self.alignments[src]
        a, b = self._side(src), self._side(tgt)
        any_pair = self.alignments[tgt if src == self.hub else src]
        seed, csls_k = any_pair.provenance.seed, int(any_pair.provenance.config["csls_k"])
        maps = Maps(a.map, b.map)
        return replace(
            any_pair,
            src_side=a,
            tgt_side=b,
            quality=judge(_in_order(a), _in_order(b), maps, seed=seed, csls_k=csls_k),
            provenance=replace(any_pair.provenance, src=self._record(src), tgt=self._record(tgt)),
            history=[],
        )

    def _side(self, name: str) -> AlignedSide:
        if name != self.hub:
            return self.alignments[name].src_side
        found = next(iter(self.alignments.values()))
        return replace(found.tgt_side, map=np.eye(found.tgt.dim, dtype=found.src_map.dtype))

    def _record(self, name: str) -> InputRecord:
        if name != self.hub:
            return self.alignments[name].provenance.src
        return next(iter(self.alignments.values())).provenance.tgt

    def save(self, folder: str | Path) -> Path:
        """One ordinary alignment folder a language, and an index, which comes last: it makes the whole valid."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / INDEX_FILE).unlink(missing_ok=True)
        for name, alignment in self.alignments.items():
            alignment.save(folder / name)
        with replacing(folder / INDEX_FILE) as file:
            about = {"schema": SCHEMA, "hub": self.hub, "languages": list(self.alignments)}
            file.write(json.dumps(about, indent=1, ensure_ascii=False).encode())
        return folder

    @classmethod
    def load(cls, folder: str | Path) -> MultiAlignment:
        """Read what `save` wrote."""
        hub, languages = read_index(folder)
        return cls(hub, {name: Alignment.load(Path(folder) / name) for name in languages})


def read_index(folder: str | Path) -> tuple[str, list[str]]:
    """The hub, and the languages that were aligned onto it."""
    path = Path(folder) / INDEX_FILE
    try:
        about = json.loads(path.read_text("utf-8"))
        return about["hub"], about["languages"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path} cannot be read ({error}); expected what MultiAlignment.save wrote: align again"
        ) from error


def _in_order(side: AlignedSide) -> FloatArray:
    """All words of a language normalised, most frequent first, (n, d)."""
    assert side.map is not None
    vectors = np.asarray(side.space.vectors, dtype=side.map.dtype)[side.frequent(len(side.space))]
    return np.asarray(side.normalization.apply(vectors))


def check_language(name: str) -> str:
    """Return the name of a language, which also names its folder, if it can."""
    if not name or name in (".", "..") or set(name) & set("/\\\0") or name.startswith("."):
        raise InputError(
            f"{name!r} cannot name a language: expected a name that can be that of a folder, without / and \\ "
            "and no dot at its beginning"
        )
    return name
