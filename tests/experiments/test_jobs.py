"""Jobs: their order, and the devices that compute them."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pytest

from qwp import arrays
from qwp.errors import InputError
from qwp.experiments.config import read_experiment
from qwp.experiments.data import Data
from qwp.experiments.jobs import JobDevice, Queue, cpu_devices, failure, gpu_devices, local_devices
from qwp.experiments.run import ExperimentPlan, make_plan


def test_a_failure_has_a_short_message() -> None:
    assert failure(InputError("no such file")) == {"error": "InputError: no such file"}
    assert len(failure(ValueError("x" * 10_000))["error"]) == 2000


@pytest.fixture
def plan(folder: Path, config: Path) -> ExperimentPlan:
    return make_plan(read_experiment(str(config)), Data.below(folder))


def test_a_process_computes_cells_with_shared_stages_in_a_row(plan: ExperimentPlan) -> None:
    """A process finishes its group; others help with the last one."""
    queue = Queue(plan.cells.items())
    first = queue.next_after()
    other = queue.next_after()
    assert first is not None
    assert other is not None
    # Each direction is a group: its cells have the same initialization.
    assert (first[1].direction, other[1].direction) == ("en-es", "es-en")
    own = [first, *(queue.next_after(first[1]) for _ in range(7))]
    assert {cell.direction for _, cell in filter(None, own)} == {"en-es"}
    rest = [queue.next_after(first[1]) for _ in range(7)]
    assert {cell.direction for _, cell in filter(None, rest)} == {"es-en"}
    assert queue.next_after(first[1]) is None
    addresses = [each[0] for each in [*own, other, *rest] if each is not None]
    assert sorted(addresses) == sorted(plan.cells)


def test_helpers_leave_cells_with_the_same_loop_to_one_process(folder: Path, config: Path) -> None:
    text = config.read_text().replace("coreset_size = [40, 60]", "coreset_size = [40, 60]\nrefine = [0, 1]")
    config.write_text(text.replace("refine = 1\n", ""))
    plan = make_plan(read_experiment(str(config)), Data.below(folder), directions=["en-es"])
    queue = Queue(plan.cells.items())
    workers = {number: queue.next_after() for number in range(5)}
    took: dict[tuple[str, ...], set[int]] = {}
    while any(workers.values()):
        for number, found in workers.items():
            if found is not None:
                took.setdefault(found[1].affinity(), set()).add(number)
                workers[number] = queue.next_after(found[1])
    assert len(took) == 8
    assert all(len(numbers) == 1 for numbers in took.values())


def test_cells_are_ordered_by_affinity(folder: Path, config: Path) -> None:
    text = config.read_text().replace("coreset_size = [40, 60]", "coreset_size = [40, 60]\nrefine = [0, 1]")
    config.write_text(text.replace("refine = 1\n", ""))
    plan = make_plan(read_experiment(str(config)), Data.below(folder))
    queue, affinities, last = Queue(plan.cells.items()), [], None
    while (following := queue.next_after(last)) is not None:
        last = following[1]
        affinities.append(last.affinity())
    assert len(affinities) == 32
    for step, kinds in ((1, 2), (2, 2), (3, 16), (4, 16)):
        shared = [affinity[:step] for affinity in affinities]
        assert len(set(shared)) == len(list(groupby(shared))) == kinds


def test_cores_are_divided_among_workers() -> None:
    assert cpu_devices(8) == [JobDevice("cpu", 1)] * 8
    assert cpu_devices(8, 3) == [JobDevice("cpu", 2)] * 3
    with pytest.raises(InputError, match="9 workers were asked for on 8 cores; expected at most one for each core"):
        cpu_devices(8, 9)
    with pytest.raises(InputError, match="workers=0"):
        local_devices("cpu", 0)
    assert local_devices("cpu", 1) == [JobDevice("cpu", arrays.threads())]


def test_one_worker_for_each_gpu() -> None:
    two = ["cuda:0", "cuda:1"]
    assert gpu_devices(two, 8) == [JobDevice("cuda:0", 4), JobDevice("cuda:1", 4)]
    assert gpu_devices(two, 8, 1) == gpu_devices(["cuda:0"], 8) == [JobDevice("cuda:0", 8)]
    with pytest.raises(InputError, match="3 workers were asked for on 2 GPUs"):
        gpu_devices(two, 8, 3)
