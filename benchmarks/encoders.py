"""Two encoders of the same texts: how well an alignment finds counterparts. `python -m benchmarks.encoders --help`.

The texts of `encoders/` in the benchmark data ($QWP_BENCH or ../shared/bench): 2,000 are held out, the others are
shuffled and given without pairs; methods that learn from pairs get some of them. Scored is which of the 2,000 held-out
texts is the counterpart of each, by the cosine and by CSLS. Least squares and Procrustes see the pairs alone; `qwp`
starts from the pairs and goes on with all texts; without pairs it has nothing but the two clouds. Each record goes to
the results file as soon as it is made. `--table` runs nothing; it puts the table of that file into docs/accuracy.md and
prints it.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import qwp
from benchmarks.ablation import markdown
from benchmarks.common import Record, keep_record, read_records, show_tables, suite_options
from benchmarks.tasks import BENCH

RESULTS = Path(__file__).parent / "results" / "encoders.jsonl"
DOCUMENT = Path(__file__).parents[1] / "docs" / "accuracy.md"
BEGIN, END = "<!-- encoders -->", "<!-- /encoders -->"
HELD_OUT = 2000
METHODS = ("least-squares", "procrustes", "qwp")
PAIRS = (0, 100, 1000, 5000)
SUITES = {f"seed{seed}": seed for seed in range(3)}
SHOWN = ("method", "pairs", "seed", "nn", "csls", "verdict", "seconds")


def _wanted() -> Iterator[tuple[str, int]]:
    for pairs in PAIRS:
        for method in METHODS:
            if pairs or method == "qwp":
                yield method, pairs


def _run(method: str, pairs: int, seed: int, device: str) -> Record:
    """Align the texts that are not held out, and look for the counterparts of those that are."""
    src, tgt = (np.load(BENCH / "encoders" / f"{name}.npy").astype("f4") for name in ("minilm", "wordllama"))
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(src))
    held_out, rest = order[:HELD_OUT], order[HELD_OUT:]
    shuffled = rng.permutation(len(rest))
    # Row i of the one is row `place[i]` of the other.
    place = np.argsort(shuffled)
    known = np.column_stack([np.arange(pairs), place[:pairs]])
    how: dict[str, Any] = {"order": "none", "device": device, "verdict": "none" if method != "qwp" else "full"}
    begin = time.perf_counter()
    alignment = qwp.align(src[rest], tgt[rest][shuffled], method, seed, lexicon=known if pairs else None, **how)  # type: ignore[arg-type]
    seconds = time.perf_counter() - begin
    found = qwp.evaluate_counterparts(alignment, src[held_out], tgt[held_out], bootstrap=0)
    return {
        "method": method,
        "pairs": pairs,
        "seed": seed,
        "verdict": alignment.quality.verdict,
        "ratio": alignment.quality.ratio,
        "seconds": seconds,
        "device": alignment.provenance.backend,
        "start": alignment.provenance.initializer,
        **{way: 100 * each.recall[1].value for way, each in found.found.items()},
        "mean_rank": found.found["csls"].mean_rank,
    }


def table(records: list[Record]) -> str:
    """Recall at 1 by method and number of pairs."""
    rows = []
    for method, pairs in _wanted():
        of = [r for r in records if (r["method"], r["pairs"]) == (method, pairs)]
        if of:
            figures = [f"{statistics.mean(r[way] for r in of):.1f}" for way in ("nn", "csls")]
            ranks = f"{statistics.mean(r['mean_rank'] for r in of):.1f}"
            said = "" if method != "qwp" else ", ".join(sorted({r["verdict"] for r in of}))
            rows.append([f"{pairs:,}" if pairs else "none", method, *figures, ranks, said, str(len(of))])
    head = ["known pairs", "method", "top 1, cosine", "top 1, CSLS", "mean rank, CSLS", "verdict", "seeds"]
    return markdown(head, rows) + "\n"


def main(arguments: list[str] | None = None) -> None:
    """Run what is missing, keep every record, print the table."""
    options = suite_options("benchmarks.encoders", __doc__, SUITES, RESULTS, BENCH, arguments)
    if not options.table:
        known = {(r["method"], r["pairs"], r["seed"]) for r in read_records(options.output)}
        for suite in options.suites or [*SUITES]:
            for method, pairs in _wanted():
                if (method, pairs, SUITES[suite]) not in known:
                    keep_record(_run(method, pairs, SUITES[suite], options.device), options.output, SHOWN)
    show_tables(options, table, DOCUMENT, BEGIN, END)


if __name__ == "__main__":
    main()
