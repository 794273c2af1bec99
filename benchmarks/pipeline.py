"""The whole alignment, qwp against plain NumPy and POT: seconds of start, loop and refinement, and the accuracy.

    python -m benchmarks.pipeline [--ours-only | --reference-only] [--scale 0.01] [--n 20000] [--output FILE] [--json]

Both align novels en-es (generated spaces where those vectors are absent) and are scored by `qwp.evaluate`: P@1 with
CSLS over the covered words of the MUSE test dictionary. qwp runs with its defaults and 2000 points a coreset; the
reference (`benchmarks.reference`) follows the published schedule with POT in its default settings. `--dtype float64`
and `--tol` run it in the ways that are kinder to POT.

The reference takes long. Each finished part is written to benchmarks/results/pipeline.json at once, beside what that
file already holds; what runs now is kept under "unfinished" until it ends. `--scale` shrinks the number of steps of the
reference to see that all works: it then says nothing about speed, and is written only where `--output` is given.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

import qwp
from benchmarks.common import machine, save
from benchmarks.data import Array, SpacePair, space_pair
from benchmarks.memory import in_fresh_process
from benchmarks.reference import Published, pipeline_reference, uniform_plan
from qwp.spaces.embeddings import Embeddings

RESULTS = Path(__file__).parent / "results" / "pipeline.json"
# The reference draws its batches in the loop; qwp draws its coresets before.
STAGES = ("initialize", "coresets", "loop", "refine")
# Parameters of `qwp.align` that are not left at their defaults.
OPTIONS: Mapping[str, Any] = {"coreset_size": 2000}
# The settings of the reference at scale 1, as published.
_STEPS = {"start_steps": 100, "steps": 5000, "rounds": 5}
_SAVE_SECONDS = 30.0


@dataclass(frozen=True)
class MappedSpaces:
    """Two spaces under a map, as `qwp.evaluate` wants them. x: (n, d), y: (m, d) unit rows; map: (d, d)."""

    src: Embeddings
    tgt: Embeddings
    x: Array
    y: Array
    map: Array

    def mapped(self, side: Literal["src", "tgt"]) -> Array:
        """Vectors of one side in the common space, (n, d)."""
        return self.x @ self.map if side == "src" else self.y


@dataclass(frozen=True)
class ReferenceSettings:
    """How the reference runs. scale: share of its steps; tol: as in `benchmarks.reference`."""

    scale: float = 1.0
    dtype: str = "float32"
    tol: float | None = None

    @property
    def name(self) -> str:
        """What tells this run from others in a table."""
        stop = "POT defaults" if self.tol is None else f"POT to {self.tol:g}"
        scale = "" if self.scale == 1.0 else f", scale {self.scale:g}"
        return f"{stop}, {self.dtype}{scale}"

    def steps(self) -> dict[str, int]:
        """Numbers of steps at this scale, at least one of each."""
        return {name: max(1, round(self.scale * count)) for name, count in _STEPS.items()}


def run(
    n: int = 20_000,
    d: int = 300,
    *,
    ours: bool = True,
    reference: bool = True,
    settings: ReferenceSettings | None = None,
    options: Mapping[str, Any] = OPTIONS,
    generated: bool = False,
    gemm_size: int = 4000,
    output: Path | None = RESULTS,
    log: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Run one or both sides once. n words of each side; d is the dimension of generated vectors.

    options: parameters of `qwp.align`. settings: of the reference (None: as published, POT in its default settings).
    output: where the results go part by part, beside what is there (None: nowhere). log: told what was finished.

    Returns:
        "ours" and "references" (by the name of their settings), each with seconds by stage, their sum and P@1 in
        percent; a reference also has its "ratio", None where it cannot be compared with what is in "ours".
    """
    pair = space_pair(n, d, generated=generated)
    record = _Record(output)
    state = machine(gemm_size)
    if ours:
        record.add_ours({"machine": state, **run_ours(n, d, generated, options)})
        log(_line("qwp", record.result["ours"]))
    if reference:
        chosen = settings or ReferenceSettings()
        figures = run_reference(pair, chosen, lambda parts: record.keep_unfinished({"machine": state, **parts}), log)
        record.add_reference(chosen.name, {"machine": state, **figures})
        log(_line(chosen.name, figures))
    return record.result


# --------------------------------------------------------------------------- qwp


def run_ours(n: int, d: int, generated: bool, options: Mapping[str, Any]) -> dict[str, Any]:
    """`qwp.align` in a fresh process: seconds by stage (the verdict apart), P@1 in percent, peak memory."""
    pair = space_pair(n, d, generated=generated)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "map.npy"
        measured = in_fresh_process(prepare_align, n=n, d=d, generated=generated, options=dict(options), path=str(path))
        w = np.load(path)
    seconds = measured.value["seconds"]
    stages = {stage: seconds[stage] for stage in STAGES if stage in seconds}
    return {
        **_about(pair),
        "options": dict(options),
        "seconds": stages,
        "total_seconds": sum(stages.values()),
        "verdict_seconds": seconds["verdict"],
        "verdict": measured.value["verdict"],
        "csls_p1": p_at_1(pair, w),
        "peak_bytes": measured.peak_bytes,
    }


def prepare_align(n: int, d: int, generated: bool, options: dict[str, Any], path: str) -> Callable[[], dict[str, Any]]:
    """The measured call: align, leave the map in `path`, and tell the seconds by stage and the verdict."""
    pair = space_pair(n, d, generated=generated)

    def call() -> dict[str, Any]:
        alignment = qwp.align(pair.src, pair.tgt, seed=0, **options)
        np.save(path, alignment.src_map)
        return {"seconds": alignment.provenance.seconds, "verdict": alignment.quality.verdict}

    return call


