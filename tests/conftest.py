"""Fixtures and settings that several tests share."""

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
from qwp.methods import WP
from qwp.methods.compositions import SEARCH, initializers
from tests.problems import planted

# The number of threads of every test, set by tools/portable.py.
THREADS = int(os.environ.get("QWP_TEST_THREADS", "0"))
# Each worker of pytest-xdist and the processes that it starts get one core, so they need one thread. The variables are
# for libraries that read nothing else.
if "PYTEST_XDIST_WORKER" in os.environ and THREADS < 2:
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    threadpool_limits(1)
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[int(os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw")) % len(cores)]})

# A shell makes background processes ignore Ctrl-C; some tests send it to themselves and to their child processes.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples in each run, so that failures repeat; HYPOTHESIS_PROFILE=explore draws others. Without a deadline,
# because machines may be slow.
settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("explore", derandomize=False, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# Files whose tests are all slow: they run dozens of alignments, other processes, or thousands of damaged inputs.
SLOW = (
    *("fuzz", "methods/test_backends.py", "methods/test_degenerate.py", "results/test_saved.py"),
    *("spaces/io/test_round_trip.py", "test_examples.py"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of slow files."""
    for item in items:
        if _is_slow(item.path):
            item.add_marker(pytest.mark.slow)


@cache
def _is_slow(path: Path) -> bool:
    return any(path.is_relative_to(Path(__file__).parent / name) for name in SLOW)


# Parameters that run the whole pipeline quickly.
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
    """Return a planted rotation with words: row i of the source is "s<i>", its translation is "t<i>"."""
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
    for method in (QWP, WP):
        monkeypatch.setattr(method, "pipeline", replace(method.pipeline, init=initializers(SHORT_SEARCH)))


@pytest.fixture(scope="session", autouse=True)
def threads_of_the_run() -> Iterator[None]:
    """Apply QWP_TEST_THREADS to tests that choose no number of threads."""
    with arrays.use_threads(THREADS or None):
        yield


@pytest.fixture(scope="session")
def aligned() -> Alignment:
    """Return an alignment of a planted rotation; tests must not change it."""
    return align(*planted_embeddings(noise=0.1), **QUICK)


@pytest.fixture(scope="session")
def bench() -> Path:
    """Return the folder of real vectors and gold dictionaries; skip the test if it is missing."""
    folder = Path(os.environ.get("QWP_BENCH", Path(__file__).parents[2] / "shared" / "bench"))
    if not folder.is_dir():
        pytest.skip(f"no benchmark vectors in {folder}: set QWP_BENCH to their folder")
    return folder
