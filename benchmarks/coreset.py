"""Time and memory of drawing k-means++ coresets: qwp and scikit-learn.

scikit-learn draws one coreset without local trials. qwp draws a bank at once, as large as the loop uses, from
m = k^2 log k i.i.d. draws of words. Both compute in float32. The time is that of one coreset.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.common import clustered_space, comparison, in_turns
from benchmarks.memory import in_fresh_process
from qwp.ot.coreset_source import Coresets
from qwp.ot.coresets import kmeans_plusplus_bank


def run(
    n: int = 20_000, d: int = 300, ks: Sequence[int] = (2000, 500), repeats: int = 3, bank_size: int | None = None
) -> dict[str, Any]:
    """Draw coresets of each size in `ks` from n generated unit vectors of dimension d.

    bank_size: coresets in a bank (None: as many as qwp draws for this size).
    """
    return {"n": n, "d": d, "cases": [_case(n, d, k, repeats, bank_size) for k in ks]}


def _case(n: int, d: int, k: int, repeats: int, bank_size: int | None) -> dict[str, Any]:
    from sklearn.cluster import kmeans_plusplus

    size = Coresets().coresets_in_bank(k) if bank_size is None else bank_size
    x = clustered_space(n, d)
    kmeans_plusplus_bank(x[:500], 2, 2, np.random.default_rng(0))  # the first call starts the threads
    kmeans_plusplus(x[:500], 2, random_state=0, n_local_trials=1)
    times = in_turns(
        {
            "qwp": lambda: kmeans_plusplus_bank(x, k, size, np.random.default_rng(0)),
            "scikit-learn": lambda: kmeans_plusplus(x, k, random_state=0, n_local_trials=1),
        },
        repeats,
    )
    times["qwp"] = [seconds / size for seconds in times["qwp"]]
    peak = in_fresh_process(prepare_bank, n=n, d=d, k=k, size=size).peak_bytes
    what = f"k-means++ coreset, k={k} of {n} x {d}"
    return {"k": k, "bank_size": size, **comparison(what, times, "scikit-learn", peak)}


def prepare_bank(n: int, d: int, k: int, size: int) -> Callable[[], None]:
    """Return the call whose memory is measured: it draws a bank."""
    x = clustered_space(n, d)
    kmeans_plusplus_bank(x[:500], 2, 2, np.random.default_rng(0))  # the first call starts the threads

    def call() -> None:
        kmeans_plusplus_bank(x, k, size, np.random.default_rng(0))

    return call
