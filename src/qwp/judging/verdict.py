"""Did the alignment find something real? Judged without any dictionary.

A map refitted on its own translations always looks consistent with itself, and so does a map of chance treated the same
way. So the map is judged on words it was not refitted on: two plain refinement rounds on every other word of a side,
then the mean CSLS of the mutual pairs among the remaining ones, from both sides. That is compared with what maps of
chance reach on the same spaces (`chance`), by its ratio to their mean and by their deviation. docs/accuracy.md has the
ratios of many runs, real ones and others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from qwp import arrays
from qwp.arrays import Array
from qwp.judging.chance import (
    QUICK,
    SAME,
    THOROUGH,
    maps_of_chance,
    random_rotation,
    share_alike,
    translations,
)
from qwp.maps.procrustes import Maps
from qwp.maps.refinement import RefineSettings, induce_pairs, refine

SUCCEEDED, WEAK, FAILED, UNDECIDED = "succeeded", "weak", "failed", "undecided"
VERDICTS = (SUCCEEDED, WEAK, FAILED, UNDECIDED)

# Above everything that unrelated spaces were seen to reach (1.02), and below real maps of few right words.
RATIO_NEEDED = 1.08
# Deviations of chance that are needed as well; the relative deviation is this at least, for few runs say little of it.
DEVIATIONS_NEEDED, _LEAST_DEVIATION = 4.0, 0.01
# Below it maps were seen to have less than about a fifth of their translations right.
STRONG_RATIO = 1.3
FEWEST_WORDS = 200
MOST_WORDS = 2500
_JUDGEMENT_ROUNDS = 2
# Quick runs of chance, which decide where the ratio to them is clear; thorough ones in their place where it is not; and
# more of these where the ratio lies within some bounds of what is needed.
_QUICK_RUNS, _CLEAR = 2, 1.5
_THOROUGH_RUNS, _MORE_RUNS = 3, 5
_NEAR = (0.95, 1.1)
# What a random rotation goes through where starts are compared with each other: cheap, and easy to beat.
QUICK_YARDSTICK = RefineSettings(refine=5, refine_words=0)


@dataclass(frozen=True)
class Agreement:
    """Mutual CSLS pairs: how many, which share of the words, and their mean CSLS."""

    pairs: int
    share: float
    mean_csls: float


@dataclass(frozen=True)
class Quality:
    """Unsupervised figures of a fitted map, and what they mean.

    fitted, random: mutual pairs under the map and under a random rotation. held_out, held_out_random: the same on words
    that took no part in refitting, from both sides, under the map and under maps of chance (their mean). ratio:
    held_out.mean_csls / held_out_random.mean_csls. n_words: words judged.

    runs: maps of chance; thorough: whether they went through the long loop, which they do where the short one leaves a
    doubt. found_again: how many of them led to the map itself; what their random rotations reach alone
    counts in their place. deviation: of the mean CSLS of chance, relative to it. z: by how many of these deviations the
    map is above chance. Results of version 0.1 have one run and neither of the last two.
    """

    verdict: str
    explanation: str
    ratio: float
    n_words: int
    fitted: Agreement
    random: Agreement
    held_out: Agreement
    held_out_random: Agreement
    runs: int = 1
    thorough: bool = True
    found_again: int = 0
    deviation: float | None = None
    z: float | None = None

    @property
    def failed(self) -> bool:
        """True when the figures say that the alignment is not real."""
        return self.verdict == FAILED

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Quality:
        """The inverse of `to_dict`."""
        agreements = ("fitted", "random", "held_out", "held_out_random")
        fields: dict[str, Any] = {k: Agreement(**v) if k in agreements else v for k, v in values.items()}
        return cls(**fields)


def agreement(x: Array, y: Array, maps: Maps, csls_k: int) -> Agreement:
    """Mutual pairs of x (n, d) and y (m, d) under the maps."""
    xp = arrays.namespace(x)
    pairs = induce_pairs(x, y, maps, csls_k=csls_k)
    mean = float(xp.mean(pairs.scores)) if len(pairs) else 0.0
    return Agreement(len(pairs), len(pairs) / min(x.shape[0], y.shape[0]), mean)


def held_out(x: Array, y: Array, maps: Maps, csls_k: int) -> Agreement:
    """Mutual pairs of every other word of x (n, d) with y (m, d), after a refit on the remaining ones; n >= 2."""
    rounds = RefineSettings(refine=_JUDGEMENT_ROUNDS, csls_k=csls_k, refine_words=0)
    return agreement(x[1::2, :], y, refine(x[::2, :], y, maps, rounds), csls_k)


def times_random(found: Agreement, random: Agreement) -> float:
    """How many times the mean CSLS of a random rotation is reached; zero where that says nothing."""
    ratio = found.mean_csls / random.mean_csls if random.mean_csls > 0 else 0.0
    return ratio if math.isfinite(ratio) else 0.0


def from_both_sides(x: Array, y: Array, maps: Maps, csls_k: int) -> tuple[Agreement, Agreement]:
    """`held_out` as it is, and with the sides exchanged."""
    identity = arrays.namespace(x).eye(x.shape[1], dtype=x.dtype, device=arrays.device(x))
    turned = Maps(identity if maps.tgt is None else maps.tgt, maps.src)
    return held_out(x, y, maps, csls_k), held_out(y, x, turned, csls_k)


def both_ways(x: Array, y: Array, maps: Maps, csls_k: int) -> Agreement:
    """`from_both_sides` in one: pairs of both, means of the rest."""
    return _mean(from_both_sides(x, y, maps, csls_k), pairs=sum)


def _mean(found: Sequence[Agreement], pairs: Any = np.mean) -> Agreement:
    """Means of several agreements; `pairs` says what to do with the numbers of pairs."""
    shares, means = [one.share for one in found], [one.mean_csls for one in found]
    return Agreement(round(pairs([one.pairs for one in found])), float(np.mean(shares)), float(np.mean(means)))


def judge(x: Array, y: Array, maps: Maps, *, seed: int = 0, csls_k: int = 10) -> Quality:
    """The verdict on maps. x: (n, d), y: (m, d) normalised rows, most frequent first.

    The words held out are always judged under an orthogonal map that was refitted on the others, so that every kind of
    map is measured alike.
    """
    n = min(x.shape[0], y.shape[0], MOST_WORDS)
    x, y = x[:n, :], y[:n, :]
    fitted = agreement(x, y, maps, csls_k)
    random = agreement(x, y, Maps(random_rotation(x.shape[1], seed, x)), csls_k)
    if n < 2:
        return _decide(n, fitted, random, fitted, _Chance([random], 0))
    held = both_ways(x, y, maps, csls_k)
    chance = _Chance([], 0, thorough=False)
    chance.add(x, y, maps, range(_QUICK_RUNS), seed=seed, csls_k=csls_k)
    if times_random(held, chance.mean) < _CLEAR and n >= FEWEST_WORDS:
        chance = _Chance([], 0)
        chance.add(x, y, maps, range(_THOROUGH_RUNS), seed=seed, csls_k=csls_k)
        low, high = (bound * RATIO_NEEDED for bound in _NEAR)
        if low <= times_random(held, chance.mean) <= high:
            numbers = range(_THOROUGH_RUNS, _THOROUGH_RUNS + _MORE_RUNS)
            chance.add(x, y, maps, numbers, seed=seed, csls_k=csls_k)
    return _decide(n, fitted, random, held, chance)


@dataclass
class _Chance:
    """What maps of chance reached on held-out words, and how many of them were the judged map itself."""

    reached: list[Agreement]
    found_again: int
    thorough: bool = True

    @property
    def mean(self) -> Agreement:
        return _mean(self.reached)

    @property
    def deviation(self) -> float:
        """Of the mean CSLS, relative to it."""
        means = [one.mean_csls for one in self.reached]
        if len(means) < 2 or self.mean.mean_csls <= 0:
            return _LEAST_DEVIATION
        return max(float(np.std(means, ddof=1)) / self.mean.mean_csls, _LEAST_DEVIATION)

    def add(self, x: Array, y: Array, maps: Maps, numbers: range, *, seed: int, csls_k: int) -> None:
        """More runs. One that ends at the judged map is not by chance: what its rotation reaches alone counts."""
        trial = THOROUGH if self.thorough else QUICK
        judged = translations(x, y, maps, csls_k=csls_k)
        runs = maps_of_chance(x, y, numbers, seed=seed, csls_k=csls_k, trial=trial)
        for number, found in zip(numbers, runs, strict=True):
            lost = found
            if share_alike(judged, translations(x, y, found, csls_k=csls_k)) >= SAME:
                self.found_again += 1
                lost = Maps(random_rotation(x.shape[1], seed, x, number))
            self.reached.append(both_ways(x, y, lost, csls_k))


def _decide(n: int, fitted: Agreement, random: Agreement, held: Agreement, chance: _Chance) -> Quality:
    reached = chance.mean
    ratio = times_random(held, reached)
    z = (ratio - 1.0) / chance.deviation
    figures = (
        f"on words it was not refitted on, mutual translation pairs reach a mean CSLS of {held.mean_csls:.3f}, "
        f"{ratio:.2f} times what chance reaches on these spaces ({reached.mean_csls:.3f} in {len(chance.reached)} runs)"
    )
    if n < FEWEST_WORDS:
        verdict = UNDECIDED
        text = f"Undecided: {n} words are too few to tell a real alignment from chance ({FEWEST_WORDS} needed)."
    elif ratio < RATIO_NEEDED or z < DEVIATIONS_NEEDED:
        verdict = FAILED
        text = (
            f"The alignment failed: {figures}, where {RATIO_NEEDED:g} is needed. Do not trust the translations. "
            "Try another start (identical strings, a seed lexicon), more words, or vectors from more similar text."
        )
    elif ratio < STRONG_RATIO:
        verdict = WEAK
        text = (
            f"The alignment is real but weak: {figures}; {STRONG_RATIO:g} is needed for more. Expect less than about "
            "a fifth of the translations to be right: use it as a start, not as a dictionary."
        )
    else:
        verdict, text = SUCCEEDED, f"The alignment is real: {figures}; {RATIO_NEEDED:g} is needed."
    return Quality(
        verdict,
        text,
        ratio,
        n,
        fitted,
        random,
        held,
        reached,
        runs=len(chance.reached),
        thorough=chance.thorough,
        found_again=chance.found_again,
        deviation=chance.deviation,
        z=z,
    )
