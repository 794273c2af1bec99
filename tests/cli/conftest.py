"""A small problem as files, its alignment, and a way to run commands."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from qwp.cli import align
from qwp.cli.main import app
from qwp.showing.bar import AlignProgress
from qwp.showing.events import Progress
from qwp.spaces import io
from qwp.spaces.embeddings import Embeddings
from tests.problems import Array, planted

# Quick settings that still solve the problem below. The initialization takes most of the time of a run, so only tests
# of it use SEARCHED.
QUICK = (
    *("--coreset-size", "100", "--steps", "8", "--epochs", "3", "--bank-size", "4"),
    *("--start", "profiles", "--refine", "3", "--threads", "1", "--pairs-per-step", "1"),
)
SEARCHED = (*QUICK, "--start", "auto", "--start-words", "250", "--start-steps", "20")


@dataclass(frozen=True)
class Ran:
    """Exit code and output of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """Return stdout as one JSON object; other output fails."""
        value = json.loads(self.out)
        assert isinstance(value, dict)
        return value


def qwp(*args: object, stdin: str | None = None) -> Ran:
    """Run a command in this process."""
    result = CliRunner().invoke(app, [str(a) for a in args], input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ran(result.exit_code, result.stdout, result.stderr)


def words(prefix: str, n: int) -> list[str]:
    """Return n different words."""
    return [f"{prefix}{i}" for i in range(n)]


def write(path: Path, prefix: str, vectors: Array) -> Path:
    """Write vectors (n, d) to a file, with words made from the prefix."""
    io.save(Embeddings(words(prefix, len(vectors)), vectors.astype(np.float32)), path)
    return path


def leftovers(folder: Path) -> list[str]:
    """Return the temporary files below a folder."""
    return [p.name for p in folder.rglob("*") if p.name.endswith(".tmp") or p.name.startswith(".")]


@dataclass(frozen=True)
class Problem:
    """Files of a problem with a known answer: source word s<i> means target word t<j>."""

    src: Path
    tgt: Path
    lexicon: Path
    noise: Path
    folder: Path


@pytest.fixture(scope="session")
def problem(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    """Write 400 words of 24 dimensions for each side, a dictionary, and a target of pure noise."""
    folder = tmp_path_factory.mktemp("problem")
    made = planted(400, d=24, noise=0.1, seed=1)
    lexicon = folder / "gold.txt"
    lexicon.write_text("".join(f"s{i} t{j}\n" for i, j in made.gold))
    noise = np.random.default_rng(5).standard_normal((400, 24))
    return Problem(
        write(folder / "src.vec", "s", made.src),
        write(folder / "tgt.vec", "t", made.tgt),
        lexicon,
        write(folder / "noise.vec", "t", noise),
        folder,
    )


@pytest.fixture(scope="session")
def aligned(problem: Problem, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Align the first 300 words. Tests must not change the folder."""
    out = tmp_path_factory.mktemp("aligned") / "dir"
    ran = qwp("align", problem.src, problem.tgt, "--out", out, *QUICK, "--max-vocab", 300, "--quiet")
    assert ran.code == 0, ran.err
    return out


class InterruptedProgress(AlignProgress):
    """Press Ctrl-C when a stage has done some steps."""

    at = ("", 0)

    def __call__(self, event: Progress) -> None:
        super().__call__(event)
        if (event.stage, event.done) == self.at:
            raise KeyboardInterrupt


@contextmanager
def interrupted_at(stage: str, done: int) -> Iterator[None]:
    """Interrupt every `qwp align` when a stage has done some steps."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(align, "AlignProgress", type("Interrupted", (InterruptedProgress,), {"at": (stage, done)}))
        yield


@pytest.fixture(autouse=True)
def signals_arrive() -> Iterator[None]:
    """Stop ignoring signals that these tests send: background jobs and nohup inherit ignored signals."""
    usual: dict[signal.Signals, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
    ignored = [number for number in usual if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, usual[number])
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
