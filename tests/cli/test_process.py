from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from qwp.cli import process
from qwp.cli.console import interrupted_code
from qwp.cli.process import Terminated, unwinding
from tests.cli.conftest import Problem, leftovers

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_only_the_first_signal_raises_an_interrupt(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    tidied = []
    with unwinding() as received:
        with pytest.raises(KeyboardInterrupt) as caught:  # noqa: PT012  (what comes after the signal is the point)
            try:
                os.kill(os.getpid(), number)
                time.sleep(5)
            finally:
                os.kill(os.getpid(), signal.SIGTERM)  # later signals must not interrupt the clean-up
                os.kill(os.getpid(), signal.SIGHUP)
                tidied.append(True)
        assert received.code == 128 + number
    assert tidied == [True]
    assert isinstance(caught.value, Terminated)
    assert interrupted_code(caught.value) == 128 + number
    assert str(caught.value) == number.name
    assert signal.getsignal(number) is before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_after_the_work_changes_nothing(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A signal during the last lines of output once ended the command with a traceback."""
    from qwp.cli import main as command
    from qwp.cli import process

    monkeypatch.setattr(process, "flush", lambda: os.kill(os.getpid(), number))
    with pytest.raises(SystemExit) as stop:
        command.main(lambda: None)
    assert stop.value.code == 0
    assert capsys.readouterr().err == ""


def test_an_ignored_signal_stays_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    """nohup ignores SIGHUP."""
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
    assert process.Received().code is None


# The process reports that it has written part of its file, and waits for the signal.
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
    """Send a signal to a command that is writing a temporary file."""
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
        (signal.SIGTERM, 143, "terminated by SIGTERM: unfinished files were removed\n"),
        (signal.SIGHUP, 129, "terminated by SIGHUP: unfinished files were removed\n"),
        (signal.SIGINT, 130, "interrupted: unfinished files were removed\n"),
    ],
)
def test_a_stopped_command_leaves_no_temporary_file(
    problem: Problem, tmp_path: Path, number: signal.Signals, code: int, message: str
) -> None:
    out = tmp_path / "out.vec"
    ran = stopped(number, "convert", problem.src, out)
    # Older versions of rich print a line feed after a bar that was never shown.
    assert (ran.returncode, ran.stdout, ran.stderr.lstrip("\n")) == (code, "", message)
    assert leftovers(tmp_path) == []
    assert not out.exists()


def align_until_checkpoint(problem: Problem, out: Path) -> subprocess.Popen[str]:
    """Start a long run and wait for its first checkpoint."""
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


QWP = f"{sys.executable} -m qwp"


def shell(line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, timeout=120)


def quiet(text: str) -> bool:
    """Return whether there is no traceback and no failed flush at exit."""
    return "Traceback" not in text and "Exception ignored" not in text


@pytest.mark.parametrize("command", ["methods --json", "--help"])
def test_output_that_cannot_be_written_is_explained_in_one_line(command: str) -> None:
    closed = shell(f"{QWP} {command} >&-")
    assert closed.returncode == 2
    assert closed.stderr.count("\n") == 1
    assert "standard output cannot be written (it is closed)" in closed.stderr
    full = shell(f"{QWP} {command} >/dev/full")
    assert full.returncode == 2
    assert full.stderr.count("\n") == 1
    assert "No space left on device" in full.stderr


@pytest.mark.parametrize("command", ["methods --json", "--help"])
def test_a_closed_pipe_is_not_reported(command: str) -> None:
    # The pipe is closed before the first byte is written.
    ran = shell(f"set -o pipefail; (sleep 0.01; {QWP} {command}) | true")
    assert ran.returncode == 1
    assert ran.stderr == ""


def test_commands_work_with_a_broken_stderr(tmp_path: Path) -> None:
    (tmp_path / "a.vec").write_text("".join(f"w{i} {i} 1 2\n" for i in range(20)))
    for number, stderr in enumerate(("2>&-", "2>/dev/full", "2> >(true)")):
        out = tmp_path / f"{number}.npz"
        ran = shell(f"{QWP} convert {tmp_path / 'a.vec'} {out} --errors skip {stderr}")
        assert (ran.returncode, ran.stderr) == (0, "")
        assert out.exists()
    assert shell(f"{QWP} info {tmp_path / 'none'} 2>&-").returncode == 2


def test_no_file_gets_the_number_of_a_closed_stream(tmp_path: Path) -> None:
    """Messages on stderr would otherwise go into the first opened file."""
    for number in (0, 2):
        out = tmp_path / f"{number}"
        code = (
            "import sys; from qwp.cli import process; process.prepare(); "
            f"file = open({str(out)!r}, 'w'); print(file.fileno())"
        )
        ran = shell(f'{sys.executable} -c "{code}" {number}>&-')
        assert int(ran.stdout) > 2, ran.stderr


def test_closed_standard_input_is_empty(tmp_path: Path) -> None:
    ran = shell(f"{QWP} translate {tmp_path} <&-")
    assert ran.returncode == 2
    assert quiet(ran.stderr)
    assert "standard input holds no word" in ran.stderr


def test_all_streams_closed() -> None:
    assert shell(f"{QWP} methods <&- >&- 2>&-").returncode == 2
