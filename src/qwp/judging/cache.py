"""Results that several threads of a process share: the latest few, by a key."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Generic, TypeVar

V = TypeVar("V")


class Cache(Generic[V]):
    """The values of the `size` keys that were used last. Safe for threads.

    Two threads that need the same value at the same time both compute it; the first to add it decides.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = Lock()
        self._values: OrderedDict[str, V] = OrderedDict()

    def get(self, key: str) -> V | None:
        """Return the value of a key, or None."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def add(self, key: str, value: V) -> V:
        """Return the value of a key, which is this one unless there is one already."""
        with self._lock:
            found = self._values.setdefault(key, value)
            self._values.move_to_end(key)
            while len(self._values) > self._size:
                self._values.popitem(last=False)
            return found

    def clear(self) -> None:
        """Forget all values."""
        with self._lock:
            self._values.clear()
