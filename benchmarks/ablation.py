"""What each part of the method brings, and what the default reaches. `python -m benchmarks.ablation --help`.

    python -m benchmarks.ablation --device cuda

The data is not part of the package: it is read from $QWP_BENCH or ../shared/bench. The suites `refinement`, `loop`,
`coresets` and `starts` choose settings; they are scored on the training split of MUSE, in both directions, and on
vectors with fewer dimensions, another spectrum or missing order made from the same ones. `final`, `hard`, `orders`,
`robust`, `verdict` and `calibration` choose nothing and use the test split and the Zhang lexicons. Each record goes to
the results file as soon as it is there, and a run that was stopped goes on where it was. `--table` runs nothing; it
puts the tables of that file into docs/accuracy.md and prints them.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import qwp
from benchmarks.common import Record, keep_record, put_tables, read_records, suite_options
from benchmarks.systems import NOVELS, REAL_P1, TASKS
from benchmarks.tasks import BENCH, Task, novels, pair_of, zhang
from qwp import Alignment, Embeddings, Lexicon, arrays
from qwp.arrays import Array
from qwp.maps.procrustes import Maps
from qwp.methods import make_aligner
from qwp.results.lexicon import InducedPair
from qwp.search.confidence import Floats
from qwp.spaces.embeddings import FloatArray
from qwp.stages.refinement import WEIGHTED, CslsRefinement, refine

RESULTS = Path(__file__).parent / "results" / "ablation.jsonl"
DOCUMENT = Path(__file__).parents[1] / "docs" / "accuracy.md"
KS = (200, 500, 1000, 2000, 3000)
BINS = 10
HARD = (
    ("novels/en", "novels/hu"),
    ("novels/en", "novels/pl"),
    ("novels/en", "mixed/es_sgns"),
    ("pretrained/en", "pretrained/ru"),
    ("pretrained/en", "pretrained/ja"),
)
ORTHOGONAL = tuple(f"novels {pair}" for pair in NOVELS[::2])

# Printed of each record.
SHOWN = ("task", "label", "seed", "p1", "before", "after", "ratio", "verdict", "ece", "seconds")
# What was done already: suite, task, label and seed.
Known = set[tuple[str, str, str, int]]


# --------------------------------------------------------------------------- problems


@dataclass(frozen=True)
class Problem:
    """Two spaces and the gold that scores them, in one direction or both. real: whether there is anything to find."""

    name: str
    load: Callable[[], tuple[Embeddings, Embeddings]]
    forward: Callable[[], Lexicon] | None = None
    backward: Callable[[], Lexicon] | None = None
    real: bool = True


@cache
def space(file: str, words: int = 20_000) -> Embeddings:
    """Vectors of the benchmark data."""
    return qwp.load(BENCH / file, max_vocab=words)


@cache
def gold(file: str) -> Lexicon:
    """A dictionary of the benchmark data."""
    return Lexicon.load(BENCH / file)


def training(pair: str) -> Callable[[], Lexicon]:
    """The training split of MUSE for a pair."""
    return lambda: gold(f"muse/{pair}.0-5000.txt")


def back(pair: str) -> str:
    """The other direction."""
    return "-".join(reversed(pair.split("-")))


def of_task(task: Task, words: int | None = None) -> Problem:
    """A task of the comparison, or its most frequent words, with its test gold."""
    name = task.name if words is None else f"{task.name}, {words} words"
    most = 20_000 if words is None else words
    return Problem(name, lambda: (space(task.src, most), space(task.tgt, most)), lambda: gold(task.lexicon))


def development(
    name: str, pair: str, change: Callable[[Embeddings, Embeddings], tuple[Embeddings, Embeddings]] | None = None
) -> Problem:
    """A pair of the novels, changed or not, scored on the training split in both directions."""
    files = [f"novels/{language}.npz" for language in pair.split("-")]

    def load() -> tuple[Embeddings, Embeddings]:
        src, tgt = (space(file) for file in files)
        return (src, tgt) if change is None else change(src, tgt)

    return Problem(name, load, training(pair), training(back(pair)))


def like(original: Embeddings, vectors: FloatArray) -> Embeddings:
    """The first words of a space with other vectors."""
    return Embeddings(list(original.words[: len(vectors)]), vectors.astype(np.float32))


def with_spectrum(
    original: Embeddings, *, power: float = 1.0, dim: int | None = None, words: int | None = None
) -> Embeddings:
    """The space on its first principal axes, their extents raised to a power, in a basis of its own."""
    vectors = np.asarray(original.vectors[:words], dtype=np.float64)
    squares, axes = np.linalg.eigh(vectors.T @ vectors / len(vectors))
    squares, axes = squares[::-1][:dim], axes[:, ::-1][:, :dim]
    rotation, _ = np.linalg.qr(np.random.default_rng(len(squares)).standard_normal((len(squares), len(squares))))
    return like(original, (vectors @ axes * squares ** ((power - 1) / 2)) @ rotation)


def rearranged(original: Embeddings, order: npt.NDArray[np.int64]) -> Embeddings:
    """The words in another order."""
    return Embeddings([original.words[i] for i in order], np.asarray(original.vectors)[order])


def shuffled(original: Embeddings, seed: int = 0) -> Embeddings:
    """The words in random order."""
    return rearranged(original, np.random.default_rng(seed).permutation(len(original)))


ORDERS: dict[str, Callable[[Embeddings, Embeddings], tuple[Embeddings, Embeddings]]] = {
    "given": lambda src, tgt: (src, tgt),
    "target shuffled": lambda src, tgt: (src, shuffled(tgt)),
    "both shuffled": lambda src, tgt: (shuffled(src, 1), shuffled(tgt)),
    "by the alphabet": lambda src, tgt: (
        rearranged(src, np.argsort(np.array(src.words))),
        rearranged(tgt, np.argsort(np.array(tgt.words))),
    ),
    "reversed": lambda src, tgt: (
        rearranged(src, np.arange(len(src))[::-1]),
        rearranged(tgt, np.arange(len(tgt))[::-1]),
    ),
}


def noisy_rows(original: Embeddings, share: float, seed: int) -> npt.NDArray[np.int64]:
    """The rows that `with_noise` replaces."""
    return np.random.default_rng(seed).permutation(len(original))[: round(share * len(original))]


def with_noise(original: Embeddings, share: float = 0.1, seed: int = 0) -> Embeddings:
    """A share of the vectors replaced by noise of the same lengths."""
    vectors = np.array(original.vectors, dtype=np.float32)
    rows = noisy_rows(original, share, seed)
    noise = np.random.default_rng(seed + 1).standard_normal((len(rows), vectors.shape[1]))
    lengths = np.linalg.norm(vectors[rows], axis=1, keepdims=True)
    vectors[rows] = noise / np.linalg.norm(noise, axis=1, keepdims=True) * lengths
    return like(original, vectors)


def with_mixed_columns(original: Embeddings, seed: int = 0) -> Embeddings:
    """Every coordinate permuted among the words by itself: the same spectrum, and no word is itself any more."""
    vectors = np.array(original.vectors, dtype=np.float32)
    np.random.default_rng(seed).permuted(vectors, axis=0, out=vectors)
    return like(original, vectors)


def gaussian(original: Embeddings, seed: int = 0) -> Embeddings:
    """Noise in place of all vectors."""
    return like(original, np.random.default_rng(seed).standard_normal(original.vectors.shape))


def first(words: int) -> Callable[[Embeddings, Embeddings], tuple[Embeddings, Embeddings]]:
    """Cut both spaces to their most frequent words."""
    return lambda src, tgt: (like(src, src.vectors[:words]), like(tgt, tgt.vectors[:words]))


def bent(power: float) -> Callable[[Embeddings, Embeddings], tuple[Embeddings, Embeddings]]:
    """Change the spectrum of the target side."""
    return lambda src, tgt: (src, with_spectrum(tgt, power=power))


def demo_problem() -> Problem:
    """The vectors of the package with the training split."""
    files = [Path(qwp.__file__).parent / "data" / "demo" / f"{language}.npz" for language in ("en", "es")]
    return Problem(
        "demo en-es, 5,000 x 100",
        lambda: (qwp.load(files[0]), qwp.load(files[1])),
        training("en-es"),
        training("es-en"),
    )


def development_problems() -> list[Problem]:
    """What settings are chosen on: two kinds of vectors, three languages, 50 to 300 dimensions."""
    return [
        *(development(f"novels {pair}", pair) for pair in NOVELS[::2]),
        demo_problem(),
        development(
            "novels en-fr, 10,000 x 100",
            "en-fr",
            lambda s, t: (with_spectrum(s, dim=100, words=10_000), with_spectrum(t, dim=100, words=10_000)),
        ),
        development(
            "novels en-de, 10,000 x 50",
            "en-de",
            lambda s, t: (with_spectrum(s, dim=50, words=10_000), with_spectrum(t, dim=50, words=10_000)),
        ),
    ]


def odd_problems() -> list[Problem]:
    """Pairs whose sides do not fit each other so well: another spectrum, noise, no order of frequency."""
    found = []
    for pair in NOVELS[::4]:
        for power in (0.3, 2.0):
            name = f"novels {pair}, target spectrum to the power {power:g}"
            found.append(development(name, pair, bent(power)))
        found.append(development(f"novels {pair}, 10 % noise", pair, lambda s, t: (s, with_noise(t))))
        found.append(development(f"novels {pair}, 30 % noise", pair, lambda s, t: (s, with_noise(t, 0.3))))
        found.append(development(f"novels {pair}, target shuffled", pair, lambda s, t: (s, shuffled(t))))
        found.append(development(f"novels {pair}, both shuffled", pair, lambda s, t: (shuffled(s, 1), shuffled(t))))
        found.append(development(f"novels {pair}, 2,000 words", pair, first(2000)))
        found.append(
            development(
                f"novels {pair}, 10,000 x 50 against another spectrum",
                pair,
                lambda s, t: (
                    with_spectrum(s, dim=50, words=10_000),
                    with_spectrum(t, dim=50, words=10_000, power=0.5),
                ),
            )
        )
    return found


def hopeless_problems(seed: int) -> list[Problem]:
    """Pairs with nothing to find, or next to nothing."""

    def made(name: str, src: Callable[[], Embeddings], tgt: Callable[[], Embeddings]) -> Problem:
        return Problem(name, lambda: (src(), tgt()), real=False)

    english, spanish = partial(space, "novels/en.npz"), partial(space, "novels/es.npz")
    short = partial(space, "zhang2017/es-en/en.vec")
    return [
        made("novels en against noise", english, lambda: gaussian(spanish(), seed)),
        made("novels en against es with mixed columns", english, lambda: with_mixed_columns(spanish(), seed)),
        made("zhang en against noise", short, lambda: gaussian(short(), seed)),
        made("zhang en against itself with mixed columns", short, lambda: with_mixed_columns(short(), seed)),
        made("noise against noise", lambda: gaussian(short(), seed + 50), lambda: gaussian(short(), seed)),
    ]


def small_problems() -> list[Problem]:
    """Few words, where the method may fail and the verdict has little to go by; scored by what gold there is."""
    found = []
    for words in (500, 1000, 2000):
        found += [development(f"novels {pair}, {words} words", pair, first(words)) for pair in NOVELS[::2]]
        found += [of_task(zhang(pair), words) for pair in ("es-en", "it-en")]
    # Novels against an encyclopaedia by another algorithm: Procrustes fitted on the gold itself reaches 27 %.
    found += [mixed_origin(pair) for pair in ("es-en", "en-es")]
    return found


def mixed_origin(pair: str) -> Problem:
    """Vectors of Wikipedia against those of the novels, both with 50 dimensions."""
    src, tgt = pair.split("-")
    return Problem(
        f"zhang {src} against novels {tgt}",
        lambda: (
            space(f"zhang2017/es-en/{src}.vec"),
            with_spectrum(space(f"novels/{tgt}.npz"), dim=50, words=10_000),
        ),
        training(pair),
        training(back(pair)),
    )


# --------------------------------------------------------------------------- scoring


def turned(alignment: Alignment) -> Alignment:
    """The same alignment from the target to the source."""
    identity = np.eye(alignment.src.dim, dtype=alignment.src_map.dtype)
    back_map = identity if alignment.tgt_map is None else alignment.tgt_map
    src_side = replace(alignment.tgt_side, map=back_map)
    # What was kept beside the alignment is that of the other direction.
    return replace(alignment, src_side=src_side, tgt_side=alignment.src_side, origin=None)


def p1(alignment: Alignment, problem: Problem, device: str) -> dict[str, float]:
    """P@1 with CSLS in per cent over covered words, in each direction with gold, and the mean of them."""
    found: dict[str, float] = {}
    for way, lexicon in (("forward", problem.forward), ("backward", problem.backward)):
        if lexicon is not None:
            asked = alignment if way == "forward" else turned(alignment)
            scores = qwp.evaluate(asked.on(device), lexicon(), bootstrap=0)
            found[way] = 100 * scores.scores["csls"].covered["P@1"].value
            found[f"{way}_covered"] = scores.coverage.covered_source_words
            if way == "forward":
                measures = {"csls_mrr": ("csls", "MRR"), "nn_p1": ("nn", "P@1"), "nn_mrr": ("nn", "MRR")}
                for name, (retrieval, measure) in measures.items():
                    found[name] = 100 * scores.scores[retrieval].covered[measure].value
    ways = [found[way] for way in ("forward", "backward") if way in found]
    return {**found, "p1": statistics.mean(ways)} if ways else found


def fitted(problem: Problem, seed: int, device: str, options: dict[str, Any], method: str = "qwp") -> Alignment:
    """An alignment of the problem."""
    return make_aligner(method, seed=seed, device=device, **options).fit(*problem.load()).alignment_


def timed_record(
    suite: str, problem: Problem, label: str, seed: int, device: str, options: dict[str, Any], *, method: str = "qwp"
) -> Record:
    """A fit, its scores, its verdict and its time."""
    problem.load()
    begin = time.perf_counter()
    alignment = fitted(problem, seed, device, options, method)
    seconds = time.perf_counter() - begin
    return {
        "suite": suite,
        "task": problem.name,
        "label": label,
        "seed": seed,
        "seconds": seconds,
        **p1(alignment, problem, device),
        "verdict": alignment.quality.verdict,
        "ratio": alignment.quality.ratio,
        "real": problem.real,
        "stages": alignment.provenance.seconds,
        "start_used": alignment.provenance.initializer,
        "order": alignment.provenance.order,
        "place": alignment.provenance.backend,
        "version": qwp.__version__,
    }


# --------------------------------------------------------------------------- suites that choose settings


def refinements() -> dict[str, CslsRefinement]:
    """The default refinement and changes of one thing in it, and the plain one."""
    plain = CslsRefinement()

    def but(**changes: Any) -> CslsRefinement:
        return replace(WEIGHTED, **changes)

    return {
        "none: the loop alone": but(rounds=0),
        "plain: 5 mutual rounds, orthogonal": plain,
        "plain, 20,000 words": replace(plain, words=20_000),
        "plain, union": replace(plain, directions="union"),
        "plain, re-weighted after the last round": replace(plain, map="reweighted"),
        "**default**": WEIGHTED,
        "equal weights": but(weights="equal"),
        "mutual pairs": but(directions="mutual"),
        "mutual pairs, equal weights": but(directions="mutual", weights="equal"),
        "forward pairs": but(directions="forward"),
        "all words from the first round": but(first_words=0),
        "first round with 1,000 words": but(first_words=1000),
        "first round with 8,000 words": but(first_words=8000),
        "5 rounds": but(rounds=5),
        "20 rounds": but(rounds=20),
        "dictionaries under orthogonal maps": but(search_map="orthogonal"),
        "reweight 0.5": but(reweight=0.5),
        "reweight 0.75": but(reweight=0.75),
        "reweight 1.5": but(reweight=1.5),
        "dewhiten 0": but(dewhiten=0.0),
        "dewhiten 0.5": but(dewhiten=0.5),
        "dewhiten 1": but(dewhiten=1.0),
        "csls_k 5": but(csls_k=5),
        "csls_k 20": but(csls_k=20),
        "15,000 words": but(words=15_000),
        "orthogonal map at the end": but(map="orthogonal"),
        "orthogonal at the end and between rounds": but(map="orthogonal", search_map="orthogonal"),
    }


def normalised(alignment: Alignment, device: str) -> tuple[Array, Array]:
    """Both sides as the method sees them."""
    place = arrays.choose_device(device)
    src, tgt = (
        place.put(
            arrays.to_numpy(side.normalization.apply(np.asarray(side.space.vectors, dtype=np.float32))), "float32"
        )
        for side in (alignment.src_side, alignment.tgt_side)
    )
    return src, tgt


def refined(begun: Alignment, sides: tuple[Array, Array], settings: CslsRefinement) -> Alignment:
    """The alignment after refinement of its map."""
    maps = refine(*sides, Maps(arrays.asarray(begun.src_map, sides[0])), settings)
    tgt_map = None if maps.tgt is None else arrays.to_numpy(maps.tgt)
    return replace(
        begun,
        src_side=replace(begun.src_side, map=arrays.to_numpy(maps.src)),
        tgt_side=replace(begun.tgt_side, map=tgt_map),
    )


def refinement_suite(device: str, known: Known) -> Iterator[Record]:
    """Every refinement from the same map of the loop."""
    for problem in development_problems()[::2]:
        for seed in range(2):
            wanted = {k: v for k, v in refinements().items() if ("refinement", problem.name, k, seed) not in known}
            if not wanted:
                continue
            begun = fitted(problem, seed, device, {"refine": 0})
            sides = normalised(begun, device)
            for label, settings in wanted.items():
                begin = time.perf_counter()
                result = refined(begun, sides, settings)
                seconds = time.perf_counter() - begin
                about = {"suite": "refinement", "task": problem.name, "label": label, "seed": seed}
                yield {**about, **p1(result, problem, device), "seconds": seconds}


LOOPS: dict[str, dict[str, Any]] = {
    "**default**": {},
    "random batches (wp)": {"coreset": "random"},
    "Lloyd centres": {"coreset": "lloyd"},
    "epsilon 0.02": {"epsilon": 0.02},
    "epsilon 0.1": {"epsilon": 0.1},
    "unbalanced, rho 1": {"ot": "unbalanced"},
    "unbalanced, rho 0.1": {"ot": "unbalanced", "rho": 0.1},
    "one pair of coresets in a step": {"pairs_per_step": 1},
    "learning rate 1": {"learning_rate": 1.0},
    "learning rate 4": {"learning_rate": 4.0},
    "growing coresets (grave)": {"schedule": "grave", "coreset_size": 500, "epochs": 3, "steps": 64},
    "one step (the start alone)": {"epochs": 1, "steps": 1},
}
# Kinds of coresets: label, coreset, and weights as shares of the cells to this power.
CORESETS: dict[str, dict[str, Any]] = {
    "random": {"coreset": "random"},
    "kmeans++, equal weights": {"coreset": "kmeans++"},
    "kmeans++, weights to 0.5": {"coreset": "kmeans++", "weight_power": 0.5},
    "kmeans++, the paper's weights": {"coreset": "kmeans++", "weight_power": 1.0},
    "lloyd on the sphere, equal weights": {"coreset": "lloyd"},
    "lloyd, the paper's means and weights": {"coreset": "lloyd", "weight_power": 1.0, "sphere_centroids": False},
}


def before_and_after(
    suite: str, problem: Problem, label: str, seed: int, device: str, options: dict[str, Any]
) -> Record:
    """Scores of the loop's map and of the refined ones, from one fit of the loop."""
    begun = fitted(problem, seed, device, {**options, "refine": 0})
    after = refined(begun, normalised(begun, device), WEIGHTED)
    return {
        "suite": suite,
        "task": problem.name,
        "label": label,
        "seed": seed,
        "before": p1(begun, problem, device)["p1"],
        "after": p1(after, problem, device)["p1"],
        "seconds": sum(begun.provenance.seconds.values()),
    }


