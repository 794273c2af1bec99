"""Peak memory of one call, measured in a fresh interpreter.

The peak of the benchmark process would include other libraries and earlier calls.

    python -m benchmarks.memory MODULE FUNCTION JSON

prepares the inputs with MODULE.FUNCTION(**JSON), runs the call that this returns, and prints its result and its peak.
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
    """The result of a call, and its peak memory in bytes beyond its inputs."""

    value: Any
    peak_bytes: int


def in_fresh_process(prepare: Preparation, **arguments: Any) -> Measured:
    """Run `prepare(**arguments)()` in a new interpreter and measure the second call.

    prepare: a function at the top level of a module; it makes the inputs and returns the call to measure. The
    arguments and the result of the call must be JSON values.
    """
    # The name of a module run with -m is __main__; its specification has the real name.
    specification = sys.modules[prepare.__module__].__spec__
    assert specification is not None
    command = [sys.executable, "-m", "benchmarks.memory", specification.name, prepare.__name__, json.dumps(arguments)]
    finished = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return Measured(**json.loads(finished.stdout.splitlines()[-1]))


def peak() -> int:
    """Return the largest size of this process so far, in bytes."""
    # On Linux ru_maxrss starts from the size of the parent, VmHWM does not.
    if _STATUS.exists() and (found := re.search(r"VmHWM:\s+(\d+) kB", _STATUS.read_text())):
        return int(found[1]) * 1024
    import resource  # here, because Windows lacks it

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def reset_peak() -> int:
    """Reset the peak where the system allows it; return the peak to subtract."""
    gc.collect()
    if os.access(_RESET, os.W_OK):
        _RESET.write_text("5")
    return peak()


def reset_device_peak(device: str) -> None:
    """Reset the peak memory of a GPU."""
    if device.startswith("cuda"):
        import torch

        torch.cuda.reset_peak_memory_stats()


def device_peak(device: str) -> int:
    """Return the peak memory of the GPU in bytes since `reset_device_peak`; 0 on the CPU."""
    if not device.startswith("cuda"):
        return 0
    import torch

    return int(torch.cuda.max_memory_allocated())


def main() -> None:
    """Measure a call in this interpreter and print the result as JSON."""
    module, function, arguments = sys.argv[1:]
    call = getattr(importlib.import_module(module), function)(**json.loads(arguments))
    before = reset_peak()
    value = call()
    print(json.dumps({"value": value, "peak_bytes": peak() - before}))


if __name__ == "__main__":
    main()
