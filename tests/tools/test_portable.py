"""What `make test-portable` runs."""

from __future__ import annotations

import pytest

from tools import portable
from tools.project import ROOT


def test_the_environment_of_a_run_sets_kernel_and_threads() -> None:
    env = portable.Run("Haswell kernels", {"OPENBLAS_CORETYPE": "Haswell"}, 2).environment()
    assert env["OPENBLAS_CORETYPE"] == "Haswell"
    assert env["OPENBLAS_NUM_THREADS"] == env["QWP_TEST_THREADS"] == "2"


def test_kernels_that_openblas_replaces_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    # A CPU without AVX-512: OpenBLAS takes Haswell's kernels in place of newer and of unknown ones.
    taken = {"Prescott": "Katmai", "Nehalem": "Nehalem", "Sandybridge": None, "Haswell": "Haswell"}
    monkeypatch.setattr(portable, "kernel", lambda env: taken.get(env.get("OPENBLAS_CORETYPE"), "Haswell"))
    assert portable.kernels(portable.KERNELS) == ["Prescott", "Nehalem", "Haswell"]
    assert [run.env["OPENBLAS_CORETYPE"] for run in portable.quick_runs()] == ["Nehalem"]


def test_all_tests_that_are_named_are_there() -> None:
    for name in (*portable.TESTS, *portable.TORCH_TESTS):
        assert (ROOT / "tests" / name).exists(), name
