"""Detection of ambiguous formats from the content."""

from __future__ import annotations

import json
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest

from qwp.errors import InputError
from qwp.spaces.io.sniffing import describe, is_utf8, sniff
from qwp.spaces.io.sources import open_source


def format_of(tmp_path: Path, content: bytes) -> str:
    path = tmp_path / "file"
    path.write_bytes(content)
    with open_source(path) as source:
        return sniff(source)


def record(word: str, *numbers: float) -> bytes:
    return word.encode() + b" " + np.array(numbers, dtype="<f4").tobytes() + b"\n"


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b"2 2\na 1 2\nb 3 4\n", "text"),
        (b"a 1 2\nb 3 4\n", "glove"),
        (b"12 3\n-0 4\n=10 5\n", "glove"),
        (b"3 1\n12 3\n-0 4\n=10 5\n", "text"),
        (b"2 2\n" + record("12", 1.0, -2.0) + record("=10", 0.5, 3.0), "word2vec-binary"),
        (b"1 1\n" + record("a", float(np.frombuffer(b"abcd", dtype="<f4")[0])), "word2vec-binary"),
        (b"\xef\xbb\xbfa 1 2\nb 3 4\n", "glove"),
        (b"\xef\xbb\xbf2 2\na 1 2\nb 3 4\n", "text"),
    ],
)
def test_the_consistent_interpretation_is_chosen(tmp_path: Path, content: bytes, name: str) -> None:
    assert format_of(tmp_path, content) == name


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a 1 2\nb 3 4\n".encode("utf-16"), "UTF-16 text"),
        (b"a 1 2\rb 3 4\rc 5 6\r", "carriage returns alone"),
        (b"2 2\ra 1 2\rb 3 4\r", "carriage returns alone"),
        *(
            (pickle.dumps({"a": 1}, protocol), "is a pickle .* give the object to qwp.align")
            for protocol in (2, 3, 4, 5)
        ),
        (b"\x89HDF\r\n\x1a\n\0", "is an HDF5 file, .* numpy.savez"),
        (b"no vectors\nin these\nlines\n", "text without a vector"),
    ],
)
def test_other_text_is_refused_with_its_kind(tmp_path: Path, content: bytes, expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        format_of(tmp_path, content)


def test_a_safetensors_header_may_begin_like_a_pickle(tmp_path: Path) -> None:
    header = b"{}".ljust(0x0280)
    assert format_of(tmp_path, struct.pack("<Q", len(header)) + header) == "safetensors"


def test_a_table_of_numbers_without_words_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_bytes(b"1\t2\n3\t4\n")
    with open_source(tmp_path / "x.tsv") as source, pytest.raises(InputError, match=r"no words .* `paste words\.txt"):
        sniff(source)


HEADS = (
    (b"%PDF-1.7 ...", "a PDF document"),
    (b"\x7fELF\x02\x01", "a program"),
    (b"\x93NUMPY\x01\x00", "a NumPy array inside gzip"),
    (b"\n\n <!DOCTYPE html><html>", "a web page"),
    (b"<?xml version='1.0'?>", "an XML file"),
    (json.dumps({"words": []}).encode(), "JSON"),
    (b"-----BEGIN OPENSSH PRIVATE KEY-----", "a key or a certificate"),
    (b" \n\t\r\n", "nothing but blanks and line breaks"),
    ("Übung".encode("latin-1"), "binary data or text that is not UTF-8"),
    (b"some words without numbers\n", "text without a vector on most of its first lines"),
    (b"a\0b", "binary data"),
)


def test_other_files_are_described_by_their_first_bytes() -> None:
    assert [describe(head)[0] for head, _ in HEADS] == [what for _, what in HEADS]


def test_descriptions_do_not_quote_the_content() -> None:
    secret = b"root:$6$salt$hash:19000:0:99999:7:::\n"
    assert not any(part in " ".join(describe(secret)) for part in ("root", "salt", "hash"))


def test_an_incomplete_last_character_is_still_text() -> None:
    text = "naïve – 日本".encode()
    assert all(is_utf8(text[:n]) for n in range(len(text) + 1))
    assert not is_utf8(text + b"\xff")


@pytest.mark.parametrize("content", [b"house casa\nwater agua\n", b"house\tcasa\nwater\tagua\n"])
def test_a_dictionary_is_named(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(InputError, match="it looks like a dictionary of word pairs, which --lexicon takes"):
        format_of(tmp_path, content)
