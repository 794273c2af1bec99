"""One NumPy array (`.npy`) with a vector in each row, and the words in a text file of the same name beside it."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qwp.errors import InputError
from qwp.spaces.embeddings import FloatArray
from qwp.spaces.io.beside import Names, words_file, words_written
from qwp.spaces.io.files import replacing
from qwp.spaces.io.reading import Reading, Rows, batch_rows, valid_rows
from qwp.spaces.io.sources import Readable, Source, read_up_to
from qwp.spaces.io.writing import RowWriter, Target
from qwp.spaces.limits import MAX_DIM

_MAGIC = b"\x93NUMPY"
_LENGTHS = {(1, 0): "<H", (2, 0): "<I", (3, 0): "<I"}
_MAX_HEADER_BYTES = 10_000
_ENTRY = re.compile(r"\s*'(descr|fortran_order|shape)'\s*:\s*('[^']{1,40}'|True|False|\([0-9L, ]{0,80}\))\s*(?:,|$)")
_DESCR = re.compile(r"[<>|=]?[a-zA-Z][0-9]{0,9}")


@dataclass(frozen=True)
class ArrayHeader:
    """What an array is: kind of its items, shape, order of the items, and how many bytes the header took."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    fortran: bool
    n_bytes: int

    @property
    def data_bytes(self) -> int:
        """How many bytes follow the header."""
        return self.dtype.itemsize * math.prod(self.shape)

    @property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        return self.dtype.itemsize * math.prod(self.shape[1:])


def read_header(file: Readable, what: str) -> ArrayHeader:
    """Read the header of an array; ``what`` names it in complaints."""
    start = read_up_to(file, 8)
    length_format = _LENGTHS.get((start[6], start[7])) if len(start) == 8 and start.startswith(_MAGIC) else None
    if length_format is None:
        raise _no_array(what, "it does not begin like one")
    packed = read_up_to(file, struct.calcsize(length_format))
    length = struct.unpack(length_format, packed)[0] if len(packed) == struct.calcsize(length_format) else 0
    if not 0 < length <= _MAX_HEADER_BYTES:
        raise _no_array(what, f"its header has {length} bytes")
    text = read_up_to(file, length).decode("latin-1")
    if len(text) < length:
        raise _no_array(what, "its header is cut")
    entries = _entries(text, what)
    shape = tuple(int(size.strip(" L")) for size in entries["shape"][1:-1].split(",") if size.strip(" L"))
    n_bytes = len(start) + len(packed) + length
    return ArrayHeader(_dtype(entries["descr"], what), shape, entries["fortran_order"] == "True", n_bytes)


def _entries(text: str, what: str) -> dict[str, str]:
    """The three entries of the header as they are written."""
    inner = text.strip(" \t\r\n")
    if not (inner.startswith("{") and inner.endswith("}")):
        raise _no_array(what, "its header is no dictionary")
    inner = inner[1:-1].strip(" \t\r\n")
    entries: dict[str, str] = {}
    position = 0
    while position < len(inner):
        match = _ENTRY.match(inner, position)
        if match is None or match[1] in entries:
            raise _no_array(what, "its header has another form")
        entries[match[1]] = match[2]
        position = match.end()
    kinds = [entries.get(name, " ")[0] for name in ("descr", "fortran_order", "shape")]
    if kinds[0] != "'" or kinds[1] not in "TF" or kinds[2] != "(":
        raise _no_array(what, "its header has another form")
    return entries


def _dtype(descr: str, what: str) -> np.dtype[Any]:
    name = descr[1:-1]
    try:
        dtype = np.dtype(name) if _DESCR.fullmatch(name) else None
    except Exception:  # NumPy has many ways to refuse nonsense
        dtype = None
    if dtype is None:
        raise _no_array(what, "its items are of no simple kind")
    return dtype


def _no_array(what: str, why: str) -> InputError:
    return InputError(f"{what} is not a NumPy array of numbers or strings ({why}), expected one: save it again")


