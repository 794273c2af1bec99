"""Running a plan: each cell once, resuming after an interrupt, with the same results in any case."""

from __future__ import annotations

import json
import logging
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from qwp.errors import InputError
from qwp.experiments.cells import Cell, run_cell
from qwp.experiments.config import read_experiment
from qwp.experiments.data import Data
from qwp.experiments.jobs import JobDevice, JobOutcome, JobRecord
from qwp.experiments.run import ExperimentPlan, RecordStore, RunProgress, make_plan, plan_file, run


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


def scored(cell: Cell) -> JobRecord:
    """Replace a fit in tests that do not depend on its result."""
    return {"scores": {"nn": {"P@1": cell.seed}}}


class Inline:
    """An engine in this process. fails: direction whose cells fail; stop: cells before an interrupt."""

    slots = 2

    def __init__(self, fails: str = "", stop: int | None = None, compute: Callable[[Cell], JobRecord] = scored) -> None:
        self.fails, self.stop, self.compute = fails, stop, compute
        self.waiting: list[tuple[str, Cell]] = []
        self.closed = False

    def submit(self, address: str, cell: Cell) -> None:
        self.waiting.append((address, cell))
        assert len(self.waiting) <= self.slots

    def outcomes(self) -> Iterator[JobOutcome]:
        count = 0
        while self.waiting:
            if count == self.stop:
                raise KeyboardInterrupt
            address, cell = self.waiting.pop(0)
            count += 1
            yield JobOutcome(address, {"error": "no"} if cell.direction == self.fails else self.compute(cell))

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def plan(folder: Path, config: Path) -> ExperimentPlan:
    return make_plan(read_experiment(str(config)), Data.below(folder))


def fitted(cell: Cell) -> JobRecord:
    return run_cell(cell, JobDevice())


def lasting(records: dict[str, Any]) -> dict[str, Any]:
    """Return the records without the times, which differ between runs."""
    times = {"seconds": 0, "shared_seconds": 0, "stages": {}}
    return {address: {**record, **times} for address, record in records.items()}


def test_every_cell_is_computed_once(plan: ExperimentPlan, tmp_path: Path) -> None:
    store, seen = RecordStore(tmp_path / "r"), list[RunProgress]()
    summary = run(plan, store, Inline(), seen.append)
    assert (summary.total, summary.done, summary.computed, summary.failed) == (16, 16, 16, ())
    assert (seen[0].done, seen[0].running, seen[-1].done, seen[-1].running) == (0, 2, 16, 0)
    assert plan_file(tmp_path / "r", "tiny").is_file()
    again = run(plan, RecordStore(tmp_path / "r"), Inline(), seen.append)
    assert (again.done, again.computed) == (16, 0)
    assert len(store.path.read_text().splitlines()) == 16


def test_an_interrupted_run_continues(plan: ExperimentPlan, tmp_path: Path) -> None:
    engine = Inline(stop=5)
    with pytest.raises(KeyboardInterrupt):
        run(plan, RecordStore(tmp_path / "r"), engine, lambda _: None)
    assert engine.closed
    summary = run(plan, RecordStore(tmp_path / "r"), Inline(), lambda _: None)
    assert (summary.done, summary.computed) == (16, 11)


def test_failures_are_retried_only_on_request(plan: ExperimentPlan, tmp_path: Path) -> None:
    summary = run(plan, RecordStore(tmp_path / "r"), Inline(fails="es-en"), lambda _: None)
    assert (summary.done, len(summary.failed)) == (8, 8)
    assert {record["error"] for record in summary.failed} == {"no"}
    again = run(plan, RecordStore(tmp_path / "r"), Inline(), lambda _: None)
    assert (again.computed, len(again.failed)) == (0, 8)
    retried = run(plan, RecordStore(tmp_path / "r"), Inline(), lambda _: None, retry_failed=True)
    assert (retried.computed, retried.done, retried.failed) == (8, 16, ())


def test_changed_inputs_recompute_their_cells(plan: ExperimentPlan, folder: Path, config: Path, tmp_path: Path) -> None:
    run(plan, RecordStore(tmp_path / "r"), Inline(), lambda _: None)
    (folder / "es-en.txt").write_text("t1 s1\nt2 s2\n")
    changed = make_plan(read_experiment(str(config)), Data.below(folder))
    assert run(changed, RecordStore(tmp_path / "r"), Inline(), lambda _: None).computed == 8


