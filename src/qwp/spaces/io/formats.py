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
    tables,
    text,
    word2vec,
)
from qwp.spaces.io.arguments import as_choice
from qwp.spaces.io.reading import Reading, Rows
from qwp.spaces.io.sources import Source
from qwp.spaces.io.writing import RowWriter, Target


@dataclass(frozen=True)
class Format:
    """One format: its name, the suffixes that choose it for writing, and how to read and write it."""

    name: str
    suffixes: tuple[str, ...]
    read: Callable[[Reading, Source], Iterator[Rows]]
    open_rows: Callable[[Target], AbstractContextManager[RowWriter]]
    rows_of_text: bool = False  # takes ``digits``
    words_as_text: bool = False  # takes no ``encoding``: words are stored as what they are, not as bytes
    compressible: bool = False  # may be gzip-compressed as a whole
    nameless: bool = False  # may hold vectors without words: those can be in another file
    any_number: bool = False  # takes ``dtype``


_ARRAYS: dict[str, Any] = {"words_as_text": True, "any_number": True}
_NAMELESS: dict[str, Any] = {"words_as_text": True, "nameless": True}
FORMATS = {
    format.name: format
    for format in (
        Format("text", (".vec", ".txt"), text.read, text.open_rows, rows_of_text=True, compressible=True),
        Format("glove", (".glove",), text.read, text.open_glove_rows, rows_of_text=True, compressible=True),
        Format("word2vec-binary", (".bin",), word2vec.read, word2vec.open_rows, compressible=True),
        Format("fasttext", (".fasttext",), fasttext.read, fasttext.open_rows, words_as_text=True),
        Format("npz", (".npz",), npz.read, npz.open_rows, words_as_text=True),
        Format("safetensors", (".safetensors",), safetensors.read, safetensors.open_rows, **_ARRAYS),
        Format("npy", (".npy",), array_files.read, array_files.open_rows, **_ARRAYS, nameless=True),
        Format("parquet", (".parquet",), tables.read_parquet, tables.open_parquet, **_ARRAYS, nameless=True),
        Format("arrow", (".arrow", ".feather"), tables.read_arrow, tables.open_arrow, **_ARRAYS, nameless=True),
        Format("sqlite", (".db", ".sqlite"), databases.read, databases.open_sqlite, words_as_text=True),
        Format("duckdb", (".duckdb",), databases.read, databases.open_duckdb, words_as_text=True),
        Format("faiss", (".faiss",), faiss_index.read, faiss_index.open_rows, **_NAMELESS),
    )
}


def by_name(name: str) -> Format:
    """The format of this name."""
    return FORMATS[as_choice("format", name, tuple(FORMATS))]


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
