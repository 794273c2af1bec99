"""What engines and jobs say to each other."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pytest

from qwp.errors import InputError
from qwp.experiments.config import read_experiment
from qwp.experiments.data import Data
from qwp.experiments.engines.jobs import Queue, failure
from qwp.experiments.plan import Plan, make_plan


def test_a_failure_says_what_happened_and_not_without_end() -> None:
    assert failure(InputError("no such file")) == {"error": "InputError: no such file"}
    assert len(failure(ValueError("x" * 10_000))["error"]) == 2000


@pytest.fixture
def plan(folder: Path, config: Path) -> Plan:
    return make_plan(read_experiment(str(config)), Data.below(folder))


def test_cells_that_share_parts_follow_each_other_in_one_process(plan: Plan) -> None:
    """A process ends what it has begun; the last one left is helped with."""
    queue = Queue(plan.cells.items())
    first = queue.after()
    other = queue.after()
    assert first is not None
    assert other is not None
    # Groups are the directions: all cells of one have the same start.
    assert (first[1].direction, other[1].direction) == ("en-es", "es-en")
    own = [first, *(queue.after(first[1]) for _ in range(7))]
    assert {cell.direction for _, cell in filter(None, own)} == {"en-es"}
    rest = [queue.after(first[1]) for _ in range(7)]
    assert {cell.direction for _, cell in filter(None, rest)} == {"es-en"}
    assert queue.after(first[1]) is None
    addresses = [each[0] for each in [*own, other, *rest] if each is not None]
    assert sorted(addresses) == sorted(plan.cells)


def test_cells_are_ordered_by_what_they_share(folder: Path, config: Path) -> None:
    text = config.read_text().replace("coreset_size = [40, 60]", "coreset_size = [40, 60]\nrefine = [0, 1]")
    config.write_text(text.replace("refine = 1\n", ""))
    plan = make_plan(read_experiment(str(config)), Data.below(folder))
    queue, kinships, last = Queue(plan.cells.items()), [], None
    while (following := queue.after(last)) is not None:
        last = following[1]
        kinships.append(last.kinship())
    assert len(kinships) == 32
    for step, kinds in ((1, 2), (2, 2), (3, 16), (4, 16)):
        shared = [kinship[:step] for kinship in kinships]
        assert len(set(shared)) == len(list(groupby(shared))) == kinds
