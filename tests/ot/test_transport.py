"""The settings of the transport, the solver that they choose, and the linear program."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from qwp.errors import InputError
from qwp.ot.transport import SOLVERS, UNUSED, Transport, exact, load_pot, require_pot, solve_transport
from qwp.parameters import check, parameters, with_values
from tests.libraries import as_strict, assert_close, host, pot
from tests.ot.problems import problem, reached_error, seeds, sizes

SETTINGS = Transport(solver="balanced", epsilon=0.5, cost="sqeuclidean", rho=0.7, tol=1e-9, max_iter=10_000)


def test_each_solver_finds_its_plan() -> None:
    ot = pot()
    cost, a, b = problem(9, 7, 3)
    expected = {
        "balanced": ot.sinkhorn(a, b, cost, 0.5, method="sinkhorn_log", numItermax=20_000, stopThr=1e-11, warn=False),
        "unbalanced": ot.unbalanced.sinkhorn_unbalanced(a, b, cost, 0.5, 0.7, numItermax=20_000, stopThr=1e-14),
        "exact": ot.emd(a, b, cost),
    }
    assert set(expected) == set(SOLVERS)
    for solver, wanted in expected.items():
        plan = solve_transport(cost, a, b, replace(SETTINGS, solver=solver))
        assert plan.converged
        assert_close(plan.matrix, wanted, atol=1e-6)
    # They are different problems.
    assert np.abs(expected["balanced"] - expected["exact"]).max() > 0.01
    assert np.abs(expected["balanced"] - expected["unbalanced"]).max() > 0.01


def test_the_tolerance_and_the_last_sweep_are_obeyed() -> None:
    cost, a, b = problem(9, 7, 3)
    loose = solve_transport(cost, a, b, replace(SETTINGS, epsilon=0.05, tol=0.01))
    assert loose.converged
    assert 1e-6 < reached_error(loose, a, b) <= 0.01
    short = solve_transport(cost, a, b, replace(SETTINGS, epsilon=0.05, max_iter=3))
    assert (short.n_iter, short.converged) == (3, False)


def test_rho_is_for_unbalanced_transport_alone() -> None:
    pot()
    cost, a, b = problem(9, 7, 3)
    for solver in SOLVERS:
        strong, weak = (
            host(solve_transport(cost, a, b, replace(SETTINGS, solver=solver, rho=r)).matrix) for r in (9, 0.1)
        )
        assert (np.abs(strong - weak).max() > 1e-3) == (solver == "unbalanced")


def test_bad_settings_are_explained() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"ot": "sinkhorn"}, "ot='sinkhorn' is not known; expected one of balanced, unbalanced, exact"),
        ({"cost": "cosine"}, "cost='cosine' is not known; expected one of sqeuclidean, dot"),
        ({"epsilon": 0.0}, r"epsilon=0\.0 is out of range; expected above 0"),
        ({"epsilon": float("inf")}, "epsilon=inf is out of range; expected above 0"),
        ({"rho": -1.0}, r"rho=-1\.0 is out of range; expected above 0"),
        ({"sinkhorn_tol": 0.0}, r"sinkhorn_tol=0\.0 is out of range; expected above 0, at most 1"),
        ({"sinkhorn_tol": 1.5}, r"sinkhorn_tol=1\.5 is out of range; expected above 0, at most 1"),
        ({"sinkhorn_max_iter": 0}, "sinkhorn_max_iter=0 is out of range; expected 1 to 1,000,000"),
    ]
    check(SETTINGS)
    for change, message in cases:
        assert change.keys() <= parameters(SETTINGS).keys()
        with pytest.raises(InputError, match=message):
            check(with_values(SETTINGS, change))


@given(n=sizes, m=sizes, seed=seeds)
@settings(max_examples=20)
def test_exact_agrees_with_pot(n: int, m: int, seed: int) -> None:
    ot = pot()
    cost, a, b = problem(n, m, seed)
    plan = exact(cost, a, b)
    assert plan.converged
    assert plan.marginal_error < 1e-9
    assert_close(plan.matrix, ot.emd(a, b, cost), atol=1e-9)


@given(n=sizes, seed=seeds)
@settings(max_examples=20)
def test_equal_weights_are_an_assignment_of_the_same_cost_as_with_pot(n: int, seed: int) -> None:
    ot = pot()
    cost, _, _ = problem(n, n, seed)
    equal = np.full(n, 1 / n)
    plan = exact(cost, equal, equal)
    assert plan.converged
    assert plan.marginal_error < 1e-12
    assert_close((host(plan.matrix) * cost).sum(), (ot.emd(equal, equal, cost) * cost).sum(), atol=1e-12)


def test_only_unequal_weights_need_pot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ot", None)
    cost, a, b = problem(4, 4, 0)
    quarter = np.full(4, 0.25, dtype=np.float32)
    assert exact(cost, quarter, quarter).converged
    message = 'exact transport of points with unequal weights needs POT, which is not installed: pip install "qwp[pot]"'
    with pytest.raises(InputError, match=re.escape(message)):
        exact(cost, a, b)


def test_exact_solves_an_assignment() -> None:
    cost = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 2.0], [2.0, 2.0, 0.0]])
    third = np.full(3, 1 / 3)
    assert_close(exact(cost, third, third).matrix, np.eye(3)[[1, 0, 2]] / 3, atol=1e-12)


def test_exact_in_float32_meets_weights_that_do_not_sum_alike() -> None:
    pot()
    cost, a, b = problem(300, 200, 0, dtype="float32")
    plan = exact(cost, a, b)
    assert plan.matrix.dtype == np.float32
    assert plan.converged
    assert reached_error(plan, a, b) < 1e-4


def test_exact_takes_zero_weights() -> None:
    pot()
    cost, a, b = problem(3, 3, 0)
    a = np.array([0.0, 0.5, 0.5])
    assert_close(host(exact(cost, a, b).matrix).sum(axis=1), a, atol=1e-12)


def test_another_library_finds_the_same_plan() -> None:
    pot()
    cost, a, b = problem(6, 5, 10)
    strict = exact(*(as_strict(z) for z in (cost, a, b)))
    assert_close(strict.matrix, exact(cost, a, b).matrix, atol=1e-12)


ASK = """
import os, sys
from qwp.ot.transport import load_pot
ot = load_pot()
assert ot.emd([1.0], [1.0], [[0.0]]).sum() == 1
print(sorted(set({names!r}) & set(sys.modules)), bool(ot.backend.jax), os.environ.get("POT_BACKEND_DISABLE_JAX"))
"""


@pytest.mark.slow
def test_unused_array_libraries_are_not_imported(tmp_path: Path) -> None:
    """Import POT in a new process with stand-ins for these libraries."""
    pot()
    for name in UNUSED:
        (tmp_path / name).mkdir()
        # Enough for the import attempt of POT, which fails on missing attributes.
        (tmp_path / name / "__init__.py").write_text("")
    kept = {name: value for name, value in os.environ.items() if name not in UNUSED.values()}
    environment = {**kept, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    asked = [sys.executable, "-c", ASK.format(names=list(UNUSED))]
    run = subprocess.run(asked, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "[] False None"


def test_a_library_in_use_is_left_to_pot_and_the_environment_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    during: list[dict[str, str | None]] = []

    def import_module(name: str) -> ModuleType:
        assert name == "ot"
        during.append({module: os.environ.get(variable) for module, variable in UNUSED.items()})
        return ModuleType(name)

    monkeypatch.setattr(importlib, "import_module", import_module)
    monkeypatch.setitem(sys.modules, "jax", ModuleType("jax"))
    for module in ("cupy", "tensorflow"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    for variable in UNUSED.values():
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv(UNUSED["cupy"], "yes")
    assert load_pot().__name__ == "ot"
    assert during == [{"jax": None, "cupy": "1", "tensorflow": "1"}]
    after = {module: os.environ.get(variable) for module, variable in UNUSED.items()}
    assert after == {"jax": None, "cupy": "yes", "tensorflow": None}


def test_it_is_pot() -> None:
    assert load_pot() is pot()


def test_without_pot_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ot", None)
    with pytest.raises(InputError, match=r'a thing needs POT, .*pip install "qwp\[pot\]"'):
        require_pot("a thing")
