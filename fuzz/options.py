"""Attack the command line with absurd values for every option of every command, on tiny data.

`python -m fuzz.options --cases 500 --seed 0`. A command may work, or refuse a value in one line that names the option.
It must not print a traceback or control characters, and must not take more than 5 seconds of processor time or 1 GB.
Allowed values that lead to long computations are only checked. `--only 17` repeats one case and prints it.

Every case runs in a process of its own with limits of memory and time, made by `fork`: Linux and macOS only.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from qwp.cli.commands import COMMANDS, loaded
from qwp.cli.main import app
from qwp.cli.parameters import FLAGS
from qwp.methods import METHODS, Aligner
from qwp.methods.settings import REQUIRED
from qwp.parameters import Parameter
from qwp.spaces import io as files
from qwp.spaces.embeddings import Embeddings

SECONDS = 5.0
"""Limit of processor time for one command on tiny data."""
MEMORY = 1 << 30
_WALL_SECONDS = 120
_WORDS, _DIM = 30, 4
_TIMES_WORDS = 60  # more than the minimum of `qwp shift`
# With larger counts of words or steps an `align` command is checked but not run.
_FEW = 100

NUMBERS = (
    *("-1", "0", "1", "2", "-0", "0.5", "1e-300", "1e300", "-1e300", "1e999", "nan", "inf", "-inf", "0x10", "1_0"),
    *("2147483648", "9223372036854775807", "9223372036854775808", "18446744073709551616", "9" * 30, "9" * 5000),
    *("", " ", "x", "true", "1,2", "1 2", "²", "١", "\x1b[2J", "\u202e1", "--", "-"),
)
TEXTS = (
    *("", " ", "x", "none", "auto", "0", "-1", "nan", "a" * 300, "a" * 5000, "a,b,,c", ",", "unit," * 50),
    *("\x1b]0;title\x07", "\x9b2J", "\u202etxt", "\n", "\udcff", "é", "[red]", "{}", "%s", "--help", "cuda:99"),
    *("lexicon:", "matrix:", "lexicon:none", "matrix:/dev/null", "nn,csls", "nn,nn", "cuda", "cpu:1", "cuda:²"),
)
PATHS = (
    *("", ".", "..", "/", "none", "none/none", "a" * 300, "a/" * 2500, "/dev/null", "/proc/self/environ", "\x1b[2J"),
    *("\udcff", "~", "*", "-", "src.vec", "tgt.vec", "gold.txt", "aligned", "aligned/alignment.json", "\n", "[red]"),
)
# Values in settings files.
VALUES = (
    *("-1", "0", "1e300", "nan", "inf", "-inf", "true", '""', "'x'", "[]", "{}", "[[[[1]]]]", "1979-05-27", "0xff"),
    *("9" * 400, "'" + "a" * 900 + "'", "'\\x1b[2J'", '"\\u001b[2J\\u202e"', "{a={a={a=1}}}", "", "=", "9" * 4500),
)


# --------------------------------------------------------------------------- data


def make_data(folder: Path) -> None:
    """Write small spaces, a list of pairs, a lexicon, a matrix and an alignment."""
    rng = np.random.default_rng(0)
    rotation = np.linalg.qr(rng.standard_normal((_DIM, _DIM)))[0]
    src = rng.standard_normal((_WORDS, _DIM))
    for name, vectors in (("src", src), ("tgt", src @ rotation), ("third", src @ rotation.T)):
        # Every other word is identical in all spaces.
        words = [f"w{i}" if i % 2 else f"{name}{i}" for i in range(_WORDS)]
        files.save(Embeddings(words, vectors.astype("f4")), folder / f"{name}.vec")
    times = rng.standard_normal((_TIMES_WORDS, _DIM))
    for name, vectors in (("then", times), ("now", times @ rotation)):
        files.save(Embeddings([f"w{i}" for i in range(_TIMES_WORDS)], vectors.astype("f4")), folder / f"{name}.vec")
    (folder / "pairs.tsv").write_text("src.vec\ttgt.vec\n")
    (folder / "gold.txt").write_text("".join(f"w{i} w{i}\n" for i in range(1, _WORDS, 2)))
    np.save(folder / "rotation.npy", rotation)
    code, _, err = captured(["align", "src.vec", "tgt.vec", "--out", "aligned", *QUICK_OPTIONS["qwp"]], folder)
    assert code == 0, err


def _quick_options(method: str) -> list[str]:
    """Return options with which a method runs quickly."""
    wanted: dict[str, object] = {
        "coreset_size": 8,
        "bank_size": 2,
        "epochs": 1,
        "steps": 2,
        "start_words": 20,
        "start_steps": 2,
        "refine": 1,
        "stages": 1,
        "max_steps": 3,
        "hidden_size": 4,
        "batch_size": 4,
        "restarts": 1,
        "rounds": 1,
        "joint_epochs": 1,
        "train_words": 30,
        "threads": 1,
    }
    parameters = METHODS[method].parameters()
    if "start" in parameters and "profiles" in (parameters["start"].declared.choices or ()):
        wanted["start"] = "profiles"
    given = [part for name, value in wanted.items() if name in parameters for part in (_flag(name), str(value))]
    if METHODS[method].supervision == REQUIRED:
        given += ["--lexicon", "gold.txt"]
    return ["--method", method, *given]


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


QUICK_OPTIONS = {method: _quick_options(method) for method in METHODS}
# As on a terminal; in a pipe words are printed unchanged, control characters included.
_TABLE = ["--format", "table"]
_FITS = ("align", "align-all")
# Working commands; the options of a case follow and take precedence.
BASES: dict[str, list[str]] = {
    "align": ["align", "src.vec", "tgt.vec", "--out", "out"],
    "align-all": ["align-all", "src.vec", "tgt.vec", "third.vec", "--out", "out", "--json"],
    "align-many": ["align-many", "pairs.tsv", "--out", "out", "--preset", "paper"],
    "methods": ["methods", *_TABLE],
    "evaluate": ["evaluate", "aligned", "--lexicon", "gold.txt", "--bootstrap", "10", *_TABLE],
    "translate": ["translate", "aligned", "w1", "src2", *_TABLE],
    "report": ["report", "aligned", "--out", "out.html"],
    "lexicon": ["lexicon", "aligned", "--out", "out.tsv"],
    "export": ["export", "aligned", "--src-out", "out.vec"],
    "info": ["info", "src.vec", *_TABLE],
    "convert": ["convert", "src.vec", "out.vec"],
    "shift": ["shift", "then.vec", "now.vec", *_TABLE],
    "data": ["data", "list", "--data", "out"],
    "experiment": ["experiment", "list"],
    "compare": ["compare", "then.vec", "now.vec", *_TABLE],
    "migrate": ["migrate", "then.vec", "now.vec", "--out", "out.npz", "--force"],
    "explore": ["explore", "aligned", "--max-words", "20"],
    "demo": ["demo", "--report", "out.html"],
}


# --------------------------------------------------------------------------- cases


@dataclass(frozen=True)
class Case:
    """One command line. named: text that a refusal must contain; computed: whether the command really runs."""

    args: list[str]
    named: str | None = None
    computed: bool = True
    config: str | None = None


@dataclass(frozen=True)
class Option:
    """One option of a command."""

    command: str
    name: str
    flag: str
    kind: str  # a flag, a number, a text, a path
    values: int = 1  # number of values


@cache
def options() -> tuple[Option, ...]:
    """Return all options and arguments of all commands."""
    found = []
    for command in COMMANDS:
        for parameter in loaded(command).params:
            if parameter.name != "help":
                flag, values = max(parameter.opts, key=len), max(1, parameter.nargs)
                found.append(Option(command, parameter.name, flag, _kind(parameter), values))
    return tuple(found)


FILE_OPTIONS = (
    *("out", "config", "lexicon", "similarity", "analogies", "sentences", "idf", "control", "src", "tgt", "src_out"),
    *("tgt_out", "src_vocab", "tgt_vocab", "report", "svg", "png", "data", "results", "lexicons", "files"),
)
NUMBER_OPTIONS = (
    *("k", "digits", "bootstrap", "max_words", "min_confidence", "port", "queries", "max_sentences", "top"),
    *("neighbours", "fdr"),
)


def _kind(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return "argument"
    if getattr(parameter, "is_flag", False):
        return "flag"
    declared = FLAGS[parameter.name].parameter.type if parameter.name in FLAGS else None
    if declared in (int, float) or parameter.name in NUMBER_OPTIONS:
        return "number"
    return "path" if parameter.name in FILE_OPTIONS else "text"


def make_case(number: int, seed: int) -> Case:
    """Return a case: options in turn with random values, sometimes two options or a settings file."""
    rng = random.Random(f"{seed} {number}")
    known = options()
    option = known[number % len(known)] if rng.random() < 0.7 else rng.choice(known)
    has_it = list(FLAGS[option.name].by_method) if option.name in FLAGS else []
    method = rng.choice(has_it if has_it and rng.random() < 0.9 else list(METHODS))
    base = [*BASES[option.command], *(QUICK_OPTIONS[method] if option.command in _FITS else [])]
    if option.command == "align" and option.name in FLAGS and rng.random() < 0.3:
        return _config_case(base, option, rng)
    added = _given(option, rng)
    value = added[-1] if option.kind == "number" else None
    if rng.random() < 0.2:
        other = rng.choice([each for each in known if each.command == option.command])
        added, value = [*added, *_given(other, rng)], None
    return Case([*base, *added], _named(option, value), _is_quick(base, added))


def _config_case(base: list[str], option: Option, rng: random.Random) -> Case:
    value = rng.choice(VALUES)
    key = rng.choice([option.name, option.name.replace("_", "-"), f"{option.name}.a", f'"{option.name}"'])
    return Case([*base, "--config", "settings.toml"], None, computed=False, config=f"{key} = {value}\n")


def _given(option: Option, rng: random.Random) -> list[str]:
    """Return an option with random values."""
    if option.kind == "flag":
        return [option.flag]
    if option.kind == "argument":
        return [rng.choice(PATHS + TEXTS)]
    if option.kind == "number":
        return [option.flag, rng.choice(NUMBERS + _edges(option))]
    values = PATHS if option.kind == "path" else TEXTS + _edges(option)
    return [option.flag, *(rng.choice(values) for _ in range(option.values))]


def _edges(option: Option) -> tuple[str, ...]:
    """Return the choices of a parameter, and the ends of its range with their neighbours."""
    if option.name not in FLAGS:
        return ()
    edges: list[str] = []
    for parameter in (FLAGS[option.name].parameter, *FLAGS[option.name].by_method.values()):
        declared = parameter.declared
        edges += declared.choices or ()
        for end in (declared.least, declared.above, declared.most):
            if end is not None:
                edges += _around(parameter, end)
    return tuple(dict.fromkeys(edges))


def _around(parameter: Parameter, end: float) -> list[str]:
    if parameter.type is int:
        return [str(int(end) + step) for step in (-1, 0, 1)]
    return [repr(float(x)) for x in (np.nextafter(end, -np.inf), end, np.nextafter(end, np.inf))]


def _named(option: Option, value: str | None) -> str | None:
    """Return the name that a refusal must contain; None if the value is text or looks like an option."""
    return option.name if value is not None and not value.startswith("-") else None


def _is_quick(base: Sequence[str], added: Sequence[str]) -> bool:
    """Return whether to run the command: not for large numbers, searches and the demo."""
    sizes = [int(part) for part in added if part.isascii() and part.isdigit() and len(part) < 20]
    asks_for_choice = "auto" in added or "frank-wolfe" in added
    return base[0] != "demo" and not (base[0] in _FITS and (asks_for_choice or any(size > _FEW for size in sizes)))


# --------------------------------------------------------------------------- running cases


class Accepted(BaseException):
    """Raised instead of computing, when all options were accepted."""


@dataclass
class Ran:
    """The result of a case. signal: the signal that ended it; grown: bytes of memory that it took."""

    code: int | None = None
    out: str = ""
    err: str = ""
    raised: str | None = None
    signal: int | None = None
    grown: int = 0


@dataclass
class Findings:
    """How often the cases ended in each way, and the findings."""

    outcomes: Counter[str] = field(default_factory=Counter)
    found: list[tuple[int, str, Case]] = field(default_factory=list)


def _accept(*_: object, **__: object) -> None:
    raise Accepted


@contextmanager
def _not_computing() -> Iterator[None]:
    # Every fit prepares its spaces once its parameters are checked.
    with mock.patch.object(Aligner, "prepare", _accept):
        yield


def captured(args: Sequence[str], folder: Path) -> tuple[int, str, str]:
    """Run a command in this process in a folder. Returns its exit code, stdout and stderr."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace") for _ in range(2)]
    before, code = os.getcwd(), 0
    os.chdir(folder)
    try:
        with mock.patch("sys.stdout", streams[0]), mock.patch("sys.stderr", streams[1]):
            app(list(args), prog_name="qwp")
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    finally:
        os.chdir(before)
    texts = []
    for stream in streams:
        stream.flush()
        texts.append(stream.buffer.getvalue().decode())
    return code, texts[0], texts[1]


