"""The places of right answers among all candidates, by retrieval score. Ties count against the system.

Among equal scores the wrong answers come first, so a scorer that says the same about everything puts the gold ones
last, while gold answers that tie with each other share the places they would have had anyway. A score that is NaN is
worse than every number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from qwp import arrays
from qwp.arrays import Array
from qwp.errors import InputError, one_of
from qwp.search import retrieval as retrieve
from qwp.search.spelling import COMPARED, added
from qwp.spaces.embeddings import Embeddings

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Gold:
    """The lexicon as rows of the two vocabularies: w covered words, most golds first, out of its n words.

    ids: (w,) place of each covered word among the n; src: (w,) source rows; counts: (w,) golds in vocabulary;
    starts: (w,) where the golds of each word begin in tgt; tgt: (p,) target rows of all covered pairs;
    listed: (n,) golds of each word in the lexicon, in vocabulary or not.
    """

    ids: Ints
    src: Ints
    counts: Ints
    starts: Ints
    tgt: Ints
    listed: Ints


@dataclass(frozen=True)
class Ranks:
    """Places of the p covered gold pairs.

    word: (p,) in 0..w-1, ascending; order: (p,) 1 for the best gold of its word, 2 for the next; rank: (p,)
    from 1.
    """

    word: Ints
    order: Ints
    rank: Ints


@dataclass(frozen=True)
class SpellingTerm:
    """What spelling adds to CSLS. src, tgt: the two vocabularies."""

    src: Sequence[str]
    tgt: Sequence[str]
    weight: float

    def added(self, scores: Array, rows: Ints) -> Array:
        """To the scores (b, m) of source rows (b,): (b, m), zero for all but the best targets."""
        best, columns = (arrays.to_numpy(part) for part in arrays.top_k(scores, COMPARED))
        found = np.zeros(scores.shape, dtype=best.dtype)
        words = [self.src[row] for row in rows.tolist()]
        np.put_along_axis(found, columns, added(words, self.tgt, columns, best.dtype, self.weight), axis=1)
        return arrays.asarray(found, scores)


def gold_ranks(retriever: retrieve.Retriever, src: Array, gold: Gold, term: SpellingTerm | None = None) -> Ranks:
    """Rank the golds of every covered word among all keys. src: (n, d) mapped source rows."""
    xp = arrays.namespace(src)

    def block(rows: slice) -> tuple[Ints, Floats, Ints]:
        queries = xp.take(src, arrays.asarray(gold.src[rows], src), axis=0)
        scores = retriever.scores(queries)
        if term is not None:
            scores = scores + term.added(scores, gold.src[rows])
        return _count_block(scores, gold, rows)

    n_keys = retriever.keys.shape[0]
    blocks = arrays.map_blocks(block, gold.src.shape[0], arrays.block_rows(n_keys, src), src)
    word, score, at_least = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return _ranks(word, score, at_least)


def _count_block(scores: Array, gold: Gold, rows: slice) -> tuple[Ints, Floats, Ints]:
    """For each gold pair of the words `rows`: its word, its score and how many targets score at least that.

    scores: (b, m). Returns three (q,) arrays for the q pairs of the block. NaN scores come back as -inf.
    Counting against the gold's own entry of `scores` needs no sort, and no rounding error can come between.
    """
    xp = arrays.namespace(scores)
    counts = gold.counts[rows]
    slots = np.minimum(np.arange(counts[0]), counts[:, None] - 1)
    columns = gold.tgt[gold.starts[rows][:, None] + slots]
    golds = xp.take_along_axis(scores, arrays.asarray(columns, scores), axis=1)
    golds = xp.where(xp.isnan(golds), xp.full_like(golds, -xp.inf), golds)
    n_at_least = np.zeros(columns.shape, dtype=np.int64)
    for slot in range(columns.shape[1]):
        n = int(np.count_nonzero(counts > slot))
        reached = scores[:n, :] >= golds[:n, slot : slot + 1]
        n_at_least[:n, slot] = arrays.to_numpy(xp.count_nonzero(reached, axis=1))
    values = np.asarray(arrays.to_numpy(golds), dtype=np.float64)
    # NaN >= -inf is false: the count misses NaN targets, but a gold without a score stands behind them too.
    n_at_least[np.isneginf(values)] = scores.shape[1]
    real = np.arange(columns.shape[1]) < counts[:, None]
    words = np.broadcast_to(np.arange(rows.start, rows.stop)[:, None], columns.shape)
    return words[real], values[real], n_at_least[real]


def _ranks(word: Ints, score: Floats, at_least: Ints) -> Ranks:
    """Places of gold pairs when wrong words precede golds of the same score.

    word, score, at_least: (p,) as from `_count_block`. The i-th best gold of a word stands behind i - 1 golds
    and behind every wrong word that scores at least as much: those counted, less the golds among them.
    """
    best_first = np.lexsort((-score, word))
    word, score, at_least = word[best_first], score[best_first], at_least[best_first]
    first_of_word = np.concatenate([[True], word[1:] != word[:-1]])
    first_of_tie = first_of_word | np.concatenate([[True], score[1:] != score[:-1]])
    word_start = np.flatnonzero(first_of_word)[np.cumsum(first_of_word) - 1]
    tie_end = np.append(np.flatnonzero(first_of_tie)[1:], word.shape[0])[np.cumsum(first_of_tie) - 1]
    order = np.arange(word.shape[0]) - word_start + 1
    return Ranks(word, order, order + at_least - (tie_end - word_start))


def check_methods(methods: Sequence[str]) -> tuple[str, ...]:
    """The retrieval methods that were asked for, each once; others than `retrieval.METHODS` are refused."""
    # A lone string is a sequence of letters to Python; nobody means that.
    chosen = (methods,) if isinstance(methods, str) else tuple(dict.fromkeys(methods))
    if not chosen:
        raise InputError(f"retrieval is empty; expected one or more of {', '.join(retrieve.METHODS)}")
    for method in chosen:
        one_of(retrieve.METHODS, retrieval=method)
    return chosen


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
    device: arrays.Device = arrays.HOST

    def on(self, device: str = "auto", library: str = "auto") -> AlignedFiles:
        """The same files, scored on a device: cpu, cuda, cuda:1, ..."""
        return replace(self, device=arrays.choose_device(device, library))

    def mapped(self, side: Literal["src", "tgt"]) -> Array:
        """Vectors of one side scaled to length one, (n, d)."""
        vectors = (self.src if side == "src" else self.tgt).vectors
        return arrays.unit(self.device.put(vectors, vectors.dtype.name))


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
