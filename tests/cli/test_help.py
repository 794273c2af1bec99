from __future__ import annotations

import re
from typing import Any

import pytest
import typer.main

from qwp.cli import commands
from qwp.cli.align import Command
from qwp.cli.main import app
from qwp.cli.parameters import FLAGS, HELP_PANELS
from tests.cli.conftest import qwp

GROUP: Any = typer.main.get_command(app)
OWN_PARSERS = ("muse", "vecmap")
COMMANDS = [name for name in GROUP.commands if name not in OWN_PARSERS]


@pytest.fixture
def columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)


def test_no_python_type_appears_in_the_help() -> None:
    for command in COMMANDS:
        text = qwp(command, "--help-all" if command == "align" else "--help").out
        assert not re.search(r"<[\w\[\]]+>|\b(TEXT|INTEGER|FLOAT|PATH|VALUE|BOOLEAN)\b", text)


def test_every_option_with_a_value_has_a_metavar() -> None:
    for command in COMMANDS:
        for param in commands.loaded(command).params:
            if param.param_type_name == "option" and not param.is_flag:
                assert param.metavar, param.name
            elif param.param_type_name == "option":
                assert not param.metavar, param.name


def test_lines_fit_and_break_between_words(columns: None) -> None:
    cases: list[str | None] = [*COMMANDS, None]
    for command in cases:
        text = qwp(*([command] if command else []), "--help").out
        assert max(len(line) for line in text.splitlines()) <= 80
        words = set(text.split())
        group = commands.loaded(command) if command else GROUP
        for word in (group.help or "").split():
            assert word in words, f"{word} was broken"


def test_usage_names_required_arguments() -> None:
    assert qwp("align", "--help").out.startswith("Usage: ")
    assert "align SRC TGT [OPTIONS]" in qwp("align", "--help").out
    assert "translate DIR [WORD]... [OPTIONS]" in qwp("translate", "--help").out
    assert "methods [NAME] [OPTIONS]" in qwp("methods", "--help").out
    assert "[OPTIONS] COMMAND ..." in qwp("--help").out
    assert "SRC TGT [OPTIONS]" in qwp("align", "--bogus").err


def test_the_help_of_align_is_short_and_names_the_long_one() -> None:
    short, long = qwp("align", "--help").out, qwp("align", "--help-all").out
    assert len(short.splitlines()) < 60
    for flag in ("--out", "--method", "--lexicon", "--start", "--max-vocab", "--device", "--seed", "--resume"):
        assert f"{flag} " in short
    for flag in ("--json", "--quiet", "--help-all"):
        assert f"{flag} " in short
    for flag in ("--coreset-size", "--sinkhorn-tol", "--keep-growth"):
        assert f"{flag} " not in short
        assert f"{flag} " in long
    for each in FLAGS.values():
        assert re.search(rf"^ .*{each.flag}\b", long, re.MULTILINE), each.flag
    options = sum(param.param_type_name == "option" for param in commands.loaded("align").params) + 1
    assert f"align --help-all` shows all {options} options." in short
    assert "shows all" not in long


def test_stages_come_in_their_order() -> None:
    lines = qwp("align", "--help-all").out.splitlines()
    titles = [line for line in lines if line in HELP_PANELS]
    assert titles == list(HELP_PANELS)
    assert lines.index("Options") < lines.index(HELP_PANELS[0])


def test_the_short_help_describes_the_default_method() -> None:
    short = " ".join(qwp("align", "--help").out.split())
    assert "Refinement rounds at the end; 0 for none. (default: 10)" in short
    assert "least-squares" not in short


def test_everyday_options_exist() -> None:
    assert Command.everyday <= {param.name for param in commands.loaded("align").params}


def test_defaults_are_shown() -> None:
    text = " ".join(qwp("translate", "--help").out.split())
    assert "-k N Number of translations of each word. (default: 5)" in text
    assert "(default: csls)" in text
    assert "(default: None)" not in text
    assert "(default: False)" not in text


def test_help_needs_no_other_option() -> None:
    assert qwp("align", "--help-all", "--method", "x").code == 0
