from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event

import pytest

from qwp import Alignment
from qwp.errors import InputError
from qwp.explore.session import Session, next_folder, realign, settings
from qwp.explore.workspace import Workspace
from qwp.showing.events import Progress, ProgressCallback
from tests.conftest import QUICK


def until(holds: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    for _ in range(2400):
        if holds():
            return
        time.sleep(0.025)
    pytest.fail("it did not happen within a minute")


@pytest.fixture
def session(workspace: Workspace) -> Iterator[Session]:
    made = Session([workspace])
    made.start()
    yield made
    made.close()


def test_pairs_and_map_are_computed_in_the_background(workspace: Workspace, folder: Path) -> None:
    for path in folder.glob("explorer-*"):
        path.unlink()
    session = Session([workspace])
    assert session.task(0).state == "waiting"
    session.start()
    until(lambda: session.task(0).state == "done")
    assert session.pairs(0) is not None
    assert session.get(0).map is not None
    assert {path.name for path in folder.glob("explorer-*")} == {
        "explorer-pairs.safetensors",
        "explorer-plane.safetensors",
    }


def test_a_failure_is_reported(workspace: Workspace) -> None:
    def fail(*_: object) -> None:
        raise ValueError("no way")

    session = Session([workspace], prepare=fail)
    session.start()
    until(lambda: session.task(0).state == "failed")
    assert session.task(0).message == "ValueError: no way"
    session.close()


def test_closing_waits_for_threads_and_reports_a_running_one(workspace: Workspace) -> None:
    begun, released = Event(), Event()

    def busy(*_: object) -> None:
        begun.set()
        released.wait(60)

    session = Session([workspace], prepare=busy)
    session.start()
    assert begun.wait(60)
    assert not session.close(0.01)
    released.set()
    assert session.close(60)


def test_unknown_numbers_raise(session: Session) -> None:
    with pytest.raises(InputError, match="a=1 is not known; expected 0 to 0"):
        session.get(1)


def test_aligning_again_adds_an_alignment_with_the_marks(session: Session, folder: Path) -> None:
    workspace = session.get(0)
    workspace.corrections.set([(f"s{i}", f"t{i}") for i in range(40)], "right")
    workspace.corrections.set([("s50", "t51")], "wrong")
    work = session.realign(0)
    until(lambda: work.state != "working")
    assert (work.state, work.made, work.message) == ("done", 1, "")
    made = session.get(1)
    assert made.name == "planted-corrected"
    assert made.corrections.counts() == {"right": 40, "wrong": 1}
    assert made.anchors is not None
    assert len(made.anchors) == 40
    assert {"s0", "s39"} <= made.taught()
    assert Alignment.load(folder.parent / "planted-corrected").provenance.config["start"] == "lexicon"
    until(lambda: session.task(1).state == "done")


def test_one_at_a_time_and_it_can_be_stopped(workspace: Workspace) -> None:
    def forever(workspace: Workspace, on_progress: ProgressCallback) -> Alignment:
        while True:
            on_progress(Progress("loop", 1, 2, {}))
            time.sleep(0.01)

    session = Session([workspace], align=forever)
    work = session.realign(0)
    with pytest.raises(InputError, match="an alignment is running already"):
        session.realign(0)
    until(lambda: work.what == "loop")
    session.stop_realigning()
    until(lambda: work.state == "failed")
    assert work.shown()["message"] == "stopped"


def test_too_few_pairs_fail_the_task(session: Session) -> None:
    work = session.realign(0)
    until(lambda: work.state == "failed")
    assert "expected at least 20" in work.message


def test_too_few_pairs_raise(workspace: Workspace) -> None:
    with pytest.raises(InputError, match="0 pairs are marked as right, expected at least 20 to align with: mark some"):
        realign(workspace)
    workspace.corrections.set([("s0", "t0"), ("not", "there")], "right")
    with pytest.raises(InputError, match="1 pairs are marked as right"):
        realign(workspace)


def test_settings_initialize_and_anchor_with_the_pairs(workspace: Workspace) -> None:
    found = settings(workspace.alignment)
    assert found["start"] == "lexicon"
    assert found["anchor_weight"] == 3.0
    assert found["coreset_size"] == QUICK["coreset_size"]


def test_realign_uses_the_marked_pairs(workspace: Workspace) -> None:
    workspace.corrections.set([(f"s{i}", f"t{i}") for i in range(40)], "right")
    stages: list[str] = []
    made = realign(workspace, lambda event: stages.append(event.stage))
    assert isinstance(made, Alignment)
    assert made.provenance.config["start"] == "lexicon"
    assert made.provenance.supervision["lexicon"] is not None
    assert {"loop", "refine", "verdict"} <= set(stages)


def test_folders_are_counted(tmp_path: Path) -> None:
    assert next_folder(tmp_path / "a").name == "a-corrected"
    (tmp_path / "a-corrected").mkdir()
    assert next_folder(tmp_path / "a").name == "a-corrected-2"
