"""The convex start: qwp's Frank-Wolfe against dense NumPy and POT, in seconds per step.

    python -m benchmarks.frank_wolfe [--words 2500] [--steps 10] [--repeats 1] [--json]

Both minimise the same objective with the same entropy and step sizes on the same words (novels en-es where the vectors
are at hand, else generated), and the objective each ends at is reported. The cost of a step does not depend on its
number, so that fewer steps than the 100 of a real start tell it: the time from the end of the first to the end of the
last, which leaves out setting up the problem.

The reference (`benchmarks.reference`) runs in three ways: POT in its default settings on float32 vectors, as qwp has
them; the same in float64, where its threshold can be met and ends the iterations earlier; and stopped at the tolerance
of qwp.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.common import in_turns, medians, options_parser
from benchmarks.data import Array, space_pair
from benchmarks.memory import in_fresh_process
from benchmarks.reference import Relaxation, frank_wolfe_reference, relaxation_objective, similarity_matrices
from qwp import arrays
from qwp.errors import InputError
from qwp.stages.init.frank_wolfe import FrankWolfe


class StepClock:
    """Takes the mean time of a step in every run from the second step on."""

    def __init__(self) -> None:
        self.seconds_per_step: list[float] = []
        self._after_first = 0.0

    def tick(self, step: int) -> None:
        """Call after each step; steps count from 1 in every run."""
        now = time.perf_counter()
        if step == 1:
            self._after_first = now
            self.seconds_per_step.append(0.0)
        else:
            self.seconds_per_step[-1] = (now - self._after_first) / (step - 1)


@dataclass(frozen=True)
class Variant:
    """One way to run the reference. tol: L1 marginal error asked of POT (None: its default settings)."""

    name: str
    dtype: str
    tol: float | None


def variants() -> list[Variant]:
    """The three ways the module names."""
    return [
        Variant("POT defaults, float32", "float32", None),
        Variant("POT defaults, float64", "float64", None),
        Variant("POT at qwp's tolerance, float32", "float32", FrankWolfe.tol),
    ]


def run(words: int = 2500, steps: int = 10, repeats: int = 1, d: int = 300, generated: bool = False) -> dict[str, Any]:
    """Time both on the first `words` words of each side; d is the dimension of generated vectors.

    Returns:
        seconds per step (medians over the repeats), objective and peak memory of qwp; for each way to run the
        reference its seconds per step, ratio, objective, and how far its map is from that of qwp; and the times of
        all whole runs.
    """
    if steps < 2:
        raise InputError(f"steps={steps} should be at least 2: the first is not timed, it waits for the set-up")
    settings = FrankWolfe(words=words, steps=steps)
    pair = space_pair(words, d, generated=generated)
    x, y = pair.normalised()
    chosen = variants()
    clocks = {name: StepClock() for name in ("qwp", *(v.name for v in chosen))}
    objectives: list[float] = []
    maps: list[Array] = []
    found: dict[str, Relaxation] = {}

    def ours() -> None:
        def after_step(step: int, objective: float) -> None:
            clocks["qwp"].tick(step)
            objectives.append(objective)

        maps.append(arrays.to_numpy(settings.solve(x, y, after_step)))

    def reference(variant: Variant) -> Callable[[], None]:
        vectors = x.astype(variant.dtype), y.astype(variant.dtype)

        def call() -> None:
            found[variant.name] = frank_wolfe_reference(
                *vectors, words, steps, settings.epsilon, tol=variant.tol, after_step=clocks[variant.name].tick
            )

        return call

    times = in_turns({"qwp": ours, **{v.name: reference(v) for v in chosen}}, repeats)
    per_step = medians({name: clock.seconds_per_step for name, clock in clocks.items()})
    n = min(words, len(x), len(y))
    kernels = similarity_matrices(x[:n].astype(np.float64), y[:n].astype(np.float64))
    return {
        "data": pair.name,
        "words": n,
        "d": x.shape[1],
        "steps": steps,
        "epsilon": settings.epsilon,
        "qwp_seconds_per_step": per_step["qwp"],
        "qwp_objective": objectives[-1],
        "cases": [
            {
                "reference": v.name,
                "seconds_per_step": per_step[v.name],
                "ratio": per_step[v.name] / per_step["qwp"],
                "objective": relaxation_objective(found[v.name].plan.astype(np.float64), *kernels),
                "map_distance": map_distance(found[v.name].map, maps[-1]),
            }
            for v in chosen
        ],
        "times": times,
        "peak_bytes": in_fresh_process(prepare_ours, words=words, steps=2, d=d, generated=generated).peak_bytes,
    }


def map_distance(a: Array, b: Array) -> float:
    """|a - b| / |a| for orthogonal maps (d, d): 0 for equal ones, about 1.4 for unrelated ones."""
    return float(np.linalg.norm(a - b) / np.linalg.norm(a))


def prepare_ours(words: int, steps: int, d: int, generated: bool) -> Callable[[], None]:
    """The call whose memory is measured: a few steps need as much as many."""
    x, y = space_pair(words, d, generated=generated).normalised()
    FrankWolfe(words=50, steps=1).solve(x[:50], y[:50])  # the first call pays for threads

    def call() -> None:
        FrankWolfe(words=words, steps=steps).solve(x, y)

    return call


def main(arguments: list[str] | None = None) -> None:
    """Run from the command line and print a table or JSON."""
    parser = options_parser("benchmarks.frank_wolfe", "The convex start: qwp and NumPy + POT", repeats=1)
    parser.add_argument("--words", type=int, default=2500, help="most frequent words of each side")
    parser.add_argument("--steps", type=int, default=10, help="Frank-Wolfe steps")
    options = parser.parse_args(arguments)
    result = run(options.words, options.steps, options.repeats)
    if options.json:
        print(json.dumps(result, indent=2))
        return
    print(f"{result['data']}, {result['words']} words x {result['d']}, {result['steps']} steps")
    print(f"{'qwp':<34}{result['qwp_seconds_per_step']:8.3f} s per step   objective {result['qwp_objective']:.3f}")
    for case in result["cases"]:
        print(
            f"{case['reference']:<34}{case['seconds_per_step']:8.3f} s per step   objective {case['objective']:.3f}   "
            f"{case['ratio']:.1f} x qwp's time   map differs by {case['map_distance']:.1e}"
        )


if __name__ == "__main__":
    main()
