from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from qwp.cli import console, outputs
from qwp.cli.outputs import Output, TextRows
from qwp.errors import InputError

ROWS = TextRows(("word", "n"), [("a b", "1"), ("tab\there", "2"), ("\x1b[2J", "3")])
Write = Callable[[Output], None]


class Terminal(io.StringIO):
    """A stdout that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def write() -> Write:
    def write(output: Output) -> None:
        output.write(
            json=lambda: {"command": "x", "n": 1},
            rows=lambda: ROWS,
            show=lambda: console.table(ROWS.columns, list(ROWS.lines)),
        )

    return write


def test_a_table_on_a_terminal_and_tsv_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Output(None, None, False).kind == "tsv"
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert Output(None, None, False).kind == "table"
    assert Output("tsv", None, False).kind == "tsv"
    assert Output(None, None, True).kind == Output("json").kind


def test_a_file_has_the_format_of_its_name(tmp_path: Path) -> None:
    assert Output(None, tmp_path / "x.json", False).kind == "json"
    assert Output(None, tmp_path / "x.txt", False).kind == "tsv"
    assert Output("table", tmp_path / "x.json", False).kind == "table"


def test_contradictory_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--json and --format tsv ask for two formats: leave one of them out"):
        Output("tsv", None, True).check()
    with pytest.raises(InputError, match="does not exist"):
        Output(None, tmp_path / "none" / "x").check()


def test_tsv_is_exact_in_a_pipe_and_escaped_on_a_terminal(
    write: Write, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(Output("tsv"))
    out, err = capsys.readouterr()
    assert out == "word\tn\na b\t1\n\x1b[2J\t3\n"
    assert err == "warning: 1 line left out: words with tabs or line breaks do not fit tsv\n"
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    write(Output("tsv"))
    assert terminal.getvalue() == "word\tn\na b\t1\n\\x1b[2J\t3\n"


def test_a_file_has_the_content_of_stdout(write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for format in outputs.FORMATS:
        write(Output(format, tmp_path / format))
        out, err = capsys.readouterr()
        assert out == ""
        assert f"written to {tmp_path / format}\n" in err
        write(Output(format))
        assert (tmp_path / format).read_text() == capsys.readouterr().out
    assert json.loads((tmp_path / "json").read_text()) == {"command": "x", "n": 1}


def test_a_file_is_complete_or_unchanged(tmp_path: Path) -> None:
    def stop() -> TextRows:
        raise KeyboardInterrupt

    (tmp_path / "x").write_text("before")
    with pytest.raises(KeyboardInterrupt):
        Output("tsv", tmp_path / "x").write(json=dict, rows=stop, show=lambda: None)
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert (tmp_path / "x").read_text() == "before"
