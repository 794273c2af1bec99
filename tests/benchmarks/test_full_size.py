"""The folder of the full-size benchmark, and how memory of several processes is measured."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import qwp
from benchmarks.full_size import make_folder, memory_of, processes, watched

ON_LINUX = pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="memory is read from /proc")


def test_the_folder_is_laid_out_like_the_downloads_and_its_dictionaries_are_right(tmp_path: Path) -> None:
    make_folder(tmp_path, 7000, 20)
    names = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*"))
    assert names == [
        "dictionaries/en-es.0-5000.txt",
        "dictionaries/en-es.5000-6500.txt",
        "wiki.en.vec",
        "wiki.es.vec",
    ]
    src, tgt = (qwp.load(tmp_path / f"wiki.{language}.vec") for language in ("en", "es"))
    train, test = (tmp_path / "dictionaries" / f"en-es.{part}.txt" for part in ("0-5000", "5000-6500"))
    assert [len(path.read_text().splitlines()) for path in (train, test)] == [5000, 1500]
    alignment = qwp.align(src, tgt, method="procrustes", lexicon=train, verdict="none")
    assert qwp.evaluate(alignment, test, bootstrap=0).p_at_1() > 0.5
    # Ranks of translations are alike, not equal.
    ranks = np.array([[int(word[2:]) for word in line.split()] for line in train.read_text().splitlines()])
    logs = np.log(ranks + 10.0)
    assert 0.9 < np.corrcoef(logs.T)[0, 1] < 0.999


@ON_LINUX
def test_the_memory_of_all_processes_is_watched() -> None:
    child = "import time; x = bytearray(60_000_000); time.sleep(3)"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    seconds, most = watched([sys.executable, "-c", code])
    assert seconds > 2
    assert 60_000_000 < most < 400_000_000


@ON_LINUX
def test_processes_are_found_with_their_children_and_gone_ones_weigh_nothing() -> None:
    with subprocess.Popen(["sh", "-c", "sleep 30 & wait"]) as parent:
        deadline = time.monotonic() + 10
        while len(list(processes(parent.pid))) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        found = list(processes(parent.pid))
        assert len(found) == 2
        subprocess.run(["kill", *map(str, found)], check=True)
    assert memory_of(parent.pid) == 0


def test_a_run_that_fails_says_so() -> None:
    with pytest.raises(SystemExit, match="exit code 3"):
        watched([sys.executable, "-c", "raise SystemExit(3)"])
