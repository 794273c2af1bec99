"""Waiting times of everyday use, each with its target.

    python -m benchmarks.daily

`--before COMMAND` runs the same commands with another installed `qwp` program in the same run. The data is generated,
except for the packaged demo and the vectors in $QWP_BENCH or ../shared/bench, if they exist. A missed target is
reported in its row and is no error.
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
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import qwp
from benchmarks import records
from benchmarks.common import clustered_space, machine, random_rotation, save
from benchmarks.data import BENCH, novels
from qwp import Alignment, Embeddings, Lexicon
from qwp.arrays import AnyFloats
from qwp.spaces.demo import load_demo
from qwp.spaces.io import save as save_vectors

RESULTS = records.FOLDER / "daily.json"
_SEEDS = 3
# Vocabularies of the novels whose verdict takes the largest share of the time.
_CUTS = (1000, 2000, 3000, 5000, 10_000)
PARTS = ("starting", "small", "verdict", "fits", "explore", "scores", "word")
HEAD = "| what | before | now | target | reached |\n|---|---:|---:|---:|---|"


@dataclass(frozen=True)
class Figure:
    """One row. unit: s (wall clock) or CPU s; before: the figure of another version in the same run."""

    name: str
    value: float
    target: float = math.inf
    unit: str = "s"
    before: float | None = None

    @property
    def reached(self) -> bool:
        """Whether the value is within its target."""
        return self.value <= self.target

    def as_json(self) -> dict[str, Any]:
        """Return JSON values."""
        return {**asdict(self), "target": None if math.isinf(self.target) else self.target, "held": self.reached}

    def row(self) -> str:
        """Return a line of a Markdown table with the head HEAD."""
        has_target = not math.isinf(self.target)
        target, reached = (f"{self.target:g} {self.unit}", "yes" if self.reached else "no") if has_target else ("", "")
        return f"| {self.name} | {self._shown(self.before)} | {self._shown(self.value)} | {target} | {reached} |"

    def _shown(self, value: float | None) -> str:
        return "" if value is None else f"{value:.{3 if value < 0.1 else 2}f} {self.unit}"


@dataclass(frozen=True)
class Program:
    """A qwp program: this one, or another installed version."""

    command: tuple[str, ...]

    def run(self, *args: object) -> None:
        """Run a command quietly; raise an error with its stderr if it fails."""
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        done = subprocess.run(
            [*self.command, *map(str, args)], check=False, capture_output=True, text=True, env=environment
        )
        if done.returncode not in (0, 3):  # 3: finished with the verdict "failed"
            raise RuntimeError(f"{' '.join(map(str, args))}: {done.stderr.strip()}")


THIS = Program((sys.executable, "-m", "qwp"))


def wall(call: Callable[[], object], repeats: int) -> float:
    """Return the median wall-clock seconds of a call, after a warm-up if it is repeated."""
    times = []
    for _ in range(repeats + (repeats > 1)):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return statistics.median(times[-repeats:])


def cpu(call: Callable[[], object]) -> float:
    """Return the CPU seconds of the child processes of a call."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    call()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compared(name: str, times: Sequence[float], target: float, unit: str = "s") -> Figure:
    """Return the figure of this program, beside that of another version if there is one."""
    return Figure(name, times[0], target, unit, times[1] if len(times) > 1 else None)


# --------------------------------------------------------------------------- data


def related(n: int, d: int, seed: int = 0) -> tuple[Embeddings, Embeddings]:
    """Return a generated space and its rotated, noisy copy: s7 translates to t7."""
    rng = np.random.default_rng(seed)
    x = clustered_space(n, d, seed)
    y = x @ random_rotation(d, rng) + 0.3 / np.sqrt(d) * rng.standard_normal((n, d), dtype=np.float32)
    return Embeddings([f"s{i}" for i in range(n)], x), Embeddings([f"t{i}" for i in range(n)], y)


def small_languages(n: int, d: int) -> list[Embeddings]:
    """Return n words of the packaged English and Spanish on d principal axes, and a rotated, noisy English."""
    english, spanish, _ = load_demo()
    made = [Embeddings(space.words[:n], _principal(space.vectors, d)[:n]) for space in (english, spanish)]
    rng = np.random.default_rng(0)
    vectors = made[0].vectors @ random_rotation(d, rng)
    noisy = vectors + 0.3 * vectors.std() * rng.standard_normal(vectors.shape)
    return [*made, Embeddings([f"x{word}" for word in made[0].words], noisy.astype(np.float32))]


def _principal(vectors: AnyFloats, d: int) -> AnyFloats:
    """Return vectors (n, D) on their d principal axes (n, d)."""
    axes = np.linalg.eigh(np.cov(vectors.T))[1][:, ::-1][:, :d]
    return np.asarray(vectors @ axes, dtype=np.float32)


def seed_lexicon(n: int) -> Lexicon:
    """Return the first n words with their translations."""
    return Lexicon(tuple((f"s{i}", f"t{i}") for i in range(n)))


