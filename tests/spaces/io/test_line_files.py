"""Line files: text lines, vocabularies, word sidecars. Tests of lexicons cover further limits of lines."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qwp import Embeddings
from qwp.errors import InputError
from qwp.spaces import io
from qwp.spaces.io import load, open_writer, save, stream
from qwp.spaces.io.line_files import Skipped, as_vocabulary, text_lines
from qwp.spaces.io.reading import Reading

# --------------------------------------------------------------------------- lines and vocabularies


def read(path: Path, content: bytes) -> tuple[list[tuple[int, str]], Skipped]:
    path.write_bytes(content)
    skipped = Skipped()
    return list(text_lines(path, "a word", skipped)), skipped


def test_lines_are_numbered(tmp_path: Path) -> None:
    expected = [(1, "a b"), (2, ""), (3, "\tc ")]
    for content in (
        b"a b\n\n\tc \n",
        b"\xef\xbb\xbfa b\r\n\r\n\tc \r\n",
        b"a b\n\n\tc ",
        gzip.compress(b"a b\n\n\tc ", mtime=0),
    ):
        assert read(tmp_path / "x", content)[0] == expected


def test_lines_that_are_not_text_are_counted_and_keep_their_number(tmp_path: Path) -> None:
    lines, skipped = read(tmp_path / "x", b"a\n\xff\xfe\xfd\nb\n")
    assert lines == [(1, "a"), (2, ""), (3, "b")]
    assert (skipped.count, skipped.explanations) == (1, ["line 2: is not UTF-8 text"])
    assert skipped.in_words() == "1 lines skipped; line 2: is not UTF-8 text"


def test_the_number_of_explanations_is_limited() -> None:
    skipped = Skipped()
    for number in range(100):
        skipped.add(number, "is odd")
    assert (skipped.count, len(skipped.explanations)) == (100, 20)
    assert Skipped().in_words() == "0 lines skipped; the file holds no text"


def test_long_lines_and_other_encodings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"line 1 of .* is longer than 1048576 bytes, expected a word"):
        read(tmp_path / "x", b"x" * 3_000_000)
    with pytest.raises(InputError, match="UTF-16"):
        read(tmp_path / "x", "a\nb\n".encode("utf-16"))
    with pytest.raises(InputError, match="does not exist"):
        list(text_lines(tmp_path / "none", "a word", Skipped()))


WORDS = [f"w{i}" for i in range(1000)]


@pytest.fixture(params=[".vec", ".glove", ".bin", ".vec.gz", ".npz", ".safetensors"])
def vectors(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file with the words w0 to w999; the vector of w<i> is (i, -i)."""
    path = tmp_path / f"x{request.param}"
    rows = np.arange(1000, dtype=np.float32)
    io.save(Embeddings(WORDS, np.stack([rows, -rows], axis=1)), path)
    return path


def test_vocabulary_files_have_one_word_per_line(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_bytes("\ufeffcasa\r\n\n  agua \ncasa\nniño\nlos Angeles".encode())
    expected = {"casa", "agua", "niño", "los Angeles"}
    assert as_vocabulary(path) == as_vocabulary(str(path)) == expected
    packed = tmp_path / "words.txt.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert as_vocabulary(packed) == expected
    assert as_vocabulary(["casa", "agua"]) == as_vocabulary({"agua", "casa"}) == {"casa", "agua"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\n \n", "words.txt holds no word, expected one on each line"),
        (b"a\n\xff\n", r"line 2 of .*words.txt has the byte 0xff, expected a word in UTF-8"),
        ("a\n".encode("utf-16"), "is UTF-16 text"),
        (b"x" * 70_000, "is longer than 65535 bytes, expected one word per line"),
    ],
)
def test_invalid_vocabulary_files_are_explained(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "words.txt").write_bytes(content)
    with pytest.raises(InputError, match=message):
        as_vocabulary(tmp_path / "words.txt")