def run_case(case: Case, data: Path, seconds: float = SECONDS) -> Ran:
    """Run a case in a child process with a limit of processor time, in a copy of the folder `data`."""
    with tempfile.TemporaryDirectory(prefix="qwp-options-") as name:
        folder = Path(name)
        shutil.copytree(data, folder, dirs_exist_ok=True)  # a copy, because a case may overwrite any file
        if case.config is not None:
            (folder / "settings.toml").write_text(case.config)
        receiving, sending = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(receiving)
            _in_child(case, folder, sending, seconds)
        os.close(sending)
        answer = _read_all(receiving)
        _, status = os.waitpid(child, 0)
    ran = Ran(**json.loads(answer)) if answer else Ran()
    ran.signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
    return ran


def _read_all(number: int) -> bytes:
    with os.fdopen(number, "rb") as file:
        # A child of the child might hold the pipe open, so the wait is limited.
        select.select([file], [], [], _WALL_SECONDS + 10)
        return file.read()


def _in_child(case: Case, folder: Path, sending: int, seconds: float) -> None:
    """Run a case in the child process, send the result and exit."""
    ran = Ran()
    try:
        _limit(seconds)
        before = _resident()
        try:
            # The explorer serves until it is interrupted.
            with mock.patch("qwp.cli.explore._serve", _accept), nullcontext() if case.computed else _not_computing():
                ran.code, ran.out, ran.err = captured(case.args, folder)
        except Accepted:
            ran.code = 0
        except BaseException:
            ran.raised = traceback.format_exc()
        ran.grown = max(0, _peak() - before)
        with os.fdopen(sending, "wb") as file:
            file.write(json.dumps(asdict(ran)).encode())
    finally:
        os._exit(0)


