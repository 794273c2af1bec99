"""NumPy files: `.npy` with one array of vectors and words in a sidecar, `.npz` with the arrays `words` and `vectors`.

Headers are parsed here, because ``numpy.load`` passes them to ``ast.literal_eval``, which crafted input can crash, and
allocates memory for any shape that they claim.
"""

from __future__ import annotations

import math
import re
import shutil
import struct
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy_format

from qwp.arrays import AnyFloats
from qwp.errors import InputError
from qwp.spaces.io.files import atomic_write
from qwp.spaces.io.line_files import RowNames, sidecar_writer, words_sidecar
from qwp.spaces.io.reading import Reading, Rows, batch_rows, decode, explain_damage, valid_rows
from qwp.spaces.io.sources import Readable, Source, read_up_to
from qwp.spaces.io.writing import RowWriter, Target
from qwp.spaces.limits import MAX_DIM, MAX_WORD_BYTES

# --------------------------------------------------------------------------- headers of arrays

_MAGIC = b"\x93NUMPY"
_LENGTHS = {(1, 0): "<H", (2, 0): "<I", (3, 0): "<I"}  # by format version
_MAX_HEADER_BYTES = 10_000
_ENTRY = re.compile(r"\s*'(descr|fortran_order|shape)'\s*:\s*('[^']{1,40}'|True|False|\([0-9L, ]{0,80}\))\s*(?:,|$)")
_DESCR = re.compile(r"[<>|=]?[a-zA-Z][0-9]{0,9}")


