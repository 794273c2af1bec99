"""Speed of CSLS over whole vocabularies: its share of the rate of a matrix product, and its growth with the words.

- Rate: FLOP of the matrix products that CSLS of n x n words needs, divided by its time, relative to a plain float32
  product timed in the same run. Top-k, penalties and maxima count as loss.
- Comparison: neighbourhood means against scikit-learn's `NearestNeighbors` (cosine, brute force), mutual pairs against
  NumPy in row blocks (`benchmarks.reference`).
- Growth: neighbourhood means of a fixed number of queries for more and more keys, and a bank of coresets of more and
  more words. The exponent of a fitted power law is 1 for linear growth. `growth_chart` draws it for the documents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.common import GEMM_SIZE, Floats, clustered_space, comparison, gemm_call, in_turns, medians
from benchmarks.data import Array
from benchmarks.memory import Preparation, in_fresh_process
from benchmarks.reference import mutual_pairs
from qwp import arrays
from qwp.ot.coresets import kmeans_plusplus_bank
from qwp.search import retrieval

CSLS_K = 10
PRODUCTS = {"cross_neighbours": 3, "retriever": 2}
"""Number of n x m x d products of each function."""


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
    """Measure rate, comparison and growth on generated unit vectors of dimension d, n on each side."""
    src, tgt = both_sides(n, d)
    tasks: dict[str, Callable[[], Any]] = {
        "gemm": gemm_call(gemm_size),
        "cross_neighbours": lambda: retrieval.cross_neighbours(src, tgt, csls_k=CSLS_K).mutual(),
        "retriever": lambda: retrieval.retriever(tgt, src, csls_k=CSLS_K).top_k(src, CSLS_K),
        "means": lambda: neighbour_means(src, tgt),
        "scikit-learn": lambda: (sklearn_means(src, tgt, CSLS_K), sklearn_means(tgt, src, CSLS_K)),
        "NumPy": lambda: mutual_pairs(src, tgt, CSLS_K),
    }
    tasks["gemm"]()  # the first calls start threads and import modules
    sklearn_means(src[:100], tgt[:100], CSLS_K)
    times = in_turns(tasks, repeats)
    middle = medians(times)
    plain = 2 * gemm_size**3 / middle["gemm"]
    rates = {name: products * 2 * n * n * d / middle[name] for name, products in PRODUCTS.items()}
    size = f"{n} x {n} x {d}"
    compared = (
        ("CSLS means, both ways", "means", "scikit-learn", prepare_means),
        ("CSLS mutual pairs", "cross_neighbours", "NumPy", prepare_pairs),
    )
    return {
        "n": n,
        "d": d,
        "gemm_flops_per_second": plain,
        "share_of_gemm": {name: rate / plain for name, rate in rates.items()},
        "cases": [
            comparison(f"{what}, {size}", {"qwp": times[ours], other: times[other]}, other, _peak(prepare, n, d))
            for what, ours, other, prepare in compared
        ],
        "growth": measure_growth(growth or GrowthSizes(), d, repeats),
    }


def sklearn_means(queries: Floats, keys: Floats, k: int) -> Floats:
    """Return the mean cosine (n,) of each query (n, d) to its k nearest keys (m, d), by scikit-learn."""
    from sklearn.neighbors import NearestNeighbors

    distances, _ = NearestNeighbors(n_neighbors=k, metric="cosine", algorithm="brute").fit(keys).kneighbors(queries)
    return np.asarray(1.0 - distances.mean(axis=1))


def prepare_means(n: int, d: int) -> Callable[[], None]:
    """Return the call whose memory is measured: neighbourhood means."""
    src, tgt = both_sides(n, d)
    neighbour_means(src[:200], tgt[:200])  # the first call starts the threads

    def call() -> None:
        neighbour_means(src, tgt)

    return call


def prepare_pairs(n: int, d: int) -> Callable[[], None]:
    """Return the call whose memory is measured: mutual pairs."""
    src, tgt = both_sides(n, d)
    retrieval.cross_neighbours(src[:200], tgt[:200])  # the first call starts the threads

    def call() -> None:
        retrieval.cross_neighbours(src, tgt).mutual()

    return call


def both_sides(n: int, d: int) -> tuple[Floats, Floats]:
    """Return two generated spaces (n, d)."""
    return clustered_space(n, d, seed=0), clustered_space(n, d, seed=1)


def neighbour_means(src: Floats, tgt: Floats) -> tuple[Array, Array]:
    """Return the CSLS means (n,) and (m,) of two sides (n, d) and (m, d)."""
    src_means, tgt_means = (retrieval.neighbourhood_means(x, y, CSLS_K) for x, y in ((src, tgt), (tgt, src)))
    return arrays.to_numpy(src_means), arrays.to_numpy(tgt_means)


def _peak(prepare: Preparation, n: int, d: int) -> int:
    return in_fresh_process(prepare, n=n, d=d).peak_bytes


# --------------------------------------------------------------------------- growth


def measure_growth(sizes: GrowthSizes, d: int, repeats: int) -> dict[str, Any]:
    """Time each size, all sizes in turns, and fit the exponent of the growth."""
    rows = clustered_space(max(*sizes.keys, *sizes.points), d)
    queries = clustered_space(sizes.queries, d, seed=1)

    def means(n: int) -> Callable[[], Any]:
        return lambda: retrieval.neighbourhood_means(queries, rows[:n], CSLS_K)

    def bank(n: int) -> Callable[[], Any]:
        return lambda: kmeans_plusplus_bank(rows[:n], sizes.centres, sizes.bank_size, np.random.default_rng(0))

    means(sizes.keys[0])()  # the first call starts the threads
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
    """Fit seconds = exp(intercept) * size ** exponent by least squares on the logarithms."""
    middle = medians(in_turns({str(n): task for n, task in tasks.items()}, repeats))
    sizes, seconds = list(tasks), [middle[str(n)] for n in tasks]
    exponent, intercept = (float(each) for each in np.polyfit(np.log(sizes), np.log(seconds), 1))
    return {"sizes": sizes, "seconds": seconds, "exponent": exponent, "intercept": intercept}
