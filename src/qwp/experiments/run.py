"""Running a plan: the store of records, and the loop that computes the missing cells."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qwp.errors import InputError
from qwp.experiments.cells import DONE, FAILED, Cell, saved_record
from qwp.experiments.jobs import Dispatch, Engine, JobOutcome, JobRecord
from qwp.experiments.plan import ExperimentPlan
from qwp.spaces.io import locks

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
