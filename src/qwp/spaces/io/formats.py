"""The formats qwp knows, by name and by the suffixes that choose them for writing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qwp.errors import InputError
from qwp.spaces.io import (
    array_files,
    databases,
    faiss_index,
    fasttext,
    npz,
    safetensors,
    sniffing,
    tables,
    text,
    word2vec,
)
from qwp.spaces.io.arguments import UTF8, as_choice
from qwp.spaces.io.reading import Reading, Rows
from qwp.spaces.io.sources import Source
from qwp.spaces.io.writing import RowWriter, Target


@dataclass(frozen=True)
class Format:
    """One format: its name, the suffixes that choose it for writing, and how to read and write it.

    starts: the first bytes by which a reader recognises it, if no other format can begin so.
    """

    name: str
    suffixes: tuple[str, ...]
    read: Callable[[Reading, Source], Iterator[Rows]]
    open_rows: Callable[[Target], AbstractContextManager[RowWriter]]
    rows_of_text: bool = False  # takes ``digits``
    words_as_text: bool = False  # takes no ``encoding``: words are stored as what they are, not as bytes
    compressible: bool = False  # may be gzip-compressed as a whole
    nameless: bool = False  # may hold vectors without words: those can be in another file
    any_number: bool = False  # takes ``dtype``
    starts: tuple[bytes, ...] = ()


_ARRAYS: dict[str, Any] = {"words_as_text": True, "any_number": True}
_NAMELESS: dict[str, Any] = {"words_as_text": True, "nameless": True}
_TABLE: dict[str, Any] = {**_ARRAYS, "nameless": True}
_ARROW, _SQLITE = (b"ARROW1\0\0",), (b"SQLite format 3\0",)
FORMATS = {
    format.name: format
    for format in (
        Format("text", (".vec", ".txt"), text.read, text.open_rows, rows_of_text=True, compressible=True),
        Format("glove", (".glove",), text.read, text.open_glove_rows, rows_of_text=True, compressible=True),
        Format("word2vec-binary", (".bin",), word2vec.read, word2vec.open_rows, compressible=True),
        Format("fasttext", (".fasttext",), fasttext.read, fasttext.open_rows, words_as_text=True),
        Format("npz", (".npz",), npz.read, npz.open_rows, words_as_text=True, starts=(b"PK\x03\x04",)),
        Format("safetensors", (".safetensors",), safetensors.read, safetensors.open_rows, **_ARRAYS),
        Format("npy", (".npy",), array_files.read, array_files.open_rows, **_TABLE, starts=(b"\x93NUMPY",)),
        Format("parquet", (".parquet",), tables.read_parquet, tables.open_parquet, **_TABLE, starts=(b"PAR1",)),
        Format("arrow", (".arrow", ".feather"), tables.read_arrow, tables.open_arrow, **_TABLE, starts=_ARROW),
        Format("sqlite", (".db", ".sqlite"), databases.read, databases.open_sqlite, words_as_text=True, starts=_SQLITE),
        Format("duckdb", (".duckdb",), databases.read, databases.open_duckdb, words_as_text=True),
        Format("faiss", (".faiss",), faiss_index.read, faiss_index.open_rows, **_NAMELESS),
    )
}


def by_name(name: str) -> Format:
    """The format of this name."""
    return FORMATS[as_choice("format", name, tuple(FORMATS))]


def detect(source: Source, encoding: str = UTF8) -> str:
    """Return the name of the format a file is in, from its content. encoding: that of the words of a binary file."""
    for format in FORMATS.values():
        if source.head.startswith(format.starts) and (format.compressible or not source.packed):
            return format.name
    return sniffing.sniff(source, encoding)


def for_writing(path: Path, name: str | None) -> tuple[Format, bool]:
    """The format to write, from its name or else the file's suffix, and whether to compress."""
    compress = path.suffix == ".gz"
    suffix = Path(path.stem).suffix if compress else path.suffix
    if name is not None:
        format = by_name(name)
    else:
        found = [format for format in FORMATS.values() if suffix in format.suffixes]
        if not found:
            choices = ", ".join(f"{'/'.join(format.suffixes)} ({format.name})" for format in FORMATS.values())
            raise InputError(
                f"{path} ends in {suffix or 'no suffix'!r}, expected one of {choices}, the text and binary "
                "ones also with .gz: rename it or pass format="
            )
        format = found[0]
    if compress and not format.compressible:
        raise InputError(f"{path} asks for gzip, which {format.name} does not use: leave out .gz")
    return format, compress
