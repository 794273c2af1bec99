"""Semantic shift: align two spaces of one language on the words that did not move, and test how far each word moved."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from qwp import arrays
from qwp.arrays import AnyFloats, Bools, Floats, Ints
from qwp.errors import InputError, one_of, whole
from qwp.maps.procrustes import polar, procrustes
from qwp.shifts.significance import Expectation, NoiseModel, SignificanceTest, adjusted, covariates, fisher
from qwp.showing import html
from qwp.spaces import frequency
from qwp.spaces.embeddings import Embeddings, disambiguated
from qwp.spaces.objects import Space, as_embeddings

# --------------------------------------------------------------------------- the result

NEIGHBOURS = 25
"""Nearest words of each time in the neighbourhood of a word (Hamilton et al. 2016)."""


def nearest(x: AnyFloats, rows: Ints, k: int) -> Ints:
    """Return the k nearest other rows of rows (r,) of unit rows x (n, d), nearest first, (r, k)."""
    k = min(k, len(x) - 1)

    def block(part: slice) -> Ints:
        similarity = x[rows[part]] @ x.T
        similarity[np.arange(len(similarity)), rows[part]] = -np.inf
        return arrays.to_numpy(arrays.top_k(similarity, k)[1])

    found = arrays.map_blocks(block, len(rows), arrays.block_rows(len(x), x), x)
    return np.concatenate(found) if found else np.zeros((0, k), dtype=np.int64)


def similarity_of_neighbourhoods(x: AnyFloats, y: AnyFloats, rows: Ints, k: int = NEIGHBOURS) -> Floats:
    """Compare the neighbourhoods of words in x and in y.

    A word is described by its similarities to its k nearest words of both times, once at each time.

    Args:
        x, y: unit rows of the same words (n, d).
        rows: the words to compare (r,).
        k: nearest words of each time.

    Returns:
        The cosine of the two descriptions of each word (r,).
    """
    then, now = nearest(x, rows, k), nearest(y, rows, k)
    # A word that is a neighbour at both times is one neighbour.
    repeated = (now[:, :, None] == then[:, None, :]).any(axis=2)
    both = np.concatenate([then, now], axis=1)
    weights = np.concatenate([np.ones(then.shape), ~repeated], axis=1)

    def block(part: slice) -> Floats:
        one, other = (np.einsum("rkd,rd->rk", side[both[part]], side[rows[part]]).astype(np.float64) for side in (x, y))
        products = [(weights[part] * a * b).sum(axis=1) for a, b in ((one, other), (one, one), (other, other))]
        return np.asarray(products[0] / np.sqrt(np.maximum(products[1] * products[2], np.finfo(float).tiny)))

    size = max(1, arrays.block_rows(both.shape[1] * x.shape[1], x))
    found = arrays.map_blocks(block, len(rows), size, x)
    return np.concatenate(found) if found else np.zeros(0)


def overlap(then: Sequence[int], now: Sequence[int]) -> float:
    """Return the share of neighbours then that are neighbours now."""
    return len(set(then) & set(now)) / len(then) if len(then) else 0.0


FDR = 0.05
"""Default false discovery rate at which words count as moved."""
BY = ("z", "distance")
_SHOWN = 10


@dataclass(frozen=True)
class ShiftedWord:
    """One word at two times.

    Attributes:
        distance: 1 - cosine of its two vectors after mapping.
        neighbourhood: 1 - cosine of its similarities to its neighbours at the two times, which needs no map.
        z: displacement compared with words of similar frequency, in units of their spread.
        p, q: significance, see `qwp.shifts.significance`.
        rank_then, rank_now: its rank in the two vocabularies.
        then, now: its nearest common words at the two times.
        overlap: share of the words in `then` that are also in `now`.
    """

    word: str
    distance: float
    neighbourhood: float
    z: float
    p: float
    q: float
    rank_then: int
    rank_now: int
    then: tuple[str, ...]
    now: tuple[str, ...]
    overlap: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {**vars(self), "then": list(self.then), "now": list(self.now)}


@dataclass(frozen=True, eq=False)
class Shift(html.NotebookCard):
    """How far the n common words of two spaces moved, most frequent first.

    Attributes:
        names: names of the two spaces.
        words: the common words.
        distance: (n,) 1 - cosine after mapping.
        z, p, q: (n,) compared with words of similar frequency; q is p adjusted for the n tests.
        stable: (n,) whether the map was fitted to the word.
        map: (d, d) from the first space, normalised, onto the second.
        ranks: (n, 2) ranks in the two vocabularies, from 1.
        measure: the displacement that z, p and q refer to, "cosine" or "neighbourhood".
        controlled: whether the null distribution comes from a control.
        x, y: (n, d) unit rows at the two times, both in the second space.
    """

    names: tuple[str, str]
    words: list[str]
    distance: Floats
    z: Floats
    p: Floats
    q: Floats
    stable: Bools
    map: AnyFloats
    ranks: Ints
    measure: str
    controlled: bool
    x: AnyFloats
    y: AnyFloats

    def __len__(self) -> int:
        return len(self.words)

    def __repr__(self) -> str:
        first = ", ".join(repr(self.words[row]) for row in self.order()[:3])
        moved = f"{int((self.q <= FDR).sum()):,} moved at an FDR of {FDR:g}"
        return f"Shift({self.names[0]} -> {self.names[1]}, {len(self):,} words, {moved}, first {first})"

    def _as_html(self) -> str:
        """Show the words that moved most with their neighbours."""
        rows = [
            (
                each.word,
                f"{each.distance:.3f}",
                f"{each.z:.1f}",
                f"{each.q:.2g}",
                " ".join(each.then),
                " ".join(each.now),
            )
            for each in self.top(_SHOWN)
        ]
        moved = f"{len(self.moved()):,} of {len(self):,} words moved"
        title = html.line(moved, html.FIGURES, f"from {self.names[0]} to {self.names[1]}, at an FDR of {FDR:g}")
        return html.card(html.FIGURES, title, html.table(rows, ("word", "distance", "z", "q", "then", "now")))

    @cached_property
    def index(self) -> dict[str, int]:
        """Row of each word."""
        return {word: row for row, word in enumerate(self.words)}

    def __getitem__(self, word: str) -> ShiftedWord:
        if word not in self.index:
            raise KeyError(f"{word!r} is not one of the {len(self)} words of both {self.names[0]} and {self.names[1]}")
        return next(self.described([self.index[word]]))

    def order(self, by: str = "z") -> Ints:
        """Return all rows, those that moved most first: by "z" or by "distance"."""
        one_of(BY, by=by)
        return np.argsort(-getattr(self, by), kind="stable")

    def top(self, k: int = 20, *, by: str = "z", neighbours: int = 5) -> list[ShiftedWord]:
        """Return the k words that moved most."""
        whole(0, k=k)
        return list(self.described(self.order(by)[:k].tolist(), neighbours))

    def moved(self, fdr: float = FDR) -> list[str]:
        """Return the words that moved, most significant first. fdr: expected share of false discoveries among them."""
        if not 0 < fdr < 1:
            raise InputError(f"fdr={fdr} is no rate, expected a number between 0 and 1")
        return [self.words[row] for row in self.order() if self.q[row] <= fdr]

    def described(self, rows: list[int], neighbours: int = 5) -> Iterator[ShiftedWord]:
        """Yield words with their neighbours at the two times."""
        whole(1, neighbours=neighbours)
        chosen = np.array(rows, dtype=np.int64)
        alike = similarity_of_neighbourhoods(self.x, self.y, chosen)
        then, now = (nearest(side, chosen, neighbours).tolist() for side in (self.x, self.y))
        for number, row in enumerate(rows):
            yield ShiftedWord(
                self.words[row],
                float(self.distance[row]),
                1.0 - float(alike[number]),
                float(self.z[row]),
                float(self.p[row]),
                float(self.q[row]),
                int(self.ranks[row, 0]),
                int(self.ranks[row, 1]),
                tuple(self.words[i] for i in then[number]),
                tuple(self.words[i] for i in now[number]),
                overlap(then[number], now[number]),
            )

    def to_dict(self, k: int = 20, *, fdr: float = FDR, by: str = "z", neighbours: int = 5) -> dict[str, Any]:
        """Return the k words that moved most and the number of all that moved, in plain JSON types."""
        return {
            "then": self.names[0],
            "now": self.names[1],
            "measure": self.measure,
            "controlled": self.controlled,
            "words": len(self),
            "stable": int(self.stable.sum()),
            "fdr": fdr,
            "moved": len(self.moved(fdr)),
            "top": [word.to_dict() for word in self.top(k, by=by, neighbours=neighbours)],
        }


# --------------------------------------------------------------------------- the map


@dataclass(frozen=True, eq=False)
class StableMap:
    """A map between two spaces that was fitted to their stable words.

    Attributes:
        map: orthogonal (d, d).
        x, y: unit rows, centred on the means of the stable words (n, d); x is not mapped.
        stable: the words that the map was fitted to (n,).
        cosines: cosine of each word after a map that was fitted without it (n,).
    """

    map: AnyFloats
    x: AnyFloats
    y: AnyFloats
    stable: Bools
    cosines: Floats


@dataclass(frozen=True)
class StableFit:
    """Fits an orthogonal map to two spaces by Procrustes, iteratively excluding the words that moved.

    Attributes:
        rounds: of exclusion; 0 fits the map to all words. From 3 on the words found are the same
            (benchmarks/shift.py).
        max_z: words beyond this z are not stable. 2.5 excludes about 6 of 1,000 words that only noise moves.
        folds: each word gets its cosine from a map fitted to the other folds.
        noise: the expected displacement of stable words.
    """

    rounds: int = 5
    max_z: float = 2.5
    folds: int = 10
    noise: NoiseModel = NoiseModel()

    def fit(self, x: AnyFloats, y: AnyFloats, covariates: Floats) -> StableMap:
        """Return the map of x onto y.

        Args:
            x, y: vectors of the same words (n, d).
            covariates: frequency and length of the words, see `significance.covariates` (n, 2).
        """
        x, y = (arrays.to_numpy(arrays.unit(side)) for side in (x, y))
        stable = np.ones(len(x), dtype=np.bool_)
        weights = np.ones(len(x))
        one, other = _centred(x, stable), _centred(y, stable)
        for _ in range(self.rounds):
            displaced = fisher(_row_products(one @ _fitted(one, other, weights), other))
            expected = self.noise.expectation(displaced, covariates, stable)
            stable = expected.z(displaced, covariates) < self.max_z
            # Noise with (1 - c) / (1 + c) times the variance of the vector gives a cosine of about c.
            weights = np.where(stable, np.exp(-expected.typical(covariates)), 0.0)
            weights = weights / weights.max()
            one, other = _centred(x, stable), _centred(y, stable)
        return StableMap(_fitted(one, other, weights), one, other, stable, self._cross_fitted(one, other, weights))

    def expectation(self, displaced: Floats, covariates: Floats, stable: Bools) -> Expectation:
        """Estimate the displacement of words that did not move from those that seem stable."""
        first = self.noise.expectation(displaced, covariates, stable)
        return self.noise.expectation(displaced, covariates, first.z(displaced, covariates) < self.max_z)

    def _cross_fitted(self, x: AnyFloats, y: AnyFloats, weights: Floats) -> Floats:
        """Return the cosines of all rows (n,), each after a map that was fitted to the other folds."""
        weighted = x * weights[:, None].astype(x.dtype)
        folds = [slice(fold, None, self.folds) for fold in range(min(self.folds, len(x)))]
        parts = [(weighted[fold].T @ y[fold]).astype(np.float64) for fold in folds]
        whole = np.sum(parts, axis=0)
        found = np.empty(len(x))
        for fold, part in zip(folds, parts, strict=True):
            rotation = arrays.to_numpy(polar(whole - part)).astype(x.dtype)
            found[fold] = _row_products(x[fold] @ rotation, y[fold])
        return found


def _fitted(x: AnyFloats, y: AnyFloats, weights: Floats) -> AnyFloats:
    return arrays.to_numpy(procrustes(x, y, weights.astype(x.dtype)))


def _centred(x: AnyFloats, stable: Bools) -> AnyFloats:
    """Centre the rows on the mean of the stable ones, and normalise them, (n, d)."""
    return arrays.to_numpy(arrays.unit(x - x[stable].mean(axis=0, dtype=np.float64).astype(x.dtype)))


def _row_products(x: AnyFloats, y: AnyFloats) -> Floats:
    return np.asarray(np.sum(x * y, axis=1), dtype=np.float64)


# --------------------------------------------------------------------------- the comparison

logger = logging.getLogger(__name__)

COSINE, NEIGHBOURHOOD = MEASURES = ("cosine", "neighbourhood")
_MIN_WORDS = 50


def shift(
    then: Space,
    now: Space,
    *,
    measure: str = COSINE,
    control: tuple[Space, Space] | None = None,
    order: str = "auto",
) -> Shift:
    """Find the words that moved between two spaces of one language, such as those of two decades.

    The spaces are aligned on their common words that did not move. z compares the displacement of a word with that of
    words of similar frequency and length; p and q are its significance (see `qwp.shifts.significance`).

    Args:
        then: the first space, as for `qwp.align`, most frequent word first.
        now: the second space.
        measure: "cosine" compares the two vectors of a word after mapping. "neighbourhood" compares its
            similarities to its nearest words at both times, which needs no map.
        control: two spaces between which nothing moved, from texts as long as those of then and now, such as random
            halves of all text. Without a control the null distribution comes from the words that moved least.
        order: "auto" checks whether the words are in order of frequency and estimates the order if they are not;
            "given" trusts it.
    """
    one_of(MEASURES, measure=measure)
    one_of(frequency.ORDERS, order=order)
    pair = _common_words((then, now), ("then", "now"), order)
    settings, null = StableFit(), SignificanceTest()
    fitted = settings.fit(pair.x, pair.y, pair.covariates)
    displaced = _displacements(fitted, measure)
    if control is None:
        z = settings.expectation(displaced, pair.covariates, fitted.stable).z(displaced, pair.covariates)
        p = null.by_sign_flips(z)
    else:
        still = _common_words(control, ("control then", "control now"), order)
        # Nothing moved between the spaces of the control.
        unmoved = _displacements(settings.fit(still.x, still.y, still.covariates), measure)
        expected = settings.noise.expectation(unmoved, still.covariates, np.ones(len(unmoved), dtype=np.bool_))
        z = expected.z(displaced, pair.covariates)
        p = null.by_exchange(z, expected.z(unmoved, still.covariates))
    logger.info("%d words, %d of them stable", len(pair.words), int(fitted.stable.sum()))
    return Shift(
        pair.names,
        pair.words,
        1.0 - fitted.cosines,
        z,
        p,
        adjusted(p),
        fitted.stable,
        fitted.map,
        pair.ranks,
        measure,
        control is not None,
        np.asarray(fitted.x @ fitted.map),
        fitted.y,
    )


@dataclass(frozen=True, eq=False)
class _CommonWords:
    """The n common words of two spaces, most frequent first.

    Attributes:
        x, y: vectors as they were read (n, d).
        ranks: ranks in both vocabularies, from 1 (n, 2).
        covariates: frequency and length, on which noise depends (n, 2).
    """

    names: tuple[str, str]
    words: list[str]
    x: AnyFloats
    y: AnyFloats
    ranks: Ints
    covariates: Floats


def _common_words(given: tuple[Space, Space], sides: tuple[str, str], order: str) -> _CommonWords:
    if isinstance(given, str) or len(given) != 2:
        raise InputError(f"received {given!r} as a control, expected two spaces between which nothing moved")
    spaces = [as_embeddings(space, side) for space, side in zip(given, sides, strict=True)]
    one, other = spaces
    names = disambiguated(spaces)
    if one.dim != other.dim:
        raise InputError(
            f"{names[0]} has {one.dim} dimensions, {names[1]} has {other.dim}; the map needs the same number: train or "
            "reduce both to one dimension"
        )
    positions = _positions(spaces, names, order)
    rows = [(i, other.index[word]) for i, word in enumerate(one.words) if word in other.index]
    rows = [(i, j) for i, j in rows if one.vectors[i].any() and other.vectors[j].any()]
    if len(rows) < _MIN_WORDS:
        raise InputError(
            f"{names[0]} and {names[1]} have {len(rows)} words with vectors in common, expected at least "
            f"{_MIN_WORDS}: give two spaces of one language, spelled alike"
        )
    if len(rows) < 2 * one.dim:
        logger.warning("%d common words for %d dimensions: the map, and what moved, are uncertain", len(rows), one.dim)
    first, second = np.array(rows, dtype=np.int64).T
    ranks = np.stack([positions[0][first], positions[1][second]], axis=1) + 1
    frequent = np.argsort(ranks.sum(axis=1), kind="stable")
    first, second, ranks = first[frequent], second[frequent], ranks[frequent]
    x, y = one.vectors[first].astype(np.float32), other.vectors[second].astype(np.float32)
    words = [one.words[i] for i in first]
    lengths = np.stack([_lengths(x), _lengths(y)], axis=1)
    # The noise of a vector has a variance of about 1 / frequency, so about its rank. A difference adds both.
    noise = covariates(ranks.sum(axis=1).astype(np.float64), lengths)
    return _CommonWords((names[0], names[1]), words, x, y, ranks, noise)


def _lengths(vectors: AnyFloats) -> Floats:
    return np.asarray(np.linalg.norm(vectors, axis=1), dtype=np.float64)


def _positions(spaces: list[Embeddings], names: list[str], order: str) -> list[Ints]:
    """Return the frequency rank of each word of each space, from 0, (n,)."""
    orders = frequency.orders([space.vectors for space in spaces]) if order == "auto" else [None] * len(spaces)
    if any(found is not None for found in orders):
        logger.warning(
            "the words of %s do not seem to be sorted by frequency, so qwp estimates an order from the vectors; "
            "--order given (order='given') trusts the files, --order none (order='none') is for unordered items",
            " and ".join(names),
        )
    return [
        np.arange(len(space)) if found is None else np.argsort(found)
        for space, found in zip(spaces, orders, strict=True)
    ]


def _displacements(fitted: StableMap, measure: str) -> Floats:
    """Return the displacements on Fisher's scale, (n,)."""
    if measure == COSINE:
        return fisher(fitted.cosines)
    return fisher(similarity_of_neighbourhoods(fitted.x, fitted.y, np.arange(len(fitted.x))))
