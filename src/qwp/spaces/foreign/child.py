"""The child process: it takes a job, limits itself, and sends the rows of a file."""

from __future__ import annotations

import importlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from qwp.errors import QwpError
from qwp.spaces.foreign import frames
from qwp.spaces.foreign.frames import Items, Job

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]

Reader = Callable[[Job], tuple[int, Iterator[Items]]]
"""Takes a job; returns the number of rows (0 if it is not known) and what gives them."""
READERS: dict[str, tuple[str, str]] = {
    "parquet": ("tables", "pyarrow.parquet"),
    "arrow": ("tables", "pyarrow"),
    "faiss": ("indexes", "faiss"),
    "sqlite": ("databases", "sqlite3"),
    "duckdb": ("databases", "duckdb"),
}
"""The module here that reads a format, and the library it uses."""
_LOOK_SECONDS = 0.05


def reader(kind: str) -> Reader:
    """The function that reads a format, with its library imported."""
    module, library = READERS[kind]
    importlib.import_module(library)
    found: Reader = getattr(importlib.import_module(f"qwp.spaces.foreign.{module}"), kind)
    return found


def main(job: Job, descriptor: int) -> None:
    """Read a file and send what is found."""
    with open(descriptor, "wb", buffering=0) as pipe:
        read = reader(job.kind)
        limit(job)
        serve(read, job, lambda data: _write_all(pipe, data))
    os._exit(0)  # what a library does at its end is of no use to anybody


def serve(read: Reader, job: Job, send: Callable[[Any], None]) -> None:
    """Send the rows of a file, or why it cannot be read."""
    try:
        rows, batches = read(job)
        frames.send_start(send, rows)
        for words, vectors in batches:
            frames.send_rows(send, words, vectors)
        frames.send_end(send)
    except QwpError as error:
        frames.send_end(send, frames.REFUSED, str(error))
    except MemoryError:  # Arrow's is one, too
        frames.send_end(send, frames.MEMORY)
    except (BrokenPipeError, KeyboardInterrupt):  # the parent has gone
        return
    except Exception as error:
        if "memory" in str(error).lower() or "bad_alloc" in str(error):
            frames.send_end(send, frames.MEMORY)
        else:
            frames.send_end(send, frames.DAMAGED, f"{type(error).__module__}.{type(error).__name__}")


def _write_all(pipe: Any, data: Any) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[pipe.write(rest) :]


def limit(job: Job) -> None:
    """Limit memory and processor time of this process, as far as the system can."""
    if resource is None:
        return
    _set("RLIMIT_CORE", 0, 0)
    _set("RLIMIT_CPU", job.seconds, job.seconds + 1)
    now = _data_bytes()
    if now is None:
        # macOS does not keep to a limit of memory: a thread looks at what is used.
        threading.Thread(target=_watch, args=(_peak_bytes() + job.memory,), daemon=True).start()
    else:
        # Not the address space, of which libraries reserve far more than they use.
        _set("RLIMIT_DATA", now + job.memory, now + job.memory)


def _set(name: str, soft: int, hard: int) -> None:
    try:
        resource.setrlimit(getattr(resource, name), (soft, hard))
    except (AttributeError, OSError, ValueError):  # a lower limit is in force already, or there is no such limit
        return


def _data_bytes() -> int | None:
    """What counts for RLIMIT_DATA; None where it is not known."""
    try:
        lines = Path("/proc/self/status").read_text("ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmData:"))
    except (OSError, StopIteration, ValueError):
        return None


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _watch(most: int) -> None:
    """End this process when it has used more than so many bytes."""
    while _peak_bytes() <= most:
        time.sleep(_LOOK_SECONDS)
    os.kill(os.getpid(), 9)
