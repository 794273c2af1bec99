"""Semantic shift: align two spaces of one language on the words that did not move, and test how far each word moved."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np

from qwp import arrays
from qwp.arrays import AnyFloats, Bools, Floats, Ints
from qwp.errors import InputError, one_of
from qwp.maps.procrustes import polar, procrustes
from qwp.shifts.result import Shift, similarity_of_neighbourhoods
from qwp.shifts.significance import Expectation, NoiseModel, NullDistribution, adjusted, covariates, fisher
from qwp.spaces import frequency
from qwp.spaces.embeddings import Embeddings, disambiguated
from qwp.spaces.objects import Space, as_embeddings


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
    settings, null = StableFit(), NullDistribution()
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
            "the words of %s do not seem to be in order of frequency; the order is estimated from the vectors "
            "(order='given' trusts the given order)",
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
