"""Time and accuracy of a whole alignment: qwp, and plain NumPy with POT.

Both align novels en-es, or generated spaces if those vectors are missing. The score is P@1 by CSLS over the covered
words of the MUSE test dictionary. qwp runs with default parameters and coresets of 2,000 points. The reference
(`benchmarks.reference`) follows the published schedule in float32, with POT's default settings and with a looser
tolerance.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

import qwp
from benchmarks.common import comparison
from benchmarks.data import Array, SpacePair, space_pair
from benchmarks.memory import in_fresh_process
from benchmarks.reference import Published, pipeline_reference, uniform_plan
from qwp.spaces.embeddings import Embeddings

# The reference draws its batches in the loop; qwp draws a bank of coresets first.
STAGES = ("initialize", "coresets", "loop", "refine")
OPTIONS: Mapping[str, Any] = {"coreset_size": 2000}
REFERENCES = {"POT to 0.01, float32": 0.01, "POT defaults, float32": None}
"""The L1 marginal error asked of POT."""


@dataclass(frozen=True)
class MappedSpaces:
    """Two spaces and a map in the form that `qwp.evaluate` takes. x: (n, d), y: (m, d) unit rows; map: (d, d)."""

    src: Embeddings
    tgt: Embeddings
    x: Array
    y: Array
    map: Array

    def mapped(self, side: Literal["src", "tgt"]) -> Array:
        """Return the vectors of one side in the common space."""
        return self.x @ self.map if side == "src" else self.y


def run(
    n: int = 20_000,
    d: int = 300,
    *,
    scale: float = 1.0,
    options: Mapping[str, Any] = OPTIONS,
    generated: bool = False,
) -> dict[str, Any]:
    """Run both once on n words of each side; d is the dimension of generated vectors.

    scale: share of the published steps that the reference takes, for a smoke test. options: parameters of `qwp.align`.
    """
    pair = space_pair(n, d, generated=generated)
    ours = run_ours(pair, n, d, generated, options)
    references = {name: run_reference(pair, scale, tol) for name, tol in REFERENCES.items()}
    cases = []
    for name, found in references.items():
        scores = f"P@1 {ours['csls_p1']:.1f} | {found['csls_p1']:.1f}"
        what = f"whole alignment, {pair.name}, {len(pair.src)} x {pair.src.dim}, {name}, {scores}"
        times = {"qwp": [sum(ours["seconds"].values())], "NumPy + POT": [sum(found["seconds"].values())]}
        cases.append(comparison(what, times, "NumPy + POT", ours["peak_bytes"]))
    return {"data": pair.name, "scale": scale, "ours": ours, "references": references, "cases": cases}


def run_ours(pair: SpacePair, n: int, d: int, generated: bool, options: Mapping[str, Any]) -> dict[str, Any]:
    """Run `qwp.align` in a fresh process. Returns seconds of each stage, P@1 in percent, verdict and peak memory."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "map.npy"
        measured = in_fresh_process(prepare_align, n=n, d=d, generated=generated, options=dict(options), path=str(path))
        w = np.load(path)
    seconds = measured.value["seconds"]
    return {
        "options": dict(options),
        "seconds": {stage: seconds[stage] for stage in STAGES if stage in seconds},
        "verdict_seconds": seconds["verdict"],
        "verdict": measured.value["verdict"],
        "csls_p1": p_at_1(pair, w),
        "peak_bytes": measured.peak_bytes,
    }


def prepare_align(n: int, d: int, generated: bool, options: dict[str, Any], path: str) -> Callable[[], dict[str, Any]]:
    """Return the measured call: it aligns, saves the map and returns seconds and verdict."""
    pair = space_pair(n, d, generated=generated)

    def call() -> dict[str, Any]:
        alignment = qwp.align(pair.src, pair.tgt, seed=0, **options)
        np.save(path, alignment.src_map)
        return {"seconds": alignment.provenance.seconds, "verdict": alignment.quality.verdict}

    return call


def run_reference(pair: SpacePair, scale: float, tol: float | None) -> dict[str, Any]:
    """Run the reference with a tolerance. Returns seconds of each stage, and P@1 in percent."""
    x, y = (side.astype(np.float32) for side in pair.normalised())
    published = Published()
    steps, start_steps, rounds = (
        max(1, round(scale * each)) for each in (published.steps, published.start_steps, published.rounds)
    )
    settings = Published(steps=steps, start_steps=start_steps, rounds=rounds)
    uniform_plan(np.eye(2), 1.0)  # the first call imports POT
    found = pipeline_reference(x, y, settings, tol=tol)
    return {"settings": {**asdict(settings), "tol": tol}, "seconds": found.seconds, "csls_p1": p_at_1(pair, found.map)}


def p_at_1(pair: SpacePair, w: Array) -> float:
    """Return P@1 of a map (d, d) in percent, by CSLS over covered words."""
    x, y = pair.normalised()
    spaces = MappedSpaces(pair.src, pair.tgt, x, y, w.astype(x.dtype))
    return 100.0 * qwp.evaluate(spaces, pair.gold, retrieval=("csls",), at=(1,), bootstrap=0).p_at_1()
