"""The runs of `make test-portable`."""

from __future__ import annotations

from tools import portable
from tools.project import ROOT


def test_the_environment_of_a_run_sets_kernel_and_threads() -> None:
    env = portable.Run("Haswell kernels", {"OPENBLAS_CORETYPE": "Haswell"}, 2).environment()
    assert env["OPENBLAS_CORETYPE"] == "Haswell"
    assert env["OPENBLAS_NUM_THREADS"] == env["QWP_TEST_THREADS"] == "2"


def test_kernels_that_openblas_replaces_are_left_out() -> None:
    # A CPU without AVX-512: OpenBLAS replaces newer and unknown kernels by those of Haswell.
    taken = {"Prescott": "Katmai", "Nehalem": "Nehalem", "Sandybridge": None, "Haswell": "Haswell"}

    def kernel(env: dict[str, str]) -> str | None:
        return taken.get(env.get("OPENBLAS_CORETYPE", ""), "Haswell")

    assert portable.kernels(portable.KERNELS, kernel) == ["Prescott", "Nehalem", "Haswell"]
    assert [run.env["OPENBLAS_CORETYPE"] for run in portable.quick_runs(kernel)] == ["Nehalem"]


def test_the_listed_tests_exist() -> None:
    for name in (*portable.TESTS, *portable.TORCH_TESTS):
        assert (ROOT / "tests" / name).exists(), name
