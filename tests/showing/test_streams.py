"""Standard error where writing never fails. tests/cli/test_streams.py does it with real processes."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import pytest

from qwp.showing import streams


class Full(io.StringIO):
    """A disk without room."""

    def write(self, _: str) -> int:
        raise OSError("full")

    def flush(self) -> None:
        raise OSError("full")


def test_writing_never_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Full())
    stream = streams.stderr()
    assert stream.write("abc") == 3
    stream.flush()


def test_what_works_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.StringIO()
    monkeypatch.setattr(sys, "stderr", file)
    streams.stderr().write("abc")
    assert file.getvalue() == "abc"
    # A bar of rich stands in for the stream: the stream itself is meant.
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(rich_proxied_file=file))
    streams.stderr().write("def")
    assert file.getvalue() == "abcdef"
    assert not streams.stderr().isatty()


def test_what_is_no_file_needs_no_silence() -> None:
    streams.silence(object())
    streams.silence(io.StringIO())
