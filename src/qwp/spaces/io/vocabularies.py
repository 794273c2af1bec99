"""Lists of words, which say which rows of a vector file are wanted."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import TypeAlias

from qwp.errors import InputError
from qwp.spaces.io.arguments import as_path
from qwp.spaces.io.headers import BOM
from qwp.spaces.io.sniffing import refuse_wide_text
from qwp.spaces.io.sources import Readable, failures_explained, opened, read_up_to
from qwp.spaces.limits import MAX_WORD_BYTES, bomb

Vocabulary: TypeAlias = "str | PathLike[str] | Iterable[str]"
"""A file with one word a line, or the words themselves."""

_READ_BYTES = 1 << 20


def as_vocabulary(vocab: Vocabulary) -> frozenset[str]:
    """The words of a vocabulary, at least one."""
    if isinstance(vocab, (str, PathLike)):
        path = as_path(vocab)
        words = frozenset(_words_of_file(path))
        what = str(path)
    else:
        words, what = frozenset(_checked(vocab)), "the vocabulary"
    if not words:
        raise InputError(f"{what} holds no word, expected one on each line")
    return words


def _checked(vocab: object) -> Iterator[str]:
    if not isinstance(vocab, Iterable):
        raise InputError(
            f"received {reprlib.repr(vocab)} ({type(vocab).__name__}) as vocab, expected a file or a list of words"
        )
    for word in vocab:
        if not isinstance(word, str):
            raise InputError(f"received {reprlib.repr(word)} ({type(word).__name__}) in vocab, expected words")
        yield word


def _words_of_file(path: Path) -> Iterator[str]:
    """The lines of a file that hold something, without blanks at their ends."""
    with opened(path) as source, failures_explained(path, "words"):
        refuse_wide_text(source)
        with source.plain() as handle:
            for number, line in enumerate(_lines(handle, path), start=1):
                word = _decoded(line, number, path)
                if word:
                    yield word
                if source.max_rows is not None and number > source.max_rows:
                    raise bomb(path, source.size)


def _decoded(line: bytes, number: int, path: Path) -> str:
    if number == 1:
        line = line.removeprefix(BOM)
    try:
        return line.decode("utf-8").strip(" \t\r")
    except UnicodeDecodeError as error:
        raise InputError(
            f"line {number} of {path} has the byte 0x{line[error.start]:02x}, expected a word in UTF-8: convert it"
        ) from None


def _lines(handle: Readable, path: Path) -> Iterator[bytes]:
    """Lines without their ends, none longer than a word can be."""
    rest = b""
    while data := read_up_to(handle, _READ_BYTES):
        *whole, rest = (rest + data).split(b"\n")
        yield from whole
        if len(rest) > MAX_WORD_BYTES:
            raise InputError(
                f"{path} has a line of more than {MAX_WORD_BYTES} bytes, expected one word a line: it is no vocabulary"
            )
    yield rest
