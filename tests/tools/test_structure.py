"""The walk of a fit in docs/architecture.md: a fit calls its functions in this order."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from qwp import align
from tests.conftest import QUICK, planted_embeddings
from tools import project, structure

PLACES = {(str(project.PACKAGE / step.file), step.line()): step for step in structure.WALK}
TESTS = Path(__file__).parents[1]
# Files whose functions only pass calls on (docs/architecture.md, below the walk).
PASSED_ON = {"stages/stage.py", "stages/anchored.py"}


def test_the_line_of_a_function(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("class A:\n    def f(self): ...\n\n\ndef f(): ...\n")
    assert structure.Step("x.py", "f", "").line(tmp_path) == 5
    assert structure.Step("x.py", "A.f", "").line(tmp_path) == 2
    for name in ("g", "A.g", "f.f"):
        with pytest.raises(ValueError, match=f"x.py has no {name}"):
            structure.Step("x.py", name, "").line(tmp_path)


def test_the_walk_goes_through_at_most_eight_files() -> None:
    assert structure.WALK[0] == structure.Step("api.py", "align", structure.WALK[0].does)
    assert len({step.file for step in structure.WALK}) <= 8
    assert len(structure.walk().splitlines()) == len(structure.WALK) + 2


def callers(frame: FrameType | None) -> Iterator[str]:
    """Yield the files of the package on the stack of a call."""
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(project.PACKAGE):
            yield path.relative_to(project.PACKAGE).as_posix()
        frame = frame.f_back


def test_a_fit_calls_the_functions_of_the_walk_in_their_order() -> None:
    called: list[structure.Step] = []
    files: set[str] = set()

    def watch(frame: FrameType, event: str, _: Any) -> None:
        step = PLACES.get((frame.f_code.co_filename, frame.f_code.co_firstlineno)) if event == "call" else None
        if step is not None and step not in called:
            called.append(step)
            files.update(callers(frame))

    src, tgt = planted_embeddings(noise=0.1)
    sys.setprofile(watch)
    try:
        alignment = align(src, tgt, **QUICK)
    finally:
        sys.setprofile(None)
    assert called == list(structure.WALK)
    assert files - {step.file for step in structure.WALK} == PASSED_ON
    stages = [record["stage"] for record in alignment.history]
    assert [one for one, other in pairwise([*stages, ""]) if one != other] == [
        "initialize",
        "loop",
        "refine",
        "verdict",
    ]


def test_no_test_patches_a_tuned_constant() -> None:
    # A tuned constant is a field of the component that uses it, so that a test can pass a small value.
    patched = re.compile(r"monkeypatch\.setattr\(\s*[\w.]+,\s*\"(_?[A-Z][A-Z_]+)\"")
    found = {name for path in TESTS.rglob("*.py") for name in patched.findall(path.read_text("utf-8"))}
    assert found == {"FILE_LOCKS"}  # which simulates another operating system
