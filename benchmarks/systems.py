"""Every method on every pair of the benchmark data. `python -m benchmarks.systems --help`.

    python -m benchmarks.systems --device cuda

The data is not part of the package: it is read from $QWP_BENCH or ../shared/bench. Supervised methods see the training
split of MUSE (`.0-5000`) and nothing else, so they have no row where there is none; the test split scores. Each record
goes to the results file as soon as it is there, and a run that was stopped goes on where it was. `--alone` measures
time and memory of each method in a process of its own. `--table` runs nothing; it puts the tables of that file into
docs/systems.md and prints them.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path
from typing import Any

import qwp
from benchmarks.common import Record, keep_record, put_tables, read_records
from benchmarks.memory import device_peak, in_fresh_process, restart_device_peak
from benchmarks.tasks import BENCH, Task, novels, scored, zhang
from qwp import Alignment, Embeddings, Lexicon
from qwp.methods import METHODS, Multi, make_aligner
from qwp.methods.settings import REQUIRED

RESULTS = Path(__file__).parent / "results" / "systems.jsonl"
DOCUMENT = Path(__file__).parents[1] / "docs" / "systems.md"
NOVELS = ("en-es", "es-en", "en-fr", "fr-en", "en-de", "de-en")
TASKS = (zhang("es-en"), zhang("it-en"), *(novels(pair) for pair in NOVELS))
LANGUAGES = ("es", "fr", "de", "en")
ROUND_TRIP_WORDS = 5000
# Below this P@1 an alignment is not real, whatever a verdict says.
REAL_P1 = 10.0

# Printed of each record.
SHOWN = ("task", "label", "seed", "csls_p1", "value", "ratio", "seconds", "host_bytes")


@dataclass(frozen=True)
class System:
    """One row: a method with its options. seeds: how many on the Zhang pairs and on the novels."""

    label: str
    method: str
    seeds: tuple[int, int] = (1, 1)
    options: dict[str, Any] = field(default_factory=dict)
    first_pairs: int | None = None
    """How much of the training lexicon a supervised method gets."""

    @property
    def supervised(self) -> bool:
        """Whether it needs a lexicon."""
        return METHODS[self.method].supervision == REQUIRED

    def lexicon(self, task: Task) -> Lexicon | None:
        """What it may learn from; None for methods that need nothing."""
        return training_lexicon(task, self.first_pairs) if self.supervised else None


# One seed where nothing is random.
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
MULTI_SEEDS = 1
PAIRWISE = "wp, orthogonal map"


def training_lexicon(task: Task, first_pairs: int | None = None) -> Lexicon | None:
    """The training split that belongs to a task, or its first pairs; None where there is none."""
    if not task.lexicon.startswith("muse/"):
        return None
    lexicon = Lexicon.load(BENCH / task.lexicon.replace(".5000-6500.", ".0-5000."))
    return lexicon if first_pairs is None else Lexicon(lexicon.pairs[:first_pairs])


def run(system: System, task: Task, seeds: Iterable[int], device: str) -> Iterator[Record]:
    """A record for each seed."""
    lexicon = system.lexicon(task)
    src, tgt, gold = task.load()
    for seed in seeds:
        aligner = make_aligner(system.method, seed=seed, device=device, **system.options)
        begin = time.perf_counter()
        aligner.fit(src, tgt, lexicon=lexicon)
        seconds = time.perf_counter() - begin
        yield {
            "task": task.name,
            "label": system.label,
            "method": system.method,
            "options": system.options,
            "seed": seed,
            **scored(aligner.alignment_, gold, device),
            "seconds": seconds,
        }


def prepare_fit(label: str, task: str, device: str) -> Callable[[], Record]:
    """Load what a system needs; the call that comes back fits it with seed 0 and tells the time it took."""
    if label == "multi":
        spaces = novels_spaces()
        return lambda: _timed_fit(lambda: Multi(device=device).fit_all(spaces, hub="en"), device)
    system, chosen = next(s for s in SYSTEMS if s.label == label), next(t for t in TASKS if t.name == task)
    lexicon = system.lexicon(chosen)
    src, tgt, _ = chosen.load()
    aligner = make_aligner(system.method, device=device, **system.options)
    return lambda: _timed_fit(lambda: aligner.fit(src, tgt, lexicon=lexicon), device)


def _timed_fit(fit: Callable[[], Any], device: str) -> Record:
    restart_device_peak(device)
    begin = time.perf_counter()
    fit()
    return {"seconds": time.perf_counter() - begin, "device_bytes": device_peak(device)}


def alone(label: str, task: str, device: str) -> Record:
    """One fit in a process of its own: its time, and the memory it needs beyond the vectors as they were loaded."""
    found = in_fresh_process(prepare_fit, label=label, task=task, device=device)
    return {"task": task, "label": label, "alone_on": device, **found.value, "host_bytes": found.peak_bytes}


# --------------------------------------------------------------------------- several languages


def novels_spaces() -> dict[str, Embeddings]:
    """The vectors of all languages of the novels."""
    return {name: qwp.load(BENCH / f"novels/{name}.npz", max_vocab=20_000) for name in LANGUAGES}


def several(seed: int, device: str) -> Iterator[Record]:
    """The four languages of the novels by `multi`, and each of the twelve directions by `wp` with an orthogonal map.

    The maps of `multi` are orthogonal, so that all languages share one space; `wp` with its re-weighted maps is in the
    other tables. Directions with a dictionary are scored by it; the others by the round trip: the share of the most
    frequent words whose translation translates back to them.
    """
    spaces = novels_spaces()
    begin = time.perf_counter()
    multi = Multi(seed=seed, device=device).fit_all(spaces, hub="en")
    seconds = time.perf_counter() - begin

    def pairwise(src: str, tgt: str) -> Alignment:
        return make_aligner("wp", seed=seed, device=device, map="orthogonal").fit(spaces[src], spaces[tgt]).alignment_

    ways: tuple[tuple[str, Callable[[str, str], Alignment]], ...] = (("multi", multi.pair), (PAIRWISE, pairwise))
    for label, aligned in ways:
        for src, tgt in permutations(LANGUAGES, 2):
            alignment = aligned(src, tgt)
            about = {"task": f"twelve {src}-{tgt}", "label": label, "seed": seed}
            if "en" in (src, tgt):
                task = novels(f"{src}-{tgt}")
                gold = Lexicon.load(BENCH / task.lexicon)
                scores = scored(alignment, gold, device)
                yield {**about, "measure": "P@1", "value": scores["csls_p1"]}
                if label == "multi":
                    yield {**about, "task": task.name, "method": label, "options": {}, **scores, "seconds": seconds}
            else:
                pairs = alignment.on(device).induce(max_words=ROUND_TRIP_WORDS)
                yield {**about, "measure": "round trip", "value": 100 * len(pairs) / ROUND_TRIP_WORDS}


# --------------------------------------------------------------------------- tables


def tables(records: Sequence[Record]) -> str:
    """All tables as Markdown."""
    parts = ["### P@1, CSLS", summary(records)]
    for task in TASKS:
        rows = [r for r in records if r["task"] == task.name and "csls_p1" in r]
        if rows:
            covered = f"{rows[0]['covered']:,} of {rows[0]['gold_words']:,} source words covered"
            parts += [f"### {task.name} ({covered})", task_table(rows, peaks(records, task))]
    if twelve := twelve_table(records):
        parts += ["### Twelve directions", twelve]
    parts += ["### The verdict", verdict_line(records)]
    parts += ["### Alone in a process", alone_table(records)]
    return "\n\n".join(part for part in parts if part) + "\n"


def peaks(records: Iterable[Record], task: Task) -> dict[str, int]:
    """Peak memory on the CPU by label, in bytes. All directions of the novels have the sizes of the one measured."""
    measured = task.name if task.name.startswith("zhang") else "novels en-es"
    found = [r for r in records if r.get("alone_on") == "cpu" and r["task"] == measured]
    return {r["label"]: r["host_bytes"] for r in found}


def _labels(records: Iterable[Record]) -> list[str]:
    known = [system.label for system in SYSTEMS] + ["multi"]
    return [label for label in known if any(r["label"] == label for r in records)]


def summary(records: Sequence[Record]) -> str:
    """Methods by tasks: mean P@1 with CSLS over the seeds, failed ones included."""
    rows = [r for r in records if "csls_p1" in r]
    names = [task.name for task in TASKS]
    lines = [f"| method | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for label in _labels(rows):
        cells = []
        for name in names:
            values = [r["csls_p1"] for r in rows if r["label"] == label and r["task"] == name]
            cells.append(f"{statistics.mean(values):.1f}" if values else "-")
        lines.append(f"| {label} | {' | '.join(cells)} |")
    return "\n".join(lines)


def task_table(records: Sequence[Record], memory: dict[str, int] | None = None) -> str:
    """One row for each method on one task. memory: its peak in bytes, by label, where it was measured."""
    lines = [
        "| method | seeds | P@1 CSLS, mean ± sd | best by the verdict's ratio | P@1 NN | MRR CSLS | MRR NN "
        "| succeeded | seconds | peak MiB, CPU |",
        "|---" * 10 + "|",
    ]
    for label in _labels(records):
        rows = [r for r in records if r["label"] == label]
        p1 = [r["csls_p1"] for r in rows]
        spread = f" ± {statistics.stdev(p1):.2f}" if len(p1) > 1 else ""
        chosen = max(rows, key=lambda r: r["ratio"])
        needed = (memory or {}).get(label)
        means = {key: statistics.mean(r[key] for r in rows) for key in ("nn_p1", "csls_mrr", "nn_mrr", "seconds")}
        lines.append(
            f"| {label} | {len(rows)} | {statistics.mean(p1):.2f}{spread} | {chosen['csls_p1']:.2f} "
            f"| {means['nn_p1']:.2f} | {means['csls_mrr']:.2f} | {means['nn_mrr']:.2f} "
            f"| {sum(r['verdict'] == 'succeeded' for r in rows)} of {len(rows)} | {means['seconds']:.1f} "
            f"| {'-' if needed is None else f'{needed / 2**20:,.0f}'} |"
        )
    return "\n".join(lines)


def twelve_table(records: Sequence[Record]) -> str:
    """`multi` against `wp` with an orthogonal map on each pair by itself: means over the seeds."""
    rows = [r for r in records if "measure" in r]
    if not rows:
        return ""
    lines = [f"| direction | measure | multi | {PAIRWISE} |", "|---|---|---|---|"]
    means: dict[str, list[float]] = {"multi": [], PAIRWISE: []}
    for name in dict.fromkeys(r["task"] for r in rows):
        group = [r for r in rows if r["task"] == name]
        for label, values in means.items():
            values.append(statistics.mean(r["value"] for r in group if r["label"] == label))
        cells = " | ".join(f"{values[-1]:.1f}" for values in means.values())
        lines.append(f"| {name.removeprefix('twelve ')} | {group[0]['measure']} | {cells} |")
    lines.append(f"| mean | | {statistics.mean(means['multi']):.2f} | {statistics.mean(means[PAIRWISE]):.2f} |")
    return "\n".join(lines)


def alone_table(records: Sequence[Record]) -> str:
    """Time and memory of each method in a process of its own."""
    rows = [r for r in records if "alone_on" in r]
    if not rows:
        return ""
    columns = list(dict.fromkeys((r["alone_on"], r["task"]) for r in rows))
    lines = [f"| method | {' | '.join(f'{task}, {device}' for device, task in columns)} |"]
    lines.append("|---" * (len(columns) + 1) + "|")
    for label in _labels(rows):
        cells = []
        for column in columns:
            found = [r for r in rows if r["label"] == label and (r["alone_on"], r["task"]) == column]
            cells.append(_time_and_memory(found[-1]) if found else "-")
        lines.append(f"| {label} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _time_and_memory(found: Record) -> str:
    gpu = f", GPU {found['device_bytes'] / 2**20:,.0f} MiB" if found["device_bytes"] else ""
    return f"{found['seconds']:.1f} s, {found['host_bytes'] / 2**20:,.0f} MiB{gpu}"


def verdict_line(records: Sequence[Record]) -> str:
    """How often the verdict was right, counting an alignment as real from a P@1 of 10 on."""
    rows = [r for r in records if "csls_p1" in r]
    failed = [r for r in rows if r["csls_p1"] < REAL_P1]
    missed = [r for r in failed if r["verdict"] != "failed"]
    blamed = [r for r in rows if r["csls_p1"] >= REAL_P1 and r["verdict"] != "succeeded"]
    return (
        f"{len(rows)} runs: {len(failed)} ended below a P@1 of {REAL_P1:g}, of which the verdict caught "
        f"{len(failed) - len(missed)}; of the other {len(rows) - len(failed)} it called {len(blamed)} failed."
    )


# --------------------------------------------------------------------------- command line


def left_alone(done: Sequence[Record], device: str, labels: Sequence[str], tasks: Sequence[str]) -> Iterator[Record]:
    """Time and memory that were not measured yet: on both Zhang pairs and one direction of the novels."""
    known = {(r["task"], r["label"]) for r in done if r.get("alone_on") == device}
    for task in (t for t in TASKS if t.name in ("zhang es-en", "zhang it-en", "novels en-es") and t.name in tasks):
        for label in labels:
            supervised = label != "multi" and next(s for s in SYSTEMS if s.label == label).supervised
            has_training = training_lexicon(task) is not None
            if (task.name, label) not in known and (has_training or not (supervised or label == "multi")):
                yield alone(label, task.name, device)


def todo(
    done: Sequence[Record], device: str, systems: Sequence[System], tasks: Sequence[Task], multi: bool
) -> Iterator[Iterator[Record]]:
    """What is left, in pieces that can be run one after the other."""
    known = {(r["task"], r["label"], r["seed"]) for r in done if "seed" in r}
    for system in systems:
        for task in tasks:
            if system.supervised and training_lexicon(task) is None:
                continue
            seeds = range(system.seeds[0 if task.name.startswith("zhang") else 1])
            missing = [seed for seed in seeds if (task.name, system.label, seed) not in known]
            if missing:
                yield run(system, task, missing, device)
    for seed in range(MULTI_SEEDS if multi else 0):
        if ("twelve en-de", PAIRWISE, seed) not in known:
            yield several(seed, device)


def main() -> None:
    """Run what is missing, keep every record, print the tables."""
    labels = [system.label for system in SYSTEMS]
    parser = argparse.ArgumentParser(prog="benchmarks.systems", description=__doc__)
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    parser.add_argument("--output", type=Path, default=RESULTS, help="file of the records")
    parser.add_argument("--systems", nargs="*", default=[*labels, "multi"], help=f"some of {', '.join(labels)}, multi")
    parser.add_argument("--tasks", nargs="*", default=[task.name for task in TASKS], help="some of the tasks, by name")
    parser.add_argument("--alone", action="store_true", help="time and memory, each method in a process of its own")
    parser.add_argument("--table", action="store_true", help="run nothing, put the tables into docs/systems.md")
    options = parser.parse_args()
    if not options.table:
        if not BENCH.is_dir():
            parser.error(f"no benchmark vectors in {BENCH}: set QWP_BENCH to their folder")
        options.output.parent.mkdir(parents=True, exist_ok=True)
        systems = [system for system in SYSTEMS if system.label in options.systems]
        tasks = [task for task in TASKS if task.name in options.tasks]
        done = read_records(options.output)
        pieces: Iterable[Iterable[Record]]
        if options.alone:
            pieces = [left_alone(done, options.device, options.systems, options.tasks)]
        else:
            pieces = todo(done, options.device, systems, tasks, "multi" in options.systems)
        for piece in pieces:
            for found in piece:
                keep_record(found, options.output, SHOWN)
    made = tables(read_records(options.output))
    if options.table:
        put_tables(made, DOCUMENT)
    print(made)


if __name__ == "__main__":
    main()
