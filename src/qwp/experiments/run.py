"""Running an experiment: its plan, the store of records, and the loop that computes the missing cells.

The plan has the cells that can run on the data, and the files that are missing. It is saved with the results, so that a
report needs neither the data nor the time to hash it.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from qwp.errors import InputError
from qwp.experiments.cells import DONE, FAILED, Cell, saved_record
from qwp.experiments.config import Experiment, System, Table
from qwp.experiments.data import DEMO, Data, Missing
from qwp.experiments.jobs import Dispatch, Engine, JobOutcome, JobRecord
from qwp.spaces.io import locks
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


logger = logging.getLogger(__name__)

FILE = "results.jsonl"
_BLOCK_BYTES = 1 << 16


class RecordStore:
    """The records in a folder. `known` holds the records read or written so far, by address."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / FILE
        self.known: dict[str, JobRecord] = {}
        self._read_to = 0

    def create(self) -> None:
        """Create the folder."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"the folder {self.folder} cannot be created ({error.strerror}); expected a folder for the results"
            ) from error

    def refresh(self) -> dict[str, JobRecord]:
        """Read the records that any process has added since, and return all of them."""
        try:
            with self.path.open("rb") as file:
                if self._read_to > file.seek(0, os.SEEK_END):  # another process has replaced the file
                    self._read_to = 0
                    self.known.clear()
                file.seek(self._read_to)
                whole, newline, _ = file.read().rpartition(b"\n")
        except FileNotFoundError:
            return self.known
        for record in _parsed(whole, self.path):
            self._add(record)
        self._read_to += len(whole) + len(newline)
        return self.known

    def append(self, record: JobRecord) -> None:
        """Add a record and write it to the disk."""
        line = json.dumps(record, sort_keys=True).encode() + b"\n"
        with locks.exclusive(self.folder):
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o666)
            try:
                _drop_partial_line(handle)
                _write(handle, line)
                os.fsync(handle)
            finally:
                os.close(handle)
        self._add(record)

    def _add(self, record: JobRecord) -> None:
        """Add a record. The first result of a cell stays; a later record replaces a failure."""
        before = self.known.get(record["address"])
        if before is None or before["status"] != DONE:
            self.known[record["address"]] = record


def _write(handle: int, line: bytes) -> None:
    """Write a line completely; if the disk is full, remove the part that was written."""
    size = os.fstat(handle).st_size
    try:
        if os.write(handle, line) < len(line):
            raise OSError("no room for the whole record")
    except OSError as error:
        os.ftruncate(handle, size)
        raise InputError(
            f"a result could not be written ({error.strerror or error}), expected a disk with room for it: free some "
            "space and run the same command again"
        ) from error


def _drop_partial_line(handle: int) -> None:
    """Remove what follows the last line feed."""
    end = size = os.fstat(handle).st_size
    while end > 0:
        begin = max(0, end - _BLOCK_BYTES)
        os.lseek(handle, begin, os.SEEK_SET)
        at = os.read(handle, end - begin).rfind(b"\n")
        if at >= 0:
            end = begin + at + 1
            break
        end = begin
    if end < size:
        logger.warning("removed an incomplete record (%d bytes) of an interrupted run", size - end)
        os.ftruncate(handle, end)


def _parsed(text: bytes, path: Path) -> Iterator[JobRecord]:
    """Yield the records of valid lines, and count the others."""
    damaged = 0
    for line in text.split(b"\n"):
        if not line:
            continue
        record = _stored_record(line)
        if record is None:
            damaged += 1
        else:
            yield record
    if damaged:
        logger.warning("%s: ignored %d damaged lines", path, damaged)


def _stored_record(line: bytes) -> JobRecord | None:
    try:
        found: Any = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) and {"address", "status"} <= found.keys() else None


@dataclass(frozen=True)
class RunProgress:
    """The progress of a run. done, failed: cells of the plan, including earlier runs; last: the latest record."""

    total: int
    done: int
    failed: int
    running: int
    last: JobRecord | None = None


RunListener = Callable[[RunProgress], None]


@dataclass(frozen=True)
class Summary:
    """The result of a run. computed: cells of this run, including failures; failed: records of all failures."""

    total: int
    done: int
    computed: int
    failed: tuple[JobRecord, ...]


def plan_file(folder: Path, name: str) -> Path:
    """Return the file of the plan of an experiment."""
    return folder / f"{name}.plan.json"


def run(
    plan: ExperimentPlan, store: RecordStore, engine: Engine[Cell], listener: RunListener, *, retry_failed: bool = False
) -> Summary:
    """Compute the cells without a record. Cells that failed before are computed only with `retry_failed`.

    Other processes may work on the same results: cells that they finish meanwhile are not computed again.
    """
    store.create()
    plan.save(plan_file(store.folder, plan.name))
    store.refresh()

    def wanted(address: str) -> bool:
        return store.refresh().get(address, {}).get("status") != DONE

    computed = 0
    with Dispatch(engine, dict(_todo(plan, store, retry_failed=retry_failed)), wanted) as dispatch:
        listener(_progress(plan, store, dispatch.running))
        for outcome in engine.outcomes():
            record = _record(plan.cells[outcome.address], outcome)
            store.append(record)
            computed += 1
            dispatch.next_after(outcome)
            listener(_progress(plan, store, dispatch.running, record))
    records = [store.known[address] for address in plan.cells if address in store.known]
    failed = tuple(record for record in records if record["status"] == FAILED)
    return Summary(len(plan.cells), len(records) - len(failed), computed, failed)


def _todo(plan: ExperimentPlan, store: RecordStore, *, retry_failed: bool) -> Iterator[tuple[str, Cell]]:
    known = dict(store.known)
    for address, cell in plan.cells.items():
        status = known[address]["status"] if address in known else None
        if status is None or (status == FAILED and retry_failed):
            yield address, cell


def _record(cell: Cell, outcome: JobOutcome) -> JobRecord:
    try:
        unchanged = cell.address() == outcome.address
    except OSError:  # a file is gone
        unchanged = False
    if unchanged:
        return saved_record(cell, outcome.address, outcome.record)
    error = "its files changed while it ran: run the experiment again"
    return {"address": outcome.address, "status": FAILED, "direction": cell.direction, "error": error}


def _progress(plan: ExperimentPlan, store: RecordStore, running: int, last: JobRecord | None = None) -> RunProgress:
    statuses = [store.known[address]["status"] for address in plan.cells if address in store.known]
    return RunProgress(len(plan.cells), statuses.count(DONE), statuses.count(FAILED), running, last)
