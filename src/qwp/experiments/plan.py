"""The plan of an experiment: the cells that can run on the data, and the files that are missing.

A plan is saved with the results, so that a report needs neither the data nor the time to hash it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from qwp.errors import InputError
from qwp.experiments.cells import Cell
from qwp.experiments.config import Experiment, System, Table
from qwp.experiments.data import DEMO, Data, Missing
from qwp.spaces.io.files import atomic_write


@dataclass(frozen=True)
class Slot:
    """A place in a table. point: its grid values; address: that of its cell, None if the cell cannot run."""

    direction: str
    system: str
    point: Mapping[str, Any]
    seed: int
    address: str | None


@dataclass(frozen=True)
class PlannedTable:
    """The parts of a table that a report needs."""

    name: str
    title: str
    measure: str
    retrieval: str
    published: str | None
    grid: Mapping[str, Sequence[Any]]
    directions: Sequence[str]
    systems: Sequence[str]
    slots: Sequence[Slot] = field(default_factory=tuple)


@dataclass(frozen=True)
class ExperimentPlan:
    """Tables and the cells to compute, by address; tables may share cells."""

    name: str
    title: str
    tables: tuple[PlannedTable, ...]
    missing: tuple[str, ...] = ()
    cells: Mapping[str, Cell] = field(default_factory=dict)

    def save(self, path: Path) -> None:
        """Save the parts that a report needs."""
        plan = {"name": self.name, "title": self.title, "missing": list(self.missing)}
        tables = [asdict(table) for table in self.tables]
        with atomic_write(path) as file:
            file.write(json.dumps({**plan, "tables": tables}, indent=1).encode())

    @classmethod
    def load(cls, path: Path) -> ExperimentPlan:
        """Load a saved plan, without its cells."""
        try:
            content = json.loads(path.read_bytes())
            tables = tuple(
                PlannedTable(**{**table, "slots": tuple(Slot(**slot) for slot in table["slots"])})
                for table in content["tables"]
            )
            return cls(content["name"], content["title"], tables, tuple(content["missing"]))
        except FileNotFoundError:
            name = path.name.removesuffix(".plan.json")
            raise InputError(
                f"{path} does not exist; expected the plan that `qwp experiment run {name}` saves: run it first, or "
                "name its folder with --results"
            ) from None
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path} is not a plan ({error}); expected one that `qwp experiment run` wrote") from error


def last_plan(folder: Path) -> Path:
    """Return the plan in a folder that was started last."""
    found = sorted(folder.glob("*.plan.json"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise InputError(
            f"{folder} has no experiment; expected the plan that `qwp experiment run NAME` saves: run one first, or "
            "name its folder with --results"
        )
    return found[-1]


def make_plan(
    experiment: Experiment, data: Data | None, *, directions: Sequence[str] = (), seeds: int | None = None
) -> ExperimentPlan:
    """Plan all cells of an experiment.

    Args:
        experiment: the tables.
        data: the folders of the user, or None.
        directions: plan only these directions.
        seeds: plan only the first seeds.
    """
    if data is None and experiment.needs_files:
        raise InputError(
            f"the experiment {experiment.name!r} needs vectors; expected --data DIR with files such as en.vec and "
            "en-es.txt, which `qwp data download` gets"
        )
    planner = _Planner(tuple(directions), seeds)
    tables = tuple(planner.table(table, _data_of(table, data)) for table in experiment.tables)
    unknown = [each for each in directions if not any(each in table.directions for table in tables)]
    if unknown:
        known = (
            ", ".join(dict.fromkeys(planner.directions))
            or "those with vectors and a dictionary, of which there are none"
        )
        raise InputError(
            f"the experiment {experiment.name!r} has no direction {', '.join(unknown)}; expected some of {known}"
        )
    return ExperimentPlan(
        experiment.name, experiment.title, tables, tuple(dict.fromkeys(planner.missing)), planner.cells
    )


def _data_of(table: Table, data: Data | None) -> Data:
    if table.data == DEMO:
        return Data.demo()
    assert data is not None, "checked before"
    return data


class _Planner:
    """Collects the cells of all tables, and the missing files."""

    def __init__(self, only: tuple[str, ...], seeds: int | None) -> None:
        self._only, self._seeds = only, seeds
        self.cells: dict[str, Cell] = {}
        self.missing: list[str] = []
        self.directions: list[str] = []

    def table(self, table: Table, data: Data) -> PlannedTable:
        wanted = data.directions() if table.directions is None else table.directions
        self.directions += wanted
        directions = [each for each in wanted if not self._only or each in self._only]
        slots = [
            slot
            for direction in directions
            for system in table.systems
            for slot in self._row(table, data, direction, system)
        ]
        systems = [system.name for system in table.systems]
        about = (table.name, table.title, table.measure, table.retrieval, table.published)
        return PlannedTable(*about, table.grid, directions, systems, slots)

    def _row(self, table: Table, data: Data, direction: str, system: System) -> list[Slot]:
        """Return the slots of a system on one direction."""
        inputs = data.inputs(direction)
        if not isinstance(inputs, Missing) and system.supervised and inputs.train is None:
            inputs = data.folder(direction).missing_training(direction)
        if isinstance(inputs, Missing):
            self.missing.append(str(inputs))
        slots = []
        for point in table.points():
            for seed in (system.seeds or table.seeds)[: self._seeds]:
                address = None
                if not isinstance(inputs, Missing):
                    options = table.options_of(system, point)
                    cell = Cell(direction, system.method, options, seed, inputs, system.supervised, table.max_vocab)
                    address = cell.address()
                    self.cells.setdefault(address, cell)
                slots.append(Slot(direction, system.name, point, seed, address))
        return slots
