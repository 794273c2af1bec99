from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from qwp import Embeddings
from qwp.errors import InputError
from qwp.spaces.io import load, open_writer, save, stream
from qwp.spaces.io.reading import Reading

ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    np.save(tmp_path / "x.npy", ROWS)
    return tmp_path / "x.npy"


def test_words_are_beside_the_vectors_or_named_or_numbers(bare: Path) -> None:
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


def test_one_column_of_a_table_holds_the_words(bare: Path) -> None:
    table = bare.parent / "meta.tsv"
    table.write_text("index\tWord\tcount\n0\ta\t5\n1\tb\t4\n2\tc\t3\n3\td\t2\n")
    assert load(bare, words=table).words == ["a", "b", "c", "d"]
    table.write_text("one\ttwo\na\tx\nb\ty\nc\tz\nd\tz\n")
    assert load(bare, words=table).words == ["a", "b", "c", "d"]


@pytest.mark.parametrize(("content", "message"), [("a\nb\nc\n", "holds 3 words"), ("a\nb\nc\nd\ne\n", "more than 4")])
def test_words_of_another_number_are_refused(bare: Path, content: str, message: str) -> None:
    (bare.parent / "x.words.txt").write_text(content)
    with pytest.raises(InputError, match=message):
        load(bare)


def test_rows_without_a_proper_word_are_damaged(bare: Path) -> None:
    (bare.parent / "x.words.txt").write_bytes(b"a\n\nc\xff\nd\n")
    with pytest.raises(InputError, match=r"row 1 of .* has no word"):
        load(bare)
    assert load(bare, errors="skip").words == ["a", "d"]
    (bare.parent / "x.words.txt").write_bytes(b"a" * 70_000)
    with pytest.raises(InputError, match=r"line 1 of .* has more than 65535 bytes"):
        load(bare)


def test_words_are_refused_where_a_file_has_its_own(tmp_path: Path) -> None:
    save(Embeddings(["a"], ROWS[:1]), tmp_path / "x.vec")
    (tmp_path / "words.txt").write_text("b\n")
    with pytest.raises(InputError, match=r"received the words .*words.txt for .*x.vec, which is text and has its own"):
        load(tmp_path / "x.vec", words=tmp_path / "words.txt")


def test_a_words_file_is_not_lost_and_not_taken_for_another(tmp_path: Path) -> None:
    (tmp_path / "x.words.txt").write_text("mine\n")
    with pytest.raises(InputError, match="exists and would be overwritten"):
        save(Embeddings(["a"], ROWS[:1]), tmp_path / "x.npy")
    with (
        pytest.raises(InputError, match="would be taken for the words of"),
        open_writer(tmp_path / "x.npy", 3, words=False) as writer,
    ):
        writer.write(["a"], ROWS[:1])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.words.txt"]


def test_a_reading_says_whether_there_are_words(bare: Path) -> None:
    notes: list[Reading] = []
    next(stream(bare, on_open=notes.append))
    assert notes[0].unnamed
