"""Which coresets and which steps serve the loop of the paper: learning rates, convergence, and the premise of qWP.

    QWP_BENCH=FOLDER python -m benchmarks.coreset_study [SUITE ...] --device cuda

`rates` and `convergence` run the loop of the paper from the Frank-Wolfe map, without refinement. They choose the
learning rates of the presets on pairs that no table of docs/results.md has: novels between Spanish, French and German,
scored on dictionaries joined over the English of the training split of MUSE. `gradients` compares the correspondences
of coresets with that of the whole spaces, and `distances` their transport distances; both choose nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np

from benchmarks import problems, records
from benchmarks.records import Record, Run
from qwp import Embeddings, arrays
from qwp.arrays import Array, Floats
from qwp.maps.procrustes import polar
from qwp.ot.batched_sinkhorn import inner_product_plans
from qwp.ot.coreset_source import Coresets, CoresetSource
from qwp.ot.costs import cost_matrix
from qwp.ot.transport import exact
from qwp.search.retrieval import retriever
from qwp.spaces import normalization
from qwp.stages.init.frank_wolfe import FrankWolfe
from qwp.stages.wasserstein_procrustes import StepFigures, WassersteinProcrustes, make_schedule

RESULTS = records.FOLDER / "coreset-study.jsonl"
KS = (200, 500, 1000, 2000, 3000)
RATES = (0.1, 0.2, 0.4, 0.8)
GRADIENT_RATES = (0.3, 1.0, 2.0)
STEPS = 5000
SEEDS = 2
EPSILON = 0.05
"""That of the paper."""
LENGTHS = {200: (1250, 2500, 5000, 15_000), 1000: (750, 1500, 3000, 6000), 2000: (750, 1500, 3000)}
"""Steps of the loop by the size of the coreset."""
DEVELOPMENT = ("es-fr", "fr-de", "de-es")
KMEANS, LLOYD = Coresets(kind="kmeans++"), Coresets(kind="lloyd", sphere_centroids=False)
SYSTEMS = {
    "random": Coresets(kind="random"),
    "k-means++, cell weights": replace(KMEANS, weight_power=1.0),
    "k-means++, roots of cell weights": replace(KMEANS, weight_power=0.5),
    "k-means++, equal weights": KMEANS,
    "Lloyd, cell weights": replace(LLOYD, weight_power=1.0),
    "Lloyd, equal weights": LLOYD,
    "Lloyd on the sphere, cell weights": replace(LLOYD, weight_power=1.0, sphere_centroids=True),
    "Lloyd on the sphere, equal weights": replace(LLOYD, sphere_centroids=True),
}
PAPER_SYSTEMS = (
    "random",
    "k-means++, cell weights",
    "k-means++, equal weights",
    *tuple(SYSTEMS)[4:5],
    *tuple(SYSTEMS)[-1:],
)
GRADIENT_SYSTEMS = ("random", "k-means++, equal weights", "Lloyd, equal weights")


# --------------------------------------------------------------------------- pairs


@dataclass(frozen=True)
class Spaces:
    """A pair on a device. x: (n, d), y: (m, d); start: (d, d) the Frank-Wolfe map; gold: target rows by source row."""

    name: str
    x: Array
    y: Array
    start: Array
    gold: dict[int, set[int]]

    def p1(self, w: Array) -> float:
        """Return P@1 by CSLS in percent over covered words."""
        mapped = self.x @ w
        rows = arrays.asarray(np.array(list(self.gold)), self.x)
        found, _ = retriever(self.y, mapped).top_k(arrays.namespace(mapped).take(mapped, rows, axis=0), 1)
        best = arrays.to_numpy(found)[:, 0].tolist()
        return 100 * float(np.mean([best[i] in golds for i, golds in enumerate(self.gold.values())]))

    def supervised(self) -> Array:
        """Return the Procrustes map of the gold pairs, which stands for the true map."""
        pairs = np.array([(i, j) for i, golds in self.gold.items() for j in sorted(golds)], dtype=np.int64)
        xp = arrays.namespace(self.x)
        src, tgt = (xp.take(v, arrays.asarray(pairs[:, s], v), axis=0) for s, v in enumerate((self.x, self.y)))
        return polar(src.T @ tgt)


def joined(pair: str) -> list[tuple[str, str]]:
    """Return the training dictionary of a pair; without English, the join of two over English."""
    src, tgt = pair.split("-")
    if "en" in (src, tgt):
        return list(problems.dictionary(problems.training(pair)).pairs)
    onwards: dict[str, list[str]] = {}
    for english, word in problems.dictionary(problems.training(f"en-{tgt}")).pairs:
        onwards.setdefault(english, []).append(word)
    first = problems.dictionary(problems.training(f"{src}-en")).pairs
    return list(dict.fromkeys((word, last) for word, english in first for last in onwards.get(english, ())))


@cache
def spaces(pair: str, device: str, words: int = 20_000) -> Spaces:
    """Load, prepare and initialize a pair of novels."""
    put = arrays.choose_device(device).put
    sides: list[Embeddings] = [problems.space(f"novels/{name}.npz", words) for name in pair.split("-")]
    x, y = (put(np.asarray(normalization.fit(np.asarray(s.vectors, np.float32))[1]), "float32") for s in sides)
    gold: dict[int, set[int]] = {}
    for src, tgt in joined(pair):
        if src in sides[0].index and tgt in sides[1].index:
            gold.setdefault(sides[0].index[src], set()).add(sides[1].index[tgt])
    return Spaces(pair, x, y, FrankWolfe(words=2500).solve(x, y), gold)


# --------------------------------------------------------------------------- the loop


def loop(coresets: Coresets, k: int, rate: float, **changes: Any) -> WassersteinProcrustes:
    """Return the loop of the paper with these coresets."""
    drawn = replace(coresets, size=k, bank_size=256, pairs_per_step=1)
    return replace(WassersteinProcrustes(), coresets=drawn, learning_rate=rate, final_rate=0.1, **changes)


def solved(
    pairs: Sequence[Spaces], seeds: Sequence[int], settings: WassersteinProcrustes, steps: int, snapshots: int = 1
) -> list[Record]:
    """Run the loop on pairs in lock-step. Returns the P@1 of each, and with snapshots those on the way."""
    k = settings.coresets.size or 0
    schedule = make_schedule("fixed", steps=steps, k=k, epochs=1, n_max=20_000)
    curves: list[list[tuple[int, float, float]]] = [[] for _ in pairs]
    objectives: list[list[float]] = [[] for _ in pairs]
    every = steps // snapshots

    def watch(figures: list[list[StepFigures]], moved: Array) -> None:
        done = figures[0][-1].step
        for i, each in enumerate(figures):
            objectives[i] += [step.objective for step in each]
        if snapshots > 1 and (done // every > len(curves[0]) or done == steps):
            for i, pair in enumerate(pairs):
                recent = objectives[i][-every:]
                curves[i].append((done, float(np.mean(recent)), pair.p1(moved[i, ...])))

    begin = time.perf_counter()
    xp = arrays.namespace(pairs[0].x)
    starts = xp.stack([pair.start for pair in pairs])
    xs, ys = [pair.x for pair in pairs], [pair.y for pair in pairs]
    maps = settings.solve_many(xs, ys, starts, schedule, seeds=list(seeds), callback=watch)
    arrays.synchronize(maps)
    seconds = (time.perf_counter() - begin) / len(pairs)
    return [
        {
            "p1": pair.p1(maps[i, ...]),
            "objective": float(np.mean(objectives[i][-steps // 10 :])),
            "seconds": seconds,
            **({"curve": curves[i]} if snapshots > 1 else {}),
        }
        for i, pair in enumerate(pairs)
    ]


Measure = Callable[[list[Spaces], list[int]], list[Record]]


def many(key: Record, names: Sequence[str], seeds: int, device: str, measure: Measure) -> Run:
    """Return a run of several pairs and seeds at once. Its record has a list of their records."""

    def run() -> Record:
        both = list(product(names, range(seeds)))
        found = measure([spaces(name, device) for name, _ in both], [seed for _, seed in both])
        return {"runs": [{"pair": name, "seed": seed, **one} for (name, seed), one in zip(both, found, strict=True)]}

    return Run(key, run)


def rate_suite(device: str) -> Iterator[Run]:
    """Run every system with every rate, and the plain gradient step of Grave et al."""
    for k, (name, coresets) in product(KS[:4], SYSTEMS.items()):
        updates = [("normalized", rate) for rate in (RATES if k <= 500 else RATES[1:])]
        if k == 200 and name in GRADIENT_SYSTEMS:
            updates += [("gradient", rate) for rate in GRADIENT_RATES]
        for update, rate in updates:
            if k > 500 and name not in PAPER_SYSTEMS:
                continue
            settings = loop(coresets, k, rate, update=update)
            key = {"suite": "rates", "system": name, "k": k, "update": update, "rate": rate, "steps": STEPS}
            yield many(
                key, DEVELOPMENT, SEEDS if k <= 500 else 1, device, partial(solved, settings=settings, steps=STEPS)
            )


def convergence_suite(device: str) -> Iterator[Run]:
    """Run the loop for longer and longer, with the score and the objective on the way."""
    for name, (k, lengths) in product(("random", "k-means++, equal weights"), LENGTHS.items()):
        for steps in lengths:
            settings = loop(SYSTEMS[name], k, 0.4)
            key = {"suite": "convergence", "system": name, "k": k, "rate": 0.4, "steps": steps}
            yield many(key, DEVELOPMENT, SEEDS, device, partial(solved, settings=settings, steps=steps, snapshots=10))


# --------------------------------------------------------------------------- the premise


def maps_of(pair: Spaces) -> dict[str, Array]:
    """Return the maps at which coresets are compared."""
    rng = np.random.default_rng(0)
    dim = pair.start.shape[0]
    rotation = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
    return {"true": pair.supervised(), "start": pair.start, "random": arrays.asarray(rotation, pair.start)}


def coresets_of(
    pair: Spaces, coresets: Coresets, k: int, draws: int
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Return coresets of both sides, each as points (draws, k, d) and weights (draws, k)."""
    settings = replace(coresets, size=k, bank_size=draws, pairs_per_step=1)
    source = CoresetSource(([pair.x], [pair.y]), settings, [0])
    tables = source.tables(k, 0, draws)
    numbers = arrays.asarray(np.arange(draws), pair.x, dtype="int64")
    return tables[0].get(numbers), tables[1].get(numbers)


