"""The generated tables of options."""

from __future__ import annotations

from qwp.cli.commands import COMMANDS, OTHER_TOOLS
from tools.options import options


def test_the_table_of_a_command_has_its_options() -> None:
    for command, wanted in (
        ("lexicon", "| `--min-confidence X` | `0.0` |"),
        ("report", "| `--out FILE`, `-o FILE` | `report.html` |"),
        ("translate", "| `--retrieval nn\\|csls\\|softmax` | `csls` |"),
        ("experiment", "| `--workers N` | one for each core, or for each GPU |"),
    ):
        assert wanted in options(command), options(command)


def test_shared_options_are_listed_once() -> None:
    assert "`--json`" in options("shared")
    for command in COMMANDS:
        if command not in OTHER_TOOLS:
            assert "Print one JSON object" not in options(command)
            assert "`--json`" in options(command) or command == "explore"


def test_parameters_of_methods_are_on_their_own_page() -> None:
    assert "--coreset-size" not in options("align")
    assert "--lexicon FILE" in options("align")
