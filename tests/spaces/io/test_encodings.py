"""Words in encodings other than UTF-8."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from qwp import InputError, load
from qwp.spaces import io

WORDS = ["niño", "água", "señor", "casa", "über"]
ROWS = np.arange(10, dtype=np.float32).reshape(5, 2)


def write(path: Path, encoding: str, words: list[str] = WORDS) -> Path:
    """Write a text, GloVe or binary file, by its suffix."""
    header = b"" if path.suffix == ".glove" else b"%d 2\n" % len(words)
    lines = []
    for word, row in zip(words, ROWS, strict=True):
        numbers = row.astype("<f4").tobytes() if path.suffix == ".bin" else b"%d %d" % tuple(row)
        lines.append(word.encode(encoding) + b" " + numbers + b"\n")
    path.write_bytes(header + b"".join(lines))
    return path


@pytest.mark.parametrize("suffix", [".vec", ".glove", ".bin"])
@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-8", "iso8859-15"])
def test_words_are_restored(tmp_path: Path, suffix: str, encoding: str) -> None:
    found = load(write(tmp_path / f"x{suffix}", encoding), encoding=encoding)
    assert found.words == WORDS
    np.testing.assert_array_equal(found.vectors, ROWS)
    assert found.report is not None
    assert found.report.format == {".vec": "text", ".glove": "glove", ".bin": "word2vec-binary"}[suffix]


@pytest.mark.parametrize("encoding", ["cp1251", "koi8-r", "shift_jis", "gb18030", "big5"])
def test_other_scripts(tmp_path: Path, encoding: str) -> None:
    words = ["дом", "вода", "a", "b", "c"] if encoding in ("cp1251", "koi8-r") else ["水", "家", "木", "日本", "山"]
    if encoding == "big5":
        words = ["水", "家", "木", "日本", "功"]  # the second byte of the last is a backslash
    found = load(write(tmp_path / "x.vec", encoding, words), encoding=encoding)
    assert found.words == words


@pytest.mark.parametrize("suffix", [".vec", ".bin"])
def test_words_in_another_encoding_are_refused_or_skipped(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"x{suffix}", "latin-1")
    with pytest.raises(InputError, match=r"expected UTF-8 text \(--encoding names another\): repair the file, or"):
        load(path)
    skipped = load(path, errors="skip")
    assert skipped.words == ["casa"]
    assert skipped.report is not None
    assert skipped.report.skipped == 4
    with pytest.raises(InputError, match="expected ascii text: repair"):
        load(path, encoding="ascii")


def test_formats_that_store_text_take_no_encoding(tmp_path: Path) -> None:
    path = write(tmp_path / "x.vec", "utf-8")
    for name in ("x.npz", "x.safetensors"):
        io.save(load(path), tmp_path / name)
        assert load(tmp_path / name, encoding="utf8").words == WORDS
        with pytest.raises(InputError, match=r"encoding='latin-1' for .* stores words as text: leave it out"):
            load(tmp_path / name, encoding="latin-1")


def test_streams_take_an_encoding(tmp_path: Path) -> None:
    path = write(tmp_path / "x.vec", "latin-1")
    assert [batch.words for batch in io.stream(path, encoding="latin-1")] == [WORDS]
