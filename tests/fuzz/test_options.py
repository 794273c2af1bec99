"""The attack on options has no findings, covers every option, and finds planted defects."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fuzz import options
from fuzz.options import Case, judge, make_case, make_data, run_case
from qwp.cli import methods
from qwp.cli.parameters import FLAGS
from tests.libraries import skip_without_library


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("options")
    make_data(folder)
    return folder


def test_there_are_no_findings() -> None:
    single = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "fuzz.options", "--cases", "15", "--seed", "3"]
    ran = subprocess.run(command, env=single, capture_output=True, text=True, check=False, timeout=600)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "15 cases, seed 3, 0 findings" in ran.stdout


@pytest.mark.parametrize("method", ["qwp", "procrustes", "gromov"])
def test_the_base_of_every_method_works(method: str, data: Path) -> None:
    skip_without_library(method)
    case = Case([*options.BASES["align"], *options.QUICK_OPTIONS[method]])
    ran = run_case(case, data)
    assert judge(case, ran) == ("worked or accepted", None), ran.err


@pytest.mark.parametrize("command", [name for name in options.BASES if name not in ("align", "demo")])
def test_the_base_of_every_command_works(command: str, data: Path) -> None:
    case = Case([*options.BASES[command], *(options.QUICK_OPTIONS["qwp"] if command == "align-all" else [])])
    ran = run_case(case, data)
    assert judge(case, ran) == ("worked or accepted", None), ran.err


def test_every_option_of_every_command_is_covered() -> None:
    known = options.options()
    assert {option.command for option in known} == set(options.BASES)
    assert {option.name for option in known if option.command == "align"} > set(FLAGS)
    given = [make_case(number, 0) for number in range(20 * len(known))]
    for option in known:
        if option.kind != "argument":
            assert any(option.flag in case.args for case in given), option
    assert any("third.vec" in case.args for case in given)
    assert any(case.config for case in given)
    assert any(case.computed for case in given if case.args[0] == "align")


def test_a_case_depends_on_its_number_and_the_seed_alone() -> None:
    assert make_case(17, 0) == make_case(17, 0)
    assert [make_case(number, 0) for number in range(50)] != [make_case(number, 1) for number in range(50)]


def test_what_is_allowed_and_long_is_accepted_and_not_computed(data: Path) -> None:
    base = [*options.BASES["align"], *options.QUICK_OPTIONS["qwp"]]
    case = Case([*base, "--steps", "1000000", "--epochs", "1000000"], computed=False)
    assert judge(case, run_case(case, data)) == ("worked or accepted", None)
    refused = Case([*base, "--steps", "1000001"], named="steps", computed=False)
    assert judge(refused, run_case(refused, data)) == ("refused", None)


def test_no_case_changes_the_data_of_the_next(data: Path) -> None:
    before = {path.name: path.read_bytes() for path in data.rglob("*") if path.is_file()}
    for out in ("aligned/alignment.json", "gold.txt", "src.vec"):
        run_case(Case([*options.BASES["lexicon"], "--out", out]), data)
        run_case(Case(["convert", "tgt.vec", out, "--format", "text"]), data)
    assert {path.name: path.read_bytes() for path in data.rglob("*") if path.is_file()} == before


def greedy() -> None:
    np.ones(1 << 29)  # 4 GiB


def forever() -> None:
    while True:
        pass


def dies() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def leaks() -> None:
    sys.stdout.write("\x1b[2J")


def breaks() -> None:
    raise ZeroDivisionError("planted")


def exits() -> None:
    sys.exit(9)


@pytest.mark.parametrize(
    ("planted", "found"),
    [
        (greedy, "takes much memory"),
        (forever, "took too long"),
        (dies, "died of signal 9"),
        (leaks, "prints control characters"),
        (breaks, "exit code 70"),
        (exits, "exit code 9"),
    ],
)
def test_planted_defects_are_found(
    planted: Callable[[], None], found: str, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(methods, "_list", planted)
    case = Case(options.BASES["methods"])
    begin = time.monotonic()
    seconds = 0.5 if planted is forever else options.SECONDS
    _, wrong = judge(case, run_case(case, data, seconds))
    assert wrong is not None
    assert found in wrong
    assert time.monotonic() - begin < options._WALL_SECONDS
