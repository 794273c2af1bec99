from __future__ import annotations

import io

import pytest
from rich.console import Console

from qwp.showing.bar import AlignProgress, words_bar
from qwp.showing.events import Progress


def events() -> list[Progress]:
    start = [Progress("initialize", i, 25, {"objective": 1.0 / i}) for i in range(1, 26)]
    loop = [
        Progress(
            "loop",
            i,
            4,
            {"epoch": (i + 1) // 2, "k": 50, "objective": 2.0 - i / 10, "sinkhorn_iterations": 10 + i},
        )
        for i in range(1, 5)
    ]
    couple = [Progress("couple", i, 2, {"objective": 3.0}) for i in (1, 2)]
    learn = [Progress("learn", i, total, {"keep": 0.5, "mean_csls": i / 100}) for i, total in growing()]
    train = [Progress("train", i, 3, {"loss": 1.0 / i}) for i in (1, 2)]  # stops before its last step
    refine = [Progress("refine", i, 2, {"n_pairs": 10 * i, "mean_csls": 0.25}) for i in (1, 2)]
    others = [*couple, *learn, *train]
    return [*start, *loop, *others, *refine, Progress("verdict", 1, 1, {"ratio": 2.0, "verdict": "succeeded"})]


def growing() -> list[tuple[int, int]]:
    """Return steps and totals of a stage whose total grows."""
    return [(i, min(27, i + 9)) for i in range(1, 28)]


def console(file: io.StringIO, *, terminal: bool = False) -> Console:
    return Console(file=file, force_terminal=terminal, width=150, no_color=True)


def shown(*, terminal: bool, quiet: bool = False) -> str:
    file = io.StringIO()
    with AlignProgress(quiet=quiet, console=console(file, terminal=terminal)) as progress:
        for event in events():
            progress(event)
    return file.getvalue()


EPOCHS = [
    "epoch 1 (step 2/4): coreset size 50, objective 1.8000, Sinkhorn iterations 11.5 a step",
    "epoch 2 (step 4/4): coreset size 50, objective 1.6000, Sinkhorn iterations 13.5 a step",
]


@pytest.mark.parametrize("terminal", [False, True])
def test_candidates_of_a_long_search_have_lines(terminal: bool) -> None:
    file = io.StringIO()
    figures = {"candidates": 1, "search": 1, "best_ratio": 1.204, "accept_ratio": 1.5}
    with AlignProgress(console=console(file, terminal=terminal)) as progress:
        progress(Progress("initialize", 1, 1, {**figures, "searches": 5}))
        progress(Progress("initialize", 3, 3, {**figures, "candidates": 3, "search": 2, "seconds_left": 100}))
    text = file.getvalue()
    assert "1 candidate tried, search 1 of 5: best ratio 1.20, accepted from 1.50\n" in text
    assert "3 candidates tried, search 2: best ratio 1.20, accepted from 1.50, 1 min 40 s left\n" in text
    assert "3/3" not in text


def test_plain_lines_without_a_terminal() -> None:
    assert shown(terminal=False).splitlines() == [
        "initialization 10/25: objective 0.1000",
        "initialization 20/25: objective 0.0500",
        "initialization 25/25: objective 0.0400",
        *EPOCHS,
        "Gromov-Wasserstein 1/2: objective 3.0000",
        "Gromov-Wasserstein 2/2: objective 3.0000",
        "self-learning 10/19: keep 0.5000, mean CSLS 0.1000",
        "self-learning 20/27: keep 0.5000, mean CSLS 0.2000",
        "self-learning 27/27: keep 0.5000, mean CSLS 0.2700",
        "training 1/3: loss 1.0000",
        "training 2/3: loss 0.5000",
        "refinement 1/2: pairs 10, mean CSLS 0.2500",
        "refinement 2/2: pairs 20, mean CSLS 0.2500",
    ]


def test_a_bar_and_a_line_per_epoch_on_a_terminal() -> None:
    text = shown(terminal=True)
    for expected in (*EPOCHS, "transport loop", "━", "steps/s", "left", "25/25", "Gromov-Wasserstein", "27/27"):
        assert expected in text
    assert "initialization 10/25" not in text
    assert "self-learning 10/" not in text
    last = [line for line in text.splitlines() if "training" in line][-1]
    assert "2/2" in last, "a stage that stopped early is over when the verdict is there"


def test_a_growing_total_keeps_the_rate() -> None:
    with AlignProgress(console=console(io.StringIO(), terminal=True)) as progress:
        assert progress._bar is not None
        for done, total in growing()[:20]:
            progress(Progress("learn", done, total, {}))
            [task] = progress._bar.tasks
            assert (task.completed, task.total, task.finished) == (done, total, False)
        assert task.speed is not None
        progress(Progress("learn", 21, 21, {}))
        assert task.finished
        progress(Progress("learn", 22, 30, {}))
        assert (task.completed, task.total, task.finished) == (22, 30, False)


def test_a_stage_may_start_again_for_the_next_language() -> None:
    with AlignProgress(console=console(io.StringIO(), terminal=True)) as progress:
        assert progress._bar is not None
        for done in (1, 2, 1):
            progress(Progress("refine", done, 2, {}))
        [task] = progress._bar.tasks
        assert (task.completed, task.total, task.finished) == (1, 2, False)


def test_a_step_that_is_reported_for_each_language_is_shown_once() -> None:
    file = io.StringIO()
    with AlignProgress(console=console(file)) as progress:
        for done in (1, 1, 2, 2):
            progress(Progress("loop", done, 2, {"epoch": "joint", "k": 9, "objective": 0.5}))
        for done in (1, 1, 2, 2):
            progress(Progress("refine", done, 2, {"n_pairs": 5}))
    assert file.getvalue().splitlines() == [
        "epoch joint (step 2/2): coreset size 9, objective 0.5000",
        "refinement 1/2: pairs 5",
        "refinement 2/2: pairs 5",
    ]


@pytest.mark.parametrize("terminal", [True, False])
def test_quiet_shows_nothing(terminal: bool) -> None:
    assert shown(terminal=terminal, quiet=True) == ""


def test_names_of_tasks_are_escaped() -> None:
    file = io.StringIO()
    with words_bar(quiet=False, console=console(file, terminal=True)) as bar:
        bar.add_task("reading [/red]\x1b]0;mine\x07.vec", total=None)
    assert r"reading [/red]\x1b]0;mine\x07.vec" in file.getvalue()
    assert "\x1b]" not in file.getvalue()


def test_names_in_the_lines_of_a_run_are_escaped() -> None:
    file = io.StringIO()
    with AlignProgress(console=console(file)) as progress:
        progress(Progress("refine", 1, 1, {"language": "a\x1b[2Jb\u202e"}))
    assert file.getvalue() == "refinement 1/1: language a\\x1b[2Jb\\u202e\n"
