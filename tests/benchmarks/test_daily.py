"""The benchmark of daily use: its rows and its data; nothing here is timed."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import daily
from benchmarks.daily import Figure, Program


def test_a_row_says_whether_the_target_is_reached() -> None:
    assert Figure("x", 0.04, 0.05).row() == "| x |  | 0.040 s | 0.05 s | yes |"
    assert Figure("x", 7.5, 5.0, "CPU s", before=20.0).row() == "| x | 20.00 CPU s | 7.50 CPU s | 5 CPU s | no |"
    # What has no target is only told.
    told = Figure("x", 7.5, float("inf"))
    assert told.row() == "| x |  | 7.50 s |  |  |"
    assert told.as_json()["target"] is None


def test_an_error_of_a_command_is_not_a_time() -> None:
    with pytest.raises(RuntimeError, match="no such thing"):
        Program((sys.executable, "-c")).run("import sys; sys.exit('no such thing')")


def test_generated_spaces_are_related() -> None:
    src, tgt = daily.related(200, 20)
    turn = np.linalg.lstsq(src.vectors, tgt.vectors, rcond=None)[0]
    nearest = np.argmax((src.vectors @ turn) @ tgt.vectors.T, axis=1)
    assert np.mean(nearest == np.arange(200)) > 0.95


def test_small_languages_are_those_of_the_demo(tmp_path: Path) -> None:
    english, spanish, third = daily.small_languages(50, 10)
    assert (english.words[0], english.vectors.shape) == ("the", (50, 10))
    assert third.words[0] == "xthe"
    assert len(daily.written([english, spanish, third], tmp_path / "new")) == 3
