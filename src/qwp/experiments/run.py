"""Running the cells of a plan that are not done yet."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qwp.errors import InputError
from qwp.experiments.cells import DONE, FAILED, Cell, Record, finished
from qwp.experiments.engines.jobs import Dispatch, Engine, Outcome
from qwp.experiments.plan import Plan
from qwp.results import locks

logger = logging.getLogger(__name__)

FILE = "results.jsonl"
_TAIL = 1 << 16


class Store:
    """The records below a folder. `known` are those that were read or written so far, by address."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / FILE
        self.known: dict[str, Record] = {}
        self._read_to = 0

    def create(self) -> None:
        """Make the folder."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"the folder {self.folder} cannot be made ({error.strerror}); expected a place for the results"
            ) from error

    def refresh(self) -> dict[str, Record]:
        """Read what was added since, by whomever. Returns all that is known."""
        try:
            with self.path.open("rb") as file:
                if self._read_to > file.seek(0, os.SEEK_END):  # somebody has replaced it
                    self._read_to = 0
                    self.known.clear()
                file.seek(self._read_to)
                whole, newline, _ = file.read().rpartition(b"\n")
        except FileNotFoundError:
            return self.known
        for record in _parsed(whole, self.path):
            self._keep(record)
        self._read_to += len(whole) + len(newline)
        return self.known

    def append(self, record: Record) -> None:
        """Add a record. It is on the disk when this returns."""
        line = json.dumps(record, sort_keys=True).encode() + b"\n"
        with locks.exclusive(self.folder):
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o666)
            try:
                _cut_half_a_line(handle)
                _write(handle, line)
                os.fsync(handle)
            finally:
                os.close(handle)
        self._keep(record)

    def _keep(self, record: Record) -> None:
        """The first result of a cell stays; a failure gives way to what came after it."""
        before = self.known.get(record["address"])
        if before is None or before["status"] != DONE:
            self.known[record["address"]] = record


def _write(handle: int, line: bytes) -> None:
    """All of a line; a disk that is full leaves half of it, which is taken back."""
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


def _cut_half_a_line(handle: int) -> None:
    """Drop what follows the last line feed."""
    end = size = os.fstat(handle).st_size
    while end > 0:
        begin = max(0, end - _TAIL)
        os.lseek(handle, begin, os.SEEK_SET)
        at = os.read(handle, end - begin).rfind(b"\n")
        if at >= 0:
            end = begin + at + 1
            break
        end = begin
    if end < size:
        logger.warning("half a record (%d bytes) of an interrupted run was cut off", size - end)
        os.ftruncate(handle, end)


def _parsed(text: bytes, path: Path) -> Iterator[Record]:
    """The records in complete lines; others are counted and left out."""
    strange = 0
    for line in text.split(b"\n"):
        if not line:
            continue
        record = _stored_record(line)
        if record is None:
            strange += 1
        else:
            yield record
    if strange:
        logger.warning("%s: %d damaged lines left out", path, strange)


def _stored_record(line: bytes) -> Record | None:
    try:
        found: Any = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) and {"address", "status"} <= found.keys() else None


@dataclass(frozen=True)
class Progress:
    """Where a run is. done, failed: of all cells of the plan, now and before; last: the record that just came."""

    total: int
    done: int
    failed: int
    running: int
    last: Record | None = None


Listener = Callable[[Progress], None]


@dataclass(frozen=True)
class Summary:
    """How a run ended. computed: cells of this run, failed ones among them; failed: the records of those."""

    total: int
    done: int
    computed: int
    failed: tuple[Record, ...]


def plan_file(folder: Path, name: str) -> Path:
    """Where the plan of an experiment is kept."""
    return folder / f"{name}.plan.json"


def run(plan: Plan, store: Store, engine: Engine[Cell], listener: Listener, *, retry_failed: bool = False) -> Summary:
    """Compute what is not there. Cells that failed before stay so unless they are to be tried again.

    Other processes may work on the same results: what they finish meanwhile is not computed here.
    """
    store.create()
    plan.save(plan_file(store.folder, plan.name))
    store.refresh()

    def wanted(address: str) -> bool:
        # What failed before this run is wanted if it is to do; what is done is not, whoever did it.
        return store.refresh().get(address, {}).get("status") != DONE

    computed = 0
    with Dispatch(engine, dict(_todo(plan, store, retry_failed=retry_failed)), wanted) as dispatch:
        listener(_progress(plan, store, dispatch.running))
        for outcome in engine.iterate():
            record = _record(plan.cells[outcome.address], outcome)
            store.append(record)
            computed += 1
            dispatch.next_after(outcome)
            listener(_progress(plan, store, dispatch.running, record))
    records = [store.known[address] for address in plan.cells if address in store.known]
    failed = tuple(record for record in records if record["status"] == FAILED)
    return Summary(len(plan.cells), len(records) - len(failed), computed, failed)


def _todo(plan: Plan, store: Store, *, retry_failed: bool) -> Iterator[tuple[str, Cell]]:
    known = dict(store.known)
    for address, cell in plan.cells.items():
        status = known[address]["status"] if address in known else None
        if status is None or (status == FAILED and retry_failed):
            yield address, cell


def _record(cell: Cell, outcome: Outcome) -> Record:
    try:
        unchanged = cell.address() == outcome.address
    except OSError:  # a file is gone
        unchanged = False
    if unchanged:
        return finished(cell, outcome.address, outcome.found)
    error = "its files changed while it ran: run the experiment again"
    return {"address": outcome.address, "status": FAILED, "direction": cell.direction, "error": error}


def _progress(plan: Plan, store: Store, running: int, last: Record | None = None) -> Progress:
    statuses = [store.known[address]["status"] for address in plan.cells if address in store.known]
    return Progress(len(plan.cells), statuses.count(DONE), statuses.count(FAILED), running, last)
