from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from qwp.cli import signals
from qwp.cli.console import interrupted_code
from qwp.cli.signals import Terminated, unwinding
from tests.cli.conftest import Problem, leftovers

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_unwinds_like_an_interrupt_once(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    tidied = []
    with unwinding() as received:
        with pytest.raises(KeyboardInterrupt) as caught:  # noqa: PT012  (what comes after the signal is the point)
            try:
                os.kill(os.getpid(), number)
                time.sleep(5)
            finally:
                os.kill(os.getpid(), signal.SIGTERM)  # a second one must not stop the tidying up
                os.kill(os.getpid(), signal.SIGHUP)
                tidied.append(True)
        assert received.code == 128 + number
    assert tidied == [True]
    assert isinstance(caught.value, Terminated)
    assert interrupted_code(caught.value) == 128 + number
    assert str(caught.value) == number.name
    assert signal.getsignal(number) is before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_after_the_work_is_only_noted(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It came while the last lines were written, and the command ended with a traceback."""
    from qwp.cli import main as command
    from qwp.cli import streams

    monkeypatch.setattr(command, "app", lambda: None)
    monkeypatch.setattr(streams, "flush", lambda: os.kill(os.getpid(), number))
    with pytest.raises(SystemExit) as stop:
        command.main()
    assert stop.value.code == 0
    assert capsys.readouterr().err == ""


def test_an_ignored_signal_stays_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """As by nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with unwinding() as received:
            os.kill(os.getpid(), signal.SIGHUP)
            time.sleep(0.01)
        assert received.code is None
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_ctrl_c_keeps_its_code() -> None:
    assert interrupted_code(KeyboardInterrupt()) == 130


def test_the_library_leaves_signals_alone() -> None:
    code = (
        "import signal; before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGHUP); "
        "import qwp, qwp.cli.main; "
        "assert before == (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGHUP))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=120).returncode == 0
    assert signals.Received().code is None


# The run that is stopped says when it has written part of its file, and then waits.
WAITING = """
import sys, time
from qwp.cli import streaming
from qwp.cli.main import main

def slow(vectors):
    print("writing", file=sys.stderr, flush=True)
    time.sleep(60)
    return vectors

real = streaming.copy
def copy(batches, out, **options):
    return real(batches, out, **{**options, "treat": slow})

streaming.copy = copy
sys.argv = ["qwp", *sys.argv[1:]]
main()
"""


def stopped(number: signal.Signals, *args: object) -> subprocess.CompletedProcess[str]:
    """A command that is sent a signal while it holds a temporary file."""
    command = [sys.executable, "-c", WAITING, *(str(arg) for arg in args)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "writing\n"
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    return subprocess.CompletedProcess(command, process.returncode, out, err)


@pytest.mark.parametrize(
    ("number", "code", "message"),
    [
        (signal.SIGTERM, 143, "terminated by SIGTERM: nothing unfinished was left behind\n"),
        (signal.SIGHUP, 129, "terminated by SIGHUP: nothing unfinished was left behind\n"),
        (signal.SIGINT, 130, "interrupted: nothing unfinished was left behind\n"),
    ],
)
def test_a_stopped_command_leaves_no_temporary_file(
    problem: Problem, tmp_path: Path, number: signal.Signals, code: int, message: str
) -> None:
    out = tmp_path / "out.vec"
    ran = stopped(number, "convert", problem.src, out)
    # Older versions of rich end the line of a bar that was never shown.
    assert (ran.returncode, ran.stdout, ran.stderr.lstrip("\n")) == (code, "", message)
    assert leftovers(tmp_path) == []
    assert not out.exists()


def align_until_checkpoint(problem: Problem, out: Path) -> subprocess.Popen[str]:
    """A long run that has saved its first checkpoint."""
    command = [sys.executable, "-m", "qwp", "align", str(problem.src), str(problem.tgt), "--out", str(out)]
    command += ["--start", "identity", "--steps", "100000", "--coreset", "random", "--threads", "1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(600):
        if (out / "checkpoint.safetensors").exists() or process.poll() is not None:
            break
        time.sleep(0.1)
    return process


def test_a_terminated_alignment_keeps_its_checkpoint(problem: Problem, tmp_path: Path) -> None:
    process = align_until_checkpoint(problem, tmp_path / "run")
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 143, err
    assert "give the same command again to continue" in err
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["checkpoint.safetensors"]
