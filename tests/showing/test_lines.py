"""Lines on standard error."""

from __future__ import annotations

import pytest
import rich.console

from qwp.showing import lines


def test_a_line_is_neither_wrapped_nor_obeyed(capsys: pytest.CaptureFixture[str]) -> None:
    text = "[red]a\x1b[2J" + " word" * 100
    lines.note(text, "yellow")
    out, err = capsys.readouterr()
    assert out == ""
    assert err == text.replace("\x1b", r"\x1b") + "\n"


def test_a_notebook_gets_plain_lines_on_standard_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rich.console, "_is_jupyter", lambda: True)
    assert rich.console.Console().is_jupyter, "rich would take it for a notebook"
    assert not lines.stderr().is_terminal
    lines.note("here")
    assert capsys.readouterr().err == "here\n"


def test_a_broken_pipe_is_left_to_whoever_wrote() -> None:
    class Broken:
        def write(self, _: str) -> int:
            raise BrokenPipeError

        def flush(self) -> None:
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        lines.Console(file=Broken()).print("x")  # type: ignore[arg-type]
