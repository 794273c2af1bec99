"""The formats qwp knows, and how to tell them apart by content (reading) and by name (writing)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from qwp.errors import InputError
from qwp.spaces.io import npz, safetensors, text, word2vec
from qwp.spaces.io.files import check_file, read_head
from qwp.spaces.io.lines import trailing_numbers
from qwp.spaces.io.reading import Batch, Reading
from qwp.spaces.io.writing import RowWriter, Target

_HEAD_BYTES = 1 << 16
_FASTTEXT_MAGIC = struct.pack("<i", 793712314)
_ZIP_MAGIC = b"PK\x03\x04"
# Control characters that text does not hold; vectors in binary form almost always do.
_CONTROL = frozenset(range(32)) - frozenset(b"\t\n\r\x0b\x0c\x1c\x1d\x1e\x1f")


@dataclass(frozen=True)
class Format:
    """One format: its name, the suffixes that choose it for writing, and how to read and write it."""

    name: str
    suffixes: tuple[str, ...]
    read: Callable[[Reading], Iterator[Batch]]
    open_rows: Callable[[Target], AbstractContextManager[RowWriter]]
    rows_of_text: bool = False  # takes ``digits``
    compressible: bool = False  # may be gzip-compressed as a whole


FORMATS = {
    format.name: format
    for format in (
        Format("text", (".vec", ".txt"), text.read, text.open_rows, rows_of_text=True, compressible=True),
        Format("glove", (".glove",), text.read, text.open_glove_rows, rows_of_text=True, compressible=True),
        Format("word2vec-binary", (".bin",), word2vec.read, word2vec.open_rows, compressible=True),
        Format("npz", (".npz",), npz.read, npz.open_rows),
        Format("safetensors", (".safetensors",), safetensors.read, safetensors.open_rows),
    )
}


def by_name(name: str) -> Format:
    """The format of this name."""
    if name not in FORMATS:
        raise InputError(f"received format={name!r}, expected one of {', '.join(FORMATS)}")
    return FORMATS[name]


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


def sniff(path: Path) -> str:
    """The name of the format a file is in, from its content."""
    check_file(path)
    head = read_head(path, _HEAD_BYTES)
    if head.startswith(_ZIP_MAGIC):
        return "npz"
    if _is_safetensors(head):
        return "safetensors"
    if head.startswith(_FASTTEXT_MAGIC):
        raise InputError(
            f"{path} is a fastText model (.bin with subwords), expected a vector file: use the .vec file "
            "that fastText writes beside it"
        )
    header = text.HEADER.match(head.removeprefix(text.BOM))
    if header is None:
        return _without_header(path, head)
    rest = head.removeprefix(text.BOM)[header.end() :]
    return "text" if _is_text(rest, int(header[2])) else "word2vec-binary"


def _is_safetensors(head: bytes) -> bool:
    return len(head) > 8 and head[8:9] == b"{" and struct.unpack("<Q", head[:8])[0] < 1 << 32


def _without_header(path: Path, head: bytes) -> str:
    lines = _first_lines(head)
    if b"\0" not in head and 2 * sum(trailing_numbers(line) > 0 for line in lines) > len(lines):
        return "glove"
    choices = ", ".join(FORMATS)
    raise InputError(
        f"{path} starts with {head[:16]!r}, expected a vector file ({choices}): this is not one qwp reads; "
        "if you know better, pass format="
    )


def _is_text(body: bytes, dim: int) -> bool:
    """Whether lines of text follow a header, or binary records."""
    if any(trailing_numbers(line) >= dim > 0 for line in _first_lines(body)):
        return True
    return not _CONTROL.intersection(body[: 16 * (dim + 1)]) and _is_utf8(body[: 16 * (dim + 1)])


def _first_lines(head: bytes) -> list[bytes]:
    """A few lines; the last one may be cut, though not inside a number."""
    if len(head) > _HEAD_BYTES // 2:
        head = head[: max(head.rfind(b" "), head.rfind(b"\n"), 0)]
    return [line for line in head.split(b"\n")[:10] if line.strip()]


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start >= len(data) - 3  # a character cut by the end of the sample
    return True
