"""What a user waits for day by day, each against its target. `python -m benchmarks.daily --help`.

    python -m benchmarks.daily

Every figure is of this machine and this run; `--before COMMAND` runs the same commands with another installed `qwp`
beside it (its `qwp` program), so that a change shows as a ratio. Data is generated, but for the packaged demo and for
what is read from $QWP_BENCH or ../shared/bench where that is there. Nothing is asserted: a target that is missed says
so in its row.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import qwp
from benchmarks.common import clustered_space, machine, save
from benchmarks.data import BENCH
from qwp import Alignment, Embeddings, Lexicon
from qwp.spaces.demo import load_demo
from qwp.spaces.embeddings import FloatArray
from qwp.spaces.io import save as save_vectors

RESULTS = Path(__file__).parent / "results" / "daily.json"
# So that what is measured is what a user waits for, who has run it before.
_WARM_UPS = 1
_SEEDS = 3
# Most frequent words of the novels, of which the verdict takes the largest shares of the time.
_CUTS, _REPEATED_CUTS = (1000, 2000, 3000, 5000, 10_000), 3


@dataclass(frozen=True)
class Figure:
    """One row. unit: s (wall clock) or CPU s; before: of another version, in the same run."""

    name: str
    value: float
    target: float
    unit: str = "s"
    before: float | None = None

    @property
    def held(self) -> bool:
        """Whether the target is reached."""
        return self.value <= self.target

    def as_json(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {**asdict(self), "target": None if math.isinf(self.target) else self.target, "held": self.held}

    def row(self) -> str:
        """A line of a table in Markdown."""
        target = "" if math.isinf(self.target) else f"{self.target:g} {self.unit}"
        reached = "" if math.isinf(self.target) else "yes" if self.held else "no"
        return f"| {self.name} | {self._shown(self.before)} | {self._shown(self.value)} | {target} | {reached} |"

    def _shown(self, value: float | None) -> str:
        return "" if value is None else f"{value:.{3 if value < 0.1 else 2}f} {self.unit}"


@dataclass(frozen=True)
class Program:
    """A qwp that can be called: this one, or another installed beside it."""

    command: tuple[str, ...]

    def run(self, *args: object) -> None:
        """Run a command quietly; an error shows what it said."""
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        done = subprocess.run(
            [*self.command, *map(str, args)], check=False, capture_output=True, text=True, env=environment
        )
        if done.returncode not in (0, 3):  # 3: finished, and judged a failure
            raise RuntimeError(f"{' '.join(map(str, args))}: {done.stderr.strip()}")


THIS = Program((sys.executable, "-m", "qwp"))


def wall(call: Callable[[], object], repeats: int) -> float:
    """Median wall-clock seconds of a call, after a warm-up where it is repeated."""
    times = []
    for number in range(repeats + (_WARM_UPS if repeats > 1 else 0)):
        begin = time.perf_counter()
        call()
        if number or repeats == 1:
            times.append(time.perf_counter() - begin)
    return statistics.median(times)


def cpu(call: Callable[[], object]) -> float:
    """Seconds of all cores together that a command in a process of its own takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    call()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


# --------------------------------------------------------------------------- data


def related(n: int, d: int, seed: int = 0) -> tuple[Embeddings, Embeddings]:
    """A generated space and a turned, noisy copy of it: word s7 means t7."""
    rng = np.random.default_rng(seed)
    x = clustered_space(n, d, seed)
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0].astype(np.float32)
    y = x @ turn + 0.3 / np.sqrt(d) * rng.standard_normal((n, d), dtype=np.float32)
    return Embeddings([f"s{i}" for i in range(n)], x), Embeddings([f"t{i}" for i in range(n)], y)


def small_languages(n: int, d: int) -> list[Embeddings]:
    """The first n words of the packaged English and Spanish on their d main axes, and a third, turned and noisy."""
    english, spanish, _ = load_demo()
    made = [Embeddings(space.words[:n], _main_axes(space.vectors, d)[:n]) for space in (english, spanish)]
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0]
    vectors = made[0].vectors @ turn
    noisy = vectors + 0.3 * vectors.std() * rng.standard_normal(vectors.shape)
    return [*made, Embeddings([f"x{word}" for word in made[0].words], noisy.astype(np.float32))]


def _main_axes(vectors: FloatArray, d: int) -> FloatArray:
    """Vectors (n, D) on their d main axes, (n, d)."""
    axes = np.linalg.eigh(np.cov(vectors.T))[1][:, ::-1][:, :d]
    return np.asarray(vectors @ axes, dtype=np.float32)


def seed_lexicon(n: int) -> Lexicon:
    """The first n words with their translations."""
    return Lexicon(tuple((f"s{i}", f"t{i}") for i in range(n)))


