from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from qwp.cli import completion
from qwp.cli.main import app
from qwp.methods import METHODS

PROGRAM = "import sys; sys.argv = ['qwp'] + sys.argv[1:]; from qwp.cli.main import main; main()"


def completed(line: str, shell: str = "bash") -> list[str]:
    """What a shell is offered at the end of a line, by the protocol of the installed script."""
    words = line.split(" ")
    env = {"_QWP_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_ARGS": line}
    env |= {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    ran = CliRunner().invoke(app, [], prog_name="qwp", env=env)
    assert (ran.exit_code, ran.stderr) == (0, "")
    return ran.stdout.removesuffix("\n").split("\n")


def test_choices_that_begin_alike() -> None:
    assert completion.among(("table", "tsv", "json"))("t") == ["table", "tsv"]
    assert completion.among({"a": "first", "b": "second"})("") == [("a", "first"), ("b", "second")]
    assert completion.methods("pro") == [(name, METHODS[name].summary) for name in ("procrustes", "proc-b")]


def test_result_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("en-es", "en-fr", "other"):
        (tmp_path / "runs" / name).mkdir(parents=True)
    (tmp_path / "runs" / "en-es" / "alignment.json").touch()
    (tmp_path / "runs" / "other" / "multi.json").touch()
    monkeypatch.chdir(tmp_path)
    assert completion.result_folders("runs/") == ["runs/en-es", "runs/other"]
    assert completion.result_folders("runs/en") == ["runs/en-es"]
    # The shell completes these itself.
    assert completion.result_folders("ru") == completion.result_folders("none/") == []
    monkeypatch.chdir(tmp_path / "runs")
    assert completion.result_folders("") == ["en-es", "other"]


def test_what_bash_is_offered() -> None:
    cases: list[tuple[str, list[str]]] = [
        ("qwp al", ["align", "align-many"]),
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
        # A line that would be refused is completed all the same.
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
