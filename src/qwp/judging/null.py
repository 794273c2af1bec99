"""What chance reaches on two spaces: maps that were found from random rotations by the same means as real ones.

A map that was fitted to its own translations agrees with itself, also between spaces that have nothing in common, and
the more so the fewer words there are for each dimension. Spaces with clusters, hubs or long tails can even be laid upon
each other as a whole without a single word meeting its counterpart. How far that carries depends on the spaces; so it
is found out on them: random rotations go through a short loop of optimal transport and a refinement, and end in maps
that are as good as chance makes them. A few of such runs give the mean and the deviation.
"""

from __future__ import annotations

import hashlib
import platform
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Generic, TypeVar

import numpy as np

from qwp import arrays
from qwp.arrays import Array, Stream
from qwp.maps.procrustes import Maps
from qwp.stages.agreement import Agreement
from qwp.stages.refinement import CslsRefinement, refine
from qwp.stages.wasserstein_procrustes import Trial
from qwp.version import code_version

V = TypeVar("V")


class Cache(Generic[V]):
    """The values of the `size` keys that were used last. Safe for threads.

    Two threads that need the same value at the same time both compute it; the first to add it decides.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = Lock()
        self._values: OrderedDict[str, V] = OrderedDict()

    def get(self, key: str) -> V | None:
        """Return the value of a key, or None."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def add(self, key: str, value: V) -> V:
        """Return the value of a key, which is this one unless there is one already."""
        with self._lock:
            found = self._values.setdefault(key, value)
            self._values.move_to_end(key)
            while len(self._values) > self._size:
                self._values.popitem(last=False)
            return found

    def clear(self) -> None:
        """Forget all values."""
        with self._lock:
            self._values.clear()


@dataclass(frozen=True)
class Effort:
    """What a search spends on a map: a short loop, and rounds of plain refinement."""

    trial: Trial
    rounds: int

    @property
    def name(self) -> str:
        """By which its runs are known: another one for every effort."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:16]


# The loop finds better optima of chance than the refinement does, plain rounds better ones than weighted rounds do.
THOROUGH = Effort(Trial(words=5000, steps=100, coreset=500, epsilon=0.05, batches=2), rounds=3)
# A quarter of that work comes within a tenth of what it reaches on spaces with long tails, nearer on others.
QUICK = Effort(Trial(words=5000, steps=50, coreset=500, epsilon=0.05, batches=1), rounds=2)
_PLAIN = CslsRefinement(words=0)


@dataclass(frozen=True)
class Run:
    """A run of chance: how it translates the words, (n,), and what it reached."""

    translations: np.ndarray
    reached: Agreement


def searched(
    x: Array,
    others: Sequence[Array],
    starts: Sequence[Array],
    numbers: Sequence[int],
    *,
    seed: int,
    csls_k: int,
    effort: Effort,
) -> list[Maps]:
    """Where a loop and a refinement lead from each of the starts (d, d), the loops in lock-step.

    x: (n, d) normalised rows; others: those of the other side (m, d), and numbers, which decide what the loop draws,
    one for each start.
    """
    seeds = [int(arrays.rng(seed, Stream.CHANCE, number).integers(2**31)) for number in numbers]
    count = len(starts)
    tried = effort.trial.run([x] * count, others, starts, seeds)
    return [refined_plainly(x, y, Maps(w), effort.rounds, csls_k) for y, w in zip(others, tried, strict=True)]


def refined_plainly(x: Array, y: Array, maps: Maps, rounds: int, csls_k: int) -> Maps:
    """Maps after some plain rounds on x (n, d) and y (m, d)."""
    return refine(x, y, maps, replace(_PLAIN, rounds=rounds, csls_k=csls_k))


def nearest_orthogonal(x: Array, y: Array, maps: Maps, *, csls_k: int) -> Array:
    """The orthogonal map (d, d) that fits the mutual pairs of the maps, from which a search can go on."""
    return refined_plainly(x, y, maps, 1, csls_k).src


Runs = dict[tuple[str, int], Run]
"""By the name of the effort and the number: a few kilobytes for each."""

_MOST_SPACES = 8
_CACHE: Cache[Runs] = Cache(_MOST_SPACES)


def key_of(x: Array, y: Array, seed: int, csls_k: int) -> str:
    """Return a hash of the spaces x (n, d) and y (m, d), of where they are computed on, of the seed and of the code."""
    place = type(x).__module__, str(arrays.device(x)), arrays.threads(), platform.machine(), np.__version__
    found = hashlib.sha256(repr((place, seed, csls_k, code_version(), x.shape, y.shape)).encode())
    for side in (x, y):
        found.update(np.ascontiguousarray(arrays.to_numpy(side)).data)
    return found.hexdigest()


def known_of(key: str) -> Runs:
    """Return the null runs on some spaces so far; a run that is put into it is shared from then on."""
    return _CACHE.add(key, {})


def forget() -> None:
    """Forget all null runs."""
    _CACHE.clear()
