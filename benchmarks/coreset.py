"""Drawing k-means++ coresets: qwp's bank against scikit-learn, in time per coreset.

    python -m benchmarks.coreset [--n 20000] [--d 300] [--k 500] [--repeats 3] [--json]

scikit-learn draws one coreset of the words themselves, without local trials; qwp draws a bank of them in
lock-step and weights the words by m = k^2 log k i.i.d. draws, as the method asks. Both work in float32.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np

from benchmarks.common import clustered_space, in_turns, medians
from qwp.coreset import kmeans_plusplus_bank

BANK_SIZE = 32


def run(n: int = 20_000, d: int = 300, k: int = 500, repeats: int = 3) -> dict[str, Any]:
    """Time both on the same n generated unit vectors of dimension d.

    Returns:
        medians in seconds per coreset, all times (a whole bank, one scikit-learn call) and the ratio.
    """
    from sklearn.cluster import kmeans_plusplus

    x = clustered_space(n, d)
    tasks = {
        "qwp": lambda: kmeans_plusplus_bank(x, k, BANK_SIZE, np.random.default_rng(0)),
        "sklearn": lambda: kmeans_plusplus(x, k, random_state=0, n_local_trials=1),
    }
    kmeans_plusplus_bank(x[:500], 2, 2, np.random.default_rng(0))  # the first call pays for threads
    kmeans_plusplus(x[:500], 2, random_state=0, n_local_trials=1)
    times = in_turns(tasks, repeats)
    middle = medians(times)
    ours = middle["qwp"] / BANK_SIZE
    return {
        "n": n,
        "d": d,
        "k": k,
        "bank_size": BANK_SIZE,
        "qwp_seconds": ours,
        "sklearn_seconds": middle["sklearn"],
        "ratio": middle["sklearn"] / ours,
        "times": times,
    }


def main(arguments: list[str] | None = None) -> None:
    """Run from the command line and print a table or JSON."""
    parser = argparse.ArgumentParser(prog="benchmarks.coreset", description="k-means++ coresets: qwp and scikit-learn")
    parser.add_argument("--n", type=int, default=20_000, help="points")
    parser.add_argument("--d", type=int, default=300, help="dimensions")
    parser.add_argument("--k", type=int, default=500, help="centres")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each, in turns")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(arguments)
    result = run(options.n, options.d, options.k, options.repeats)
    if options.json:
        print(json.dumps(result, indent=2))
        return
    print(f"{result['n']} points x {result['d']} dimensions, {result['k']} centres")
    print(f"qwp      {result['qwp_seconds']:8.3f} s per coreset, {BANK_SIZE} at a time")
    print(f"sklearn  {result['sklearn_seconds']:8.3f} s per coreset   {result['ratio']:.1f} x qwp's time")


if __name__ == "__main__":
    main()
