"""Alignment of unordered items from two encoders, without supervision, and of items with nothing in common.

    QWP_BENCH=FOLDER python -m benchmarks.items [related | unrelated] --device cuda

`related` aligns the texts in `encoders/` of the benchmark data. 2,000 texts are held out; some of the others go to each
side. The score is the share of held-out texts whose counterpart ranks first by CSLS. `unrelated` aligns noise, or the
permuted columns of an encoder; every verdict but `failed` is wrong.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

import qwp
from benchmarks import records
from benchmarks.data import bench_file
from benchmarks.records import Record, Run, markdown, select, values
from qwp.search.calibration import CALIBRATION

Floats = npt.NDArray[np.float32]
Cloud = Callable[[int, int, np.random.Generator], Floats]

RESULTS = records.FOLDER / "items.jsonl"
HELD_OUT, MOST = 2000, 14_000
SEEDS = 3
UNRELATED_PAIRS = 8


def encoders() -> tuple[Floats, Floats]:
    """Return the vectors of the same texts by two encoders."""
    first, second = (np.load(bench_file(f"encoders/{name}.npy")).astype("f4") for name in ("minilm", "wordllama"))
    return first, second


def align_items(src: Floats, tgt: Floats, seed: int, device: str) -> tuple[qwp.Alignment, Record]:
    """Align unordered items. Returns the alignment and the figures that do not need gold."""
    begin = time.perf_counter()
    alignment = qwp.align(src, tgt, seed=seed, order="none", device=device)
    seconds = time.perf_counter() - begin
    quality = alignment.quality
    return alignment, {
        "verdict": quality.verdict,
        "ratio": quality.ratio,
        "z": quality.z,
        "estimate": None if quality.estimate is None else 100 * quality.estimate.overall.p1,
        "shift": CALIBRATION.items.shift,
        "start": alignment.provenance.initializer,
        "seconds": seconds,
        "device": alignment.provenance.backend,
    }


# --------------------------------------------------------------------------- related items


@dataclass(frozen=True)
class Related:
    """Number of texts on each side, the share in common, and noise in standard deviations of each column."""

    texts: int
    common: float = 1.0
    noise: float = 0.0
    noise_on_both: bool = False

    @property
    def name(self) -> str:
        """The settings in words."""
        parts = [f"{self.texts:,} texts"]
        if self.common < 1:
            parts.append(f"{self.common:.0%} in common")
        if self.noise:
            parts.append(f"noise {self.noise:g} on {'both sides' if self.noise_on_both else 'one side'}")
        return ", ".join(parts)


RELATED = (
    *(Related(texts) for texts in (300, 500, 700, 1000, 2000, 5000)),
    Related(1000, common=0.7),
    Related(1000, common=0.5),
    Related(2000, common=0.5),
    *(Related(7000, common=common) for common in (0.7, 0.5, 0.3)),
    *(Related(MOST, noise=noise) for noise in (0.7, 1.0, 1.2)),
    *(Related(MOST, noise=noise, noise_on_both=True) for noise in (0.7, 0.85)),
)


def related_suite(device: str) -> Iterator[Run]:
    """Align the texts with every setting and seed."""
    for case in RELATED:
        for seed in range(SEEDS):
            yield Run({"suite": "related", "what": case.name, "seed": seed}, partial(_related, case, seed, device))


def _related(case: Related, seed: int, device: str) -> Record:
    src, tgt = encoders()
    rng = np.random.default_rng(seed)
    if case.noise:
        tgt = _noisy(tgt, case.noise, rng)
        src = _noisy(src, case.noise, rng) if case.noise_on_both else src
    order = rng.permutation(len(src))
    held_out, rest = order[:HELD_OUT], order[HELD_OUT:]
    shared = round(case.common * case.texts)
    first, second = rest[: case.texts], rng.permutation(rest[case.texts - shared : 2 * case.texts - shared])
    alignment, figures = align_items(src[first], tgt[second], seed, device)
    found = qwp.evaluate_counterparts(alignment, src[held_out], tgt[held_out], bootstrap=0)
    return {**figures, **asdict(case), "found": 100 * found.found["csls"].recall[1].value}


def _noisy(space: Floats, noise: float, rng: np.random.Generator) -> Floats:
    noisy: Floats = (space + noise * space.std(axis=0) * rng.standard_normal(space.shape)).astype("f4")
    return noisy


# --------------------------------------------------------------------------- unrelated items


def _gaussian(n: int, d: int, rng: np.random.Generator) -> Floats:
    return rng.standard_normal((n, d)).astype("f4")


def _falling(n: int, d: int, rng: np.random.Generator) -> Floats:
    return (rng.standard_normal((n, d)) / np.sqrt(np.arange(1, d + 1))).astype("f4")


def _heavy(n: int, d: int, rng: np.random.Generator) -> Floats:
    return rng.standard_t(2, (n, d)).astype("f4")


def _clustered(n: int, d: int, rng: np.random.Generator) -> Floats:
    centres = rng.standard_normal((int(rng.integers(5, 60)), d))
    return (centres[rng.integers(len(centres), size=n)] + 0.7 * rng.standard_normal((n, d))).astype("f4")


def _permuted(encoder: int, n: int, d: int, rng: np.random.Generator) -> Floats:
    space = encoders()[encoder]
    rows = space[rng.permutation(len(space))[:n]]
    return np.column_stack([rng.permutation(column) for column in rows.T[rng.permutation(rows.shape[1])[:d]]])


UNRELATED: dict[str, Cloud] = {
    "gaussian": _gaussian,
    "falling spectrum": _falling,
    "heavy-tailed": _heavy,
    "clusters": _clustered,
    "first encoder, columns permuted": partial(_permuted, 0),
    "second encoder, columns permuted": partial(_permuted, 1),
}
_SIZES = (400, 900, 2000, 5000)


def unrelated_suite(device: str) -> Iterator[Run]:
    """Align clouds of every kind."""
    for number in range(UNRELATED_PAIRS):
        for kind in UNRELATED:
            key = {"suite": "unrelated", "kind": kind, "seed": number}
            yield Run(key, partial(_unrelated, kind, number, device))


def _unrelated(kind: str, number: int, device: str) -> Record:
    """Align a cloud with another one of its kind, or every third time with the texts of an encoder."""
    rng = np.random.default_rng([number, *kind.encode()])
    n, m = _SIZES[number % len(_SIZES)], _SIZES[number // 2 % len(_SIZES)]
    widths = rng.choice((32, 64, 128, 200, 256), size=2)
    first = UNRELATED[kind](n, int(widths[0]), rng)
    with_texts = number % 3 == 0
    second = encoders()[1][rng.permutation(16_000)[:m]] if with_texts else UNRELATED[kind](m, int(widths[1]), rng)
    _, figures = align_items(first, second, number, device)
    what = f"{kind} {first.shape}, {'second encoder' if with_texts else kind} {second.shape}"
    return {"what": what, **figures, "found": 0.0}


SUITES: dict[str, Callable[[str], Iterator[Run]]] = {"related": related_suite, "unrelated": unrelated_suite}


# --------------------------------------------------------------------------- tables


def tables(found: Sequence[Record]) -> str:
    """Return the scores of related items, and the highest ratio of unrelated ones."""
    rows = []
    for case in RELATED:
        if runs := select(found, suite="related", what=case.name):
            scores, ratios = " ".join(f"{r['found']:.1f}" for r in runs), " ".join(f"{r['ratio']:.2f}" for r in runs)
            rows.append([case.name, scores, ratios, ", ".join(sorted(values(runs, "verdict")))])
    unrelated = []
    for kind in UNRELATED:
        if runs := select(found, suite="unrelated", kind=kind):
            wrong = sum(r["verdict"] != "failed" for r in runs)
            unrelated.append([kind, str(len(runs)), str(wrong), f"{max(r['ratio'] for r in runs):.2f}"])
    return "\n\n".join(
        [
            markdown(["unsupervised", "P@1 of each seed", "ratio", "verdict"], rows),
            markdown(["unrelated items", "pairs", "verdict not failed", "highest ratio"], unrelated),
        ]
    )


if __name__ == "__main__":
    records.main("benchmarks.items", __doc__, SUITES, RESULTS)