@pytest.mark.parametrize(
    ("vocab", "message"),
    [
        (5, r"received 5 \(int\) as vocab, expected a file or a list of words"),
        (["a", 1], r"received 1 \(int\) in vocab, expected words"),
        ([], "the vocabulary holds no word"),
        ("none.txt", "none.txt does not exist"),
    ],
)
def test_invalid_vocabularies_are_explained(vocab: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        as_vocabulary(vocab)


def test_a_vocabulary_keeps_the_order_of_the_file(vectors: Path) -> None:
    found = load(vectors, vocab=["w7", "w990", "w3", "absent"])
    assert found.words == ["w3", "w7", "w990"]
    np.testing.assert_array_equal(found.vectors, [[3, -3], [7, -7], [990, -990]])
    assert found.report is not None
    assert (found.report.vocab_words, found.report.n_words, found.report.complete) == (4, 3, True)
    assert found.report.warnings == ()  # the header counts all rows
    assert [batch.words for batch in io.stream(vectors, batch=2, vocab=["w7", "w990", "w3"])] == [
        ["w3", "w7"],
        ["w990"],
    ]


def test_max_vocab_counts_words_of_the_vocabulary(vectors: Path) -> None:
    found = load(vectors, vocab=WORDS[500:], max_vocab=10)
    assert found.words == WORDS[500:510]
    assert found.report is not None
    assert not found.report.complete
    assert load(vectors, vocab=["w999"], max_vocab=1).words == ["w999"]


def test_a_vocabulary_without_matches_is_an_error(vectors: Path) -> None:
    with pytest.raises(
        InputError, match=r"none of the 2 words of the vocabulary is among the 1,000 of .*, expected some"
    ):
        load(vectors, vocab=["W1", "W2"])


def test_a_vocabulary_does_not_change_the_counts_of_other_rows(tmp_path: Path) -> None:
    path = tmp_path / "x.vec"
    path.write_text("5 2\na 1 2\nb 1\na 3 4\nc 5 6\nd 7 8\n")
    with pytest.raises(InputError, match=r"line 3 of .* holds 1 numbers, expected 2"):
        load(path, vocab=["a", "d"])
    found = load(path, vocab=["a", "d"], errors="skip")
    assert found.words == ["a", "d"]
    np.testing.assert_array_equal(found.vectors, [[1, 2], [7, 8]])
    assert found.report is not None
    assert (found.report.duplicates, found.report.skipped, found.report.warnings) == (1, 1, ())
    # Rows after the last needed word are not read.
    assert load(path, vocab=["a"], max_vocab=1).words == ["a"]


def test_a_vocabulary_saves_memory(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    words = [f"w{i}" for i in range(5_000)]
    io.save(Embeddings(words, np.random.default_rng(0).random((5_000, 800), dtype=np.float32)), path)

    def most(**options: Any) -> int:
        tracemalloc.start()
        load(path, **options)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    # All vectors take 16 MB; batches are much smaller.
    assert most() - most(vocab=words[::100]) > 12_000_000


# --------------------------------------------------------------------------- sidecar files of words

ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    np.save(tmp_path / "x.npy", ROWS)
    return tmp_path / "x.npy"


def test_words_come_from_a_sidecar_a_named_file_or_row_numbers(bare: Path) -> None:
    assert load(bare).words == ["x:0", "x:1", "x:2", "x:3"]
    assert load(bare, label="src", max_vocab=2).words == ["src:0", "src:1"]
    (bare.parent / "other.txt").write_bytes(b"\xef\xbb\xbfa\r\nb c\n\xc3\xa9\nd")
    found = load(bare, words=bare.parent / "other.txt")
    assert found.words == ["a", "b c", "é", "d"]
    assert found.report is not None
    assert found.report.words_path == str(bare.parent / "other.txt")
    assert found.report.label is None
    (bare.parent / "x.words.txt").write_text("k\nl\nm\nn\n")
    assert load(bare).words == ["k", "l", "m", "n"]
    assert load(bare, max_vocab=2).words == ["k", "l"]


def test_words_are_read_from_one_column_of_a_tsv_file(bare: Path) -> None:
    table = bare.parent / "meta.tsv"
    table.write_text("index\tWord\tcount\n0\ta\t5\n1\tb\t4\n2\tc\t3\n3\td\t2\n")
    assert load(bare, words=table).words == ["a", "b", "c", "d"]
    table.write_text("one\ttwo\na\tx\nb\ty\nc\tz\nd\tz\n")
    assert load(bare, words=table).words == ["a", "b", "c", "d"]


@pytest.mark.parametrize(("content", "message"), [("a\nb\nc\n", "holds 3 words"), ("a\nb\nc\nd\ne\n", "more than 4")])
def test_another_number_of_words_is_refused(bare: Path, content: str, message: str) -> None:
    (bare.parent / "x.words.txt").write_text(content)
    with pytest.raises(InputError, match=message):
        load(bare)


def test_rows_with_an_invalid_word_count_as_damaged(bare: Path) -> None:
    (bare.parent / "x.words.txt").write_bytes(b"a\n\nc\xff\nd\n")
    with pytest.raises(InputError, match=r"row 1 of .* has no word"):
        load(bare)
    assert load(bare, errors="skip").words == ["a", "d"]
    (bare.parent / "x.words.txt").write_bytes(b"a" * 70_000)
    with pytest.raises(InputError, match=r"line 1 of .* is longer than 65535 bytes"):
        load(bare)


def test_a_word_file_is_refused_if_the_vectors_have_words(tmp_path: Path) -> None:
    save(Embeddings(["a"], ROWS[:1]), tmp_path / "x.vec")
    (tmp_path / "words.txt").write_text("b\n")
    with pytest.raises(InputError, match=r"received the words .*words.txt for .*x.vec, which is text and has its own"):
        load(tmp_path / "x.vec", words=tmp_path / "words.txt")


def test_a_foreign_sidecar_is_neither_overwritten_nor_used(tmp_path: Path) -> None:
    (tmp_path / "x.words.txt").write_text("mine\n")
    with pytest.raises(InputError, match="exists and would be overwritten"):
        save(Embeddings(["a"], ROWS[:1]), tmp_path / "x.npy")
    with (
        pytest.raises(InputError, match="would be taken for the words of"),
        open_writer(tmp_path / "x.npy", 3, words=False) as writer,
    ):
        writer.write(["a"], ROWS[:1])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.words.txt"]


def test_a_reading_reports_missing_words(bare: Path) -> None:
    notes: list[Reading] = []
    next(stream(bare, on_open=notes.append))
    assert notes[0].unnamed
