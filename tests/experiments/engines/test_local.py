"""The local engine: all cells, failures, processes that die."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from qwp import arrays
from qwp.errors import InputError
from qwp.experiments.cells import Cell
from qwp.experiments.data import Inputs
from qwp.experiments.engines.jobs import Device
from qwp.experiments.engines.local import LocalEngine, local_places, places_on_cores, places_on_gpus
from tests.experiments.test_cells import OPTIONS


@pytest.fixture
def cell(folder: Path) -> Cell:
    inputs = Inputs(folder / "en.vec", folder / "es.vec", folder / "en-es.txt")
    return Cell("en-es", "qwp", {**OPTIONS, "coreset_size": 40}, 0, inputs)


def test_cores_are_shared_out() -> None:
    assert places_on_cores(8) == [Device("cpu", 1)] * 8
    assert places_on_cores(8, 3) == [Device("cpu", 2)] * 3
    with pytest.raises(InputError, match="9 workers were asked for on 8 cores; expected at most one for each core"):
        places_on_cores(8, 9)
    with pytest.raises(InputError, match="workers=0"):
        local_places("cpu", 0)
    assert local_places("cpu", 1) == [Device("cpu", arrays.threads())]


def test_one_worker_for_each_gpu() -> None:
    two = ["cuda:0", "cuda:1"]
    assert places_on_gpus(two, 8) == [Device("cuda:0", 4), Device("cuda:1", 4)]
    assert places_on_gpus(two, 8, 1) == places_on_gpus(["cuda:0"], 8) == [Device("cuda:0", 8)]
    with pytest.raises(InputError, match="3 workers were asked for on 2 GPUs"):
        places_on_gpus(two, 8, 3)


def test_all_cells_come_back_and_an_error_stops_none(cell: Cell, folder: Path) -> None:
    engine = LocalEngine([Device("cpu", 1)])
    (folder / "bad.txt").write_text("no such\n")
    engine.submit("good", cell)
    engine.submit("bad", replace(cell, inputs=replace(cell.inputs, gold=folder / "bad.txt")))
    engine.submit("other", replace(cell, seed=1))
    try:
        found = {outcome.address: outcome.found for outcome in engine.iterate()}
    finally:
        engine.close()
    assert list(found) == ["good", "bad", "other"]
    assert "scores" in found["good"]
    assert "scores" in found["other"]
    assert found["bad"]["error"].startswith("InputError: ")


def test_a_process_that_dies_fails_its_cell_and_is_replaced(cell: Cell) -> None:
    engine = LocalEngine([Device("cpu", 1)])
    engine.submit("first", cell)
    [worker] = engine._busy.values()
    worker._process.kill()
    engine.submit("second", cell)
    try:
        found = {outcome.address: outcome.found for outcome in engine.iterate()}
    finally:
        engine.close()
    assert found["first"]["error"].startswith("its process was killed by signal 9")
    assert "scores" in found["second"]


def test_close_ends_the_processes(cell: Cell) -> None:
    engine = LocalEngine([Device("cpu", 1)])
    engine.submit("first", cell)
    [worker] = engine._busy.values()
    engine.close()
    assert not worker._process.is_alive()
    assert list(engine.iterate()) == []
