"""The folder of `qwp align --out`. test_align.py tests the whole command."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from qwp import Alignment, InputError, align
from qwp.cli.folders import ResultFolder
from qwp.cli.results import PairTask
from qwp.methods import make_aligner
from qwp.methods.settings import Supervision
from qwp.results.checkpoints import FILE_NAME
from qwp.results.provenance import Identity
from tests.cli.conftest import QUICK as FLAGS
from tests.cli.conftest import Problem, qwp
from tests.conftest import QUICK, planted_embeddings

OPTIONS: dict[str, Any] = {**QUICK, "start": "profiles", "steps": 2, "refine": 0}


@pytest.fixture(scope="module")
def finished() -> Alignment:
    return align(*planted_embeddings(100), **OPTIONS)


def task_like(**changes: Any) -> PairTask:
    """Return the task of the finished alignment, or one with other settings."""
    return PairTask(make_aligner("qwp", **{**OPTIONS, **changes}), Supervision())


def test_a_folder_is_checked_before_reading(finished: Alignment, tmp_path: Path) -> None:
    out = tmp_path / "out"
    same, other = task_like(), task_like(seed=3)
    ResultFolder(out, force=False, resume=True).check(other)
    finished.save(out)
    ResultFolder(out, force=False, resume=False).check(same)
    ResultFolder(out, force=True, resume=False).check(other)
    for resume in (True, False):
        with pytest.raises(InputError, match=r"the finished result of another run \(seed was 0, now 3\): give --force"):
            ResultFolder(out, force=False, resume=resume).check(other)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is a file; expected the name of a folder to save into"):
        ResultFolder(tmp_path / "file", force=True, resume=False).check(same)


def test_a_checkpoint_belongs_to_a_later_run(finished: Alignment, tmp_path: Path) -> None:
    assert not ResultFolder(tmp_path).holds_result()
    finished.save(tmp_path)
    assert ResultFolder(tmp_path).holds_result()
    (tmp_path / FILE_NAME).touch()
    assert not ResultFolder(tmp_path).holds_result()


def test_a_read_only_folder_is_refused_before_the_work(
    finished: Alignment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)
    message = f"the folder {tmp_path} of --out {tmp_path / 'a/b'} is not writable: expected another --out"
    with pytest.raises(InputError, match=re.escape(message)):
        ResultFolder(tmp_path / "a/b").check(task_like())
    finished.save(tmp_path)
    ResultFolder(tmp_path).check(task_like())  # the existing result is only shown
    with pytest.raises(InputError, match="is not writable"):
        ResultFolder(tmp_path, force=True).check(task_like())


def test_a_result_of_other_vectors_is_another_run(finished: Alignment, tmp_path: Path) -> None:
    finished.save(tmp_path)
    task = task_like()
    src, tgt = finished.src.sha256(), finished.tgt.sha256()
    ResultFolder(tmp_path).load(task, task.identity({"src": src, "tgt": tgt}))
    with pytest.raises(InputError, match="it had another input for src: sha256 "):
        ResultFolder(tmp_path).load(task, task.identity({"src": tgt, "tgt": src}))


def test_an_unusable_result_may_be_replaced(finished: Alignment, tmp_path: Path) -> None:
    finished.save(tmp_path)
    (tmp_path / "alignment.json").write_text("no JSON")
    with pytest.raises(InputError, match=r"holds a result that cannot be used \(.* is damaged .*\): give --force"):
        ResultFolder(tmp_path, force=False, resume=False).check(task_like())


def test_settings_are_the_identity_without_inputs(finished: Alignment) -> None:
    task = task_like()
    whole: Identity = task.identity({"src": finished.src.sha256(), "tgt": finished.tgt.sha256()})
    assert task.settings() == replace(whole, inputs={})


RECORDED = """
import sys

paths = set()
names = ("open", "os.listdir", "os.scandir", "glob.glob")
sys.addaudithook(lambda event, args: paths.add(str(args[0])) if event in names else None)
from qwp.cli.main import main

try:
    main()
finally:
    print(*paths, sep="\\n", file=sys.stderr)
"""


def test_no_command_reads_the_folder_of_another_result(problem: Problem, tmp_path: Path) -> None:
    """A planted file could otherwise change a verdict."""
    out = tmp_path / "results" / "own"
    assert qwp("align", problem.src, problem.tgt, "--out", out.with_name("other"), *FLAGS).code == 0
    for command in (["align", problem.src, problem.tgt, "--out", out, *FLAGS], ["translate", out, "s1"]):
        run = [sys.executable, "-c", RECORDED, *map(str, command)]
        done = subprocess.run(run, check=True, capture_output=True, text=True)
        paths = {Path(line) for line in done.stderr.splitlines() if line.startswith(str(out.parent))}
        assert any(path.is_relative_to(out) for path in paths)
        assert all(path.is_relative_to(out) for path in paths), paths
