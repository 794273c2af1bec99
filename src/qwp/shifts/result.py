"""The result of `qwp.shift`: how far each word moved, and its neighbours at both times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from qwp import arrays
from qwp.arrays import AnyFloats, Bools, Floats, Ints
from qwp.errors import InputError, one_of, whole
from qwp.showing import html

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