def loop_suite(device: str, known: Known) -> Iterator[Record]:
    """Changes of the loop, before and after the default refinement."""
    problem = development_problems()[0]
    for label, options in LOOPS.items():
        for seed in range(2):
            if ("loop", problem.name, label, seed) not in known:
                yield before_and_after("loop", problem, label, seed, device, options)


def coreset_suite(device: str, known: Known) -> Iterator[Record]:
    """Kinds of coresets by their size, before and after the refinement."""
    for problem in (development_problems()[0], demo_problem()):
        for kind, options in CORESETS.items():
            for k in KS:
                for seed in range(2):
                    label = f"{kind}, k={k}"
                    if ("coresets", problem.name, label, seed) not in known:
                        yield before_and_after("coresets", problem, label, seed, device, {**options, "coreset_size": k})


def start_suite(device: str, known: Known) -> Iterator[Record]:
    """Each start on pairs that fit and pairs that do not fit so well."""
    for problem in (*development_problems(), *odd_problems()):
        for start in ("auto", "profiles", "frank-wolfe"):
            if ("starts", problem.name, start, 0) not in known:
                yield timed_record("starts", problem, start, 0, device, {"start": start})


# --------------------------------------------------------------------------- suites that choose nothing


def final_suite(device: str, known: Known) -> Iterator[Record]:
    """The default and its orthogonal map on all tasks, five seeds, test gold."""
    for task in TASKS:
        # The orthogonal map has targets on three pairs only.
        labels = ("default", "orthogonal map") if task.name in ORTHOGONAL else ("default",)
        for label, options in ((label, {"map": "orthogonal"} if "map" in label else {}) for label in labels):
            for seed in range(5):
                if ("final", task.name, label, seed) not in known:
                    yield timed_record("final", of_task(task), label, seed, device, options)


