"""Several languages in one space: ordinary alignments onto a hub, and those of any two of them through it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from qwp.alignment import Alignment, InputRecord
from qwp.embeddings import Embeddings, FloatArray
from qwp.errors import InputError
from qwp.io.files import replacing
from qwp.normalization import Normalization
from qwp.procrustes import Maps
from qwp.quality import judge

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
        a, b = self._member(src), self._member(tgt)
        any_pair = self.alignments[tgt if src == self.hub else src]
        seed, csls_k = any_pair.provenance.seed, int(any_pair.provenance.config["csls_k"])
        return replace(
            any_pair,
            src=a.space,
            tgt=b.space,
            src_map=a.map,
            tgt_map=b.map,
            src_normalization=a.normalization,
            tgt_normalization=b.normalization,
            quality=judge(a.vectors(), b.vectors(), Maps(a.map, b.map), seed=seed, csls_k=csls_k),
            provenance=replace(any_pair.provenance, src=a.record, tgt=b.record),
            history=[],
        )

    def _member(self, name: str) -> _Member:
        if name != self.hub:
            found = self.alignments[name]
            return _Member(found.src, found.src_map, found.src_normalization, found.provenance.src)
        found = next(iter(self.alignments.values()))
        identity = np.eye(found.tgt.dim, dtype=found.src_map.dtype)
        return _Member(found.tgt, identity, found.tgt_normalization, found.provenance.tgt)

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


@dataclass(frozen=True)
class _Member:
    """One language: its vectors, and how they get into the common space by `map` (d, d)."""

    space: Embeddings
    map: FloatArray
    normalization: Normalization
    record: InputRecord

    def vectors(self) -> FloatArray:
        """All words normalised, (n, d)."""
        return np.asarray(self.normalization.apply(np.asarray(self.space.vectors, dtype=self.map.dtype)))
