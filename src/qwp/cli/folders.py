"""The folder of `qwp align --out`: what it holds already, and what may become of that.

What the same run has left there is used: a finished result is shown, an interrupted run continued. What another run has
left is replaced with --force only.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from qwp.cli import console
from qwp.cli.results import Task
from qwp.errors import InputError
from qwp.results import several
from qwp.results.checkpoints import Checkpoint
from qwp.results.provenance import Identity, Provenance
from qwp.results.saved import ALIGNMENT, SEVERAL, read_alignment_index

_WAYS_OUT = "give --force to replace it, or another --out"


@dataclass(frozen=True)
class Folder:
    """Where the result of a run goes.

    path: None where it is not kept, and then nothing here does anything. vectors: whether they are to be kept, too.
    """

    path: Path | None
    force: bool = False
    resume: bool = False
    vectors: bool = True

    @property
    def checkpoint(self) -> Checkpoint | None:
        """That of the run."""
        return None if self.path is None else Checkpoint(self.path, resume=not self.force)

    def check(self, task: Task) -> None:
        """Refuse what cannot be, as far as that can be told before any vectors are read."""
        if self.force and self.resume:
            raise InputError(
                "--resume and --force were both given; expected one: continue what is there, or replace it"
            )
        if self.path is None:
            return
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"--out {self.path} is a file; expected the name of a folder to save into")
        if self.holds_result():
            self._refuse_other(task.settings(), self._settings_of_result(self.path))
        else:
            Checkpoint(self.path, resume=not self.force).check_settings(task.settings())
            _check_writable(self.path)

    def holds_result(self) -> bool:
        """Whether it holds a finished result that is to be kept, and nothing of a later run."""
        if self.path is None or self.force:
            return False
        is_finished = any((self.path / name).exists() for name in (ALIGNMENT, SEVERAL))
        return is_finished and not Checkpoint(self.path).path.exists()

    def load_same(self, task: Task, identity: Identity) -> None:
        """Take the result that it holds for that of the task, if it is that of the same run: of this identity."""
        assert self.path is not None, "it holds a result"
        try:
            found = task.load(self.path)
        except InputError as error:
            raise self._unusable(error) from error
        self._refuse_other(identity, found)
        if self.vectors and not task.holds_vectors():
            raise InputError(
                f"{self.path} holds the result of this run without its vectors (--save map): give --force to align "
                "again and keep them, or --save map to leave it as it is"
            )
        lost = task.lost_files()
        if lost:
            raise InputError(
                f"{self.path} holds the result of this run without its vectors (--save map), and {', '.join(lost)}, "
                "where they were read, is not there: give --force to align again"
            )
        with suppress(OSError):  # nothing depends on it: the folder may be one that can only be read
            Checkpoint(self.path).clear()

    def announce(self) -> None:
        """Say what happens with an interrupted run in it."""
        checkpoint = self.checkpoint
        if checkpoint is None:
            return
        if not checkpoint.path.exists():
            if self.resume:
                console.note(f"there is no interrupted run in {self.path}; starting from the beginning")
        elif self.force:
            console.warn(f"an interrupted run is in {self.path}; starting afresh (--resume would have continued it)")
            checkpoint.clear()
        else:
            hint = "" if self.resume else " (--force would start afresh)"
            console.note(f"continuing the interrupted run in {self.path}{hint}")

    def save(self, task: Task) -> None:
        """Save the result; the checkpoint goes when that has worked."""
        checkpoint = self.checkpoint
        if self.path is None or checkpoint is None:
            return
        try:
            task.save(self.path, vectors=self.vectors)
        except (OSError, InputError) as error:
            reason = (error.strerror or error) if isinstance(error, OSError) else error
            kept = " and so is the checkpoint" if checkpoint.path.exists() else ""
            raise InputError(
                f"the result could not be saved in {self.path} ({reason}); what was there before is kept{kept}: when "
                f"that is put right, give {self._same_command()}"
            ) from error
        checkpoint.clear()

    def interrupted(self) -> str:
        """What is left of a run that was interrupted, and how to continue it."""
        checkpoint = self.checkpoint
        if checkpoint is None:
            return "interrupted: nothing was saved, for want of --out"
        if not checkpoint.path.exists():
            return "interrupted before the first checkpoint: nothing was saved"
        return f"interrupted: the checkpoint {checkpoint.path} is kept; give {self._same_command()} to continue"

    def _same_command(self) -> str:
        """How to say what continues a run: --force would discard its checkpoint."""
        return "the same command again" + (" without --force" if self.force else "")

    def _settings_of_result(self, path: Path) -> Identity:
        """The run of a finished result, its inputs aside."""
        try:
            if (path / SEVERAL).exists():
                languages = several.read_index(path)
                hub, one = languages.hub, path / next(iter(languages.languages))
            else:
                hub, one = None, path
            found = Provenance.from_dict(read_alignment_index(one).content["provenance"]).identity()
        except InputError as error:
            raise self._unusable(error) from error
        return replace(found, inputs={}, hub=hub)

    def _refuse_other(self, now: Identity, was: Identity) -> None:
        difference = now.difference(was)
        if difference is not None:
            raise InputError(f"{self.path} holds the finished result of another run ({difference}): {_WAYS_OUT}")

    def _unusable(self, error: InputError) -> InputError:
        return InputError(f"{self.path} holds a result that cannot be used ({error}): {_WAYS_OUT}")


def _check_writable(path: Path) -> None:
    """Refuse a folder that nothing can be written into: it would be noticed after minutes of work."""
    there = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    if not os.access(there, os.W_OK | os.X_OK):
        raise InputError(f"nothing can be written into {there}, where --out {path} is to be: expected another --out")
