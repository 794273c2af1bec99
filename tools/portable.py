"""Run the numerical tests with other BLAS kernels, thread counts and SIMD paths.

OpenBLAS, NumPy and torch choose their code by the CPU. Environment variables make them choose that of another CPU, so
one machine can test for many. MKL and Accelerate have no such variable.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tools.project import ROOT

KERNELS = ("Prescott", "Nehalem", "Sandybridge", "Haswell", "Zen", "SkylakeX")
QUICK_KERNELS = ("Nehalem", "Haswell", "SkylakeX")
THREADS = (1, 2, 4)
TESTS = (
    *("arrays", "ot", "maps", "search", "stages", "judging", "results", "methods", "shifts"),
    *("cli/test_export.py", "spaces/test_normalization.py", "spaces/test_frequency.py"),
)
TORCH_TESTS = ("arrays", "ot", "maps", "stages", "methods/test_backends.py")
BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
_KERNEL = (
    "import numpy as np, threadpoolctl; a = np.ones((64, 64)); a @ a; "
    "print(*(each.get('architecture', each['internal_api']) for each in threadpoolctl.threadpool_info()))"
)
_SIMD = "import numpy as np; print(*np.show_config(mode='dicts')['SIMD Extensions'].get('found', []))"


@dataclass(frozen=True)
class Run:
    """One run of the tests. threads: of BLAS and of the block loops; tests: files and folders below tests/."""

    name: str
    env: dict[str, str] = field(default_factory=dict)
    threads: int = 1
    tests: tuple[str, ...] = TESTS

    def environment(self) -> dict[str, str]:
        """Return the environment of the test process."""
        threads = dict.fromkeys((*BLAS_THREADS, "QWP_TEST_THREADS"), str(self.threads))
        return {**os.environ, **threads, **self.env}


Probe = Callable[[dict[str, str]], str | None]


def kernel(env: dict[str, str]) -> str | None:
    """Return the kernels that OpenBLAS uses in this environment; None if they do not run on this CPU."""
    done = subprocess.run(
        [sys.executable, "-c", _KERNEL], env={**os.environ, **env}, capture_output=True, text=True, check=False
    )
    return done.stdout.split()[0] if done.returncode == 0 and done.stdout.split() else None


def kernels(wanted: tuple[str, ...], kernel: Probe = kernel) -> list[str]:
    """Return the wanted kernels without duplicates: OpenBLAS replaces kernels that it cannot run on this CPU."""
    replacement = kernel({"OPENBLAS_CORETYPE": "none"})
    found: dict[str, str] = {}
    for name in wanted:
        taken = kernel({"OPENBLAS_CORETYPE": name})
        if taken is not None and (taken == name or taken != replacement):
            found.setdefault(taken, name)
    return list(found.values())


def quick_runs(kernel: Probe = kernel) -> Iterator[Run]:
    """Yield the runs that `make test` adds to that with the CPU's own kernels."""
    own = kernel({})
    for name in kernels(QUICK_KERNELS, kernel):
        if name != own:
            yield Run(f"{name} kernels", {"OPENBLAS_CORETYPE": name})


def all_runs() -> Iterator[Run]:
    """Yield every kernel with every number of threads, NumPy without SIMD, and the lesser kernels of torch."""
    for name in kernels(KERNELS):
        for threads in THREADS:
            yield Run(f"{name} kernels", {"OPENBLAS_CORETYPE": name}, threads)
    simd = subprocess.run([sys.executable, "-c", _SIMD], capture_output=True, text=True, check=True).stdout.strip()
    if simd:
        yield Run("NumPy without SIMD", {"NPY_DISABLE_CPU_FEATURES": simd})
    for capability in ("default", "avx2"):
        yield Run(f"torch {capability}", {"ATEN_CPU_CAPABILITY": capability}, tests=TORCH_TESTS)


def passed(run: Run) -> bool:
    """Run the tests and print a line, and the output of pytest if a test failed."""
    begun = time.monotonic()
    tests = [str(ROOT / "tests" / name) for name in run.tests]
    # Tests with several threads run in fewer processes, so that threads do not share cores.
    workers = str(max(1, (os.cpu_count() or 1) // run.threads))
    command = [sys.executable, "-m", "pytest", "-q", "-n", workers, "--dist", "worksteal", "-m", "not slow", *tests]
    done = subprocess.run(command, env=run.environment(), cwd=ROOT, capture_output=True, text=True, check=False)
    summary = done.stdout.strip().rpartition("\n")[2]
    print(f"{run.name:20} {run.threads} threads  {time.monotonic() - begun:4.0f} s  {summary}", flush=True)
    if done.returncode:
        print(done.stdout, done.stderr, sep="\n", flush=True)
    return done.returncode == 0


def main() -> int:
    """Run the tests in all environments. Returns 1 if one of them failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="three kernels with one thread, as in `make test`")
    runs = list(quick_runs() if parser.parse_args().quick else all_runs())
    skipped = ", ".join(sorted({*KERNELS} - {*kernels(KERNELS)})) or "none"
    print(f"OpenBLAS uses {kernel({})}; not available, or the same on this CPU: {skipped}", flush=True)
    failed = [run for run in runs if not passed(run)]
    for run in failed:
        print(f"FAILED: {run.name}, {run.threads} threads", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
