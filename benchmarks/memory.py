"""Peak memory of one call, measured in a fresh interpreter that has done nothing else.

The peak of the benchmarking process itself would include the libraries it compares with and whatever ran before.

    python -m benchmarks.memory MODULE FUNCTION JSON

makes the inputs with MODULE.FUNCTION(**JSON), runs the call which that returns, and prints its result and its peak.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

ROOT = Path(__file__).parents[1]
_STATUS = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")

Preparation: TypeAlias = Callable[..., Callable[[], Any]]


@dataclass(frozen=True)
class Measured:
    """What the call returned, and the bytes it needed at its peak beyond the inputs that were there before."""

    value: Any
    peak_bytes: int


def in_fresh_process(prepare: Preparation, **arguments: Any) -> Measured:
    """Run `prepare(**arguments)()` in a new interpreter and measure the second call.

    prepare: a function of a module, not a local one; it makes the inputs and returns the call to measure. The
    arguments, and what the call returns, have to survive JSON.
    """
    # A module run with -m calls itself __main__; its specification keeps the real name.
    specification = sys.modules[prepare.__module__].__spec__
    assert specification is not None
    command = [sys.executable, "-m", "benchmarks.memory", specification.name, prepare.__name__, json.dumps(arguments)]
    finished = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return Measured(**json.loads(finished.stdout.splitlines()[-1]))


def peak() -> int:
    """The largest size of this process so far, in bytes."""
    # On Linux ru_maxrss starts from the parent's size, VmHWM does not.
    if _STATUS.exists() and (found := re.search(r"VmHWM:\s+(\d+) kB", _STATUS.read_text())):
        return int(found[1]) * 1024
    import resource  # here, because Windows lacks it

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def restart_peak() -> int:
    """Forget the peak reached while the inputs were made, where the system can; returns the peak to start from."""
    gc.collect()
    if os.access(_RESET, os.W_OK):
        _RESET.write_text("5")
    return peak()


def restart_device_peak(device: str) -> None:
    """Forget the peak memory of a GPU."""
    if device.startswith("cuda"):
        import torch

        torch.cuda.reset_peak_memory_stats()


def device_peak(device: str) -> int:
    """Most bytes the GPU has held since `restart_device_peak`; 0 on the CPU."""
    if not device.startswith("cuda"):
        return 0
    import torch

    return int(torch.cuda.max_memory_allocated())


def main() -> None:
    """The part that runs in the fresh interpreter."""
    module, function, arguments = sys.argv[1:]
    call = getattr(importlib.import_module(module), function)(**json.loads(arguments))
    before = restart_peak()
    value = call()
    print(json.dumps({"value": value, "peak_bytes": peak() - before}))


if __name__ == "__main__":
    main()
