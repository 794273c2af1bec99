"""Seconds per step of the convex relaxation: qwp's Frank-Wolfe, and dense NumPy with POT.

Both minimise the same objective with the same entropic regularisation and step sizes on the same words; the final
objectives are reported. All steps cost the same, so a few steps suffice. The set-up before the first step is not timed.

The reference (`benchmarks.reference`) runs in three ways: POT with default settings in float32, the precision of qwp;
the same in float64, where its threshold can be reached and ends the iterations earlier; and with the tolerance of qwp.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.common import comparison
from benchmarks.data import Array, space_pair
from benchmarks.memory import in_fresh_process
from benchmarks.reference import frank_wolfe_reference, relaxation_objective, similarity_matrices
from qwp import arrays
from qwp.stages.init.frank_wolfe import FrankWolfe

# How the reference runs: dtype, and the L1 marginal error asked of POT (None: its default settings).
REFERENCES: dict[str, tuple[str, float | None]] = {
    "POT defaults, float32": ("float32", None),
    "POT defaults, float64": ("float64", None),
    "POT at qwp's tolerance, float32": ("float32", FrankWolfe.tol),
}


class StepClock:
    """Records the time after each step."""

    def __init__(self) -> None:
        self._times: list[float] = []

    def tick(self, *_: object) -> None:
        """Record the end of a step."""
        self._times.append(time.perf_counter())

    @property
    def seconds_per_step(self) -> float:
        """Mean time of a step from the second on."""
        return (self._times[-1] - self._times[0]) / (len(self._times) - 1)


def run(words: int = 2500, steps: int = 10, d: int = 300, generated: bool = False) -> dict[str, Any]:
    """Run both on the first `words` words of each side; d is the dimension of generated vectors."""
    settings = FrankWolfe(words=words, steps=steps)
    pair = space_pair(words, d, generated=generated)
    x, y = pair.normalised()
    clock, objectives = StepClock(), []

    def after_step(step: int, objective: float) -> None:
        clock.tick()
        objectives.append(objective)

    w = arrays.to_numpy(settings.solve(x, y, after_step))
    n = min(words, len(x), len(y))
    matrices = similarity_matrices(x[:n].astype(np.float64), y[:n].astype(np.float64))
    peak = in_fresh_process(prepare_ours, words=words, steps=2, d=d, generated=generated).peak_bytes
    cases = []
    for name, (dtype, tol) in REFERENCES.items():
        other = StepClock()
        found = frank_wolfe_reference(
            x.astype(dtype), y.astype(dtype), words, steps, settings.epsilon, tol=tol, after_step=other.tick
        )
        times = {"qwp": [clock.seconds_per_step], "NumPy + POT": [other.seconds_per_step]}
        what = f"Frank-Wolfe step, {n} words x {x.shape[1]}, {name}"
        objective = relaxation_objective(found.plan.astype(np.float64), *matrices)
        distance = map_distance(found.map, w)
        cases.append({**comparison(what, times, "NumPy + POT", peak), "objective": objective, "map_distance": distance})
    return {"data": pair.name, "steps": steps, "qwp_objective": objectives[-1], "cases": cases}


def map_distance(a: Array, b: Array) -> float:
    """Return |a - b| / |a| of orthogonal maps (d, d): 0 for equal maps, about 1.4 for unrelated ones."""
    return float(np.linalg.norm(a - b) / np.linalg.norm(a))


def prepare_ours(words: int, steps: int, d: int, generated: bool) -> Callable[[], None]:
    """Return the call whose memory is measured; it does not depend on the number of steps."""
    x, y = space_pair(words, d, generated=generated).normalised()
    FrankWolfe(words=50, steps=1).solve(x[:50], y[:50])  # the first call starts the threads

    def call() -> None:
        FrankWolfe(words=words, steps=steps).solve(x, y)

    return call
