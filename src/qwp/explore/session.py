"""What a running explorer has: its alignments, the work that goes on in the background, and how far that is."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

from qwp.errors import InputError, QwpError
from qwp.explore.findings import Findings
from qwp.explore.opened import RIGHT, Explored
from qwp.methods import QWP, make_aligner
from qwp.results.alignment import Alignment
from qwp.showing.events import Progress, ProgressCallback

ANCHOR_WEIGHT = 3.0
"""What each pair weighs, in mean weights of the pairs that the rounds find by themselves."""
FEWEST_PAIRS = 20
"""Fewer pairs than this are no start."""
_MOST_FOLDERS = 1000


def realigned(explored: Explored, progress: ProgressCallback | None = None) -> Alignment:
    """The same two spaces aligned with the corrected pairs, by qwp and, where it was qwp before, with its settings."""
    pairs = explored.corrections.lexicon(RIGHT) if explored.corrections.pairs(RIGHT) else None
    covered = 0 if pairs is None else pairs.coverage(explored.alignment.src, explored.alignment.tgt).covered_pairs
    if pairs is None or covered < FEWEST_PAIRS:
        raise InputError(
            f"{covered} pairs are marked as right, expected at least {FEWEST_PAIRS} to align with: mark some more"
        )
    alignment = explored.alignment
    aligner = make_aligner("qwp", seed=alignment.provenance.seed, **settings(alignment))
    aligner.fit(alignment.src, alignment.tgt, lexicon=pairs, progress=progress)
    return aligner.alignment_


def settings(alignment: Alignment) -> dict[str, Any]:
    """The parameters of the next run."""
    known = QWP.parameters()
    before = alignment.provenance.config if alignment.provenance.method == "qwp" else {}
    kept = {name: value for name, value in before.items() if name in known}
    return {**kept, "start": "lexicon", "anchor_weight": ANCHOR_WEIGHT, "refine_weights": "csls"}


def next_folder(folder: Path) -> Path:
    """A folder beside another that is not there yet: NAME-corrected, NAME-corrected-2, ..."""
    base = folder.absolute()
    for number in range(1, _MOST_FOLDERS):
        found = base.with_name(f"{base.name}-corrected" + (f"-{number}" if number > 1 else ""))
        if not found.exists():
            return found
    raise InputError(f"{base.parent} holds {_MOST_FOLDERS - 1} corrected results of {base.name}: remove some")


logger = logging.getLogger(__name__)

WAITING, WORKING, DONE, FAILED = "waiting", "working", "done", "failed"


class StoppedError(Exception):
    """The work was given up."""


@dataclass
class Work:
    """How far a piece of work is. state: one of the above; what: what is being done."""

    state: str = WAITING
    what: str = ""
    done: int = 0
    total: int = 0
    message: str = ""

    def shown(self) -> dict[str, Any]:
        """Plain JSON types."""
        return dict(self.__dict__)


@dataclass
class Realigning(Work):
    """An alignment that is being made again. of: the number of the one it began from; made: that of the new one."""

    of: int = 0
    made: int | None = None
    stopped: Event = field(default_factory=Event, repr=False)

    def shown(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {name: value for name, value in self.__dict__.items() if name != "stopped"}


class Session:
    """The alignments that are explored, by number, and the threads that work for them."""

    def __init__(self, explored: Sequence[Explored]) -> None:
        self._explored = list(explored)
        self._work = [Work() for _ in explored]
        self._realigning: Realigning | None = None
        self._lock = Lock()
        self._closed = Event()
        self._wanted = Event()
        self._threads: list[Thread] = []

    def start(self) -> None:
        """Begin to prepare tables and maps, the first alignment first."""
        self._begin(self._prepare_all, name="explorer")

    def close(self, seconds: float = 0.0) -> bool:
        """Stop the work in the background. Return whether all threads have ended within these seconds."""
        self._closed.set()
        self._wanted.set()
        if self._realigning is not None:
            self._realigning.stopped.set()
        until = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    @property
    def explored(self) -> tuple[Explored, ...]:
        """All of them."""
        with self._lock:
            return tuple(self._explored)

    def get(self, number: int) -> Explored:
        """One of them."""
        all_of_them = self.explored
        if number >= len(all_of_them):
            raise InputError(f"a={number} is not known; expected 0 to {len(all_of_them) - 1}")
        return all_of_them[number]

    def work(self, number: int) -> Work:
        """How far the table and the map of one are."""
        self.get(number)
        return self._work[number]

    def findings(self, number: int) -> Findings | None:
        """The findings of one, if they are there."""
        return self.get(number).findings

    def add(self, explored: Explored) -> int:
        """One more alignment. Returns its number."""
        with self._lock:
            self._work.append(Work())
            self._explored.append(explored)
            number = len(self._explored) - 1
        self._wanted.set()
        return number

    # ----------------------------------------------------------------- in the background

    def _begin(self, work: Callable[[], None], name: str) -> None:
        thread = Thread(target=work, daemon=True, name=name)
        self._threads.append(thread)
        thread.start()

    def _prepare_all(self) -> None:
        done = 0
        while not self._closed.is_set():
            if done == len(self.explored):
                self._wanted.wait()
                self._wanted.clear()
                continue
            self._prepare(done)
            done += 1

    def _prepare(self, number: int) -> None:
        explored, work = self.get(number), self._work[number]

        def tell(what: str, done: int, total: int) -> None:
            if self._closed.is_set():
                raise StoppedError
            work.what, work.done, work.total = what, done, total

        work.state = WORKING
        try:
            explored.ready()
            explored.find(tell)
            explored.lay_out(tell)
        except StoppedError:
            return
        except Exception as error:  # whatever it is, the page has to say so
            logger.exception("the table or the map of %s failed", explored.name)
            work.state, work.message = FAILED, _said(error)
            return
        work.state = DONE

    # ----------------------------------------------------------------- aligning again

    @property
    def realigning(self) -> Realigning | None:
        """The alignment that is being made, or was made last."""
        return self._realigning

    def realign(self, number: int) -> Realigning:
        """Begin to align one again with the pairs that are marked as right. One at a time."""
        explored = self.get(number)
        with self._lock:
            if self._realigning is not None and self._realigning.state == WORKING:
                raise InputError("an alignment is being made already: wait for it, or stop it")
            work = self._realigning = Realigning(WORKING, "begin", of=number)
        self._begin(partial(self._realign, explored, work), name="realign")
        return work

    def stop_realigning(self) -> None:
        """Give it up."""
        if self._realigning is not None:
            self._realigning.stopped.set()

    def _realign(self, explored: Explored, work: Realigning) -> None:
        def tell(event: Progress) -> None:
            if work.stopped.is_set():
                raise StoppedError
            work.what, work.done, work.total = event.stage, event.done, event.total

        try:
            made = realigned(explored, tell)
            work.made = self.add(self._kept(explored, made))
        except StoppedError:
            work.state, work.message = FAILED, "stopped"
        except Exception as error:
            if not isinstance(error, QwpError):
                logger.exception("aligning %s again failed", explored.name)
            work.state, work.message = FAILED, _said(error)
        else:
            work.state = DONE

    def _kept(self, explored: Explored, made: Alignment) -> Explored:
        """A new alignment in a folder of its own, with the marks that it came from."""
        folder: Path = next_folder(explored.folder)
        made.save(folder)
        found = Explored(
            folder.name, Alignment.load(folder), folder=folder, lexicon=explored.lexicon, most=explored.most
        )
        for mark in ("right", "wrong"):
            found.corrections.set(explored.corrections.pairs(mark), mark)
        return found


def _said(error: Exception) -> str:
    return str(error) if isinstance(error, QwpError) else f"{type(error).__name__}: {error}"
