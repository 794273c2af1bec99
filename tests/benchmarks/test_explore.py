"""The benchmark of the explorer: how faithful a layout is, where that is known; nothing here is timed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.explore import _processor_seconds, faithful
from qwp import Alignment
from qwp.explore.findings import found_in
from tests.explore.conftest import nobody


def test_a_plane_that_is_the_space_is_faithful(aligned: Alignment) -> None:
    """Neighbours are found again where every word has the place of its pair on a line, and not where it has any."""
    found = found_in(replace(aligned, origin=None), 400, nobody)
    src = np.column_stack([np.arange(400.0), np.zeros(400)])
    tgt = np.zeros_like(src)
    tgt[found.best_places] = src
    assert faithful(np.concatenate([src, tgt]), found)["partner_rank_median"] == 1
    mixed = faithful(np.concatenate([src, tgt[::-1]]), found)
    assert mixed["partner_rank_median"] > 20
    assert 0 <= mixed["neighbours_kept"] < 0.2


def test_the_work_of_other_processes_is_not_ours() -> None:
    before = _processor_seconds()
    assert before >= 0
    assert not Path("/proc/self/stat").is_file() or _processor_seconds() >= before
