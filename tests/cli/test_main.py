from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import qwp as package
from qwp.cli import main
from qwp.cli.main import app
from tests.cli.conftest import SEARCHED, Problem, interrupted_at, qwp

COMMANDS = (
    *("align", "methods", "evaluate", "translate", "lexicon", "export", "info", "convert", "data"),
    *("experiment", "demo", "vecmap", "muse"),
)


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


@pytest.mark.slow
def test_python_dash_m(problem: Problem) -> None:
    missing = python("-m", "qwp", "info", str(problem.folder / "none.vec"))
    assert missing.returncode == 2
    assert "Traceback" not in missing.stderr
    assert "does not exist" in missing.stderr


@pytest.mark.slow
def test_start_up_imports_no_slow_library() -> None:
    ran = python("-c", "import sys, qwp.cli.main; print([m for m in ('ot', 'gensim', 'sklearn') if m in sys.modules])")
    assert ran.stdout == "[]\n", ran.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["bogus"], "No such command 'bogus'"),
        (["align", "--bogus", "1"], "No such option"),
        (["info"], "Missing argument"),
        (["translate", "x", "-k", "many"], "'-k'"),
        (["align", "a", "b", "--out", "c", "--steps", "9" * 5000], "'--steps'"),
    ],
)
def test_usage_errors_exit_2(args: list[str], message: str) -> None:
    ran = qwp(*args)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("Usage: ")
    [line] = [line for line in ran.err.splitlines() if line.startswith("error: ")]
    assert message in line
    assert "--help` shows what it takes" in line


def test_with_json_an_error_is_an_object_too() -> None:
    cases: list[tuple[list[str], str]] = [
        (["info", "none.vec", "--json"], "info"),
        (["align", "--bogus", "1", "--json"], "align"),
        (["align", "--json"], "align"),
        (["align", "a", "b", "--out", "c", "--steps", "many", "--json"], "align"),
        (["align", "a", "b", "--out", "c", "--dico_eval", "d", "--json"], "align"),
        (["bogus", "--json"], "bogus"),
        (["translate", "none", "x", "--format", "json"], "translate"),
        (["translate", "none", "x", "--format=json"], "translate"),
        (["lexicon", "none", "--format", "json"], "lexicon"),
        (["convert", "a", "b", "--json"], "convert"),
        (["vecmap", "--json"], "vecmap"),
        (["muse", "supervised", "--json"], "muse"),
    ]
    for args, command in cases:
        ran = qwp(*args)
        assert ran.code == 2
        [line] = [line for line in ran.err.splitlines() if line.startswith("error: ")]
        assert ran.json == {
            "command": command,
            "error": {"kind": "bad input", "message": line.removeprefix("error: "), "exit_code": 2},
        }


def test_options_that_ask_for_json() -> None:
    cases: list[tuple[list[str], bool]] = [
        (["info", "--json"], True),
        (["info", "--", "--json"], False),
        (["methods", "--format", "json"], True),
        (["methods", "--format", "tsv"], False),
        (["convert", "a", "b", "--format", "json"], False),
        ([], False),
    ]
    for args, wanted in cases:
        assert main.wants_json(args) is wanted


def test_an_interrupted_alignment_is_an_object_too(problem: Problem, tmp_path: Path) -> None:
    with interrupted_at("initialize", 1):
        ran = qwp("align", problem.src, problem.tgt, "--out", tmp_path / "d", *SEARCHED, "--json")
    assert ran.code == 130
    assert ran.json["error"] == {
        "kind": "interrupted",
        "message": "interrupted before the first checkpoint: nothing was saved",
        "exit_code": 130,
    }


@pytest.mark.parametrize(
    "args", [["\x1b]0;x\x07"], ["align", "--\x1b[2J\u202e"], ["info", "a", "\x1b[2J"], ["info", "\x9b1m"]]
)
def test_control_characters_in_arguments_are_escaped(args: list[str]) -> None:
    ran = qwp(*args)
    assert ran.code == 2
    assert not set("\x1b\x07\x9b\u202e") & set(ran.err)
    assert "\\x" in ran.err


def test_no_argument_shows_the_help() -> None:
    ran = qwp()
    assert ran.code in (0, 2)  # depends on the version of typer
    assert "translate" in ran.out + ran.err
    assert "error:" not in ran.err


def test_commands_can_run_without_exiting() -> None:
    assert app(["--version"], standalone_mode=False) in (0, None)


def stopped() -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(5)


def exits_itself() -> None:
    try:
        stopped()
    except KeyboardInterrupt:
        sys.exit(130)


@pytest.mark.parametrize("command", [stopped, exits_itself])
def test_the_exit_code_is_that_of_the_signal(command: Callable[[], None]) -> None:
    with pytest.raises(SystemExit) as caught:
        main.main(command)
    assert caught.value.code == 143


def test_a_bug_outside_of_the_commands_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    def broken() -> None:
        raise KeyError("x")

    with pytest.raises(SystemExit) as caught:
        main.main(broken)
    assert caught.value.code == 70
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.slow
def test_a_closed_pipe_is_no_error(aligned: Path) -> None:
    words = " ".join(f"s{i}" for i in range(300))
    line = f"{sys.executable} -m qwp translate {aligned} {words} -k 10 | head -n 1"
    ran = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, timeout=60)
    assert ran.stdout
    assert ran.stderr == ""