def _limit(seconds: float) -> None:
    """Limit time and memory of this process."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.alarm(_WALL_SECONDS)
    if sys.platform == "linux":
        mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (mapped + MEMORY, mapped + MEMORY))


def _resident() -> int:
    if sys.platform != "linux":
        return _peak()
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _peak() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


CONTROL = frozenset(chr(c) for c in (*range(32), *range(127, 160), 0x202E, 0x2066) if c != 10)


def judge(case: Case, ran: Ran) -> tuple[str, str | None]:
    """Return how a case ended, and what is wrong with it or None."""
    if ran.signal is not None:
        late = ran.signal in (signal.SIGPROF, signal.SIGALRM)
        return "killed", "took too long" if late else f"died of signal {ran.signal}"
    if ran.raised is not None:
        return "raised", ran.raised
    for wrong, why in (
        (ran.code not in (0, 2, 3), f"exit code {ran.code}"),
        ("Traceback" in ran.err or "internal error" in ran.err, "shows an internal error"),
        ("out of memory" in ran.err or ran.grown > MEMORY, f"takes much memory ({ran.grown / 2**20:.0f} MiB)"),
        (bool(CONTROL & set(ran.out + ran.err)), "prints control characters"),
        (ran.code == 2 and ran.err.count("error: ") < 1, "refuses without a message"),
        (ran.code == 2 and not _names(case, ran.err), f"does not name {case.named}"),
    ):
        if wrong:
            return "wrong", f"{why}: {ran.err[-2000:]}"
    return {0: "worked or accepted", 2: "refused", 3: "worked, verdict failed"}[ran.code or 0], None


def _names(case: Case, text: str) -> bool:
    if case.named is None:
        return True
    return any(name in text for name in (case.named, case.named.replace("_", "-"), "not an option", "is an option of"))


def run(numbers: Sequence[int], seed: int) -> Findings:
    """Run cases and collect their outcomes."""
    findings = Findings()
    with tempfile.TemporaryDirectory(prefix="qwp-options-data-") as name:
        data = Path(name)
        make_data(data)
        _preload()
        for number in numbers:
            case = make_case(number, seed)
            outcome, wrong = judge(case, run_case(case, data))
            findings.outcomes[outcome] += 1
            if wrong is not None:
                findings.found.append((number, wrong, case))
    return findings


def _preload() -> None:
    """Import slow libraries, so that their time does not count for a case."""
    for name in ("torch", "faiss", "ot", "scipy.linalg"):
        try:
            __import__(name)
        except ImportError:
            continue


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Returns 1 if there is a finding."""
    parser = argparse.ArgumentParser(
        prog="python -m fuzz.options", description=__doc__.split("\n")[0] if __doc__ else ""
    )
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, metavar="CASE", help="run one case and print it")
    chosen = parser.parse_args(arguments)
    begin = time.monotonic()
    numbers = range(chosen.cases) if chosen.only is None else [chosen.only]
    if chosen.only is not None:
        print(make_case(chosen.only, chosen.seed))
    findings = run(numbers, chosen.seed)
    for number, wrong, case in findings.found:
        print(f"case {number}: qwp {' '.join(case.args)!r}\n{wrong}".rstrip())
        print(f"  again: python -m fuzz.options --seed {chosen.seed} --only {number}")
    for outcome, count in sorted(findings.outcomes.items()):
        print(f"{count:6}  {outcome}")
    took = time.monotonic() - begin
    print(f"{len(numbers):,} cases, seed {chosen.seed}, {len(findings.found)} findings, {took:.0f} s")
    return 1 if findings.found else 0


if __name__ == "__main__":
    # A child would wait for threads that a library started before the fork, so there must be none.
    if os.environ.get("OMP_NUM_THREADS") != "1":
        single = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        again = [sys.executable, "-m", "fuzz.options", *sys.argv[1:]]
        sys.exit(subprocess.run(again, env=single, check=False).returncode)
    sys.exit(main())
