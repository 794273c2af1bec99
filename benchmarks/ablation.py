"""Accuracy of the default method and of changes of its parts.

    QWP_BENCH=FOLDER python -m benchmarks.ablation [SUITE ...] --device cuda

The suites `refinement`, `loop`, `coresets` and `starts` choose settings. The training split of MUSE scores them in both
directions, also on vectors with fewer dimensions, another spectrum or another order. The other suites choose nothing;
the test split and the Zhang dictionaries score them.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np

import qwp
from benchmarks import problems, records
from benchmarks.data import NOVELS, TASKS, Task, mixed, novels
from benchmarks.problems import Change, Problem, dictionary, of_task, space
from benchmarks.records import Record, Run, cell, markdown, mean, select, share, values
from qwp import Alignment, Embeddings, Lexicon, arrays
from qwp.arrays import Array, Floats
from qwp.maps.procrustes import Maps
from qwp.methods import make_aligner
from qwp.results.lexicon import InducedPair
from qwp.stages.refinement import WEIGHTED, CslsRefinement

RESULTS = records.FOLDER / "ablation.jsonl"
KS = (200, 500, 1000, 2000, 3000)
BINS = 10
LEAST_P1 = 10.0
"""An alignment with a lower P@1 counts as a failure, whatever its verdict."""
STARTS = ("auto", "profiles", "frank-wolfe")
HARD = (
    ("novels/en", "novels/hu"),
    ("novels/en", "novels/pl"),
    ("novels/en", "mixed/es_sgns"),
    ("pretrained/en", "pretrained/ru"),
    ("pretrained/en", "pretrained/ja"),
)


# --------------------------------------------------------------------------- fitting and scoring


def reversed_alignment(alignment: Alignment) -> Alignment:
    """Return the alignment from target to source."""
    identity = np.eye(alignment.src.dim, dtype=alignment.src_map.dtype)
    back_map = identity if alignment.tgt_map is None else alignment.tgt_map
    src_side = replace(alignment.tgt_side, map=back_map)
    # Without an origin: its sidecar files are those of the other direction.
    return replace(alignment, src_side=src_side, tgt_side=alignment.src_side, origin=None)


def p1(alignment: Alignment, problem: Problem, device: str) -> dict[str, float]:
    """Score the directions with gold: P@1 by CSLS in percent over covered words, and its mean as "p1"."""
    found: dict[str, float] = {}
    for way, gold in (("forward", problem.forward), ("backward", problem.backward)):
        if gold is None:
            continue
        one_way = alignment if way == "forward" else reversed_alignment(alignment)
        scores = qwp.evaluate(one_way.on(device), dictionary(gold), bootstrap=0)
        found[way] = 100 * scores.scores["csls"].covered["P@1"].value
        found[f"{way}_covered"] = scores.coverage.covered_source_words
        if way == "forward":
            for name, retrieval, measure in (
                ("csls_mrr", "csls", "MRR"),
                ("nn_p1", "nn", "P@1"),
                ("nn_mrr", "nn", "MRR"),
            ):
                found[name] = 100 * scores.scores[retrieval].covered[measure].value
    ways = [found[way] for way in ("forward", "backward") if way in found]
    return {**found, "p1": statistics.mean(ways)} if ways else found


def fitted(problem: Problem, seed: int, device: str, options: dict[str, Any]) -> Alignment:
    """Align a problem with the default method and these options."""
    return make_aligner("qwp", seed=seed, device=device, **options).fit(*problem.load()).alignment_


def key(suite: str, problem: Problem, label: str, seed: int) -> Record:
    """Return the fields that identify a run."""
    return {"suite": suite, "task": problem.name, "label": label, "seed": seed}


def timed(problem: Problem, seed: int, device: str, options: dict[str, Any]) -> Record:
    """Fit, score and judge a problem; the time is that of the fit."""
    problem.load()
    begin = time.perf_counter()
    alignment = fitted(problem, seed, device, options)
    seconds = time.perf_counter() - begin
    return {
        "seconds": seconds,
        **p1(alignment, problem, device),
        "verdict": alignment.quality.verdict,
        "ratio": alignment.quality.ratio,
        "real": problem.related,
        "stages": alignment.provenance.seconds,
        "start_used": alignment.provenance.initializer,
        "order": alignment.provenance.order,
        "device": alignment.provenance.backend,
        "version": qwp.__version__,
    }


def timed_run(
    suite: str, problem: Problem, seed: int, device: str, options: dict[str, Any] | None = None, label: str = "default"
) -> Run:
    """Return a run that fits, scores and judges a problem."""
    return Run(key(suite, problem, label, seed), partial(timed, problem, seed, device, options or {}))


# --------------------------------------------------------------------------- suites that choose settings


def refinements() -> dict[str, CslsRefinement]:
    """Return the default refinement, changes of one of its parameters, and the plain refinement."""
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
    """Return both sides (n, d) and (m, d) as the method prepares them."""
    chosen = arrays.choose_device(device)
    src, tgt = (
        chosen.put(
            arrays.to_numpy(side.normalization.apply(np.asarray(side.space.vectors, dtype=np.float32))), "float32"
        )
        for side in (alignment.src_side, alignment.tgt_side)
    )
    return src, tgt


def refined(alignment: Alignment, sides: tuple[Array, Array], settings: CslsRefinement) -> Alignment:
    """Refine the map of an alignment."""
    maps = settings.refine(*sides, Maps(arrays.asarray(alignment.src_map, sides[0])))
    tgt_map = None if maps.tgt is None else arrays.to_numpy(maps.tgt)
    return replace(
        alignment,
        src_side=replace(alignment.src_side, map=arrays.to_numpy(maps.src)),
        tgt_side=replace(alignment.tgt_side, map=tgt_map),
    )


def refinement_suite(device: str) -> Iterator[Run]:
    """Refine one map of the loop in every way."""
    for problem, seed in product(problems.development_problems()[::2], range(2)):
        unrefined = cache(partial(_unrefined, problem, seed, device))
        for label, settings in refinements().items():
            yield Run(
                key("refinement", problem, label, seed), partial(_refinement, problem, unrefined, settings, device)
            )


def _unrefined(problem: Problem, seed: int, device: str) -> tuple[Alignment, tuple[Array, Array]]:
    alignment = fitted(problem, seed, device, {"refine": 0})
    return alignment, normalised(alignment, device)


def _refinement(
    problem: Problem,
    unrefined: Callable[[], tuple[Alignment, tuple[Array, Array]]],
    settings: CslsRefinement,
    device: str,
) -> Record:
    alignment, sides = unrefined()
    begin = time.perf_counter()
    result = refined(alignment, sides, settings)
    seconds = time.perf_counter() - begin
    return {**p1(result, problem, device), "seconds": seconds}


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
CORESETS: dict[str, dict[str, Any]] = {
    "random": {"coreset": "random"},
    "kmeans++, equal weights": {"coreset": "kmeans++"},
    "kmeans++, weights to 0.5": {"coreset": "kmeans++", "weight_power": 0.5},
    "kmeans++, the paper's weights": {"coreset": "kmeans++", "weight_power": 1.0},
    "lloyd on the sphere, equal weights": {"coreset": "lloyd"},
    "lloyd, the paper's means and weights": {"coreset": "lloyd", "weight_power": 1.0, "sphere_centroids": False},
}


def before_and_after(problem: Problem, seed: int, device: str, options: dict[str, Any]) -> Record:
    """Run the loop and score its map before and after the default refinement."""
    loop = fitted(problem, seed, device, {**options, "refine": 0})
    after = refined(loop, normalised(loop, device), WEIGHTED)
    return {
        "before": p1(loop, problem, device)["p1"],
        "after": p1(after, problem, device)["p1"],
        "seconds": sum(loop.provenance.seconds.values()),
    }


def loop_suite(device: str) -> Iterator[Run]:
    """Change one parameter of the loop."""
    problem = problems.development_problems()[0]
    for (label, options), seed in product(LOOPS.items(), range(2)):
        yield Run(key("loop", problem, label, seed), partial(before_and_after, problem, seed, device, options))


def coreset_suite(device: str) -> Iterator[Run]:
    """Compare kinds and sizes of coresets."""
    both = (problems.development_problems()[0], problems.demo_problem())
    for problem, (kind, options), k, seed in product(both, CORESETS.items(), KS, range(2)):
        settings = {**options, "coreset_size": k}
        measure = partial(before_and_after, problem, seed, device, settings)
        yield Run(key("coresets", problem, f"{kind}, k={k}", seed), measure)


def start_suite(device: str) -> Iterator[Run]:
    """Compare initializers on pairs that match well and on pairs that do not."""
    for problem, start in product((*problems.development_problems(), *problems.odd_problems()), STARTS):
        yield timed_run("starts", problem, 0, device, {"start": start}, start)


# --------------------------------------------------------------------------- suites that choose nothing


def final_suite(device: str) -> Iterator[Run]:
    """Run the default method on all tasks with five seeds; the orthogonal map on three tasks."""
    for task, seed in product(TASKS, range(5)):
        yield timed_run("final", of_task(task), seed, device)
    for pair, seed in product(NOVELS[::2], range(5)):
        yield timed_run("final", of_task(novels(pair)), seed, device, {"map": "orthogonal"}, "orthogonal map")


def hard_suite(device: str) -> Iterator[Run]:
    """Align distant languages and vectors of different origin without supervision, five seeds."""
    for src, tgt in HARD:
        for task, seed in product((mixed(src, tgt), mixed(tgt, src)), range(5)):
            yield timed_run("hard", of_task(task), seed, device, {"start": "unsupervised"})


def order_suite(device: str) -> Iterator[Run]:
    """Align the novels with their words in other orders, three seeds."""
    for seed, pair, (label, change) in product(range(3), NOVELS, problems.ORDERS.items()):
        task = novels(pair)
        problem = replace(of_task(task), load=partial(_changed, task, change))
        yield timed_run("orders", problem, seed, device, label=label)


def robust_suite(device: str) -> Iterator[Run]:
    """Align novels en-es with damaged target vectors, five seeds."""
    task, noise = novels("en-es"), 0.1
    gold, tgt = dictionary(task.lexicon), space(task.tgt)
    for seed in range(5):
        lost = {tgt.words[row] for row in problems.noisy_rows(tgt, noise, seed)}
        undamaged = Lexicon(tuple(pair for pair in gold if pair[1] not in lost))
        damage = partial(_damaged, partial(problems.with_noise, share=noise, seed=seed))
        shuffle = partial(_damaged, partial(problems.shuffled, seed=seed))
        for label, change, lexicon in (
            ("10 % of the target vectors are noise", damage, gold),
            ("the same, words with an undamaged answer", damage, undamaged),
            ("target vocabulary shuffled", shuffle, gold),
        ):
            problem = Problem(task.name, partial(_changed, task, change), lexicon)
            yield timed_run("robust", problem, seed, device, label=label)


def _changed(task: Task, change: Change) -> tuple[Embeddings, Embeddings]:
    return change(space(task.src), space(task.tgt))


def _damaged(
    change: Callable[[Embeddings], Embeddings], src: Embeddings, tgt: Embeddings
) -> tuple[Embeddings, Embeddings]:
    return src, change(tgt)


def verdict_suite(device: str) -> Iterator[Run]:
    """Judge unrelated spaces, small vocabularies and runs from the identity."""
    for seed in range(2):
        for problem in (*problems.unrelated_problems(seed), *problems.small_problems()):
            yield timed_run("verdict", problem, seed, device)
        for pair in NOVELS[::2]:
            yield timed_run(
                "verdict", problems.development(pair, "from the identity"), seed, device, {"start": "identity"}
            )


def calibration_suite(device: str) -> Iterator[Run]:
    """Compare the confidence of the best translation of every covered test word with whether it is right."""
    for problem in map(of_task, TASKS):
        yield Run(key("calibration", problem, "default", 0), partial(_calibration, problem, device))


def _calibration(problem: Problem, device: str) -> Record:
    assert problem.forward is not None, "a task has a dictionary"
    alignment = fitted(problem, 0, device, {})
    _, pairs, right = judged_pairs(alignment.on(device), dictionary(problem.forward))
    error, bins = calibration_error(np.array([pair.confidence for pair in pairs]), right)
    return {"bins": bins, "ece": error}


def judged_pairs(alignment: Alignment, lexicon: Lexicon) -> tuple[list[int], list[InducedPair], Floats]:
    """Return rows (n) of the covered source words, their best translations, and whether each is right (n,)."""
    induced, wanted = alignment.induce(mutual_only=False), lexicon.targets
    rows = [row for row, p in enumerate(induced) if any(target in alignment.tgt for target in wanted.get(p.src, ()))]
    pairs = [induced[row] for row in rows]
    return rows, pairs, np.array([p.tgt in wanted[p.src] for p in pairs], dtype=np.float64)


def calibration_error(confidences: Floats, right: Floats) -> tuple[float, list[list[float]]]:
    """Return the expected calibration error of confidences (n,) and its bins.

    A bin is the number of its words, their mean confidence, and the share that is right.
    """
    which = np.minimum((confidences * BINS).astype(int), BINS - 1)
    bins = [
        [int((which == i).sum()), float(confidences[which == i].mean()), float(right[which == i].mean())]
        for i in range(BINS)
        if (which == i).any()
    ]
    return sum(n * abs(confidence - part) for n, confidence, part in bins) / len(confidences), bins


SUITES: dict[str, Callable[[str], Iterator[Run]]] = {
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


def by_task(found: Sequence[Record], figure: str = "p1") -> str:
    """Return labels by tasks: mean over the seeds, and the mean of the tasks."""
    tasks = values(found, "task")
    several = len(tasks) > 1
    rows = []
    for label in values(found, "label"):
        means = [mean(select(found, task=task, label=label), figure) for task in tasks]
        known = [each for each in means if each is not None]
        rows.append([label, *map(cell, means), *([cell(statistics.mean(known), 2)] if several else [])])
    return markdown(["", *tasks, *(["mean"] if several else [])], rows)


def final_table(found: Sequence[Record]) -> str:
    """Return mean, standard deviation and worst seed of the default method and of its orthogonal map."""
    rows = []
    for task in values(found, "task"):
        cells = [task]
        for label in ("default", "orthogonal map"):
            group = select(found, task=task, label=label)
            scores = [r["p1"] for r in group]
            if len(scores) < 2:
                cells += ["-", "-"]
                continue
            cells.append(f"{statistics.mean(scores):.2f} ± {statistics.stdev(scores):.2f} ({min(scores):.2f})")
            cells.append(share(group, "succeeded"))
        default = select(found, task=task, label="default")
        rows.append([*cells, f"{default[0]['forward_covered']:,}", cell(mean(default, "seconds"))])
    return markdown(["", "P@1, default", "succeeded", "P@1, `--map orthogonal`", "succeeded", "words", "seconds"], rows)


def hard_table(found: Sequence[Record]) -> str:
    """Return the scores of every seed."""
    rows = []
    for task in values(found, "task"):
        group = sorted(select(found, task=task), key=lambda r: int(r["seed"]))
        failed = f"{sum(not succeeded(r) for r in group)} of {len(group)}"
        each = " ".join(cell(r["p1"]) for r in group)
        figures = [cell(mean(group, "p1"), 2), each, failed, share(group, "succeeded"), cell(mean(group, "seconds"))]
        rows.append([task, *figures])
    return markdown(["", "P@1, mean", "each seed", "below 10", "verdict succeeded", "seconds"], rows)


def coreset_table(found: Sequence[Record], figure: str) -> str:
    """Return kinds of coresets by sizes: mean over tasks and seeds."""
    rows = [[kind, *(cell(mean(select(found, label=f"{kind}, k={k}"), figure), 2) for k in KS)] for kind in CORESETS]
    return markdown(["", *(f"k={k}" for k in KS)], rows)


def start_table(found: Sequence[Record]) -> str:
    """Return P@1 of the finished run for each start."""
    rows = []
    for task in values(found, "task"):
        scores = [mean(select(found, task=task, label=start), "p1") for start in STARTS]
        verdicts = sorted(set(values(select(found, task=task, label="auto"), "verdict")))
        rows.append([task, *map(cell, scores), ", ".join(verdicts)])
    return markdown(["", *STARTS, "verdict (auto)"], rows)


def robust_table(found: Sequence[Record], final: Sequence[Record]) -> str:
    """Compare damaged vectors with undamaged ones."""
    rows = []
    if whole := select(final, task="novels en-es", label="default"):
        rows.append(["undamaged", cell(mean(whole, "p1"), 2), cell(min(r["p1"] for r in whole), 2), "-"])
    for label in values(found, "label"):
        group = select(found, label=label)
        worst = min(r["p1"] for r in group)
        rows.append([label, cell(mean(group, "p1"), 2), cell(worst, 2), share(group, "succeeded")])
    return markdown(["novels en-es", "P@1, mean", "worst seed", "succeeded"], rows)


def succeeded(record: Record) -> bool:
    """Return whether an alignment succeeded by the gold: the spaces are related and P@1 is high enough."""
    return bool(record["real"] and record.get("p1", 0.0) >= LEAST_P1)


def verdict_table(found: Sequence[Record]) -> str:
    """Compare the verdicts with the gold, and list every wrong verdict."""
    groups = [select(found, verdict=verdict) for verdict in ("succeeded", "failed")]
    counts = [[sum(succeeded(r) is kind for r in group) for group in groups] for kind in (True, False)]
    names = ("P@1 of 10 or more", "P@1 below 10, or unrelated spaces")
    table = markdown(
        ["", "verdict succeeded", "verdict failed"],
        [[name, *map(str, row)] for name, row in zip(names, counts, strict=True)],
    )
    wrong = [r for r in found if (r["verdict"] == "succeeded") != succeeded(r)]
    lines = [
        f"- {r['task']}, seed {r['seed']}: P@1 {cell(r.get('p1'))}, ratio {r['ratio']:.2f}, verdict {r['verdict']}"
        for r in wrong
    ]
    good, bad = ([r["ratio"] for r in found if succeeded(r) is kind] for kind in (True, False))
    between = (
        f" Lowest ratio with a P@1 of 10 or more: {min(good):.2f}; highest of the others: {max(bad):.2f}."
        if good and bad
        else ""
    )
    return "\n".join([f"{len(found)} runs, {len(wrong)} wrong.{between}", "", table, "", *lines]).rstrip()


def calibration_table(found: Sequence[Record]) -> str:
    """Return the expected calibration error of each task, and the bins of one of them."""
    tables = [markdown(["", "expected calibration error"], [[r["task"], cell(r["ece"], 3)] for r in found])]
    for r in select(found, task="novels en-es"):
        rows = [[str(n), cell(confidence, 2), cell(part, 2)] for n, confidence, part in r["bins"]]
        tables.append(markdown(["novels en-es: words", "mean confidence", "right"], rows))
    return "\n\n".join(tables)


def tables(found: Sequence[Record]) -> str:
    """Return all tables as Markdown."""
    suite = {name: select(found, suite=name) for name in SUITES}
    judged = [r for r in found if r["suite"] in ("final", "robust", "starts", "verdict") and "verdict" in r]
    made: list[tuple[str, str, Callable[[], str]]] = [
        ("final", "The default on all pairs, five seeds", lambda: final_table(suite["final"])),
        ("hard", "Distant languages and other origins, five seeds", lambda: hard_table(suite["hard"])),
        ("orders", "Words in other orders", lambda: by_task(suite["orders"])),
        ("robust", "Damaged vectors", lambda: robust_table(suite["robust"], suite["final"])),
        ("verdict", "The verdict", lambda: verdict_table(judged)),
        ("calibration", "Confidence of a pair", lambda: calibration_table(suite["calibration"])),
        ("refinement", "The refinement (training split)", lambda: by_task(suite["refinement"])),
        ("loop", "The loop, before refinement (training split)", lambda: by_task(suite["loop"], "before")),
        ("loop", "The loop, after refinement (training split)", lambda: by_task(suite["loop"], "after")),
        (
            "coresets",
            "Coresets, before refinement (training split)",
            lambda: coreset_table(suite["coresets"], "before"),
        ),
        ("coresets", "Coresets, after refinement (training split)", lambda: coreset_table(suite["coresets"], "after")),
        ("starts", "The start (training split)", lambda: start_table(suite["starts"])),
    ]
    return "\n\n".join(part for name, title, table in made if suite[name] for part in (f"### {title}", table()))


if __name__ == "__main__":
    records.main("benchmarks.ablation", __doc__, SUITES, RESULTS)
