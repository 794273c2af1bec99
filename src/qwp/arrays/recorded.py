"""Steps that are run over and over, recorded once where the device can."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

from qwp.arrays.namespaces import Array, device, is_cuda

# Memory of recordings that have gone is kept by torch, each in a pool of its own, and counts as full where the next one
# asks: beyond this share of the device it is given back, which takes some milliseconds.
_MOST_KEPT = 0.25
_streams = threading.local()


def _nothing() -> None:
    pass


def _side_stream(on: Any) -> Any:
    """The stream on which this thread records: always the same, for torch keeps memory for each."""
    import torch

    known: dict[Any, Any] = _streams.__dict__.setdefault("by_device", {})
    if on not in known:
        known[on] = torch.cuda.Stream(on)  # type: ignore[no-untyped-call]
    return known[on]


def give_back_memory(cuda: Any, on: Any) -> None:
    """Let other pools have the memory that `torch.cuda` keeps on a device, where that is much of it."""
    _, total = cuda.mem_get_info(on)
    if cuda.memory_reserved(on) > _MOST_KEPT * total:
        cuda.empty_cache()


class Repeated:
    """One step, run over and over.

    The step takes no argument and works in place on arrays that stay where they are. That lets CUDA record it once and
    replay the recording: a step of a hundred small kernels then costs one launch. It must not read a value back.
    Use it in a `with` block: a recording has to go at a time of its own choosing, not when garbage is collected.
    """

    def __init__(self, step: Callable[[], None], like: Array) -> None:
        self._step, self._on_cuda = step, is_cuda(like)
        self._device = device(like)
        self._recording: Any = None

    def __enter__(self) -> Repeated:
        return self

    def __exit__(self, *_: object) -> None:
        if self._recording is not None:
            import torch

            self._recording.reset()
            self._recording = None
            give_back_memory(torch.cuda, self._device)
        # A step is mostly a method of what keeps this object: together they would wait for the garbage collector, and
        # hold the memory of a GPU until it comes.
        self._step = _nothing

    def run(self, times: int) -> None:
        """Do the step `times` times."""
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
        """Do the step once, which also loads what it needs, and record it."""
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
