"""Word similarity: the correlation of cosines in an aligned space with human similarity scores.

A file has a pair of words and a score on each line, such as WordSim-353, SimLex-999, MEN, RareWords or SemEval 2017.
The score is the first number after the two words; other columns, such as a part of speech, are ignored. A first line
without a number is a header.

- `Spearman`: the rank correlation, with mean ranks for equal scores. MUSE reports it.
- `Pearson`: the linear correlation.

Both use covered pairs, whose words are both in the vocabulary. Intervals are percentile bootstrap over pairs, with new
ranks in every resample.
"""

from __future__ import annotations

import csv
import logging
import math
import reprlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, TypeAlias

import numpy as np

from qwp import arrays
from qwp.arrays import Floats, Stream
from qwp.errors import InputError, whole
from qwp.judging.evaluation import Score, interval
from qwp.judging.ranks import (
    AUTO,
    WHERE,
    AlignedSpaces,
    Where,
    best_covered,
    check_aligned,
    mapped_sides,
    nothing_covered,
    sides_of,
)
from qwp.showing import html
from qwp.spaces.io.arguments import as_choice, as_path
from qwp.spaces.io.line_files import Skipped, text_lines

logger = logging.getLogger(__name__)

SPEARMAN, PEARSON = MEASURES = ("Spearman", "Pearson")
_FEWEST_PAIRS = 2
# Relative differences below this are rounding errors in float64.
_ROUNDING = 1e-12

ScoredPair: TypeAlias = "tuple[str, str, float]"
PairsWithScores: TypeAlias = (
    "SimilarityPairs | str | PathLike[str] | Iterable[tuple[str, str, float]] | Iterable[Sequence[Any]]"
)
"""Accepted forms of pairs with scores, see `SimilarityPairs.of`."""


@dataclass(frozen=True)
class SimilarityPairs:
    """Pairs of words with human similarity scores, in the order of the file.

    Attributes:
        pairs: (first word, second word, score); a higher score means more similar.
        skipped: number of lines of the file that could not be used.
        skipped_lines: explanations of the first of them.
        source: the file of the pairs.
    """

    pairs: tuple[ScoredPair, ...]
    skipped: int = 0
    skipped_lines: tuple[str, ...] = ()
    source: str | None = None

    def __len__(self) -> int:
        return len(self.pairs)

    def __repr__(self) -> str:
        source = "" if self.source is None else f" of {self.source!r}"
        return f"SimilarityPairs({len(self):,} pairs{source})"

    @classmethod
    def of(cls, given: PairsWithScores) -> SimilarityPairs:
        """Convert SimilarityPairs, the path of a file, or triples (word, word, score)."""
        if isinstance(given, SimilarityPairs):
            return given
        if isinstance(given, (str, PathLike)):
            return cls.load(given)
        rows = given.to_numpy() if hasattr(given, "to_numpy") else given
        found = tuple(_given_triple(row) for row in rows)
        if not found:
            raise InputError("received no pairs with scores, expected at least two: (word, word, score)")
        return cls(found)

    @classmethod
    def load(cls, path: str | PathLike[str], *, case: str = "keep") -> SimilarityPairs:
        """Read a file of pairs and scores.

        Args:
            path: UTF-8 text, a pair and its score on each line, separated by tabs, commas or blanks; may be gzipped.
            case: "keep", or "lower" to lower-case the words.
        """
        name = as_path(path)
        lower = as_choice("case", case, ("keep", "lower")) == "lower"
        skipped, pairs = Skipped(), []
        split: Callable[[str], list[str]] | None = None
        for number, line in text_lines(name, "two words and a score", skipped):
            if not line.strip():
                continue
            first, split = split is None, split or _splitter(line)
            found = _triple(split(line))
            if isinstance(found, str) and not first:
                skipped.add(number, found)
            elif not isinstance(found, str):
                pairs.append((found[0].lower(), found[1].lower(), found[2]) if lower else found)
        if not pairs:
            raise InputError(
                f"{name} holds no pair of words with a score ({skipped.in_words()}): expected two words and a number "
                "on each line, separated by tabs, commas or blanks"
            )
        skipped.warn(name)
        return cls(tuple(pairs), skipped.count, tuple(skipped.explanations), str(name))


