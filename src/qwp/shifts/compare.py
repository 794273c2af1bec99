"""Two spaces of one language laid upon each other, and the words ranked by how far they moved."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np

from qwp import arrays
from qwp.errors import InputError, one_of
from qwp.maps.procrustes import polar, procrustes
from qwp.shifts.result import Shift, similarity_of_neighbourhoods
from qwp.shifts.significance import Bools, Expectation, Floats, adjusted, by_exchange, by_sign_flips, fisher, traits
from qwp.spaces import frequency
from qwp.spaces.embeddings import Embeddings, FloatArray, disambiguated
from qwp.spaces.frequency import Ints
from qwp.spaces.objects import Space, as_embeddings

_MOST_ROUNDS = 10
LEFT_OUT_BEYOND = 2.5
"""In spreads; of 1,000 words that noise alone moves this leaves out about 6."""
_SETTLED = 0.001
_FOLDS = 10


@dataclass(frozen=True, eq=False)
class StableMap:
    """Two spaces laid upon each other by their stable words.

    map: (d, d), orthogonal. x, y: (n, d) unit rows about the means of the stable words, x not yet mapped. stable: (n,)
    the words that the map was fitted to. cosines: (n,), each word's by a map that was fitted without it.
    """

    map: FloatArray
    x: FloatArray
    y: FloatArray
    stable: Bools
    cosines: Floats


def stable_map(x: FloatArray, y: FloatArray, traits: Floats, *, trimmed: bool = True) -> StableMap:
    """The map of x (n, d) onto y (n, d), vectors of the same words. traits: (n, 2), of noise.

    trimmed: whether words that moved are left out; without that it is Procrustes on all words.
    """
    x, y = (arrays.to_numpy(arrays.unit(side)) for side in (x, y))
    stable = np.ones(len(x), dtype=np.bool_)
    weights = np.ones(len(x))
    one, other = _centred(x, stable), _centred(y, stable)
    for _ in range(_MOST_ROUNDS if trimmed else 0):
        displaced = fisher(_row_products(one @ _fitted(one, other, weights), other))
        expected = Expectation.of(displaced, traits, stable)
        before, stable = stable, expected.z(displaced, traits) < LEFT_OUT_BEYOND
        # A cosine of c is that of noise whose variance is about (1 - c) / (1 + c) of that of the vector.
        weights = np.where(stable, np.exp(-expected.typical(traits)), 0.0)
        weights = weights / weights.max()
        one, other = _centred(x, stable), _centred(y, stable)
        if np.mean(before != stable) <= _SETTLED:
            break
    return StableMap(_fitted(one, other, weights), one, other, stable, _cross_fitted(one, other, weights))


def _fitted(x: FloatArray, y: FloatArray, weights: Floats) -> FloatArray:
    return arrays.to_numpy(procrustes(x, y, weights.astype(x.dtype)))


def _centred(x: FloatArray, stable: Bools) -> FloatArray:
    """Unit rows about the mean of the stable ones, (n, d)."""
    return arrays.to_numpy(arrays.unit(x - x[stable].mean(axis=0, dtype=np.float64).astype(x.dtype)))


def _cross_fitted(x: FloatArray, y: FloatArray, weights: Floats) -> Floats:
    """Cosines (n,) of rows, those of each fold by the map of the others."""
    weighted = x * weights[:, None].astype(x.dtype)
    folds = [slice(fold, None, _FOLDS) for fold in range(min(_FOLDS, len(x)))]
    parts = [(weighted[fold].T @ y[fold]).astype(np.float64) for fold in folds]
    whole = np.sum(parts, axis=0)
    found = np.empty(len(x))
    for fold, part in zip(folds, parts, strict=True):
        turn = arrays.to_numpy(polar(whole - part)).astype(x.dtype)
        found[fold] = _row_products(x[fold] @ turn, y[fold])
    return found


def _row_products(x: FloatArray, y: FloatArray) -> Floats:
    return np.asarray(np.sum(x * y, axis=1), dtype=np.float64)


logger = logging.getLogger(__name__)

COSINE, NEIGHBOURHOOD = MEASURES = ("cosine", "neighbourhood")
_FEWEST_WORDS = 50


def shift(
    then: Space,
    now: Space,
    *,
    measure: str = COSINE,
    control: tuple[Space, Space] | None = None,
    order: str = "auto",
) -> Shift:
    """Which words moved between two spaces of one language, such as those of the text of two decades.

    then, now: as for `qwp.align`, most frequent word first. The spaces are aligned on the words that both have and that
    did not move. Words are compared with others of like frequency: z says by how much they moved more, p and q how
    surprising that is; `qwp.shifts.significance` says what p means. measure: "cosine", of the two vectors of a word
    after mapping, or "neighbourhood", of its similarities to its nearest words at the two times. control: two spaces
    between which nothing moved, of texts as long as those of then and now, such as random halves of all text; without
    it the words that moved least say what noise does. order: "auto" checks that the words are in order of frequency and
    estimates one where they are not, "given" takes them as they are.
    """
    one_of(MEASURES, measure=measure)
    one_of(frequency.ORDERS, order=order)
    pair = _paired((then, now), ("then", "now"), order)
    fitted = stable_map(pair.x, pair.y, pair.traits)
    displaced = _displacements(fitted, measure)
    if control is None:
        z = _settled(displaced, pair.traits, fitted.stable).z(displaced, pair.traits)
        p = by_sign_flips(z)
    else:
        z, p = _against_control(
            displaced, pair.traits, _paired(control, ("control then", "control now"), order), measure
        )
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
class _Paired:
    """The n words that two spaces have in common, most frequent first.

    x, y: (n, d) as they were read. ranks: (n, 2) from 1. traits: (n, 2), what noise depends on.
    """

    names: tuple[str, str]
    words: list[str]
    x: FloatArray
    y: FloatArray
    ranks: Ints
    traits: Floats


def _paired(given: tuple[Space, Space], sides: tuple[str, str], order: str) -> _Paired:
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
    places = _places(spaces, names, order)
    rows = [(i, other.index[word]) for i, word in enumerate(one.words) if word in other.index]
    rows = [(i, j) for i, j in rows if one.vectors[i].any() and other.vectors[j].any()]
    if len(rows) < _FEWEST_WORDS:
        raise InputError(
            f"{names[0]} and {names[1]} have {len(rows)} words with vectors in common, expected at least "
            f"{_FEWEST_WORDS}: give two spaces of one language, spelled alike"
        )
    if len(rows) < 2 * one.dim:
        logger.warning("%d common words for %d dimensions: the map, and what moved, are uncertain", len(rows), one.dim)
    first, second = np.array(rows, dtype=np.int64).T
    ranks = np.stack([places[0][first], places[1][second]], axis=1) + 1
    frequent = np.argsort(ranks.sum(axis=1), kind="stable")
    first, second, ranks = first[frequent], second[frequent], ranks[frequent]
    x, y = one.vectors[first].astype(np.float32), other.vectors[second].astype(np.float32)
    words = [one.words[i] for i in first]
    lengths = np.stack([_lengths(x), _lengths(y)], axis=1)
    # The variance of the noise of a vector is about 1 / frequency, so about its rank; that of a difference their sum.
    noise = traits(ranks.sum(axis=1).astype(np.float64), lengths)
    return _Paired((names[0], names[1]), words, x, y, ranks, noise)


def _lengths(vectors: FloatArray) -> Floats:
    return np.asarray(np.linalg.norm(vectors, axis=1), dtype=np.float64)


def _places(spaces: list[Embeddings], names: list[str], order: str) -> list[Ints]:
    """Places (n,) of the words of each space by frequency, from 0."""
    orders = frequency.orders([space.vectors for space in spaces]) if order == "auto" else [None] * len(spaces)
    if any(found is not None for found in orders):
        logger.warning(
            "the words of %s do not all seem to be in order of frequency; an order is estimated from the vectors "
            "(order='given' takes them as they are)",
            " and ".join(names),
        )
    return [
        np.arange(len(space)) if found is None else np.argsort(found)
        for space, found in zip(spaces, orders, strict=True)
    ]


def _displacements(fitted: StableMap, measure: str) -> Floats:
    """On Fisher's scale, (n,)."""
    if measure == COSINE:
        return fisher(fitted.cosines)
    return fisher(similarity_of_neighbourhoods(fitted.x, fitted.y, np.arange(len(fitted.x))))


def _settled(displaced: Floats, traits: Floats, stable: Bools) -> Expectation:
    """What is expected of words that did not move, by those that seem not to have."""
    first = Expectation.of(displaced, traits, stable)
    return Expectation.of(displaced, traits, first.z(displaced, traits) < LEFT_OUT_BEYOND)


def _against_control(displaced: Floats, traits: Floats, control: _Paired, measure: str) -> tuple[Floats, Floats]:
    """z and p (n,) by the words of a control."""
    fitted = stable_map(control.x, control.y, control.traits)
    null = _displacements(fitted, measure)
    expected = Expectation.of(null, control.traits, np.ones(len(null), dtype=np.bool_))
    z = expected.z(displaced, traits)
    return z, by_exchange(z, expected.z(null, control.traits))
