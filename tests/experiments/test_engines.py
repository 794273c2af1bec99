"""Engines: the processes of this machine, and the choice of a user."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from qwp.errors import InputError
from qwp.experiments.cells import Cell
from qwp.experiments.data import DirectionFiles
from qwp.experiments.engines import EngineChoice, LocalEngine
from qwp.experiments.jobs import JobDevice
from tests.experiments.test_cells import OPTIONS


@pytest.fixture
def cell(folder: Path) -> Cell:
    inputs = DirectionFiles(folder / "en.vec", folder / "es.vec", folder / "en-es.txt")
    return Cell("en-es", "qwp", {**OPTIONS, "coreset_size": 40}, 0, inputs)


def test_an_error_does_not_stop_other_cells(cell: Cell, folder: Path) -> None:
    engine = LocalEngine([JobDevice("cpu", 1)])
    (folder / "bad.txt").write_text("no such\n")
    engine.submit("good", cell)
    engine.submit("bad", replace(cell, inputs=replace(cell.inputs, gold=folder / "bad.txt")))
    engine.submit("other", replace(cell, seed=1))
    try:
        found = {outcome.address: outcome.record for outcome in engine.outcomes()}
    finally:
        engine.close()
    assert list(found) == ["good", "bad", "other"]
    assert "scores" in found["good"]
    assert "scores" in found["other"]
    assert found["bad"]["error"].startswith("InputError: ")


def test_a_dead_process_fails_its_cell_and_is_replaced(cell: Cell) -> None:
    engine = LocalEngine([JobDevice("cpu", 1)])
    engine.submit("first", cell)
    [worker] = engine._busy.values()
    worker._process.kill()
    engine.submit("second", cell)
    try:
        found = {outcome.address: outcome.record for outcome in engine.outcomes()}
    finally:
        engine.close()
    assert found["first"]["error"].startswith("its process was killed by signal 9")
    assert "scores" in found["second"]


def test_close_ends_the_processes(cell: Cell) -> None:
    engine = LocalEngine([JobDevice("cpu", 1)])
    engine.submit("first", cell)
    [worker] = engine._busy.values()
    engine.close()
    assert not worker._process.is_alive()
    assert list(engine.outcomes()) == []


def test_an_engine_has_no_more_slots_than_there_are_jobs() -> None:
    engine = EngineChoice(device="cpu").engine(1)
    assert isinstance(engine, LocalEngine)
    assert engine.slots == 1


def test_invalid_engine_choices_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="engine='spark' is not known; expected one of local, ray"):
        EngineChoice("spark").check()
    with pytest.raises(InputError, match="--address auto is that of a Ray cluster; expected --engine ray with it"):
        EngineChoice(address="auto").check()
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match=r'--engine ray needs Ray, which is not installed: pip install "qwp\[ray\]"'):
        EngineChoice("ray").check()
