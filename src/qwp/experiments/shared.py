"""Parts that cells have in common, computed once by a process: starts, loops and banks of coresets.

A fit that finds such a part continues from it as an interrupted fit continues from its checkpoint. The result is
identical to that of a fit without shared parts, because parts are shared within one process and by fits with the same
device and number of threads. What a part depends on is said by the method (`Aligner.decided_later`), not here.
"""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from qwp import arrays
from qwp.experiments.material import add_warnings
from qwp.methods import Aligner
from qwp.ot.supply import Banks, keeping_banks
from qwp.results.checkpoints import Checkpoint, Expected, RunState
from qwp.results.identity import Identity

_MOST_BYTES = 512 << 20


@dataclass(frozen=True)
class Part:
    """Something that took `seconds` to compute and takes `size` bytes. warnings: those up to it."""

    content: Any
    size: int
    seconds: float
    warnings: tuple[str, ...] = ()


class Parts:
    """Parts by key. Where they take too much memory, those go that were not asked for the longest."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._parts: OrderedDict[str, Part] = OrderedDict()

    def get(self, key: str) -> Part | None:
        """The part, or None."""
        if key in self._parts:
            self._parts.move_to_end(key)
        return self._parts.get(key)

    def put(self, key: str, part: Part) -> None:
        """Keep a part, unless it alone is too large."""
        self._parts[key] = part
        while sum(each.size for each in self._parts.values()) > self._most_bytes:
            self._parts.popitem(last=False)


class Sharing(Checkpoint):
    """What one fit takes from the parts of its process, and adds to them.

    It stands in the place of a checkpoint file. place: where it is computed, which rounding depends on; warnings: those
    of the fit, which those of the parts it takes join. seconds: what these have taken before.
    """

    def __init__(self, parts: Parts, aligner: Aligner, place: str, warnings: list[str]) -> None:
        self._parts, self._place, self._warnings = parts, place, warnings
        self._later = aligner.decided_later()
        self.seconds = self._of_banks = 0.0
        # What a checkpoint in a folder has; the states that fits share are saved whenever they are reached.
        self.resume, self.interval = True, None

    @contextmanager
    def banks(self) -> Iterator[None]:
        """Banks are shared inside the context."""
        with keeping_banks(self._banks):
            yield

    def load(self, identity: Identity, expected: Expected | None = None) -> RunState | None:
        """The latest state that another fit has left and that this one would come to."""
        for later in self._later.values():
            part = self._parts.get(self._key(identity, later))
            if part is not None:
                self.seconds += part.seconds
                add_warnings(self._warnings, part.warnings)
                state: RunState = part.content
                return replace(state, map=state.map.copy())  # a fit may write into what it is given
        return None

    def save(self, state: RunState, identity: Identity) -> None:
        """Keep a state that others may come to."""
        later = self._later.get((state.stage, state.done))
        if later is None:
            return
        # The spaces are prepared anew by each, and a fit has not spent time on banks that were there.
        seconds = self._of_banks + sum(spent for stage, spent in state.seconds.items() if stage != "prepare")
        own = replace(state, map=state.map.copy(), history=list(state.history), seconds=dict(state.seconds))
        self._parts.put(self._key(identity, later), Part(own, own.map.nbytes, seconds, tuple(self._warnings)))

    def _banks(self, key: str, draw: Callable[[], Banks]) -> Banks:
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

    def _key(self, identity: Identity, later: frozenset[str]) -> str:
        about = identity.to_dict()
        decided = {**about.pop("config"), "seed": about.pop("seed")}
        kept = {name: value for name, value in decided.items() if name not in later}
        return json.dumps([self._place, sorted(later), about, kept], sort_keys=True)
