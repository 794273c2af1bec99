"""The plans of `make fuzz`."""

from __future__ import annotations

import importlib
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
