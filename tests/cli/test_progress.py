from __future__ import annotations

import io

import pytest
from rich.console import Console

from qwp.aligners import Progress
from qwp.cli import console
from qwp.cli.progress import AlignProgress


def events() -> list[Progress]:
    start = [Progress("start", i, 25, {"objective": 1.0 / i}) for i in range(1, 26)]
    loop = [
        Progress(
            "loop",
            i,
            4,
            {"epoch": (i + 1) // 2, "k": 50, "objective": 2.0 - i / 10, "sinkhorn_iterations": 10 + i},
        )
        for i in range(1, 5)
    ]
    refine = [Progress("refine", i, 2, {"n_pairs": 10 * i, "mean_csls": 0.25}) for i in (1, 2)]
    return [*start, *loop, *refine, Progress("verdict", 1, 1, {"ratio": 2.0, "verdict": "succeeded"})]


def shown(monkeypatch: pytest.MonkeyPatch, *, terminal: bool, quiet: bool = False) -> str:
    file = io.StringIO()
    monkeypatch.setattr(console, "stderr", lambda: Console(file=file, force_terminal=terminal, width=150))
    with AlignProgress(quiet=quiet) as progress:
        for event in events():
            progress(event)
    return file.getvalue()


EPOCHS = [
    "epoch 1 (step 2/4): coreset size 50, objective 1.8000, Sinkhorn iterations 11.5 a step",
    "epoch 2 (step 4/4): coreset size 50, objective 1.6000, Sinkhorn iterations 13.5 a step",
]


def test_plain_lines_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(monkeypatch, terminal=False).splitlines() == [
        "start 10/25: objective 0.1000",
        "start 20/25: objective 0.0500",
        "start 25/25: objective 0.0400",
        *EPOCHS,
        "refinement 1/2: pairs 10, mean CSLS 0.2500",
        "refinement 2/2: pairs 20, mean CSLS 0.2500",
    ]


def test_a_bar_and_a_line_per_epoch_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(monkeypatch, terminal=True)
    for expected in (*EPOCHS, "transport loop", "━", "steps/s", "left", "25/25"):
        assert expected in text
    assert "start 10/25" not in text


@pytest.mark.parametrize("terminal", [True, False])
def test_quiet_shows_nothing(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    assert shown(monkeypatch, terminal=terminal, quiet=True) == ""
