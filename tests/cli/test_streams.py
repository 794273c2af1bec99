"""Standard streams that are closed, full or left by their reader. Everything in processes of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

QWP = f"{sys.executable} -m qwp"


def shell(line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, timeout=120)


def quiet(text: str) -> bool:
    """Neither a traceback nor what Python says when it cannot flush."""
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
def test_a_reader_that_goes_away_is_no_error(command: str) -> None:
    # The reader is gone before the first byte is written.
    ran = shell(f"set -o pipefail; (sleep 0.01; {QWP} {command}) | true")
    assert ran.returncode == 1
    assert ran.stderr == ""


def test_the_work_is_done_where_nobody_listens_to_messages(tmp_path: Path) -> None:
    (tmp_path / "a.vec").write_text("".join(f"w{i} {i} 1 2\n" for i in range(20)))
    for number, stderr in enumerate(("2>&-", "2>/dev/full", "2> >(true)")):
        out = tmp_path / f"{number}.npz"
        ran = shell(f"{QWP} convert {tmp_path / 'a.vec'} {out} --errors skip {stderr}")
        assert (ran.returncode, ran.stderr) == (0, "")
        assert out.exists()
    assert shell(f"{QWP} info {tmp_path / 'none'} 2>&-").returncode == 2


def test_no_file_gets_the_number_of_a_closed_stream(tmp_path: Path) -> None:
    """What is said on stderr would otherwise be written into the first file that is opened."""
    for number in (0, 2):
        out = tmp_path / f"{number}"
        code = (
            "import sys; from qwp.cli import streams; streams.prepare(); "
            f"file = open({str(out)!r}, 'w'); print(file.fileno())"
        )
        ran = shell(f'{sys.executable} -c "{code}" {number}>&-')
        assert int(ran.stdout) > 2, ran.stderr


def test_closed_input_holds_no_word(tmp_path: Path) -> None:
    ran = shell(f"{QWP} translate {tmp_path} <&-")
    assert ran.returncode == 2
    assert quiet(ran.stderr)
    assert "standard input holds no word" in ran.stderr


def test_all_streams_closed() -> None:
    assert shell(f"{QWP} methods <&- >&- 2>&-").returncode == 2