def hard_suite(device: str, known: Known) -> Iterator[Record]:
    """Distant languages and vectors of another origin, five seeds, test gold, nothing but the vectors."""
    for src, tgt in HARD:
        for one, other in ((src, tgt), (tgt, src)):
            for seed in range(5):
                task = pair_of(one, other)
                if ("hard", task.name, "default", seed) not in known:
                    options = {"start": "unsupervised"}
                    yield timed_record("hard", of_task(task), "default", seed, device, options)


def order_suite(device: str, known: Known) -> Iterator[Record]:
    """The novels with their words in other orders, three seeds, test gold."""
    for seed, pair in product(range(3), NOVELS):
        task = novels(pair)
        src, tgt = space(task.src), space(task.tgt)
        for label, change in ORDERS.items():
            if ("orders", task.name, label, seed) not in known:
                problem = given(task.name, *change(src, tgt), gold(task.lexicon))
                yield timed_record("orders", problem, label, seed, device, {})


def robust_suite(device: str, known: Known) -> Iterator[Record]:
    """Novels en-es with damaged target vectors, five seeds, test gold."""
    task, share = novels("en-es"), 0.1
    for seed in range(5):
        target = space(task.tgt)
        lost = {target.words[row] for row in noisy_rows(target, share, seed)}
        answers = Lexicon(tuple(pair for pair in gold(task.lexicon) if pair[1] not in lost))
        for label, changed, lexicon in (
            ("10 % of the target vectors are noise", with_noise(target, share, seed), gold(task.lexicon)),
            ("the same, words with an undamaged answer", with_noise(target, share, seed), answers),
            ("target vocabulary shuffled", shuffled(target, seed), gold(task.lexicon)),
        ):
            if ("robust", task.name, label, seed) not in known:
                problem = given(task.name, space(task.src), changed, lexicon)
                yield timed_record("robust", problem, label, seed, device, {})


