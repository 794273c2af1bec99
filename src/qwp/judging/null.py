"""The null distribution of a verdict: what maps found from random rotations reach on the same two spaces.

A map that was fitted to its own translations agrees with itself even between unrelated spaces, more so with fewer words
for each dimension. Clusters, hubs and long tails can also be laid upon each other without a single right translation.
How far that carries depends on the spaces, so it is measured on them: random rotations go through a short loop of
optimal transport and a refinement. A few such null runs give a mean and a deviation.
"""

from __future__ import annotations

import hashlib
import math
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import stdtrit

from qwp import arrays
from qwp.arrays import Array, LRUCache, Stream
from qwp.maps.procrustes import Maps
from qwp.search.retrieval import CrossNeighbours
from qwp.stages.agreement import (
    SAME,
    Agreement,
    both_ways,
    mean_agreement,
    per_word_ratio,
    random_rotation,
    share_alike,
    translations,
)
from qwp.stages.refinement import CslsRefinement, neighbours
from qwp.stages.wasserstein_procrustes import Trial
from qwp.version import code_version

# --------------------------------------------------------------------------- searching from a map


@dataclass(frozen=True)
class SearchEffort:
    """The search from one initial map: a short transport loop, then rounds of plain refinement."""

    trial: Trial
    rounds: int

    @property
    def key(self) -> str:
        """Identifies the null runs of this effort in the cache."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:16]


# The loop finds higher agreement from random rotations than refinement alone, and plain rounds more than weighted ones.
THOROUGH = SearchEffort(Trial(words=5000, steps=100, coreset=500, epsilon=0.05, batches=2), rounds=3)
# A quarter of that work reaches 90 % of its agreement on spaces with long tails, and more on others.
QUICK = SearchEffort(Trial(words=5000, steps=50, coreset=500, epsilon=0.05, batches=1), rounds=2)
_PLAIN = CslsRefinement(words=0)


def search(
    x: Array,
    targets: Sequence[Array],
    initial: Sequence[Array],
    numbers: Sequence[int],
    *,
    seed: int,
    csls_k: int,
    effort: SearchEffort,
) -> list[Maps]:
    """Run the search from each initial map (d, d) and return the maps it ends at; the loops run in lock-step.

    x: (n, d) normalised rows. targets: the other side (m, d) of each search. numbers: select the random draws of each.
    """
    seeds = [int(arrays.rng(seed, Stream.NULL_RUNS, number).integers(2**31)) for number in numbers]
    count = len(initial)
    found = effort.trial.run([x] * count, targets, initial, seeds)
    return [refine_plain(x, y, Maps(w), effort.rounds, csls_k) for y, w in zip(targets, found, strict=True)]


def refine_plain(x: Array, y: Array, maps: Maps, rounds: int, csls_k: int) -> Maps:
    """Refine maps of x (n, d) and y (m, d) with unweighted mutual pairs."""
    return replace(_PLAIN, rounds=rounds, csls_k=csls_k).refine(x, y, maps)


def nearest_orthogonal(x: Array, y: Array, maps: Maps, *, csls_k: int) -> Array:
    """Return the orthogonal map (d, d) that fits the mutual pairs of the maps; a search can start from it."""
    return refine_plain(x, y, maps, 1, csls_k).src


# --------------------------------------------------------------------------- null runs


@dataclass(frozen=True)
class NullRun:
    """The outcome of one null run: the translations of the words, (n,), and its held-out agreement."""

    translations: np.ndarray
    score: Agreement


NullRuns = dict[tuple[str, int], NullRun]
"""Null runs by effort key and number. Each takes a few kilobytes."""

DEVIATIONS = 2.0
"""A verdict compares with the null mean plus this many deviations. Of 0 to 3, two leave the widest gap between
unrelated pairs (at most 1.157) and alignments with P@1 of 20 % and more (at least 1.217)."""
_MOST_SPACES = 8
_CACHE: LRUCache[str, NullRuns] = LRUCache(_MOST_SPACES)


def cache_key(x: Array, y: Array, seed: int, csls_k: int, code: str | None = None) -> str:
    """Return a hash of the spaces x (n, d) and y (m, d), the machine, the seed and the code version."""
    machine = type(x).__module__, str(arrays.device(x)), arrays.threads(), platform.machine(), np.__version__
    code = code_version() if code is None else code
    found = hashlib.sha256(repr((machine, seed, csls_k, code, x.shape, y.shape)).encode())
    for side in (x, y):
        found.update(np.ascontiguousarray(arrays.to_numpy(side)).data)
    return found.hexdigest()


def cached_runs(key: str) -> NullRuns:
    """Return the null runs on the spaces of a key so far. All callers share the dict and add to it."""
    return _CACHE.add(key, {})


def clear_cache() -> None:
    """Remove all null runs from the cache."""
    _CACHE.clear()


@dataclass(frozen=True)
class NullDistribution:
    """The held-out agreement of some null runs.

    Attributes:
        scores: the agreement of each run.
        hits: runs that ended at the map under test; the scores of their random rotations count instead.
        thorough: whether the runs used the thorough search.
    """

    scores: tuple[Agreement, ...]
    hits: int = 0
    thorough: bool = True

    @property
    def mean(self) -> Agreement:
        """The mean agreement."""
        return mean_agreement(self.scores)

    @property
    def deviation(self) -> float | None:
        """The standard deviation of the CSLS per word, relative to its mean; None for a single run."""
        values = [one.csls_per_word for one in self.scores]
        mean = float(np.mean(values))
        return None if len(values) < 2 or mean <= 0 else float(np.std(values, ddof=1)) / mean

    def z(self, ratio: float) -> float | None:
        """Return by how many deviations a ratio to the mean exceeds 1; None without a positive deviation."""
        return (ratio - 1.0) / self.deviation if self.deviation else None

    def statistic(self, found: Agreement) -> float:
        """Return the agreement relative to the null mean plus two deviations."""
        return per_word_ratio(found, self.mean) / (1.0 + DEVIATIONS * (self.deviation or 0.0))

    def interval(self, found: Agreement) -> list[float] | None:
        """Return the 90 % t-interval of the ratio to the null mean; None if the runs do not determine one."""
        if self.deviation is None:
            return None
        runs, ratio = len(self.scores), per_word_ratio(found, self.mean)
        error = float(stdtrit(runs - 1, 0.95)) * self.deviation / math.sqrt(runs)
        return [ratio / (1.0 + error), ratio / (1.0 - error)] if error < 1.0 else None

    def exceedances(self, found: Agreement) -> int:
        """Return how many runs agree at least as well."""
        return sum(one.csls_per_word >= found.csls_per_word for one in self.scores)

    def with_more(self, others: NullDistribution) -> NullDistribution:
        """Return the distribution with further runs."""
        return replace(self, scores=self.scores + others.scores, hits=self.hits + others.hits)


@dataclass(frozen=True)
class SameMap:
    """When the map that a search ends at still counts as the map it started from, by the share of equal translations.

    Maps with 1 % right translations were measured to keep a share of 0.03 to 0.06.
    """

    share: float = 0.02
    """The share that is needed at least."""
    deviations: float = 6.0
    """The share must also exceed that of random rotations by this many binomial standard deviations."""


class NullTest:
    """Scores maps and null runs on the same words.

    Args:
        x: (n, d) source rows, most frequent first.
        y: (n, d) target rows.
        maps: the maps under test.
        seed: of the random rotations and the draws of the searches.
        csls_k: neighbourhood size of CSLS.
        candidates: (m, d) all target rows, if the counterparts of x can be anywhere among them. Each map is then scored
            on the counterparts it finds for x there. That favours every map, the null maps included.
        same: when a search from the maps has stayed at the same map.
    """

    def __init__(
        self,
        x: Array,
        y: Array,
        maps: Maps,
        *,
        seed: int,
        csls_k: int,
        candidates: Array | None = None,
        same: SameMap,
    ) -> None:
        self.x, self.y, self.maps = x, y, maps
        self._seed, self._csls_k, self._candidates = seed, csls_k, candidates
        self._same = same
        self._searched: dict[SearchEffort, Maps] = {}

    # ----------------------------------------------------------------- the maps under test

    @cached_property
    def held_out(self) -> Agreement:
        """The held-out agreement of the maps under test."""
        return both_ways(self.x, self._own_targets, self.maps, self._csls_k)

    @cached_property
    def neighbours(self) -> CrossNeighbours:
        """The CSLS neighbours under the maps as they are."""
        return neighbours(self.x, self._own_targets, self.maps, self._csls_k)

    @cached_property
    def translations(self) -> np.ndarray:
        """The translations of x under the maps, (n,)."""
        if self._candidates is None:
            return arrays.to_numpy(self.neighbours.forward)
        return self._translate(self.maps)

    @cached_property
    def _own_targets(self) -> Array:
        """The target rows that the maps under test are scored on, (n, d)."""
        return self.y if self._candidates is None else self._counterparts(self._candidates, self.translations)

    @cached_property
    def _initial_map(self) -> Array:
        return nearest_orthogonal(self.x, self._own_targets, self.maps, csls_k=self._csls_k)

    def held_out_after_search(self, effort: SearchEffort, numbers: Iterable[int]) -> Agreement:
        """Return the held-out agreement of the maps, or of where a search from them ends if that is higher.

        A weak map may score no higher than null maps that are fitted to the words. But a search from it leads to a good
        map, and a search from a random rotation does not. The search must end at the same map as it started from.

        numbers: random rotations that the translations are compared with.
        """
        self.search(effort, (), itself=True)
        found = self._searched[effort]
        translated = self._translate(found)
        needed = max(self._same.share, self._null_overlap(translated, numbers))
        if share_alike(self.translations, translated) < needed:
            return self.held_out
        return max(self.score(found), self.held_out, key=lambda score: score.csls_per_word)

    def _null_overlap(self, translated: np.ndarray, numbers: Iterable[int]) -> float:
        """Return the share of equal translations that random rotations hardly ever exceed."""
        n = self.x.shape[0]
        shares = [share_alike(translated, self._translate(self.rotation(number))) for number in numbers]
        usual = float(np.mean(shares))
        return usual + self._same.deviations * math.sqrt((usual + 1.0 / n) / n)

    # ----------------------------------------------------------------- any maps

    def targets(self, maps: Maps) -> Array:
        """Return the target rows that maps are scored on, (n, d)."""
        return self.y if self._candidates is None else self._counterparts(self._candidates, self._translate(maps))

    def score(self, maps: Maps) -> Agreement:
        """Return the held-out agreement of maps."""
        return both_ways(self.x, self.targets(maps), maps, self._csls_k)

    def rotation(self, number: int) -> Maps:
        """Return a random rotation by its number."""
        return Maps(random_rotation(self.x.shape[1], self._seed, self.x, number))

    def _translate(self, maps: Maps) -> np.ndarray:
        """Return the translations of x under maps, (n,)."""
        targets = self.y if self._candidates is None else self._candidates
        return arrays.to_numpy(translations(self.x, targets, maps, csls_k=self._csls_k))

    def _counterparts(self, candidates: Array, translated: np.ndarray) -> Array:
        """Return the counterparts (n,) of x among all candidates, filled up to n rows with others, (n, d)."""
        counterparts = np.unique(translated)
        others = np.setdiff1d(np.arange(self.x.shape[0] + len(counterparts)), counterparts)
        rows = np.concatenate([counterparts, others[others < candidates.shape[0]]])[: self.x.shape[0]]
        return arrays.namespace(self.y).take(candidates, arrays.asarray(rows, self.y), axis=0)

    # ----------------------------------------------------------------- null runs

    def null_runs(self, numbers: range, effort: SearchEffort, *, thorough: bool = False) -> NullDistribution:
        """Return the null distribution of the runs of these numbers.

        A null run that converges to the maps under test has found the signal. Its random rotation is scored instead.
        """
        self.search(effort, numbers, itself=False)
        scores, hits = [], 0
        for number in numbers:
            run = self._runs[effort.key, number]
            if share_alike(self.translations, run.translations) >= SAME:
                hits += 1
                scores.append(self.score(self.rotation(number)))
            else:
                scores.append(run.score)
        return NullDistribution(tuple(scores), hits, thorough)

    def search(self, effort: SearchEffort, numbers: Iterable[int], *, itself: bool) -> None:
        """Run the null runs of these numbers that are not cached, and, if `itself`, the search from the maps."""
        known = self._runs
        missing = [number for number in numbers if (effort.key, number) not in known]
        jobs = [(self.y, self.rotation(number).src, number) for number in missing]
        # The search from the maps has the random draws of the first null run.
        own = [(self._own_targets, self._initial_map, 0)] if itself and effort not in self._searched else []
        if arrays.is_cuda(self.x):
            found = self._search_all(jobs + own, effort)
        else:
            # Not in one batch: cached runs are left out of it, and the size of a batch may change how sums are rounded.
            found = self._search_all(jobs, effort) + self._search_all(own, effort)
        if own:
            self._searched[effort] = found.pop()
        for number, maps in zip(missing, found, strict=True):
            known[effort.key, number] = self._null_run(maps, effort)

    def _search_all(self, jobs: Sequence[tuple[Array, Array, int]], effort: SearchEffort) -> list[Maps]:
        """Search from initial maps (d, d) to targets (n, d), with the draws of their numbers, in lock-step."""
        if not jobs:
            return []
        targets, initial, numbers = zip(*jobs, strict=True)
        return search(self.x, targets, initial, numbers, seed=self._seed, csls_k=self._csls_k, effort=effort)

    def _null_run(self, maps: Maps, effort: SearchEffort) -> NullRun:
        """Return the run that ended at maps. Among candidates, it is first refined on its own counterparts."""
        if self._candidates is None:
            return NullRun(self._translate(maps), both_ways(self.x, self.y, maps, self._csls_k))
        last = refine_plain(self.x, self.targets(maps), maps, effort.rounds, self._csls_k)
        translated = self._translate(last)
        score = both_ways(self.x, self._counterparts(self._candidates, translated), last, self._csls_k)
        return NullRun(translated, score)

    @cached_property
    def _runs(self) -> NullRuns:
        """The cached null runs on these spaces. They do not depend on the maps under test.

        Not on a GPU: it runs them beside the search from the maps at no cost. The number of loops in lock-step decides
        there how sums are rounded, and a verdict must not depend on what is in a cache.
        """
        if arrays.is_cuda(self.x):
            return {}
        targets = self.y if self._candidates is None else self._candidates
        return cached_runs(cache_key(self.x, targets, self._seed, self._csls_k))
