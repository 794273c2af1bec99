"""Options that several commands share, and their completion by the shell."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from qwp.cli import options
from qwp.cli.main import app
from qwp.cli.options import of_methods, option, with_options
from qwp.errors import InputError
from qwp.methods import METHODS
from tests.cli.conftest import Problem, qwp

HUGE = str(10**12)
SEED = inspect.Parameter(
    "seed", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[int | None, of_methods("seed", "Seed.")]
)


@dataclass(frozen=True)
class Size:
    width: int = option("How wide.", default=3, least=1, most=9)
    shape: str = option("Which shape.", default="round", choices=("round", "square"))
    ratio: float = option("How much.", default=0.5, above=0, most=1)
    names: list[str] | None = option("What it is called.", "NAME", flags=("--name", "-n"))
    hollow: bool = option("Without a core.", default=False)


def parsed(*args: str) -> dict[str, Any]:
    """Run a command that takes a group of options, and return what it was given."""
    given: dict[str, Any] = {}

    def command(size: Size, what: Annotated[str, typer.Argument()], **flags: Any) -> None:
        given.update(size=size, what=what, **flags)

    own = typer.Typer()
    own.command()(with_options(command, [SEED]))
    ran = CliRunner().invoke(own, list(args))
    if isinstance(ran.exception, InputError):
        raise ran.exception
    assert ran.exit_code == 0, ran.output
    return given


def test_a_group_is_one_option_for_each_field() -> None:
    assert parsed("x", "--width", "7", "--shape", "square") == {"size": Size(7, "square"), "what": "x", "seed": None}
    assert parsed("x", "--seed", "5") == {"size": Size(), "what": "x", "seed": 5}
    assert parsed("x", "--name", "a", "-n", "b", "--hollow")["size"] == Size(names=["a", "b"], hollow=True)


def test_values_are_checked_when_they_are_parsed() -> None:
    cases = [
        (["--width", "0"], "width=0 is out of range; expected 1 to 9"),
        (["--width", "10"], "width=10 is out of range"),
        (["--width", "1" + "0" * 20], "width=1000"),
        (["--ratio", "0"], "ratio=0.0 is out of range"),
        (["--ratio", "nan"], "ratio=nan is out of range"),
        (["--ratio", "inf"], "ratio=inf is out of range"),
        (["--shape", "flat"], "--shape flat is not known; expected one of round, square"),
        (["--seed", "-1"], "seed=-1 is out of range"),
    ]
    for args, message in cases:
        with pytest.raises(InputError, match=message):
            parsed("x", *args)


def test_evaluate_refuses(problem: Problem, aligned: Path) -> None:
    cases: list[tuple[list[str], str]] = [
        (["--bootstrap", HUGE], "bootstrap=1000000000000 is out of range; expected 0 to 1,000,000"),
        (["--bootstrap", "-1"], "bootstrap=-1 is out of range"),
        (["--csls-k", "0"], "csls_k=0 is out of range"),
        (["--seed", "-1"], "seed=-1 is out of range"),
        (["--seed", str(2**70)], "seed="),
        (["--max-memory", "inf"], "max_memory=inf is out of range"),
        (["--max-vocab", HUGE], "max_vocab=1000000000000 is out of range"),
        (["--errors", "x"], "--errors x is not known"),
        (["--retrieval", "x"], "'x'"),
        (["--lexicon-format", "x"], "--lexicon-format x is not known"),
        (["--case", "x"], "--case x is not known; expected one of keep, lower"),
        (["--device", "x"], "device 'x' is not known"),
    ]
    for args, message in cases:
        ran = qwp("evaluate", aligned, "--lexicon", problem.lexicon, *args)
        assert (ran.code, ran.out) == (2, "")
        assert message in ran.err


def test_convert_refuses(problem: Problem, tmp_path: Path) -> None:
    cases: list[tuple[list[str], str]] = [
        (["--max-vocab", "0"], "max_vocab=0 is out of range"),
        (["--digits", HUGE], "digits=1000000000000"),
        (["--digits", "-1"], "digits=-1"),
        (["--errors", "x"], "--errors x is not known"),
        (["--format", "x"], "--format x is not known"),
        (["--input-format", "x"], "--input-format x is not known"),
    ]
    for args, message in cases:
        ran = qwp("convert", problem.src, tmp_path / "out.vec", *args)
        assert (ran.code, ran.out) == (2, "")
        assert message in ran.err
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("flag", "value"), [("--seed", "-1"), ("--threads", "0"), ("--threads", HUGE)])
def test_demo_refuses(tmp_path: Path, flag: str, value: str) -> None:
    ran = qwp("demo", flag, value, "--report", tmp_path / "report.html")
    assert (ran.code, ran.out) == (2, "")
    assert f"{flag[2:]}={value} is out of range" in ran.err


# --------------------------------------------------------------------------- completion

PROGRAM = "import sys; sys.argv = ['qwp'] + sys.argv[1:]; from qwp.cli.main import main; main()"


def completed(line: str, shell: str = "bash") -> list[str]:
    """Return the completions at the end of a line, by the protocol of the installed script."""
    words = line.split(" ")
    env = {"_QWP_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_ARGS": line}
    env |= {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    ran = CliRunner().invoke(app, [], prog_name="qwp", env=env)
    assert (ran.exit_code, ran.stderr) == (0, "")
    return ran.stdout.removesuffix("\n").split("\n")


def test_completions_begin_like_the_typed_text() -> None:
    assert options.among(("table", "tsv", "json"))("t") == ["table", "tsv"]
    assert options.among({"a": "first", "b": "second"})("") == [("a", "first"), ("b", "second")]
    assert options.complete_methods("pro") == [(name, METHODS[name].summary) for name in ("procrustes", "proc-b")]


def test_result_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("en-es", "en-fr", "other"):
        (tmp_path / "runs" / name).mkdir(parents=True)
    (tmp_path / "runs" / "en-es" / "alignment.json").touch()
    (tmp_path / "runs" / "other" / "multi.json").touch()
    monkeypatch.chdir(tmp_path)
    assert options.complete_results("runs/") == ["runs/en-es", "runs/other"]
    assert options.complete_results("runs/en") == ["runs/en-es"]
    # The shell completes these itself.
    assert options.complete_results("ru") == options.complete_results("none/") == []
    monkeypatch.chdir(tmp_path / "runs")
    assert options.complete_results("") == ["en-es", "other"]


def test_completions_of_bash() -> None:
    cases: list[tuple[str, list[str]]] = [
        ("qwp al", ["align", "align-all", "align-many"]),
        ("qwp align a b --meth", ["--method"]),
        ("qwp align a b --method self", ["self-learning"]),
        ("qwp align a b --start iden", ["identity", "identical"]),
        ("qwp align a b --refine-map o", ["orthogonal"]),
        ("qwp align a b --device c", ["cpu", "cuda"]),
        ("qwp align a b --input-format n", ["npz", "npy"]),
        ("qwp translate x --format ", ["table", "tsv", "json"]),
        ("qwp lexicon x --format m", ["muse"]),
        ("qwp convert a b --format g", ["glove"]),
        ("qwp methods rc", ["rcsls"]),
        # Nothing: the shell completes files.
        ("qwp align ", [""]),
        ("qwp align a b --lexicon ", [""]),
        # Invalid lines are completed, too.
        ("qwp align a b --dico_eval x --met", ["--method"]),
    ]
    for line, offered in cases:
        assert completed(line) == offered


def test_folders_and_other_shells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "en-es").mkdir()
    (tmp_path / "en-es" / "alignment.json").touch()
    assert "en-es" in completed("qwp translate e")
    assert '"self-learning":"stochastic' in completed("qwp align a b --method self", "zsh")[0]
    assert "self-learning\tstochastic" in completed("qwp align a b --method self", "fish")[0]


@pytest.mark.slow
def test_completion_imports_nothing_heavy() -> None:
    code = (
        "import sys, os\n"
        "os.environ.update(COMP_WORDS='qwp align --method q', COMP_CWORD='3', _QWP_COMPLETE='complete_bash')\n"
        "sys.argv = ['qwp']\n"
        "from qwp.cli.main import app\n"
        "try:\n    app()\nexcept SystemExit:\n    pass\n"
        "print([name for name in ('torch', 'ot', 'scipy.sparse', 'faiss', 'sklearn') if name in sys.modules])\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout == "qwp\n[]\n"


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_can_be_shown(shell: str) -> None:
    env = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    command = [sys.executable, "-c", PROGRAM, "--show-completion", shell]
    ran = subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=60)
    assert f"_QWP_COMPLETE=complete_{shell}" in ran.stdout
