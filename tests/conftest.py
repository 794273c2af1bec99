"""What several tests share."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

from qwp import Alignment, Embeddings, align
from qwp.judging import verdict
from qwp.starts import choice
from tests.problems import planted

# Each worker of pytest-xdist has a core of its own, and so have the processes that its tests start: more threads would
# only wait for each other. The variables are for libraries that look at nothing else.
if "PYTEST_XDIST_WORKER" in os.environ:
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    threadpool_limits(1)
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[int(os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw")) % len(cores)]})

# Everywhere the same examples: a test that fails, fails again. HYPOTHESIS_PROFILE=explore looks for others. A slow
# machine is no reason to fail: examples are not timed.
settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("explore", derandomize=False, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# Files that are slow as a whole: they run alignments by the dozen, other processes, or thousands of damaged inputs.
# Elsewhere single tests are marked.
SLOW = (
    *("cli/test_align.py", "cli/test_escapes.py", "cli/test_main.py", "cli/test_maps.py"),
    *("cli/test_several.py", "cli/test_signals.py", "cli/test_streams.py"),
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


@pytest.fixture
def short_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starts are tried briefly: that finds planted rotations as well, and gives up noise sooner."""
    for name in ("_BRIEF", "_LONG"):
        monkeypatch.setattr(choice, name, replace(getattr(choice, name), steps=20))
    monkeypatch.setattr(choice, "_ROUNDS", 1)
    monkeypatch.setattr(choice, "_CONTINUATIONS", 0)


# Tests that are not about the verdict spend little on it: what is planted is told from less than chance can do.
_CHANCE = {name: getattr(verdict, name) for name in ("QUICK", "THOROUGH", "_MORE_RUNS")}
for name in ("QUICK", "THOROUGH"):
    effort = _CHANCE[name]
    setattr(verdict, name, replace(effort, trial=replace(effort.trial, steps=1, batches=1)))
verdict._MORE_RUNS = 1


@pytest.fixture
def all_of_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    """The verdict as users get it, for tests of what it says of noise."""
    for name, value in _CHANCE.items():
        monkeypatch.setattr(verdict, name, value)


@pytest.fixture(autouse=True)
def chance_where_it_matters(request: pytest.FixtureRequest) -> None:
    """Tests of the verdict, of real vectors and of other processes have it as users do."""
    others = request.path.parts[-2:] == ("fuzz", "test_results.py")
    if others or "judging" in request.path.parts or "bench" in request.fixturenames:
        request.getfixturevalue("all_of_chance")


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
