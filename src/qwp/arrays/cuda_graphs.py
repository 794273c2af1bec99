"""Repeated steps, recorded as a CUDA graph on a GPU."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

from qwp.arrays.namespaces import Array, device, is_cuda

# Torch keeps the memory of deleted graphs in pools that a new graph cannot use. Beyond this share of the device the
# memory is released, which takes some milliseconds.
_MOST_RESERVED = 0.25
_streams = threading.local()


def _nothing() -> None:
    pass


def _side_stream(on: Any) -> Any:
    """Return the stream on which this thread records. It is always the same, because torch caches memory per stream."""
    import torch

    known: dict[Any, Any] = _streams.__dict__.setdefault("by_device", {})
    if on not in known:
        known[on] = torch.cuda.Stream(on)  # type: ignore[no-untyped-call]
    return known[on]


def release_memory(cuda: Any, on: Any) -> None:
    """Release the memory that `torch.cuda` caches on a device if it is a large share of it."""
    _, total = cuda.mem_get_info(on)
    if cuda.memory_reserved(on) > _MOST_RESERVED * total:
        cuda.empty_cache()


class RepeatedStep:
    """A step that runs many times.

    The step takes no argument, works in place on the same arrays, and reads no value on the host. So CUDA can record it
    as a graph and replay it: a step of a hundred small kernels costs one launch. Use it in a `with` block, which
    deletes the graph before the garbage collector does.
    """

    def __init__(self, step: Callable[[], None], like: Array) -> None:
        self._step, self._on_cuda = step, is_cuda(like)
        self._device = device(like)
        self._recording: Any = None

    def __enter__(self) -> RepeatedStep:
        return self

    def __exit__(self, *_: object) -> None:
        if self._recording is not None:
            import torch

            self._recording.reset()
            self._recording = None
            release_memory(torch.cuda, self._device)
        # The step is usually a method of the object that holds this one. Break the reference cycle, which would keep
        # GPU memory until the next garbage collection.
        self._step = _nothing

    def run(self, times: int) -> None:
        """Run the step `times` times."""
        if not self._on_cuda:
            for _ in range(times):
                self._step()
        elif times > 0:
            if self._recording is None:
                self._recording = self._record()
                times -= 1
            for _ in range(times):
                self._recording.replay()

    def _record(self) -> Any:
        """Run the step once, which also loads its kernels, and record it."""
        import torch

        collecting = gc.isenabled()
        with torch.cuda.device(self._device):
            recording, side = torch.cuda.CUDAGraph(), _side_stream(self._device)
            side.wait_stream(torch.cuda.current_stream())
            gc.disable()
            try:
                with torch.cuda.stream(side):
                    self._step()
                    torch.cuda.synchronize()
                    recording.capture_begin()
                    try:
                        self._step()
                    finally:
                        recording.capture_end()
            finally:
                if collecting:
                    gc.enable()
            torch.cuda.current_stream().wait_stream(side)
        return recording
