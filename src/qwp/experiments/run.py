"""Running the cells of a plan that are not done yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from qwp.experiments.cells import DONE, FAILED, Cell, Record, finished
from qwp.experiments.engines.jobs import Engine, Outcome
from qwp.experiments.engines.order import Dispatch
from qwp.experiments.plan import Plan
from qwp.experiments.store import Store


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
