"""The engine that was asked for."""

from __future__ import annotations

import importlib.util

import pytest

from qwp.errors import InputError
from qwp.experiments.engines.choice import Asked
from qwp.experiments.engines.local import LocalEngine


def test_an_engine_has_no_more_slots_than_there_are_jobs() -> None:
    engine = Asked(device="cpu").engine(1)
    assert isinstance(engine, LocalEngine)
    assert engine.slots == 1


def test_what_cannot_be_is_refused_before_anything_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="engine='spark' is not known; expected one of local, ray"):
        Asked("spark").check()
    with pytest.raises(InputError, match="--address auto is that of a Ray cluster; expected --engine ray with it"):
        Asked(address="auto").check()
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r'--engine ray needs Ray, which is not installed: pip install "qwp\[ray\]"'):
        Asked("ray").check()
