"""The folder of `qwp align --out`: what it holds already, and what may become of that.

What the same run has left there is used: a finished result is shown, an interrupted run continued. What another run has
left is replaced with --force only.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from qwp.cli import console
from qwp.cli.results import Task
from qwp.errors import InputError
from qwp.results import several
from qwp.results.checkpoints import Checkpoint
from qwp.results.identity import Identity
from qwp.results.index import read_index
from qwp.results.provenance import Provenance
from qwp.results.saved import ALIGNMENT, SEVERAL
from qwp.spaces.embeddings import Embeddings

_WAYS_OUT = "give --force to replace it, or another --out"


def check(out: Path, task: Task, *, force: bool, resume: bool) -> None:
    """Refuse a folder that the run may not have, as far as that can be told before any vectors are read."""
    if force and resume:
        raise InputError("--resume and --force were both given; expected one: continue what is there, or replace it")
    if out.exists() and not out.is_dir():
        raise InputError(f"--out {out} is a file; expected the name of a folder to save into")
    if not force and holds_result(out):
        _refuse_other(out, task.settings(), _settings_of_result(out))


def holds_result(out: Path) -> bool:
    """Whether a folder holds a finished result and nothing of a later run."""
    return any((out / name).exists() for name in (ALIGNMENT, SEVERAL)) and not Checkpoint(out).path.exists()


def load_same(task: Task, out: Path, spaces: Sequence[Embeddings]) -> None:
    """Take the result in a folder for that of the task, if it is that of the same run."""
    try:
        found = task.load(out)
    except InputError as error:
        raise _unusable(out, error) from error
    _refuse_other(out, task.identity(spaces), found)
    with suppress(OSError):  # nothing depends on it: the folder may be one that can only be read
        Checkpoint(out).clear()


def announce(checkpoint: Checkpoint, out: Path, *, resume: bool) -> None:
    """Say what happens with an interrupted run in the folder."""
    if not checkpoint.path.exists():
        if resume:
            console.note(f"there is no interrupted run in {out}; starting from the beginning")
    elif checkpoint.resume:
        console.note(f"continuing the interrupted run in {out}" + ("" if resume else " (--force would start afresh)"))
    else:
        console.warn(f"an interrupted run is in {out}; starting afresh (--resume would have continued it)")
        checkpoint.clear()


def _settings_of_result(out: Path) -> Identity:
    """The run of a finished result, its inputs aside."""
    try:
        if (out / SEVERAL).exists():
            languages = several.read_index(out)
            hub, folder = languages.hub, out / next(iter(languages.languages))
        else:
            hub, folder = None, out
        found = Provenance.from_dict(read_index(folder).content["provenance"]).identity()
    except InputError as error:
        raise _unusable(out, error) from error
    return replace(found, inputs={}, hub=hub)


def _refuse_other(out: Path, now: Identity, was: Identity) -> None:
    difference = now.difference(was)
    if difference is not None:
        raise InputError(f"{out} holds the finished result of another run ({difference}): {_WAYS_OUT}")


def _unusable(out: Path, error: InputError) -> InputError:
    return InputError(f"{out} holds a result that cannot be used ({error}): {_WAYS_OUT}")
