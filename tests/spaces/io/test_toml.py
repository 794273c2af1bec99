"""Settings files: read, or refused with a reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from qwp.errors import InputError
from qwp.spaces.io.toml import read_toml


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text('seeds = [0, 1]\n[grid]\ncoreset = "lloyd"\n')
    assert read_toml(path, like="") == {"seeds": [0, 1], "grid": {"coreset": "lloyd"}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a = ", r"is not TOML .*expected lines like: seeds = \[0\]"),
        (b"\xff", "is not TOML"),
        (b"# " + b"x" * 6000, "line 1 of .* has 6,002 bytes"),
        (b"#\n" * 40_000, "is larger than 65,536 bytes"),
    ],
)
def test_others_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "a.toml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_toml(path, like="seeds = [0]")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.toml cannot be read \(No such file"):
        read_toml(tmp_path / "none.toml", like="")
