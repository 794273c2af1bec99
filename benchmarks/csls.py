"""CSLS over whole vocabularies: how near to the machine's matrix product it runs, and how time grows with the words.

    python -m benchmarks.csls [--n 20000] [--d 300] [--repeats 3] [--json]

Rate: the FLOP of the matrix products that CSLS of n x n words needs, by the time it takes, as a share of what a plain
float32 product reaches in the same minutes. Everything else CSLS does (top ten of each row, penalties, maxima) counts
as loss.

Alternatives: scikit-learn's `NearestNeighbors` (cosine, brute force) for the neighbourhood means of both sides, and
plain NumPy in row blocks (`benchmarks.reference`) for the mutual pairs.

Growth: neighbourhood means of a fixed number of queries against more and more keys, and one bank of coresets of more
and more words. Both should grow linearly: the slope in log-log is reported. `benchmarks.plot` draws it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.common import GEMM_SIZE, Floats, clustered_space, gemm_call, in_turns, medians, options_parser
from benchmarks.data import Array
from benchmarks.memory import Preparation, in_fresh_process
from benchmarks.reference import mutual_pairs
from qwp import arrays
from qwp.ot.coresets import kmeans_plusplus_bank
from qwp.search import retrieval

# How many n x m x d products each makes.
CROSS_NEIGHBOURS_PRODUCTS = 3
RETRIEVER_PRODUCTS = 2

CSLS_K = 10


@dataclass(frozen=True)
class GrowthSizes:
    """Sizes at which growth is measured. keys: for `queries` queries; points: for a bank of `bank_size` coresets."""

    keys: Sequence[int] = (20_000, 40_000, 80_000, 160_000)
    points: Sequence[int] = (10_000, 20_000, 40_000, 80_000)
    queries: int = 2000
    centres: int = 200
    bank_size: int = 8


def run(
    n: int = 20_000,
    d: int = 300,
    repeats: int = 3,
    gemm_size: int = GEMM_SIZE,
    growth: GrowthSizes | None = None,
) -> dict[str, Any]:
    """Measure rate and growth on generated unit vectors of dimension d, n on each side.

    Returns:
        "rate": FLOP/s of the plain product, and seconds, FLOP/s and share of it for both CSLS calls; "cases": the
        comparisons with other libraries, with the peak memory of qwp; "growth": sizes, seconds and exponent; all times.
    """
    sizes = growth or GrowthSizes()
    src, tgt = both_sides(n, d)
    tasks: dict[str, Callable[[], Any]] = {
        "gemm": gemm_call(gemm_size),
        "cross_neighbours": lambda: retrieval.cross_neighbours(src, tgt, csls_k=CSLS_K).mutual(),
        "retriever": lambda: retrieval.retriever(tgt, src, csls_k=CSLS_K).top_k(src, CSLS_K),
        "means": lambda: neighbour_means(src, tgt),
        "sklearn_means": lambda: (sklearn_means(src, tgt, CSLS_K), sklearn_means(tgt, src, CSLS_K)),
        "numpy_pairs": lambda: mutual_pairs(src, tgt, CSLS_K),
    }
    tasks["gemm"]()  # the first call pays for threads, and that of scikit-learn for its import
    sklearn_means(src[:100], tgt[:100], CSLS_K)
    times = in_turns(tasks, repeats)
    middle = medians(times)
    plain = 2 * gemm_size**3 / middle["gemm"]
    product = 2 * n * n * d
    return {
        "n": n,
        "d": d,
        "csls_k": CSLS_K,
        "rate": {
            "gemm_size": gemm_size,
            "gemm_flops_per_second": plain,
            "cross_neighbours": _rate(middle["cross_neighbours"], CROSS_NEIGHBOURS_PRODUCTS, product, plain),
            "retriever": _rate(middle["retriever"], RETRIEVER_PRODUCTS, product, plain),
        },
        "cases": [
            {
                "what": "CSLS means, both ways",
                "qwp_seconds": middle["means"],
                "other": "scikit-learn",
                "other_seconds": middle["sklearn_means"],
                "ratio": middle["sklearn_means"] / middle["means"],
                "peak_bytes": _peak(prepare_means, n, d),
            },
            {
                "what": "CSLS mutual pairs",
                "qwp_seconds": middle["cross_neighbours"],
                "other": "NumPy",
                "other_seconds": middle["numpy_pairs"],
                "ratio": middle["numpy_pairs"] / middle["cross_neighbours"],
                "peak_bytes": _peak(prepare_pairs, n, d),
            },
        ],
        "growth": measure_growth(sizes, d, repeats),
        "times": times,
    }


def _rate(seconds: float, products: int, product_flops: int, plain: float) -> dict[str, float]:
    reached = products * product_flops / seconds
    return {
        "seconds": seconds,
        "products": products,
        "flops_per_second": reached,
        "share_of_gemm": reached / plain,
    }


def sklearn_means(queries: Floats, keys: Floats, k: int) -> Floats:
    """Mean cosine of each query (n, d) to its k nearest keys (m, d), by scikit-learn. Returns (n,)."""
    from sklearn.neighbors import NearestNeighbors

    distances, _ = NearestNeighbors(n_neighbors=k, metric="cosine", algorithm="brute").fit(keys).kneighbors(queries)
    return np.asarray(1.0 - distances.mean(axis=1))


def prepare_means(n: int, d: int) -> Callable[[], None]:
    """The first call whose memory is measured."""
    src, tgt = both_sides(n, d)
    neighbour_means(src[:200], tgt[:200])  # the first call pays for threads

    def call() -> None:
        neighbour_means(src, tgt)

    return call


def prepare_pairs(n: int, d: int) -> Callable[[], None]:
    """The second call whose memory is measured."""
    src, tgt = both_sides(n, d)
    retrieval.cross_neighbours(src[:200], tgt[:200])  # the first call pays for threads

    def call() -> None:
        retrieval.cross_neighbours(src, tgt).mutual()

    return call


def both_sides(n: int, d: int) -> tuple[Floats, Floats]:
    """Two generated spaces (n, d)."""
    return clustered_space(n, d, seed=0), clustered_space(n, d, seed=1)


def neighbour_means(src: Floats, tgt: Floats) -> tuple[Array, Array]:
    """CSLS means of both sides by qwp. src: (n, d), tgt: (m, d). Returns (n,) and (m,)."""
    ours, theirs = (retrieval.neighbourhood_means(x, y, CSLS_K) for x, y in ((src, tgt), (tgt, src)))
    return arrays.to_numpy(ours), arrays.to_numpy(theirs)


def _peak(prepare: Preparation, n: int, d: int) -> int:
    return in_fresh_process(prepare, n=n, d=d).peak_bytes


# --------------------------------------------------------------------------- growth


def measure_growth(sizes: GrowthSizes, d: int, repeats: int) -> dict[str, Any]:
    """Seconds at each size, all sizes in turns, and the exponent of their growth."""
    rows = clustered_space(max(*sizes.keys, *sizes.points), d)
    queries = clustered_space(sizes.queries, d, seed=1)

    def means(n: int) -> Callable[[], Any]:
        return lambda: retrieval.neighbourhood_means(queries, rows[:n], CSLS_K)

    def bank(n: int) -> Callable[[], Any]:
        return lambda: kmeans_plusplus_bank(rows[:n], sizes.centres, sizes.bank_size, np.random.default_rng(0))

    means(sizes.keys[0])()  # the first call pays for threads
    return {
        "means": {
            "what": f"CSLS means of {sizes.queries:,} queries",
            "size": "keys",
            **_growth({n: means(n) for n in sizes.keys}, repeats),
        },
        "bank": {
            "what": f"bank of {sizes.bank_size} coresets, k = {sizes.centres}",
            "size": "words",
            **_growth({n: bank(n) for n in sizes.points}, repeats),
        },
    }


def _growth(tasks: dict[int, Callable[[], Any]], repeats: int) -> dict[str, Any]:
    middle = medians(in_turns({str(n): task for n, task in tasks.items()}, repeats))
    sizes, seconds = list(tasks), [middle[str(n)] for n in tasks]
    exponent, intercept = fit_power(sizes, seconds)
    return {"sizes": sizes, "seconds": seconds, "exponent": exponent, "intercept": intercept}


def fit_power(sizes: Sequence[float], seconds: Sequence[float]) -> tuple[float, float]:
    """Least-squares line through the logarithms: seconds = exp(intercept) * size ** exponent."""
    exponent, intercept = np.polyfit(np.log(sizes), np.log(seconds), 1)
    return float(exponent), float(intercept)


def main(arguments: list[str] | None = None) -> None:
    """Run from the command line and print a table or JSON."""
    parser = options_parser("benchmarks.csls", "CSLS: rate, alternatives and growth", n=20_000, d=300, repeats=3)
    options = parser.parse_args(arguments)
    result = run(options.n, options.d, options.repeats)
    if options.json:
        print(json.dumps(result, indent=2))
        return
    rate = result["rate"]
    print(f"{result['n']} x {result['n']} words, {result['d']} dimensions")
    print(f"plain product        {rate['gemm_flops_per_second'] / 1e9:8.1f} GFLOP/s")
    for name in ("cross_neighbours", "retriever"):
        reached = rate[name]
        print(
            f"{name:<20} {reached['flops_per_second'] / 1e9:8.1f} GFLOP/s, {100 * reached['share_of_gemm']:.0f} % "
            f"of the plain product, {reached['seconds']:.2f} s"
        )
    for case in result["cases"]:
        print(f"{case['what']}: {case['other']} takes {case['ratio']:.1f} x qwp's {case['qwp_seconds']:.2f} s")
    for curve in result["growth"].values():
        print(f"{curve['what']}: time grows with {curve['size']} to the power {curve['exponent']:.2f}")


if __name__ == "__main__":
    main()