@dataclass(frozen=True)
class WordSimilarity(html.NotebookCard):
    """The correlations of cosines with human scores.

    Attributes:
        where: "src", "tgt", or "cross" for first words of the source and second words of the target language.
        pairs: number of pairs.
        covered_pairs: number of covered pairs.
        scores: "Spearman" and "Pearson" over the covered pairs, -1 to 1.
        bootstrap: number of resamples.
        seed: of the resamples.
        source: the file of the pairs.
        skipped: number of lines that could not be used.
    """

    where: Where
    pairs: int
    covered_pairs: int
    scores: dict[str, Score]
    bootstrap: int
    seed: int
    source: str | None = None
    skipped: int = 0

    @property
    def share(self) -> float:
        """The share of covered pairs."""
        return self.covered_pairs / self.pairs

    def __repr__(self) -> str:
        values = ", ".join(f"{name} {score.value:.3f}" for name, score in self.scores.items())
        return f"WordSimilarity({self.where}, {values}, {self.covered_pairs:,} of {self.pairs:,} pairs covered)"

    def _as_html(self) -> str:
        """Show the coverage and the correlations."""
        covered = f"{self.covered_pairs:,} of {self.pairs:,} pairs covered"
        rows = [(name, f"{s.value:.3f}", f"{s.low:.3f} to {s.high:.3f}") for name, s in self.scores.items()]
        return html.card(
            html.FIGURES,
            html.line(covered, html.FIGURES, f"({self.where})"),
            html.table(rows, ("measure", "value", "95 %")),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {
            "path": self.source,
            "side": self.where,
            "skipped": self.skipped,
            "coverage": {"pairs": self.pairs, "covered_pairs": self.covered_pairs, "share": self.share},
            "scores": {name: score.to_dict() for name, score in self.scores.items()},
        }


def evaluate_similarity(
    aligned: AlignedSpaces,
    pairs: PairsWithScores,
    *,
    side: str = AUTO,
    bootstrap: int = 1000,
    seed: int = 0,
) -> WordSimilarity:
    """Correlate the cosines of pairs of words with human similarity scores.

    Words are compared in the common space; an orthogonal map does not change the cosines within a language.

    Args:
        aligned: an Alignment, or two files in one space.
        pairs: SimilarityPairs, a path, or triples (word, word, score).
        side: "src" or "tgt" for words of one language, "cross" for first words of the source and second words of the
            target language, or "auto" for the one that covers most pairs.
        bootstrap: number of resamples for the intervals.
        seed: of the resamples.
    """
    whole(0, bootstrap=bootstrap, seed=seed)
    check_aligned(aligned)
    given = SimilarityPairs.of(pairs)
    rows = {where: _rows(aligned, given.pairs, where) for where in WHERE}
    where = best_covered(side, {name: len(found[0]) for name, found in rows.items()})
    _check_covered(aligned, given, where, {name: len(found[0]) for name, found in rows.items()})
    first, second, scores = rows[where]
    cosines = _cosines(aligned, where, first, second)
    value = _correlations(np.ones((1, len(scores))), cosines, scores)[0]
    if np.isnan(value).any():
        which = "scores" if np.ptp(scores) == 0 else "similarities"
        raise InputError(
            f"the {which} of all {len(scores):,} covered pairs of {given.source or 'the pairs'} are equal, expected "
            "different ones: a correlation with a constant is undefined"
        )
    generator = arrays.rng(seed, Stream.BOOTSTRAP, 2)
    low, high = interval(
        value, lambda counts: _correlations(counts, cosines, scores), len(scores), bootstrap, generator
    )
    found = {name: Score(*(float(x) for x in triple)) for name, *triple in zip(MEASURES, value, low, high, strict=True)}
    return WordSimilarity(where, len(given), len(scores), found, bootstrap, seed, given.source, given.skipped)


# --------------------------------------------------------------------------- reading


def _splitter(first_line: str) -> Callable[[str], list[str]]:
    """Return how to split the lines of a file, judging by its first line: at tabs, commas or blanks."""
    if "\t" in first_line:
        return lambda line: [field.strip() for field in line.split("\t")]
    if first_line.count(",") >= 2:
        return _split_commas
    return str.split


def _split_commas(line: str) -> list[str]:
    try:
        return [field.strip() for field in next(csv.reader([line]), [])]
    except csv.Error:
        return []


def _triple(fields: Sequence[str]) -> ScoredPair | str:
    """Return two words and the first number after them, or what is wrong with the line."""
    if len(fields) < 3:
        return f"holds {len(fields)} fields, expected two words and a score"
    if not (fields[0] and fields[1]):
        return "has an empty field, expected two words and a score"
    numbers = (_number(field) for field in fields[2:])
    score = next((number for number in numbers if number is not None), None)
    return (fields[0], fields[1], score) if score is not None else "holds no number after two words"


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _given_triple(row: Any) -> ScoredPair:
    values = tuple(row) if isinstance(row, Iterable) and not isinstance(row, str) else ()
    if len(values) >= 3 and all(isinstance(word, str) and word for word in values[:2]):
        score = _number(str(values[2]))
        if score is not None:
            return str(values[0]), str(values[1]), score
    raise InputError(f"received the pair {reprlib.repr(row)}, expected two words and a finite score")


# --------------------------------------------------------------------------- measuring


def _rows(aligned: AlignedSpaces, pairs: Sequence[ScoredPair], where: Where) -> tuple[list[int], list[int], Floats]:
    """Return the rows of the first and second words of covered pairs, and their scores (p,)."""
    one, other = (getattr(aligned, side).index for side in sides_of(where))
    covered = [(one[a], other[b], score) for a, b, score in pairs if a in one and b in other]
    return (
        [a for a, _, _ in covered],
        [b for _, b, _ in covered],
        np.array([score for _, _, score in covered], dtype=np.float64),
    )


def _check_covered(aligned: AlignedSpaces, given: SimilarityPairs, where: Where, covered: dict[Where, int]) -> None:
    name = given.source or "the pairs"
    if covered[where] == 0:
        one, other = (getattr(aligned, side).index for side in sides_of(where))
        in_lower_case = sum(a.lower() in one and b.lower() in other for a, b, _ in given.pairs)
        examples = ", ".join(f"{a!r} {b!r}" for a, b, _ in given.pairs[:3])
        what = f"{len(given):,} pairs of {name} ({examples})"
        raise InputError(nothing_covered(aligned, what, where, covered, in_lower_case))
    if covered[where] < _FEWEST_PAIRS:
        raise InputError(
            f"1 of the {len(given):,} pairs of {name} is covered as {where}, expected at least {_FEWEST_PAIRS}: "
            "a correlation needs more than one"
        )
    logger.info("similarity of %d of %d pairs of %s, %s", covered[where], len(given), name, where)


def _cosines(aligned: AlignedSpaces, where: Where, first: list[int], second: list[int]) -> Floats:
    """Return the cosines (p,) of covered pairs in the common space."""
    vectors = dict(zip(("src", "tgt"), mapped_sides(aligned), strict=True))
    one, other = (
        arrays.to_numpy(
            arrays.namespace(vectors[side]).take(vectors[side], arrays.asarray(np.array(rows), vectors[side]), axis=0)
        ).astype(np.float64)
        for side, rows in zip(sides_of(where), (first, second), strict=True)
    )
    return np.asarray(np.sum(one * other, axis=1))


def _correlations(counts: Floats, x: Floats, y: Floats) -> Floats:
    """Return Spearman's and Pearson's correlation, (r, 2), of x and y (n,), repeated counts (r, n) times."""
    linear = _pearson(counts, x[None, :], y[None, :])
    return np.stack([_pearson(counts, _ranks(counts, x), _ranks(counts, y)), linear], axis=1)


def _ranks(counts: Floats, values: Floats) -> Floats:
    """Return mean ranks (r, n) of values (n,) in samples that contain each value counts (r, n) times."""
    _, which = np.unique(values, return_inverse=True)
    order = np.argsort(which, kind="stable")
    starts = np.flatnonzero(np.concatenate([[True], np.diff(which[order]) > 0]))
    sizes = np.add.reduceat(counts[:, order], starts, axis=1)
    return np.asarray((np.cumsum(sizes, axis=1) - (sizes - 1.0) / 2.0)[:, which])


def _pearson(counts: Floats, x: Floats, y: Floats) -> Floats:
    """Return the correlations (r,) of rows x and y, (r, n) or (1, n), repeated counts times; NaN if constant."""
    (x, x_spread), (y, y_spread) = (_centred(counts, values) for values in (x, y))
    scale = np.sqrt(x_spread * y_spread)
    product = (counts * x * y).sum(axis=1)
    return np.asarray(np.divide(product, scale, out=np.full(len(counts), np.nan), where=scale > 0))


def _centred(counts: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Return centred rows (r, n) and their sums of squares (r,), zero for rows that are constant up to rounding."""
    total = counts.sum(axis=1)
    centred = values - ((counts * values).sum(axis=1) / total)[:, None]
    spread = (counts * centred**2).sum(axis=1)
    return centred, np.where(spread > total * (_ROUNDING * np.abs(values).max()) ** 2, spread, 0.0)