@dataclass(frozen=True)
class ArrayHeader:
    """Header of an array: type of its items, shape, whether in Fortran order, and its own length in bytes."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    fortran: bool
    n_bytes: int

    @property
    def data_bytes(self) -> int:
        """Number of bytes that follow the header."""
        return self.dtype.itemsize * math.prod(self.shape)

    @property
    def row_bytes(self) -> int:
        """Number of bytes of one row."""
        return self.dtype.itemsize * math.prod(self.shape[1:])


def read_header(file: Readable, what: str) -> ArrayHeader:
    """Read the header of an array. what: name of the array in messages."""
    start = read_up_to(file, 8)
    length_format = _LENGTHS.get((start[6], start[7])) if len(start) == 8 and start.startswith(_MAGIC) else None
    if length_format is None:
        raise _invalid_array(what, "it does not begin like one")
    packed = read_up_to(file, struct.calcsize(length_format))
    length = struct.unpack(length_format, packed)[0] if len(packed) == struct.calcsize(length_format) else 0
    if not 0 < length <= _MAX_HEADER_BYTES:
        raise _invalid_array(what, f"its header has {length} bytes")
    text = read_up_to(file, length).decode("latin-1")
    if len(text) < length:
        raise _invalid_array(what, "its header is truncated")
    entries = _header_entries(text, what)
    shape = tuple(int(size.strip(" L")) for size in entries["shape"][1:-1].split(",") if size.strip(" L"))
    n_bytes = len(start) + len(packed) + length
    return ArrayHeader(_parse_dtype(entries["descr"], what), shape, entries["fortran_order"] == "True", n_bytes)


def _header_entries(text: str, what: str) -> dict[str, str]:
    """Return the three entries of a header as strings."""
    inner = text.strip(" \t\r\n")
    if not (inner.startswith("{") and inner.endswith("}")):
        raise _invalid_array(what, "its header is no dictionary")
    inner = inner[1:-1].strip(" \t\r\n")
    entries: dict[str, str] = {}
    position = 0
    while position < len(inner):
        match = _ENTRY.match(inner, position)
        if match is None or match[1] in entries:
            raise _invalid_array(what, "its header has another form")
        entries[match[1]] = match[2]
        position = match.end()
    kinds = [entries.get(name, " ")[0] for name in ("descr", "fortran_order", "shape")]
    if kinds[0] != "'" or kinds[1] not in "TF" or kinds[2] != "(":
        raise _invalid_array(what, "its header has another form")
    return entries


def _parse_dtype(descr: str, what: str) -> np.dtype[Any]:
    name = descr[1:-1]
    try:
        dtype = np.dtype(name) if _DESCR.fullmatch(name) else None
    except Exception:  # NumPy raises many kinds of exception for invalid types
        dtype = None
    if dtype is None:
        raise _invalid_array(what, "its items are of no simple type")
    return dtype


def _invalid_array(what: str, why: str) -> InputError:
    return InputError(f"{what} is not a NumPy array of numbers or strings ({why}), expected one: save it again")


def array_header(dtype: np.dtype[Any], shape: tuple[int, int], size: int) -> bytes:
    """Return the header of an array of rows, padded to `size` bytes so that its shape can be overwritten later."""
    start = _MAGIC + bytes((1, 0)) + struct.pack("<H", size - 10)
    text = f"{{'descr': '{dtype.str}', 'fortran_order': False, 'shape': {shape}, }}"
    return start + text.encode().ljust(size - 11) + b"\n"


def as_numbers(rows: npt.NDArray[Any]) -> AnyFloats:
    """Return rows (b, d) as a NumPy number type: bfloat16, stored as two opaque bytes, becomes float32."""
    if rows.dtype.kind != "V":
        return rows
    return (np.ascontiguousarray(rows).view("<u2").astype(np.uint32) << np.uint32(16)).view(np.float32)


# --------------------------------------------------------------------------- .npy

_HEADER_BYTES = 128  # room for any shape in the header that `open_npy` completes at the end


def read_npy(reading: Reading, source: Source) -> Iterator[Rows]:
    """Yield the rows of an array, reading no more of it than needed."""
    if source.packed:
        raise InputError(
            f"{source.path} is gzip-compressed, expected an array as numpy.save writes it: unpack it first"
        )
    source.raw.seek(0)
    header = read_header(source.raw, str(source.path))
    _check_matrix(header, source)
    n_rows = reading.expected_rows = header.shape[0]
    done = 0
    with RowNames(reading, source, words_sidecar(source.path)) as names:
        while (rows := min(batch_rows(reading, header.row_bytes), n_rows - done)) > 0:
            yield valid_rows(
                names.take(rows),
                _read_rows(source, header, done, rows),
                reading,
                lambda row, done=done: f"row {done + row}",  # type: ignore[misc]
            )
            done += rows
        names.check_end()


def _check_matrix(header: ArrayHeader, source: Source) -> None:
    """Refuse an array that is not a matrix of numbers, or longer than its file."""
    # NumPy has no bfloat16: libraries that have it save it as two opaque bytes.
    is_number = header.dtype.kind in "fiu" or header.dtype.str[1:] == "V2"
    if len(header.shape) != 2 or 0 in header.shape or header.shape[1] > MAX_DIM or not is_number:
        raise InputError(
            f"{source.path} is an array of {header.dtype} of shape {header.shape}, expected real numbers of shape "
            f"(vectors, dimension), at most {MAX_DIM} in a row"
        )
    if header.n_bytes + header.data_bytes > source.size:
        raise InputError(
            f"{source.path} has {source.size:,} bytes, expected {header.n_bytes + header.data_bytes:,} for "
            f"{header.dtype} of shape {header.shape}: it is truncated; copy or save it again"
        )


def _read_rows(source: Source, header: ArrayHeader, first: int, count: int) -> AnyFloats:
    if header.fortran:
        matrix = np.memmap(source.raw, header.dtype, "r", header.n_bytes, header.shape, "F")
        return as_numbers(np.array(matrix[first : first + count]))
    data = source.read_at(header.n_bytes + first * header.row_bytes, count * header.row_bytes)
    if len(data) < count * header.row_bytes:
        raise InputError(f"{source.path} became shorter while it was read: copy it again")
    return as_numbers(np.frombuffer(data, dtype=header.dtype).reshape(count, header.shape[1]))


@contextmanager
def open_npy(target: Target) -> Iterator[RowWriter]:
    """Return a writer of an array and its word sidecar; both files appear when they are complete."""
    number = np.dtype(target.dtype).newbyteorder("<")
    # The sidecar is renamed first: no array exists without its words.
    with atomic_write(target.path) as file, sidecar_writer(target, words_sidecar(target.path)) as put_words:
        file.write(bytes(_HEADER_BYTES))

        def put(words: list[str], vectors: AnyFloats) -> None:
            put_words(words)
            file.write(vectors.astype(number, copy=False).tobytes())

        writer = RowWriter(target, put)
        yield writer
        count = writer.finish()
        file.seek(0)
        file.write(array_header(number, (count, target.dim), _HEADER_BYTES))


# --------------------------------------------------------------------------- .npz

_NAMES = ("words", "vectors")
_WHAT = "npz archive"
_WORDS_PER_WRITE = 1 << 16
_READ_BYTES = 1 << 20
_CHARACTER_BYTES = 4  # of a NumPy string
_MAX_DEFLATE_RATIO = 1040  # upper bound of the deflate algorithm
_LISTED = 5  # arrays that a message lists
_ENCRYPTED = 0x1  # flag bit of a zip member


def read_npz(reading: Reading, source: Source) -> Iterator[Rows]:
    """Yield the rows of an archive, unpacking no more of it than needed."""
    if source.packed:
        raise InputError(f"{source.path} is gzip-compressed, expected an npz archive as it is: unpack it first")
    with explain_damage(source.path, _WHAT):
        archive = zipfile.ZipFile(source.raw)
    _check_names(archive, source.path)
    words, vectors = (_Member(archive, name, source) for name in _NAMES)
    _check_arrays(words.header, vectors.header, reading)
    _check_unpacked_size(vectors, reading, source)
    n_rows = vectors.header.shape[0]
    reading.expected_rows = n_rows
    done = unpacked = 0
    row_bytes = max(1, vectors.header.row_bytes, words.header.row_bytes)
    while (rows := min(batch_rows(reading, row_bytes), n_rows - done)) > 0:
        texts = _texts(words.take(rows))
        unpacked += _CHARACTER_BYTES * sum(len(text) for text in texts if text is not None)
        if unpacked > source.limits.max_bytes(source.size):
            raise source.bomb()
        yield valid_rows(
            texts,
            vectors.take(rows),
            reading,
            lambda row, done=done: f"row {done + row + 1}",  # type: ignore[misc]
        )
        done += rows
    words.check_end()
    vectors.check_end()


def _check_names(archive: zipfile.ZipFile, path: Path) -> None:
    members = archive.namelist()
    names = [name.removesuffix(".npy") for name in members if name.endswith(".npy")]
    if any(name not in names for name in _NAMES):
        listed = ", ".join(ascii(name[:40])[1:-1] for name in sorted(names)[:_LISTED]) or "no arrays"
        raise InputError(
            f"{path} holds {listed}, expected the arrays {' and '.join(_NAMES)}: "
            "save it with numpy.savez(path, words=..., vectors=...)"
        )
    for name in _NAMES:
        if names.count(name) > 1:
            raise InputError(
                f"{path} holds the array {name} {names.count(name)} times, expected it once, because it is unclear "
                "which one is meant: save it again"
            )


def _check_arrays(words: ArrayHeader, vectors: ArrayHeader, reading: Reading) -> None:
    """Refuse arrays that are not words and vectors."""
    if len(vectors.shape) != 2 or vectors.dtype.kind not in "fiu" or 0 in vectors.shape:
        raise InputError(
            f"'vectors' in {reading.path} is {vectors.dtype} of shape {vectors.shape}, "
            "expected real numbers of shape (words, dimension)"
        )
    if len(words.shape) != 1 or words.dtype.kind not in "US":
        raise InputError(
            f"'words' in {reading.path} is {words.dtype} of shape {words.shape}, expected strings of shape (words,)"
        )
    if words.shape[0] != vectors.shape[0]:
        raise InputError(
            f"{reading.path} holds {words.shape[0]} words and {vectors.shape[0]} vectors, expected the same number: "
            "save it again"
        )
    if vectors.shape[1] > MAX_DIM:
        raise InputError(
            f"'vectors' in {reading.path} has {vectors.shape[1]} numbers in a row, expected at most {MAX_DIM}"
        )
    characters = words.dtype.itemsize // (_CHARACTER_BYTES if words.dtype.kind == "U" else 1)
    if characters > MAX_WORD_BYTES:
        raise InputError(
            f"'words' in {reading.path} has room for {characters} characters in each word, "
            f"expected at most {MAX_WORD_BYTES}: the file is damaged, or a word of it is"
        )


def _check_unpacked_size(vectors: _Member, reading: Reading, source: Source) -> None:
    """Refuse compressed vectors that unpack to too many bytes; uncompressed ones are bounded by the file."""
    if not vectors.compressed:
        return
    rows, dim = vectors.header.shape
    if reading.max_vocab is not None and not vectors.by_column:
        rows = min(rows, reading.max_vocab)
    item_bytes = max(vectors.header.dtype.itemsize, reading.dtype.itemsize)
    if rows * dim * item_bytes > source.limits.max_bytes(source.size):
        raise source.bomb()
    reading.max_rows = source.limits.max_rows(source.size)


class _Member:
    """An array in an archive, read row by row."""

    def __init__(self, archive: zipfile.ZipFile, name: str, source: Source) -> None:
        self._path = source.path
        self._what = f"{name!r} in {source.path}"
        info = archive.getinfo(f"{name}.npy")
        _check_member(info, self._what, source)
        self.compressed = info.compress_type != zipfile.ZIP_STORED
        with explain_damage(self._path, _WHAT):
            self._file = archive.open(info)
        self.header = read_header(self, self._what)
        if self.header.dtype.hasobject:
            raise InputError(
                f"{self._what} is an array of Python objects (a pickle), which qwp does not read because a "
                "pickle can run code: save strings as words.astype(str)"
            )
        expected = self.header.n_bytes + self.header.data_bytes
        if info.file_size != expected:
            raise InputError(
                f"{self._what} has {info.file_size} bytes, expected {expected} for {self.header.dtype} of shape "
                f"{self.header.shape}: the archive is damaged; copy or save it again"
            )
        self._matrix: npt.NDArray[Any] | None = None
        self._done = 0

    @property
    def by_column(self) -> bool:
        """Whether the array is in Fortran order, so that no row is complete before the end."""
        return self.header.fortran and len(self.header.shape) > 1

    def read(self, size: int, /) -> bytes:
        """Read up to `size` bytes; damage becomes an InputError."""
        with explain_damage(self._path, _WHAT):
            return self._file.read(size)

    def take(self, rows: int) -> npt.NDArray[Any]:
        """Return the next rows."""
        shape = self.header.shape
        if self.by_column:
            if self._matrix is None:
                self._matrix = self._bytes(self.header.data_bytes).view(self.header.dtype).reshape(shape, order="F")
            part = self._matrix[self._done : self._done + rows]
        elif self.header.row_bytes:
            data = self._bytes(rows * self.header.row_bytes)
            part = data.view(self.header.dtype).reshape(rows, *shape[1:])
        else:
            part = np.zeros((rows, *shape[1:]), dtype=self.header.dtype)
        self._done += rows
        return part

    def check_end(self) -> None:
        """Read to the end of the member, where zipfile compares the checksum."""
        self.read(1)

    def _bytes(self, size: int) -> npt.NDArray[np.uint8]:
        """Return the next bytes (size,), read in pieces to avoid a second copy."""
        data = np.empty(size, dtype=np.uint8)
        done = 0
        while done < size:
            piece = read_up_to(self, min(_READ_BYTES, size - done))
            if not piece:
                raise InputError(f"{self._what} ends after {done} of {size} bytes: copy or save the file again")
            data[done : done + len(piece)] = np.frombuffer(piece, dtype=np.uint8)
            done += len(piece)
        return data


def _check_member(info: zipfile.ZipInfo, what: str, source: Source) -> None:
    """Refuse a member that the archive cannot hold, or whose unpacked size cannot be bounded."""
    if info.flag_bits & _ENCRYPTED:
        raise InputError(f"{what} is encrypted, expected plain data: unpack it and save it again")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InputError(
            f"{what} is compressed by method {info.compress_type}, expected none or deflate: save it with numpy.savez"
        )
    ratio = 1 if info.compress_type == zipfile.ZIP_STORED else _MAX_DEFLATE_RATIO
    if info.compress_size > source.size or info.file_size > ratio * info.compress_size:
        raise InputError(
            f"{what} claims {info.file_size} bytes, stored in {info.compress_size} of the {source.size} of the file, "
            "which is impossible: the archive is damaged; copy or save it again"
        )


def _texts(words: npt.NDArray[Any]) -> list[str | None]:
    """Return words (b,) as strings; None for an invalid one."""
    if words.dtype.kind == "S":
        return [decode(word) for word in words.tolist()]
    if words.dtype.itemsize == 0:
        return [""] * len(words)
    codes = words.view(np.dtype("u4").newbyteorder(words.dtype.byteorder)).reshape(len(words), -1)
    invalid = (codes > 0x10FFFF) | ((codes >= 0xD800) & (codes < 0xE000))
    if not invalid.any():
        return list(words.tolist())
    rows = np.flatnonzero(invalid.any(axis=1))
    codes[rows] = 0
    texts: list[str | None] = list(words.tolist())
    for row in rows.tolist():
        texts[row] = None
    return texts


@contextmanager
def open_npz(target: Target) -> Iterator[RowWriter]:
    """Return a writer of an archive.

    The header of an array holds its number of rows, so vectors wait in an unnamed temporary file, and words in memory.
    """
    words: list[str] = []
    with atomic_write(target.path) as file, tempfile.TemporaryFile(dir=target.path.parent) as body:

        def put(batch: list[str], vectors: AnyFloats) -> None:
            for word in batch:
                if word.endswith("\0"):
                    raise InputError(
                        f"the word {word!r} ends in a NUL, which a NumPy array of strings cannot hold: remove the word"
                    )
            words.extend(batch)
            body.write(vectors.astype("<f4", copy=False).tobytes())

        writer = RowWriter(target, put)
        yield writer
        count = writer.finish()
        with zipfile.ZipFile(file, "w") as archive:
            _write_words(archive, words)
            with archive.open(_entry("vectors", zipfile.ZIP_STORED), "w", force_zip64=True) as member:
                _write_header(member, np.dtype("<f4"), (count, target.dim))
                body.seek(0)
                shutil.copyfileobj(body, member, _READ_BYTES)
        size = file.tell()
        if _CHARACTER_BYTES * sum(map(len, words)) > target.limits.max_bytes(size):
            raise target.limits.too_compressible(target.path, size)


def _write_words(archive: zipfile.ZipFile, words: list[str]) -> None:
    dtype = np.dtype(f"<U{max(len(word) for word in words)}")
    step = max(1, _WORDS_PER_WRITE * 64 // dtype.itemsize)  # one long word widens all of them
    with archive.open(_entry("words", zipfile.ZIP_DEFLATED), "w", force_zip64=True) as member:
        _write_header(member, dtype, (len(words),))
        for start in range(0, len(words), step):
            member.write(np.array(words[start : start + step], dtype=dtype).tobytes())


def _entry(name: str, method: int) -> zipfile.ZipInfo:
    # A fixed date: the same vectors give the same bytes.
    entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
    entry.compress_type = method
    return entry


def _write_header(member: IO[bytes], dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    header = {"descr": npy_format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    npy_format.write_array_header_1_0(member, header)
