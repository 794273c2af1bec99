"""Planted problems between spaces of different width.

    python -m benchmarks.planted --device cuda

One side has 5,000 items in 300 dimensions, the other 5,000 in 768, both unordered. 3,500 items are common: one side is
the other under a random semi-orthogonal map with noise of a tenth of its length. Both directions are aligned, without
pairs and with 1,000 known pairs. The score is the share of the other common items whose counterpart ranks first among
all 5,000 by CSLS.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product

import numpy as np
import numpy.typing as npt

import qwp
from benchmarks import records
from benchmarks.records import Record, Run, markdown, select, values
from qwp import arrays
from qwp.arrays import Floats
from qwp.search import retrieval

RESULTS = records.FOLDER / "planted.jsonl"
ITEMS, COMMON, NARROW, WIDE, NOISE = 5000, 0.7, 300, 768, 0.1
WAYS = ("300 to 768", "768 to 300")
PAIRS = {1000: "1,000 pairs", 0: "no pairs"}
SEEDS = 3
_CLUSTERS = 50


def _falling(n: int, d: int, rng: np.random.Generator) -> Floats:
    return rng.standard_normal((n, d)) / np.sqrt(np.arange(1, d + 1))


def _isotropic(n: int, d: int, rng: np.random.Generator) -> Floats:
    return rng.standard_normal((n, d))


def _clustered(sizes: Floats, n: int, d: int, rng: np.random.Generator) -> Floats:
    """Draw items (n, d) around centres as far apart as a cluster is wide. sizes: (c,) relative sizes."""
    centres = rng.standard_normal((len(sizes), d))
    return centres[rng.choice(len(sizes), size=n, p=sizes / sizes.sum())] + rng.standard_normal((n, d))


_even, _uneven = (partial(_clustered, sizes) for sizes in (np.ones(_CLUSTERS), 1 / np.arange(1, _CLUSTERS + 1)))

# The distribution of the items and their dimension: 300 dimensions are embedded in 768, or 768 projected to 300.
KINDS: dict[str, tuple[Callable[[int, int, np.random.Generator], Floats], int]] = {
    "falling spectrum, 768 seen in 300": (_falling, WIDE),
    "clusters of uneven size, 768 seen in 300": (_uneven, WIDE),
    "clusters of even size, 768 seen in 300": (_even, WIDE),
    "falling spectrum, 300 laid into 768": (_falling, NARROW),
    "isotropic, 300 laid into 768": (_isotropic, NARROW),
    "isotropic, 768 seen in 300": (_isotropic, WIDE),
}


def planted(kind: str, seed: int) -> tuple[Floats, Floats, npt.NDArray[np.int64]]:
    """Return a space (5000, 300), one of (5000, 768), and the rows of the common items (3500, 2)."""
    rng = np.random.default_rng([seed, *kind.encode()])
    make, width = KINDS[kind]
    shared = round(COMMON * ITEMS)
    whole = make(2 * ITEMS - shared, width, rng)
    first, second = whole[:ITEMS], whole[ITEMS - shared :]
    basis = np.linalg.qr(rng.standard_normal((WIDE, NARROW)))[0]
    narrow, wide = (first, second @ basis.T) if width == NARROW else (first @ basis, second)
    sides = []
    for side in (narrow, wide):
        lengths = np.linalg.norm(side, axis=1, keepdims=True)
        sides.append(side + NOISE * lengths / np.sqrt(side.shape[1]) * rng.standard_normal(side.shape))
    orders = [rng.permutation(ITEMS) for _ in sides]
    positions = [np.argsort(order) for order in orders]
    items = rng.permutation(np.arange(ITEMS - shared, ITEMS))
    pairs = np.column_stack([positions[0][items], positions[1][items - (ITEMS - shared)]])
    return sides[0][orders[0]], sides[1][orders[1]], pairs


def recall(alignment: qwp.Alignment, pairs: npt.NDArray[np.int64]) -> float:
    """Return the share of row pairs (p, 2) found among all target items, in percent."""
    src, tgt = (arrays.to_numpy(alignment.mapped(side)) for side in ("src", "tgt"))
    found, _ = retrieval.retriever(tgt, src).top_k(src[pairs[:, 0]], 1)
    return 100 * float(np.mean(arrays.to_numpy(found)[:, 0] == pairs[:, 1]))


def suite(device: str) -> Iterator[Run]:
    """Align every kind in both directions, with and without pairs."""
    for seed, kind, way, pairs in product(range(SEEDS), KINDS, WAYS, PAIRS):
        yield Run(
            {"kind": kind, "way": way, "pairs": pairs, "seed": seed}, partial(_run, kind, way, pairs, seed, device)
        )


def _run(kind: str, way: str, pairs: int, seed: int, device: str) -> Record:
    narrow, wide, common = planted(kind, seed)
    src, tgt = (narrow, wide) if way == WAYS[0] else (wide, narrow)
    same = common if way == WAYS[0] else common[:, ::-1]
    known = None if pairs == 0 else same[:pairs]
    begin = time.perf_counter()
    alignment = qwp.align(src, tgt, seed=seed, lexicon=known, order="none", device=device)
    seconds = time.perf_counter() - begin
    return {
        "recall": recall(alignment, same[pairs:]),
        "verdict": alignment.quality.verdict,
        "ratio": alignment.quality.ratio,
        "seconds": seconds,
        "device": alignment.provenance.backend,
        "start": alignment.provenance.initializer,
    }


def tables(found: Sequence[Record]) -> str:
    """Return the recall by kind, direction and number of known pairs."""
    columns = list(product(PAIRS, WAYS))
    rows = [
        [kind, *(_cell(select(found, kind=kind, way=way, pairs=pairs)) for pairs, way in columns)] for kind in KINDS
    ]
    return markdown(["", *(f"{PAIRS[pairs]}, {way}" for pairs, way in columns)], rows)


def _cell(runs: Sequence[Record]) -> str:
    """Format the lowest and highest recall of some runs, and their verdicts."""
    if not runs:
        return "-"
    found = [f"{extreme(r['recall'] for r in runs):.1f}" for extreme in (min, max)]
    return f"{' to '.join(dict.fromkeys(found))} ({', '.join(sorted(values(runs, 'verdict')))})"


if __name__ == "__main__":
    records.main("benchmarks.planted", __doc__, {"planted": suite}, RESULTS)
