"""The fuzzer has no findings in the readers, and finds planted defects."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fuzz import files
from qwp.spaces.embeddings import Embeddings
from qwp.spaces.io import formats, numpy_files, text
from qwp.spaces.io.reading import Reading, Rows
from qwp.spaces.io.sources import Source


def test_damaged_files_are_refused_or_read_correctly() -> None:
    findings = files.run_cases(range(400), seed=7)
    assert not findings, findings[0]
    assert logging.getLogger("qwp").isEnabledFor(logging.ERROR)  # the log is on again


def test_a_case_depends_on_its_number_alone() -> None:
    valid = files.samples()
    again = files.samples()
    for number in (0, 17, 400):
        first, second = files.make(3, number, valid), files.make(3, number, again)
        assert (first.content, first.sidecar, first.steps) == (second.content, second.sidecar, second.steps)
    assert files.make(4, 17, valid).content != files.make(3, 17, valid).content


def plant(monkeypatch: pytest.MonkeyPatch, format: str, read: object) -> None:
    monkeypatch.setitem(formats.FORMATS, format, replace(formats.FORMATS[format], read=read))  # type: ignore[arg-type]


def test_a_reader_that_raises_something_else_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(reading: Reading, source: Source) -> Iterator[Rows]:
        if source.size % 2:
            raise ValueError("planted")
        return numpy_files.read_npz(reading, source)

    plant(monkeypatch, "npz", broken)
    findings = files.run_cases(range(100), seed=0)
    assert "ValueError from x.npz" in {finding.what for finding in findings}
    assert all(finding.what.startswith("ValueError") for finding in findings)
    assert "planted" in findings[0].detail


def test_a_lack_of_memory_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def greedy(reading: Reading, source: Source) -> Iterator[Rows]:
        raise MemoryError

    plant(monkeypatch, "text", greedy)
    assert any("lack of memory" in finding.what for finding in files.run_cases(range(100), seed=0))


def test_rows_that_change_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(reading: Reading, source: Source) -> Iterator[Rows]:
        for rows in text.read(reading, source):
            yield replace(rows, vectors=rows.vectors + np.float32(1))

    plant(monkeypatch, "text", careless)
    found = {finding.what.split(" (")[0] for finding in files.run_cases(range(300), seed=0)}
    assert "undamaged rows have changed" in found


def test_a_slow_case_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(reading: Reading, source: Source) -> Iterator[Rows]:
        while True:
            pass

    plant(monkeypatch, "glove", endless)
    assert any("TooSlowError" in finding.what for finding in files.run_cases(range(100), seed=0, seconds=0.05))


def test_the_command_line_replays_a_case(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(reading: Reading, source: Source) -> Iterator[Rows]:
        raise KeyError("planted")

    plant(monkeypatch, "npz", broken)
    case = files.run_cases(range(100), seed=0)[0].case
    assert files.main(["--only", str(case), "--seed", "0"]) == 1
    shown = capsys.readouterr().out
    assert f"case {case}: x.npz" in shown
    assert "KeyError" in shown
    assert "1 findings" in shown
    monkeypatch.undo()
    assert files.main(["--only", str(case), "--seed", "0"]) == 0


def test_workers_have_bounded_memory() -> None:
    command = [sys.executable, "-m", "fuzz.files", "--cases", "20", "--workers", "2"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2])
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "20 cases, seed 0, 0 findings" in ran.stdout


def test_samples_cover_every_format() -> None:
    names = {sample.name for sample in files.samples()}
    assert names >= {"x.vec", "x.glove", "x.bin", "x.npz", "x.safetensors", "x.txt", "x.csv", "x.vec.gz"}
    assert all(isinstance(sample.space, Embeddings) or sample.pairs for sample in files.samples())
