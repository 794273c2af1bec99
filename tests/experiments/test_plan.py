"""Plans: cells, missing files, and saving."""

from __future__ import annotations

from pathlib import Path

import pytest

from qwp.errors import InputError
from qwp.experiments.config import read_experiment
from qwp.experiments.data import Data
from qwp.experiments.plan import ExperimentPlan, make_plan


def test_every_combination_is_a_cell(folder: Path, config: Path) -> None:
    plan = make_plan(read_experiment(str(config)), Data.below(folder))
    assert len(plan.cells) == 2 * 2 * 2 * 2  # directions, systems, sizes, seeds
    [table] = plan.tables
    assert [slot.address for slot in table.slots] == list(plan.cells)
    assert not plan.missing


def test_cells_can_be_left_out(folder: Path, config: Path) -> None:
    plan = make_plan(read_experiment(str(config)), Data.below(folder), directions=["es-en"], seeds=1)
    assert {(cell.direction, cell.seed) for cell in plan.cells.values()} == {("es-en", 0)}
    assert len(plan.cells) == 4


def test_tables_share_cells(folder: Path) -> None:
    data = Data.below(folder)
    plan = make_plan(read_experiment("bench"), data, directions=["en-es"], seeds=1)
    first, second = ({slot.address for slot in table.slots} for table in plan.tables[:2])
    assert second < first
    assert len(plan.cells) < sum(len(table.slots) for table in plan.tables)


def test_missing_files_are_reported_once_and_other_cells_run(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    system = '[[systems]]\nname = "{}"\nmethod = "{}"\n'
    systems = system.format("SL", "self-learning") + system.format("PROC", "procrustes")
    path.write_text(f'directions = ["en-es", "en-fr"]\nseeds = [0, 1]\n{systems}')
    plan = make_plan(read_experiment(str(path)), Data.below(folder))
    assert {cell.direction for cell in plan.cells.values()} == {"en-es"}
    assert len(plan.missing) == 2
    assert "no training dictionary of en-es" in plan.missing[0]
    assert "no vectors of 'fr'" in plan.missing[1]
    assert sum(slot.address is None for slot in plan.tables[0].slots) == 2 + 4


def test_a_changed_file_changes_only_its_cells(folder: Path, config: Path) -> None:
    before = make_plan(read_experiment(str(config)), Data.below(folder)).cells
    (folder / "es-en.txt").write_text("t1 s1\n")
    after = make_plan(read_experiment(str(config)), Data.below(folder)).cells
    assert {cell.direction for address, cell in after.items() if address not in before} == {"es-en"}
    assert {cell.direction for address, cell in after.items() if address in before} == {"en-es"}


def test_a_plan_round_trip(folder: Path, config: Path, tmp_path: Path) -> None:
    plan = make_plan(read_experiment(str(config)), Data.below(folder))
    plan.save(tmp_path / "p.plan.json")
    loaded = ExperimentPlan.load(tmp_path / "p.plan.json")
    assert [slot.address for slot in loaded.tables[0].slots] == list(plan.cells)
    assert loaded.tables[0].systems == ["Random", "KMeans++"]


def test_no_plan_and_no_data_are_explained(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected the plan that `qwp experiment run table1` saves: run it first"):
        ExperimentPlan.load(tmp_path / "table1.plan.json")
    (tmp_path / "x.plan.json").write_text("{}")
    with pytest.raises(InputError, match="is not a plan"):
        ExperimentPlan.load(tmp_path / "x.plan.json")
    with pytest.raises(
        InputError, match=r"the experiment 'table1' needs vectors; expected --data DIR .*qwp data download"
    ):
        make_plan(read_experiment("table1"), None)


def test_an_unknown_direction_raises(folder: Path, config: Path) -> None:
    message = "the experiment 'tiny' has no direction en-xx; expected some of en-es, es-en"
    with pytest.raises(InputError, match=message):
        make_plan(read_experiment(str(config)), Data.below(folder), directions=["en-es", "en-xx"])
    message = "has no direction en-es; expected some of those with vectors and a dictionary, of which there are none"
    (folder / "empty").mkdir()
    with pytest.raises(InputError, match=message):
        make_plan(read_experiment("bench"), Data.below(folder / "empty"), directions=["en-es"])