def correspondence(src: Array, a: Array, tgt: Array, b: Array, w: Array, epsilon: float = EPSILON) -> Array:
    """Return src^T P tgt for the entropic plan P of squared distances under the map w, for B problems, (B, d, d)."""
    xp = arrays.namespace(w)
    scale = 2.0 / epsilon
    plans = inner_product_plans(src @ w, tgt, a, b, scale=scale, max_iter=200, tol=0.005, shift=scale)
    return xp.matrix_transpose(src) @ plans.apply(tgt)


def gradient_suite(device: str) -> Iterator[Run]:
    """Compare the correspondences of coresets with that of both whole spaces."""
    for k, name in product(KS, SYSTEMS):
        key = {"suite": "gradients", "pair": "es-fr", "system": name, "k": k, "epsilon": EPSILON}
        yield Run(key, partial(_gradients, "es-fr", SYSTEMS[name], k, device))
    for epsilon, name in product(
        (0.02, 0.1, 0.2), ("random", "Lloyd, cell weights", "Lloyd on the sphere, equal weights")
    ):
        key = {"suite": "gradients", "pair": "es-fr", "system": name, "k": 1000, "epsilon": epsilon}
        yield Run(key, partial(_gradients, "es-fr", SYSTEMS[name], 1000, device, epsilon=epsilon))


