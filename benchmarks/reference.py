"""Wasserstein-Procrustes of Grave, Joulin and Berthet (2019), written plainly with NumPy and POT.

The benchmarks compare qwp with this code, which follows the paper directly: dense matrices, `ot.sinkhorn` with default
settings, `np.linalg.svd` for every projection. It solves the same problems as qwp: the same objective of the
initialization, the same entropic regularisation and learning rates, the same refinement.

All computations use the dtype of the vectors. float32 cannot reach POT's default threshold of 1e-9, so POT then makes
all of its 1000 iterations; in float64 it converges after tens to hundreds. `tol` sets an L1 marginal error instead, as
in qwp, which float32 can reach.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]

POT_THRESHOLD = 1e-9  # the default of `ot.sinkhorn`
_CSLS_BLOCK_ROWS = 1000


# --------------------------------------------------------------------------- initialization


@dataclass(frozen=True)
class Relaxation:
    """The result of Frank-Wolfe. map: (d, d); plan: (n, n) doubly stochastic, rows for y and columns for x."""

    map: Array
    plan: Array


def frank_wolfe_reference(
    x: Array,
    y: Array,
    words: int = 2500,
    steps: int = 100,
    epsilon: float = 0.3,
    *,
    tol: float | None = None,
    after_step: Callable[[int], None] | None = None,
) -> Relaxation:
    """Minimise |P Kx - Ky P|^2 over doubly stochastic P by Frank-Wolfe. x: (n, d), y: (m, d), frequent words first.

    epsilon: entropic regularisation of a linear step, relative to the standard deviation of its gradient. tol: L1
    marginal error asked of POT (None: its default settings). after_step(step) is called after every step, from 1.
    """
    n = min(words, len(x), len(y))
    x, y = x[:n], y[:n]
    kx, ky = similarity_matrices(x, y)
    kx_squared, ky_squared = kx @ kx, ky @ ky
    plan = np.full((n, n), 1.0 / n, dtype=x.dtype)
    for step in range(1, steps + 1):
        gradient = plan @ kx_squared - 2.0 * (ky @ plan @ kx) + ky_squared @ plan
        vertex = n * uniform_plan(gradient, epsilon * float(gradient.std()), tol)
        size = 2.0 / (2.0 + step)
        plan = (1.0 - size) * plan + size * vertex
        if after_step is not None:
            after_step(step)
    return Relaxation(nearest_orthogonal(x.T @ plan.T @ y), plan)


def similarity_matrices(x: Array, y: Array) -> tuple[Array, Array]:
    """Return Kx and Ky (n, n) of x and y (n, d): eigenvalues square-rooted, Ky scaled to the norm of Kx."""
    kx, ky = _similarities(x), _similarities(y)
    return kx, ky * (np.linalg.norm(kx) / np.linalg.norm(ky))


def _similarities(x: Array) -> Array:
    u, s, _ = np.linalg.svd(x, full_matrices=False)
    rooted = u * np.sqrt(s)
    return np.asarray(rooted @ rooted.T)


def relaxation_objective(plan: Array, kx: Array, ky: Array) -> float:
    """Return |P Kx - Ky P|^2 for matrices (n, n)."""
    return float(np.linalg.norm(plan @ kx - ky @ plan) ** 2)


def uniform_plan(cost: Array, epsilon: float, tol: float | None = None) -> Array:
    """Return the plan (n, n) of `ot.sinkhorn` between equal weights, total mass 1. cost: (n, n).

    tol: L1 marginal error to stop at (None: POT's default). POT checks the L2 norm of one marginal, which is smaller
    by a factor of sqrt(n) for an evenly spread error.
    """
    import ot  # here, because the import takes seconds

    n = len(cost)
    mass = np.full(n, 1.0 / n, dtype=cost.dtype)
    threshold = POT_THRESHOLD if tol is None else tol / math.sqrt(n)
    return np.asarray(ot.sinkhorn(mass, mass, cost, epsilon, stopThr=threshold, warn=False))


def nearest_orthogonal(m: Array) -> Array:
    """Return the orthogonal matrix nearest to m (d, d)."""
    u, _, vt = np.linalg.svd(m)
    return np.asarray(u @ vt)


# --------------------------------------------------------------------------- the loop


@dataclass(frozen=True)
class BatchEpoch:
    """`steps` steps with batches of `batch` words."""

    steps: int
    batch: int


def published_schedule(batch: int, steps: int, epochs: int, n_max: int) -> list[BatchEpoch]:
    """Return epochs that double the batch, up to n_max words, and quarter the steps."""
    return [BatchEpoch(max(1, steps // 4**e), min(n_max, batch * 2**e)) for e in range(epochs)]


def wasserstein_procrustes_reference(
    x: Array,
    y: Array,
    w: Array,
    schedule: Sequence[BatchEpoch],
    *,
    epsilon: float = 0.05,
    learning_rate: float = 0.8,
    final_rate: float = 0.1,
    seed: int = 0,
    tol: float | None = None,
) -> Array:
    """Run the stochastic loop. x: (n, d), y: (m, d), w: (d, d). Returns the map (d, d).

    epsilon: entropic regularisation for squared distances. The learning rate falls linearly to `final_rate` times its
    initial value, as in qwp.
    """
    import ot

    n_steps = sum(epoch.steps for epoch in schedule)
    rates = np.linspace(learning_rate, final_rate * learning_rate, n_steps)
    rng = np.random.default_rng(seed)
    step = 0
    for epoch in schedule:
        for _ in range(epoch.steps):
            src = x[rng.choice(len(x), epoch.batch, replace=False)]
            tgt = y[rng.choice(len(y), epoch.batch, replace=False)]
            plan = uniform_plan(ot.dist(src @ w, tgt), epsilon, tol)
            # As long as the map, as in qwp: the length of the correspondence depends on the batch.
            correspondence = src.T @ plan @ tgt
            length = float(np.linalg.norm(correspondence)) / x.shape[1] ** 0.5
            w = nearest_orthogonal(w + float(rates[step]) / length * correspondence)
            step += 1
    return w


# --------------------------------------------------------------------------- the refinement


def refine_reference(x: Array, y: Array, w: Array, rounds: int = 5, words: int = 15_000, csls_k: int = 10) -> Array:
    """Alternate mutual CSLS pairs and Procrustes. x: (n, d), y: (m, d) unit rows, w: (d, d). Returns (d, d)."""
    x, y = x[:words], y[:words]
    for _ in range(rounds):
        src, tgt = mutual_pairs(x @ w, y, csls_k)
        w = nearest_orthogonal(x[src].T @ y[tgt])
    return w


def mutual_pairs(src: Array, tgt: Array, csls_k: int = 10) -> tuple[Array, Array]:
    """Return rows (p,) and (p,) that are mutual nearest neighbours by CSLS. src: (n, d), tgt: (m, d) unit rows."""
    src_means, tgt_means = csls_means(src, tgt, csls_k), csls_means(tgt, src, csls_k)
    forward = _best_partners(src, tgt, tgt_means)
    backward = _best_partners(tgt, src, src_means)
    mutual = np.flatnonzero(backward[forward] == np.arange(len(src)))
    return mutual, forward[mutual]


def csls_means(queries: Array, keys: Array, k: int) -> Array:
    """Return the mean similarity (n,) of queries (n, d) to their k nearest keys (m, d)."""
    k = min(k, len(keys))
    means = []
    for first in range(0, len(queries), _CSLS_BLOCK_ROWS):
        similarity = queries[first : first + _CSLS_BLOCK_ROWS] @ keys.T
        means.append(np.partition(similarity, -k, axis=1)[:, -k:].mean(axis=1))
    return np.concatenate(means)


def _best_partners(queries: Array, keys: Array, key_means: Array) -> Array:
    """Return the best key (n,) of each query by CSLS; the mean of the query does not change the order."""
    best = []
    for first in range(0, len(queries), _CSLS_BLOCK_ROWS):
        similarity = queries[first : first + _CSLS_BLOCK_ROWS] @ keys.T
        best.append(np.argmax(2.0 * similarity - key_means, axis=1))
    return np.concatenate(best)


# --------------------------------------------------------------------------- the whole


@dataclass(frozen=True)
class ReferenceRun:
    """The final map (d, d) and the seconds of start, loop and refine."""

    map: Array
    seconds: dict[str, float]


@dataclass(frozen=True)
class Published:
    """The published settings of the initialization, the first epoch of the loop, and the refinement."""

    start_words: int = 2500
    start_steps: int = 100
    start_epsilon: float = 0.3
    batch: int = 500
    steps: int = 5000
    epochs: int = 5
    rounds: int = 5


def pipeline_reference(
    x: Array, y: Array, settings: Published, *, seed: int = 0, tol: float | None = None
) -> ReferenceRun:
    """Run initialization, loop and refinement. x: (n, d), y: (m, d) normalised rows, frequent words first."""
    schedule = published_schedule(settings.batch, settings.steps, settings.epochs, min(len(x), len(y)))
    seconds: dict[str, float] = {}
    w = np.eye(x.shape[1], dtype=x.dtype)
    stages: dict[str, Callable[[Array], Array]] = {
        "initialize": lambda _: (
            frank_wolfe_reference(x, y, settings.start_words, settings.start_steps, settings.start_epsilon, tol=tol).map
        ),
        "loop": lambda w: wasserstein_procrustes_reference(x, y, w, schedule, seed=seed, tol=tol),
        "refine": lambda w: refine_reference(x, y, w, settings.rounds),
    }
    for name, stage in stages.items():
        begin = time.perf_counter()
        w = stage(w)
        seconds[name] = time.perf_counter() - begin
    return ReferenceRun(w, seconds)
