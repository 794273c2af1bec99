"""Kills `qwp experiment run` at random moments, and gives the same command again until it has finished.

`python -m fuzz.experiments --kills 20 --seed 0`, and with `--engine ray` on a Ray cluster of this machine. Every kill
is SIGKILL to the process that was started, which can end nothing then; its workers have to notice. The results in the
end have to be those of a run that nobody disturbed, each once. Where a run is through before it was killed often
enough, the next one begins in a folder of its own. `--experiment` takes one that needs no data, or a TOML file.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qwp.experiments.engines import ENGINES, LOCAL
from qwp.experiments.run import FILE

_SECONDS_TO_END = 120.0
_SECONDS_OF_A_RUN = 900.0
# What differs between two runs.
_TIMES = ("seconds", "shared_seconds", "stages")


@dataclass(frozen=True)
class Attack:
    """What is run and how."""

    experiment: str
    engine: str
    workers: int

    def begin(self, results: Path) -> subprocess.Popen[bytes]:
        """The command, as the leader of a session: all that it starts can be found."""
        where = ["--results", str(results), "--device", "cpu", "--workers", str(self.workers), "--quiet"]
        line = [sys.executable, "-m", "qwp", "experiment", "run", self.experiment, "--engine", self.engine, *where]
        return subprocess.Popen(line, start_new_session=True)

    def finish(self, results: Path) -> float:
        """Run it to its end. Returns the seconds that took."""
        begin = time.monotonic()
        code = self.begin(results).wait(_SECONDS_OF_A_RUN)
        if code != 0:
            raise AssertionError(f"the command ended with code {code}")
        return time.monotonic() - begin

    def killed(self, results: Path, seconds: float) -> bool:
        """Kill it after so many seconds. Returns whether it was not through before."""
        process = self.begin(results)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
        was_killed = process.wait() == -signal.SIGKILL
        _wait_for_the_end_of(process.pid)
        return was_killed


def _wait_for_the_end_of(session: int) -> None:
    deadline = time.monotonic() + _SECONDS_TO_END
    while workers := processes_of(session):
        if time.monotonic() > deadline:
            raise AssertionError(f"processes outlive the one that started them: {', '.join(workers)}")
        time.sleep(0.2)


def processes_of(session: int) -> list[str]:
    """The command lines of what runs in a session, zombies aside."""
    shown = subprocess.run(["ps", "-e", "-o", "sess=,stat=,args="], capture_output=True, text=True, check=True)
    rows = [row.split(maxsplit=2) for row in shown.stdout.splitlines()]
    return [row[2] for row in rows if len(row) > 2 and row[0] == str(session) and not row[1].startswith("Z")]


def results_of(folder: Path) -> dict[str, dict[str, Any]]:
    """The records by address; one that is there twice is an error."""
    records = [json.loads(line) for line in (folder / FILE).read_text().splitlines()]
    found = {each["address"]: {k: v for k, v in each.items() if k not in _TIMES} for each in records}
    if len(found) < len(records):
        raise AssertionError(f"{len(records) - len(found)} cells are in {folder / FILE} twice")
    return found


def attack(attack: Attack, kills: int, seed: int, folder: Path) -> dict[str, int]:
    """Kill so often. Returns what was done; raises an AssertionError for what must not be."""
    draws = random.Random(seed)
    seconds = attack.finish(folder / "whole")
    whole = results_of(folder / "whole")
    done = runs = 0
    while done < kills:
        results = folder / f"run{runs}"
        runs += 1
        # At any moment of a whole run; one that has some cells already may be through before.
        while done < kills and attack.killed(results, draws.random() * seconds):
            done += 1
            print(f"{done}/{kills} kills, run {runs}, {_lines(results)}/{len(whole)} cells", flush=True)
        attack.finish(results)
        if results_of(results) != whole:
            raise AssertionError(f"{results / FILE} differs from that of a run that was not disturbed")
        shutil.rmtree(results)
    return {"kills": done, "runs": runs, "cells": len(whole)}


def _lines(results: Path) -> int:
    path = results / FILE
    return path.read_bytes().count(b"\n") if path.exists() else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns 1 if something was found."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.experiments", description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--engine", choices=ENGINES, default=LOCAL)
    parser.add_argument("--experiment", default="smoke")
    parser.add_argument("--workers", type=int, default=min(2, os.cpu_count() or 1))
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="qwp-kills-") as folder:
        try:
            found = attack(
                Attack(chosen.experiment, chosen.engine, chosen.workers), chosen.kills, chosen.seed, Path(folder)
            )
        except AssertionError as error:
            print(f"found: {error}", flush=True)
            return 1
    print(
        f"{found['kills']} kills in {found['runs']} runs of {found['cells']} cells: every result as undisturbed, once"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
