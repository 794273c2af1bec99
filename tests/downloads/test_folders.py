from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

import qwp
from qwp.downloads.folders import (
    DownloadRecord,
    data_folder,
    named_vectors,
    read_record,
    record_path,
    usual_folder,
    write_record,
)
from qwp.errors import InputError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "data"
    (folder / "wiki").mkdir(parents=True)
    (folder / "crawl").mkdir()
    (folder / "wiki" / "en.vec").write_text("1 1\na 1\n")
    (folder / "crawl" / "es.vec").write_text("1 1\nb 1\n")
    monkeypatch.setenv("QWP_DATA", str(folder))
    monkeypatch.chdir(tmp_path)
    return folder


def test_the_folder_of_a_platform() -> None:
    cases: list[tuple[str, dict[str, str], str]] = [
        ("linux", {}, "HOME/.cache/qwp"),
        ("linux", {"XDG_CACHE_HOME": "/x/y"}, "/x/y/qwp"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, "HOME/.cache/qwp"),
        ("linux", {"XDG_CACHE_HOME": ""}, "HOME/.cache/qwp"),
        ("darwin", {"XDG_CACHE_HOME": "/x/y"}, "HOME/Library/Caches/qwp"),
        ("win32", {}, "HOME/AppData/Local/qwp/Cache"),
        ("win32", {"LOCALAPPDATA": "/l"}, "/l/qwp/Cache"),
    ]
    for platform, environment, expected in cases:
        assert usual_folder(platform, environment) == Path(expected.replace("HOME", str(Path.home())))


def test_an_explicit_folder_takes_precedence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QWP_DATA", str(tmp_path / "a"))
    assert data_folder() == tmp_path / "a"
    assert data_folder(tmp_path / "b") == tmp_path / "b"
    monkeypatch.setenv("QWP_DATA", "")
    assert data_folder().name in ("qwp", "Cache")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file, expected a folder"):
        data_folder(tmp_path / "file")


def test_a_missing_home_folder_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("no home")

    monkeypatch.delenv("QWP_DATA", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(InputError, match="there is no home folder"):
        data_folder()


def test_data_path(folder: Path, tmp_path: Path) -> None:
    assert qwp.data_path("en") == folder / "wiki" / "en.vec"
    assert qwp.data_path("crawl:es") == folder / "crawl" / "es.vec"
    assert qwp.load(qwp.data_path("en")).words == ["a"]
    with pytest.raises(
        InputError, match=r"es.vec does not exist: run `qwp data download es` first \(crawl:es is downloaded\)"
    ):
        qwp.data_path("es")
    with pytest.raises(InputError, match=r"en-es.txt does not exist: run `qwp data download en-es` first$"):
        qwp.data_path("en-es")
    with pytest.raises(InputError, match="does not exist"):
        qwp.data_path("en", tmp_path)
    with pytest.raises(InputError, match="expected text such as"):
        qwp.data_path(1)  # type: ignore[arg-type]


def test_existing_files_take_precedence_over_names(folder: Path, tmp_path: Path) -> None:
    assert named_vectors(Path("en")) == folder / "wiki" / "en.vec"
    (tmp_path / "en").write_text("1 1\na 1\n")
    assert named_vectors(Path("en")) == Path("en")
    assert named_vectors(Path("none.vec")) == Path("none.vec")
    with pytest.raises(
        InputError, match=r"fr does not exist, and vectors of that name are not in .*: expected a file, or"
    ):
        named_vectors(Path("fr"))


def test_a_record_describes_only_its_file(tmp_path: Path) -> None:
    path = tmp_path / "x.vec"
    path.write_bytes(b"abc")
    record = DownloadRecord("en", "u", 1, True, 3, hashlib.sha256(b"abc").hexdigest(), "l", "c")
    write_record(path, record)
    assert read_record(path) == record
    assert record.describes(path)
    path.write_bytes(b"abd")
    assert not record.describes(path)
    path.write_bytes(b"abcd")
    assert not record.describes(path)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"name": 1}', "{"])
def test_invalid_records_are_ignored(tmp_path: Path, text: str) -> None:
    record_path(tmp_path / "x.vec").write_text(text)
    assert read_record(tmp_path / "x.vec") is None
    assert read_record(tmp_path / "none.vec") is None
