"""NumPy's archive format with two arrays: ``words`` (strings) and ``vectors`` (words, numbers)."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy_format

from qwp.errors import InputError
from qwp.spaces.embeddings import FloatArray
from qwp.spaces.io.array_files import ArrayHeader, read_header
from qwp.spaces.io.files import replacing
from qwp.spaces.io.reading import Reading, Rows, batch_rows, damage_explained, valid_rows
from qwp.spaces.io.sources import Readable, Source, read_up_to
from qwp.spaces.io.writing import RowWriter, Target
from qwp.spaces.limits import MAX_DIM, MAX_WORD_BYTES, bomb, packed_rows, too_compressible, unpacked_bytes

_NAMES = ("words", "vectors")
_WHAT = "npz archive"
_WORDS_AT_ONCE = 1 << 16
_READ_BYTES = 1 << 20
_CHARACTER_BYTES = 4  # of a NumPy string
_MAX_DEFLATE_RATIO = 1040  # what deflate can reach at all
_SHOWN_NAMES = 5
_ENCRYPTED = 0x1


def read(reading: Reading, source: Source) -> Iterator[Rows]:
    """The rows of an archive; no more of it is unpacked than is wanted."""
    if source.packed:
        raise InputError(f"{source.path} is gzip-compressed, expected an npz archive as it is: unpack it first")
    with damage_explained(source.path, _WHAT):
        archive = zipfile.ZipFile(source.raw)
    _check_names(archive, source.path)
    words, vectors = (_Member(archive, name, source) for name in _NAMES)
    _check_arrays(words.header, vectors.header, reading)
    _check_size(vectors, reading, source)
    n_rows = vectors.header.shape[0]
    reading.expected_rows = n_rows
    done = unpacked = 0
    row_bytes = max(1, vectors.header.row_bytes, words.header.row_bytes)
    while (rows := min(batch_rows(reading, row_bytes), n_rows - done)) > 0:
        texts = _texts(words.take(rows))
        unpacked += _CHARACTER_BYTES * sum(len(text) for text in texts if text is not None)
        if unpacked > unpacked_bytes(source.size):
            raise bomb(source.path, source.size)
        yield valid_rows(
            texts,
            vectors.take(rows),
            reading,
            lambda row, done=done: f"row {done + row + 1}",  # type: ignore[misc]
        )
        done += rows
    words.check_end()
    vectors.check_end()


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
            f"{reading.path} holds {words.shape[0]} words and {vectors.shape[0]} vectors, expected as many: "
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


def _check_size(vectors: _Member, reading: Reading, source: Source) -> None:
    """Refuse compressed vectors that unpack to more than they should; those stored as they are cannot."""
    if not vectors.compressed:
        return
    rows, dim = vectors.header.shape
    if reading.max_vocab is not None and not vectors.by_column:
        rows = min(rows, reading.max_vocab)
    item_bytes = max(vectors.header.dtype.itemsize, reading.dtype.itemsize)
    if rows * dim * item_bytes > unpacked_bytes(source.size):
        raise bomb(source.path, source.size)
    reading.max_rows = packed_rows(source.size)


class _Member:
    """An array inside the archive, read row by row."""

    def __init__(self, archive: zipfile.ZipFile, name: str, source: Source) -> None:
        self._path = source.path
        self._what = f"{name!r} in {source.path}"
        info = archive.getinfo(f"{name}.npy")
        _check_member(info, self._what, source)
        self.compressed = info.compress_type != zipfile.ZIP_STORED
        with damage_explained(self._path, _WHAT):
            self._file = _Guarded(archive.open(info), self._path)
        self.header = read_header(self._file, self._what)
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
        self._whole: npt.NDArray[Any] | None = None
        self._done = 0

    @property
    def by_column(self) -> bool:
        """Whether no row is complete before the end."""
        return self.header.fortran and len(self.header.shape) > 1

    def take(self, rows: int) -> npt.NDArray[Any]:
        """The next rows."""
        shape = self.header.shape
        if self.by_column:
            if self._whole is None:
                self._whole = self._bytes(self.header.data_bytes).view(self.header.dtype).reshape(shape, order="F")
            part = self._whole[self._done : self._done + rows]
        elif self.header.row_bytes:
            data = self._bytes(rows * self.header.row_bytes)
            part = data.view(self.header.dtype).reshape(rows, *shape[1:])
        else:
            part = np.zeros((rows, *shape[1:]), dtype=self.header.dtype)
        self._done += rows
        return part

    def check_end(self) -> None:
        """Read on to the end of the member: only there is its checksum compared."""
        self._file.read(1)

    def _bytes(self, size: int) -> npt.NDArray[np.uint8]:
        """The next bytes (size,), in pieces: what is missing is not made room for twice."""
        data = np.empty(size, dtype=np.uint8)
        done = 0
        while done < size:
            piece = read_up_to(self._file, min(_READ_BYTES, size - done))
            if not piece:
                raise InputError(f"{self._what} ends after {done} of {size} bytes: copy or save the file again")
            data[done : done + len(piece)] = np.frombuffer(piece, dtype=np.uint8)
            done += len(piece)
        return data


class _Guarded:
    """A member whose damage becomes an InputError."""

    def __init__(self, file: Readable, path: Path) -> None:
        self._file = file
        self._path = path

    def read(self, size: int, /) -> bytes:
        with damage_explained(self._path, _WHAT):
            return self._file.read(size)


def _check_names(archive: zipfile.ZipFile, path: Path) -> None:
    members = archive.namelist()
    names = [name.removesuffix(".npy") for name in members if name.endswith(".npy")]
    if any(name not in names for name in _NAMES):
        held = ", ".join(ascii(name[:40])[1:-1] for name in sorted(names)[:_SHOWN_NAMES]) or "no arrays"
        raise InputError(
            f"{path} holds {held}, expected the arrays {' and '.join(_NAMES)}: "
            "save it with numpy.savez(path, words=..., vectors=...)"
        )
    for name in _NAMES:
        if names.count(name) > 1:
            raise InputError(
                f"{path} holds the array {name} {names.count(name)} times, expected it once: which one is meant "
                "cannot be told; save it again"
            )


def _check_member(info: zipfile.ZipInfo, what: str, source: Source) -> None:
    """Refuse a member that the archive cannot hold, or whose unpacking cannot be bounded."""
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
            "which cannot be: the archive is damaged; copy or save it again"
        )


def _texts(words: npt.NDArray[Any]) -> list[str | None]:
    """The words (b,) as text; None for those that are none."""
    if words.dtype.kind == "S":
        return [_decoded(word) for word in words.tolist()]
    if words.dtype.itemsize == 0:
        return [""] * len(words)
    codes = words.view(np.dtype("u4").newbyteorder(words.dtype.byteorder)).reshape(len(words), -1)
    broken = (codes > 0x10FFFF) | ((codes >= 0xD800) & (codes < 0xE000))
    if not broken.any():
        return list(words.tolist())
    rows = np.flatnonzero(broken.any(axis=1))
    codes[rows] = 0
    texts: list[str | None] = list(words.tolist())
    for row in rows.tolist():
        texts[row] = None
    return texts


def _decoded(word: bytes) -> str | None:
    try:
        return word.decode("utf-8")
    except UnicodeDecodeError:
        return None


@contextmanager
def open_rows(target: Target) -> Iterator[RowWriter]:
    """A writer for this format.

    The number of rows comes first in an array, so vectors wait in a nameless temporary file; words wait in
    memory.
    """
    words: list[str] = []
    with replacing(target.path) as file, tempfile.TemporaryFile(dir=target.path.parent) as body:

        def put(some: list[str], vectors: FloatArray) -> None:
            for word in some:
                if word.endswith("\0"):
                    raise InputError(
                        f"the word {word!r} ends in a NUL, which a NumPy array of strings cannot hold: remove the word"
                    )
            words.extend(some)
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
        if _CHARACTER_BYTES * sum(map(len, words)) > unpacked_bytes(size):
            raise too_compressible(target.path, size)


def _write_words(archive: zipfile.ZipFile, words: list[str]) -> None:
    dtype = np.dtype(f"<U{max(len(word) for word in words)}")
    at_once = max(1, _WORDS_AT_ONCE * 64 // dtype.itemsize)  # one long word makes all of them wide
    with archive.open(_entry("words", zipfile.ZIP_DEFLATED), "w", force_zip64=True) as member:
        _write_header(member, dtype, (len(words),))
        for start in range(0, len(words), at_once):
            member.write(np.array(words[start : start + at_once], dtype=dtype).tobytes())


def _entry(name: str, method: int) -> zipfile.ZipInfo:
    # A fixed date: the same vectors give the same bytes.
    entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
    entry.compress_type = method
    return entry


def _write_header(member: IO[bytes], dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    header = {"descr": npy_format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    npy_format.write_array_header_1_0(member, header)
