"""Registry of the vector formats: names, the suffixes that select them for writing, readers and writers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qwp.errors import InputError
from qwp.spaces.io import (
    fasttext,
    foreign,
    numpy_files,
    safetensors,
    sniffing,
    text,
    word2vec,
)
from qwp.spaces.io.arguments import UTF8, as_choice
from qwp.spaces.io.reading import Reading, Rows
from qwp.spaces.io.sources import Source
from qwp.spaces.io.writing import RowWriter, Target


@dataclass(frozen=True)
class Format:
    """A vector format.

    Attributes:
        name: name of the format.
        suffixes: suffixes of file names that select it for writing.
        read: yields the rows of a file.
        open_rows: opens a writer of rows.
        takes_digits: whether numbers are text, so that ``digits`` applies.
        words_as_text: whether words are stored as Unicode text, so that ``encoding`` does not apply.
        compressible: whether the file may be gzip-compressed.
        words_optional: whether the file may hold vectors without words.
        takes_dtype: whether ``dtype`` applies to writing.
        magic: first bytes that no other format can have.
    """

    name: str
    suffixes: tuple[str, ...]
    read: Callable[[Reading, Source], Iterator[Rows]]
    open_rows: Callable[[Target], AbstractContextManager[RowWriter]]
    takes_digits: bool = False
    words_as_text: bool = False
    compressible: bool = False
    words_optional: bool = False
    takes_dtype: bool = False
    magic: tuple[bytes, ...] = ()


_TEXT: dict[str, Any] = {"takes_digits": True, "compressible": True}
_ARRAY: dict[str, Any] = {"words_as_text": True, "takes_dtype": True}
_TABLE: dict[str, Any] = {**_ARRAY, "words_optional": True}
_INDEX: dict[str, Any] = {"words_as_text": True, "words_optional": True}
_NPZ, _NPY, _PARQUET = (b"PK\x03\x04",), (b"\x93NUMPY",), (b"PAR1",)
_ARROW, _SQLITE = (b"ARROW1\0\0",), (b"SQLite format 3\0",)
FORMATS = {
    format.name: format
    for format in (
        Format("text", (".vec", ".txt"), text.read, text.open_text, **_TEXT),
        Format("glove", (".glove",), text.read, text.open_glove, **_TEXT),
        Format("word2vec-binary", (".bin",), word2vec.read, word2vec.open_rows, compressible=True),
        Format("fasttext", (".fasttext",), fasttext.read, fasttext.open_rows, words_as_text=True),
        Format("npz", (".npz",), numpy_files.read_npz, numpy_files.open_npz, words_as_text=True, magic=_NPZ),
        Format("safetensors", (".safetensors",), safetensors.read, safetensors.open_rows, **_ARRAY),
        Format("npy", (".npy",), numpy_files.read_npy, numpy_files.open_npy, **_TABLE, magic=_NPY),
        Format("parquet", (".parquet",), foreign.read, foreign.open_table, **_TABLE, magic=_PARQUET),
        Format("arrow", (".arrow", ".feather"), foreign.read, foreign.open_table, **_TABLE, magic=_ARROW),
        Format("sqlite", (".db", ".sqlite"), foreign.read, foreign.open_database, words_as_text=True, magic=_SQLITE),
        Format("duckdb", (".duckdb",), foreign.read, foreign.open_database, words_as_text=True),
        Format("faiss", (".faiss",), foreign.read, foreign.open_faiss, **_INDEX),
    )
}


def by_name(name: str) -> Format:
    """Return the format of a name."""
    return FORMATS[as_choice("format", name, tuple(FORMATS))]


def detect(source: Source, encoding: str = UTF8) -> str:
    """Return the name of the format of a file, from its content. encoding: encoding of words stored as bytes."""
    for format in FORMATS.values():
        if source.head.startswith(format.magic) and (format.compressible or not source.packed):
            return format.name
    return sniffing.sniff(source, encoding)


def for_writing(path: Path, name: str | None) -> tuple[Format, bool]:
    """Return the format to write, by its name or the suffix of the file, and whether to compress."""
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
