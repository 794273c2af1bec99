"""Words that were moved on purpose, and how many `qwp shift` finds. `python -m benchmarks.shift --help`.

    python -m benchmarks.shift --seeds 5

The vectors of the English novels, twice, each time with noise of its own, the second time rotated. The variance of the
noise grows with the rank of a word, as that of real vectors does. Some words are moved before: their second vector is
mixed with that of another word of about the same frequency, or all with that of one word, by a share drawn from 0.3 to
1. Found are the words with q at most 0.05; FDR is the mean over seeds of the share of them that were not moved (0 where
none is found), and "any" how many seeds found any where none was moved. Beside it what plain Procrustes on all common
words and a ranking by cosine, as with gensim, has among its first words, as many as were moved; and the same test
without leaving out words that moved. The data is not part of the package: it is read from $QWP_BENCH or
../shared/bench.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import qwp
from benchmarks.data import BENCH
from qwp import Embeddings
from qwp.shifts.compare import stable_map
from qwp.shifts.significance import Expectation, adjusted, by_sign_flips, fisher, traits

Floats = npt.NDArray[np.float32]
FDR = 0.05


@dataclass(frozen=True)
class Condition:
    """moved: how many words; noise: its size; uneven: how much it differs between words of one frequency.

    together: whether all words move towards one; controlled: whether two more spaces show what noise does.
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
    """Two spaces, and the rows that were moved, with how far each was: (m,) both."""

    then: Embeddings
    now: Embeddings
    rows: npt.NDArray[np.int64]
    shares: Floats


def plant(words: list[str], vectors: Floats, condition: Condition, seed: int) -> Planted:
    """Move some words of a space (n, d), most frequent first."""
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
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0].astype(np.float32)

    def noisy(space: Floats) -> Floats:
        return np.asarray(space + size[:, None] * rng.standard_normal(space.shape), dtype=np.float32)

    return Planted(Embeddings(words, noisy(vectors)), Embeddings(words, noisy(moved) @ turn), rows, shares)


@dataclass(frozen=True)
class Counts:
    """What one way of finding found: how many, how many of them rightly."""

    found: int
    right: int
    moved: int

    @property
    def false_share(self) -> float:
        return (self.found - self.right) / self.found if self.found else 0.0

    @property
    def recall(self) -> float:
        return self.right / self.moved if self.moved else 0.0


def _counts(found: set[str], planted: Planted) -> Counts:
    moved = {planted.then.words[row] for row in planted.rows.tolist()}
    return Counts(len(found), len(found & moved), len(moved))


def _plain(planted: Planted) -> tuple[Counts, Counts]:
    """The first words by cosine after Procrustes on all words, and those that the test finds with that map."""
    x, y = planted.then.vectors, planted.now.vectors
    lengths = np.stack([np.linalg.norm(side, axis=1) for side in (x, y)], axis=1).astype(np.float64)
    noise = traits(2.0 * np.arange(1, len(x) + 1, dtype=np.float64), lengths)
    fitted = stable_map(x, y, noise, trimmed=False)
    displaced = fisher(fitted.cosines)
    z = Expectation.of(displaced, noise, fitted.stable).z(displaced, noise)
    by_cosine = np.argsort(fitted.cosines)[: len(planted.rows)]
    tested = np.flatnonzero(adjusted(by_sign_flips(z)) <= FDR)
    first, second = ({planted.then.words[i] for i in rows.tolist()} for rows in (by_cosine, tested))
    return _counts(first, planted), _counts(second, planted)


def measure(words: list[str], vectors: Floats, condition: Condition, seeds: int) -> list[str]:
    """One line of the table."""
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
    """Print the table, line by line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=5, help="how often each condition is made")
    parser.add_argument("--only", default="", help="conditions with this in their name")
    given = parser.parse_args()
    with np.load(BENCH / "novels" / "en.npz") as file:
        words, vectors = file["words"].tolist(), file["vectors"].astype(np.float32)
    head = (
        "moved",
        "found",
        "FDR",
        "recall",
        "rank by z",
        "rank by cosine",
        "FDR, untrimmed",
        "recall, untrimmed",
    )
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for condition in CONDITIONS:
        if given.only in condition.name:
            print("| " + " | ".join(measure(words, vectors, condition, given.seeds)) + " |", flush=True)


if __name__ == "__main__":
    main()
