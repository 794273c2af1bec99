from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Sequence
from types import SimpleNamespace

import pytest

from fuzz import run


@pytest.mark.parametrize("plan", [run.FULL, run.QUICK])
def test_every_attack_accepts_its_options_of_the_plan(plan: run.Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(plan) == {"crafted", "files", "results", "kills", "options"}
    for name, command in run.commands(plan, seed=5).items():
        module = importlib.import_module(f"fuzz.{name}")
        begun = RuntimeError("it would begin now")

        def begin(error: Exception = begun) -> float:
            raise error

        # The clock is read after parsing the options and before the first case.
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=begin, perf_counter=begin))
        with pytest.raises(RuntimeError, match="it would begin now"):
            module.main(command[3:])


def test_findings_set_the_exit_code(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def pretend(command: Sequence[str], **options: object) -> subprocess.CompletedProcess[bytes]:
        assert command[:2] == [sys.executable, "-m"]
        return subprocess.CompletedProcess(command, 1 if "fuzz.kills" in command else 0)

    monkeypatch.setattr(subprocess, "run", pretend)
    assert run.main(["--quick", "--seed", "3"]) == 1
    out = capsys.readouterr().out
    assert "== options: fuzz.options --seed 3 --cases 60" in out
    assert "attacks with findings: kills" in out
    monkeypatch.setitem(run.QUICK, "kills", {})
    monkeypatch.setattr(subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 0))
    assert run.main(["--quick"]) == 0
    assert run.main([]) == 0


def test_quick_and_full_exclude_each_other() -> None:
    with pytest.raises(SystemExit) as caught:
        run.main(["--quick", "--full"])
    assert caught.value.code == 2
