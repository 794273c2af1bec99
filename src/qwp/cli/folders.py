"""The folder of `qwp align --out`: an existing result is shown, an interrupted run continued.

Only --force replaces the result of another run.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from qwp.cli import console
from qwp.cli.results import Fingerprints, PairTask
from qwp.errors import InputError
from qwp.results.checkpoints import Checkpoint
from qwp.results.provenance import Identity, Provenance
from qwp.results.saved import ALIGNMENT, ALL_PAIRS, SEVERAL, read_alignment_index
from qwp.showing import terminal

_WAYS_OUT = "give --force to replace it, or another --out"


@dataclass(frozen=True)
class ResultFolder:
    """The folder for the result of a run.

    Args:
        path: None if the result is not saved; most methods then do nothing.
        force: replace an existing result.
        resume: the user expects an interrupted run.
        vectors: save the vectors with the result.
    """

    path: Path | None
    force: bool = False
    resume: bool = False
    vectors: bool = True

    @property
    def checkpoint(self) -> Checkpoint | None:
        """The checkpoint of the run."""
        return None if self.path is None else Checkpoint(self.path, resume=not self.force)

    def check(self, task: PairTask) -> None:
        """Refuse a folder that cannot take the result, before any vectors are read."""
        if self.force and self.resume:
            raise InputError(
                "--resume and --force were both given; expected one: continue the interrupted run, or replace it"
            )
        if self.path is None:
            return
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"--out {self.path} is a file; expected the name of a folder to save into")
        self._refuse_several(self.path)
        if self.holds_result():
            self._refuse_other(task.settings(), self._settings_of_result(self.path))
        else:
            Checkpoint(self.path, resume=not self.force).check_settings(task.settings())
            _check_writable(self.path)

    def holds_result(self) -> bool:
        """Return whether the folder holds a finished result to keep, and no later, interrupted run."""
        if self.path is None or self.force:
            return False
        return (self.path / ALIGNMENT).exists() and not Checkpoint(self.path).path.exists()

    def holds_result_of(self, sources: Fingerprints) -> bool:
        """Return whether the folder holds a result of the same sources."""
        if self.path is None or not self.holds_result() or None in sources.values():
            return False
        inputs = self._provenance(self.path).inputs()
        return {name: found.source_fingerprint for name, found in inputs.items()} == dict(sources)

    def load(self, task: PairTask, identity: Identity | None = None) -> None:
        """Read the result into the task. identity: of the task, which the result must have; None if known to match."""
        assert self.path is not None, "it holds a result"
        try:
            found = task.load(self.path)
        except InputError as error:
            raise self._unusable(error) from error
        if identity is not None:
            self._refuse_other(identity, found)
        if self.vectors and not task.holds_vectors():
            raise InputError(
                f"{self.path} holds the result of this run without its vectors (--save map): give --force to align "
                "again and keep them, or --save map to leave it as it is"
            )
        missing = task.missing_files()
        if missing:
            raise InputError(
                f"{self.path} holds the result of this run without its vectors (--save map), and their files "
                f"{', '.join(missing)} are missing: give --force to align again"
            )
        with suppress(OSError):  # the folder may be read-only, and an old checkpoint does no harm
            Checkpoint(self.path).clear()

    def announce(self) -> None:
        """Print whether an interrupted run in the folder is continued."""
        checkpoint = self.checkpoint
        if checkpoint is None:
            return
        if not checkpoint.path.exists():
            if self.resume:
                terminal.note(f"there is no interrupted run in {self.path}; starting from the beginning")
        elif self.force:
            console.warn(f"an interrupted run is in {self.path}; starting afresh (--resume would have continued it)")
            checkpoint.clear()
        else:
            hint = "" if self.resume else " (--force would start afresh)"
            terminal.note(f"continuing the interrupted run in {self.path}{hint}")

    def save(self, task: PairTask) -> None:
        """Save the result, then delete the checkpoint."""
        checkpoint = self.checkpoint
        if self.path is None or checkpoint is None:
            return
        try:
            task.save(self.path, vectors=self.vectors)
        except (OSError, InputError) as error:
            reason = (error.strerror or error) if isinstance(error, OSError) else error
            kept = ", and the checkpoint is kept" if checkpoint.path.exists() else ""
            raise InputError(
                f"the result could not be saved in {self.path} ({reason}); the folder is unchanged{kept}: solve the "
                f"problem, then give {self._same_command()}"
            ) from error
        checkpoint.clear()

    def interrupted(self) -> str:
        """Return what an interrupted run leaves, and how to continue it."""
        checkpoint = self.checkpoint
        if checkpoint is None:
            return "interrupted: nothing was saved, because --out was not given"
        if not checkpoint.path.exists():
            return "interrupted before the first checkpoint: nothing was saved"
        return f"interrupted: the checkpoint {checkpoint.path} is kept; give {self._same_command()} to continue"

    def _same_command(self) -> str:
        """Return the command that continues a run: --force would discard its checkpoint."""
        return "the same command again" + (" without --force" if self.force else "")

    def _settings_of_result(self, path: Path) -> Identity:
        """Return the identity of the existing result without its inputs."""
        return replace(self._provenance(path).identity(), inputs={})

    def _refuse_several(self, path: Path) -> None:
        """Refuse a folder of several alignments, even with --force: they would be mixed with this one."""
        for name in (SEVERAL, ALL_PAIRS):
            if (path / name).exists():
                raise InputError(f"{path} holds several alignments ({name}): expected another --out")

    def _provenance(self, path: Path) -> Provenance:
        """Return the provenance of the existing result."""
        try:
            return Provenance.from_dict(read_alignment_index(path).content["provenance"])
        except InputError as error:
            raise self._unusable(error) from error

    def _refuse_other(self, now: Identity, was: Identity) -> None:
        difference = now.difference(was)
        if difference is not None:
            raise InputError(f"{self.path} holds the finished result of another run ({difference}): {_WAYS_OUT}")

    def _unusable(self, error: InputError) -> InputError:
        return InputError(f"{self.path} holds a result that cannot be used ({error}): {_WAYS_OUT}")


def _check_writable(path: Path) -> None:
    """Refuse a read-only folder, which would otherwise be noticed after minutes of work."""
    existing = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    if not os.access(existing, os.W_OK | os.X_OK):
        raise InputError(f"the folder {existing} of --out {path} is not writable: expected another --out")
