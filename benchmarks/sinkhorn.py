"""Entropic transport between two coresets: qwp against POT, at the same reached marginal error.

    python -m benchmarks.sinkhorn [K ...] [--repeats 5] [--json]

The problem is one step of the loop: float32 unit vectors of a space with structure, noisy vectors of other
words of it, equal weights, squared distances, epsilon 0.05. The two libraries measure and check their error
differently, so equal tolerances would compare nothing: POT runs first, and the error its plan reaches (L1,
both marginals, in float64) is the tolerance for qwp, whose plan is measured the same way and must be no
worse.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.common import clustered_space, in_turns, medians
from qwp.transport import cost_matrix, sinkhorn

EPSILON = 0.05
STOP_THRESHOLD = 1e-3  # POT then ends near the tolerance of the loop, 0.01 in our measure
MAX_ITER = 2000

Array = npt.NDArray[Any]


def run(ks: Sequence[int] = (500, 2000), repeats: int = 5, d: int = 300) -> dict[str, Any]:
    """Time both on coresets of each size in `ks`, d dimensions.

    Returns:
        for each size: medians in seconds, sweeps, reached L1 marginal errors, all times and the ratio.
    """
    return {"d": d, "epsilon": EPSILON, "cases": [_case(k, d, repeats) for k in ks]}


def make_problem(k: int, d: int, seed: int = 0) -> tuple[Array, Array]:
    """Costs between k words and k noisy others of one space, and equal weights: (k, k), (k,), float32."""
    words = clustered_space(2 * k, d, seed)
    noise = np.random.default_rng(seed + 1).standard_normal((k, d)).astype(np.float32) / d**0.5
    other = words[k:] + noise
    other /= np.linalg.norm(other, axis=1, keepdims=True)
    return cost_matrix(words[:k], other), np.full(k, 1.0 / k, dtype=np.float32)


def reached_error(plan: Array, weights: Array) -> float:
    """L1 distance of both marginals of the plan (k, k) from the weights (k,), in float64."""
    plan, weights = plan.astype(np.float64), weights.astype(np.float64)
    return float(sum(np.abs(plan.sum(axis=axis) - weights).sum() for axis in (0, 1)))


def _case(k: int, d: int, repeats: int) -> dict[str, Any]:
    import ot

    cost, weights = make_problem(k, d)

    def theirs() -> tuple[Array, dict[str, Any]]:
        plan, log = ot.sinkhorn(weights, weights, cost, EPSILON, stopThr=STOP_THRESHOLD, numItermax=MAX_ITER, log=True)
        return plan, log

    plan, log = theirs()
    their_error = reached_error(plan, weights)

    def ours() -> tuple[Array, int]:
        # POT returns the plan itself; so do we here, although the loop never forms it. A touch below their
        # error, for the rounding of float32.
        found = sinkhorn(cost, weights, weights, epsilon=EPSILON, tol=0.99 * their_error, max_iter=MAX_ITER)
        return found.matrix, found.n_iter

    our_plan, n_iter = ours()
    times = in_turns({"qwp": ours, "pot": theirs}, repeats)
    middle = medians(times)
    return {
        "k": k,
        "qwp_seconds": middle["qwp"],
        "pot_seconds": middle["pot"],
        "ratio": middle["pot"] / middle["qwp"],
        "qwp_iterations": n_iter,
        "pot_iterations": int(log["niter"]) + 1,  # POT reports the index of the last sweep
        "qwp_error": reached_error(our_plan, weights),
        "pot_error": their_error,
        "times": times,
    }


def main(arguments: list[str] | None = None) -> None:
    """Run from the command line and print a table or JSON."""
    parser = argparse.ArgumentParser(prog="benchmarks.sinkhorn", description="Sinkhorn: qwp and POT")
    parser.add_argument("ks", type=int, nargs="*", default=[500, 2000], metavar="K", help="points on each side")
    parser.add_argument("--repeats", type=int, default=5, help="runs of each, in turns")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(arguments)
    result = run(options.ks, options.repeats)
    if options.json:
        print(json.dumps(result, indent=2))
        return
    for case in result["cases"]:
        for name in ("qwp", "pot"):
            print(
                f"k={case['k']:<6} {name}  {1e3 * case[name + '_seconds']:8.1f} ms  "
                f"{case[name + '_iterations']:4d} sweeps  marginal error {case[name + '_error']:.1e}"
            )
        print(f"{'':9}POT takes {case['ratio']:.2f} x qwp's time")


if __name__ == "__main__":
    main()
