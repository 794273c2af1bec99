"""Drawing k-means++ coresets: qwp's bank against scikit-learn, in time per coreset.

    python -m benchmarks.coreset [K ...] [--n 20000] [--d 300] [--repeats 3] [--json]

scikit-learn draws one coreset of the words themselves, without local trials; qwp draws a bank of them in
lock-step, as many as the loop asks for, and weights the words by m = k^2 log k i.i.d. draws, as the method asks.
Both work in float32.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.common import clustered_space, in_turns, medians, options_parser
from benchmarks.memory import in_fresh_process
from qwp.ot.coreset_source import Coresets
from qwp.ot.coresets import kmeans_plusplus_bank

DEFAULT_KS = (2000, 500)


def run(
    n: int = 20_000, d: int = 300, ks: Sequence[int] = DEFAULT_KS, repeats: int = 3, bank_size: int | None = None
) -> dict[str, Any]:
    """Time both on the same n generated unit vectors of dimension d, for each number of centres in `ks`.

    bank_size: coresets drawn at a time (None: as many as qwp draws for that k).

    Returns:
        for each k: medians in seconds per coreset, all times (a whole bank, one scikit-learn call), the ratio, and
        the peak memory of drawing the bank.
    """
    return {"n": n, "d": d, "cases": [_case(n, d, k, repeats, bank_size) for k in ks]}


def _case(n: int, d: int, k: int, repeats: int, bank_size: int | None) -> dict[str, Any]:
    from sklearn.cluster import kmeans_plusplus

    size = Coresets().coresets_in_bank(k) if bank_size is None else bank_size
    x = clustered_space(n, d)
    kmeans_plusplus_bank(x[:500], 2, 2, np.random.default_rng(0))  # the first call pays for threads
    kmeans_plusplus(x[:500], 2, random_state=0, n_local_trials=1)
    times = in_turns(
        {
            "qwp": lambda: kmeans_plusplus_bank(x, k, size, np.random.default_rng(0)),
            "sklearn": lambda: kmeans_plusplus(x, k, random_state=0, n_local_trials=1),
        },
        repeats,
    )
    middle = medians(times)
    ours = middle["qwp"] / size
    return {
        "k": k,
        "bank_size": size,
        "qwp_seconds": ours,
        "sklearn_seconds": middle["sklearn"],
        "ratio": middle["sklearn"] / ours,
        "times": times,
        "peak_bytes": in_fresh_process(prepare_bank, n=n, d=d, k=k, size=size).peak_bytes,
    }


def prepare_bank(n: int, d: int, k: int, size: int) -> Callable[[], None]:
    """The call whose memory is measured: drawing a whole bank."""
    x = clustered_space(n, d)
    kmeans_plusplus_bank(x[:500], 2, 2, np.random.default_rng(0))  # the first call pays for threads

    def call() -> None:
        kmeans_plusplus_bank(x, k, size, np.random.default_rng(0))

    return call


def main(arguments: list[str] | None = None) -> None:
    """Run from the command line and print a table or JSON."""
    description = "k-means++ coresets: qwp and scikit-learn"
    parser = options_parser("benchmarks.coreset", description, n=20_000, d=300, repeats=3)
    parser.add_argument("ks", type=int, nargs="*", default=list(DEFAULT_KS), metavar="K", help="centres")
    options = parser.parse_args(arguments)
    result = run(options.n, options.d, options.ks, options.repeats)
    if options.json:
        print(json.dumps(result, indent=2))
        return
    for case in result["cases"]:
        print(f"{result['n']} points x {result['d']} dimensions, {case['k']} centres")
        print(
            f"qwp      {case['qwp_seconds']:8.3f} s per coreset, {case['bank_size']} at a time, "
            f"peak {case['peak_bytes'] / 2**20:.0f} MiB"
        )
        print(f"sklearn  {case['sklearn_seconds']:8.3f} s per coreset   {case['ratio']:.1f} x qwp's time")


if __name__ == "__main__":
    main()