def array_header(dtype: np.dtype[Any], shape: tuple[int, int], size: int) -> bytes:
    """The header of an array of rows, padded to ``size`` bytes: its number of rows can be filled in at the end."""
    start = _MAGIC + bytes((1, 0)) + struct.pack("<H", size - 10)
    text = f"{{'descr': '{dtype.str}', 'fortran_order': False, 'shape': {shape}, }}"
    return start + text.encode().ljust(size - 11) + b"\n"


def as_numbers(rows: npt.NDArray[Any]) -> FloatArray:
    """Rows (b, d) as numbers that NumPy knows: bfloat16, which comes as two bytes, becomes float32."""
    if rows.dtype.kind != "V":
        return rows
    return (np.ascontiguousarray(rows).view("<u2").astype(np.uint32) << np.uint32(16)).view(np.float32)


_HEADER_BYTES = 128


def read(reading: Reading, source: Source) -> Iterator[Rows]:
    """The rows of an array; only those that are wanted are read."""
    if source.packed:
        raise InputError(
            f"{source.path} is gzip-compressed, expected an array as numpy.save writes it: unpack it first"
        )
    source.raw.seek(0)
    header = read_header(source.raw, str(source.path))
    _check(header, source)
    n_rows = reading.expected_rows = header.shape[0]
    done = 0
    with Names(reading, source, words_file(source.path)) as names:
        while (rows := min(batch_rows(reading, header.row_bytes), n_rows - done)) > 0:
            yield valid_rows(
                names.take(rows),
                _rows(source, header, done, rows),
                reading,
                lambda row, done=done: f"row {done + row}",  # type: ignore[misc]
            )
            done += rows
        names.check_end()


def _check(header: ArrayHeader, source: Source) -> None:
    """Refuse what is no matrix of numbers, or not whole."""
    if len(header.shape) != 2 or 0 in header.shape or header.shape[1] > MAX_DIM or not _is_number(header.dtype):
        raise InputError(
            f"{source.path} is an array of {header.dtype} of shape {header.shape}, expected real numbers of shape "
            f"(vectors, dimension), at most {MAX_DIM} in a row"
        )
    if header.n_bytes + header.data_bytes > source.size:
        raise InputError(
            f"{source.path} has {source.size:,} bytes, expected {header.n_bytes + header.data_bytes:,} for "
            f"{header.dtype} of shape {header.shape}: it was cut; copy or save it again"
        )


def _is_number(dtype: np.dtype[Any]) -> bool:
    # NumPy has no bfloat16: libraries that do save it as two bytes of nothing.
    return dtype.kind in "fiu" or dtype.str[1:] == "V2"


def _rows(source: Source, header: ArrayHeader, first: int, count: int) -> FloatArray:
    if header.fortran:
        whole = np.memmap(source.raw, header.dtype, "r", header.n_bytes, header.shape, "F")
        return as_numbers(np.array(whole[first : first + count]))
    data = source.read_at(header.n_bytes + first * header.row_bytes, count * header.row_bytes)
    if len(data) < count * header.row_bytes:
        raise InputError(f"{source.path} became shorter while it was read: copy it again")
    return as_numbers(np.frombuffer(data, dtype=header.dtype).reshape(count, header.shape[1]))


@contextmanager
def open_rows(target: Target) -> Iterator[RowWriter]:
    """A writer for this format; both files appear when all is written."""
    number = np.dtype(target.dtype).newbyteorder("<")
    # The words are renamed first: an array is never there without them.
    with replacing(target.path) as file, words_written(target, words_file(target.path)) as put_words:
        file.write(bytes(_HEADER_BYTES))

        def put(words: list[str], vectors: FloatArray) -> None:
            put_words(words)
            file.write(vectors.astype(number, copy=False).tobytes())

        writer = RowWriter(target, put)
        yield writer
        count = writer.finish()
        file.seek(0)
        file.write(array_header(number, (count, target.dim), _HEADER_BYTES))
