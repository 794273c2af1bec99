"""Verdicts on unrelated and related pairs, and the data that the confidence is fitted to.

    QWP_BENCH=FOLDER python -m benchmarks.judgement --device cuda --workers 8

The groups of cases and what should hold for them:

- unrelated: spaces with nothing to find fail, by every method; the calibration of p-values has these pairs.
- validation: other pairs and other kinds of them, which chose nothing. items: likewise without an order of the rows.
- encoders: unordered texts by two encoders; records have the share of texts whose counterpart ranks first.
- related: alignments, whether good, cut, damaged or weak, do not fail.
- contradicted: a lexicon whose pairs are reversed, or shifted by one row after row 50, never ends as a success.
- apart: sides that share clusters or a language, but no word. The map may be right; an estimate above zero is wrong.
 Each record has the figures of the verdict and the estimate beside P@1 by the gold. Pairs without their files are
skipped. Nothing is chosen here; `benchmarks.confidence` fits the weights.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import qwp
from benchmarks import items, records
from benchmarks.ablation import judged_pairs
from benchmarks.data import BENCH, Task, bench_file, mixed, novels, zhang
from benchmarks.problems import dictionary, like, space, with_noise, with_spectrum
from benchmarks.records import Record, append_record, markdown, read_records, select
from qwp import Embeddings, Lexicon
from qwp.arrays import Floats, Ints
from qwp.judging.estimate import Estimate, sample
from qwp.judging.null import DEVIATIONS
from qwp.judging.verdict import CRITERIA
from qwp.search.calibration import CALIBRATION

RESULTS = records.FOLDER / "judgement.jsonl"
CONFIDENCE = records.FOLDER / "confidence.json"
FEWEST_COVERED = 50
"""The tables leave out related alignments with fewer covered gold words."""
P1_EDGES = (0, 2, 5, 20, 101)
UNORDERED = "unordered items"
"""The kind of the pairs of the group items in the calibration."""
GROUPS = ("unrelated", "validation", "related", "items", "encoders", "contradicted", "apart")


@dataclass(frozen=True)
class Case:
    """One alignment.

    group: one of GROUPS. task: the family of noise or the pair of spaces. label: the size or the change.
    """

    group: str
    task: str
    label: str
    method: str
    seed: int
    config: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> Record:
        """The fields that identify the record of a case."""
        return {name: value for name, value in asdict(self).items() if name != "config"}


# --------------------------------------------------------------------------- unrelated spaces

WORDS, DIMENSIONS = (500, 1000, 2000, 3000, 5000), (25, 50, 100, 200, 300)
SMALL_WORDS, SMALL_DIMENSIONS = (300, 500), (25, 50, 100, 200)
"""Sizes of the groups that have many pairs. Such fits are faster on a CPU."""
SMALL_GROUPS = ("validation", "items")
SMALL_SEARCHES = 0.15
"""Share of the validation by `qwp`, whose search takes most of the time; the rest is by `self-learning`."""
SOURCES = ("novels/en", "novels/es", "novels/hu", "novels/pl", "pretrained/en", "pretrained/ru", "pretrained/ja")


def _gaussian(n: int, d: int, rng: np.random.Generator) -> Floats:
    return rng.standard_normal((n, d))


def _heavy_tailed(n: int, d: int, rng: np.random.Generator) -> Floats:
    return rng.standard_t(2, (n, d))


def _clustered(n: int, d: int, rng: np.random.Generator) -> Floats:
    centres = rng.standard_normal((int(rng.integers(5, 60)), d))
    return 1.7 * centres[rng.integers(len(centres), size=n)] + rng.standard_normal((n, d))


def _dirichlet(n: int, d: int, rng: np.random.Generator) -> Floats:
    return rng.dirichlet(np.full(d, 0.1), n)


def _spectral(similarity: Floats, d: int) -> Floats:
    """Return the vectors (n, d) of the largest eigenvalues of a similarity (n, n), times their square roots."""
    values, vectors = np.linalg.eigh(similarity)
    return np.asarray(vectors[:, ::-1][:, :d] * np.sqrt(np.maximum(values[::-1][:d], 0.0)))


def _topics(n: int, d: int, rng: np.random.Generator) -> Floats:
    """Return the words of an invented language: Zipf frequencies, topics, and vectors of their PPMI."""
    topics = 2 * d
    affinity = rng.dirichlet(np.full(topics, 0.05), n) + 0.1 / topics
    expected = affinity @ affinity.T * topics
    frequency = 1.0 / (np.arange(n) + 2.7)
    counts = rng.poisson(np.triu(expected * np.outer(frequency, frequency) * 2e4)).astype(float)
    counts += np.triu(counts, 1).T
    marginal = counts.sum(axis=1) + 1.0
    ratio = (counts + 0.1) * marginal.sum() / np.outer(marginal, marginal)
    return _spectral(np.maximum(np.log(ratio), 0.0), d)


def _random_graph(n: int, d: int, rng: np.random.Generator) -> Floats:
    """Return the vectors of the nodes of a graph with power-law degrees: those of its normalised adjacency."""
    degree = (np.arange(n) + 5.0) ** -0.7
    edges = rng.random((n, n)) < np.minimum(20.0 * n * np.outer(degree, degree) / degree.sum() ** 2, 1.0)
    adjacency = np.triu(edges, 1).astype(float)
    adjacency += adjacency.T + np.eye(n)
    root = 1.0 / np.sqrt(adjacency.sum(axis=1))
    return _spectral(adjacency * np.outer(root, root), d)


NOISE: dict[str, Callable[[int, int, np.random.Generator], Floats]] = {
    "gaussian": _gaussian,
    "heavy-tailed": _heavy_tailed,
    "clusters": _clustered,
    "dirichlet": _dirichlet,
}
INVENTED = {"topics": _topics, "random graph": _random_graph}
_GENERATED = {**NOISE, **INVENTED}


def _principal(name: str, n: int, d: int) -> Floats:
    """Return the frequent words of a real space on its first principal axes (n, d)."""
    vectors = np.asarray(space(f"{name}.npz").vectors[:n], dtype=np.float64)
    vectors -= vectors.mean(axis=0)
    axes = np.linalg.eigh(vectors.T @ vectors)[1][:, ::-1][:, :d]
    return np.asarray(vectors @ axes)


def _noise_like(rows: Floats, n: int, rng: np.random.Generator) -> Floats:
    """Return noise (n, d) with the covariance of some rows (m, d)."""
    root = np.linalg.cholesky(np.cov(rows.T) + 1e-9 * np.trace(rows.T @ rows) * np.eye(rows.shape[1]))
    return np.asarray(rng.standard_normal((n, rows.shape[1])) @ root.T)


def _rotated(rows: Floats, rng: np.random.Generator) -> Floats:
    q, _ = np.linalg.qr(rng.standard_normal((rows.shape[1], rows.shape[1])))
    return np.asarray(rows @ q)


def _equal_covariance(name: str, n: int, d: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    rows = _principal(name, n, d)
    return _noise_like(rows, n, rng), _noise_like(rows, n, rng)


def _permuted(name: str, n: int, d: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    rows = _principal(name, n, d)
    return rows, rng.permuted(rows, axis=0)


def _own_spectrum(name: str, n: int, d: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    rows = _principal(name, n, d)
    return rows, _noise_like(rows, n, rng)


def _half_rotated(name: str, n: int, d: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return words of one language on both sides; target rows take half of their axes, rotated, from other words."""
    rows = _principal(name, 2 * n, d)
    order = rng.permutation(len(rows))
    src, tgt = rows[order[: len(rows) // 2]], rows[order[len(rows) // 2 :]]
    # Alternating axes, so that both independent halves have large and small variances.
    tgt = np.hstack([_rotated(rng.permutation(tgt[:, 0::2]), rng), tgt[:, 1::2]])
    return np.hstack([src[:, 0::2], src[:, 1::2]]), tgt


FROM_SOURCE: dict[str, Callable[[str, int, int, np.random.Generator], tuple[Floats, Floats]]] = {
    "equal covariance": _equal_covariance,
    "permuted": _permuted,
    "own spectrum": _own_spectrum,
    "half turned": _half_rotated,
}
FAMILIES = (*NOISE, *FROM_SOURCE)


def _shared_centres(name: str, n: int, d: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return two sides with the same clusters, of Zipf sizes around words of a real space, and no member in common."""
    centres = _principal(name, 200, d)
    sizes = 1.0 / np.arange(1, len(centres) + 1)
    spread = 0.6 * centres.std()

    def side() -> Floats:
        members = rng.choice(len(centres), n, p=sizes / sizes.sum())
        return np.asarray(centres[members] + spread * rng.standard_normal((n, d)))

    return side(), side()


def _disjoint_ranks(name: str, n: int, d: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return the first and the next n words of one language."""
    rows = _principal(name, 2 * n, d)
    return rows[: len(rows) // 2], rows[len(rows) // 2 :]


def _noisy_copy(name: str, n: int, d: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return words and the same words with a third of noise, in the same order."""
    rows = _principal(name, n, d)
    return rows, rows + 0.3 * _noise_like(rows, len(rows), rng)


def _texts_and_words(name: str, n: int, d: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return random texts of an encoder and the frequent words of a real space."""
    texts = encoder_rows(ENCODERS["minilm"])
    chosen = np.asarray(texts[np.sort(rng.permutation(len(texts))[:n])], dtype=np.float64)
    chosen -= chosen.mean(axis=0)
    axes = np.linalg.eigh(chosen.T @ chosen)[1][:, ::-1][:, :d]
    return np.asarray(chosen @ axes), _principal(name, n, d)


ONLY_FRESH = {"texts and words": _texts_and_words}
FRESH = {**FROM_SOURCE, **ONLY_FRESH}
FRESH_KINDS = (*_GENERATED, *FRESH)
"""Kinds of the validation and of the items: those of the unrelated pairs and three others."""
APART = {"shared centres": _shared_centres, "disjoint ranks": _disjoint_ranks}
CONTRADICTED: dict[str, Callable[[int, int], int]] = {
    "shifted rows": lambda row, n: row if row < 50 else (row + 1) % n,
    "reversed rows": lambda row, n: n - 1 - row,
}
"""By kind: the row of the target that the lexicon gives for a row of the source. True is the same row."""
_PAIRED = {**FRESH, **APART, **dict.fromkeys(CONTRADICTED, _noisy_copy)}


def unrelated_spaces(case: Case) -> tuple[Floats, Floats]:
    """Return two spaces of a family; the label of the case has their size."""
    words, dimensions, *source = case.label.split(" x ")
    n, d = int(words), int(dimensions)
    rng = np.random.default_rng([case.seed, zlib.crc32(repr((case.group, case.task, case.label)).encode())])
    if case.task in _GENERATED:
        return _GENERATED[case.task](n, d, rng), _GENERATED[case.task](n, d, rng)
    x, y = _PAIRED[case.task](source[0], n, d, rng)
    return x, _rotated(y, rng)


def wrong_lexicon(kind: str, n: int) -> Lexicon:
    """Return the pairs of row numbers of a wrong lexicon of n words."""
    return Lexicon(tuple((str(row), str(CONTRADICTED[kind](row, n))) for row in range(n)))


METHODS = {"qwp": 0.12, "wp": 0.06, "self-learning": 0.67, "gromov": 0.15}
"""The methods of unrelated cases and their shares."""


def drawn_cases(group: str, kinds: Sequence[str], count: int, config: dict[str, Any]) -> Iterator[Case]:
    """Yield the first `count` cases of a group: kinds in turns; sizes, sources and methods drawn at random."""
    rng = np.random.default_rng(zlib.crc32(group.encode()))
    small = group in SMALL_GROUPS
    words, dimensions = (SMALL_WORDS, SMALL_DIMENSIONS) if small else (WORDS[1:3], DIMENSIONS[1:])
    available = [name for name in SOURCES if (BENCH / f"{name}.npz").exists()]
    for number in range(count):
        kind = kinds[number % len(kinds)]
        n, d = (int(rng.choice(sizes)) for sizes in (words, dimensions))
        learns = rng.random() >= SMALL_SEARCHES and group == "validation"
        source = "" if kind in _GENERATED else str(rng.choice(available or ["none"]))
        if source == "none":
            continue
        label = f"{n} x {d}" + (f" x {source}" if source else "")
        options = {**config, **({"device": "cpu"} if small else {})}
        if learns:
            options.pop("effort", None)
        yield Case(group, kind, label, "self-learning" if learns else "qwp", number, options)


def unrelated_cases(count: int) -> Iterator[Case]:
    """Yield the first `count` unrelated cases: families in turns; sizes, sources and methods drawn at random."""
    rng = np.random.default_rng(13)
    available = [name for name in SOURCES if (BENCH / f"{name}.npz").exists()]
    for number in range(count):
        family = FAMILIES[number % len(FAMILIES)]
        n, d = (int(rng.choice(sizes)) for sizes in (WORDS, DIMENSIONS))
        method = str(rng.choice(list(METHODS), p=list(METHODS.values())))
        source = str(rng.choice(SOURCES))
        if method == "gromov":
            n = min(n, 2000)
        if family in FROM_SOURCE and source not in available:
            continue
        label = f"{n} x {d}" + (f" x {source}" if family in FROM_SOURCE else "")
        yield Case("unrelated", family, label, method, number)


# --------------------------------------------------------------------------- related spaces

_NOVELS = [pair for other in ("es", "fr", "de", "hu", "pl") for pair in (f"en-{other}", f"{other}-en")]
_MIXED = (("novels/en", "mixed/es_sgns"), ("pretrained/en", "pretrained/ru"), ("pretrained/en", "pretrained/ja"))
PAIRS: dict[str, Task] = {
    task.name: task
    for task in (
        *map(novels, _NOVELS),
        *map(zhang, ("es-en", "it-en")),
        *(mixed(*pair) for both in _MIXED for pair in (both, both[::-1])),
        mixed("mixed/fr_fasttext", "novels/en"),
    )
}
CUTS = (10_000, 5_000, 2_500, 1_000)
SEED_PAIRS = (100, 200, 400, 1000)
UNSUPERVISED = {"start": "unsupervised"}


def related_cases(seeds: int) -> Iterator[Case]:
    """Yield good, cut, damaged, weak and supervised alignments of all available pairs."""
    for name, task in PAIRS.items():
        if not task.available:
            continue
        make = partial(Case, "related", name)
        for seed in range(seeds):
            yield make("as it is", "qwp", seed, UNSUPERVISED)
        yield make("orthogonal", "qwp", 0, {**UNSUPERVISED, "map": "orthogonal"})
        yield make("as it is", "self-learning", 0)
        changes = (*(f"first {words}" for words in CUTS), "50 dimensions", "100 dimensions", "10 % noise", "30 % noise")
        for label in changes:
            yield make(label, "qwp", 0, UNSUPERVISED)
        if has_training(task):
            for pairs in SEED_PAIRS:
                yield make(f"{pairs} pairs", "procrustes", 0, {"refine": 0})
            yield make("5000 pairs", "procrustes", 0, {"refine": 5})
            yield make("5000 pairs", "rcsls", 0)
            yield make("200 pairs", "qwp", 0, {"start": "lexicon"})


# --------------------------------------------------------------------------- encoders

ENCODERS = {
    "minilm": "encoders/minilm.npy",
    "wordllama": "encoders/wordllama.npy",
    "e5": "encoders/tatoeba/e5small384_en.npy",
    "use": "encoders/tatoeba/use512_en.npy",
}
ENCODER_PAIRS = ("minilm wordllama", "wordllama minilm", "e5 use", "use e5")
TEXTS, COMMON, TEXT_NOISE = (500, 1000), (1.0, 0.6), 0.5
FEWEST_TEXTS = 5000


@cache
def encoder_rows(file: str) -> Floats:
    """Return the vectors of an encoder."""
    return np.asarray(np.load(bench_file(file)), dtype=np.float32)


def encoder_cases(seeds: int) -> Iterator[Case]:
    """Yield unordered items of two encoders: texts of each side, the share in common, and noise."""
    for seed in range(seeds):
        for pair in ENCODER_PAIRS:
            for texts in TEXTS:
                labels = [f"{texts} texts {common:g} common 0 noise" for common in COMMON]
                for label in (*labels, f"{texts} texts 1 common {TEXT_NOISE:g} noise"):
                    yield Case("encoders", pair, label, "qwp", seed, {"order": "none"})


def encoder_spaces(case: Case) -> tuple[Floats, Floats, Ints]:
    """Return both sides and, for each source row, the target row of the same text or -1."""
    rng = np.random.default_rng([case.seed, zlib.crc32(repr((case.task, case.label)).encode())])
    src, tgt = (encoder_rows(ENCODERS[name]) for name in case.task.split())
    words = case.label.split()
    texts, common, noise = int(words[0]), float(words[2]), float(words[4])
    order, shared = rng.permutation(len(src)), round(common * texts)
    first, second = order[:texts], rng.permutation(order[texts - shared : 2 * texts - shared])
    row_of = {int(text): row for row, text in enumerate(second)}
    gold = np.asarray([row_of.get(int(text), -1) for text in first])
    y = tgt[second]
    return src[first], y + (noise * tgt.std(axis=0) * rng.standard_normal(y.shape)).astype(np.float32), gold


def encoder_figures(case: Case, options: dict[str, Any]) -> tuple[Record, Signals]:
    """Return the record of an alignment of texts: hits among all texts and among those with a counterpart."""
    x, y, gold = encoder_spaces(case)
    alignment = qwp.align(x, y, **options)
    induced = alignment.induce(mutual_only=False)
    src_row, tgt_row = ({word: row for row, word in enumerate(side.words)} for side in (alignment.src, alignment.tgt))
    gold = gold[[src_row[pair.src] for pair in induced]]
    right = np.asarray([tgt_row[pair.tgt] for pair in induced]) == gold
    figures = verdict_figures(alignment)
    features = alignment.inducer.pair_features(alignment.estimate.scale, 10)
    signals = {SAMPLE: np.column_stack([features, np.arange(len(right)), right]).astype(np.float32)}
    figures["shift"] = CALIBRATION.items.shift
    shares = {"p1": 100 * float(right[gold >= 0].mean()), "found": 100 * float(right.mean()), "covered": len(right)}
    return {**shares, **figures}, signals


def has_training(task: Task) -> bool:
    """Return whether the training split of a task is available."""
    return task.training is not None and (BENCH / task.training).exists()


@cache
def _loaded(task: Task) -> tuple[Embeddings, Embeddings, Lexicon]:
    return task.load()


def changed(original: Embeddings, label: str, seed: int) -> Embeddings:
    """Change a space as a label says."""
    numbers = [int(word) for word in label.split() if word.isdigit()]
    if label.startswith("first"):
        return like(original, original.vectors[: numbers[0]])
    if label.endswith("dimensions"):
        return with_spectrum(original, dim=numbers[0])
    if label.endswith("noise"):
        return with_noise(original, numbers[0] / 100, seed)
    return original


def related_spaces(case: Case) -> tuple[Embeddings, Embeddings, Lexicon | None]:
    """Return both spaces and the seed lexicon of the method, if it has one."""
    task = PAIRS[case.task]
    src, tgt, _ = _loaded(task)
    src, tgt = changed(src, case.label, 1), changed(tgt, case.label, 2)
    if not case.label.endswith("pairs"):
        return src, tgt, None
    assert task.training is not None, "cases with pairs have a training split"
    return src, tgt, some_pairs(dictionary(task.training), src, tgt, int(case.label.split()[0]))


def some_pairs(lexicon: Lexicon, src: Embeddings, tgt: Embeddings, count: int) -> Lexicon:
    """Return `count` random pairs of a lexicon that both vocabularies cover."""
    covered = [(a, b) for a, b in lexicon.pairs if a in src and b in tgt]
    picked = np.sort(np.random.default_rng(count).permutation(len(covered))[:count])
    return Lexicon(tuple(covered[i] for i in picked))


# --------------------------------------------------------------------------- runs


Signals = dict[str, npt.NDArray[np.float32]]
"""For each split of the gold: features of the confidence, rank and correctness of each word, as columns.

SAMPLE has the words that an estimate is computed from; their correctness is unknown.
"""
SAMPLE = "sample"


def run_case(case: Case, device: str, threads: int | None = None) -> tuple[Record, Signals]:
    """Return the record of a case, and the signals of a related one. An error becomes a record too."""
    begin = time.perf_counter()
    signals: Signals = {}
    try:
        found, signals = _figures(case, device, threads)
    except Exception as error:  # one failure must not stop the others
        found = {"error": f"{type(error).__name__}: {error}"}
    seconds = round(time.perf_counter() - begin, 2)
    return {**asdict(case), **found, "seconds": seconds, "version": qwp.__version__}, signals


def _figures(case: Case, device: str, threads: int | None) -> tuple[Record, Signals]:
    options = {"method": case.method, "seed": case.seed, "device": device, "threads": threads, **case.config}
    if case.group == "encoders":
        return encoder_figures(case, options)
    if case.group != "related":
        x, y = unrelated_spaces(case)
        wrong = wrong_lexicon(case.task, len(x)) if case.group == "contradicted" else None
        return verdict_figures(qwp.align(x, y, lexicon=wrong, **options)), {}
    src, tgt, lexicon = related_spaces(case)
    alignment = qwp.align(src, tgt, lexicon=lexicon, **options).on(device)
    task = PAIRS[case.task]
    splits = {"test": task.lexicon, **({"train": task.training} if has_training(task) else {})}
    features = alignment.inducer.pair_features(alignment.estimate.scale, 10)
    signals = {}
    for split, file in splits.items():
        rows, _, right = judged_pairs(alignment, dictionary(str(file)))
        signals[split] = np.column_stack([features[rows], rows, right]).astype(np.float32)
    sampled = sample(len(features))
    signals[SAMPLE] = np.column_stack([features[sampled], sampled, np.zeros(len(sampled))]).astype(np.float32)
    hits = signals["test"][:, -1]
    score = 100 * float(hits.mean()) if len(hits) else None
    return {"p1": score, "covered": len(hits), **verdict_figures(alignment)}, signals


def verdict_figures(alignment: qwp.Alignment) -> Record:
    """Return the figures of the verdict and of the estimate."""
    quality = alignment.quality
    return {
        **{name: getattr(quality, name) for name in ("verdict", "ratio", "z", "p_value", "thorough")},
        "runs": quality.null_runs,
        "found_again": quality.null_hits,
        "deviation": quality.null_deviation,
        "counterparts": None if quality.counterparts is None else quality.counterparts.to_dict(),
        "n_words": quality.n_words,
        **estimate_figures(quality.estimate),
        "verdict_seconds": alignment.provenance.seconds.get("verdict"),
        "device": alignment.provenance.backend,
    }


def estimate_figures(estimate: Estimate | None) -> Record:
    """Return an estimate in percent."""
    if estimate is None:
        return {}
    overall = {name: 100 * value for name, value in asdict(estimate.overall).items()}
    return {
        "estimate": overall["p1"],
        "low": overall["low"],
        "high": overall["high"],
        "agreement": estimate.scale.agreement,
    }


def run_all(cases: Iterable[Case], device: str, workers: int, output: Path, limit: float) -> None:
    """Run the cases without a record in `workers` processes; start none after `limit` seconds."""
    known = {json.dumps([record[name] for name in KEY]) for record in read_records(output)}
    missing = [case for case in cases if json.dumps([*case.key.values()]) not in known]
    # In random order, so that an interrupted benchmark has some cases of every kind.
    missing = [missing[i] for i in np.random.default_rng(0).permutation(len(missing))]
    end = time.monotonic() + limit
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        # One thread each: the processes share the cores.
        threads = 1 if workers > 1 else None
        for record, signals in pool.imap_unordered(partial(run_case, device=device, threads=threads), missing):
            keep(record, signals, output)
            if time.monotonic() > end:
                pool.terminate()
                return


KEY = ("group", "task", "label", "method", "seed")


def keep(record: Record, signals: Signals, output: Path) -> None:
    """Append a record to the results, and save its signals in a folder beside them."""
    if signals:
        name = zlib.crc32(repr([record[name] for name in KEY]).encode())
        record["signals"] = f"{name:08x}.npz"
        folder = output.with_suffix("")
        folder.mkdir(exist_ok=True)
        tables: dict[str, Any] = dict(signals)
        np.savez_compressed(folder / record["signals"], **tables)
    append_record(record, output)


# --------------------------------------------------------------------------- tables


def statistic(record: Record) -> float:
    """Return the statistic of the verdict of a record, which may be older than it."""
    ratio, z = record["ratio"], record["z"]
    deviation = record.get("deviation") or (abs((ratio - 1.0) / z) if z else 0.0)
    return float(ratio / (1.0 + DEVIATIONS * deviation))


def has_failed(record: Record) -> bool:
    """Return whether the verdict without known pairs fails by today's criteria."""
    return CALIBRATION.p_value(statistic(record)) > CRITERIA.level


def encoder_estimates(found: Iterable[Record]) -> list[Record]:
    """Return the records of related texts by two encoders: estimates of mean confidence, and the share that is right.

    Of `benchmarks.items`, only large sides count, because its share is that of other texts than the fit saw.
    """
    texts = [
        {**record, "task": "minilm wordllama", "p1": record["found"]}
        for record in select(read_records(items.RESULTS), suite="related")
        if record["texts"] >= FEWEST_TEXTS and record["verdict"] != "failed"
    ]
    return [*(r for r in found if r["group"] == "encoders" and "error" not in r), *texts]


def unrelated_statistics(found: Sequence[Record]) -> dict[str, tuple[float, ...]]:
    """Return the statistics of the unrelated pairs of each kind, in ascending order. Unordered items are one kind."""
    whole = [record for record in found if "error" not in record]
    pairs = select(whole, group="unrelated")
    kinds = {**{kind: select(pairs, task=kind) for kind in FAMILIES}, UNORDERED: select(whole, group="items")}
    return {kind: tuple(sorted(round(statistic(record), 4) for record in some)) for kind, some in kinds.items()}


def tables(found: Sequence[Record]) -> str:
    """Return the tables of the records and of the last fit of the confidence."""
    whole = [r for r in found if "error" not in r]
    parts = [error_rates_table(whole)]
    if CONFIDENCE.exists():
        parts.append(left_out_table(json.loads(CONFIDENCE.read_text("utf-8"))))
        parts.append(origins_table())
    return "\n\n".join(parts)


def error_rates_table(found: Sequence[Record]) -> str:
    """Return the wrong verdicts and p-values of all groups, and of the texts of `benchmarks.items`.

    The p-values of pairs that are in the calibration are those of a calibration without their kind.
    """
    validation = select(found, group="validation")
    new = [r for r in validation if r["task"] not in FAMILIES]
    groups: list[tuple[str, Sequence[Record], Floats]] = [
        *((f"{kind}, left out", *each) for kind, each in left_out(found).items()),
        ("new pairs of these kinds", *_with_p([r for r in validation if r not in new])),
        *((f"{kind}, new kind", *_with_p(select(new, task=kind))) for kind in (*INVENTED, *ONLY_FRESH)),
    ]
    rows = []
    for name, pairs, p in groups:
        extreme = f"at most {max(map(statistic, pairs)):.2f}"
        levels = (f"{100 * np.mean(p <= level):.0f} %" for level in (0.05, 0.5))
        rows.append([name, str(len(pairs)), f"{np.sum(p <= CRITERIA.level)} not failed", extreme, *levels])
    for kind in CONTRADICTED:
        some = select(found, group="contradicted", task=kind)
        wrong = sum(r["verdict"] == "succeeded" for r in some)
        rows.append([f"lexicon: {kind}", str(len(some)), f"{wrong} succeeded", "", "", ""])
    related = [r for r in select(found, group="related") if (r["covered"] or 0) >= FEWEST_COVERED]
    texts = [{**r, "p1": r["found"]} for r in select(read_records(items.RESULTS), suite="related")]
    scored = [*related, *select(found, group="encoders"), *texts]
    for low, high in pairwise(P1_EDGES):
        if some := [r for r in scored if low <= r["p1"] < high]:
            name = f"related, P@1 {low}-{high} %" if high <= 100 else f"related, P@1 from {low} %"
            extreme = f"at least {min(map(statistic, some)):.2f}"
            rows.append([name, str(len(some)), f"{sum(map(has_failed, some))} failed", extreme, "", ""])
    for kind in APART:
        some = select(found, group="apart", task=kind)
        rows.append([f"no counterparts: {kind}", str(len(some)), f"{sum(map(has_failed, some))} failed", "", "", ""])
    return markdown(["alignments", "number", "verdict", "statistic", "p at most 0.05", "p at most 0.5"], rows)


def _with_p(records: Sequence[Record]) -> tuple[Sequence[Record], Floats]:
    """Return records with their p-values."""
    return records, np.asarray([CALIBRATION.p_value(statistic(record)) for record in records])


def left_out(found: Sequence[Record]) -> dict[str, tuple[Sequence[Record], Floats]]:
    """Return the unrelated pairs of each kind in the calibration, and their p-values by the other kinds."""
    by_kind = unrelated_statistics(found)
    kinds: dict[str, tuple[Sequence[Record], Floats]] = {}
    for kind in by_kind:
        others = replace(CALIBRATION, unrelated={name: each for name, each in by_kind.items() if name != kind})
        group = {"group": "items"} if kind == UNORDERED else {"group": "unrelated", "task": kind}
        some = [record for record in select(found, **group) if "error" not in record]
        kinds[kind] = some, np.asarray([others.p_value(round(statistic(record), 4)) for record in some])
    return kinds


def validation_p_values(found: Sequence[Record]) -> Floats:
    """Return the p-values of the unrelated pairs that are not in the calibration."""
    return _with_p([record for record in select(found, group="validation") if "error" not in record])[1]


def left_out_table(fit: Record) -> str:
    """Return the errors of estimate and confidence for languages that were left out of the fit."""
    head = ["language left out", "alignments", "mean error, points", "worst", "in the interval", "calibration error"]
    rows = []
    for name, title in (("usual", "default, unchanged spaces"), ("all", "all, also cut, damaged, weak")):
        printed, calibration = fit[name]["printed"], fit[name]["ece"]
        errors = (f"{printed[figure]:.1f}" for figure in ("error", "worst_error"))
        covered = f"{100 * printed['held_by_interval']:.0f} %"
        rows.append([title, str(fit[name]["alignments"]), *errors, covered, f"{calibration['mean']:.3f}"])
    return markdown(head, rows)


def origins_table() -> str:
    """Return the errors and the coverage of intervals that were calibrated on the other origins."""
    head = ["origin left out", "alignments", "mean error, points", "in the interval"]
    rows = [
        [name, str(each["alignments"]), f"{each['error']:.1f}", f"{100 * each['covered']:.0f} %"]
        for name, each in {**CALIBRATION.words.origins, **CALIBRATION.items.origins}.items()
    ]
    return markdown(head, rows)


def main() -> None:
    """Run the missing cases."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.judgement", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("groups", nargs="*", default=list(GROUPS), help=f"some of {', '.join(GROUPS)}")
    parser.add_argument("--unrelated", type=int, default=1200, help="number of unrelated pairs")
    parser.add_argument("--validation", type=int, default=1200, help="number of pairs of the validation")
    parser.add_argument("--items", type=int, default=220, help="number of unrelated pairs without an order")
    parser.add_argument("--others", type=int, default=24, help="number of cases of contradicted and apart each")
    parser.add_argument("--seeds", type=int, default=2, help="seeds of unchanged related pairs")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    parser.add_argument("--workers", type=int, default=1, help="number of processes")
    parser.add_argument("--limit", type=float, default=float("inf"), help="start no case after this many seconds")
    parser.add_argument("--output", type=Path, default=RESULTS, help="file that gets the records")
    options = parser.parse_args()
    made: dict[str, Callable[[], Iterable[Case]]] = {
        "unrelated": lambda: unrelated_cases(options.unrelated),
        "related": lambda: related_cases(options.seeds),
        "validation": lambda: drawn_cases("validation", FRESH_KINDS, options.validation, {"effort": "low"}),
        "items": lambda: drawn_cases("items", FRESH_KINDS, options.items, {"order": "none", "effort": "low"}),
        "encoders": lambda: encoder_cases(options.seeds),
        "contradicted": lambda: drawn_cases("contradicted", list(CONTRADICTED), options.others, {}),
        "apart": lambda: drawn_cases("apart", list(APART), options.others, {}),
    }
    cases = [case for group in options.groups for case in made[group]()]
    run_all(cases, options.device, options.workers, options.output, options.limit)


if __name__ == "__main__":
    main()
