"""Run all attacks: crafted files, damaged files, damaged results, killed processes, absurd options.

`python -m fuzz.run` (`make fuzz`) takes long: 100,000 files, 2,000 edits and 300 flipped bits of saved results, 300
simultaneous saves, 100 kills, 500 command lines. `python -m fuzz.run --quick` (`make fuzz-quick`) takes about a minute.
Each attack is a program of its own (`python -m fuzz.files --help`) and prints how to repeat a finding.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence

Plan = dict[str, dict[str, int]]

FULL: Plan = {
    "crafted": {},
    "files": {"cases": 100_000},
    "results": {"edits": 2000, "flips": 300, "saves": 300},
    "kills": {"kills": 100},
    "options": {"cases": 500},
}
QUICK: Plan = {
    "crafted": {},
    "files": {"cases": 5000},
    "results": {"edits": 100, "flips": 20, "saves": 15},
    "kills": {"kills": 2},
    "options": {"cases": 60},
}


def commands(plan: Plan, seed: int) -> dict[str, list[str]]:
    """Return the command line of each attack."""
    return {
        name: [sys.executable, "-m", f"fuzz.{name}", "--seed", str(seed)]
        + [part for option, value in sizes.items() for part in (f"--{option}", str(value))]
        for name, sizes in plan.items()
    }


def run(plan: Plan, seed: int) -> list[str]:
    """Run all attacks. Returns the names of those that failed or have findings."""
    # One thread each, because they start several processes or fork.
    single = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    failed = []
    for name, command in commands(plan, seed).items():
        print(f"== {name}: {' '.join(command[2:])}", flush=True)
        if subprocess.run(command, env=single, check=False).returncode != 0:
            failed.append(name)
    return failed


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Returns 1 if there is a finding."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.run", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="about a minute")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(arguments)
    begin = time.monotonic()
    failed = run(QUICK if chosen.quick else FULL, chosen.seed)
    print(f"== attacks with findings: {', '.join(failed) or 'none'} ({time.monotonic() - begin:.0f} s)")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
