"""What the paper says of its results, and what the results here say of that.

A claim is a difference of two systems on average. It holds where 95 % of resampled queries put the difference on the
right side of its margin, does not where they put it on the wrong side, and cannot be said otherwise.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from qwp.experiments.figures import published
from qwp.experiments.measured import SIZE, Measured, Spot, mean
from qwp.spaces.io.toml import read_toml

FILE = Path(__file__).parent / "published" / "claims.toml"
HOLDS, DOES_NOT, OPEN = "holds", "does not hold here", "cannot be said"


@dataclass(frozen=True)
class Side:
    """One side of a difference. size: of the coreset, "smallest", "largest", or None for all."""

    table: str
    system: str
    size: int | str | None = None


@dataclass(frozen=True)
class Claim:
    """first less then, in points, is at least or at most so much. says: the words of the paper, "" for our own."""

    name: str
    says: str
    where: str
    first: Side
    then: Side
    at_least: float | None = None
    at_most: float | None = None

    def verdict(self, low: float, high: float) -> str:
        """What an interval of the difference says."""
        if self.at_least is not None:
            return HOLDS if low > self.at_least else DOES_NOT if high < self.at_least else OPEN
        assert self.at_most is not None, "checked when it was read"
        return HOLDS if high < self.at_most else DOES_NOT if low > self.at_most else OPEN


@dataclass(frozen=True)
class Outcome:
    """What is found of a claim. of: compared places, a direction and a size each; more: those where `first` has more.

    difference: on average, in points; low, high: its interval, None without ranks of queries; published: in the paper.
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
        """What it rests on, in a sentence."""
        paper = "" if self.published is None else f"; the paper {self.published:+.2f}"
        if self.difference is None:
            return f"not computed here{paper}"
        between = "no ranks kept" if self.low is None else f"95 % {self.low:+.2f} to {self.high:+.2f}"
        return f"{self.difference:+.2f} points ({between}), more in {self.more} of {self.of}{paper}"


@cache
def claims() -> tuple[Claim, ...]:
    """All of them, in the order of the file."""
    content = read_toml(FILE, like="[[claims]]")
    found = tuple(
        Claim(**{**each, "first": Side(**each["first"]), "then": Side(**each["then"])}) for each in content["claims"]
    )
    assert all((claim.at_least is None) != (claim.at_most is None) for claim in found), "one margin each"
    return found


def outcomes(measured: Measured) -> tuple[Outcome, ...]:
    """What is found of the claims on tables that are there; nothing where nothing is found of any."""
    there = [claim for claim in claims() if {claim.first.table, claim.then.table} <= set(measured.tables)]
    found = tuple(_outcome(claim, measured) for claim in there)
    return found if any(each.difference is not None for each in found) else ()


def _outcome(claim: Claim, measured: Measured) -> Outcome:
    printed = _published(claim)
    spots = [(a, b) for a, b in _pairs(claim, measured) if a in measured.scores and b in measured.scores]
    about = (claim.name, claim.says, claim.where)
    if not spots:
        return Outcome(*about, OPEN, published=printed)
    means = [(measured.mean(a) or 0.0) - (measured.mean(b) or 0.0) for a, b in spots]
    counts = (sum(each > 0 for each in means), len(means), printed)
    known = measured.estimates
    if not all(a in known and b in known for a, b in spots):
        return Outcome(*about, OPEN, statistics.mean(means), None, None, *counts)
    difference = mean([known[a].less(known[b]) for a, b in spots])
    low, high = difference.interval()
    return Outcome(*about, claim.verdict(low, high), difference.value, low, high, *counts)


def _pairs(claim: Claim, measured: Measured) -> Iterator[tuple[Spot, Spot]]:
    """The places to compare, on each direction, at sizes that match."""
    first, then = (_by_size(side, measured) for side in (claim.first, claim.then))
    for direction in measured.tables[claim.first.table].directions:
        for one, other in _matched(claim, list(first), list(then)):
            a, b = first[one], then[other]
            yield (
                Spot(claim.first.table, direction, claim.first.system, a),
                Spot(claim.then.table, direction, claim.then.system, b),
            )


def _by_size(side: Side, measured: Measured) -> dict[Any, Any]:
    """The points of a table by size; a point without a size is at None."""
    keys = dict.fromkeys(spot.point for spot in measured.scores if spot.table == side.table)
    return {dict(key).get(SIZE): key for key in keys}


def _matched(claim: Claim, first: list[Any], then: list[Any]) -> list[tuple[Any, Any]]:
    """Which size goes with which."""
    if claim.first.size is None and claim.then.size is None:
        return [(size, size) for size in first if size in then]
    one, other = _chosen(claim.first.size, first), _chosen(claim.then.size, then)
    return [] if one is None or other is None or _same(claim, one, other) else [(one, other)]


def _same(claim: Claim, one: Any, other: Any) -> bool:
    """Whether both sides are the same cells, as where a grid has one size that is the smallest and the largest."""
    return (claim.first.table, claim.first.system, one) == (claim.then.table, claim.then.system, other)


def _chosen(wanted: int | str | None, sizes: list[Any]) -> Any:
    numbers = [size for size in sizes if size is not None]
    if not numbers:
        return None
    if wanted in ("smallest", "largest"):
        return min(numbers) if wanted == "smallest" else max(numbers)
    return wanted if wanted in numbers else None


def _published(claim: Claim) -> float | None:
    """The same difference of the printed figures, on average over the directions that both have."""
    tables = published().tables
    first, then = tables[claim.first.table], tables[claim.then.table]
    shared = [each for each in first.directions(claim.first.system) if each in then.directions(claim.then.system)]
    sizes = _matched(claim, list(first.sizes) or [None], list(then.sizes) or [None])
    pairs = [
        (first.value(claim.first.system, each, one), then.value(claim.then.system, each, other))
        for each in shared
        for one, other in sizes
    ]
    return statistics.mean(a - b for a, b in pairs if a is not None and b is not None) if pairs else None
