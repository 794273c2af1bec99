"""One fit in progress: what it records, what it keeps, and what it finds again."""

from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from qwp import Embeddings, InputError, Lexicon, arrays
from qwp.methods import run as run_module
from qwp.methods.inputs import PreparedSpace, prepare
from qwp.methods.run import STAGES, Keeper, Progress, Run, clamped, timed
from qwp.methods.supervision import Supervision
from qwp.results.checkpoints import Checkpoint
from qwp.results.identity import Identity
from tests.conftest import planted_embeddings
from tests.libraries import assert_same

IDENTITY = Identity("0.1.0", "test", {"number": 1}, 0, {"src": "a" * 64, "tgt": "b" * 64})


def sides(src: Embeddings, tgt: Embeddings) -> list[PreparedSpace]:
    return prepare([src, tgt], arrays.HOST, normalize="unit", order="given", dtype="float64", seed=0)


def started(**options: Any) -> Run:
    src, tgt = sides(*planted_embeddings(20, 15, d=3))
    return Run(src, tgt, options.pop("supervision", Supervision()), IDENTITY, **options)


# --------------------------------------------------------------------------- records


def test_reports_are_kept_and_told() -> None:
    events: list[Progress] = []
    run = started(progress=events.append)
    assert run.x is run.src.vectors
    assert run.y is run.tgt.vectors
    run.report("loop", 1, 2, {"objective": 0.5})
    run.report("bank", 3, 9, {}, keep=False)
    run.report("loop", 2, 2, {"objective": 0.25})
    assert run.history == [
        {"stage": "loop", "step": 1, "objective": 0.5},
        {"stage": "loop", "step": 2, "objective": 0.25},
    ]
    assert events == [
        Progress("loop", 1, 2, {"objective": 0.5}),
        Progress("bank", 3, 9, {}),
        Progress("loop", 2, 2, {"objective": 0.25}),
    ]


def test_seconds_add_up_and_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([10.0, 14.0, 20.0, 21.0])
    one, two = started(), started()
    monkeypatch.setattr(run_module, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    with timed([one, two], "loop"):
        pass
    with pytest.raises(KeyboardInterrupt), timed([one], "loop"):
        raise KeyboardInterrupt
    assert (one.seconds, two.seconds) == ({"loop": 3.0}, {"loop": 2.0})
    one.move_seconds("loop", "bank", 0.5)
    one.move_seconds("loop", "bank", 0.25)
    assert one.seconds == {"loop": 2.25, "bank": 0.75}


def test_sizes_are_clamped_to_the_data(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="qwp"):
        assert clamped("train_words", 5, 5) == 5
        assert caplog.text == ""
        assert clamped("train_words", 6, 5) == 5
    assert "train_words=6 is more than the data holds: 5 is used" in caplog.text


# --------------------------------------------------------------------------- pairs


def test_rows_of_a_lexicon_follow_the_order_of_the_vectors() -> None:
    src = Embeddings(["a", "b", "c"], np.eye(3, dtype="f4"))
    tgt = Embeddings(["x", "b", "y"], np.eye(3, dtype="f4"))
    lexicon = Lexicon((("a", "y"), ("c", "x"), ("b", "nowhere")))
    one, two = sides(src, tgt)
    turned = PreparedSpace(tgt, two.vectors[[2, 0, 1]], two.normalization, np.array([2, 0, 1]))
    for target, columns, alike in ((two, [2, 0], 1), (turned, [0, 1], 2)):
        run = Run(one, target, Supervision(lexicon), IDENTITY)
        rows = run.lexicon_rows()
        assert (rows[0].tolist(), rows[1].tolist()) == ([0, 2], columns)
        assert_same(run.y[rows[1]], two.vectors[[2, 0]])
        same = run.identical_rows()
        assert (same[0].tolist(), same[1].tolist()) == ([1], [alike])


# --------------------------------------------------------------------------- checkpoints


def test_a_run_without_a_checkpoint_keeps_nothing() -> None:
    run = started()
    run.checkpoint("loop", 3, np.eye(3), now=True)
    assert run.state is None
    assert run.resumed("loop") is None


def test_a_state_comes_back_with_all_that_belongs_to_it(tmp_path: Path) -> None:
    run = started(checkpoint=Checkpoint(tmp_path))
    run.report("loop", 1, 9, {"objective": 0.5})
    run.seconds["loop"] = 1.5
    run.starts, run.start_used = [{"start": "profiles"}], "profiles"
    run.checkpoint("loop", 4, np.eye(3), tensors={"other": np.arange(3.0)}, values={"rate": 0.1}, now=True)
    again = started(checkpoint=Checkpoint(tmp_path, resume=True))
    state = again.resumed("loop")
    assert state is not None
    assert state is again.state
    values = {"rate": 0.1, "order": "given", "starts": [{"start": "profiles"}], "start_used": "profiles"}
    assert (state.stage, state.done, state.values) == ("loop", 4, values)
    assert (again.order, again.starts, again.start_used) == ("given", [{"start": "profiles"}], "profiles")
    assert_same(state.map, np.eye(3))
    assert_same(state.tensors["other"], np.arange(3.0))
    assert again.history == [{"stage": "loop", "step": 1, "objective": 0.5}]
    assert again.seconds == {"loop": 1.5}
    assert again.resumed("refine") is None
    # It goes on from there, and the records of before stay as they are.
    again.report("loop", 5, 9, {"objective": 0.4})
    assert state.history == [{"stage": "loop", "step": 1, "objective": 0.5}]
    # Unless resuming is asked for, a run begins afresh.
    assert started(checkpoint=Checkpoint(tmp_path)).state is None


def test_states_are_saved_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(run_module, "time", SimpleNamespace(monotonic=lambda: now))
    run = started(checkpoint=Checkpoint(tmp_path))

    def saved() -> int:
        state = started(checkpoint=Checkpoint(tmp_path, resume=True)).state
        return 0 if state is None else state.done

    run.checkpoint("loop", 1, np.eye(3))
    assert saved() == 0
    now += Keeper.SECONDS
    run.checkpoint("loop", 2, np.eye(3))
    assert saved() == 2
    now += 0.9 * Keeper.SECONDS
    run.checkpoint("loop", 3, np.eye(3))
    assert saved() == 2
    run.checkpoint("loop", 4, np.eye(3), now=True)
    assert saved() == 4


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    started(checkpoint=Checkpoint(tmp_path)).checkpoint("loop", 1, np.eye(3), now=True)
    other = Identity("0.1.0", "test", {"number": 2}, 0, IDENTITY.inputs)
    src, tgt = sides(*planted_embeddings(20, 15, d=3))
    with pytest.raises(InputError, match=r"config\.number was 1, now 2"):
        Run(src, tgt, Supervision(), other, checkpoint=Checkpoint(tmp_path, resume=True))


def test_stages_are_named_once() -> None:
    assert len(set(STAGES)) == len(STAGES)
    assert (STAGES[0], STAGES[-1]) == ("prepare", "verdict")
