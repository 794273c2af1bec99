"""Work of each stage of an alignment: floating-point operations and bytes through memory.

The work is counted from the algorithms, not measured. A product of an (a, b) and a (b, c) matrix is 2 a b c operations;
a pass over an array moves its bytes once. Divided by the rates of a large product and a large copy, the work gives the
shortest possible time of a stage, its floor.
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
    """flop: operations in matrix products; moved: bytes read and written by passes over large arrays."""

    flop: float
    moved: float

    def __add__(self, other: Work) -> Work:
        return Work(self.flop + other.flop, self.moved + other.moved)

    def times(self, n: float) -> Work:
        """Return n times the work."""
        return Work(n * self.flop, n * self.moved)

    def floor(self, flop_rate: float, copy_rate: float) -> float:
        """Return the least seconds at these rates, with operations and copies fully overlapped."""
        return max(self.flop / flop_rate, self.moved / copy_rate)


def product(a: int, b: int, c: int) -> Work:
    """Return the work of (a, b) @ (b, c), with the result written once."""
    return Work(2.0 * a * b * c, _BYTES * float(a * c))


def passes(n: float, elements: float) -> Work:
    """Return the work of reading or writing `elements` numbers n times."""
    return Work(0.0, _BYTES * n * elements)


def bank(n: int, d: int, k: int, size: int) -> Work:
    """Return the work of `size` coresets of k of n words.

    Each centre takes a product, a minimum (two reads, one write) and a sum (two reads).
    """
    return (product(size, d + 2, n) + passes(5, float(size) * n)).times(k)


def transport_step(k: int, d: int, sweeps: float, pairs: int) -> Work:
    """Return the work of a step of the loop.

    The step maps a coreset, computes the kernel and its exponential (read, write), iterates (two reads each), and
    multiplies the plan.
    """
    each = product(k, d, d) + product(k, d, k) + passes(2, float(k) * k)
    each += passes(2 * sweeps, float(k) * k) + product(k, k, d + 2) + passes(1, float(k) * k) + product(d, k, d)
    return each.times(pairs) + product(d, d, d).times(_POLAR_PRODUCTS)


def refinement_round(n: int, m: int, d: int) -> Work:
    """Return the work of both neighbourhoods and the ranking: three products, five passes for top-k and maxima."""
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

    The trial is assumed to need as many Sinkhorn iterations as the loop. The one transport of the profiles is ignored.
    """
    sides = product(words, d, words) + passes(4, float(words) * words)
    profiles = sides.times(2) + product(words, words, words)
    search = BestOf()
    trial = transport_step(search.brief.coreset, d, sweeps, search.brief.batches)
    score = candidate_score(search.score.words, d, search.score.baseline.rounds)
    return profiles + trial.times(search.brief.steps) + score
