"""Several languages in the space of a hub: one alignment for each, and alignments of any two through the hub."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from qwp.errors import InputError, one_of
from qwp.results import saved
from qwp.results.alignment import CHECKS, Alignment
from qwp.results.provenance import Identity, InputRecord
from qwp.results.saved import AGAIN, SEVERAL
from qwp.results.schema import HASH, ListOf, Record, Text
from qwp.results.sides import AlignedSide
from qwp.results.summary import languages_card
from qwp.showing import html
from qwp.showing.terminal import visible

_NAME = Text(most=1000)
# The hash of a language is that of its index, so that a language of another run is noticed.
_HASHED = Record({"hub": _NAME, "languages": ListOf(Record({"name": _NAME, "sha256": HASH}), least=1)})
_CONTENT = {1: Record({"hub": _NAME, "languages": ListOf(_NAME, least=1)}), 2: _HASHED, saved.SCHEMA: _HASHED}
_MOST_BYTES = 200  # of a name: file systems end at 255, and names of temporary files are longer
# Names that Windows reserves, with any suffix, and names of files and folders that qwp writes there.
_RESERVED = re.compile(
    r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?|parts-.*|(alignment|multi|all-pairs|src|tgt)\.json|\w+\.safetensors",
    re.IGNORECASE,
)


@dataclass(frozen=True, eq=False)
class MultiAlignment:
    """Several languages in the space of one of them, the hub.

    hub: the name of the hub. alignments: every other language aligned onto the hub, by name.
    """

    hub: str
    alignments: Mapping[str, Alignment]

    def __repr__(self) -> str:
        languages = ", ".join(f"{visible(name)} {found.quality.verdict}" for name, found in self.alignments.items())
        return f"MultiAlignment({languages} -> {visible(self.hub)})"

    def _repr_html_(self) -> str:
        """Show one row for each language in a notebook."""
        languages = {name: (found.provenance, found.quality) for name, found in self.alignments.items()}
        return html.never_failing(lambda: languages_card(self.hub, languages), self)

    @property
    def names(self) -> tuple[str, ...]:
        """All languages, the hub last."""
        return (*self.alignments, self.hub)

    @property
    def failed(self) -> tuple[str, ...]:
        """The languages whose alignment failed."""
        return tuple(name for name, alignment in self.alignments.items() if alignment.quality.failed)

    def pair(self, src: str, tgt: str) -> Alignment:
        """Return the alignment of any two languages through the common space, with a verdict of its own."""
        check_pair(src, tgt, self.names)
        if tgt == self.hub:
            return self.alignments[src]
        a, b = self._side(src), self._side(tgt)
        any_pair = self.alignments[tgt if src == self.hub else src]
        assert a.map is not None, "every language but the hub is mapped, and the hub by the identity"
        provenance = replace(
            any_pair.provenance,
            src=self._record(src),
            tgt=self._record(tgt),
            order="given" if a.order is None and b.order is None else "estimated",
        )
        found = replace(any_pair, src_side=a, tgt_side=b, provenance=provenance, history=[], origin=None)
        return replace(found, quality=found.judge_again())

    def identity(self) -> Identity:
        """Return the identity of this run."""
        first = next(iter(self.alignments.values())).provenance.identity()
        return replace(first, inputs={name: self._record(name).sha256 for name in self.names}, hub=self.hub)

    def _side(self, name: str) -> AlignedSide:
        if name != self.hub:
            return self.alignments[name].src_side
        found = next(iter(self.alignments.values()))
        return replace(found.tgt_side, map=np.eye(found.src_map.shape[1], dtype=found.src_map.dtype))

    def _record(self, name: str) -> InputRecord:
        if name != self.hub:
            return self.alignments[name].provenance.src
        return next(iter(self.alignments.values())).provenance.tgt

    def save(self, folder: str | Path, *, vectors: bool = True) -> Path:
        """Write one alignment folder for each language, and an index of them, which comes last.

        An earlier result stays unchanged until everything is written; then all indexes are renamed one after the other.
        If the save is interrupted between these, `load` reports a damaged result.

        vectors: False leaves out the words and vectors; `load` then finds them in the files that were aligned.
        """
        folder = Path(folder)
        self._check()
        contents = {name: found.checked_content(vectors=vectors) for name, found in self.alignments.items()}
        with ExitStack() as stack:
            top = stack.enter_context(saved.writing(folder))
            targets = {name: stack.enter_context(saved.writing(folder / name)) for name in self.alignments}
            for name, target in targets.items():
                target.put(partial(self.alignments[name].write_parts, vectors=vectors))
            hashes = {name: target.stage(saved.ALIGNMENT, contents[name]) for name, target in targets.items()}
            languages = [{"name": name, "sha256": found} for name, found in hashes.items()]
            top.stage(SEVERAL, {"hub": self.hub, "languages": languages})
            for target in (*targets.values(), top):
                target.commit()
        return folder

    @classmethod
    def load(cls, folder: str | Path, *, check: str = "content") -> MultiAlignment:
        """Read what `save` wrote; an InputError if it has changed since. check: as for `Alignment.load`."""
        one_of(CHECKS, check=check)
        folder = Path(folder)
        return saved.read(folder, SEVERAL, lambda: cls._load(folder, check))

    @classmethod
    def _load(cls, folder: Path, check: str) -> MultiAlignment:
        found = read_index(folder)
        alignments = {}
        for name, digest in found.languages.items():
            stored = saved.read_alignment_index(folder / name)
            if digest is not None and stored.sha256 != digest:
                raise InputError(
                    f"{stored.path} is not of the same run as {folder / SEVERAL} (its hash differs): {AGAIN}"
                )
            alignments[name] = Alignment.from_stored(stored, check=check)
        result = cls(found.hub, alignments)
        try:
            result._check(one_run=any(digest is None for digest in found.languages.values()))
        except InputError as error:
            raise InputError(f"{folder / SEVERAL} is damaged ({error}): {AGAIN}") from error
        return result

    def _check(self, *, one_run: bool = False) -> None:
        """Raise an InputError for languages of different hubs, or, with `one_run`, of different runs."""
        check_languages(self.hub, self.alignments)
        first, *others = self.alignments.values()
        for other in others:
            if other.provenance.tgt.sha256 != first.provenance.tgt.sha256:
                raise InputError(f"the languages are not aligned onto the same vectors of {self.hub!r}")
            inputs = other.provenance.identity().inputs
            difference = replace(first.provenance.identity(), inputs=inputs).difference(other.provenance.identity())
            if one_run and difference is not None:
                raise InputError(f"the languages are of different runs: {difference}")


@dataclass(frozen=True)
class Languages:
    """The content of multi.json. languages: the hash of each index by name, in order; None in schema 1."""

    hub: str
    languages: Mapping[str, str | None]


def read_index(folder: Path) -> Languages:
    """Read the hub and the languages that were aligned onto it."""
    stored = saved.read_stored(folder, SEVERAL, _CONTENT)
    found = stored.content["languages"]
    names = found if stored.schema == 1 else [language["name"] for language in found]
    try:
        check_languages(stored.content["hub"], names)
    except InputError as error:
        raise InputError(f"{stored.path} is damaged ({error}): {AGAIN}") from error
    hashes = [None] * len(found) if stored.schema == 1 else [language["sha256"] for language in found]
    return Languages(stored.content["hub"], dict(zip(names, hashes, strict=True)))


def check_language(name: str) -> str:
    """Return the name of a language if it can name a folder on every system; an InputError otherwise."""
    problems = {
        "it is empty": not name,
        f"it has more than {_MOST_BYTES} bytes": len(name.encode("utf-8", "surrogatepass")) > _MOST_BYTES,
        "it begins with a dot, or ends with a dot or a blank": name.startswith(".") or name[-1:] in (".", " "),
        'it contains one of / \\ : * ? " < > |': bool(set(name) & set('/\\:*?"<>|')),
        "it contains control characters": any(unicodedata.category(c) in ("Cc", "Cs") for c in name),
        "Windows or qwp reserve it": bool(_RESERVED.fullmatch(name)),
    }
    found = [problem for problem, there in problems.items() if there]
    if found:
        raise InputError(f"{name!r} cannot name a language, which has a folder of that name ({found[0]}): rename it")
    return name


def check_pair(src: str, tgt: str, names: Sequence[str]) -> None:
    """Raise an InputError unless two different languages of several are given."""
    for name in (src, tgt):
        if name not in names:
            raise InputError(f"language {name!r} is not among {', '.join(names)}")
    if src == tgt:
        raise InputError(f"{src!r} was given twice; expected two languages of {', '.join(names)}")


def check_languages(hub: str, languages: Iterable[str]) -> None:
    """Raise an InputError for names that cannot name folders, or that differ by case only."""
    names = [check_language(name) for name in (hub, *languages)]
    if len(names) < 2:
        raise InputError(f"no language is aligned onto {hub!r}; expected at least one")
    if len({name.casefold() for name in names}) < len(names):
        raise InputError(
            f"two of the languages {', '.join(names)} have the same name, or differ by case only: rename one"
        )
