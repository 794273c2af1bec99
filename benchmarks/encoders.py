"""Alignment of two encoders of the same texts, by the number of known pairs.

    QWP_BENCH=FOLDER python -m benchmarks.encoders --device cuda

Of the texts in `encoders/` of the benchmark data, 2,000 are held out; the others are shuffled. The score is the share
of held-out texts whose counterpart ranks first, by cosine and by CSLS. Least squares and Procrustes see the known pairs
only. `qwp` starts from the pairs and uses all texts; without pairs it is unsupervised.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

import qwp
from benchmarks import records
from benchmarks.items import HELD_OUT, encoders
from benchmarks.records import Record, Run, markdown, select, values

RESULTS = records.FOLDER / "encoders.jsonl"
METHODS = ("least-squares", "procrustes", "qwp")
PAIRS = (0, 100, 1000, 5000)
CASES = [(pairs, method) for pairs, method in product(PAIRS, METHODS) if pairs or method == "qwp"]
SEEDS = 3


def suite(device: str) -> Iterator[Run]:
    """Align the texts by every method with every number of pairs."""
    for seed, (pairs, method) in product(range(SEEDS), CASES):
        yield Run({"method": method, "pairs": pairs, "seed": seed}, partial(_run, method, pairs, seed, device))


def _run(method: str, pairs: int, seed: int, device: str) -> Record:
    src, tgt = encoders()
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(src))
    held_out, rest = order[:HELD_OUT], order[HELD_OUT:]
    shuffled = rng.permutation(len(rest))
    # Row i of the source is row `position[i]` of the target.
    position = np.argsort(shuffled)
    known = np.column_stack([np.arange(pairs), position[:pairs]])
    options: dict[str, Any] = {"order": "none", "device": device, "verdict": "none" if method != "qwp" else "full"}
    begin = time.perf_counter()
    alignment = qwp.align(src[rest], tgt[rest][shuffled], method, seed, lexicon=known if pairs else None, **options)  # type: ignore[arg-type]
    seconds = time.perf_counter() - begin
    found = qwp.evaluate_counterparts(alignment, src[held_out], tgt[held_out], bootstrap=0)
    return {
        "verdict": alignment.quality.verdict,
        "ratio": alignment.quality.ratio,
        "seconds": seconds,
        "device": alignment.provenance.backend,
        "start": alignment.provenance.initializer,
        **{retrieval: 100 * each.recall[1].value for retrieval, each in found.found.items()},
        "mean_rank": found.found["csls"].mean_rank,
    }


def tables(found: Sequence[Record]) -> str:
    """Return recall at 1 by method and number of pairs."""
    rows = []
    for pairs, method in CASES:
        if runs := select(found, method=method, pairs=pairs):
            figures = [f"{statistics.mean(r[figure] for r in runs):.1f}" for figure in ("nn", "csls", "mean_rank")]
            verdicts = ", ".join(sorted(values(runs, "verdict"))) if method == "qwp" else ""
            rows.append([f"{pairs:,}" if pairs else "none", method, *figures, verdicts, str(len(runs))])
    head = ["known pairs", "method", "top 1, cosine", "top 1, CSLS", "mean rank, CSLS", "verdict", "seeds"]
    return markdown(head, rows)


if __name__ == "__main__":
    records.main("benchmarks.encoders", __doc__, {"encoders": suite}, RESULTS)
