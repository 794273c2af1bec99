"""Large work on a GPU: vocabularies of 200,000 words, and many pairs of languages in one process.

    python -m benchmarks.gpu [--device cuda] [--pairs 64] [--words 200000] [--repeats 3] [--json] [--output FILE]

Vectors are generated: a space with structure, seen through two rotations with noise of its own on either side, words in
the same order of frequency. Absolute times, medians after one run that does not count; peak memory is the GPU's.
"""

from __future__ import annotations

import json
import statistics
import time
from typing import Any

import numpy as np

import qwp
from benchmarks.common import Floats, clustered_space, machine, options_parser, save
from benchmarks.memory import device_peak, restart_device_peak
from qwp import Embeddings, Lexicon, arrays
from qwp.methods import QWP
from qwp.results.translator import Search

_NOISE = 1.0
_DISTINCT_PAIRS = 8


def two_views(n: int, d: int, seed: int, noise: float = _NOISE) -> tuple[Floats, Floats]:
    """Two noisy views of one space, the second rotated: (n, d) each, row i the translation of row i."""
    rng = np.random.default_rng(seed)
    space = clustered_space(n, d, seed)
    rotation = np.linalg.qr(rng.standard_normal((d, d)))[0].astype(np.float32)
    first, second = (space + noise / d**0.5 * rng.standard_normal((n, d), dtype=np.float32) for _ in (0, 1))
    return first, second @ rotation


def large_vocabulary(
    device: str, words: int = 200_000, d: int = 300, queries: int = 1500, repeats: int = 3
) -> dict[str, Any]:
    """Align two vocabularies, training on 20,000 words, and score by exact CSLS among all words."""
    src, tgt = two_views(words, d, seed=0)
    names = [f"w{i}" for i in range(words)]
    every = max(1, words // queries)
    gold = Lexicon(tuple((word, word) for word in names[::every][:queries]))
    runs = []
    for _ in range(repeats + 1):
        # New objects each time: nothing cached, hashes included.
        spaces = Embeddings(names, src), Embeddings(names, tgt)
        restart_device_peak(device)
        begin = time.perf_counter()
        alignment = qwp.align(*spaces, device=device)
        aligned = time.perf_counter()
        found = qwp.evaluate(alignment.on(device), gold, retrieval=("csls",), bootstrap=0)
        end = time.perf_counter()
        runs.append(
            {"align": aligned - begin, "evaluate": end - aligned, "total": end - begin, "peak": device_peak(device)}
        )
    return {
        "words": words,
        "d": d,
        "queries": found.coverage.covered_source_words,
        **{
            f"{stage}_seconds": statistics.median(r[stage] for r in runs[1:])
            for stage in ("align", "evaluate", "total")
        },
        "peak_bytes": max(r["peak"] for r in runs),
        "csls_p1": 100 * found.p_at_1(),
        "verdict": alignment.quality.verdict,
        "stages": alignment.provenance.seconds,
        "times": runs,
    }


def many_pairs(device: str, pairs: int = 64, n: int = 20_000, d: int = 300) -> dict[str, Any]:
    """Align many pairs in one process. Few of them are distinct, to keep the making of vectors short."""
    views = [two_views(n, d, seed) for seed in range(min(_DISTINCT_PAIRS, pairs))]
    QWP(device=device).fit_many(views[:2])
    restart_device_peak(device)
    begin = time.perf_counter()
    alignments = QWP(device=device).fit_many([views[i % len(views)] for i in range(pairs)])
    seconds = time.perf_counter() - begin
    stages: dict[str, float] = {}
    for alignment in alignments:
        for stage, taken in alignment.provenance.seconds.items():
            stages[stage] = stages.get(stage, 0.0) + taken
    identity = np.arange(2000)
    hits = [_first_choices(alignments[i], device) == identity for i in range(len(views))]
    return {
        "pairs": pairs,
        "distinct": len(views),
        "n": n,
        "d": d,
        "seconds": seconds,
        "seconds_per_pair": seconds / pairs,
        "stages": stages,
        "succeeded": sum(a.quality.verdict == "succeeded" for a in alignments),
        "csls_p1": [100 * float(np.mean(h)) for h in hits],
        "peak_bytes": device_peak(device),
    }


def _first_choices(alignment: qwp.Alignment, device: str) -> np.ndarray:
    """Best CSLS partner of the 2,000 most frequent words, (2000,)."""
    on = alignment.on(device)
    indices, _ = on.translator.retriever(Search("src", "csls", 10)).top_k(on.mapped("src")[:2000], 1)
    return np.asarray(arrays.to_numpy(indices))[:, 0]


def main(arguments: list[str] | None = None) -> None:
    """Run from the command line and print the figures."""
    parser = options_parser("benchmarks.gpu", "Large work on a GPU", repeats=3, device="cuda")
    parser.add_argument("--pairs", type=int, default=64, help="pairs of languages in one process")
    parser.add_argument("--words", type=int, default=200_000, help="words of the large vocabularies")
    options = parser.parse_args(arguments)
    result: dict[str, Any] = {"machine": machine(1000), "place": str(arrays.choose_device(options.device))}
    result["many"] = many = many_pairs(options.device, options.pairs)
    result["large"] = large = large_vocabulary(options.device, options.words, repeats=options.repeats)
    if options.output is not None:
        save(result, options.output)
    if options.json:
        print(json.dumps(result, indent=2))
        return
    print(
        f"{large['words']} x {large['words']} x {large['d']}: aligned in {large['align_seconds']:.2f} s, "
        f"{large['queries']} queries scored in {large['evaluate_seconds']:.2f} s (CSLS P@1 {large['csls_p1']:.1f}), "
        f"together {large['total_seconds']:.2f} s, peak {large['peak_bytes'] / 2**30:.1f} GiB"
    )
    print(
        f"{many['pairs']} pairs of {many['n']} x {many['d']}: {many['seconds']:.1f} s, "
        f"{1e3 * many['seconds_per_pair']:.0f} ms a pair, {many['succeeded']} succeeded, "
        f"peak {many['peak_bytes'] / 2**30:.1f} GiB"
    )


if __name__ == "__main__":
    main()
