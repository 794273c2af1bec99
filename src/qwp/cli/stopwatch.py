"""Seconds spent on the parts of a command."""

from __future__ import annotations

import time


class Stopwatch:
    """Takes the time of one part after the other. `seconds` holds them by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._since = time.perf_counter()

    def lap(self, name: str) -> None:
        """The part that ends now is called `name`."""
        now = time.perf_counter()
        self.seconds[name] = self.seconds.get(name, 0.0) + now - self._since
        self._since = now

    def skip(self) -> None:
        """Do not count the part that ends now."""
        self._since = time.perf_counter()
