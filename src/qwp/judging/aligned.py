"""Two languages in one space, as all scores need them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeAlias

from qwp import arrays
from qwp.arrays import Array
from qwp.checks import one_of
from qwp.errors import InputError
from qwp.spaces.embeddings import Embeddings

Where: TypeAlias = Literal["src", "tgt", "cross"]
"""Which vectors words are looked up in: of one side, or the first of them in the source, the others in the target."""
WHERE: tuple[Where, ...] = ("src", "tgt", "cross")
AUTO = "auto"


class AlignedSpaces(Protocol):
    """Two vocabularies whose vectors can be had in one common space."""

    @property
    def src(self) -> Embeddings: ...

    @property
    def tgt(self) -> Embeddings: ...

    def mapped(self, side: Literal["src", "tgt"]) -> Array:
        """Vectors of one side in the common space, (n, d) unit rows in vocabulary order."""
        ...


@dataclass(frozen=True)
class AlignedFiles:
    """Two sets of vectors that are in one space already, such as aligned files from another tool."""

    src: Embeddings
    tgt: Embeddings
    place: arrays.Device = arrays.HOST

    def on(self, device: str = "auto", library: str = "auto") -> AlignedFiles:
        """The same files, scored on a device: cpu, cuda, cuda:1, ..."""
        return replace(self, place=arrays.choose_device(device, library))

    def mapped(self, side: Literal["src", "tgt"]) -> Array:
        """Vectors of one side scaled to length one, (n, d)."""
        vectors = (self.src if side == "src" else self.tgt).vectors
        return arrays.unit(self.place.put(vectors, vectors.dtype.name))


def check_aligned(aligned: AlignedSpaces) -> None:
    """Refuse what holds no two languages in one space; a tuple of vectors does not say that they are."""
    if not all(hasattr(aligned, name) for name in ("src", "tgt", "mapped")):
        raise InputError(
            f"received a {type(aligned).__name__} to evaluate, expected an Alignment; vectors that are in one space "
            "already are qwp.judging.evaluation.AlignedFiles(src, tgt)"
        )


def mapped_sides(aligned: AlignedSpaces) -> tuple[Array, Array]:
    """All words of both sides in the common space, unit rows (n, d) and (m, d)."""
    src, tgt = aligned.mapped("src"), aligned.mapped("tgt")
    for side, vectors, words in (("source", src, len(aligned.src)), ("target", tgt, len(aligned.tgt))):
        if vectors.shape[0] != words:
            raise InputError(
                f"the {side} side has {vectors.shape[0]} mapped vectors, expected {words}, one for each word"
            )
    if src.shape[1] != tgt.shape[1]:
        raise InputError(
            f"source vectors have {src.shape[1]} dimensions, target vectors {tgt.shape[1]}; "
            "expected the same number: give two spaces that are aligned"
        )
    return src, tgt


def best_covered(side: str, covered: Mapping[Where, int]) -> Where:
    """Where the words of a file are looked up: as `side` says, or where most lines are covered, the first of equals."""
    one_of((AUTO, *WHERE), side=side)
    return max(WHERE, key=lambda where: covered[where]) if side == AUTO else next(w for w in WHERE if w == side)


def sides_of(where: Where) -> tuple[Literal["src", "tgt"], Literal["src", "tgt"]]:
    """The sides that first and second words are looked up in."""
    return ("src" if where != "tgt" else "tgt"), ("src" if where == "src" else "tgt")


def nothing_covered(aligned: AlignedSpaces, what: str, where: Where, covered: Mapping[Where, int], project: int) -> str:
    """The message for a file of which no line can be used.

    what: its entries, with examples. project: lines that would be covered in lower case.
    """
    others = [f"{count:,} as {name}" for name, count in covered.items() if name != where and count]
    if others:
        hint = f"Covered would be {', '.join(others)}: name the side"
    elif project:
        hint = f'In lower case {project:,} would be covered: read the file with case="lower" (--case lower)'
    else:
        hint = "Check the languages, and upper and lower case"
    examples = (", ".join(repr(word) for word in space.words[:3]) for space in (aligned.src, aligned.tgt))
    return (
        f"none of the {what} is covered as {where}, expected at least 1; source words: {next(examples)}; "
        f"target words: {next(examples)}. {hint}"
    )