def test_a_file_that_changes_during_the_run_fails_its_cells(plan: ExperimentPlan, folder: Path, tmp_path: Path) -> None:
    (folder / "es-en.txt").write_text("t1 s1\nt2 s2\n")
    summary = run(plan, RecordStore(tmp_path / "r"), Inline(), lambda _: None)
    assert {record["error"] for record in summary.failed} == {
        "its files changed while it ran: run the experiment again"
    }
    assert len(summary.failed) == 8


def test_cells_of_other_processes_are_not_computed(plan: ExperimentPlan, tmp_path: Path) -> None:
    other = RecordStore(tmp_path / "r")
    other.create()

    def listener(progress: RunProgress) -> None:
        if progress.done == 1:  # another process finishes all cells that are not running
            for address in list(plan.cells)[4:]:
                other.append({"address": address, "status": "done"})

    assert run(plan, RecordStore(tmp_path / "r"), Inline(), listener).computed <= 5


def _on_all_cores() -> None:
    """Skip if the tests are bound to one core: two workers need two."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, range(os.cpu_count() or 1))


@pytest.mark.slow
@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="two workers need two cores")
def test_a_run_killed_at_any_moment_ends_with_the_same_results(folder: Path, config: Path, tmp_path: Path) -> None:
    """After kill -9, three times, only running cells are lost, and no process is left."""
    config.write_text(config.read_text().replace("seeds = [0, 1]", "seeds = [0, 1, 2, 3, 4]"))

    def begin(results: Path) -> subprocess.Popen[bytes]:
        options = ["--data", str(folder), "--results", str(results), "--workers", "2", "--device", "cpu", "--quiet"]
        line = [sys.executable, "-m", "qwp", "experiment", "run", str(config), *options]
        return subprocess.Popen(line, start_new_session=True, preexec_fn=_on_all_cores)

    def lines(results: Path) -> int:
        path = results / "results.jsonl"
        return path.read_bytes().count(b"\n") if path.exists() else 0

    expected = RecordStore(tmp_path / "expected")
    run(make_plan(read_experiment(str(config)), Data.below(folder)), expected, Inline(compute=fitted), lambda _: None)
    draws, broken = random.Random(5), tmp_path / "broken"
    kills = 0
    for _ in range(3):
        before, process = lines(broken), begin(broken)
        while lines(broken) < before + 2 and process.poll() is None:
            time.sleep(0.005)
        time.sleep(draws.random() * 0.1)
        process.kill()
        kills += process.wait() == -signal.SIGKILL
        wait_for_the_end_of(process.pid)
        with (broken / "results.jsonl").open("ab") as file:
            file.write(b'{"address": "half')  # as if the process had been killed while it wrote a line
    assert kills >= 2
    assert begin(broken).wait(120) == 0
    assert len(expected.known) == 40
    assert lasting(RecordStore(broken).refresh()) == lasting(expected.known)
    # A partial line stays if no cell was computed after it.
    whole_lines = (broken / "results.jsonl").read_text().rpartition("\n")[0].splitlines()
    assert len({json.loads(line)["address"] for line in whole_lines}) == len(whole_lines) == 40


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_an_interrupt_leaves_no_process_and_no_traceback(folder: Path, config: Path, tmp_path: Path) -> None:
    """Ctrl-C reaches all processes of a terminal, even those that are still starting."""
    options = ["--data", str(folder), "--results", str(tmp_path / "r"), "--workers", "1", "--device", "cpu"]
    line = [sys.executable, "-m", "qwp", "experiment", "run", str(config), *options]
    # Where the tests run in the background, Ctrl-C is ignored, and what they start would inherit that.
    process = subprocess.Popen(
        line,
        start_new_session=True,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stderr is not None
    assert "1 running" in process.stderr.readline()
    os.killpg(process.pid, signal.SIGINT)
    said = process.stderr.read()
    assert process.wait(60) == 130
    assert "finished cells are kept" in said
    assert "Traceback" not in said
    wait_for_the_end_of(process.pid)


def wait_for_the_end_of(group: int) -> None:
    """Fail if processes of a group outlive the one that started them for long."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    pytest.fail("workers outlive their parent")


