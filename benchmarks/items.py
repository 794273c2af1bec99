"""Items without order: how few, how noisy, how few in common, and unrelated ones. `python -m benchmarks.items --help`.

`related`: the texts of `encoders/` in the benchmark data ($QWP_BENCH or ../shared/bench), without a pair. 2,000 are
held out, of the others some are given to each side; scored is which of the 2,000 held-out texts is the counterpart of
each, by CSLS. `unrelated`: clouds that have nothing in common, made here or with the columns of an encoder permuted;
whatever is not called failed there is wrong. Each record goes to the results file as soon as it is made. `--table` runs
nothing; it puts the tables of that file into docs/accuracy.md and prints them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

import qwp
from benchmarks.ablation import markdown
from benchmarks.common import Record, keep_record, read_records, show_tables, suite_options
from benchmarks.tasks import BENCH

Floats = npt.NDArray[np.float32]

RESULTS = Path(__file__).parent / "results" / "items.jsonl"
DOCUMENT = Path(__file__).parents[1] / "docs" / "accuracy.md"
BEGIN, END = "<!-- items -->", "<!-- /items -->"
HELD_OUT, MOST = 2000, 14_000
SEEDS = 3
SHOWN = ("what", "seed", "found", "verdict", "ratio", "estimate", "start", "seconds")


@dataclass(frozen=True)
class Related:
    """Texts of each side, the share of them in common, and the noise on one or both, in deviations of each column."""

    texts: int
    common: float = 1.0
    noise: float = 0.0
    noise_on_both: bool = False

    @property
    def what(self) -> str:
        """In words."""
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


def _encoders() -> tuple[Floats, Floats]:
    first, second = (np.load(BENCH / "encoders" / f"{name}.npy").astype("f4") for name in ("minilm", "wordllama"))
    return first, second


def _noisy(space: Floats, noise: float, rng: np.random.Generator) -> Floats:
    noisy: Floats = (space + noise * space.std(axis=0) * rng.standard_normal(space.shape)).astype("f4")
    return noisy


def _run_related(case: Related, seed: int, device: str) -> Record:
    src, tgt = _encoders()
    rng = np.random.default_rng(seed)
    if case.noise:
        tgt = _noisy(tgt, case.noise, rng)
        src = _noisy(src, case.noise, rng) if case.noise_on_both else src
    order = rng.permutation(len(src))
    held_out, rest = order[:HELD_OUT], order[HELD_OUT:]
    shared = round(case.common * case.texts)
    first, second = rest[: case.texts], rng.permutation(rest[case.texts - shared : 2 * case.texts - shared])
    alignment, seconds = _aligned(src[first], tgt[second], seed, device)
    found = qwp.evaluate_counterparts(alignment, src[held_out], tgt[held_out], bootstrap=0)
    return _record(case.what, seed, alignment, seconds) | {
        "suite": "related",
        **asdict(case),
        "found": 100 * found.found["csls"].recall[1].value,
    }


def _gaussian(n: int, d: int, rng: np.random.Generator) -> Floats:
    return rng.standard_normal((n, d)).astype("f4")


def _falling(n: int, d: int, rng: np.random.Generator) -> Floats:
    return (rng.standard_normal((n, d)) / np.sqrt(np.arange(1, d + 1))).astype("f4")


def _heavy(n: int, d: int, rng: np.random.Generator) -> Floats:
    return rng.standard_t(2, (n, d)).astype("f4")


def _clustered(n: int, d: int, rng: np.random.Generator) -> Floats:
    centres = rng.standard_normal((int(rng.integers(5, 60)), d))
    return (centres[rng.integers(len(centres), size=n)] + 0.7 * rng.standard_normal((n, d))).astype("f4")


def _permuted(which: int) -> Callable[[int, int, np.random.Generator], Floats]:
    def make(n: int, d: int, rng: np.random.Generator) -> Floats:
        space = _encoders()[which]
        rows = space[rng.permutation(len(space))[:n]]
        return np.column_stack([rng.permutation(column) for column in rows.T[rng.permutation(rows.shape[1])[:d]]])

    return make


UNRELATED: dict[str, Callable[[int, int, np.random.Generator], Floats]] = {
    "gaussian": _gaussian,
    "falling spectrum": _falling,
    "heavy-tailed": _heavy,
    "clusters": _clustered,
    "first encoder, columns permuted": _permuted(0),
    "second encoder, columns permuted": _permuted(1),
}
_SIZES = (400, 900, 2000, 5000)


def _run_unrelated(kind: str, number: int, device: str) -> Record:
    """A cloud of this kind against another one of it, or against the texts by an encoder."""
    rng = np.random.default_rng([number, *kind.encode()])
    n, m = _SIZES[number % len(_SIZES)], _SIZES[number // 2 % len(_SIZES)]
    widths = rng.choice((32, 64, 128, 200, 256), size=2)
    first = UNRELATED[kind](n, int(widths[0]), rng)
    # With texts on the other side, the widths of both and the whole of a real structure.
    real = number % 3 == 0
    second = _encoders()[1][rng.permutation(16_000)[:m]] if real else UNRELATED[kind](m, int(widths[1]), rng)
    alignment, seconds = _aligned(first, second, number, device)
    what = f"{kind} {first.shape}, {'second encoder' if real else kind} {second.shape}"
    return _record(what, number, alignment, seconds) | {"suite": "unrelated", "kind": kind, "found": 0.0}


def _aligned(src: Floats, tgt: Floats, seed: int, device: str) -> tuple[qwp.Alignment, float]:
    begin = time.perf_counter()
    alignment = qwp.align(src, tgt, seed=seed, order="none", device=device)
    return alignment, time.perf_counter() - begin


def _record(what: str, seed: int, alignment: qwp.Alignment, seconds: float) -> Record:
    quality = alignment.quality
    return {
        "what": what,
        "seed": seed,
        "verdict": quality.verdict,
        "ratio": quality.ratio,
        "z": quality.z,
        "estimate": None if quality.estimate is None else 100 * quality.estimate.overall.p1,
        "start": alignment.provenance.initializer,
        "seconds": seconds,
        "device": alignment.provenance.backend,
    }


def _related(device: str, known: set[tuple[str, str, int]]) -> Iterator[Record]:
    for case in RELATED:
        for seed in range(SEEDS):
            if ("related", case.what, seed) not in known:
                yield _run_related(case, seed, device)


def _unrelated(device: str, known: set[tuple[str, str, int]]) -> Iterator[Record]:
    done = {(suite, seed, what.split(" (")[0]) for suite, what, seed in known}
    for number in range(8):
        for kind in UNRELATED:
            if ("unrelated", number, kind) not in done:
                yield _run_unrelated(kind, number, device)


SUITES = {"related": _related, "unrelated": _unrelated}


def table(records: list[Record]) -> str:
    """What was found of related items, and how near unrelated ones come to the limit."""
    rows = []
    for case in RELATED:
        of = [r for r in records if r["suite"] == "related" and r["what"] == case.what]
        if of:
            columns = (" ".join(f"{r[key]:.{digits}f}" for r in of) for key, digits in (("found", 1), ("ratio", 2)))
            rows.append([case.what, *columns, ", ".join(sorted({r["verdict"] for r in of}))])
    head = ["without a pair", "found, each seed", "ratio", "verdict"]
    unrelated = [r for r in records if r["suite"] == "unrelated"]
    others = []
    for kind in UNRELATED:
        of = [r for r in unrelated if r["kind"] == kind]
        if of:
            wrong = sum(r["verdict"] != "failed" for r in of)
            others.append([kind, str(len(of)), str(wrong), f"{max(r['ratio'] for r in of):.2f}"])
    return f"{markdown(head, rows)}\n\n" + markdown(
        ["unrelated items", "pairs", "not called failed", "highest ratio"], others
    )


def main(arguments: list[str] | None = None) -> None:
    """Run what is missing, keep every record, print the tables."""
    options = suite_options("benchmarks.items", __doc__, SUITES, RESULTS, BENCH, arguments)
    if not options.table:
        known = {(r["suite"], r["what"], r["seed"]) for r in read_records(options.output)}
        for suite in options.suites or [*SUITES]:
            for record in SUITES[suite](options.device, known):
                keep_record(record, options.output, SHOWN)
    show_tables(options, table, DOCUMENT, BEGIN, END)


if __name__ == "__main__":
    main()
