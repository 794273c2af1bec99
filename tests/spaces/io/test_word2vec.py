from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from qwp.errors import InputError
from qwp.spaces.io import load, open_writer, sniff, word2vec
from qwp.spaces.io.reading import Reading
from qwp.spaces.io.sources import open_source


def record(word: str | bytes, *values: float, end: bytes = b"\n") -> bytes:
    raw = word.encode() if isinstance(word, str) else word
    return raw + b" " + np.array(values, dtype="<f4").tobytes() + end


def put(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "x.bin"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("end", [b"\n", b""])
def test_with_and_without_line_breaks(tmp_path: Path, end: bytes) -> None:
    path = put(tmp_path, b"2 2\n" + record("ü\u00a0", 1, 2, end=end) + record("b", -3, 0.5, end=end))
    assert sniff(path) == "word2vec-binary"
    found = load(path)
    assert found.words == ["ü\u00a0", "b"]
    assert found.vectors.tolist() == [[1, 2], [-3, 0.5]]
    assert found.report is not None
    assert (found.report.header_count, found.report.complete, found.report.warnings) == (2, True, ())


def test_numbers_that_look_like_blanks_and_newlines(tmp_path: Path) -> None:
    values = np.frombuffer(b"\n\n\n \n   ", dtype="<f4")
    found = load(put(tmp_path, b"2 2\n" + record("a", *values) + record("b", 1, 2)), format="word2vec-binary")
    assert found.words == ["a", "b"]
    assert found.vectors[0].tobytes() == values.tobytes()


@pytest.mark.parametrize("cut", [1, 7, 8, 9])
def test_a_truncated_record(tmp_path: Path, cut: int) -> None:
    first = b"2 2\n" + record("first", 1, 2)
    path = put(tmp_path, first + record("b", 3, 4, end=b"")[:-cut])
    with pytest.raises(InputError, match=rf"record 2 \(byte {len(first)}\) of .* has {10 - cut} bytes left"):
        load(path)
    found = load(path, errors="skip")
    assert found.words == ["first"]
    assert found.report is not None
    assert (found.report.skipped, found.report.complete) == (1, True)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (record("x", np.nan, 1), "holds nan as number 1, expected finite"),
        (record("x", 1, np.inf), "holds inf as number 2, expected finite"),
        (record(b"\xff", 1, 1), "expected UTF-8"),
        (record("", 1, 1), "has no word"),
    ],
)
def test_damaged_records(tmp_path: Path, bad: bytes, message: str) -> None:
    path = put(tmp_path, b"3 2\n" + record("a", 1, 2) + bad + record("b", 3, 4))
    with pytest.raises(InputError, match=rf"record 2 \(byte 15\) of .*{message}"):
        load(path)
    found = load(path, errors="skip")
    assert found.words == ["a", "b"]
    assert found.vectors.tolist() == [[1, 2], [3, 4]]


def test_a_header_with_a_wrong_count(tmp_path: Path) -> None:
    path = put(tmp_path, b"999999999999 2\n" + record("a", 1, 2) + record("a", 3, 4))
    with pytest.raises(InputError, match="holds 2 of the 999999999999 words of its header: it is truncated"):
        load(path)
    report = load(path, errors="skip").report
    assert report is not None
    assert report.warnings == ("header says 999999999999 words, the file holds 2",)
    assert report.duplicates == 1


def test_max_vocab(tmp_path: Path) -> None:
    content = b"4 1\n" + record("a", 1) + record("a", 2) + record("b", 3) + record("c", np.nan)
    found = load(put(tmp_path, content), max_vocab=2)
    assert found.words == ["a", "b"]
    assert found.report is not None
    assert found.report.complete is False
    report = load(put(tmp_path, b"1 1\n" + record("a", 1)), max_vocab=1).report
    assert report is not None
    assert report.complete is True


@pytest.mark.parametrize("size", [1, 5, 16, 33])
def test_any_size_of_reads(tmp_path: Path, size: int) -> None:
    vectors = np.arange(60, dtype=np.float32).reshape(20, 3) / 7
    words = [f"w{'x' * i}" for i in range(20)]
    content = b"20 3\n" + b"".join(record(w, *v) for w, v in zip(words, vectors, strict=True))
    path = put(tmp_path, gzip.compress(content))
    reading = Reading(path, "word2vec-binary", np.dtype("f4"))
    with open_source(path) as source:
        rows = list(word2vec.read(reading, source, read_bytes=max(size, 6)))
    assert [word for some in rows for word in some.words] == words
    assert np.array_equal(np.concatenate([some.vectors for some in rows]), vectors)


def test_a_file_of_another_kind(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a word2vec binary file"):
        load(put(tmp_path, b"hello world\n"), format="word2vec-binary")


@pytest.mark.parametrize("word", ["", "a b", "a\nb", "\ud800"])
def test_words_that_the_format_cannot_hold_are_refused(tmp_path: Path, word: str) -> None:
    with pytest.raises(InputError, match="word"), open_writer(tmp_path / "x.bin", 1) as writer:
        writer.write([word], np.ones((1, 1)))
    assert list(tmp_path.iterdir()) == []


def test_an_absurd_dimension(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="says 999999999999 numbers for each word, expected at most"):
        load(put(tmp_path, b"1 999999999999\n" + record("a", 1)), errors="skip")


def test_an_endless_word_is_refused(tmp_path: Path) -> None:
    path = put(tmp_path, b"2 2\n" + record("a", 1, 2) + b"w" * 70_000 + record("", 3, 4))
    with pytest.raises(InputError, match=r"record 2 .* expected a word, a blank and 8 bytes"):
        load(path, format="word2vec-binary")
    assert load(path, format="word2vec-binary", errors="skip").words == ["a"]


def test_the_longest_word(tmp_path: Path) -> None:
    words = ["w" * 65535, "b"]
    with open_writer(tmp_path / "x.bin", 1) as writer:
        writer.write(words, np.ones((2, 1)))
    assert load(tmp_path / "x.bin").words == words
    with pytest.raises(InputError, match="more than 65535 bytes"), open_writer(tmp_path / "x.bin", 1) as writer:
        writer.write(["w" * 65536], np.ones((1, 1)))


def test_a_count_beyond_the_file_allocates_no_memory(tmp_path: Path) -> None:
    found = load(put(tmp_path, b"1000000000 300\n" + record("a", *range(300))), errors="skip")
    assert found.vectors.shape == (1, 300)
