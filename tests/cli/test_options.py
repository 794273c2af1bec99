from __future__ import annotations

from pathlib import Path

import pytest

from qwp.cli import options
from qwp.errors import InputError
from tests.cli.conftest import Problem, qwp

HUGE = str(10**12)


def test_counts_have_two_ends() -> None:
    cases: list[str] = ["k", "csls_k", "max_words", "max_vocab", "bootstrap", "seed", "threads"]
    for name in cases:
        options.check(**{name: 1})
        for value in (-1, 10**20, 1.5, True, "3"):
            with pytest.raises(InputError, match=f"{name}="):
                options.check(**{name: value})


@pytest.mark.parametrize("name", ["max_memory", "min_confidence"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0, 1e300])
def test_numbers_have_two_ends(name: str, value: float) -> None:
    with pytest.raises(InputError, match=f"{name}="):
        options.check(**{name: value})


def test_what_was_not_given_is_not_checked() -> None:
    options.check(max_memory=None, max_vocab=None, max_words=None, threads=None)


def test_evaluate_refuses(problem: Problem, aligned: Path) -> None:
    cases: list[tuple[list[str], str]] = [
        (["--bootstrap", HUGE], "bootstrap=1000000000000 is out of range; expected 0 to 1,000,000"),
        (["--bootstrap", "-1"], "bootstrap=-1 is out of range"),
        (["--csls-k", "0"], "csls_k=0 is out of range"),
        (["--seed", "-1"], "seed=-1 is out of range"),
        (["--seed", str(2**70)], "seed="),
        (["--max-memory", "inf"], "max_memory=inf is out of range"),
        (["--max-vocab", HUGE], "max_vocab=1000000000000 is out of range"),
        (["--errors", "x"], "errors='x' is not known"),
        (["--retrieval", "x"], "'x'"),
        (["--lexicon-format", "x"], "'x'"),
        (["--case", "x"], "'x'"),
        (["--device", "x"], "device 'x' is not known"),
    ]
    for args, message in cases:
        ran = qwp("evaluate", aligned, "--lexicon", problem.lexicon, *args)
        assert (ran.code, ran.out) == (2, "")
        assert message in ran.err


def test_convert_refuses(problem: Problem, tmp_path: Path) -> None:
    cases: list[tuple[list[str], str]] = [
        (["--max-vocab", "0"], "max_vocab=0 is out of range"),
        (["--digits", HUGE], "digits=1000000000000"),
        (["--digits", "-1"], "digits=-1"),
        (["--errors", "x"], "errors='x' is not known"),
        (["--format", "x"], "'x'"),
        (["--input-format", "x"], "'x'"),
    ]
    for args, message in cases:
        ran = qwp("convert", problem.src, tmp_path / "out.vec", *args)
        assert (ran.code, ran.out) == (2, "")
        assert message in ran.err
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("flag", "value"), [("--seed", "-1"), ("--threads", "0"), ("--threads", HUGE)])
def test_demo_refuses(tmp_path: Path, flag: str, value: str) -> None:
    ran = qwp("demo", flag, value, "--report", tmp_path / "report.html")
    assert (ran.code, ran.out) == (2, "")
    assert f"{flag[2:]}={value} is out of range" in ran.err
