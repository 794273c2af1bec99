"""Large work on a GPU: vocabularies of 200,000 words, and many pairs of languages in one process.

    python -m benchmarks.gpu [--device cuda] [--pairs 64] [--words 200000] [--repeats 3] [--output FILE]

The vectors are generated: two noisy views of one clustered space, the second rotated, in the same order of frequency.
Times are medians after a warm-up; peak memory is that of the GPU.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import qwp
from benchmarks.common import Floats, clustered_space, machine, random_rotation, save
from benchmarks.memory import device_peak, reset_device_peak
from qwp import Embeddings, Lexicon, arrays
from qwp.methods import QWP
from qwp.search import retrieval

_NOISE = 1.0
_DISTINCT_PAIRS = 8
_SCORED_WORDS = 2000


def two_views(n: int, d: int, seed: int) -> tuple[Floats, Floats]:
    """Return two noisy views (n, d) of one space, the second rotated; row i translates to row i."""
    rng = np.random.default_rng(seed)
    space = clustered_space(n, d, seed)
    rotation = random_rotation(d, rng)
    first, second = (space + _NOISE / d**0.5 * rng.standard_normal((n, d), dtype=np.float32) for _ in (0, 1))
    return first, second @ rotation


def large_vocabulary(
    device: str, words: int = 200_000, d: int = 300, queries: int = 1500, repeats: int = 3
) -> dict[str, Any]:
    """Align two large vocabularies, trained on 20,000 words, and score by exact CSLS among all words."""
    src, tgt = two_views(words, d, seed=0)
    names = [f"w{i}" for i in range(words)]
    gold = Lexicon(tuple((word, word) for word in names[:: max(1, words // queries)][:queries]))
    runs = []
    for _ in range(repeats + 1):
        # New objects for each run, so that no hash or prepared space is cached.
        spaces = Embeddings(names, src), Embeddings(names, tgt)
        reset_device_peak(device)
        begin = time.perf_counter()
        alignment = qwp.align(*spaces, device=device)
        aligned = time.perf_counter()
        found = qwp.evaluate(alignment.on(device), gold, retrieval=("csls",), bootstrap=0)
        end = time.perf_counter()
        runs.append({"align_seconds": aligned - begin, "evaluate_seconds": end - aligned, "total_seconds": end - begin})
    return {
        "words": words,
        "d": d,
        "queries": found.coverage.covered_source_words,
        **{stage: statistics.median(run[stage] for run in runs[1:]) for stage in runs[0]},
        "peak_bytes": device_peak(device),
        "csls_p1": 100 * found.p_at_1(),
        "verdict": alignment.quality.verdict,
        "stages": alignment.provenance.seconds,
        "times": runs,
    }


def many_pairs(device: str, pairs: int = 64, n: int = 20_000, d: int = 300) -> dict[str, Any]:
    """Align many pairs in one process. Only a few are distinct, because generating vectors takes long."""
    views = [two_views(n, d, seed) for seed in range(min(_DISTINCT_PAIRS, pairs))]
    QWP(device=device).fit_many(views[:2])
    reset_device_peak(device)
    begin = time.perf_counter()
    alignments = QWP(device=device).fit_many([views[i % len(views)] for i in range(pairs)])
    seconds = time.perf_counter() - begin
    stages: Counter[str] = Counter()
    for alignment in alignments:
        stages.update(alignment.provenance.seconds)
    return {
        "pairs": pairs,
        "distinct": len(views),
        "n": n,
        "d": d,
        "seconds": seconds,
        "seconds_per_pair": seconds / pairs,
        "stages": dict(stages),
        "succeeded": sum(a.quality.verdict == "succeeded" for a in alignments),
        "csls_p1": [_p_at_1(alignment.on(device)) for alignment in alignments[: len(views)]],
        "peak_bytes": device_peak(device),
    }


def _p_at_1(alignment: qwp.Alignment) -> float:
    """Return P@1 of the most frequent words by CSLS, in percent."""
    src, tgt = alignment.mapped("src"), alignment.mapped("tgt")
    found, _ = retrieval.retriever(tgt, src).top_k(src[:_SCORED_WORDS], 1)
    return 100 * float(np.mean(arrays.to_numpy(found)[:, 0] == np.arange(_SCORED_WORDS)))


def main() -> None:
    """Run from the command line and print the figures as JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gpu", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda", help="auto, cpu, cuda or cuda:N")
    parser.add_argument("--pairs", type=int, default=64, help="pairs of languages in one process")
    parser.add_argument("--words", type=int, default=200_000, help="words of the large vocabularies")
    parser.add_argument("--repeats", type=int, default=3, help="alignments of the large vocabularies")
    parser.add_argument("--output", type=Path, help="file that gets the JSON")
    options = parser.parse_args()
    result = {
        "machine": machine(1000),
        "device": str(arrays.choose_device(options.device)),
        "many": many_pairs(options.device, options.pairs),
        "large": large_vocabulary(options.device, options.words, repeats=options.repeats),
    }
    if options.output is not None:
        save(result, options.output)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
