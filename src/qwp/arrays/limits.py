"""Thread counts of libraries, which count for the whole process, limited by several Python threads at a time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock, get_ident
from typing import Any

from threadpoolctl import ThreadpoolController


@dataclass(frozen=True)
class Library:
    """A library with threads: how many it has now, and the function that changes that.

    separate: each Python thread has a number of its own, as in OpenMP.
    """

    threads: int
    change: Callable[[int], object]
    separate: bool = False


class SharedLimit:
    """A limit of some libraries that each Python thread may set for a while.

    The innermost limit of each thread counts, and the lowest of these is in force; in a library with separate numbers,
    that of the thread. When all threads have left, in whatever order, each library has the number that it had before.

    libraries: returns what can be limited now, by name. What is loaded later is limited with the next change.
    """

    def __init__(self, libraries: Callable[[], dict[str, Library]]) -> None:
        self._libraries = libraries
        self._lock = Lock()
        self._limits: dict[object, tuple[int, int]] = {}
        self._before: dict[str, int] = {}

    @contextmanager
    def at(self, limit: int) -> Iterator[None]:
        """Keep the libraries at this number of threads, or at a lower one that another Python thread has set."""
        token, me = object(), get_ident()
        with self._lock:
            self._limits[token] = me, limit
            self._apply()
        try:
            yield
        finally:
            with self._lock:
                del self._limits[token]
                self._apply()

    def _apply(self) -> None:
        """Set what the limits amount to. A dict keeps its order: the last limit of a thread is its innermost."""
        innermost = dict(self._limits.values())
        own, lowest = innermost.get(get_ident()), min(innermost.values(), default=None)
        for name, library in self._libraries().items():
            before, wanted = self._before.setdefault(name, library.threads), own if library.separate else lowest
            number = before if wanted is None else wanted
            if library.threads != number:
                library.change(number)
        if not innermost:
            self._before.clear()


def _blas() -> dict[str, Library]:
    # Libraries that bring a BLAS of their own may be loaded later.
    controllers = _controller_of(*(name in sys.modules for name in ("torch", "faiss", "scipy.linalg"))).lib_controllers
    return {each.filepath: _library(each) for each in controllers if each.user_api == "blas"}


def _library(controller: Any) -> Library:
    # Since 3.8 threadpoolctl lets one Python thread alone change OpenBLAS, until that thread lets go of it, and gives
    # each thread a number of its own where OpenBLAS uses OpenMP.
    let_go = getattr(type(controller), "clear_controlling_thread", None)
    if let_go is None:
        return Library(controller.num_threads, controller.set_num_threads)

    def change(number: int) -> None:
        let_go(force=True)
        controller.set_num_threads(number)
        let_go(force=True)

    return Library(controller.num_threads, change, separate=controller.threading_layer == "openmp")


@lru_cache(maxsize=8)
def _controller_of(*loaded: bool) -> ThreadpoolController:
    return ThreadpoolController()


def _torch() -> dict[str, Library]:
    torch = sys.modules.get("torch")
    return {} if torch is None else {"torch": Library(torch.get_num_threads(), torch.set_num_threads, separate=True)}


BLAS = SharedLimit(_blas)
TORCH = SharedLimit(_torch)
