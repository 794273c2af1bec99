"""The cells of an experiment on the data that is there, and what is missing.

A plan is kept beside the results, so that a report needs neither the data nor the time to hash it.
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
from qwp.spaces.io.files import replacing


@dataclass(frozen=True)
class Slot:
    """One place in a table. point: its values of the grid; address: of its cell, None if that cannot run."""

    direction: str
    system: str
    point: Mapping[str, Any]
    seed: int
    address: str | None


@dataclass(frozen=True)
class PlannedTable:
    """What a report needs of a table."""

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
class Plan:
    """cells: by address, those that can run; a cell that several tables want is there once."""

    name: str
    title: str
    tables: tuple[PlannedTable, ...]
    missing: tuple[str, ...] = ()
    cells: Mapping[str, Cell] = field(default_factory=dict)

    def save(self, path: Path) -> None:
        """Keep what a report needs."""
        kept = {"name": self.name, "title": self.title, "missing": list(self.missing)}
        tables = [asdict(table) for table in self.tables]
        with replacing(path) as file:
            file.write(json.dumps({**kept, "tables": tables}, indent=1).encode())

    @classmethod
    def load(cls, path: Path) -> Plan:
        """What was kept."""
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
                f"{path} does not exist; expected what `qwp experiment run {name}` leaves there: run it first, or name "
                "its folder with --results"
            ) from None
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path} is not a plan ({error}); expected one that `qwp experiment run` wrote") from error


def last_plan(folder: Path) -> Path:
    """That of the experiment that was begun last, of those with results in a folder."""
    found = sorted(folder.glob("*.plan.json"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise InputError(
            f"{folder} has no experiment; expected what `qwp experiment run NAME` leaves there: run one first, or name "
            "its folder with --results"
        )
    return found[-1]


def make_plan(
    experiment: Experiment, data: Data | None, *, directions: Sequence[str] = (), seeds: int | None = None
) -> Plan:
    """All cells. data: None where no folder was named. directions, seeds: only these, only the first so many."""
    if data is None and experiment.needs_files:
        raise InputError(
            f"the experiment {experiment.name!r} needs vectors; expected --data DIR with files such as en.vec and "
            "en-es.txt, which `qwp data download` gets"
        )
    maker = _Maker(tuple(directions), seeds)
    tables = tuple(maker.table(table, _data_of(table, data)) for table in experiment.tables)
    strange = [each for each in directions if not any(each in table.directions for table in tables)]
    if strange:
        known = (
            ", ".join(dict.fromkeys(maker.directions)) or "those with vectors and a dictionary, of which there are none"
        )
        raise InputError(
            f"the experiment {experiment.name!r} has no direction {', '.join(strange)}; expected some of {known}"
        )
    return Plan(experiment.name, experiment.title, tables, tuple(dict.fromkeys(maker.missing)), maker.cells)


def _data_of(table: Table, data: Data | None) -> Data:
    if table.data == DEMO:
        return Data.demo()
    assert data is not None, "checked before"
    return data


class _Maker:
    """Collects the cells of all tables, and what is missing."""

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
        """The places of a system on one direction."""
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
