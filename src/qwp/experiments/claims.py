"""The claims of the paper (Aboagye et al. 2022), and how they come out here.

A claim is about the mean difference of two systems. It holds if 95 % of the resampled query sets put the difference on
the right side of its margin. It does not hold if they put it on the wrong side. Otherwise it is undecided.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from qwp.experiments.measured import SIZE, Condition, MeasuredTables, mean
from qwp.experiments.paper import FOLDER, published
from qwp.spaces.io.arguments import read_toml

HOLDS, DOES_NOT, UNDECIDED = "holds", "does not hold here", "undecided"


@dataclass(frozen=True)
class ClaimSide:
    """One side of a difference. size: a coreset size, "smallest", "largest", or None for all."""

    table: str
    system: str
    size: int | str | None = None


@dataclass(frozen=True)
class Claim:
    """A claim that `first` minus `then`, in points, is at least or at most some margin.

    Attributes:
        name: the claim in our words.
        says: the words of the paper, "" for a claim of our own.
        where: place in the paper.
    """

    name: str
    says: str
    where: str
    first: ClaimSide
    then: ClaimSide
    at_least: float | None = None
    at_most: float | None = None

    def verdict(self, low: float, high: float) -> str:
        """Compare the interval of the difference with the margin."""
        if self.at_least is not None:
            return HOLDS if low > self.at_least else DOES_NOT if high < self.at_least else UNDECIDED
        assert self.at_most is not None, "`claims` checks it"
        return HOLDS if high < self.at_most else DOES_NOT if low > self.at_most else UNDECIDED


@dataclass(frozen=True)
class ClaimOutcome:
    """How a claim comes out.

    Attributes:
        difference: mean difference in points.
        low, high: its interval, None if the records have no ranks of queries.
        more: number of comparisons in which `first` has the higher score.
        of: number of comparisons, each of one direction and size.
        published: the difference in the paper.
    """

    name: str
    says: str
    where: str
    verdict: str
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    more: int = 0
    of: int = 0
    published: float | None = None

    def numbers(self) -> str:
        """Format the figures behind the verdict."""
        paper = "" if self.published is None else f"; the paper {self.published:+.2f}"
        if self.difference is None:
            return f"not computed here{paper}"
        interval = "no ranks saved" if self.low is None else f"95 % {self.low:+.2f} to {self.high:+.2f}"
        return f"{self.difference:+.2f} points ({interval}), higher in {self.more} of {self.of}{paper}"


@cache
def claims() -> tuple[Claim, ...]:
    """Return all claims, in the order of the file."""
    content = read_toml(FOLDER / "claims.toml", like="[[claims]]")
    found = tuple(
        Claim(**{**each, "first": ClaimSide(**each["first"]), "then": ClaimSide(**each["then"])})
        for each in content["claims"]
    )
    assert all((claim.at_least is None) != (claim.at_most is None) for claim in found), "one margin each"
    return found


def outcomes(measured: MeasuredTables) -> tuple[ClaimOutcome, ...]:
    """Return the outcomes of the claims about the measured tables; none if no claim has a figure."""
    known = [claim for claim in claims() if {claim.first.table, claim.then.table} <= set(measured.tables)]
    found = tuple(_outcome(claim, measured) for claim in known)
    return found if any(each.difference is not None for each in found) else ()


def _outcome(claim: Claim, measured: MeasuredTables) -> ClaimOutcome:
    printed = _published(claim)
    pairs = [(a, b) for a, b in _pairs(claim, measured) if a in measured.scores and b in measured.scores]
    about = (claim.name, claim.says, claim.where)
    if not pairs:
        return ClaimOutcome(*about, UNDECIDED, published=printed)
    means = [(measured.mean(a) or 0.0) - (measured.mean(b) or 0.0) for a, b in pairs]
    counts = (sum(each > 0 for each in means), len(means), printed)
    known = measured.estimates
    if not all(a in known and b in known for a, b in pairs):
        return ClaimOutcome(*about, UNDECIDED, statistics.mean(means), None, None, *counts)
    difference = mean([known[a].minus(known[b]) for a, b in pairs])
    low, high = difference.interval()
    return ClaimOutcome(*about, claim.verdict(low, high), difference.value, low, high, *counts)


def _pairs(claim: Claim, measured: MeasuredTables) -> Iterator[tuple[Condition, Condition]]:
    """Yield the conditions to compare, on each direction, at sizes that match."""
    first, then = (_by_size(side, measured) for side in (claim.first, claim.then))
    for direction in measured.tables[claim.first.table].directions:
        for one, other in _matched_sizes(claim, list(first), list(then)):
            yield (
                Condition(claim.first.table, direction, claim.first.system, first[one]),
                Condition(claim.then.table, direction, claim.then.system, then[other]),
            )


def _by_size(side: ClaimSide, measured: MeasuredTables) -> dict[Any, Any]:
    """Return the grid points of a table by size; a point without a size is at None."""
    keys = dict.fromkeys(each.point for each in measured.scores if each.table == side.table)
    return {dict(key).get(SIZE): key for key in keys}


def _matched_sizes(claim: Claim, first: list[Any], then: list[Any]) -> list[tuple[Any, Any]]:
    """Return the pairs of sizes to compare, without those that compare a cell with itself."""
    if claim.first.size is None and claim.then.size is None:
        return [(size, size) for size in first if size in then]
    one, other = _chosen_size(claim.first.size, first), _chosen_size(claim.then.size, then)
    same = (claim.first.table, claim.first.system, one) == (claim.then.table, claim.then.system, other)
    return [] if one is None or other is None or same else [(one, other)]


def _chosen_size(wanted: int | str | None, sizes: list[Any]) -> Any:
    numbers = [size for size in sizes if size is not None]
    if not numbers:
        return None
    if wanted in ("smallest", "largest"):
        return min(numbers) if wanted == "smallest" else max(numbers)
    return wanted if wanted in numbers else None


def _published(claim: Claim) -> float | None:
    """Return the difference of the published figures, averaged over the directions that both systems have."""
    tables = published().tables
    first, then = tables[claim.first.table], tables[claim.then.table]
    shared = [each for each in first.directions(claim.first.system) if each in then.directions(claim.then.system)]
    sizes = _matched_sizes(claim, list(first.sizes) or [None], list(then.sizes) or [None])
    pairs = [
        (first.value(claim.first.system, each, one), then.value(claim.then.system, each, other))
        for each in shared
        for one, other in sizes
    ]
    return statistics.mean(a - b for a, b in pairs if a is not None and b is not None) if pairs else None