def given(name: str, src: Embeddings, tgt: Embeddings, lexicon: Lexicon) -> Problem:
    """A problem from what is at hand."""
    return Problem(name, lambda: (src, tgt), lambda: lexicon)


def verdict_suite(device: str, known: Known) -> Iterator[Record]:
    """Runs made to fail and small vocabularies, each with its verdict; runs that should succeed are elsewhere."""
    for seed in range(2):
        problems = [*hopeless_problems(seed), *small_problems()]
        for problem in problems:
            if ("verdict", problem.name, "default", seed) not in known:
                yield timed_record("verdict", problem, "default", seed, device, {})
        # A start that is no start at all: the loop goes wherever it goes.
        for problem in (development(f"novels {pair}, from the identity", pair) for pair in NOVELS[::2]):
            if ("verdict", problem.name, "default", seed) not in known:
                yield timed_record("verdict", problem, "default", seed, device, {"start": "identity"})


def calibration_suite(device: str, known: Known) -> Iterator[Record]:
    """Confidence of the best translation of every covered test word, and whether it is right."""
    for task in TASKS:
        if ("calibration", task.name, "default", 0) in known:
            continue
        problem = of_task(task)
        alignment = fitted(problem, 0, device, {})
        _, pairs, right = judged_pairs(alignment.on(device), gold(task.lexicon))
        said = np.array([pair.confidence for pair in pairs])
        error, bins = calibration_error(said, right)
        yield {"suite": "calibration", "task": task.name, "label": "default", "seed": 0, "bins": bins, "ece": error}


