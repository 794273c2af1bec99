from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import qwp as package
from tests.cli.conftest import Problem, qwp

COMMANDS = ("align", "methods", "evaluate", "translate", "lexicon", "export", "info", "convert", "demo")


def python(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *args], capture_output=True, text=True, check=False, timeout=60)


def test_version() -> None:
    ran = qwp("--version")
    assert (ran.code, ran.out) == (0, f"qwp {package.__version__}\n")


def test_help_lists_every_command_and_each_has_help() -> None:
    ran = qwp("--help")
    assert ran.code == 0
    for command in COMMANDS:
        assert command in ran.out
        assert qwp(command, "--help").code == 0


def test_python_dash_m(problem: Problem) -> None:
    ran = python("-m", "qwp", "info", str(problem.src), "--json")
    assert ran.returncode == 0
    assert ran.stdout.startswith("{")
    missing = python("-m", "qwp", "info", str(problem.folder / "none.vec"))
    assert missing.returncode == 2
    assert "Traceback" not in missing.stderr
    assert "does not exist" in missing.stderr


def test_start_up_leaves_the_slow_import_out() -> None:
    ran = python("-c", "import sys, qwp.cli.main; print([m for m in ('ot', 'gensim', 'sklearn') if m in sys.modules])")
    assert ran.stdout == "[]\n", ran.stderr


@pytest.mark.parametrize("args", [["bogus"], ["align", "--bogus", "1"], ["info"], ["translate", "x", "-k", "many"]])
def test_usage_errors_exit_2(args: list[str]) -> None:
    ran = qwp(*args)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err


def shell(line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, timeout=60)


def test_a_closed_pipe_is_no_error(aligned: Path) -> None:
    words = " ".join(f"s{i}" for i in range(300))
    ran = shell(f"{sys.executable} -m qwp translate {aligned} {words} -k 10 | head -n 1")
    assert ran.stdout
    assert ran.stderr == ""


def test_a_full_disk_is_explained(aligned: Path) -> None:
    ran = shell(f"{sys.executable} -m qwp translate {aligned} s1 > /dev/full")
    assert ran.returncode == 2
    assert "No space left" in ran.stderr
    assert "Traceback" not in ran.stderr
