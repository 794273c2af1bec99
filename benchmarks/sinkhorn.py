"""Time and memory of entropic transport between two coresets: qwp and POT at the same marginal error.

The libraries check convergence differently, so equal tolerances would not be comparable. POT runs first. The L1 error
of both marginals of its plan, computed in float64, is the target for qwp. Weights are equal, the cost is the squared
distance, epsilon is 0.05, in one of three modes:

- `loose`: about the error at which the loop stops, POT with a threshold of 1e-3. Generated float32 unit vectors.
- `default`: POT with default settings (threshold 1e-9, 1000 iterations) on a problem of the loop: k-means++ coresets of
  novels en-es under a good map, or of generated spaces. float32 cannot reach the threshold, so POT uses all of its
  iterations. qwp may end slightly above its error there; both errors are reported.
- `default64`: the same in float64, where the threshold can be reached.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import qwp
from benchmarks.common import clustered_space, comparison, in_turns
from benchmarks.data import Array, SpacePair, space_pair
from benchmarks.memory import in_fresh_process
from qwp import arrays
from qwp.ot.coresets import kmeans_plusplus_bank
from qwp.ot.costs import Plan, cost_matrix
from qwp.ot.sinkhorn import sinkhorn

EPSILON = 0.05
MAX_ITER = 2000  # of qwp: twice POT's default, so that the tolerance ends its iterations
# qwp checks the error of the scalings. Near rounding, the plan needs a tighter tolerance than its error.
_TIGHTENING = (0.99, 0.5, 0.25, 0.125)
# A short run finds a map good enough for realistic costs.
_MAP_WORDS = 5000
_MAP_OPTIONS: dict[str, Any] = {"coreset_size": 500, "epochs": 1, "steps": 60, "refine": 1}


@dataclass(frozen=True)
class Mode:
    """A problem and the criteria of POT. threshold, max_iter: stopThr and numItermax of `ot.sinkhorn`."""

    label: str
    dtype: str
    threshold: float
    max_iter: int
    of_the_loop: bool


MODES = {
    "loose": Mode("loose tolerance", "float32", 1e-3, 2000, of_the_loop=False),
    "default": Mode("POT defaults, float32", "float32", 1e-9, 1000, of_the_loop=True),
    "default64": Mode("POT defaults, float64", "float64", 1e-9, 1000, of_the_loop=True),
}


def run(
    ks: Sequence[int] = (500, 2000), repeats: int = 5, d: int = 300, n: int = 20_000, generated: bool = False
) -> dict[str, Any]:
    """Solve problems of each size in `ks` in each mode. n, d: size of generated spaces."""
    pair = space_pair(n, d, generated=generated)
    w = good_map(pair)
    cases = []
    for mode in MODES.values():
        for k in ks:
            cost = loop_problem(pair, w, k) if mode.of_the_loop else make_problem(k, d)
            cases.append({"data": pair.name if mode.of_the_loop else "generated", **_case(mode, cost, repeats)})
    return {"d": d, "epsilon": EPSILON, "cases": cases}


# --------------------------------------------------------------------------- problems


def make_problem(k: int, d: int, seed: int = 0) -> Array:
    """Return the costs (k, k), float32, between k words and k noisy other words of a generated space."""
    words = clustered_space(2 * k, d, seed)
    noise = np.random.default_rng(seed + 1).standard_normal((k, d)).astype(np.float32) / d**0.5
    other = words[k:] + noise
    other /= np.linalg.norm(other, axis=1, keepdims=True)
    return np.asarray(cost_matrix(words[:k], other))


def good_map(pair: SpacePair) -> Array:
    """Return a map (d, d) that aligns the spaces: the true one, or that of a short run."""
    if pair.rotation is not None:
        return pair.rotation
    return qwp.align(pair.src.head(_MAP_WORDS), pair.tgt.head(_MAP_WORDS), seed=0, **_MAP_OPTIONS).src_map


def loop_problem(pair: SpacePair, w: Array, k: int, seed: int = 0) -> Array:
    """Return the costs (k, k) of a step of the loop: k-means++ coresets of both sides under w (d, d)."""
    rng = np.random.default_rng(seed)
    src, tgt = (arrays.to_numpy(kmeans_plusplus_bank(x, k, 1, rng).points(x, 0)) for x in pair.normalised())
    return arrays.to_numpy(cost_matrix(src @ w.astype(src.dtype), tgt))


def equal_weights(cost: Array) -> Array:
    """Return the weights (k,) of a cost (k, k)."""
    return np.full(len(cost), 1.0 / len(cost), dtype=cost.dtype)


# --------------------------------------------------------------------------- comparison


def reached_error(plan: Array, weights: Array) -> float:
    """Return the L1 distance of both marginals of a plan (k, k) from the weights (k,), in float64."""
    plan, weights = plan.astype(np.float64), weights.astype(np.float64)
    return float(sum(np.abs(plan.sum(axis=axis) - weights).sum() for axis in (0, 1)))


def _ours(cost: Array, tol: float) -> tuple[Array, Plan]:
    """Return the dense plan (k, k), as POT does, and the figures of the solver."""
    weights = equal_weights(cost)
    found = sinkhorn(cost, weights, weights, epsilon=EPSILON, tol=tol, max_iter=MAX_ITER)
    return arrays.to_numpy(found.matrix), found


def matching_tolerance(cost: Array, error: float) -> float:
    """Return the loosest tolerance at which qwp's plan has at most this error, or the tightest that converges."""
    weights = equal_weights(cost)
    tol = _TIGHTENING[0] * error
    for factor in _TIGHTENING:
        plan, figures = _ours(cost, factor * error)
        if not figures.converged:
            break
        tol = factor * error
        if reached_error(plan, weights) <= error:
            break
    return tol


def _case(mode: Mode, cost: Array, repeats: int) -> dict[str, Any]:
    import ot

    cost = cost.astype(mode.dtype)
    weights = equal_weights(cost)
    limits = {"stopThr": mode.threshold, "numItermax": mode.max_iter, "warn": False}

    def theirs() -> Any:
        return ot.sinkhorn(weights, weights, cost, EPSILON, log=True, **limits)

    plan, log = theirs()
    their_error = reached_error(plan, weights)
    tol = matching_tolerance(cost, their_error)
    our_plan, figures = _ours(cost, tol)
    times = in_turns({"qwp": partial(_ours, cost, tol), "POT": theirs}, repeats)
    peak = in_fresh_process(prepare_ours, k=len(cost), dtype=mode.dtype).peak_bytes
    return {
        **comparison(f"Sinkhorn, k={len(cost)}, same error, {mode.label}", times, "POT", peak),
        "k": len(cost),
        "qwp_iterations": figures.n_iter,
        "pot_iterations": int(log["niter"]) + 1,  # POT reports the index of the last iteration
        "qwp_error": reached_error(our_plan, weights),
        "pot_error": their_error,
    }


def prepare_ours(k: int, dtype: str) -> Callable[[], None]:
    """Return the call whose memory is measured; it depends on the size of the problem only."""
    cost = make_problem(k, 50).astype(dtype)
    _ours(cost[:20, :20], 0.01)  # the first call starts the threads

    def call() -> None:
        _ours(cost, 0.01)

    return call
