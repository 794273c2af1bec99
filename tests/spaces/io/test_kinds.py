"""What a file is that holds no vectors."""

from __future__ import annotations

import json

from qwp.spaces.io.kinds import is_utf8, recognised

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


def test_kinds_are_told_by_their_first_bytes() -> None:
    assert [recognised(head)[0] for head, _ in HEADS] == [what for _, what in HEADS]


def test_the_content_is_not_part_of_the_words() -> None:
    secret = b"root:$6$salt$hash:19000:0:99999:7:::\n"
    assert not any(part in " ".join(recognised(secret)) for part in ("root", "salt", "hash"))


def test_a_character_cut_by_the_end_is_still_text() -> None:
    text = "naïve – 日本".encode()
    assert all(is_utf8(text[:n]) for n in range(len(text) + 1))
    assert not is_utf8(text + b"\xff")
