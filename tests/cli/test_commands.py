"""The list of commands."""

from __future__ import annotations

import inspect
from pathlib import Path

from qwp.cli import commands
from tests.cli.conftest import qwp


def test_a_summary_is_the_first_paragraph_of_the_command() -> None:
    for name in commands.COMMANDS:
        said = inspect.cleandoc(commands.loaded(name).help)
        assert commands.COMMANDS[name] == " ".join(said.split("\n\n")[0].split())


def test_every_command_is_listed() -> None:
    texts = {file.stem: file.read_text("utf-8") for file in Path(commands.__file__).parent.rglob("*.py")}
    with_command = {
        name.replace("_", "-") for name, text in texts.items() if "\ndef command(" in text or "\ncommand = " in text
    }
    assert with_command == set(commands.COMMANDS)


def test_listing_imports_no_command_and_calling_imports_one() -> None:
    shown = commands.listed()
    assert list(shown) == list(commands.COMMANDS)
    assert all(not command.params for command in shown.values())
    assert {parameter.name for parameter in commands.loaded("convert").params} >= {"source", "out", "max_vocab"}
    assert commands.loaded("convert") is commands.loaded("convert")


def test_a_misspelt_command_gets_a_suggestion() -> None:
    ran = qwp("aling")
    assert ran.code == 2
    assert "No such command 'aling'. Did you mean 'align'?" in ran.err
