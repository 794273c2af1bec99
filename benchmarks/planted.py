"""Planted problems between spaces of different width: is what was hidden found? `python -m benchmarks.planted --help`.

5,000 items in 300 dimensions and 5,000 in 768, in random order, of which 3,500 are the same: one side is the other
under a random semi-orthogonal map, plus noise of a tenth of its length. Both directions, without pairs and with 1,000
known ones; scored is how many of the common items that were not given find their counterpart among all 5,000, by
CSLS. Each record goes to the results file as soon as it is made. `--table` runs nothing; it puts the table of that file
into docs/accuracy.md and prints it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

import qwp
from benchmarks.ablation import markdown
from benchmarks.common import Record, keep_record, read_records, show_tables, suite_options
from qwp import arrays
from qwp.search import retrieval

Floats = npt.NDArray[np.float64]

RESULTS = Path(__file__).parent / "results" / "planted.jsonl"
DOCUMENT = Path(__file__).parents[1] / "docs" / "accuracy.md"
BEGIN, END = "<!-- planted -->", "<!-- /planted -->"
ITEMS, COMMON, NARROW, WIDE, NOISE, PAIRS = 5000, 0.7, 300, 768, 0.1, 1000
WAYS = ("300 to 768", "768 to 300")
SUITES = {f"seed{seed}": seed for seed in range(3)}
_CLUSTERS = 50
SHOWN = ("kind", "way", "pairs", "seed", "recall", "verdict", "ratio", "seconds")


def _falling(n: int, d: int, rng: np.random.Generator) -> Floats:
    return rng.standard_normal((n, d)) / np.sqrt(np.arange(1, d + 1))


def _clustered(n: int, d: int, rng: np.random.Generator) -> Floats:
    return _around_centres(n, d, rng, np.ones(_CLUSTERS))


def _unevenly_clustered(n: int, d: int, rng: np.random.Generator) -> Floats:
    return _around_centres(n, d, rng, 1 / np.arange(1, _CLUSTERS + 1))


def _around_centres(n: int, d: int, rng: np.random.Generator, sizes: Floats) -> Floats:
    """Items (n, d) around random centres that lie as far apart as a cluster is wide; sizes: (c,), relative ones."""
    centres = rng.standard_normal((len(sizes), d))
    return centres[rng.choice(len(sizes), size=n, p=sizes / sizes.sum())] + rng.standard_normal((n, d))


def _isotropic(n: int, d: int, rng: np.random.Generator) -> Floats:
    return rng.standard_normal((n, d))


# What the items are like, and in how many dimensions: in 300 they are laid into 768, in 768 they are seen in 300.
KINDS: dict[str, tuple[Callable[[int, int, np.random.Generator], Floats], int]] = {
    "falling spectrum, 768 seen in 300": (_falling, WIDE),
    "clusters of uneven size, 768 seen in 300": (_unevenly_clustered, WIDE),
    "clusters of even size, 768 seen in 300": (_clustered, WIDE),
    "falling spectrum, 300 laid into 768": (_falling, NARROW),
    "isotropic, 300 laid into 768": (_isotropic, NARROW),
    "isotropic, 768 seen in 300": (_isotropic, WIDE),
}


def planted(kind: str, seed: int) -> tuple[Floats, Floats, npt.NDArray[np.int64]]:
    """A space (5000, 300), one of (5000, 768), and which rows of them are the same item, (3500, 2)."""
    rng = np.random.default_rng([seed, *kind.encode()])
    make, width = KINDS[kind]
    shared = round(COMMON * ITEMS)
    whole = make(2 * ITEMS - shared, width, rng)
    first, second = whole[:ITEMS], whole[ITEMS - shared :]
    turn = np.linalg.qr(rng.standard_normal((WIDE, NARROW)))[0]
    narrow, wide = (first, second @ turn.T) if width == NARROW else (first @ turn, second)
    sides = []
    for side in (narrow, wide):
        lengths = np.linalg.norm(side, axis=1, keepdims=True)
        sides.append(side + NOISE * lengths / np.sqrt(side.shape[1]) * rng.standard_normal(side.shape))
    orders = [rng.permutation(ITEMS) for _ in sides]
    places = [np.argsort(order) for order in orders]
    items = rng.permutation(np.arange(ITEMS - shared, ITEMS))
    pairs = np.column_stack([places[0][items], places[1][items - (ITEMS - shared)]])
    return sides[0][orders[0]], sides[1][orders[1]], pairs


def recall(alignment: qwp.Alignment, pairs: npt.NDArray[np.int64]) -> float:
    """The share of pairs of rows (p, 2) that are found, in per cent, among all items of the target."""
    src, tgt = (arrays.to_numpy(alignment.mapped(side)) for side in ("src", "tgt"))
    found, _ = retrieval.retriever(tgt, src).top_k(src[pairs[:, 0]], 1)
    return 100 * float(np.mean(arrays.to_numpy(found)[:, 0] == pairs[:, 1]))


def _run(kind: str, way: str, pairs: int, seed: int, device: str) -> Record:
    narrow, wide, common = planted(kind, seed)
    src, tgt = (narrow, wide) if way == WAYS[0] else (wide, narrow)
    same = common if way == WAYS[0] else common[:, ::-1]
    given = None if pairs == 0 else same[:pairs]
    begin = time.perf_counter()
    alignment = qwp.align(src, tgt, seed=seed, lexicon=given, order="none", device=device)
    seconds = time.perf_counter() - begin
    return {
        "kind": kind,
        "way": way,
        "pairs": pairs,
        "seed": seed,
        "recall": recall(alignment, same[pairs:]),
        "verdict": alignment.quality.verdict,
        "ratio": alignment.quality.ratio,
        "seconds": seconds,
        "device": alignment.provenance.backend,
        "start": alignment.provenance.initializer,
    }


def _wanted() -> Iterator[tuple[str, str, int]]:
    for kind in KINDS:
        for way in WAYS:
            for pairs in (PAIRS, 0):
                yield kind, way, pairs


def table(records: list[Record]) -> str:
    """What is found, by kind and by what was given."""
    rows = []
    for kind in KINDS:
        cells = []
        for pairs in (PAIRS, 0):
            for way in WAYS:
                of = [r for r in records if (r["kind"], r["way"], r["pairs"]) == (kind, way, pairs)]
                cells.append(_cell(of))
        rows.append([kind, *cells])
    head = ["", *(f"{what}, {way}" for what in ("1,000 pairs", "no pairs") for way in WAYS)]
    return markdown(head, rows) + "\n"


def _cell(records: list[Record]) -> str:
    """What was found in some runs, from the worst to the best of them, and what their verdicts said."""
    if not records:
        return "-"
    found = sorted({f"{r['recall']:.1f}" for r in records}, key=float)
    verdicts = sorted({r["verdict"] for r in records})
    return f"{' to '.join(dict.fromkeys([found[0], found[-1]]))} ({', '.join(verdicts)})"


def main(arguments: list[str] | None = None) -> None:
    """Run what is missing, keep every record, print the table."""
    options = suite_options("benchmarks.planted", __doc__, SUITES, RESULTS, Path(__file__).parent, arguments)
    if not options.table:
        known = {(r["kind"], r["way"], r["pairs"], r["seed"]) for r in read_records(options.output)}
        for suite in options.suites or [*SUITES]:
            for kind, way, pairs in _wanted():
                if (kind, way, pairs, SUITES[suite]) not in known:
                    keep_record(_run(kind, way, pairs, SUITES[suite], options.device), options.output, SHOWN)
    show_tables(options, table, DOCUMENT, BEGIN, END)


if __name__ == "__main__":
    main()
