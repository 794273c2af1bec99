"""Repeated steps."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

from qwp import arrays
from qwp.arrays.cuda_graphs import release_memory


@pytest.mark.parametrize("times", [0, 1, 7])
def test_repeated_runs_the_step_so_many_times(library: Any, times: int) -> None:
    count = library(np.zeros(1))

    def step() -> None:
        count[0] += 1

    with arrays.RepeatedStep(step, count) as repeated:
        repeated.run(times)
        assert int(count[0]) == times
        repeated.run(2)
    assert int(count[0]) == times + 2


class Worker:
    """Hold a repeated step of one of its own methods, as the solvers do."""

    def __init__(self) -> None:
        self.repeated = arrays.RepeatedStep(self.step, np.zeros(1))

    def step(self) -> None:
        raise RuntimeError("the step failed")


def test_what_keeps_a_step_goes_without_the_garbage_collector() -> None:
    worker = Worker()
    seen = weakref.ref(worker)
    gc.disable()
    try:
        with pytest.raises(RuntimeError, match="the step failed"), worker.repeated as repeated:
            repeated.run(1)
        del worker, repeated
        assert seen() is None
    finally:
        gc.enable()


class FakeCuda:
    """A stand-in for the memory functions of `torch.cuda`."""

    def __init__(self, reserved: int) -> None:
        self.reserved, self.emptied = reserved, 0

    def mem_get_info(self, on: Any) -> tuple[int, int]:
        return 5, 100

    def memory_reserved(self, on: Any) -> int:
        return self.reserved

    def empty_cache(self) -> None:
        self.emptied += 1


@pytest.mark.parametrize(("reserved", "emptied"), [(10, 0), (25, 0), (26, 1), (100, 1)])
def test_memory_is_released_if_much_is_reserved(reserved: int, emptied: int) -> None:
    cuda = FakeCuda(reserved)
    release_memory(cuda, "cuda:0")
    assert cuda.emptied == emptied
