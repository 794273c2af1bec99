"""Cells: an address follows what decides the result and nothing else; a cell is fitted and scored."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from qwp.experiments import cells
from qwp.experiments.cells import Cell, finished, run_cell
from qwp.experiments.data import Inputs
from qwp.experiments.engines.jobs import Device
from qwp.experiments.packing import unpack, unpacked_ranks

OPTIONS = {"start": "profiles", "start_words": 100, "steps": 2, "refine": 1, "verdict": "none", "bank_size": 2}


@pytest.fixture
def cell(folder: Path) -> Cell:
    inputs = Inputs(folder / "en.vec", folder / "es.vec", folder / "en-es.txt")
    return Cell("en-es", "qwp", {**OPTIONS, "coreset_size": 40}, 0, inputs)


def test_an_address_changes_with_what_decides_the_result(cell: Cell, folder: Path) -> None:
    changes: tuple[dict[str, Any], ...] = ({"seed": 1}, {"method": "wp"}, {"max_vocab": 100}, {"options": OPTIONS})
    addresses = [cell.address(), *(replace(cell, **change).address() for change in changes)]
    for name in ("en.vec", "es.vec", "en-es.txt"):
        text = (folder / name).read_text()
        (folder / name).write_text(text[: text.rindex("\n", 0, -1) + 1])
        addresses.append(cell.address())
    assert len(set(addresses)) == len(addresses)


def test_an_address_changes_with_the_code(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    before = cell.address()
    monkeypatch.setattr(cells, "code_version", lambda: "99")
    assert cell.address() != before


def test_an_address_changes_with_the_training_dictionary_of_supervised_methods_alone(cell: Cell, folder: Path) -> None:
    shutil.copy(folder / "en-es.txt", folder / "en-es.0-5000.txt")
    given = replace(cell, inputs=replace(cell.inputs, train=folder / "en-es.0-5000.txt"))
    assert given.address() == cell.address()
    supervised = replace(given, method="procrustes", options={}, supervised=True)
    before = supervised.address()
    (folder / "en-es.0-5000.txt").write_text("s1 t1\n")
    assert supervised.address() != before
    assert given.address() == cell.address()


def test_nothing_else_changes_an_address(cell: Cell, folder: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    shutil.copytree(folder, moved)
    (moved / "es.vec").rename(moved / "other.vec")
    inputs = Inputs(moved / "en.vec", moved / "other.vec", moved / "en-es.txt")
    # Another place, another name, options in another order, one that is the default said outright.
    options = dict(reversed({**cell.options, "epsilon": 0.05}.items()))
    assert replace(cell, inputs=inputs, options=options, direction="x-y").address() == cell.address()


def test_kinship_says_what_cells_share(cell: Cell) -> None:
    def shared(one: Cell, other: Cell) -> int:
        steps = [a == b for a, b in zip(one.kinship(), other.kinship(), strict=True)]
        return steps.index(False) if False in steps else len(steps)

    options = dict(cell.options)
    assert shared(cell, replace(cell, options={**options, "refine": 0})) == 4, "files, start, banks and loop"
    assert shared(cell, replace(cell, options={**options, "epsilon": 0.1})) == 3
    assert shared(cell, replace(cell, options={**options, "coreset_size": 50})) == 2
    assert shared(cell, replace(cell, seed=1, options={**options, "order": "given"})) == 1, "another estimated order"
    given = replace(cell, options={**options, "order": "given"})
    assert shared(given, replace(given, seed=1)) == 2
    assert shared(cell, replace(cell, options={**options, "start_words": 50})) == 1
    assert shared(cell, replace(cell, max_vocab=100)) == 0
    # Methods of one stage have nothing to share.
    single = [replace(cell, method=name, options={}) for name in ("least-squares", "rcsls", "proc-b")]
    assert {shared(single[0], other) for other in single[1:]} == {1}
    assert shared(single[0], replace(single[0], options={"ridge": 1.0})) == 1


def test_a_cell_is_fitted_and_scored(cell: Cell) -> None:
    # Without parts of other cells, whose seconds are those of another run.
    found = json.loads(json.dumps(run_cell(cell, Device("cpu", 1), parts=None)))
    assert found["scores"]["nn"]["P@1"] > 0.9  # a rotated copy
    assert set(found["scores"]["csls"]) == {"P@1", "P@5", "P@10", "MRR", "MAP", "AP"}
    assert found["coverage"] == {"covered": 50, "words": 50}
    assert found["verdict"] == "unjudged"
    for retrieval in ("nn", "csls"):
        ranks = unpacked_ranks(found["ranks"], retrieval)
        assert ranks.golds.tolist() == [1] * 50
        for measure in ("P@1", "MAP"):
            shares, weights = ranks.shares(measure)
            assert shares.sum() / weights.sum() == pytest.approx(found["scores"][retrieval][measure])
    assert {"start", "loop", "refine"} <= set(found["stages"])
    assert sum(found["stages"].values()) <= found["seconds"]
    assert unpack(found["plan"]["plan"]).size == len(found["plan"]["src"]) * len(found["plan"]["tgt"])
    again = run_cell(cell, Device("cpu", 1))
    assert (again["scores"], again["ranks"]) == (found["scores"], found["ranks"])
    # Cells of seed 0 alone keep a plan for a picture.
    assert "plan" not in run_cell(replace(cell, seed=1), Device())


def test_a_supervised_cell_learns_from_its_dictionary(cell: Cell) -> None:
    inputs = replace(cell.inputs, train=cell.inputs.gold)
    supervised = replace(cell, method="procrustes", options={"verdict": "none"}, supervised=True, inputs=inputs)
    assert run_cell(supervised, Device())["scores"]["nn"]["P@1"] == 1.0


def test_what_is_kept_of_a_cell(cell: Cell) -> None:
    record = finished(cell, cell.address(), {"error": "no"})
    assert (record["status"], record["direction"], record["config"]["coreset_size"]) == ("failed", "en-es", 40)
    assert finished(cell, "x", {"scores": {}})["status"] == "done"
