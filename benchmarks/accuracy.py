"""Accuracy on real vectors: several seeds, coverage, both scorers. `python -m benchmarks.accuracy --help`.

The data is not part of the package: it is read from $QWP_BENCH or ../shared/bench. No gold dictionary is used
to fit, to stop or to choose anything here; each run is `qwp.align` and then `qwp.evaluate`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import qwp
from qwp.aligners import make_aligner
from qwp.io.files import replacing

BENCH = Path(os.environ.get("QWP_BENCH", Path(__file__).parents[2] / "shared" / "bench"))


@dataclass(frozen=True)
class Task:
    """A pair of vector files and the gold dictionary that scores it."""

    name: str
    src: str
    tgt: str
    lexicon: str
    max_vocab: int | None = None

    def load(self) -> tuple[qwp.Embeddings, qwp.Embeddings, qwp.Lexicon]:
        """Vectors of both sides and the gold."""
        spaces = [qwp.load(BENCH / f, max_vocab=self.max_vocab) for f in (self.src, self.tgt)]
        return spaces[0], spaces[1], qwp.Lexicon.load(BENCH / self.lexicon)


@dataclass(frozen=True)
class Setting:
    """One row of the table: a method, its options, the seeds."""

    label: str
    task: Task
    seeds: int
    method: str = "qwp"
    options: dict[str, Any] = field(default_factory=dict)


def zhang(pair: str) -> Task:
    """The word2vec pairs of Zhang et al. (2017)."""
    src, tgt = pair.split("-")
    folder = f"zhang2017/{pair}"
    return Task(f"zhang {pair}", f"{folder}/{src}.vec", f"{folder}/{tgt}.vec", f"{folder}/lexicon.txt")


def novels(pair: str) -> Task:
    """The 19th-century novels, scored on the test split of MUSE."""
    src, tgt = pair.split("-")
    return Task(f"novels {pair}", f"novels/{src}.npz", f"novels/{tgt}.npz", f"muse/{pair}.5000-6500.txt", 20_000)


def settings() -> dict[str, list[Setting]]:
    """The suites by name."""
    # The paper's own start. The default start ends with a trial run on random batches, a less clean comparison.
    quantized = {"coreset_size": 500, "refine": 0, "start": "frank-wolfe"}
    default_start = {"coreset_size": 500, "refine": 0}
    return {
        "zhang": [Setting("default", zhang("es-en"), 5)],
        "coresets": [
            Setting("Frank-Wolfe start, random k=500, before refinement", zhang("es-en"), 5, "wp", quantized),
            Setting("Frank-Wolfe start, kmeans++ k=500, before refinement", zhang("es-en"), 5, "qwp", quantized),
            Setting("default start, random k=500, before refinement", zhang("es-en"), 5, "wp", default_start),
            Setting("default start, kmeans++ k=500, before refinement", zhang("es-en"), 5, "qwp", default_start),
        ],
        "paper": [
            Setting(
                "Frank-Wolfe start, kmeans++ k=500, the paper's weights, before refinement",
                zhang("es-en"),
                5,
                "qwp",
                {**quantized, "weight_power": 1.0},
            ),
        ],
        "novels": [Setting("default", novels("en-es"), 5)],
        "others": [
            Setting("default", zhang("it-en"), 3),
            Setting("wp", novels("en-es"), 1, "wp"),
            Setting("the paper's weights", novels("en-es"), 1, "qwp", {"weight_power": 1.0}),
            *(Setting("default", novels(pair), 1) for pair in ("en-fr", "en-de")),
        ],
    }


def run(setting: Setting, device: str = "auto") -> Iterator[dict[str, Any]]:
    """One record for each seed."""
    src, tgt, gold = setting.task.load()
    for seed in range(setting.seeds):
        begin = time.perf_counter()
        aligner = make_aligner(setting.method, seed=seed, device=device, **setting.options).fit(src, tgt)
        seconds = time.perf_counter() - begin
        yield {
            "task": setting.task.name,
            "label": setting.label,
            "method": setting.method,
            "options": setting.options,
            "seed": seed,
            **scored(aligner.alignment_, gold, device),
            "seconds": seconds,
            "stages": aligner.alignment_.provenance.seconds,
        }


def scored(alignment: qwp.Alignment, gold: qwp.Lexicon, device: str) -> dict[str, Any]:
    """What every record of an alignment holds: scores in per cent over covered words, coverage, verdict, place."""
    found = qwp.evaluate(alignment.on(device), gold, bootstrap=0)
    scores = {
        f"{retrieval}_{name}": 100 * found.scores[retrieval].covered[measure].value
        for retrieval in ("csls", "nn")
        for name, measure in (("p1", "P@1"), ("mrr", "MRR"))
    }
    return {
        **scores,
        "covered": found.coverage.covered_source_words,
        "gold_words": found.coverage.source_words,
        "verdict": alignment.quality.verdict,
        "ratio": alignment.quality.ratio,
        "place": alignment.provenance.backend,
        "version": qwp.__version__,
    }


def table(records: list[dict[str, Any]]) -> str:
    """Markdown: mean, spread and worst seed of each setting."""
    rows = ["| data | setting | seeds | P@1 CSLS mean ± sd (min) | P@1 NN mean | coverage | verdict | seconds |"]
    rows.append("|---|---|---|---|---|---|---|---|")
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for record in records:
        groups.setdefault((record["task"], record["label"]), []).append(record)
    for (task, label), group in groups.items():
        p1 = [r["csls_p1"] for r in group]
        spread = statistics.stdev(p1) if len(p1) > 1 else 0.0
        verdicts = ", ".join(sorted({r["verdict"] for r in group}))
        rows.append(
            f"| {task} | {label} | {len(group)} | {statistics.mean(p1):.2f} ± {spread:.2f} ({min(p1):.2f}) "
            f"| {statistics.mean(r['nn_p1'] for r in group):.2f} | {group[0]['covered']}/{group[0]['gold_words']} "
            f"| {verdicts} | {statistics.mean(r['seconds'] for r in group):.1f} |"
        )
    return "\n".join(rows)


def main() -> None:
    """Run the chosen suites, print the table, keep every record."""
    suites = settings()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="*", choices=[*suites, []], help=f"some of {', '.join(suites)} (default: all)")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "accuracy.jsonl")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    arguments = parser.parse_args()
    if not BENCH.is_dir():
        parser.error(f"no benchmark vectors in {BENCH}: set QWP_BENCH to their folder")
    records = []
    for suite in arguments.suites or suites:
        for setting in suites[suite]:
            for record in run(setting, arguments.device):
                records.append(record)
                print(json.dumps(record), flush=True)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    with replacing(arguments.out) as file:
        file.write("".join(json.dumps(r) + "\n" for r in records).encode())
    print(table(records))


if __name__ == "__main__":
    main()
