"""Errors: what a caller may catch, and what the command line makes of them."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

import qwp
from qwp.cli.main import app
from qwp.errors import InputError, QwpError


def test_one_class_catches_all_that_is_raised_on_purpose() -> None:
    assert issubclass(InputError, QwpError)
    assert qwp.InputError is InputError
    with pytest.raises(QwpError, match="'nothing' is not known"):
        qwp.align("none.vec", "none.vec", method="nothing")  # type: ignore[arg-type]


def test_those_who_know_python_alone_may_catch_a_value_error() -> None:
    with pytest.raises(ValueError, match="epsilon=-1"):
        qwp.align("none.vec", "none.vec", epsilon=-1.0)
    assert not issubclass(QwpError, ValueError)


def test_on_the_command_line_it_is_one_line_and_exit_code_2() -> None:
    ran = CliRunner().invoke(app, ["info", "nowhere"])
    assert ran.exit_code == 2
    assert "nowhere" in ran.stderr
    assert "Traceback" not in ran.stderr
