from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from qwp.errors import InputError
from qwp.spaces.io.files import check_file, open_plain, read_head, replacing


def test_replacing_puts_the_whole_file_in_place(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old")
    with replacing(path) as handle:
        handle.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_replacing_leaves_nothing_after_an_exception(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old")

    def interrupted() -> None:
        with replacing(path) as handle:
            handle.write(b"new")
            raise error

    with pytest.raises(error):
        interrupted()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_replacing_respects_the_umask(tmp_path: Path) -> None:
    reference = tmp_path / "reference"
    reference.touch()
    with replacing(tmp_path / "x") as handle:
        handle.write(b"1")
    assert (tmp_path / "x").stat().st_mode == reference.stat().st_mode


def test_replacing_needs_a_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"), replacing(tmp_path / "no" / "x"):
        pass
    with pytest.raises(InputError, match="is a directory"), replacing(tmp_path):
        pass


def test_check_file_explains(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    for name, message in (
        ("missing", "does not exist"),
        (".", "is a directory"),
        ("empty", r"empty \(0 bytes\)"),
    ):
        with pytest.raises(InputError, match=message):
            check_file(tmp_path / name)


def test_gzip_is_told_by_content(tmp_path: Path) -> None:
    path = tmp_path / "plain.txt"
    path.write_bytes(gzip.compress(b"hello") + gzip.compress(b" world"))
    with open_plain(path) as handle:
        assert handle.read() == b"hello world"
    assert read_head(path, 3) == b"hel"


def test_cut_gzip_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(bytes(range(256)) * 50)[:-20])
    with pytest.raises(InputError, match="damaged or cut gzip"), open_plain(path) as handle:
        handle.read()
