"""Alignment problems with a known answer.

A generated space resembles word vectors: cluster sizes follow Zipf's law, the directions have unequal variance, and
rows have unit length after centring. The target is a rotated copy of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qwp.judging.null import THOROUGH, SearchEffort, search
from qwp.judging.verdict import VerdictEffort
from qwp.maps.procrustes import Maps
from qwp.spaces import normalization
from qwp.stages.agreement import random_rotation
from qwp.stages.wasserstein_procrustes import Trial

Array = npt.NDArray[Any]

SMALL_EFFORT = VerdictEffort(
    quick=SearchEffort(Trial(words=5000, steps=20, coreset=100, epsilon=0.05, batches=1), rounds=2),
    thorough=SearchEffort(Trial(words=5000, steps=30, coreset=100, epsilon=0.05, batches=1), rounds=3),
    thorough_runs=2,
    more_runs=1,
)
"""A real verdict at a fifth of the cost.

Planted rotations of 250 words and more reach 1.9 times the null runs, wrong maps and noise at most 1.1 times.
"""


@dataclass(frozen=True)
class Planted:
    """A problem and its solution.

    src: (n, d), tgt: (m, d) unit rows; w: (d, d) orthogonal with src @ w on tgt; gold: (g, 2) matching rows
    (i, j).
    """

    src: Array
    tgt: Array
    w: Array
    gold: Array

    def accuracy(self, w: Any) -> float:
        """Return the share of gold words whose nearest target row under `w` (d, d) is correct."""
        best = ((self.src[self.gold[:, 0]] @ w) @ self.tgt.T).argmax(axis=1)
        return float(np.mean(best == self.gold[:, 1]))


def rotation(d: int, seed: int) -> Array:
    """Return a uniformly random orthogonal matrix (d, d)."""
    q, r = np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))
    return np.asarray(q * np.sign(np.diag(r)))


def space(n: int, d: int, seed: int, clusters: int = 20) -> Array:
    """Return n unit rows (n, d): Zipf-sized clusters in directions of unequal variance."""
    rng = np.random.default_rng(seed)
    scales = np.arange(1, d + 1) ** -0.5
    sizes = 1.0 / np.arange(1, clusters + 1)
    centres = rng.standard_normal((clusters, d)) * scales
    members = rng.choice(clusters, size=n, p=sizes / sizes.sum())
    rows = centres[members] + 0.6 * rng.standard_normal((n, d)) * scales
    return np.asarray(normalization.fit(rows)[1])


def planted(
    n_src: int = 300,
    n_tgt: int | None = None,
    d: int = 12,
    *,
    noise: float = 0.0,
    shuffle: bool = False,
    seed: int = 0,
    dtype: str = "float64",
) -> Planted:
    """Return a space and its rotated copy. If the sizes differ, the smaller side lacks the last words of the other.

    noise: length of the random vector added to each target row, relative to the row. shuffle: whether the target rows
    are in random order, so that ranks carry no information.
    """
    n_tgt = n_src if n_tgt is None else n_tgt
    words = space(max(n_src, n_tgt), d, seed)
    rng = np.random.default_rng(seed + 1)
    w = rotation(d, seed + 2)
    order = rng.permutation(n_tgt) if shuffle else np.arange(n_tgt)
    tgt = words[order] @ w
    tgt = tgt + noise / d**0.5 * rng.standard_normal(tgt.shape)
    tgt /= np.linalg.norm(tgt, axis=1, keepdims=True)
    gold = np.array([(i, j) for j, i in enumerate(order) if i < n_src])
    return Planted(words[:n_src].astype(dtype), tgt.astype(dtype), w.astype(dtype), gold)


def null_maps_of(
    x: Any, y: Any, numbers: Iterable[int], *, seed: int, csls_k: int, effort: SearchEffort = THOROUGH
) -> list[Maps]:
    """What searches from the random rotations of these numbers find. x: (n, d), y: (m, d) unit rows."""
    wanted = list(numbers)
    rotations = [random_rotation(x.shape[1], seed, x, number) for number in wanted]
    return search(x, [y] * len(wanted), rotations, wanted, seed=seed, csls_k=csls_k, effort=effort)
