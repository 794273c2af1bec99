"""Can the verdict be trusted? `python -m benchmarks.judgement --help`.

    python -m benchmarks.judgement --device cuda --workers 8

Pairs of spaces that have nothing in common should fail, whatever the method; related ones, good, cut, damaged and weak,
should not. What a run says of itself, without a dictionary, is kept beside what the gold says. The data is not part of
the package: it is read from $QWP_BENCH or ../shared/bench; what is not there is left out. Nothing here chooses
anything: weights are fitted by `benchmarks.confidence`. Each record goes to the results file as soon as it is there,
and a run that was stopped goes on where it was. `--table` runs nothing; it puts the tables of that file into
docs/judgement.md and prints them.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import qwp
from benchmarks.ablation import judged_pairs, like, with_noise, with_spectrum
from benchmarks.common import Record, keep_record, put_tables, read_records
from benchmarks.tasks import BENCH, Task, novels, pair_of, zhang
from qwp import Embeddings, Lexicon
from qwp.judging.estimate import Estimate, sample
from qwp.judging.verdict import DEVIATIONS_NEEDED, RATIO_NEEDED

Floats = npt.NDArray[np.float64]

RESULTS = Path(__file__).parent / "results" / "judgement.jsonl"
CONFIDENCE = RESULTS.with_name("confidence.json")
DOCUMENT = Path(__file__).parents[1] / "docs" / "judgement.md"
# Of the gold, for an alignment to be in the table; and the bounds of P@1 in its rows.
FEWEST_COVERED = 50
P1_EDGES = (0, 2, 5, 20, 101)
SHOWN = ("group", "task", "label", "method", "seed", "verdict", "ratio", "p1", "estimate", "seconds", "error")


KEY = ("group", "task", "label", "method", "seed")


@dataclass(frozen=True)
class Case:
    """One run. group: unrelated or related; task: the family or the pair of spaces; label: what was done to it."""

    group: str
    task: str
    label: str
    method: str
    seed: int
    config: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        """By which a case is known to have been run: the fields of `KEY`."""
        return self.group, self.task, self.label, self.method, self.seed


# --------------------------------------------------------------------------- unrelated spaces

WORDS, DIMENSIONS = (500, 1000, 2000, 3000, 5000), (25, 50, 100, 200, 300)
REAL = ("novels/en", "novels/es", "novels/hu", "novels/pl", "pretrained/en", "pretrained/ru", "pretrained/ja")


def _gaussian(n: int, d: int, rng: np.random.Generator) -> Floats:
    return rng.standard_normal((n, d))


def _heavy_tailed(n: int, d: int, rng: np.random.Generator) -> Floats:
    return rng.standard_t(2, (n, d))


def _clustered(n: int, d: int, rng: np.random.Generator) -> Floats:
    centres = rng.standard_normal((int(rng.integers(5, 60)), d))
    return 1.7 * centres[rng.integers(len(centres), size=n)] + rng.standard_normal((n, d))


def _dirichlet(n: int, d: int, rng: np.random.Generator) -> Floats:
    return rng.dirichlet(np.full(d, 0.1), n)


NOISE: dict[str, Callable[[int, int, np.random.Generator], Floats]] = {
    "gaussian": _gaussian,
    "heavy-tailed": _heavy_tailed,
    "clusters": _clustered,
    "dirichlet": _dirichlet,
}


def _real(name: str, n: int, d: int) -> Floats:
    """Frequent words of a real space on its first principal axes, (n, d)."""
    vectors = np.asarray(_space(name).vectors[:n], dtype=np.float64)
    vectors -= vectors.mean(axis=0)
    axes = np.linalg.eigh(vectors.T @ vectors)[1][:, ::-1][:, :d]
    return np.asarray(vectors @ axes)


def _spectrum_noise(real: Floats, n: int, rng: np.random.Generator) -> Floats:
    """Noise with the covariance of real vectors."""
    root = np.linalg.cholesky(np.cov(real.T) + 1e-9 * np.trace(real.T @ real) * np.eye(real.shape[1]))
    return np.asarray(rng.standard_normal((n, real.shape[1])) @ root.T)


def _turned(rows: Floats, rng: np.random.Generator) -> Floats:
    q, _ = np.linalg.qr(rng.standard_normal((rows.shape[1], rows.shape[1])))
    return np.asarray(rows @ q)


def _equal_covariance(name: str, n: int, d: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    real = _real(name, n, d)
    return _spectrum_noise(real, n, rng), _spectrum_noise(real, n, rng)


def _permuted(name: str, n: int, d: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    real = _real(name, n, d)
    return real, rng.permuted(real, axis=0)


def _own_spectrum(name: str, n: int, d: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    real = _real(name, n, d)
    return real, _spectrum_noise(real, n, rng)


def _half_turned(name: str, n: int, d: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Words of one language; those of the other side have half of their dimensions from another word, and turned."""
    real = _real(name, 2 * n, d)
    order = rng.permutation(len(real))
    here, there = real[order[: len(real) // 2]], real[order[len(real) // 2 :]]
    # Halves that know nothing of each other: axes in turns, so that both have long and short ones.
    there = np.hstack([_turned(rng.permutation(there[:, 0::2]), rng), there[:, 1::2]])
    return np.hstack([here[:, 0::2], here[:, 1::2]]), there


FROM_REAL: dict[str, Callable[[str, int, int, np.random.Generator], tuple[Floats, Floats]]] = {
    "equal covariance": _equal_covariance,
    "permuted": _permuted,
    "own spectrum": _own_spectrum,
    "half turned": _half_turned,
}
FAMILIES = (*NOISE, *FROM_REAL)


def unrelated_spaces(case: Case) -> tuple[Floats, Floats]:
    """Two spaces of a family, as large as the label says."""
    words, dimensions, *source = case.label.split(" x ")
    n, d = int(words), int(dimensions)
    rng = np.random.default_rng([case.seed, zlib.crc32(repr(case.key[:3]).encode())])
    if case.task in NOISE:
        return NOISE[case.task](n, d, rng), NOISE[case.task](n, d, rng)
    x, y = FROM_REAL[case.task](source[0], n, d, rng)
    return x, _turned(y, rng)


METHODS = {"qwp": 0.12, "wp": 0.06, "self-learning": 0.67, "gromov": 0.15}


def unrelated_cases(count: int) -> Iterator[Case]:
    """So many pairs, the same for every call: sizes, sources and methods drawn at random, families in turns."""
    rng = np.random.default_rng(13)
    real = [name for name in REAL if (BENCH / f"{name}.npz").exists()]
    for number in range(count):
        family = FAMILIES[number % len(FAMILIES)]
        n, d = (int(rng.choice(sizes)) for sizes in (WORDS, DIMENSIONS))
        method = str(rng.choice(list(METHODS), p=list(METHODS.values())))
        source = str(rng.choice(REAL))
        if method == "gromov":
            n = min(n, 2000)
        if family in FROM_REAL and source not in real:
            continue
        label = f"{n} x {d}" + (f" x {source}" if family in FROM_REAL else "")
        yield Case("unrelated", family, label, method, number)


# --------------------------------------------------------------------------- related spaces

PAIRS: dict[str, Task] = {
    **{
        f"novels {a}-{b}": novels(f"{a}-{b}") for x in ("es", "fr", "de", "hu", "pl") for a, b in (("en", x), (x, "en"))
    },
    **{f"zhang {pair}": zhang(pair) for pair in ("es-en", "it-en")},
    **{
        f"{a} to {b}": pair_of(a, b)
        for x, y in (
            ("novels/en", "mixed/es_sgns"),
            ("pretrained/en", "pretrained/ru"),
            ("pretrained/en", "pretrained/ja"),
        )
        for a, b in ((x, y), (y, x))
    },
    "mixed/fr_fasttext to novels/en": pair_of("mixed/fr_fasttext", "novels/en"),
}
CUTS = (10_000, 5_000, 2_500, 1_000)
SEED_PAIRS = (100, 200, 400, 1000)


def related_cases(seeds: int) -> Iterator[Case]:
    """Good, cut, damaged, weak and lexicon-started alignments of all pairs that are there."""
    for name, task in PAIRS.items():
        if not all((BENCH / file).exists() for file in (task.src, task.tgt, task.lexicon)):
            continue
        make = partial(Case, "related", name)
        for seed in range(seeds):
            yield make("as it is", "qwp", seed, {"start": "unsupervised"})
        yield make("orthogonal", "qwp", 0, {"start": "unsupervised", "map": "orthogonal"})
        yield make("as it is", "self-learning", 0)
        for words in CUTS:
            yield make(f"first {words}", "qwp", 0, {"start": "unsupervised"})
        yield make("50 dimensions", "qwp", 0, {"start": "unsupervised"})
        yield make("100 dimensions", "qwp", 0, {"start": "unsupervised"})
        yield make("10 % noise", "qwp", 0, {"start": "unsupervised"})
        yield make("30 % noise", "qwp", 0, {"start": "unsupervised"})
        if (BENCH / training_file(task)).exists():
            for pairs in SEED_PAIRS:
                yield make(f"{pairs} pairs", "procrustes", 0, {"refine": 0})
            yield make("5000 pairs", "procrustes", 0, {"refine": 5})
            yield make("5000 pairs", "rcsls", 0)
            yield make("200 pairs", "qwp", 0, {"start": "lexicon"})


def training_file(task: Task) -> str:
    """The training split that goes with the test split of a task."""
    return task.lexicon.replace(".5000-6500.", ".0-5000.") if ".5000-6500." in task.lexicon else "no training split"


@cache
def _space(name: str) -> Embeddings:
    return qwp.load(BENCH / f"{name}.npz", max_vocab=20_000)


@cache
def _loaded(task: Task) -> tuple[Embeddings, Embeddings, Lexicon]:
    return task.load()


def changed(space: Embeddings, label: str, seed: int) -> Embeddings:
    """The space with what the label says done to it."""
    numbers = [int(word) for word in label.split() if word.isdigit()]
    if label.startswith("first"):
        return like(space, space.vectors[: numbers[0]])
    if label.endswith("dimensions"):
        return with_spectrum(space, dim=numbers[0])
    if label.endswith("noise"):
        return with_noise(space, numbers[0] / 100, seed)
    return space


def related_spaces(case: Case) -> tuple[Embeddings, Embeddings, Lexicon, Lexicon | None]:
    """Both spaces, the gold of the test split, and the lexicon that the method is given, if any."""
    task = PAIRS[case.task]
    src, tgt, gold = _loaded(task)
    src, tgt = changed(src, case.label, 1), changed(tgt, case.label, 2)
    if not case.label.endswith("pairs"):
        return src, tgt, gold, None
    return (
        src,
        tgt,
        gold,
        some_pairs(qwp.Lexicon.load(BENCH / training_file(task)), src, tgt, int(case.label.split()[0])),
    )


def some_pairs(lexicon: Lexicon, src: Embeddings, tgt: Embeddings, count: int) -> Lexicon:
    """So many pairs of a lexicon that both spaces hold."""
    held = [(a, b) for a, b in lexicon.pairs if a in src and b in tgt]
    picked = np.sort(np.random.default_rng(count).permutation(len(held))[:count])
    return Lexicon(tuple(held[i] for i in picked))


# --------------------------------------------------------------------------- runs


Signals = dict[str, npt.NDArray[np.float32]]
"""By split of the gold: what the confidence of its words is computed from, their ranks, and whether each is right.

SAMPLE has the words that an estimate looks at; nobody knows whether those are right.
"""
SAMPLE = "sample"


def run_case(case: Case, device: str, threads: int | None = None) -> tuple[Record, Signals]:
    """The record of a case, and for related spaces what confidences are fitted to; an error is a record, too."""
    begin = time.perf_counter()
    signals: Signals = {}
    try:
        found, signals = _figures(case, device, threads)
    except Exception as error:  # one that fails must not stop the others; it is counted
        found = {"error": f"{type(error).__name__}: {error}"}
    seconds = round(time.perf_counter() - begin, 2)
    return {**asdict(case), **found, "seconds": seconds, "version": qwp.__version__}, signals


def _figures(case: Case, device: str, threads: int | None) -> tuple[Record, Signals]:
    options = {"method": case.method, "seed": case.seed, "device": device, "threads": threads, **case.config}
    if case.group == "unrelated":
        x, y = unrelated_spaces(case)
        return verdict_figures(qwp.align(x, y, **options)), {}
    src, tgt, gold, lexicon = related_spaces(case)
    alignment = qwp.align(src, tgt, lexicon=lexicon, **options).on(device)
    splits = {"test": gold}
    if (BENCH / training_file(PAIRS[case.task])).exists():
        splits["train"] = qwp.Lexicon.load(BENCH / training_file(PAIRS[case.task]))
    features = alignment.pair_features()
    signals = {}
    for split, lexicon_of in splits.items():
        rows, _, right = judged_pairs(alignment, lexicon_of)
        signals[split] = np.column_stack([features[rows], rows, right]).astype(np.float32)
    rows_of_estimate = sample(len(features))
    unknown = np.zeros(len(rows_of_estimate))
    signals[SAMPLE] = np.column_stack([features[rows_of_estimate], rows_of_estimate, unknown]).astype(np.float32)
    hits = signals["test"][:, -1]
    return {
        "p1": 100 * float(hits.mean()) if len(hits) else None,
        "covered": len(hits),
        **verdict_figures(alignment),
    }, signals


def verdict_figures(alignment: qwp.Alignment) -> Record:
    """What an alignment says of itself."""
    quality = alignment.quality
    return {
        **{name: getattr(quality, name) for name in ("verdict", "ratio", "z", "thorough")},
        "runs": quality.null_runs,
        "found_again": quality.null_hits,
        "n_words": quality.n_words,
        **estimate_figures(quality.estimate),
        "verdict_seconds": alignment.provenance.seconds.get("verdict"),
        "place": alignment.provenance.backend,
    }


def estimate_figures(estimate: Estimate | None) -> Record:
    """The estimate in per cent."""
    if estimate is None:
        return {}
    overall = {name: 100 * value for name, value in asdict(estimate.overall).items()}
    return {
        "estimate": overall["p1"],
        "low": overall["low"],
        "high": overall["high"],
        "agreement": estimate.scale.agreement,
    }


def run_all(cases: Sequence[Case], device: str, workers: int, output: Path, limit: float) -> None:
    """Run the cases that are not in the output yet, several at a time; stop taking new ones after `limit` seconds."""
    known = {tuple(r[k] for k in KEY) for r in read_records(output)}
    wanted = [case for case in cases if case.key not in known]
    # In any order, so that a run that is stopped has some of everything.
    wanted = [wanted[i] for i in np.random.default_rng(0).permutation(len(wanted))]
    end = time.monotonic() + limit
    if workers == 1:
        for case in wanted:
            if time.monotonic() > end:
                return
            keep(*run_case(case, device), output)
        return
    with multiprocessing.get_context("spawn").Pool(workers, maxtasksperchild=None) as pool:
        # One thread each: many processes with many threads wait for each other.
        for record, signals in pool.imap_unordered(partial(run_case, device=device, threads=1), wanted):
            keep(record, signals, output)
            if time.monotonic() > end:
                pool.terminate()
                return


def keep(record: Record, signals: Signals, output: Path) -> None:
    """Add a record to the results, and what confidences are fitted to beside them."""
    if signals:
        name = zlib.crc32(repr([record[k] for k in KEY]).encode())
        record["signals"] = f"{name:08x}.npz"
        folder = output.with_suffix("")
        folder.mkdir(exist_ok=True)
        tables: dict[str, Any] = dict(signals)
        np.savez_compressed(folder / record["signals"], **tables)
    keep_record(record, output, SHOWN)


# --------------------------------------------------------------------------- tables


def is_called_failed(record: Record) -> bool:
    """By the limits of today: those of the verdict may have been others when the record was made."""
    return bool(record["ratio"] < RATIO_NEEDED or record["z"] < DEVIATIONS_NEEDED)


def tables(records: Sequence[Record], left_out: Record | None) -> str:
    """What the records say, in Markdown."""
    whole = [r for r in records if "error" not in r]
    unrelated = [r for r in whole if r["group"] == "unrelated"]
    related = [r for r in whole if r["group"] == "related" and (r["covered"] or 0) >= FEWEST_COVERED]
    lines = ["| unrelated pairs | " + " | ".join(METHODS) + " | not called failed | highest ratio |"]
    lines.append("|---|" + "---:|" * (len(METHODS) + 2))
    for family in (*FAMILIES, "all"):
        some = [r for r in unrelated if family in (r["task"], "all")]
        if some:
            counts = [str(sum(r["method"] == method for r in some)) for method in METHODS]
            wrong = sum(not is_called_failed(r) for r in some)
            lines.append(
                f"| {family} | {' | '.join(counts)} | {wrong} of {len(some)} | {max(r['ratio'] for r in some):.2f} |"
            )
    lines += ["", "| related alignments, P@1 | alignments | called failed | lowest ratio |", "|---|---:|---:|---:|"]
    for low, high in pairwise(P1_EDGES):
        some = [r for r in related if low <= r["p1"] < high]
        if some:
            failed = sum(is_called_failed(r) for r in some)
            name = f"{low} to {high}" if high <= 100 else f"{low} and more"
            lines.append(f"| {name} | {len(some)} | {failed} | {min(r['ratio'] for r in some):.2f} |")
    if left_out is not None:
        lines += ["", "| left out of the fit with its language | alignments | error of the estimate | at worst |"]
        lines[-1] += " in the interval | calibration error, test split | at worst | both splits | at worst |"
        lines.append("|---|" + "---:|" * 8)
        for name, title in (("usual", "default, spaces as they are"), ("all", "all, cut, damaged and weak ones, too")):
            f = left_out[name]
            printed, test, both = (f[key] for key in ("printed", "ece", "ece_all"))
            lines.append(
                f"| {title} | {f['alignments']} | {printed['error']:.1f} | {printed['worst_error']:.1f} | "
                f"{100 * printed['held_by_interval']:.0f} % | {test['mean']:.3f} | {test['worst']:.3f} "
                f"({test['worst_mean_of_seeds']:.3f}) | {both['mean']:.3f} | {both['worst']:.3f} "
                f"({both['worst_mean_of_seeds']:.3f}) |"
            )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run what is missing."""
    parser = argparse.ArgumentParser(prog="benchmarks.judgement", description=__doc__)
    parser.add_argument("groups", nargs="*", default=["unrelated", "related"], help="unrelated, related, or both")
    parser.add_argument("--unrelated", type=int, default=1200, help="how many unrelated pairs")
    parser.add_argument("--seeds", type=int, default=2, help="seeds of related pairs as they are")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    parser.add_argument("--workers", type=int, default=1, help="processes at a time")
    parser.add_argument("--limit", type=float, default=float("inf"), help="begin nothing new after so many seconds")
    parser.add_argument("--output", type=Path, default=RESULTS, help="add records to this file")
    parser.add_argument("--table", action="store_true", help="run nothing; put the tables into docs/judgement.md")
    options = parser.parse_args()
    if options.table:
        left_out = json.loads(CONFIDENCE.read_text()) if CONFIDENCE.exists() else None
        found = tables(read_records(options.output), left_out)
        put_tables(found, DOCUMENT)
        print(found)
        return
    made: dict[str, Callable[[], Iterable[Case]]] = {
        "unrelated": lambda: unrelated_cases(options.unrelated),
        "related": lambda: related_cases(options.seeds),
    }
    cases = [case for group in options.groups for case in made[group]()]
    run_all(cases, options.device, options.workers, options.output, options.limit)


if __name__ == "__main__":
    main()