def written(spaces: Sequence[Embeddings], folder: Path) -> list[Path]:
    """Save the spaces as files."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{number}.npz" for number in range(len(spaces))]
    for space, path in zip(spaces, paths, strict=True):
        save_vectors(space, path)
    return paths


# --------------------------------------------------------------------------- measurements


def starting(programs: Sequence[Program], repeats: int) -> Iterator[Figure]:
    """Measure imports, help and version."""
    for flag in ("--version", "--help"):
        yield compared(f"qwp {flag}", [wall(partial(program.run, flag), repeats) for program in programs], 0.25)
    python = Program((sys.executable,))
    bare, whole = (wall(partial(python.run, "-c", code), repeats) for code in ("pass", "import qwp"))
    yield Figure("import qwp, beyond the start of Python", whole - bare, 0.2)


def small_work(programs: Sequence[Program], folder: Path) -> Iterator[Figure]:
    """Measure small alignments and the demo.

    The time of an alignment depends on how many initializers its seed needs, so the slowest of some seeds counts.
    """
    pair = written(small_languages(1500, 50)[:2], folder / "pair")
    three = written(small_languages(1000, 50), folder / "three")
    seeds = [("--seed", seed) for seed in range(_SEEDS)]
    commands: dict[str, tuple[float, tuple[object, ...], Sequence[tuple[object, ...]]]] = {
        f"align 1,500 x 50, slowest of {_SEEDS} seeds": (5.0, ("align", *pair, "-q", "--out"), seeds),
        f"align three languages of 1,000 words, slowest of {_SEEDS} seeds": (
            30.0,
            ("align-all", *three, "-q", "--out"),
            seeds,
        ),
        "qwp demo": (15.0, ("demo", "--report"), [()]),
    }
    for name, (target, command, variants) in commands.items():
        times = []
        for number, program in enumerate(programs):
            runs = (
                partial(program.run, *command, folder / f"{name}-{number}-{i}", *options)
                for i, options in enumerate(variants)
            )
            try:
                times.append(max(cpu(run) for run in runs))
            except RuntimeError:
                if program is THIS:
                    raise  # another version may lack the command
        yield compared(name, times, target, "CPU s")


def whole_fits(programs: Sequence[Program], folder: Path) -> Iterator[Figure]:
    """Measure whole alignments on one thread, which other load disturbs least. Two cores take about half as long."""
    unrelated = [
        Embeddings([f"{name}{i}" for i in range(1000)], clustered_space(1000, 50, seed))
        for seed, name in enumerate("st")
    ]
    rows: Sequence[tuple[str, float, Sequence[Path]]] = (
        ("novels en-es, 20,000 x 300", 40.0, (BENCH / "novels/en.npz", BENCH / "novels/es.npz")),
        ("novels en-hu, 20,000 x 300", 120.0, (BENCH / "novels/en.npz", BENCH / "novels/hu.npz")),
        (
            "pretrained en-ru, 12,267 and 20,000 x 300",
            120.0,
            (BENCH / "pretrained/en.npz", BENCH / "pretrained/ru.npz"),
        ),
        ("unrelated spaces, 1,000 x 50, until failed", 20.0, written(unrelated, folder / "unrelated")),
    )
    options = ("--start", "unsupervised", "--threads", 1, "-q", "--out")
    for name, target, paths in rows:
        if all(path.is_file() for path in paths):
            outs = [folder / f"{name}-{number}" for number in range(len(programs))]
            calls = (
                partial(each.run, "align", *paths, *options, out) for each, out in zip(programs, outs, strict=True)
            )
            yield compared(name, [cpu(call) for call in calls], target, "CPU s")


def scoring(programs: Sequence[Program], folder: Path, n: int) -> Iterator[Figure]:
    """Measure the exact CSLS scores of 1,500 words among all words of two files in one space, on one thread."""
    rows = clustered_space(n, 300)
    other = rows + 0.5 / np.sqrt(300) * np.random.default_rng(0).standard_normal(rows.shape, dtype=np.float32)
    paths = written(
        [Embeddings([f"s{i}" for i in range(n)], rows), Embeddings([f"t{i}" for i in range(n)], other)],
        folder / "scored",
    )
    lexicon = folder / "scored.txt"
    lexicon.write_text("".join(f"s{i}\tt{i}\n" for i in range(1500)), encoding="utf-8")
    command = ("evaluate", "--src", paths[0], "--tgt", paths[1], "--lexicon", lexicon, "--device", "cpu")
    times = [cpu(partial(program.run, *command)) for program in programs]
    yield compared(f"exact CSLS scores, {n:,} x {n:,} x 300", times, math.inf, "CPU s")


def exploring(programs: Sequence[Program], folder: Path, n: int = 20_000) -> Iterator[Figure]:
    """Measure `qwp explore` on n words of each side: the first answer and the complete map."""
    paths, lexicon = written(related(n, 300), folder / "explored"), folder / "explored.txt"
    lexicon.write_text("".join(f"s{i}\tt{i}\n" for i in range(n // 4)), encoding="utf-8")
    times = []
    for number, program in enumerate(programs):
        out = folder / f"explored-{number}"
        program.run("align", *paths, "--method", "procrustes", "--lexicon", lexicon, "-q", "--out", out)
        times.append(_explored(program, out))
    for name, target, found in zip(("first word", "first map"), (3.0, 20.0), zip(*times, strict=True), strict=True):
        yield compared(f"qwp explore, 2 x {n:,}, {name}", found, target)


def _explored(program: Program, folder: Path) -> tuple[float, float]:
    """Return the seconds from the command to the answer for a word, and to the map."""
    begin = time.perf_counter()
    command = [*program.command, "explore", str(folder), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            _answer(f"{address}api/word?w=s77")
            word = time.perf_counter() - begin
            while not _answer(f"{address}api/progress")["map"]:
                time.sleep(0.1)
            return word, time.perf_counter() - begin
        finally:
            process.terminate()


def _answer(address: str) -> Any:
    with urllib.request.urlopen(address) as answer:
        return json.load(answer)


def one_word(folder: Path, n: int, repeats: int) -> Iterator[Figure]:
    """Measure translations of a word of a large vocabulary: the first command, later ones, and calls in Python."""
    src, tgt = related(n, 300)
    made = qwp.align(src, tgt, method="procrustes", lexicon=seed_lexicon(5000), verdict="none", order="given")
    made.save(folder / "large")
    first = wall(lambda: THIS.run("translate", folder / "large", "s77", "-k", 1), 1)
    yield Figure(f"the first word of {n:,} x 300, once", first)
    later = wall(lambda: THIS.run("translate", folder / "large", "s78", "-k", 1), repeats)
    yield Figure(f"qwp translate, one of {n:,} x 300", later, 1.0)
    alignment = Alignment.load(folder / "large", check="size")
    yield Figure(f"alignment.translate, one of {n:,} x 300", wall(lambda: alignment.translate("s79"), repeats), 0.05)


def judging() -> Iterator[Figure]:
    """Measure the verdict on generated vectors after a supervised fit, and on the novels beside the default fit."""
    src, tgt = related(20_000, 300, seed=1)
    found = qwp.align(src, tgt, method="procrustes", lexicon=seed_lexicon(5000), order="given").provenance.seconds
    yield Figure("verdict at 20,000 x 300, generated", found["verdict"], 6.0)
    if not novels("en-es").available:
        return
    fit, verdict = _fit_and_verdict(20_000)
    yield Figure("verdict at 20,000 x 300, novels en-es", verdict, 6.0)
    yield Figure("its share of the time of the fit", verdict / fit, 0.25, "")
    yield Figure("qwp.align at 20,000 x 300, novels en-es", fit + verdict, 45.0)
    for n in _CUTS:
        # A new seed for each run, because a process caches its null runs.
        times = [_fit_and_verdict(n, seed) for seed in range(_SEEDS)]
        share = statistics.median(verdict / fit for fit, verdict in times)
        yield Figure(f"the same share at {n:,} words", share, 0.25, "")


def _fit_and_verdict(n: int, seed: int = 0) -> tuple[float, float]:
    """Return the seconds of the default fit of the n most frequent words, and of its verdict."""
    src, tgt, _ = novels("en-es").load()
    found = qwp.align(src.head(n), tgt.head(n), seed=seed, start="unsupervised").provenance.seconds
    return sum(seconds for stage, seconds in found.items() if stage != "verdict"), found["verdict"]


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.daily", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--before", metavar="COMMAND", help="the qwp program of another version")
    parser.add_argument("--repeats", type=int, default=7, help="runs of short commands")
    parser.add_argument("--n", type=int, default=200_000, help="words of the large vocabulary")
    parser.add_argument("--only", nargs="*", choices=PARTS, help="parts (all)")
    parser.add_argument("--output", type=Path, default=RESULTS, help="file that gets the figures of all parts")
    options = parser.parse_args()
    programs = [THIS, *([Program((options.before,))] if options.before else [])]
    figures: list[Figure] = []
    print(HEAD)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parts: dict[str, Callable[[], Iterator[Figure]]] = {
            "starting": lambda: starting(programs, options.repeats),
            "small": lambda: small_work(programs, folder),
            "verdict": judging,
            "fits": lambda: whole_fits(programs, folder),
            "explore": lambda: exploring(programs, folder),
            "scores": lambda: scoring(programs, folder, options.n),
            "word": lambda: one_word(folder, options.n, options.repeats),
        }
        for part in options.only or parts:
            for figure in parts[part]():
                figures.append(figure)
                print(figure.row(), flush=True)
    if not options.only:
        found = {"version": qwp.__version__, "machine": machine(), "figures": [figure.as_json() for figure in figures]}
        save(found, options.output)


if __name__ == "__main__":
    main()
