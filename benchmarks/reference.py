"""Wasserstein-Procrustes as Grave, Joulin and Berthet (2019) describe it, written plainly with NumPy and POT.

This is what a competent user would write from the paper, and what the speed of qwp is measured against: dense
matrices, `ot.sinkhorn` in its default settings, `np.linalg.svd` for every projection. It solves the same problems as
qwp: the same objective of the start, entropy measured in the same unit, the same entropy and rates in the loop, the
same refinement.

Everything is computed in the dtype of the vectors. That matters to POT: its default threshold, 1e-9, lies below what
float32 can reach, so that a float32 run always takes all of its 1000 iterations, where float64 ends after some tens to
hundreds. `tol` asks for a marginal error instead (L1, as in qwp), which float32 can meet.
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
LoopProgress: TypeAlias = Callable[[int, int, float], None]
StageCallback: TypeAlias = Callable[[str, float, Array], None]

POT_THRESHOLD = 1e-9  # the default of `ot.sinkhorn`
_CSLS_BLOCK_ROWS = 1000


# --------------------------------------------------------------------------- the start


@dataclass(frozen=True)
class Relaxation:
    """What Frank-Wolfe found. map: (d, d); plan: (n, n) doubly stochastic, rows for y and columns for x."""

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

    epsilon: entropy of a linear step as a fraction of the standard deviation of its gradient. tol: L1 marginal error
    asked of POT (None: its default settings). after_step(step) is called after every step, from 1.
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
    """Kx and Ky (n, n): similarities with square-rooted eigenvalues, Ky scaled to the norm of Kx. x, y: (n, d)."""
    kx, ky = _similarities(x), _similarities(y)
    return kx, ky * (np.linalg.norm(kx) / np.linalg.norm(ky))


def _similarities(x: Array) -> Array:
    u, s, _ = np.linalg.svd(x, full_matrices=False)
    rooted = u * np.sqrt(s)
    return np.asarray(rooted @ rooted.T)


def relaxation_objective(plan: Array, kx: Array, ky: Array) -> float:
    """|P Kx - Ky P|^2 for matrices (n, n)."""
    return float(np.linalg.norm(plan @ kx - ky @ plan) ** 2)


def uniform_plan(cost: Array, epsilon: float, tol: float | None = None) -> Array:
    """`ot.sinkhorn` between equal weights. cost: (n, n). Returns the plan (n, n), total mass 1.

    tol: L1 marginal error to stop at (None: POT's default). POT looks at the L2 norm of one marginal, which for an
    error spread evenly is smaller by the root of n.
    """
    import ot  # here, because it takes seconds to import

    n = len(cost)
    mass = np.full(n, 1.0 / n, dtype=cost.dtype)
    threshold = POT_THRESHOLD if tol is None else tol / math.sqrt(n)
    return np.asarray(ot.sinkhorn(mass, mass, cost, epsilon, stopThr=threshold, warn=False))


def nearest_orthogonal(m: Array) -> Array:
    """The orthogonal matrix nearest to m (d, d)."""
    u, _, vt = np.linalg.svd(m)
    return np.asarray(u @ vt)


# --------------------------------------------------------------------------- the loop


@dataclass(frozen=True)
class BatchEpoch:
    """`steps` steps with batches of `batch` words."""

    steps: int
    batch: int


def published_schedule(batch: int, steps: int, epochs: int, n_max: int) -> list[BatchEpoch]:
    """Each epoch doubles the batch and quarters the steps; a batch is never larger than n_max words."""
    return [BatchEpoch(max(1, steps // 4**e), min(n_max, batch * 2**e)) for e in range(epochs)]


def wasserstein_procrustes_reference(
    x: Array,
    y: Array,
    w: Array,
    schedule: Sequence[BatchEpoch],
    *,
    epsilon: float = 0.05,
    learning_rate: float = 2.0,
    final_rate: float = 0.1,
    seed: int = 0,
    tol: float | None = None,
    progress: LoopProgress | None = None,
) -> Array:
    """The stochastic loop. x: (n, d), y: (m, d), w: (d, d). Returns the map (d, d).

    epsilon: entropy on squared distances. The rate falls in a straight line to `final_rate` times the first, as in
    qwp. progress(epoch, step, seconds) is called after every step: both count from 1, the step through all epochs.
    """
    import ot

    n_steps = sum(epoch.steps for epoch in schedule)
    rates = np.linspace(learning_rate, final_rate * learning_rate, n_steps)
    rng = np.random.default_rng(seed)
    begin, step = time.perf_counter(), 0
    for number, epoch in enumerate(schedule, start=1):
        for _ in range(epoch.steps):
            src = x[rng.choice(len(x), epoch.batch, replace=False)]
            tgt = y[rng.choice(len(y), epoch.batch, replace=False)]
            plan = uniform_plan(ot.dist(src @ w, tgt), epsilon, tol)
            # Scaled by d, as in qwp: the entries of the correspondence shrink with the dimension.
            rate = float(rates[step]) * x.shape[1]
            w = nearest_orthogonal(w + rate * (src.T @ plan @ tgt))
            step += 1
            if progress is not None:
                progress(number, step, time.perf_counter() - begin)
    return w


# --------------------------------------------------------------------------- the refinement


def refine_reference(x: Array, y: Array, w: Array, rounds: int = 5, words: int = 15_000, csls_k: int = 10) -> Array:
    """CSLS, mutual pairs and Procrustes, `rounds` times. x: (n, d), y: (m, d) unit rows, w: (d, d). Returns (d, d)."""
    x, y = x[:words], y[:words]
    for _ in range(rounds):
        src, tgt = mutual_pairs(x @ w, y, csls_k)
        w = nearest_orthogonal(x[src].T @ y[tgt])
    return w


def mutual_pairs(src: Array, tgt: Array, csls_k: int = 10) -> tuple[Array, Array]:
    """Rows that are each other's best partner by CSLS. src: (n, d), tgt: (m, d) unit rows. Returns two (p,)."""
    src_means, tgt_means = csls_means(src, tgt, csls_k), csls_means(tgt, src, csls_k)
    forward = _best_partners(src, tgt, tgt_means)
    backward = _best_partners(tgt, src, src_means)
    mutual = np.flatnonzero(backward[forward] == np.arange(len(src)))
    return mutual, forward[mutual]


def csls_means(queries: Array, keys: Array, k: int) -> Array:
    """Mean similarity of each query to its k nearest keys. queries: (n, d), keys: (m, d). Returns (n,)."""
    k = min(k, len(keys))
    means = []
    for first in range(0, len(queries), _CSLS_BLOCK_ROWS):
        similarity = queries[first : first + _CSLS_BLOCK_ROWS] @ keys.T
        means.append(np.partition(similarity, -k, axis=1)[:, -k:].mean(axis=1))
    return np.concatenate(means)


def _best_partners(queries: Array, keys: Array, key_means: Array) -> Array:
    """The best key of each query by CSLS; the query's own mean does not change the order. Returns (n,)."""
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
    """The published settings: of the start, the first epoch of the loop, and how many epochs and rounds there are."""

    start_words: int = 2500
    start_steps: int = 100
    start_epsilon: float = 0.3
    batch: int = 500
    steps: int = 5000
    epochs: int = 5
    rounds: int = 5


def pipeline_reference(
    x: Array,
    y: Array,
    settings: Published,
    *,
    seed: int = 0,
    tol: float | None = None,
    progress: LoopProgress | None = None,
    after_stage: StageCallback | None = None,
) -> ReferenceRun:
    """Start, loop and refinement one after the other. x: (n, d), y: (m, d) normalised rows, frequent words first.

    progress: as in the loop. after_stage(name, seconds, map) is called after each stage; its own time is not counted.
    """
    schedule = published_schedule(settings.batch, settings.steps, settings.epochs, min(len(x), len(y)))
    seconds: dict[str, float] = {}
    w = np.eye(x.shape[1], dtype=x.dtype)
    stages: dict[str, Callable[[Array], Array]] = {
        "initialize": lambda _: (
            frank_wolfe_reference(x, y, settings.start_words, settings.start_steps, settings.start_epsilon, tol=tol).map
        ),
        "loop": lambda w: wasserstein_procrustes_reference(x, y, w, schedule, seed=seed, tol=tol, progress=progress),
        "refine": lambda w: refine_reference(x, y, w, settings.rounds),
    }
    for name, stage in stages.items():
        begin = time.perf_counter()
        w = stage(w)
        seconds[name] = time.perf_counter() - begin
        if after_stage is not None:
            after_stage(name, seconds[name], w)
    return ReferenceRun(w, seconds)
