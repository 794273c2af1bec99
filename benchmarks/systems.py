"""Accuracy, time and memory of every method on every pair of the benchmark data.

    QWP_BENCH=FOLDER python -m benchmarks.systems [accuracy | cost] --device cuda

`accuracy` scores each method, and `cost` measures time and memory of each in a fresh process. Supervised methods see
the training split of MUSE only, so they have no row for pairs without one. The test split scores all of them.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from benchmarks import records
from benchmarks.ablation import LEAST_P1
from benchmarks.data import TASKS, Task, bench_file, scored
from benchmarks.memory import device_peak, in_fresh_process, reset_device_peak
from benchmarks.records import Record, Run, cell, markdown, mean, select, share
from qwp import Lexicon
from qwp.methods import METHODS, make_aligner
from qwp.methods.settings import REQUIRED

RESULTS = records.FOLDER / "systems.jsonl"
COST_TASKS = ("zhang es-en", "zhang it-en", "novels en-es")


@dataclass(frozen=True)
class System:
    """One row of the tables: a method with its options.

    seeds: how many on the Zhang pairs and on the novels. first_pairs: size of the training lexicon.
    """

    label: str
    method: str
    seeds: tuple[int, int] = (1, 1)
    options: dict[str, Any] = field(default_factory=dict)
    first_pairs: int | None = None

    def can_fit(self, task: Task) -> bool:
        """Return whether the method has the lexicon that it needs."""
        return METHODS[self.method].supervision != REQUIRED or task.training is not None

    def lexicon(self, task: Task) -> Lexicon | None:
        """Return the lexicon that the method learns from; None for unsupervised methods."""
        if METHODS[self.method].supervision != REQUIRED or task.training is None:
            return None
        return Lexicon(Lexicon.load(bench_file(task.training)).pairs[: self.first_pairs])


# One seed for methods without randomness.
SYSTEMS = (
    System("qwp", "qwp", (5, 3)),
    System("wp", "wp", (5, 3)),
    System("self-learning", "self-learning", (5, 3)),
    System("gromov", "gromov"),
    System("adversarial", "adversarial", (5, 2)),
    System("dema", "dema", (5, 3)),
    System("identical", "identical"),
    System("least-squares", "least-squares"),
    System("procrustes", "procrustes"),
    System("procrustes, 5 refinement rounds", "procrustes", options={"refine": 5}),
    System("rcsls", "rcsls"),
    System("proc-b, first 1,000 pairs", "proc-b", first_pairs=1000),
)
LABELS = tuple(system.label for system in SYSTEMS)


# --------------------------------------------------------------------------- accuracy


def accuracy_suite(device: str) -> Iterator[Run]:
    """Score every method on every task."""
    for task in TASKS:
        for system in (system for system in SYSTEMS if system.can_fit(task)):
            for seed in range(system.seeds[0 if task.name.startswith("zhang") else 1]):
                key = {"task": task.name, "label": system.label, "seed": seed}
                yield Run(key, partial(_accuracy, system, task, seed, device))


def _accuracy(system: System, task: Task, seed: int, device: str) -> Record:
    src, tgt, gold = task.load()
    lexicon = system.lexicon(task)
    aligner = make_aligner(system.method, seed=seed, device=device, **system.options)
    begin = time.perf_counter()
    aligner.fit(src, tgt, lexicon=lexicon)
    seconds = time.perf_counter() - begin
    about = {"method": system.method, "options": system.options}
    return {**about, **scored(aligner.alignment_, gold, device), "seconds": seconds}


# --------------------------------------------------------------------------- time and memory


def cost_suite(device: str) -> Iterator[Run]:
    """Measure time and memory of a fit with seed 0 in a fresh process."""
    for task in (task for task in TASKS if task.name in COST_TASKS):
        for label in (system.label for system in SYSTEMS if system.can_fit(task)):
            key = {"task": task.name, "label": label, "alone_on": device}
            yield Run(key, partial(_cost, label, task.name, device))


def _cost(label: str, task: str, device: str) -> Record:
    found = in_fresh_process(prepare_fit, label=label, task=task, device=device)
    return {**found.value, "host_bytes": found.peak_bytes}


def prepare_fit(label: str, task: str, device: str) -> Callable[[], Record]:
    """Load the spaces and return the call to measure: it fits and returns seconds and GPU memory."""
    system, chosen = next(s for s in SYSTEMS if s.label == label), next(t for t in TASKS if t.name == task)
    lexicon = system.lexicon(chosen)
    src, tgt, _ = chosen.load()
    aligner = make_aligner(system.method, device=device, **system.options)
    return lambda: _timed_fit(lambda: aligner.fit(src, tgt, lexicon=lexicon), device)


def _timed_fit(fit: Callable[[], Any], device: str) -> Record:
    reset_device_peak(device)
    begin = time.perf_counter()
    fit()
    return {"seconds": time.perf_counter() - begin, "device_bytes": device_peak(device)}


SUITES: dict[str, Callable[[str], Iterator[Run]]] = {
    "accuracy": accuracy_suite,
    "cost": cost_suite,
}


# --------------------------------------------------------------------------- tables


def tables(found: Sequence[Record]) -> str:
    """Return all tables as Markdown."""
    scores = [r for r in found if "csls_p1" in r]
    parts = ["### P@1, CSLS", summary_table(scores)]
    for task in TASKS:
        if rows := select(scores, task=task.name):
            covered = f"{rows[0]['covered']:,} of {rows[0]['gold_words']:,} source words covered"
            parts += [f"### {task.name} ({covered})", task_table(rows, peak_memory(found, task))]
    parts += ["### The verdict", verdict_line(scores)]
    if alone := [r for r in found if "alone_on" in r]:
        parts += ["### Alone in a process", cost_table(alone)]
    return "\n\n".join(parts)


def _labels(found: Sequence[Record]) -> list[str]:
    known = {r["label"] for r in found}
    return [label for label in LABELS if label in known]


def peak_memory(found: Sequence[Record], task: Task) -> dict[str, int]:
    """Return the peak memory on the CPU by label. All directions of the novels have the sizes of the measured one."""
    measured = task.name if task.name.startswith("zhang") else "novels en-es"
    return {r["label"]: r["host_bytes"] for r in select(found, alone_on="cpu", task=measured)}


def summary_table(scores: Sequence[Record]) -> str:
    """Return methods by tasks: mean P@1 over all seeds, failed runs included, and the version that measured them."""
    rows = []
    for label in _labels(scores):
        runs = select(scores, label=label)
        means = (cell(mean(select(runs, task=task.name), "csls_p1")) for task in TASKS)
        rows.append([label, ", ".join(sorted({r["version"] for r in runs})), *means])
    return markdown(["method", "version", *(task.name for task in TASKS)], rows)


def task_table(scores: Sequence[Record], memory: dict[str, int]) -> str:
    """Return a row for each method on one task. memory: peak bytes by label."""
    head = ["method", "seeds", "P@1 CSLS, mean ± sd", "best by the verdict's ratio", "P@1 NN", "MRR CSLS", "MRR NN"]
    rows = []
    for label in _labels(scores):
        runs = select(scores, label=label)
        p1 = [r["csls_p1"] for r in runs]
        spread = f" ± {statistics.stdev(p1):.2f}" if len(p1) > 1 else ""
        best = max(runs, key=lambda r: float(r["ratio"]))["csls_p1"]
        figures = [cell(mean(runs, figure), 2) for figure in ("nn_p1", "csls_mrr", "nn_mrr")]
        peak = f"{memory[label] / 2**20:,.0f}" if label in memory else "-"
        cells = [label, str(len(runs)), f"{statistics.mean(p1):.2f}{spread}", cell(best, 2), *figures]
        rows.append([*cells, share(runs, "succeeded"), cell(mean(runs, "seconds")), peak])
    return markdown([*head, "succeeded", "seconds", "peak MiB, CPU"], rows)


def cost_table(found: Sequence[Record]) -> str:
    """Return time and memory of each method in a fresh process."""
    columns = list(dict.fromkeys((r["alone_on"], r["task"]) for r in found))
    rows = []
    for label in _labels(found):
        runs = [select(found, label=label, alone_on=device, task=task) for device, task in columns]
        rows.append([label, *(_cost_cell(run[-1]) if run else "-" for run in runs)])
    return markdown(["method", *(f"{task}, {device}" for device, task in columns)], rows)


def _cost_cell(found: Record) -> str:
    gpu = f", GPU {found['device_bytes'] / 2**20:,.0f} MiB" if found["device_bytes"] else ""
    return f"{found['seconds']:.1f} s, {found['host_bytes'] / 2**20:,.0f} MiB{gpu}"


def verdict_line(scores: Sequence[Record]) -> str:
    """Compare the verdicts with P@1; an alignment below LEAST_P1 has failed."""
    failed = [r for r in scores if r["csls_p1"] < LEAST_P1]
    caught = select(failed, verdict="failed")
    good = [r for r in scores if r["csls_p1"] >= LEAST_P1]
    rejected = [r for r in good if r["verdict"] != "succeeded"]
    return (
        f"{len(scores)} runs: {len(failed)} ended below a P@1 of {LEAST_P1:g}, and the verdict rejected {len(caught)} "
        f"of them. Of the other {len(good)} it rejected {len(rejected)}."
    )


if __name__ == "__main__":
    records.main("benchmarks.systems", __doc__, SUITES, RESULTS)
