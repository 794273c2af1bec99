"""The state of a running explorer: its alignments, and the tasks in the background."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

from qwp.errors import InputError, QwpError
from qwp.explore.pairs import OnProgress, PairTable
from qwp.explore.workspace import Workspace
from qwp.methods import QWP, make_aligner
from qwp.results.alignment import Alignment
from qwp.results.corrections import MARKS, RIGHT, save_anchors
from qwp.showing.events import Progress, ProgressCallback
from qwp.spaces.lexicon import Lexicon

logger = logging.getLogger(__name__)

_MAX_FOLDERS = 1000


def realign(workspace: Workspace, progress: ProgressCallback | None = None, *, min_pairs: int = 20) -> Alignment:
    """Align the same spaces with the marked pairs by `qwp`, with the settings of the last fit if that was `qwp` too.

    min_pairs: fewer marked pairs do not initialise a map.
    """
    pairs = workspace.corrections.lexicon(RIGHT) if workspace.corrections.pairs(RIGHT) else None
    covered = 0 if pairs is None else pairs.coverage(workspace.alignment.src, workspace.alignment.tgt).covered_pairs
    if pairs is None or covered < min_pairs:
        raise InputError(
            f"{covered} pairs are marked as right, expected at least {min_pairs} to align with: mark some more"
        )
    alignment = workspace.alignment
    aligner = make_aligner("qwp", seed=alignment.provenance.seed, **settings(alignment))
    aligner.fit(alignment.src, alignment.tgt, lexicon=pairs, progress=progress)
    return aligner.alignment_


def settings(alignment: Alignment, *, anchor_weight: float = 3.0) -> dict[str, Any]:
    """Return the parameters of the next fit.

    anchor_weight: weight of a marked pair in mean weights of the induced pairs. Source: `python -m benchmarks.explore
    --corrections`.
    """
    known = QWP.parameters()
    before = alignment.provenance.config if alignment.provenance.method == "qwp" else {}
    same = {name: value for name, value in before.items() if name in known}
    return {**same, "start": "lexicon", "anchor_weight": anchor_weight, "refine_weights": "csls"}


def next_folder(folder: Path) -> Path:
    """Return a new folder beside another: NAME-corrected, NAME-corrected-2, ..."""
    base = folder.absolute()
    for number in range(1, _MAX_FOLDERS):
        found = base.with_name(f"{base.name}-corrected" + (f"-{number}" if number > 1 else ""))
        if not found.exists():
            return found
    raise InputError(f"{base.parent} holds {_MAX_FOLDERS - 1} corrected results of {base.name}: remove some")


WAITING, WORKING, DONE, FAILED = "waiting", "working", "done", "failed"


class StoppedError(Exception):
    """The user stopped the task, or the explorer ends."""


@dataclass
class BackgroundTask:
    """The progress of a task. what: name of the current step; message: why it failed."""

    state: str = WAITING
    what: str = ""
    done: int = 0
    total: int = 0
    message: str = ""

    def shown(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.repr}


@dataclass
class Realignment(BackgroundTask):
    """An alignment in progress. of: number of the alignment it started from; made: number of the new one."""

    of: int = 0
    made: int | None = None
    stopped: Event = field(default_factory=Event, repr=False)


class Session:
    """The alignments of an explorer, by number, and the threads that work for them.

    Args:
        workspaces: the alignments.
        prepare: computes the pairs and the map of an alignment.
        align: aligns again with the marked pairs.
    """

    def __init__(
        self,
        workspaces: Sequence[Workspace],
        *,
        prepare: Callable[[Workspace, OnProgress], None] = Workspace.prepare,
        align: Callable[[Workspace, ProgressCallback], Alignment] = realign,
    ) -> None:
        self._workspaces = list(workspaces)
        self._prepare, self._align = prepare, align
        self._tasks = [BackgroundTask() for _ in workspaces]
        self._realignment: Realignment | None = None
        self._lock = Lock()
        self._closed = Event()
        self._added = Event()
        self._threads: list[Thread] = []

    def start(self) -> None:
        """Start to compute pairs and maps, the first alignment first."""
        self._start_thread(self._prepare_all, name="explorer")

    def close(self, seconds: float = 0.0) -> bool:
        """Stop the tasks, and return whether all threads have ended within these seconds."""
        self._closed.set()
        self._added.set()
        if self._realignment is not None:
            self._realignment.stopped.set()
        until = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    @property
    def workspaces(self) -> tuple[Workspace, ...]:
        """All alignments."""
        with self._lock:
            return tuple(self._workspaces)

    def get(self, number: int) -> Workspace:
        """Return an alignment."""
        workspaces = self.workspaces
        if number >= len(workspaces):
            raise InputError(f"a={number} is not known; expected 0 to {len(workspaces) - 1}")
        return workspaces[number]

    def task(self, number: int) -> BackgroundTask:
        """Return the task that computes the pairs and the map of an alignment."""
        self.get(number)
        return self._tasks[number]

    def pairs(self, number: int) -> PairTable | None:
        """Return the pairs of an alignment, once they are computed."""
        return self.get(number).answers

    def add(self, workspace: Workspace) -> int:
        """Add an alignment and return its number."""
        with self._lock:
            self._tasks.append(BackgroundTask())
            self._workspaces.append(workspace)
            number = len(self._workspaces) - 1
        self._added.set()
        return number

    # ----------------------------------------------------------------- pairs and maps

    def _start_thread(self, work: Callable[[], None], name: str) -> None:
        thread = Thread(target=work, daemon=True, name=name)
        self._threads.append(thread)
        thread.start()

    def _prepare_all(self) -> None:
        done = 0
        while not self._closed.is_set():
            if done == len(self.workspaces):
                self._added.wait()
                self._added.clear()
                continue
            self._prepare_one(done)
            done += 1

    def _prepare_one(self, number: int) -> None:
        workspace, task = self.get(number), self._tasks[number]

        def on_progress(what: str, done: int, total: int) -> None:
            if self._closed.is_set():
                raise StoppedError
            task.what, task.done, task.total = what, done, total

        task.state = WORKING
        try:
            self._prepare(workspace, on_progress)
        except StoppedError:
            return
        except Exception as error:  # the page shows every error
            logger.exception("computing the pairs or the map of %s failed", workspace.name)
            task.state, task.message = FAILED, _message(error)
            return
        task.state = DONE

    # ----------------------------------------------------------------- aligning again

    @property
    def realignment(self) -> Realignment | None:
        """The alignment in progress, or the last one."""
        return self._realignment

    def realign(self, number: int) -> Realignment:
        """Start to align again with the pairs that are marked as right. Only one alignment runs at a time."""
        workspace = self.get(number)
        with self._lock:
            if self._realignment is not None and self._realignment.state == WORKING:
                raise InputError("an alignment is running already: wait for it, or stop it")
            task = self._realignment = Realignment(WORKING, "begin", of=number)
        self._start_thread(partial(self._realign, workspace, task), name="realign")
        return task

    def stop_realigning(self) -> None:
        """Stop the alignment in progress."""
        if self._realignment is not None:
            self._realignment.stopped.set()

    def _realign(self, workspace: Workspace, task: Realignment) -> None:
        def on_progress(event: Progress) -> None:
            if task.stopped.is_set():
                raise StoppedError
            task.what, task.done, task.total = event.stage, event.done, event.total

        trained = workspace.corrections.lexicon(RIGHT)
        try:
            made = self._align(workspace, on_progress)
            task.made = self.add(self._saved(workspace, made, trained))
        except StoppedError:
            task.state, task.message = FAILED, "stopped"
        except Exception as error:
            if not isinstance(error, QwpError):
                logger.exception("aligning %s again failed", workspace.name)
            task.state, task.message = FAILED, _message(error)
        else:
            task.state = DONE

    def _saved(self, workspace: Workspace, made: Alignment, trained: Lexicon) -> Workspace:
        """Save a new alignment in its own folder, with the marks of the one before and its anchors."""
        folder = next_folder(workspace.folder)
        made.save(folder)
        save_anchors(folder, trained)
        found = Workspace(
            folder.name,
            Alignment.load(folder),
            folder=folder,
            lexicon=workspace.lexicon,
            items=workspace.items,
            max_words=workspace.max_words,
        )
        for mark in MARKS:
            found.corrections.set(workspace.corrections.pairs(mark), mark)
        return found


def _message(error: Exception) -> str:
    return str(error) if isinstance(error, QwpError) else f"{type(error).__name__}: {error}"