@cache
def _whole(pair_name: str, device: str) -> dict[str, Array]:
    pair = spaces(pair_name, device)
    xp = arrays.namespace(pair.x)
    a, b = (
        xp.full((1, v.shape[0]), 1.0 / v.shape[0], dtype=v.dtype, device=arrays.device(v)) for v in (pair.x, pair.y)
    )
    return {
        place: correspondence(pair.x[None, ...], a, pair.y[None, ...], b, w)[0, ...]
        for place, w in maps_of(pair).items()
    }


def _gradients(
    pair_name: str, coresets: Coresets, k: int, device: str, draws: int = 32, epsilon: float = EPSILON
) -> Record:
    """Return bias and noise of the direction of the correspondence, and the effective number of points.

    With unit directions g of draws, their mean m and that of the whole spaces f: bias |m/|m| - f|, noise the mean of
    |g - m|; both are lengths relative to the direction.
    """
    pair = spaces(pair_name, device)
    (src, a), (tgt, b) = coresets_of(pair, coresets, k, draws)
    found: Record = {"effective": float(np.mean(1.0 / np.sum(arrays.to_numpy(a).astype(float) ** 2, axis=1)))}
    for place, w in maps_of(pair).items():
        batches = [slice(i, i + 4) for i in range(0, draws, 4)]
        parts = [correspondence(src[i, ...], a[i, :], tgt[i, ...], b[i, :], w, epsilon) for i in batches]
        g = np.concatenate([arrays.to_numpy(part) for part in parts]).astype(np.float64)
        f = arrays.to_numpy(_whole(pair_name, device)[place]).astype(np.float64)
        found[place] = _compared(g, f, arrays.to_numpy(w).astype(np.float64))
    return found


