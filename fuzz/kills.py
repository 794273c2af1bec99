"""Kill `qwp align` at random moments and resume it until it finishes.

`python -m fuzz.kills --kills 100 --seed 0`. Every kill is a SIGKILL or SIGTERM to a new process. The final maps must be
identical to those of an undisturbed run on this machine. An older result in the folder must stay complete until the new
one replaces it, and no temporary file may remain. `--only 17` repeats one round and prints its events; the moments are
the same except for microseconds.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from fuzz.results import leftovers
from qwp import Alignment, Embeddings, InputError
from qwp.results.checkpoints import FILE_NAME
from qwp.results.saved import ALIGNMENT
from qwp.spaces import io

WORDS, DIM = 300, 12
# Much of this run is refinement, checkpoints and saving, where a kill can do harm.
QUICK = "--coreset-size 40 --steps 4 --epochs 3 --bank-size 2 --start-words 100 --start profiles --refine 6 --threads 1"
CHECKPOINTS = "import qwp.stages.stage as s; s.Monitor.INTERVAL = 0.0; from qwp.cli.main import main; main()"
SECONDS_TO_RESUME = 120.0
# Longest wait for a file in the folder.
_LONGEST = 30.0


@dataclass(frozen=True)
class Problem:
    """Files to align."""

    folder: Path

    def command(self, out: Path, *flags: str) -> list[str]:
        """Return the command `qwp align` with a checkpoint after every step."""
        files = [str(self.folder / f"{name}.vec") for name in "ab"]
        return [sys.executable, "-c", CHECKPOINTS, "align", *files, "--out", str(out), *QUICK.split(), *flags]

    def maps(self, out: Path) -> list[bytes]:
        """Return the bytes of all maps in a folder."""
        found = Alignment.load(out)
        return [side.tensors()["map"].tobytes() for side in (found.src_side, found.tgt_side) if side.map is not None]


def make_problem(folder: Path) -> Problem:
    """Write noisy, rotated copies of one space."""
    rng = np.random.default_rng(0)
    words = rng.standard_normal((WORDS, DIM)) * np.arange(1, DIM + 1) ** -0.5
    folder.mkdir()
    for name in "ab":
        rotation = np.linalg.qr(rng.standard_normal((DIM, DIM)))[0]
        vectors = words @ rotation + 0.05 * rng.standard_normal((WORDS, DIM))
        io.save(Embeddings([f"{name}{i}" for i in range(WORDS)], vectors.astype("f4")), folder / f"{name}.vec")
    return Problem(folder)


@dataclass
class Report:
    """The findings, and the number of each event."""

    verbose: bool = False
    findings: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, round: int, what: str) -> None:
        """Add and print a finding."""
        self.findings.append(f"round {round}: {what}")
        print(f"FINDING round {round}: {what}", file=sys.stderr)

    def trace(self, text: str) -> None:
        """Print an event of a repeated round."""
        if self.verbose:
            print(text)


class Round:
    """A run that is killed and resumed until it finishes."""

    def __init__(self, number: int, seed: int, problem: Problem, scratch: Path, report: Report) -> None:
        self.number, self.problem, self.report = number, problem, report
        self.rng = random.Random(f"{seed} {number}")
        self.out = scratch / f"round-{number}"
        self.whole, self.older = scratch / "pair", scratch / "older"
        self.known = {"new": problem.maps(self.whole), "older": problem.maps(self.older)}

    def run(self, kills: int, usual: float) -> None:
        """Kill the run `kills` times, each within the usual time of a run, then let it finish."""
        if self.rng.random() < 0.5:
            shutil.copytree(self.older, self.out)  # an older result
        had_result = self.out.exists()
        for _ in range(kills):
            self._kill(self.rng.uniform(0.2, 1.1) * usual)
            if self._check_result(had_result) == "new" and not (self.out / FILE_NAME).exists():
                break  # it has finished
        ended = subprocess.run(
            self.problem.command(self.out, *self._resume()), capture_output=True, text=True, timeout=SECONDS_TO_RESUME
        )
        if ended.returncode not in (0, 3):
            self.report.add(self.number, f"the last run ended with {ended.returncode}: {ended.stderr[-500:]}")
            return
        if self._found() != "new":
            self.report.add(self.number, "the maps differ from those of an undisturbed run")
        for text in [*leftovers(self.out), *(["a checkpoint is left"] if (self.out / FILE_NAME).exists() else [])]:
            self.report.add(self.number, text)
        shutil.rmtree(self.out)

    def _resume(self) -> list[str]:
        """Return --resume, or --force if the folder holds the older result only."""
        return ["--resume"] if (self.out / FILE_NAME).exists() or self._found() != "older" else ["--force"]

    def _kill(self, after: float) -> None:
        how = self.rng.choice((signal.SIGKILL, signal.SIGTERM))
        process = subprocess.Popen(
            self.problem.command(self.out, *self._resume()),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._wait(process, after)
        ended_before = process.poll() is not None
        if not ended_before:
            os.kill(process.pid, how)
        _, err = process.communicate(timeout=SECONDS_TO_RESUME)
        # The process can also end just before the signal.
        name = "ended before" if ended_before or process.returncode in (0, 3) else how.name
        self.report.counts[name] += 1
        self.report.trace(
            f"{name} after {after:.2f} s, code {process.returncode}: {sorted(p.name for p in self._files())}"
        )
        expected = {"SIGKILL": (-9,), "SIGTERM": (143, -15), "ended before": (0, 3)}[name]
        if process.returncode not in expected or "Traceback" in err:
            self.report.add(self.number, f"{name}: code {process.returncode}, {err[-500:]}")

    def _files(self) -> list[Path]:
        return list(self.out.iterdir()) if self.out.exists() else []

    def _wait(self, process: subprocess.Popen[str], after: float) -> None:
        """Wait for a time, or until a file appears in the folder and a moment longer."""
        begin = time.monotonic()
        wanted = self.rng.choice((None, None, FILE_NAME, ".parts-", "parts-", ALIGNMENT))
        while process.poll() is None and time.monotonic() - begin < (after if wanted is None else _LONGEST):
            if wanted is not None and any(path.name.startswith(wanted) for path in self._new_files(begin)):
                time.sleep(self.rng.choice((0.0, 0.001, 0.01, 0.1)))
                return
            time.sleep(0.0005)

    def _new_files(self, begin: float) -> list[Path]:
        since = time.time() - (time.monotonic() - begin)
        found = []
        for path in self._files():
            try:
                found += [path] if path.stat().st_mtime >= since else []
            except OSError:
                continue
        return found

    def _found(self) -> str:
        """Return which result is in the folder."""
        if not (self.out / ALIGNMENT).exists():
            return "none"
        maps = self.problem.maps(self.out)
        return next((name for name, known in self.known.items() if known == maps), "another")

    def _check_result(self, had_result: bool) -> str:
        """Return which result is in the folder after a kill; add a finding if it must not be there."""
        try:
            found = self._found()
        except InputError as error:
            self.report.add(self.number, f"the result cannot be read: {error}")
            return "none"
        self.report.counts[f"{found} result after a kill"] += 1
        if found == "another" or (had_result and found == "none"):
            self.report.add(self.number, f"after a kill there is {found} result in the folder")
        return found


def prepare(scratch: Path) -> tuple[Problem, float]:
    """Make a problem and run it twice undisturbed. Returns the problem and the seconds of a run."""
    problem = make_problem(scratch / "vectors")
    seconds = []
    for out, flags in ((scratch / "older", ["--seed", "5"]), (scratch / "pair", [])):
        begin = time.monotonic()
        ended = subprocess.run(problem.command(out, *flags), capture_output=True, text=True, timeout=SECONDS_TO_RESUME)
        if ended.returncode not in (0, 3):
            raise SystemExit(f"the undisturbed run failed: {ended.stderr}")
        seconds.append(time.monotonic() - begin)
    return problem, min(seconds)


def run(kills: int, seed: int, only: int | None = None) -> Report:
    """Kill runs `kills` times in all."""
    report = Report(verbose=only is not None)
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        problem, usual = prepare(scratch)
        number = 0 if only is None else only
        while sum(report.counts[name] for name in ("SIGKILL", "SIGTERM")) < kills:
            Round(number, seed, problem, scratch, report).run(
                random.Random(f"{seed} times {number}").choice((3, 4, 5)), usual
            )
            report.counts["rounds"] += 1
            if only is not None:
                break
            number += 1
    return report


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Returns 1 if there is a finding."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, metavar="N", help="run one round and print its events")
    chosen = parser.parse_args(arguments)
    begin = time.monotonic()
    report = run(chosen.kills, chosen.seed, chosen.only)
    for name, count in sorted(report.counts.items()):
        print(f"{count:6}  {name}")
    print(f"{len(report.findings)} findings in {time.monotonic() - begin:.0f} s")
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(main())
