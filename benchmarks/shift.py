"""Detection by `qwp shift` of words that were moved on purpose.

    QWP_BENCH=FOLDER python -m benchmarks.shift --seeds 5

The two spaces are the vectors of the English novels with independent noise, the second one rotated. The variance of the
noise grows with the rank of a word, as in real vectors. The second vector of a moved word is mixed with that of another
word of similar frequency, or all with that of one word, by a share between 0.3 and 1.

Found are the words with q <= 0.05. FDR is the mean share of found words that were not moved; "any" counts the seeds
that found words although none was moved. Two baselines are shown. Plain Procrustes on all common words ranks by cosine,
as with gensim, and returns as many words as were moved. The same test without trimming uses all words for the map.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import qwp
from benchmarks.common import random_rotation
from benchmarks.data import bench_file
from benchmarks.records import markdown
from qwp import Embeddings
from qwp.shifts.compare import StableFit
from qwp.shifts.significance import NoiseModel, SignificanceTest, adjusted, covariates, fisher

Floats = npt.NDArray[np.float32]
FDR = 0.05


@dataclass(frozen=True)
class Condition:
    """One row of the table.

    moved: number of moved words. noise: its relative size. uneven: how much it differs between words of equal
    frequency. together: whether all words move towards one. controlled: whether a control pair is options.
    """

    name: str
    moved: int
    noise: float = 0.3
    uneven: float = 0.0
    together: bool = False
    controlled: bool = False


CONDITIONS = (
    Condition("nothing", 0),
    Condition("nothing, much noise", 0, 0.6),
    Condition("nothing, uneven noise", 0, uneven=0.3),
    Condition("10 words", 10),
    Condition("100 words, little noise", 100, 0.15),
    Condition("100 words", 100),
    Condition("100 words, much noise", 100, 0.6),
    Condition("100 words, uneven noise", 100, uneven=0.3),
    Condition("100 words, with a control", 100, controlled=True),
    Condition("2,000 words", 2000),
    Condition("4,000 words, all towards one", 4000, together=True),
)


@dataclass(frozen=True)
class Planted:
    """Two spaces, the m moved rows, and the share by which each moved."""

    then: Embeddings
    now: Embeddings
    rows: npt.NDArray[np.int64]
    shares: Floats


def plant(words: list[str], vectors: Floats, condition: Condition, seed: int) -> Planted:
    """Move some words of a space (n, d), rows by decreasing frequency."""
    rng = np.random.default_rng(seed)
    n, d = vectors.shape
    rows = rng.choice(n, condition.moved, replace=False)
    shares = rng.uniform(0.3, 1.0, condition.moved).astype(np.float32)
    others = (rows + rng.integers(1, 500, condition.moved)) % n
    if condition.together:
        others[:] = rng.integers(n)
    moved = vectors.copy()
    moved[rows] = (1 - shares[:, None]) * vectors[rows] + shares[:, None] * vectors[others]
    size = condition.noise * vectors.std() * np.sqrt((np.arange(n) + 100) / 5000)
    size = size * np.exp(condition.uneven * rng.standard_normal(n))
    rotation = random_rotation(d, rng)

    def noisy(space: Floats) -> Floats:
        return np.asarray(space + size[:, None] * rng.standard_normal(space.shape), dtype=np.float32)

    return Planted(Embeddings(words, noisy(vectors)), Embeddings(words, noisy(moved) @ rotation), rows, shares)


@dataclass(frozen=True)
class Counts:
    """Numbers of found words, of correctly found words, and of moved words."""

    found: int
    right: int
    moved: int

    @property
    def false_share(self) -> float:
        """Share of the found words that were not moved."""
        return (self.found - self.right) / self.found if self.found else 0.0

    @property
    def recall(self) -> float:
        """Share of the moved words that were found."""
        return self.right / self.moved if self.moved else 0.0


def _counts(found: set[str], planted: Planted) -> Counts:
    moved = {planted.then.words[row] for row in planted.rows.tolist()}
    return Counts(len(found), len(found & moved), len(moved))


def _plain(planted: Planted) -> tuple[Counts, Counts]:
    """Return the counts of both baselines: ranking by cosine, and the test without trimming."""
    x, y = planted.then.vectors, planted.now.vectors
    lengths = np.stack([np.linalg.norm(side, axis=1) for side in (x, y)], axis=1).astype(np.float64)
    noise = covariates(2.0 * np.arange(1, len(x) + 1, dtype=np.float64), lengths)
    fitted = StableFit(rounds=0).fit(x, y, noise)
    displaced = fisher(fitted.cosines)
    z = NoiseModel().expectation(displaced, noise, fitted.stable).z(displaced, noise)
    by_cosine = np.argsort(fitted.cosines)[: len(planted.rows)]
    tested = np.flatnonzero(adjusted(SignificanceTest().by_sign_flips(z)) <= FDR)
    first, second = ({planted.then.words[i] for i in rows.tolist()} for rows in (by_cosine, tested))
    return _counts(first, planted), _counts(second, planted)


def measure(words: list[str], vectors: Floats, condition: Condition, seeds: int) -> list[str]:
    """Return a row of the table."""
    ours, plain, untrimmed, ranked = [], [], [], []
    for seed in range(seeds):
        planted = plant(words, vectors, condition, seed)
        control = None
        if condition.controlled:
            still = plant(words, vectors, Condition("", 0, condition.noise), 1000 + seed)
            control = (still.then, still.now)
        found = qwp.shift(planted.then, planted.now, control=control)
        ours.append(_counts(set(found.moved(FDR)), planted))
        first = {found.words[row] for row in found.order()[: condition.moved].tolist()}
        ranked.append(_counts(first, planted))
        cosine, tested = _plain(planted)
        plain.append(cosine)
        untrimmed.append(tested)

    def mean(counts: list[Counts], of: Callable[[Counts], float]) -> str:
        return f"{100 * np.mean([of(each) for each in counts]):.1f}"

    some = condition.moved > 0
    any_found = f"any: {sum(each.found > 0 for each in ours)} of {seeds}"
    return [
        condition.name,
        f"{np.mean([each.found for each in ours]):.1f}",
        mean(ours, lambda each: each.false_share) if some else any_found,
        mean(ours, lambda each: each.recall) if some else "",
        mean(ranked, lambda each: each.recall) if some else "",
        mean(plain, lambda each: each.recall) if some else "",
        mean(untrimmed, lambda each: each.false_share) if some else "",
        mean(untrimmed, lambda each: each.recall) if some else "",
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.shift", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5, help="number of seeds of each condition")
    parser.add_argument("--only", default="", help="only conditions whose name contains this")
    options = parser.parse_args()
    with np.load(bench_file("novels/en.npz")) as file:
        words, vectors = file["words"].tolist(), file["vectors"].astype(np.float32)
    head = ("moved", "found", "FDR", "recall", "rank by z", "rank by cosine", "FDR, untrimmed", "recall, untrimmed")
    chosen = [condition for condition in CONDITIONS if options.only in condition.name]
    print(markdown(head, [measure(words, vectors, condition, options.seeds) for condition in chosen]))


if __name__ == "__main__":
    main()