def p_at_1(pair: SpacePair, w: Array) -> float:
    """P@1 of a map (d, d) in percent: CSLS, covered words."""
    x, y = pair.normalised()
    spaces = MappedSpaces(pair.src, pair.tgt, x, y, w.astype(x.dtype))
    return 100.0 * qwp.evaluate(spaces, pair.gold, retrieval=("csls",), at=(1,), bootstrap=0).p_at_1()


# --------------------------------------------------------------------------- the reference


def run_reference(
    pair: SpacePair,
    settings: ReferenceSettings,
    keep: Callable[[dict[str, Any]], None],
    log: Callable[[str], None],
) -> dict[str, Any]:
    """`pipeline_reference`: seconds by stage and P@1 in percent after each. keep: given the figures as they come."""
    x, y = (side.astype(settings.dtype) for side in pair.normalised())
    seconds: dict[str, float] = {}
    after: dict[str, float] = {}
    figures: dict[str, Any] = {
        **_about(pair),
        "scale": settings.scale,
        "dtype": settings.dtype,
        "tol": settings.tol,
        **settings.steps(),
        "seconds": seconds,
        "csls_p1_after": after,
    }
    last_kept = time.monotonic()

    def progress(epoch: int, step: int, passed: float) -> None:
        nonlocal last_kept
        if time.monotonic() - last_kept >= _SAVE_SECONDS:
            keep({**figures, "loop": {"epoch": epoch, "step": step, "seconds": passed}})
            last_kept = time.monotonic()

    def after_stage(stage: str, passed: float, w: Array) -> None:
        seconds[stage] = passed
        after[stage] = p_at_1(pair, w)
        log(f"reference {stage}: {passed:.1f} s, P@1 {after[stage]:.2f}")
        keep(figures)

    uniform_plan(np.eye(2), 1.0)  # the first call pays for the import of POT
    steps = Published(**settings.steps())
    pipeline_reference(x, y, steps, tol=settings.tol, progress=progress, after_stage=after_stage)
    return {**figures, "total_seconds": sum(seconds.values()), "csls_p1": after["refine"]}


def _about(pair: SpacePair) -> dict[str, Any]:
    return {"data": pair.name, "n": len(pair.src), "d": pair.src.dim}


# --------------------------------------------------------------------------- keeping the results


class _Record:
    """The results so far, in memory and in a file; what the file holds of an earlier run stays until replaced."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.result: dict[str, Any] = {"references": {}}
        if path is not None and path.exists():
            self.result |= json.loads(path.read_text(encoding="utf-8"))
            self.result.pop("unfinished", None)

    def keep_unfinished(self, figures: dict[str, Any]) -> None:
        """Keep the figures of a reference that is still running."""
        self.result["unfinished"] = figures
        self._save()

    def add_ours(self, figures: dict[str, Any]) -> None:
        """Keep the figures of qwp."""
        self.result["ours"] = figures
        self._save()

    def add_reference(self, name: str, figures: dict[str, Any]) -> None:
        """Keep the figures of a reference that has ended."""
        self.result.pop("unfinished", None)
        self.result["references"][name] = figures
        self._save()

    def _save(self) -> None:
        for reference in self.result["references"].values():
            reference["ratio"] = _ratio(self.result.get("ours"), reference)
        if self._path is not None:
            save(self.result, self._path)


def _ratio(ours: dict[str, Any] | None, reference: dict[str, Any]) -> float | None:
    """How many times longer the reference takes; None where the two cannot be compared."""
    if ours is None or reference["scale"] != 1.0 or any(ours[key] != reference[key] for key in ("data", "n", "d")):
        return None
    return float(reference["total_seconds"] / ours["total_seconds"])


def _line(name: str, figures: dict[str, Any]) -> str:
    stages = ", ".join(f"{stage} {taken:.1f} s" for stage, taken in figures["seconds"].items())
    return f"{name:<24} {figures['total_seconds']:9.1f} s ({stages}), P@1 CSLS {figures['csls_p1']:.2f}"


def main(arguments: list[str] | None = None) -> None:
    """Run from the command line and print a summary or JSON."""
    parser = argparse.ArgumentParser(prog="benchmarks.pipeline", description="The whole alignment: qwp and NumPy + POT")
    sides = parser.add_mutually_exclusive_group()
    sides.add_argument("--ours-only", action="store_true", help="run qwp only")
    sides.add_argument("--reference-only", action="store_true", help="run the reference only")
    parser.add_argument("--n", type=int, default=20_000, help="words of each side")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the reference's steps, for a smoke test")
    parser.add_argument("--dtype", choices=["float32", "float64"], default="float32", help="of the reference")
    parser.add_argument("--tol", type=float, help="L1 marginal error the reference asks of POT (default: POT's own)")
    parser.add_argument("--output", type=Path, help=f"where the JSON goes (default: {RESULTS.name} at full size)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a summary")
    options = parser.parse_args(arguments)
    if not 0.0 < options.scale <= 1.0:
        parser.error(f"--scale {options.scale:g} should be above 0 and at most 1")
    full = options.scale == 1.0 and options.n == 20_000
    result = run(
        options.n,
        ours=not options.reference_only,
        reference=not options.ours_only,
        settings=ReferenceSettings(options.scale, options.dtype, options.tol),
        output=options.output or (RESULTS if full else None),
        log=(lambda _: None) if options.json else (lambda line: print(line, flush=True)),
    )
    if options.json:
        print(json.dumps(result, indent=2))
        return
    for name, reference in result["references"].items():
        if reference["ratio"] is not None:
            print(f"{name}: {reference['ratio']:.1f} x qwp's time")


if __name__ == "__main__":
    main()
