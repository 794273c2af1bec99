"""Alignment of two encoders without pairs, by the number of texts and the share that both sides have in common.

    QWP_BENCH=FOLDER python -m benchmarks.unpaired [main | curve] --device cuda

The texts are those in `encoders/` of the benchmark data. The same 2,000 (of `tatoeba/`, 1,000) are held out in every
run; seeds draw from the others. The score is the share of held-out texts whose counterpart ranks first by the cosine,
in both directions. The settings of qwp were chosen on texts that are not held out here.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
import numpy.typing as npt

import qwp
from benchmarks import records
from benchmarks.data import bench_file
from benchmarks.records import Record, Run, markdown, select, values

Floats = npt.NDArray[np.float32]

RESULTS = records.FOLDER / "unpaired.jsonl"
SEEDS = 3
FOUND = 5.0
"""Percent of held-out texts below which an alignment has failed, whatever its verdict."""


@dataclass(frozen=True)
class Encoders:
    """Two files of vectors of the same texts, and the number of texts held out."""

    files: tuple[str, str]
    held_out: int


ENCODERS = {
    "MiniLM - WordLlama": Encoders(("minilm", "wordllama"), 2000),
    "WordLlama - MiniLM": Encoders(("wordllama", "minilm"), 2000),
    "e5-small - USE": Encoders(("tatoeba/e5small384_en", "tatoeba/use512_en"), 1000),
}
MAIN = (
    ("MiniLM - WordLlama", 7000, 0.0),
    ("WordLlama - MiniLM", 7000, 0.0),
    ("e5-small - USE", 2500, 0.0),
    ("MiniLM - WordLlama", 14_000, 1.0),
    ("e5-small - USE", 5000, 1.0),
)
TEXTS, OVERLAPS = (1000, 2000, 3500, 5000, 7000), (0.0, 0.25, 0.5, 0.75, 1.0)


def split(name: str, texts: int, overlap: float, seed: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the vectors of the texts of each side and of the held-out texts.

    texts: on each side. overlap: share of the texts of one side that the other side has as well, in another order.
    """
    encoders = ENCODERS[name]
    src, tgt = (np.load(bench_file(f"encoders/{file}.npy")).astype("f4") for file in encoders.files)
    rows = np.random.default_rng(0).permutation(len(src))
    held_out, rng = rows[: encoders.held_out], np.random.default_rng([1, seed])
    rest = rng.permutation(rows[encoders.held_out :])
    shared = round(overlap * texts)
    second = rng.permutation(rest[texts - shared : 2 * texts - shared])
    if len(second) < texts:
        raise ValueError(f"{texts} texts a side, {overlap:.0%} in common, need {2 * texts - shared} of {len(rest)}")
    return src[rest[:texts]], tgt[second], src[held_out], tgt[held_out]


def _run(name: str, texts: int, overlap: float, seed: int, device: str) -> Record:
    src, tgt, *held_out = split(name, texts, overlap, seed)
    begin = time.perf_counter()
    alignment = qwp.align(src, tgt, seed=seed, order="none", device=device)
    seconds = time.perf_counter() - begin
    there, back = (
        qwp.evaluate_counterparts(alignment, *held_out, bootstrap=0, reverse=reverse).found["nn"].recall[1].value
        for reverse in (False, True)
    )
    return {
        "there": 100 * there,
        "back": 100 * back,
        "verdict": alignment.quality.verdict,
        "ratio": alignment.quality.ratio,
        "start": alignment.provenance.initializer,
        "seconds": seconds,
        "stages": {stage: round(took, 2) for stage, took in alignment.provenance.seconds.items()},
        "device": alignment.provenance.backend,
    }


def _runs(suite: str, cases: Sequence[tuple[str, int, float]], seeds: int, device: str) -> Iterator[Run]:
    for seed, (name, texts, overlap) in product(range(seeds), cases):
        key = {"suite": suite, "encoders": name, "texts": texts, "overlap": overlap, "seed": seed}
        yield Run(key, partial(_run, name, texts, overlap, seed, device))


def main_suite(device: str) -> Iterator[Run]:
    """Align each pair of encoders: different texts on the two sides, and the same texts."""
    yield from _runs("main", MAIN, SEEDS, device)


def curve_suite(device: str) -> Iterator[Run]:
    """Align one pair of encoders with every number of texts and every overlap."""
    cases = [("MiniLM - WordLlama", texts, overlap) for texts, overlap in product(TEXTS, OVERLAPS)]
    yield from _runs("curve", cases, SEEDS, device)


def _scores(runs: Sequence[Record], direction: str) -> str:
    return " ".join(f"{run[direction]:.1f}" if run[direction] >= FOUND else "failed" for run in runs)


def tables(found: Sequence[Record]) -> str:
    """Return the scores of each pair of encoders, and the means by number of texts and overlap."""
    rows = []
    for name, texts, overlap in MAIN:
        if runs := select(found, suite="main", encoders=name, texts=texts, overlap=overlap):
            seconds = f"{statistics.median(run['seconds'] for run in runs):.1f} s"
            kind = "the same" if overlap else "different"
            verdicts = ", ".join(sorted(values(runs, "verdict")))
            rows.append([name, f"{texts:,}, {kind}", _scores(runs, "there"), _scores(runs, "back"), verdicts, seconds])
    head = ["encoders", "texts on each side", "top 1 of each seed", "reverse", "verdict", "median time"]
    curve = []
    for texts in TEXTS:
        cells = [select(found, suite="curve", texts=texts, overlap=overlap) for overlap in OVERLAPS]
        if any(cells):
            curve.append([f"{texts:,}", *(_scores(runs, "there") or "-" for runs in cells)])
    shares = ["texts on each side", *(f"{overlap:.0%} in common" for overlap in OVERLAPS)]
    return "\n\n".join([markdown(head, rows), *([markdown(shares, curve)] if curve else [])])


if __name__ == "__main__":
    records.main("benchmarks.unpaired", __doc__, {"main": main_suite, "curve": curve_suite}, RESULTS)
