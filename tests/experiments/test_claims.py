"""Claims of the paper: their quotes, and their outcomes on known records."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from qwp.experiments.claims import DOES_NOT, HOLDS, UNDECIDED, Claim, ClaimOutcome, ClaimSide, claims, outcomes
from qwp.experiments.config import read_experiment
from qwp.experiments.measured import MeasuredTables
from qwp.experiments.paper import published
from tests.experiments.records import known_answers, ranked, sizes_plan
from tools.project import ROOT


def found(records: dict[str, dict[str, object]]) -> dict[str, ClaimOutcome]:
    return {each.name: each for each in outcomes(MeasuredTables(sizes_plan().tables, records))}


def test_every_side_is_a_row_of_the_tables() -> None:
    tables = {name: read_experiment(name).tables[0] for name in ("table1", "table2", "table3", "table4")}
    for claim in claims():
        for side in (claim.first, claim.then):
            table = tables[side.table]
            assert side.system in {system.name for system in table.systems}
            assert side.size in (None, "smallest", "largest", *table.grid.get("coreset_size", ()))
        assert tables[claim.first.table].measure == tables[claim.then.table].measure
    assert len({claim.name for claim in claims()}) == len(claims())


PAPER = ROOT.parent / "shared" / "qwp-paper.tex"


@pytest.mark.skipif(not PAPER.is_file(), reason="the source of the paper is not at hand")
def test_claims_quote_the_paper() -> None:
    text = " ".join(re.sub(r"[$]", "", PAPER.read_text()).split())
    for claim in claims():
        for part in claim.says.split(" ... "):
            assert part in text, part


def test_published_figures_support_the_claims() -> None:
    """The figures of the paper are on the right side of every margin."""
    for outcome, claim in zip(outcomes(MeasuredTables(sizes_plan().tables, known_answers())), claims(), strict=False):
        if outcome.published is not None and claim.name == outcome.name:
            assert claim.verdict(outcome.published, outcome.published) == HOLDS


def test_a_difference_is_averaged_over_directions_and_sizes() -> None:
    claim = found(known_answers())["k-means++ beats random samples of the same size, without refinement"]
    # Half of a rank for each query: 15 / 800 at 200 and 1 / 800 at 500.
    assert claim.difference == pytest.approx(100 * (15 + 1) / 800 / 2)
    assert (claim.verdict, claim.more, claim.of) == (HOLDS, 4, 4)
    assert claim.low is not None
    assert 0 < claim.low < 1.0
    paper = published().tables["table1"]
    sizes, ways = paper.sizes, paper.directions("Random")
    each = [
        (paper.value("KMeans++", way, size) or 0) - (paper.value("Random", way, size) or 0)
        for way in ways
        for size in sizes
    ]
    assert claim.published == pytest.approx(np.mean(each))


def test_outcomes_that_do_not_hold_and_undecided_ones() -> None:
    records = known_answers()
    larger = found(records)["larger coresets are better"]  # 215 right at 200, 201 at 500
    assert (larger.verdict, larger.more, larger.of) == (DOES_NOT, 0, 2)
    for address in records:  # each system is correct where the other is not
        records[address] = ranked(address, (np.arange(400) < 200) == ("Random" in address))
    name = "k-means++ beats random samples of the same size, without refinement"
    assert found(records)[name].verdict == UNDECIDED


def test_undecided_without_ranks_or_cells() -> None:
    records = known_answers()
    del records["en-es Random 200 0"]["ranks"]
    claim = found(records)["k-means++ beats random samples of the same size, without refinement"]
    assert (claim.verdict, claim.low) == (UNDECIDED, None)
    assert claim.numbers() == "+1.00 points (no ranks saved), higher in 4 of 4; the paper +1.72"
    at_2000 = found(records)["k-means++ beats random samples of 2000 points, without refinement"]
    assert (at_2000.verdict, at_2000.numbers()) == (UNDECIDED, "not computed here; the paper +0.63")
    assert found({}) == {}


def test_verdicts() -> None:
    for low, high, at_least, at_most in (
        (0.1, 2.0, HOLDS, DOES_NOT),
        (-1.0, -0.1, DOES_NOT, HOLDS),
        (-1.0, 0.1, UNDECIDED, UNDECIDED),
    ):
        claim = Claim("x", "", "", ClaimSide("table1", "a"), ClaimSide("table1", "b"), at_least=0.0)
        assert claim.verdict(low, high) == at_least
        assert replace(claim, at_least=None, at_most=0.0).verdict(low, high) == at_most
