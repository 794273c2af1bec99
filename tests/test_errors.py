"""Errors: what a caller may catch, what the command line prints, and the checks that raise them."""

from __future__ import annotations

import math
import sys
from typing import cast

import numpy as np
import pytest
from typer.testing import CliRunner

import qwp
from qwp.cli.main import app
from qwp.errors import InputError, QwpError, at_least, installed, one_of, positive, whole


def test_one_class_catches_all_errors_of_qwp() -> None:
    assert issubclass(InputError, QwpError)
    assert qwp.InputError is InputError
    with pytest.raises(QwpError, match="'nothing' is not known"):
        qwp.align("none.vec", "none.vec", method="nothing")  # type: ignore[arg-type]


def test_an_input_error_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="epsilon=-1"):
        qwp.align("none.vec", "none.vec", epsilon=-1.0)
    assert not issubclass(QwpError, ValueError)


def test_on_the_command_line_it_is_one_line_and_exit_code_2() -> None:
    ran = CliRunner().invoke(app, ["info", "nowhere"])
    assert ran.exit_code == 2
    assert "nowhere" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_unknown_names_are_refused_with_the_choices() -> None:
    one_of(("nn", "csls"), retrieval="nn")
    with pytest.raises(InputError, match=r"^retrieval='x' is not known; expected one of nn, csls$"):
        one_of(("nn", "csls"), retrieval="x")
    with pytest.raises(InputError, match="expected one of nn, csls"):
        one_of(iter(("nn", "csls")), retrieval=None)


def test_numbers_below_the_least_are_refused_by_name() -> None:
    at_least(1, k=1, csls_k=10)
    for value in (0, -1, math.nan, -math.inf):
        with pytest.raises(InputError, match=r"csls_k=.* should be at least 1"):
            at_least(1, k=1, csls_k=value)


def test_a_number_of_things_is_whole() -> None:
    whole(1, k=1, n=cast("int", np.int64(5)))
    with pytest.raises(InputError, match=r"k=2.5 \(float\) has another type than expected: a whole number, 1 or more"):
        whole(1, k=cast("int", 2.5))
    with pytest.raises(InputError, match="k=0 should be at least 1"):
        whole(1, k=0)


def test_positive_means_above_zero_and_finite() -> None:
    positive(rho=1e-300)
    for value in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(InputError, match=r"rho=.* should be positive and finite"):
            positive(rho=value)


def test_a_library_that_is_missing_is_named_with_the_extra_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ot", None)
    with pytest.raises(
        InputError, match=r'^method \'gromov\' needs POT, which is not installed: pip install "qwp\[pot\]"$'
    ):
        installed("pot", "method 'gromov'")
