"""The source of coresets for the steps of the loop: new random batches, or quantized coresets from a bank."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from qwp import arrays
from qwp.arrays import Array, Stream
from qwp.ot import coresets
from qwp.parameters import CORESETS, LOOP, MOST_SIZE, Settings, param

Banks: TypeAlias = "list[coresets.Bank]"
BankCache: TypeAlias = "Callable[[str, Callable[[], Banks]], Banks]"
"""Called with a hash of everything that determines the banks, and a function that draws them. Returns the banks, which
are never changed."""


@dataclass(frozen=True, kw_only=True)
class Coresets(Settings):
    """How each side is summarised in a step of the loop."""

    kind: str = param(
        "random",
        "How each side is summarised: random, kmeans++ or lloyd.",
        CORESETS,
        choices=coresets.KINDS,
        option="coreset",
    )
    size: int | None = param(
        None,
        "Points in a coreset; never more than the smaller training vocabulary.",
        CORESETS,
        least=1,
        most=MOST_SIZE,
        decided="1000; half of fewer than 2,000 words",
        option="coreset_size",
    )
    weight_power: float = param(
        0.0,
        "Weights of coreset points: cell size to this power; 0 is equal, 1 is the paper's.",
        CORESETS,
        least=0,
        most=100,
    )
    sphere_centroids: bool = param(True, "Put Lloyd centroids back on the unit sphere.", CORESETS)
    bank_size: int | None = param(
        None,
        "Coresets drawn once per side for each size; each is used once before any is used again.",
        CORESETS,
        least=1,
        most=MOST_SIZE,
        decided="min(256, max(32, 32000 // size))",
    )
    pairs_per_step: int = param(
        1, "Pairs of coresets whose transport plans are averaged in one step.", LOOP, least=1, most=10_000
    )
    fewest_points: int = 200
    """The smallest coreset by default."""
    most_points: int = 1000
    """The largest coreset by default."""

    @property
    def quantized(self) -> bool:
        """Whether k-means++ chooses the points."""
        return self.kind != "random"

    def coresets_in_bank(self, k: int) -> int:
        """Return the number of coresets of k points in a bank: fewer if they are large, for about the same work."""
        return min(256, max(32, 32_000 // k)) if self.bank_size is None else self.bank_size

    def size_for(self, words: int) -> int:
        """Return the number of points in a coreset. words: size of the smaller training vocabulary."""
        return min(self.most_points, max(self.fewest_points, words // 2)) if self.size is None else self.size


@dataclass(frozen=True)
class CoresetTable:
    """R coresets of k points for each of P spaces, looked up by number.

    points: (N, d) vectors of all spaces; rows: (P * R, k) rows of `points`; weights: (P * R, k).
    """

    points: Array
    rows: Array
    weights: Array

    def get(self, numbers: Array) -> tuple[Array, Array]:
        """Return the points (b, k, d) and weights (b, k) of the coresets with these numbers, (b,)."""
        return self.of_points(self.points, numbers), arrays.namespace(self.points).take(self.weights, numbers, axis=0)

    def of_points(self, values: Array, numbers: Array) -> Array:
        """Return values (N, c) of all points for the points of the coresets with these numbers (b,), (b, k, c)."""
        xp = arrays.namespace(values)
        rows = xp.take(self.rows, numbers, axis=0)
        return xp.reshape(xp.take(values, xp.reshape(rows, (-1,)), axis=0), (*rows.shape, -1))


class CoresetSource:
    """Coresets of both sides of P pairs of spaces for each step.

    Random batches are drawn for every step. Quantized coresets come from a bank that is drawn once for each k. Draws
    depend only on (seed, side, k, step), so a resumed run has the same ones.
    """

    def __init__(
        self,
        sides: tuple[Sequence[Array], Sequence[Array]],
        settings: Coresets,
        seeds: Sequence[int],
        progress: Callable[[int, int], None] | None = None,
        cache: BankCache | None = None,
    ) -> None:
        """sides: the P source spaces and the P target spaces, (n, d) each; seeds: one for each pair.

        progress(done, total) is called while a bank is drawn. cache: banks that other fits have drawn.
        """
        self._progress, self._cache = progress, cache
        xp = arrays.namespace(sides[0][0])
        self._sides, self._settings, self._seeds = sides, settings, seeds
        self._words = [spaces[0] if len(spaces) == 1 else xp.concat(list(spaces), axis=0) for spaces in sides]
        self._banks: tuple[int, list[CoresetTable]] | None = None
        self.seconds = 0.0
        """Seconds spent on drawing banks."""

    def tables(self, k: int, first: int, steps: int) -> list[CoresetTable]:
        """Return the coresets of k points that the steps after step `first` use: source side, target side."""
        if not self._settings.quantized:
            return [self._random_table(side, k, first, steps) for side in (0, 1)]
        if self._banks is None or self._banks[0] != k:
            begin = time.perf_counter()
            self._banks = (k, self._draw_banks(k))
            arrays.synchronize(self._words[0])
            self.seconds += time.perf_counter() - begin
        return self._banks[1]

    def numbers(self, side: int, k: int, first: int, steps: int) -> np.ndarray:
        """Return the numbers of the coresets in the table that each step uses, (steps, P * pairs_per_step)."""
        n_each = self._settings.pairs_per_step
        draws = np.arange(first * n_each, (first + steps) * n_each)
        columns = []
        for pair, seed in enumerate(self._seeds):
            if self._settings.quantized:
                chosen = self._permuted(side, k, seed, draws) + pair * self._settings.coresets_in_bank(k)
            else:
                chosen = draws - draws[0] + pair * len(draws)
            columns.append(chosen.reshape(steps, n_each))
        return np.concatenate(columns, axis=1)

    def _permuted(self, side: int, k: int, seed: int, draws: np.ndarray) -> np.ndarray:
        """Return the coresets of draws (c,): a new permutation of the bank for each pass through it."""
        size = self._settings.coresets_in_bank(k)
        orders = {
            number: arrays.rng(seed, Stream.PAIRING, side, k, number).permutation(size)
            for number in range(int(draws[0]) // size, int(draws[-1]) // size + 1)
        }
        return np.array([orders[t // size][t % size] for t in draws.tolist()], dtype=np.int64)

    def _random_table(self, side: int, k: int, first: int, steps: int) -> CoresetTable:
        n_each, offset = self._settings.pairs_per_step, 0
        rows = []
        for pair, space in enumerate(self._sides[side]):
            for draw in range(first * n_each, (first + steps) * n_each):
                rows.append(self._batch(side, pair, k, draw) + offset)
            offset += space.shape[0]
        like = self._words[side]
        weights = np.full((len(rows), k), 1.0 / k)
        return CoresetTable(like, arrays.asarray(np.stack(rows), like), arrays.asarray(weights, like))

    def _batch(self, side: int, pair: int, k: int, draw: int) -> np.ndarray:
        """Return the rows of one random batch of k words, (k,)."""
        return _drawn(self._sides[side][pair].shape[0], k, self._seeds[pair], side, draw)

    def _draw_banks(self, k: int) -> list[CoresetTable]:
        settings = self._settings
        spaces = [space for side in self._sides for space in side]
        streams = [arrays.rng(seed, Stream.BANK, side, k) for side in (0, 1) for seed in self._seeds]
        lloyd = settings.kind == "lloyd"
        labels = lloyd or settings.weight_power != 0.0
        size = settings.coresets_in_bank(k)

        def draw() -> Banks:
            return coresets.kmeans_plusplus_banks(spaces, k, size, streams, labels=labels, progress=self._progress)

        key = None if self._cache is None else _key(spaces, k, size, list(self._seeds), labels)
        banks = draw() if self._cache is None or key is None else self._cache(key, draw)
        pairs = len(self._seeds)
        return [
            self._table(
                self._words[side], spaces[side * pairs : (side + 1) * pairs], banks[side * pairs : (side + 1) * pairs]
            )
            for side in (0, 1)
        ]

    def _table(self, words: Array, spaces: Sequence[Array], banks: Sequence[coresets.Bank]) -> CoresetTable:
        xp = arrays.namespace(words)
        weights = xp.concat([bank.weights(self._settings.weight_power) for bank in banks], axis=0)
        if self._settings.kind == "lloyd":
            sphere = self._settings.sphere_centroids
            points = xp.concat(
                [
                    bank.centroids(x, i, on_sphere=sphere)
                    for x, bank in zip(spaces, banks, strict=True)
                    for i in range(len(bank))
                ]
            )
            rows = xp.reshape(xp.arange(points.shape[0], device=arrays.device(points)), weights.shape)
            return CoresetTable(points, rows, weights)
        offsets = np.cumsum([0, *(x.shape[0] for x in spaces)]).tolist()
        rows = xp.concat([bank.centres + offset for bank, offset in zip(banks, offsets, strict=False)], axis=0)
        return CoresetTable(words, rows, weights)


@lru_cache(maxsize=1024)
def _drawn(n: int, k: int, seed: int, side: int, draw: int) -> np.ndarray:
    """Return the rows of a random batch of k of n words, (k,). Cached: all trials of a search use the same batches."""
    rows = coresets.random_rows(n, k, arrays.rng(seed, Stream.RANDOM_BATCH, side, draw))
    rows.flags.writeable = False
    return rows


def _key(spaces: Sequence[Array], *draws: object) -> str:
    """Return a hash of everything that determines banks. Spaces are hashed together: lock-step changes the rounding."""
    digest = hashlib.sha256(repr(draws).encode())
    for space in spaces:
        digest.update(f"{space.shape} {space.dtype} {arrays.device(space)}".encode())
        digest.update(np.ascontiguousarray(arrays.to_numpy(space)).tobytes())
    return digest.hexdigest()
