"""Entropic transport between two coresets: qwp against POT, at the same reached marginal error.

    python -m benchmarks.sinkhorn [K ...] [--repeats 5] [--modes loose ...] [--json]

The two libraries measure and check their error differently, so equal tolerances would compare nothing: POT runs first,
and the error its plan reaches (L1, both marginals, in float64) is the tolerance for qwp, whose plan is measured the
same way. Equal weights, squared distances, epsilon 0.05, and one of three modes:

- `loose`: about the error at which the loop stops. float32 unit vectors of a generated space with structure, and noisy
  vectors of other words of it. POT with a threshold of 1e-3.
- `default`: POT in its default settings (threshold 1e-9, 1000 iterations) on a problem of the loop: float32 k-means++
  coresets of novels en-es under a good map (generated spaces where those vectors are absent). float32 cannot reach
  that threshold, so POT runs to its last iteration and to the rounding error of its plan. There qwp may end a touch
  above it: both errors are reported.
- `default64`: the same in float64, where POT's threshold can be met.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

import qwp
from benchmarks.common import clustered_space, in_turns, medians, options_parser
from benchmarks.data import SpacePair, space_pair
from benchmarks.memory import in_fresh_process
from qwp import arrays
from qwp.ot.coresets import kmeans_plusplus_bank
from qwp.ot.costs import Plan, cost_matrix
from qwp.ot.sinkhorn import sinkhorn

EPSILON = 0.05
MAX_ITER = 2000  # of qwp: twice POT's default, so never what ends a run that can be ended otherwise
# qwp checks its error on scalings, not on the plan; near rounding the plan needs a tighter tolerance than its error.
_TIGHTENING = (0.99, 0.5, 0.25, 0.125)
# A short run finds a map good enough for the costs to look like those of a real one.
_MAP_WORDS = 5000
_MAP_OPTIONS: dict[str, Any] = {"coreset_size": 500, "epochs": 1, "steps": 60, "refine": 1}

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Mode:
    """What is solved and when POT stops. threshold, max_iter: stopThr and numItermax of `ot.sinkhorn`."""

    name: str
    label: str
    dtype: str
    threshold: float
    max_iter: int
    of_the_loop: bool


MODES = {
    mode.name: mode
    for mode in (
        Mode("loose", "loose tolerance", "float32", 1e-3, 2000, of_the_loop=False),
        Mode("default", "POT defaults, float32", "float32", 1e-9, 1000, of_the_loop=True),
        Mode("default64", "POT defaults, float64", "float64", 1e-9, 1000, of_the_loop=True),
    )
}


def run(
    ks: Sequence[int] = (500, 2000),
    repeats: int = 5,
    d: int = 300,
    modes: Sequence[str] = tuple(MODES),
    n: int = 20_000,
    generated: bool = False,
) -> dict[str, Any]:
    """Time both on coresets of each size in `ks`. n words of d dimensions where spaces are generated.

    Returns:
        for each mode and size: medians in seconds, sweeps, reached L1 marginal errors, all times, the ratio, and the
        peak memory of qwp.
    """
    chosen = [MODES[name] for name in modes]
    loop_problems: dict[int, Array] = {}
    data = "generated"
    if any(mode.of_the_loop for mode in chosen):
        pair = space_pair(n, d, generated=generated)
        data, w = pair.name, good_map(pair)
        loop_problems = {k: loop_problem(pair, w, k) for k in ks}
    cases = []
    for mode in chosen:
        for k in ks:
            cost = loop_problems[k] if mode.of_the_loop else make_problem(k, d)
            cases.append({"data": data if mode.of_the_loop else "generated", **_case(mode, cost, repeats)})
    return {"d": d, "epsilon": EPSILON, "cases": cases}


# --------------------------------------------------------------------------- the problems


def make_problem(k: int, d: int, seed: int = 0) -> Array:
    """Costs between k words and k noisy others of one generated space. Returns (k, k), float32."""
    words = clustered_space(2 * k, d, seed)
    noise = np.random.default_rng(seed + 1).standard_normal((k, d)).astype(np.float32) / d**0.5
    other = words[k:] + noise
    other /= np.linalg.norm(other, axis=1, keepdims=True)
    return np.asarray(cost_matrix(words[:k], other))


def good_map(pair: SpacePair) -> Array:
    """A map under which the two spaces lie on each other: the true one, else that of a short run. Returns (d, d)."""
    if pair.rotation is not None:
        return pair.rotation
    return qwp.align(pair.src.head(_MAP_WORDS), pair.tgt.head(_MAP_WORDS), seed=0, **_MAP_OPTIONS).src_map


def loop_problem(pair: SpacePair, w: Array, k: int, seed: int = 0) -> Array:
    """Costs of one step of the loop: k-means++ coresets of both sides under w (d, d). Returns (k, k)."""
    rng = np.random.default_rng(seed)
    src, tgt = (arrays.to_numpy(kmeans_plusplus_bank(x, k, 1, rng).points(x, 0)) for x in pair.normalised())
    return arrays.to_numpy(cost_matrix(src @ w.astype(src.dtype), tgt))


def equal_weights(cost: Array) -> Array:
    """(k,) for a cost (k, k)."""
    return np.full(len(cost), 1.0 / len(cost), dtype=cost.dtype)


# --------------------------------------------------------------------------- the comparison


def reached_error(plan: Array, weights: Array) -> float:
    """L1 distance of both marginals of the plan (k, k) from the weights (k,), in float64."""
    plan, weights = plan.astype(np.float64), weights.astype(np.float64)
    return float(sum(np.abs(plan.sum(axis=axis) - weights).sum() for axis in (0, 1)))


def _ours(cost: Array, tol: float) -> tuple[Array, Plan]:
    """The dense plan (k, k), which POT returns and the loop never forms, and how it was reached."""
    weights = equal_weights(cost)
    found = sinkhorn(cost, weights, weights, epsilon=EPSILON, tol=tol, max_iter=MAX_ITER)
    return arrays.to_numpy(found.matrix), found


def matching_tolerance(cost: Array, error: float) -> float:
    """The loosest tolerance of those tried at which the plan of qwp has at most this error.

    Where rounding forbids that, the tightest that is still met.
    """
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

    def theirs() -> tuple[Array, dict[str, Any]]:
        plan, log = ot.sinkhorn(
            weights, weights, cost, EPSILON, stopThr=mode.threshold, numItermax=mode.max_iter, warn=False, log=True
        )
        return plan, log

    plan, log = theirs()
    their_error = reached_error(plan, weights)
    tol = matching_tolerance(cost, their_error)
    our_plan, figures = _ours(cost, tol)
    times = in_turns({"qwp": partial(_ours, cost, tol), "pot": theirs}, repeats)
    middle = medians(times)
    return {
        "mode": mode.name,
        "label": mode.label,
        "k": len(cost),
        "qwp_seconds": middle["qwp"],
        "pot_seconds": middle["pot"],
        "ratio": middle["pot"] / middle["qwp"],
        "qwp_iterations": figures.n_iter,
        "pot_iterations": int(log["niter"]) + 1,  # POT reports the index of the last sweep
        "qwp_error": reached_error(our_plan, weights),
        "pot_error": their_error,
        "times": times,
        "peak_bytes": in_fresh_process(prepare_ours, k=len(cost), dtype=mode.dtype).peak_bytes,
    }


def prepare_ours(k: int, dtype: str) -> Callable[[], None]:
    """The call whose memory is measured: it depends on the size of the problem, not on the tolerance."""
    cost = make_problem(k, 50).astype(dtype)
    _ours(cost[:20, :20], 0.01)  # the first call pays for threads

    def call() -> None:
        _ours(cost, 0.01)

    return call


def main(arguments: list[str] | None = None) -> None:
    """Run from the command line and print a table or JSON."""
    parser = options_parser("benchmarks.sinkhorn", "Sinkhorn: qwp and POT", repeats=5)
    parser.add_argument("ks", type=int, nargs="*", default=[500, 2000], metavar="K", help="points on each side")
    parser.add_argument("--modes", nargs="+", choices=list(MODES), default=list(MODES), help="run these only")
    options = parser.parse_args(arguments)
    result = run(options.ks, options.repeats, modes=options.modes)
    if options.json:
        print(json.dumps(result, indent=2))
        return
    for case in result["cases"]:
        print(f"{case['label']}, {case['data']}, k={case['k']}")
        for name in ("qwp", "pot"):
            print(
                f"  {name}  {1e3 * case[name + '_seconds']:8.1f} ms  "
                f"{case[name + '_iterations']:4d} sweeps  marginal error {case[name + '_error']:.1e}"
            )
        print(f"  POT takes {case['ratio']:.2f} x qwp's time")


if __name__ == "__main__":
    main()