WRITER = """
import sys
from pathlib import Path
from qwp.experiments.run import RecordStore
store = RecordStore(Path(sys.argv[1]))
for number in range(20):
    store.append({"address": f"{sys.argv[2]}-{number}", "status": "done", "filler": "x" * 5000})
"""


@pytest.fixture
def store(tmp_path: Path) -> RecordStore:
    found = RecordStore(tmp_path / "a" / "results")
    found.create()
    return found


def test_records_round_trip(store: RecordStore) -> None:
    store.append({"address": "a", "status": "done", "scores": {"nn": 0.5}})
    store.append({"address": "b", "status": "failed", "error": "ö\n"})
    other = RecordStore(store.folder)
    assert other.refresh() == store.known
    assert other.known["b"]["error"] == "ö\n"
    store.append({"address": "c", "status": "done"})
    assert set(other.refresh()) == {"a", "b", "c"}


def test_the_first_result_stays_and_failures_are_replaced(store: RecordStore) -> None:
    for number, status in enumerate(("failed", "done", "done", "failed")):
        store.append({"address": "a", "status": status, "number": number})
    assert store.known["a"]["number"] == 1
    assert RecordStore(store.folder).refresh()["a"]["number"] == 1


@pytest.mark.parametrize(
    "half", [b'{"address": "b", "sta', b"x", b'{"address": "b", "status": "done"}', b"y" * 200_000]
)
def test_a_partial_line_is_ignored_and_removed_by_the_next_writer(
    store: RecordStore, half: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    store.append({"address": "a", "status": "done"})
    with store.path.open("ab") as file:
        file.write(half)
    other = RecordStore(store.folder)
    assert set(other.refresh()) == {"a"}
    with caplog.at_level(logging.WARNING):
        other.append({"address": "c", "status": "done"})
    assert f"an incomplete record ({len(half)} bytes)" in caplog.text
    assert set(RecordStore(store.folder).refresh()) == {"a", "c"}
    assert [json.loads(line)["address"] for line in store.path.read_text().splitlines()] == ["a", "c"]


def test_a_partial_first_line_is_removed(store: RecordStore) -> None:
    store.path.write_bytes(b'{"addr')
    store.append({"address": "a", "status": "done"})
    assert store.path.read_bytes().startswith(b'{"address": "a"')


def test_damaged_lines_are_counted(store: RecordStore, caplog: pytest.LogCaptureFixture) -> None:
    store.path.write_bytes(b'{"address": "a", "status": "done"}\n\xff\xfe\n[1]\n{"status": "done"}\n')
    with caplog.at_level(logging.WARNING):
        assert set(store.refresh()) == {"a"}
    assert "ignored 3 damaged lines" in caplog.text


def test_a_store_without_file_is_empty(tmp_path: Path) -> None:
    assert RecordStore(tmp_path / "none").refresh() == {}


def test_a_replaced_file_is_read_again(store: RecordStore) -> None:
    store.append({"address": "a", "status": "done", "filler": "x" * 100})
    store.refresh()
    store.path.write_bytes(b'{"address": "b", "status": "done"}\n')
    assert set(store.refresh()) == {"b"}


def test_a_full_disk_leaves_no_partial_line(store: RecordStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.append({"address": "a", "status": "done"})
    before, write = store.path.read_bytes(), os.write
    monkeypatch.setattr(os, "write", lambda handle, line: write(handle, line[:5]))
    with pytest.raises(InputError, match="a result could not be written"):
        store.append({"address": "b", "status": "done"})
    assert store.path.read_bytes() == before


def test_a_folder_that_cannot_be_created_raises(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be created"):
        RecordStore(tmp_path / "file" / "results").create()


def test_several_writers(store: RecordStore) -> None:
    arguments = [[sys.executable, "-c", WRITER, str(store.folder), str(number)] for number in range(2)]
    processes = [subprocess.Popen(each) for each in arguments]
    assert [process.wait(60) for process in processes] == [0, 0]
    assert len(store.refresh()) == 40
    assert len(store.path.read_bytes().splitlines()) == 40
