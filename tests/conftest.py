"""What several tests share."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

from qwp import QWP, Alignment, Embeddings, align, arrays
from qwp.methods import WP, Multi
from qwp.methods.compositions import SEARCH, initializers
from tests.problems import planted

# QWP_TEST_THREADS (see tools/portable.py) gives every test so many threads, whatever the number of cores.
THREADS = int(os.environ.get("QWP_TEST_THREADS", "0"))
# Each worker of pytest-xdist has a core of its own, and so have the processes that its tests start: more threads would
# only wait for each other. The variables are for libraries that look at nothing else.
if "PYTEST_XDIST_WORKER" in os.environ and THREADS < 2:
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    threadpool_limits(1)
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[int(os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw")) % len(cores)]})

# A shell ignores Ctrl-C for what it starts in the background; tests and the processes they start get it all the same.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Everywhere the same examples: a test that fails, fails again. HYPOTHESIS_PROFILE=explore looks for others. A slow
# machine is no reason to fail: examples are not timed.
settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("explore", derandomize=False, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# Files that are slow as a whole: they run alignments by the dozen, other processes, or thousands of damaged inputs.
# Elsewhere single tests are marked.
SLOW = (
    *("fuzz", "methods/test_backends.py", "methods/test_degenerate.py", "results/test_saved.py"),
    *("spaces/io/test_round_trip.py", "test_examples.py"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark them slow."""
    for item in items:
        if _is_slow(item.path):
            item.add_marker(pytest.mark.slow)


@cache
def _is_slow(path: Path) -> bool:
    return any(path.is_relative_to(Path(__file__).parent / name) for name in SLOW)


# Small and quick, but the whole pipeline. One thread: on a busy machine several would wait for each other.
QUICK: dict[str, Any] = {
    "coreset_size": 100,
    "bank_size": 8,
    "epochs": 2,
    "steps": 15,
    "pairs_per_step": 1,
    "threads": 1,
}


def planted_embeddings(
    n_src: int = 400, n_tgt: int | None = None, d: int = 12, **options: Any
) -> tuple[Embeddings, Embeddings]:
    """A planted rotation with words: row i of the source is "s<i>", its translation is "t<i>"."""
    problem = planted(n_src, n_tgt, d, dtype="float32", **options)
    names = np.full(len(problem.tgt), -1)
    names[problem.gold[:, 1]] = problem.gold[:, 0]
    tgt_words = [f"t{i}" if i >= 0 else f"extra{j}" for j, i in enumerate(names)]
    return Embeddings([f"s{i}" for i in range(len(problem.src))], problem.src), Embeddings(tgt_words, problem.tgt)


SHORT_SEARCH = replace(
    SEARCH, brief=replace(SEARCH.brief, steps=20), long=replace(SEARCH.long, steps=20), rounds=1, continuations=0
)


@pytest.fixture
def short_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all methods search for initial maps with little effort: enough for planted rotations."""
    for method in (QWP, WP, Multi):
        monkeypatch.setattr(method, "pipeline", replace(method.pipeline, init=initializers(SHORT_SEARCH)))


@pytest.fixture(scope="session", autouse=True)
def threads_of_the_run() -> Iterator[None]:
    """Tests that choose no number of threads get that of QWP_TEST_THREADS."""
    with arrays.use_threads(THREADS or None):
        yield


@pytest.fixture(scope="session")
def aligned() -> Alignment:
    """A finished alignment of a planted rotation; read-only."""
    return align(*planted_embeddings(noise=0.1), **QUICK)


@pytest.fixture(scope="session")
def bench() -> Path:
    """The folder of real vectors and gold dictionaries; skips where it is absent."""
    folder = Path(os.environ.get("QWP_BENCH", Path(__file__).parents[2] / "shared" / "bench"))
    if not folder.is_dir():
        pytest.skip(f"no benchmark vectors in {folder}: set QWP_BENCH to their folder")
    return folder