def judged_pairs(alignment: Alignment, lexicon: Lexicon) -> tuple[list[int], list[InducedPair], Floats]:
    """Rows (n) of the source words that the lexicon covers, their best translations, and whether each is right (n,)."""
    induced, wanted = alignment.induce(mutual_only=False), lexicon.targets
    rows = [row for row, p in enumerate(induced) if any(target in alignment.tgt for target in wanted.get(p.src, ()))]
    pairs = [induced[row] for row in rows]
    return rows, pairs, np.array([p.tgt in wanted[p.src] for p in pairs], dtype=np.float64)


def calibration_error(said: Floats, right: Floats) -> tuple[float, list[list[float]]]:
    """Expected calibration error of confidences (n,) and the bins: words, mean confidence, share that is right."""
    which = np.minimum((said * BINS).astype(int), BINS - 1)
    bins = [
        [int((which == i).sum()), float(said[which == i].mean()), float(right[which == i].mean())]
        for i in range(BINS)
        if (which == i).any()
    ]
    return sum(n * abs(confidence - share) for n, confidence, share in bins) / len(said), bins


SUITES: dict[str, Callable[[str, Known], Iterator[Record]]] = {
    "refinement": refinement_suite,
    "loop": loop_suite,
    "coresets": coreset_suite,
    "starts": start_suite,
    "final": final_suite,
    "hard": hard_suite,
    "orders": order_suite,
    "robust": robust_suite,
    "verdict": verdict_suite,
    "calibration": calibration_suite,
}


