"""Ranks of gold answers among all candidates by retrieval score, and the spaces that are evaluated.

Ties count against the system: among equal scores wrong answers precede gold ones, so constant scores rank the gold
answers last. Gold answers that tie with each other share the ranks they would have anyway. NaN is the worst score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeAlias

import numpy as np

from qwp import arrays
from qwp.arrays import Array, Floats, Ints
from qwp.errors import InputError, one_of
from qwp.search import retrieval as retrieve
from qwp.search.spelling import Spelling
from qwp.spaces.embeddings import Embeddings


@dataclass(frozen=True)
class Gold:
    """A lexicon of n words as rows of the two vocabularies: its w covered words, words with most golds first.

    Attributes:
        ids: (w,) position of each covered word among the n.
        src: (w,) source rows.
        counts: (w,) number of golds of each word in the vocabulary.
        starts: (w,) where the golds of each word begin in `tgt`.
        tgt: (p,) target rows of all covered pairs.
        listed: (n,) number of golds of each word in the lexicon, in the vocabulary or not.
    """

    ids: Ints
    src: Ints
    counts: Ints
    starts: Ints
    tgt: Ints
    listed: Ints


@dataclass(frozen=True)
class Ranks:
    """Ranks of the p covered gold pairs.

    word: (p,) in 0..w-1, ascending; order: (p,) 1 for the best gold of a word, 2 for the next; rank: (p,) from 1.
    """

    word: Ints
    order: Ints
    rank: Ints


@dataclass(frozen=True)
class SpellingTerm:
    """The spelling term that is added to CSLS. src, tgt: the two vocabularies."""

    src: Sequence[str]
    tgt: Sequence[str]
    spelling: Spelling

    def added(self, scores: Array, rows: Ints) -> Array:
        """Return the term for scores (b, m) of source rows (b,), (b, m), zero for all but the best targets."""
        best, columns = (arrays.to_numpy(part) for part in arrays.top_k(scores, self.spelling.compared))
        found = np.zeros(scores.shape, dtype=best.dtype)
        words = [self.src[row] for row in rows.tolist()]
        np.put_along_axis(found, columns, self.spelling.added(words, self.tgt, columns, best.dtype), axis=1)
        return arrays.asarray(found, scores)


def gold_ranks(retriever: retrieve.Retriever, src: Array, gold: Gold, term: SpellingTerm | None = None) -> Ranks:
    """Return the ranks of the golds of every covered word among all keys. src: (n, d) mapped source rows."""
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
    """Return word, score and number of targets with at least that score, for each of the q gold pairs of a block.

    The score is compared with the gold's own entry of scores (b, m), which needs no sort and has no rounding error.
    Returns three arrays (q,). NaN scores are returned as -inf.
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
        at_least = scores[:n, :] >= golds[:n, slot : slot + 1]
        n_at_least[:n, slot] = arrays.to_numpy(xp.count_nonzero(at_least, axis=1))
    values = np.asarray(arrays.to_numpy(golds), dtype=np.float64)
    # NaN >= -inf is false, so the count misses NaN targets; a gold without a score ranks behind them, too.
    n_at_least[np.isneginf(values)] = scores.shape[1]
    valid = np.arange(columns.shape[1]) < counts[:, None]
    words = np.broadcast_to(np.arange(rows.start, rows.stop)[:, None], columns.shape)
    return words[valid], values[valid], n_at_least[valid]


def _ranks(word: Ints, score: Floats, at_least: Ints) -> Ranks:
    """Return the ranks of gold pairs, where wrong words precede golds of the same score.

    The i-th best gold of a word ranks behind i - 1 golds and behind every wrong word that scores at least as much.
    Their number is that of all targets that score at least as much, minus the golds among them.

    word, score, at_least: (p,) as from `_count_block`.
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
    """Return the requested retrieval methods, each once; an InputError for unknown ones."""
    # Python treats a single string as a sequence of letters.
    chosen = (methods,) if isinstance(methods, str) else tuple(dict.fromkeys(methods))
    if not chosen:
        raise InputError(f"retrieval is empty; expected one or more of {', '.join(retrieve.METHODS)}")
    for method in chosen:
        one_of(retrieve.METHODS, retrieval=method)
    return chosen


Where: TypeAlias = Literal["src", "tgt", "cross"]
"""The vocabulary of the words of a file: one side, or the source for first words and the target for the others."""
WHERE: tuple[Where, ...] = ("src", "tgt", "cross")
AUTO = "auto"


class AlignedSpaces(Protocol):
    """Two vocabularies with vectors in one common space."""

    @property
    def src(self) -> Embeddings: ...

    @property
    def tgt(self) -> Embeddings: ...

    def mapped(self, side: Literal["src", "tgt"]) -> Array:
        """Return the vectors of one side in the common space, (n, d) unit rows in vocabulary order."""
        ...


@dataclass(frozen=True)
class AlignedFiles:
    """Two sets of vectors that are already in one space, such as aligned files from another tool."""

    src: Embeddings
    tgt: Embeddings
    device: arrays.Device = arrays.HOST

    def on(self, device: str = "auto", library: str = "auto") -> AlignedFiles:
        """Return the same files, scored on a device: cpu, cuda, cuda:1, ..."""
        return replace(self, device=arrays.choose_device(device, library))

    def mapped(self, side: Literal["src", "tgt"]) -> Array:
        """Return the vectors of one side scaled to unit length, (n, d)."""
        vectors = (self.src if side == "src" else self.tgt).vectors
        return arrays.unit(self.device.put(vectors, vectors.dtype.name))


def check_aligned(aligned: AlignedSpaces) -> None:
    """Raise an InputError for an object that is not two languages in one space, such as a tuple of vectors."""
    if not all(hasattr(aligned, name) for name in ("src", "tgt", "mapped")):
        raise InputError(
            f"received a {type(aligned).__name__} to evaluate, expected an Alignment; wrap vectors that are already in "
            "one space in qwp.judging.ranks.AlignedFiles(src, tgt)"
        )


def mapped_sides(aligned: AlignedSpaces) -> tuple[Array, Array]:
    """Return all words of both sides in the common space, unit rows (n, d) and (m, d)."""
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
    """Return the vocabulary for the words of a file: `side`, or for "auto" the one that covers most lines."""
    one_of((AUTO, *WHERE), side=side)
    return max(WHERE, key=lambda where: covered[where]) if side == AUTO else next(w for w in WHERE if w == side)


def sides_of(where: Where) -> tuple[Literal["src", "tgt"], Literal["src", "tgt"]]:
    """Return the sides of the first and of the second words."""
    return ("src" if where != "tgt" else "tgt"), ("src" if where == "src" else "tgt")


def nothing_covered(
    aligned: AlignedSpaces, what: str, where: Where, covered: Mapping[Where, int], in_lower_case: int
) -> str:
    """Return the message for a file without any covered line.

    what: its entries, with examples. in_lower_case: number of lines that would be covered in lower case.
    """
    others = [f"{count:,} as {name}" for name, count in covered.items() if name != where and count]
    if others:
        hint = f"Other sides would cover {', '.join(others)}: name the side"
    elif in_lower_case:
        hint = f'In lower case {in_lower_case:,} would be covered: read the file with case="lower" (--case lower)'
    else:
        hint = "Check the languages, and upper and lower case"
    examples = (", ".join(repr(word) for word in space.words[:3]) for space in (aligned.src, aligned.tgt))
    return (
        f"none of the {what} is covered as {where}, expected at least 1; source words: {next(examples)}; "
        f"target words: {next(examples)}. {hint}"
    )
