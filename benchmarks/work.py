"""How much each stage of an alignment has to do at least: floating-point operations and bytes through memory.

Counted by hand from the algorithms, not measured: every product of an (a, b) and a (b, c) matrix is 2 a b c operations,
every pass over an array moves it once in each direction that it goes. Together with what a machine reaches (a large
product, a large copy) they give the time below which the stage cannot come: its floor.
"""

from __future__ import annotations

from dataclasses import dataclass

from qwp.judging.verdict import FULL_EFFORT
from qwp.stages.agreement import REFIT_ROUNDS
from qwp.stages.init.best_of import BestOf
from qwp.stages.refinement import CslsRefinement

_BYTES = 4  # of a float32
_POLAR_PRODUCTS = 18  # six steps of three products


@dataclass(frozen=True)
class Work:
    """flop: floating-point operations in matrix products; moved: bytes read and written by passes over large arrays."""

    flop: float
    moved: float

    def __add__(self, other: Work) -> Work:
        return Work(self.flop + other.flop, self.moved + other.moved)

    def times(self, n: float) -> Work:
        """The same n times over."""
        return Work(n * self.flop, n * self.moved)

    def floor(self, flop_rate: float, copy_rate: float) -> float:
        """Seconds that it takes at these rates if the two do not overlap less than they could."""
        return max(self.flop / flop_rate, self.moved / copy_rate)


def product(a: int, b: int, c: int) -> Work:
    """(a, b) @ (b, c), the result written once."""
    return Work(2.0 * a * b * c, _BYTES * float(a * c))


def passes(n: float, elements: float) -> Work:
    """n times reading or writing so many numbers."""
    return Work(0.0, _BYTES * n * elements)


def bank(n: int, d: int, k: int, size: int) -> Work:
    """`size` coresets of k out of n words; for each centre a product, a minimum (two reads, one write), a sum (two)."""
    return (product(size, d + 2, n) + passes(5, float(size) * n)).times(k)


def transport_step(k: int, d: int, sweeps: float, pairs: int) -> Work:
    """One step of the loop: map, kernel, exponential (read, write), sweeps (two reads each), images, correspondence."""
    each = product(k, d, d) + product(k, d, k) + passes(2, float(k) * k)
    each += passes(2 * sweeps, float(k) * k) + product(k, k, d + 2) + passes(1, float(k) * k) + product(d, k, d)
    return each.times(pairs) + product(d, d, d).times(_POLAR_PRODUCTS)


def refinement_round(n: int, m: int, d: int) -> Work:
    """Both neighbourhoods and the ranking: three products; a read for each of top-k, row maxima and column maxima."""
    return product(n, d, m).times(3) + passes(2 + 3, float(n) * m)


def refinement(n: int, m: int, d: int, settings: CslsRefinement) -> Work:
    """Return the work of all rounds, with the words that take part in each."""
    found = Work(0.0, 0.0)
    for number in range(1, settings.rounds + 1):
        words = settings.words_of_round(number, max(n, m))
        found += refinement_round(min(n, words), min(m, words), d)
    return found


def judgement(words: int, d: int, sweeps: float) -> Work:
    """Return the work of the verdict on a map far from the limit, as `verdict.judge` makes it."""
    n, runs = min(words, FULL_EFFORT.words), FULL_EFFORT.quick_runs
    full = refinement_round(n, n, d)
    trial, rounds = FULL_EFFORT.quick.trial, FULL_EFFORT.quick.rounds
    loop = transport_step(min(trial.coreset, n // 4), d, sweeps, trial.batches).times(trial.steps)
    # The map, the null maps with a comparison to it, and held-out words of both sides.
    return (loop + full.times(rounds + 1)).times(runs) + full.times(3) + both_ways(n, d).times(runs + 1)


def both_ways(n: int, d: int) -> Work:
    """Return the work of scoring held-out words of n, from both sides."""
    return refinement_round(n // 2, n, d).times(2 * (REFIT_ROUNDS + 1))


def candidate_score(n: int, d: int, baseline_rounds: int) -> Work:
    """Return the work of scoring a candidate and the refined random rotation that it is compared with."""
    return refinement_round(n, n, d).times(baseline_rounds) + both_ways(n, d).times(2)


def initial_map(words: int, d: int, sweeps: float) -> Work:
    """Return the work of the default initializer if profiles succeed: profiles, a trial, a score.

    The trial is taken to make as many Sinkhorn iterations as the loop; those of the profiles' one transport are left
    out.
    """
    sides = product(words, d, words) + passes(4, float(words) * words)
    profiles = sides.times(2) + product(words, words, words)
    search = BestOf()
    trial = transport_step(search.brief.coreset, d, sweeps, search.brief.batches)
    score = candidate_score(search.score.words, d, search.score.baseline.rounds)
    return profiles + trial.times(search.brief.steps) + score
