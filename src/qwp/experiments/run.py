"""Running the cells of a plan that are not done yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from qwp.experiments.cells import DONE, FAILED, Cell, Record, finished
from qwp.experiments.engines import Engine, Outcome
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


class Queue:
    """Cells in an order in which those that have parts in common follow each other, in one process if they can.

    Cells with the same files and start are a group. A process that has begun a group ends it; then it begins another,
    of the same files if there is one; and where all are begun it helps with the one of which most is left.
    """

    def __init__(self, cells: Iterable[tuple[str, Cell]]) -> None:
        self._groups: dict[tuple[str, ...], deque[tuple[str, Cell]]] = {}
        for address, cell in _akin_together(cells):
            self._groups.setdefault(_group(cell), deque()).append((address, cell))
        self._begun: set[tuple[str, ...]] = set()

    def after(self, cell: Cell | None = None) -> tuple[str, Cell] | None:
        """The next for a process that has computed this cell, or none yet."""
        if not self._groups:
            return None
        own = None if cell is None else _group(cell)
        fresh = [group for group in self._groups if group not in self._begun]
        if own in self._groups:
            group = own
        elif fresh:
            group = next((each for each in fresh if own is not None and each[0] == own[0]), fresh[0])
        else:
            group = max(self._groups, key=lambda each: len(self._groups[each]))
        helping = group in self._begun and group != own
        self._begun.add(group)
        members = self._groups[group]
        # From the other end, which is the least akin to what the others are at.
        found = members.pop() if helping else members.popleft()
        if not members:
            del self._groups[group]
        return found


def _group(cell: Cell) -> tuple[str, ...]:
    return cell.kinship()[:2]


def _akin_together(cells: Iterable[tuple[str, Cell]]) -> list[tuple[str, Cell]]:
    """Cells with those beside each other that are alike, more or less in the order they came in."""
    first: dict[tuple[str, ...], int] = {}
    keyed = []
    for number, (address, cell) in enumerate(cells):
        kinship = cell.kinship()
        steps = [kinship[: step + 1] for step in range(len(kinship))]
        keyed.append(([first.setdefault(step, number) for step in steps], address, cell))
    return [(address, cell) for _, address, cell in sorted(keyed, key=lambda each: each[0])]


def run(plan: Plan, store: Store, engine: Engine, listener: Listener, *, retry_failed: bool = False) -> Summary:
    """Compute what is not there. Cells that failed before stay so unless they are to be tried again.

    Other processes may work on the same results: what they finish meanwhile is not computed here.
    """
    store.create()
    plan.save(plan_file(store.folder, plan.name))
    store.refresh()
    queue = Queue(_todo(plan, store, retry_failed=retry_failed))
    computed = running = 0

    def submit(after: Cell | None = None) -> int:
        store.refresh()
        # What failed before this run is wanted if it is in the queue; what is done is not, whoever did it.
        while (following := queue.after(after)) is not None:
            if store.known.get(following[0], {}).get("status") != DONE:
                engine.submit(*following)
                return 1
        return 0

    try:
        for _ in range(engine.slots):
            running += submit()
        listener(_progress(plan, store, running))
        for outcome in engine.iterate():
            cell = plan.cells[outcome.address]
            record = _record(cell, outcome)
            store.append(record)
            # The process that is free now is the one that has computed this cell.
            computed, running = computed + 1, running - 1 + submit(cell)
            listener(_progress(plan, store, running, record))
    finally:
        engine.close()
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