def _compared(g: Floats, f: Floats, w: Floats) -> dict[str, float]:
    """Compare correspondences of draws (D, d, d) with that of the whole spaces, f (d, d), under the map w."""
    lengths = np.linalg.norm(g, axis=(1, 2))
    unit_g, unit_f = g / lengths[:, None, None], f / np.linalg.norm(f)
    mean = unit_g.mean(axis=0)
    turns, turn = _tangent(unit_g, w), _tangent(unit_f, w)
    return {
        "length": float(lengths.mean() / np.linalg.norm(f)),
        "bias": float(np.linalg.norm(mean / np.linalg.norm(mean) - unit_f)),
        "noise": float(np.linalg.norm(unit_g - mean, axis=(1, 2)).mean()),
        "cosine": float(np.mean([_cosine(each, turn) for each in turns])),
        "cosine_of_mean": _cosine(turns.mean(axis=0), turn),
    }


def _cosine(x: Floats, y: Floats) -> float:
    return float(np.sum(x * y) / np.linalg.norm(x) / np.linalg.norm(y))


def _tangent(g: Floats, w: Floats) -> Floats:
    """Return the part of g that turns the orthogonal map w: the skew part of w^T g."""
    turned: Floats = w.T @ g
    return (turned - np.swapaxes(turned, -1, -2)) / 2


DISTANCE_WORDS = 3000
DISTANCE_KS = (50, 100, 200, 500, 1000)


def distance_suite(device: str) -> Iterator[Run]:
    """Compare exact transport distances of coresets with that of all of the 3,000 most frequent words."""
    for k, name in product(DISTANCE_KS, SYSTEMS):
        key = {"suite": "distances", "pair": "es-fr", "system": name, "k": k}
        yield Run(key, partial(_distances, SYSTEMS[name], k))


@cache
def _exact_distances() -> dict[str, float]:
    pair = spaces("es-fr", "cpu", DISTANCE_WORDS)
    n, m = pair.x.shape[0], pair.y.shape[0]
    return {
        place: _distance(pair.x @ w, np.full(n, 1 / n), pair.y, np.full(m, 1 / m)) for place, w in maps_of(pair).items()
    }


def _distance(x: Any, a: Any, y: Any, b: Any) -> float:
    cost = cost_matrix(x, y, "sqeuclidean")
    plan = exact(cost, a, b).kernel
    return float(np.sqrt(np.sum(np.asarray(plan, dtype=np.float64) * np.asarray(cost))))


def _distances(coresets: Coresets, k: int, draws: int = 4) -> Record:
    pair = spaces("es-fr", "cpu", DISTANCE_WORDS)
    (src, a), (tgt, b) = coresets_of(pair, coresets, k, draws)
    return {
        "whole": _exact_distances(),
        "distances": {
            place: [_distance(src[i] @ w, a[i], tgt[i], b[i]) for i in range(draws)]
            for place, w in maps_of(pair).items()
        },
    }


SUITES = {
    "rates": rate_suite,
    "convergence": convergence_suite,
    "gradients": gradient_suite,
    "distances": distance_suite,
}


if __name__ == "__main__":
    records.main("benchmarks.coreset_study", __doc__, SUITES, RESULTS)