def written(spaces: Sequence[Embeddings], folder: Path) -> list[Path]:
    """The spaces as files."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{number}.npz" for number in range(len(spaces))]
    for space, path in zip(spaces, paths, strict=True):
        save_vectors(space, path)
    return paths


# --------------------------------------------------------------------------- what is measured


def starting(programs: Sequence[Program], repeats: int) -> Iterator[Figure]:
    """Before anything is done: imports, help, version."""
    for flag in ("--version", "--help"):
        times = [wall(partial(program.run, flag), repeats) for program in programs]
        yield Figure(f"qwp {flag}", times[0], 0.25, before=_second(times))
    python = Program((sys.executable,))
    bare, whole = (wall(partial(python.run, "-c", code), repeats) for code in ("pass", "import qwp"))
    yield Figure("import qwp, beyond the start of Python", whole - bare, 0.2)


def small_work(programs: Sequence[Program], folder: Path) -> Iterator[Figure]:
    """Small data: a pair of 1,500 words, three languages of 1,000, the demo. The first two: the slowest seed of some.

    Which starts are needed, and so how long it takes, is another matter for each seed.
    """
    pair = written(small_languages(1500, 50)[:2], folder / "pair")
    three = written(small_languages(1000, 50), folder / "three")
    seeds = [("--seed", seed) for seed in range(_SEEDS)]
    commands: dict[str, tuple[float, tuple[object, ...], str, Sequence[tuple[object, ...]]]] = {
        f"align 1,500 x 50, slowest of {_SEEDS} seeds": (5.0, ("align", *pair, "-q"), "--out", seeds),
        f"align three languages of 1,000 words, slowest of {_SEEDS} seeds": (
            30.0,
            ("align", *three, "--method", "multi", "-q"),
            "--out",
            seeds,
        ),
        "qwp demo": (15.0, ("demo",), "--report", [()]),
    }
    for name, (target, command, to, each) in commands.items():
        times = [
            max(
                cpu(partial(program.run, *command, *options, to, folder / f"{name}-{number}-{i}"))
                for i, options in enumerate(each)
            )
            for number, program in enumerate(programs)
        ]
        yield Figure(name, times[0], target, "CPU s", _second(times))


def one_word(program: Program, folder: Path, n: int, repeats: int) -> Iterator[Figure]:
    """A word of a large vocabulary: the first command, those after it, and calls in Python."""
    src, tgt = related(n, 300)
    made = qwp.align(src, tgt, method="procrustes", lexicon=seed_lexicon(5000), verdict="none", order="given")
    made.save(folder / "large")
    first = wall(lambda: program.run("translate", folder / "large", "s77", "-k", 1), 1)
    yield Figure(f"the first word of {n:,} x 300, once", first, float("inf"))
    later = wall(lambda: program.run("translate", folder / "large", "s78", "-k", 1), repeats)
    yield Figure(f"qwp translate, one of {n:,} x 300", later, 1.0)
    alignment = Alignment.load(folder / "large", check="size")
    yield Figure(f"alignment.translate, one of {n:,} x 300", wall(lambda: alignment.translate("s79"), repeats), 0.05)


def judging() -> Iterator[Figure]:
    """The verdict: on generated vectors after a supervised fit, on real ones beside the default fit."""
    src, tgt = related(20_000, 300, seed=1)
    found = qwp.align(src, tgt, method="procrustes", lexicon=seed_lexicon(5000), order="given").provenance.seconds
    yield Figure("verdict at 20,000 x 300, generated", found["verdict"], 6.0)
    files = [BENCH / "novels" / f"{language}.npz" for language in ("en", "es")]
    if all(file.exists() for file in files):
        fit, verdict = _fit_and_verdict(files, 20_000)
        yield Figure("verdict at 20,000 x 300, novels en-es", verdict, 6.0)
        yield Figure("its share of the time of the fit", verdict / fit, 0.25, "")
        yield Figure("qwp.align at 20,000 x 300, novels en-es", fit + verdict, 45.0)
        for n in _CUTS:
            # Another seed each time: a process remembers the runs of chance that it made.
            times = [_fit_and_verdict(files, n, seed) for seed in range(_REPEATED_CUTS)]
            share = statistics.median(verdict / fit for fit, verdict in times)
            yield Figure(f"the same share at {n:,} words", share, 0.25, "")


def _fit_and_verdict(files: Sequence[Path], n: int, seed: int = 0) -> tuple[float, float]:
    """Seconds of the default fit of the n most frequent words, and of its verdict."""
    src, tgt = (qwp.load(file, max_vocab=n) for file in files)
    found = qwp.align(src, tgt, seed=seed, start="unsupervised").provenance.seconds
    return sum(seconds for stage, seconds in found.items() if stage != "verdict"), found["verdict"]


def _second(times: Sequence[float]) -> float | None:
    return times[1] if len(times) > 1 else None


def table(figures: Sequence[Figure]) -> str:
    """All rows in Markdown."""
    head = ["| what | before | now | target | reached |", "|---|---:|---:|---:|---|"]
    return "\n".join([*head, *(figure.row() for figure in figures)]) + "\n"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="benchmarks.daily", description=__doc__)
    parser.add_argument("--before", metavar="COMMAND", help="the qwp program of another version, for the same commands")
    parser.add_argument("--repeats", type=int, default=7, help="runs of what is short")
    parser.add_argument("--n", type=int, default=200_000, help="words of the large vocabulary")
    parser.add_argument("--only", nargs="*", choices=("starting", "small", "word", "verdict"), help="parts (all)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--output", type=Path, default=RESULTS, help="write the figures here")
    options = parser.parse_args()
    programs = [THIS, *([Program((options.before,))] if options.before else [])]
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parts: dict[str, Callable[[], Iterator[Figure]]] = {
            "starting": lambda: starting(programs, options.repeats),
            "small": lambda: small_work(programs, folder),
            "verdict": judging,
            "word": lambda: one_word(THIS, folder, options.n, options.repeats),
        }
        for part in options.only or parts:
            for figure in parts[part]():
                figures.append(figure)
                if not options.json:
                    print(figure.row(), flush=True)
    result = {"version": qwp.__version__, "machine": machine(), "figures": [figure.as_json() for figure in figures]}
    if not options.only:
        save(result, options.output)
    print(json.dumps(result, indent=2) if options.json else "\n" + table(figures))


if __name__ == "__main__":
    main()