# --------------------------------------------------------------------------- tables


def of_suite(records: Iterable[Record], suite: str) -> list[Record]:
    """The records of one suite."""
    return [r for r in records if r["suite"] == suite]


def names(records: Iterable[Record], key: str) -> list[str]:
    """The values of a key in the order of their first appearance."""
    return list(dict.fromkeys(r[key] for r in records))


def mean_of(records: Iterable[Record], key: str, **wanted: str) -> float | None:
    """The mean of a figure over the records with these values; None where there is none."""
    values = [r[key] for r in records if all(r[k] == v for k, v in wanted.items())]
    return statistics.mean(values) if values else None


def cell(value: float | None, digits: int = 1) -> str:
    """A figure in a table."""
    return "-" if value is None else f"{value:.{digits}f}"


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table."""
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def label_by_task(records: Sequence[Record], key: str = "p1") -> str:
    """Labels by tasks: mean over the seeds, and the mean of the tasks."""
    tasks = names(records, "task")
    rows = []
    for label in names(records, "label"):
        means = [mean_of(records, key, task=task, label=label) for task in tasks]
        there = [m for m in means if m is not None]
        rows.append([label, *map(cell, means), *([cell(statistics.mean(there), 2)] if len(tasks) > 1 else [])])
    return markdown(["", *tasks, *(["mean"] if len(tasks) > 1 else [])], rows)


def final_table(records: Sequence[Record]) -> str:
    """Mean, spread and worst seed of the default and of its orthogonal map."""
    rows = []
    for task in names(records, "task"):
        cells = [task]
        for label in ("default", "orthogonal map"):
            group = [r for r in records if r["task"] == task and r["label"] == label]
            scores = [r["p1"] for r in group]
            if len(scores) < 2:
                cells += ["-", "-"]
                continue
            good = sum(r["verdict"] == "succeeded" for r in group)
            cells.append(f"{statistics.mean(scores):.2f} ± {statistics.stdev(scores):.2f} ({min(scores):.2f})")
            cells.append(f"{good} of {len(group)}")
        group = [r for r in records if r["task"] == task]
        rows.append([*cells, f"{group[0]['forward_covered']:,}", cell(mean_of(group, "seconds", label="default"))])
    return markdown(["", "P@1, default", "succeeded", "P@1, `--map orthogonal`", "succeeded", "words", "seconds"], rows)


def hard_table(records: Sequence[Record]) -> str:
    """All seeds of each task, because one that is lost says more than the mean."""
    rows = []
    for task in names(records, "task"):
        group = sorted((r for r in records if r["task"] == task), key=lambda r: r["seed"])
        scores = [r["p1"] for r in group]
        said = sum(r["verdict"] == "succeeded" for r in group)
        lost = sum(not real(r) for r in group)
        seconds = cell(mean_of(group, "seconds"))
        each = " ".join(map(cell, scores))
        rows.append(
            [
                task,
                cell(statistics.mean(scores), 2),
                each,
                f"{lost} of {len(group)}",
                f"{said} of {len(group)}",
                seconds,
            ]
        )
    return markdown(["", "P@1, mean", "each seed", "below 10", "said succeeded", "seconds"], rows)


def coreset_table(records: Sequence[Record], key: str) -> str:
    """Kinds of coresets by sizes: mean over tasks and seeds."""
    rows = []
    for kind in CORESETS:
        rows.append([kind, *(cell(mean_of(records, key, label=f"{kind}, k={k}"), 2) for k in KS)])
    return markdown(["", *(f"k={k}" for k in KS)], rows)


def start_table(records: Sequence[Record]) -> str:
    """P@1 of the finished run for each start."""
    rows = []
    for task in names(records, "task"):
        found = [mean_of(records, "p1", task=task, label=start) for start in ("auto", "profiles", "frank-wolfe")]
        verdicts = [r["verdict"] for r in records if r["task"] == task and r["label"] == "auto"]
        rows.append([task, *map(cell, found), ", ".join(sorted(set(verdicts)))])
    return markdown(["", "auto", "profiles", "frank-wolfe", "verdict (auto)"], rows)


def robust_table(records: Sequence[Record], final: Sequence[Record]) -> str:
    """Damaged vectors against whole ones."""
    rows = []
    whole = [r["p1"] for r in final if r["task"] == "novels en-es" and r["label"] == "default"]
    if whole:
        rows.append(["as they are", cell(statistics.mean(whole), 2), cell(min(whole), 2), "-"])
    for label in names(records, "label"):
        group = [r for r in records if r["label"] == label]
        scores = [r["p1"] for r in group]
        good = sum(r["verdict"] == "succeeded" for r in group)
        rows.append([label, cell(statistics.mean(scores), 2), cell(min(scores), 2), f"{good} of {len(group)}"])
    return markdown(["novels en-es", "P@1, mean", "worst seed", "succeeded"], rows)


def real(record: Record) -> bool:
    """Whether an alignment is real: there was something to find, and it was found."""
    return bool(record["real"] and record.get("p1", 0.0) >= REAL_P1)


def verdict_table(records: Sequence[Record]) -> str:
    """What the verdict said about real alignments and others, and every case in which it was wrong."""
    said = {verdict: [r for r in records if r["verdict"] == verdict] for verdict in ("succeeded", "failed")}
    table = markdown(
        ["", "said succeeded", "said failed"],
        [
            ["real (P@1 of 10 or more)", *(str(sum(real(r) for r in group)) for group in said.values())],
            ["not real", *(str(sum(not real(r) for r in group)) for group in said.values())],
        ],
    )
    wrong = [r for r in records if (r["verdict"] == "succeeded") != real(r)]
    lines = [
        f"- {r['task']}, seed {r['seed']}: P@1 {cell(r.get('p1'))}, ratio {r['ratio']:.2f}, said {r['verdict']}"
        for r in wrong
    ]
    ratios = {kind: [r["ratio"] for r in records if real(r) is kind] for kind in (True, False)}
    between = (
        f"Ratios of real alignments: {min(ratios[True]):.2f} and more; of others: {max(ratios[False]):.2f} and less."
        if all(ratios.values())
        else ""
    )
    return "\n".join([f"{len(records)} runs, {len(wrong)} wrong. {between}", "", table, "", *lines])


def calibration_table(records: Sequence[Record]) -> str:
    """Expected calibration error of each task, and the bins of one of them."""
    tables = [markdown(["", "expected calibration error"], [[r["task"], cell(r["ece"], 3)] for r in records])]
    for r in records:
        if r["task"] == "novels en-es":
            rows = [[str(n), cell(confidence, 2), cell(share, 2)] for n, confidence, share in r["bins"]]
            tables.append(markdown(["novels en-es: words", "mean confidence", "right"], rows))
    return "\n\n".join(tables)


def tables(records: Sequence[Record]) -> str:
    """All tables as Markdown."""
    found = {suite: of_suite(records, suite) for suite in SUITES}
    judged = [r for r in records if r["suite"] in ("final", "robust", "starts", "verdict") and "verdict" in r]
    made: list[tuple[str, str, Callable[[], str]]] = [
        ("final", "The default on all pairs, five seeds", lambda: final_table(found["final"])),
        ("hard", "Distant languages and other origins, five seeds", lambda: hard_table(found["hard"])),
        ("orders", "Words in other orders", lambda: label_by_task(found["orders"])),
        ("robust", "Damaged vectors", lambda: robust_table(found["robust"], found["final"])),
        ("verdict", "The verdict", lambda: verdict_table(judged)),
        ("calibration", "Confidence of a pair", lambda: calibration_table(found["calibration"])),
        ("refinement", "The refinement (training split)", lambda: label_by_task(found["refinement"])),
        ("loop", "The loop, before refinement (training split)", lambda: label_by_task(found["loop"], "before")),
        ("loop", "The loop, after refinement (training split)", lambda: label_by_task(found["loop"], "after")),
        (
            "coresets",
            "Coresets, before refinement (training split)",
            lambda: coreset_table(found["coresets"], "before"),
        ),
        ("coresets", "Coresets, after refinement (training split)", lambda: coreset_table(found["coresets"], "after")),
        ("starts", "The start (training split)", lambda: start_table(found["starts"])),
    ]
    parts = [part for suite, title, table in made if found[suite] for part in (f"### {title}", table())]
    return "\n\n".join(parts) + "\n"


# --------------------------------------------------------------------------- command line


def main() -> None:
    """Run what is missing, keep every record, print the tables."""
    options = suite_options("benchmarks.ablation", __doc__, SUITES, RESULTS, BENCH)
    if not options.table:
        known = {(r["suite"], r["task"], r["label"], r["seed"]) for r in read_records(options.output)}
        for suite in options.suites or SUITES:
            for found in SUITES[suite](options.device, known):
                keep_record(found, options.output, SHOWN)
    made = tables(read_records(options.output))
    if options.table:
        put_tables(made, DOCUMENT)
    print(made)


if __name__ == "__main__":
    main()
