"""NumPy's archive format with two arrays: ``words`` (strings) and ``vectors`` (words, numbers)."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy

from qwp.errors import InputError
from qwp.spaces.embeddings import FloatArray
from qwp.spaces.io.files import read_up_to, replacing
from qwp.spaces.io.reading import Batch, Reading, batch_rows, sound_rows
from qwp.spaces.io.writing import RowWriter, Target

_NAMES = ("words", "vectors")
_WORDS_AT_ONCE = 1 << 16


def read(reading: Reading) -> Iterator[Batch]:
    """Batches of the sound rows of an archive; no more of it is unpacked than is wanted."""
    path = reading.path
    try:
        with zipfile.ZipFile(path) as archive:
            _check_names(archive, path)
            with archive.open("words.npy") as words_file, archive.open("vectors.npy") as vectors_file:
                yield from _rows(_Member(words_file, "words", path), _Member(vectors_file, "vectors", path), reading)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise InputError(
            f"{path} is a damaged or cut npz archive ({error}), expected a complete one: copy or save it again"
        ) from error


def _rows(words: _Member, vectors: _Member, reading: Reading) -> Iterator[Batch]:
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
    reading.expected_rows = vectors.shape[0]
    done = 0
    while (rows := min(batch_rows(reading, max(vectors.row_bytes, words.row_bytes)), vectors.shape[0] - done)) > 0:
        yield sound_rows(
            [_text(word) for word in words.take(rows).tolist()],
            vectors.take(rows),
            reading,
            lambda row, done=done: f"row {done + row + 1}",  # type: ignore[misc]
        )
        done += rows
    reading.at_end = done == vectors.shape[0]


class _Member:
    """An array inside the archive, read row by row."""

    def __init__(self, file: IO[bytes], name: str, path: Path) -> None:
        self._file = file
        self._what = f"{name!r} in {path}"
        try:
            version = npy.read_magic(file)
            reader = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            self.shape, self._fortran, self.dtype = reader(file)
        except ValueError as error:
            raise InputError(f"{self._what} is not a NumPy array ({error}), expected one: save it again") from error
        if self.dtype.hasobject:
            raise InputError(
                f"{self._what} is an array of Python objects (a pickle), which qwp does not read because a "
                "pickle can run code: save strings as words.astype(str)"
            )
        self._whole: npt.NDArray[Any] | None = None
        self._done = 0

    @property
    def row_bytes(self) -> int:
        """Bytes of one row, at least 1."""
        return max(1, self.dtype.itemsize * int(np.prod(self.shape[1:], dtype=np.int64)))

    def take(self, rows: int) -> npt.NDArray[Any]:
        """The next rows."""
        if self._fortran and len(self.shape) > 1:
            # Stored column by column: no row is complete before the end.
            if self._whole is None:
                everything = self._array(int(np.prod(self.shape, dtype=np.int64)))
                self._whole = everything.reshape(self.shape, order="F")
            part = self._whole[self._done : self._done + rows]
        else:
            part = self._array(rows * (self.row_bytes // max(1, self.dtype.itemsize))).reshape(rows, *self.shape[1:])
        self._done += rows
        return part

    def _array(self, items: int) -> npt.NDArray[Any]:
        size = items * self.dtype.itemsize
        data = read_up_to(self._file, size)
        if len(data) < size:
            raise InputError(f"{self._what} ends after {len(data)} of {size} bytes: copy or save the file again")
        return np.frombuffer(data, dtype=self.dtype) if size else np.zeros(items, dtype=self.dtype)


def _check_names(archive: zipfile.ZipFile, path: Path) -> None:
    names = archive.namelist()
    missing = [name for name in _NAMES if f"{name}.npy" not in names]
    if missing:
        held = ", ".join(sorted(name.removesuffix(".npy") for name in names)) or "nothing"
        raise InputError(
            f"{path} holds {held}, expected the arrays {' and '.join(_NAMES)}: "
            "save it with numpy.savez(path, words=..., vectors=...)"
        )


def _text(word: str | bytes) -> str | None:
    if isinstance(word, str):
        return word
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
                word.encode()
                if not word or word.endswith("\0"):
                    raise InputError(
                        f"the word {word!r} is empty or ends in a NUL, which a NumPy array of strings "
                        "cannot hold: remove the word"
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
                shutil.copyfileobj(body, member, 1 << 20)


def _write_words(archive: zipfile.ZipFile, words: list[str]) -> None:
    dtype = np.dtype(f"<U{max(len(word) for word in words)}")
    with archive.open(_entry("words", zipfile.ZIP_DEFLATED), "w", force_zip64=True) as member:
        _write_header(member, dtype, (len(words),))
        for start in range(0, len(words), _WORDS_AT_ONCE):
            member.write(np.array(words[start : start + _WORDS_AT_ONCE], dtype=dtype).tobytes())


def _entry(name: str, method: int) -> zipfile.ZipInfo:
    # A fixed date: the same vectors give the same bytes.
    entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
    entry.compress_type = method
    return entry


def _write_header(member: IO[bytes], dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    header = {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    npy.write_array_header_1_0(member, header)
