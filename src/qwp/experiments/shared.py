"""Stages that cells have in common, computed once by a process, and banks of coresets.

A fit that finds the state after a stage continues from it as an interrupted fit continues from its checkpoint. The
result is identical to that of a fit that computes all stages, because states are shared within one process and by fits
with the same device and number of threads. `Pipeline.keys` tells what a state depends on.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from qwp import arrays
from qwp.experiments.data import add_warnings
from qwp.ot.coreset_source import Banks
from qwp.stages.stage import State

_MOST_BYTES = 512 << 20


@dataclass(frozen=True)
class Part:
    """Something that took `seconds` to compute and takes `size` bytes. warnings: those up to it."""

    content: Any
    size: int
    seconds: float
    warnings: tuple[str, ...] = ()


class Parts:
    """Parts by key. If they take too much memory, the least recently used ones go."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._parts: OrderedDict[str, Part] = OrderedDict()

    def get(self, key: str) -> Part | None:
        """Return the part, or None."""
        if key in self._parts:
            self._parts.move_to_end(key)
        return self._parts.get(key)

    def put(self, key: str, part: Part) -> None:
        """Keep a part, unless it alone is too large."""
        self._parts[key] = part
        while sum(each.size for each in self._parts.values()) > self._most_bytes:
            self._parts.popitem(last=False)


class SharedStages:
    """The `StageCache` of one fit: what it takes from the parts of its process, and adds to them.

    warnings: those of the fit, which those of the parts it takes join. seconds: what these have taken before.
    """

    def __init__(self, parts: Parts, warnings: list[str]) -> None:
        self._parts, self._warnings = parts, warnings
        self.seconds = self._of_banks = 0.0

    def load(self, keys: Mapping[str, str]) -> tuple[State, Mapping[str, float]] | None:
        """Return the latest state that another fit has left, and the seconds spent on it."""
        for key in keys.values():
            part = self._parts.get(key)
            if part is not None:
                self.seconds += part.seconds
                add_warnings(self._warnings, part.warnings)
                state, seconds = part.content
                return state, seconds
        return None

    def save(self, key: str, state: State, seconds: Mapping[str, float]) -> None:
        """Keep a state for other fits."""
        # Each fit prepares its spaces, and spends no time on banks that were there.
        spent = {stage: each for stage, each in seconds.items() if stage != "prepare"}
        assert state.maps is not None
        size = sum(arrays.to_numpy(w).nbytes for w in state.maps if w is not None)
        part = Part((state, spent), size, self._of_banks + sum(spent.values()), tuple(self._warnings))
        self._parts.put(key, part)

    def banks(self, key: str, draw: Callable[[], Banks]) -> Banks:
        """Return the banks of coresets of a key, drawn now or before."""
        part = self._parts.get(key)
        if part is None:
            begin = time.perf_counter()
            banks = draw()
            arrays.wait_for(banks[0].centres)
            part = Part(banks, sum(bank.nbytes for bank in banks), time.perf_counter() - begin)
            self._parts.put(key, part)
        else:
            self.seconds += part.seconds
            self._of_banks += part.seconds
        return list(part.content)
