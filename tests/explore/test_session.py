from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event

import pytest

from qwp import Alignment
from qwp.errors import InputError
from qwp.explore import session as module
from qwp.explore.opened import Explored
from qwp.explore.session import Session, next_folder, realigned, settings
from qwp.showing.events import Progress
from tests.conftest import QUICK


def until(holds: Callable[[], bool]) -> None:
    """Wait for something that happens in the background."""
    for _ in range(2400):
        if holds():
            return
        time.sleep(0.025)
    pytest.fail("it did not happen within a minute")


@pytest.fixture
def session(explored: Explored) -> Iterator[Session]:
    made = Session([explored])
    made.start()
    yield made
    made.close()


def test_table_and_map_are_made_in_the_background(explored: Explored, folder: Path) -> None:
    for path in folder.glob("explorer-*"):
        path.unlink()
    session = Session([explored])
    assert session.work(0).state == "waiting"
    session.start()
    until(lambda: session.work(0).state == "done")
    assert session.findings(0) is not None
    assert session.get(0).plane is not None
    assert {path.name for path in folder.glob("explorer-*")} == {
        "explorer-pairs.safetensors",
        "explorer-plane.safetensors",
    }


def test_a_failure_is_told(explored: Explored, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ValueError("no way")

    monkeypatch.setattr(explored, "find", fail)
    session = Session([explored])
    session.start()
    until(lambda: session.work(0).state == "failed")
    assert session.work(0).message == "ValueError: no way"
    session.close()


def test_closing_waits_for_the_threads_and_tells_if_one_goes_on(
    explored: Explored, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, released = Event(), Event()

    def busy(*_: object) -> None:
        begun.set()
        released.wait(60)

    monkeypatch.setattr(explored, "find", busy)
    session = Session([explored])
    session.start()
    assert begun.wait(60)
    assert not session.close(0.01)
    released.set()
    assert session.close(60)


def test_unknown_numbers_are_refused(session: Session) -> None:
    with pytest.raises(InputError, match="a=1 is not known; expected 0 to 0"):
        session.get(1)


def test_aligning_again_adds_an_alignment_with_the_marks(session: Session, folder: Path) -> None:
    explored = session.get(0)
    explored.corrections.set([(f"s{i}", f"t{i}") for i in range(40)], "right")
    explored.corrections.set([("s50", "t51")], "wrong")
    work = session.realign(0)
    until(lambda: work.state != "working")
    assert (work.state, work.made, work.message) == ("done", 1, "")
    made = session.get(1)
    assert made.name == "planted-corrected"
    assert made.corrections.counts() == {"right": 40, "wrong": 1}
    assert Alignment.load(folder.parent / "planted-corrected").provenance.config["start"] == "lexicon"
    until(lambda: session.work(1).state == "done")


def test_one_at_a_time_and_it_can_be_stopped(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def forever(explored: Explored, tell: Callable[[object], None]) -> None:
        while True:
            tell(Progress("loop", 1, 2, {}))
            time.sleep(0.01)

    monkeypatch.setattr(module, "realigned", forever)
    work = session.realign(0)
    with pytest.raises(InputError, match="an alignment is being made already"):
        session.realign(0)
    until(lambda: work.what == "loop")
    session.stop_realigning()
    until(lambda: work.state == "failed")
    assert work.shown()["message"] == "stopped"


def test_too_few_pairs_are_told_by_the_work(session: Session) -> None:
    work = session.realign(0)
    until(lambda: work.state == "failed")
    assert "expected at least 20" in work.message


def test_too_few_pairs_are_refused(explored: Explored) -> None:
    with pytest.raises(InputError, match="0 pairs are marked as right, expected at least 20 to align with: mark some"):
        realigned(explored)
    explored.corrections.set([("s0", "t0"), ("not", "there")], "right")
    with pytest.raises(InputError, match="1 pairs are marked as right"):
        realigned(explored)


def test_the_settings_are_those_of_before_with_the_pairs_as_start_and_anchors(explored: Explored) -> None:
    found = settings(explored.alignment)
    assert found["start"] == "lexicon"
    assert found["anchor_weight"] == module.ANCHOR_WEIGHT
    assert found["coreset_size"] == QUICK["coreset_size"]


def test_it_aligns_again(explored: Explored) -> None:
    explored.corrections.set([(f"s{i}", f"t{i}") for i in range(40)], "right")
    stages: list[str] = []
    made = realigned(explored, lambda event: stages.append(event.stage))
    assert isinstance(made, Alignment)
    assert made.provenance.config["start"] == "lexicon"
    assert made.provenance.supervision["lexicon"] is not None
    assert {"loop", "refine", "verdict"} <= set(stages)


def test_folders_are_counted(tmp_path: Path) -> None:
    assert next_folder(tmp_path / "a").name == "a-corrected"
    (tmp_path / "a-corrected").mkdir()
    assert next_folder(tmp_path / "a").name == "a-corrected-2"
