"""safetensors files with one tensor ``vectors``, and the words in a JSON sidecar of the same name.

The header is parsed here: the safetensors library would be a dependency in place of 50 lines.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from qwp.arrays import AnyFloats
from qwp.errors import InputError
from qwp.spaces.io.arguments import parse_json
from qwp.spaces.io.files import atomic_write, check_folder
from qwp.spaces.io.numpy_files import as_numbers
from qwp.spaces.io.reading import Reading, Rows, batch_rows, valid_rows
from qwp.spaces.io.sources import Source, open_source
from qwp.spaces.io.writing import RowWriter, Target
from qwp.spaces.limits import MAX_DIM, MAX_WORD_BYTES
from qwp.spaces.subwords import Shape, Subwords

_HEADER_BYTES = 256  # room for any shape; the format allows trailing blanks
_MAX_HEADER_BYTES = 8 << 20
_KINDS = {"F16": "<f2", "BF16": "V2", "F32": "<f4", "F64": "<f8", "I8": "i1", "U8": "u1"}
_FLOAT = np.dtype("<f4")
_OPENING = b'{"words": ['
_LISTED = 5  # tensors that a message lists
# A word in JSON has at most six characters per byte. Every file may have _FREE_BYTES for other entries.
_BYTES_PER_WORD = 6 * (MAX_WORD_BYTES + 1)
_FREE_BYTES = 16 << 20
_COPY_BYTES = 16 << 20


def json_sidecar(path: Path) -> Path:
    """Return the path of the word file of ``path``."""
    return path.with_suffix(".json")


@dataclass(frozen=True)
class _Tensor:
    """The vectors in a file: number type, shape (words, dimension), offset of the first byte."""

    dtype: np.dtype[Any]
    shape: tuple[int, int]
    offset: int

    @property
    def row_bytes(self) -> int:
        return self.dtype.itemsize * self.shape[1]


def read(reading: Reading, source: Source) -> Iterator[Rows]:
    """Yield the rows of a file, reading no more of it than needed."""
    if source.spooled:
        raise InputError(f"{source.path} is a pipe, expected a file: the words of a safetensors file are in a sidecar")
    tensor = _find_tensor(source)
    words = _read_words(source.path, tensor.shape[0])
    reading.expected_rows = tensor.shape[0]
    done = 0
    while (rows := min(batch_rows(reading, tensor.row_bytes), tensor.shape[0] - done)) > 0:
        size = rows * tensor.row_bytes
        data = source.read_at(tensor.offset + done * tensor.row_bytes, size)
        if len(data) < size:
            raise _damaged(source.path, "it became shorter while it was read")
        yield valid_rows(
            words[done : done + rows],
            as_numbers(np.frombuffer(data, dtype=tensor.dtype).reshape(rows, tensor.shape[1])),
            reading,
            lambda row, done=done: f"row {done + row + 1}",  # type: ignore[misc]
        )
        done += rows


def load_mapped(path: Path) -> tuple[list[str], AnyFloats]:
    """Return the words of a valid file, and its vectors (n, d) as a read-only memory map."""
    with open_source(path) as source:
        tensor = _find_tensor(source)
    words = _read_words(path, tensor.shape[0])
    return words, np.asarray(np.memmap(path, tensor.dtype, "r", tensor.offset, tensor.shape))


def save_subwords(subwords: Subwords, path: Path) -> None:
    """Write the rows of subwords as the vectors of a file without words."""
    with atomic_write(path) as file:
        file.write(_header(subwords.shape.buckets, subwords.shape.dim))
        step = max(1, _COPY_BYTES // (4 * subwords.shape.dim))
        for begin in range(0, subwords.shape.buckets, step):
            file.write(np.ascontiguousarray(subwords.rows[begin : begin + step], dtype="<f4").tobytes())


def load_subwords(path: Path, shape: Shape) -> Subwords:
    """Return subwords that `save_subwords` wrote, memory-mapped."""
    with open_source(path) as source:
        tensor = _find_tensor(source)
    if tensor.shape != (shape.buckets, shape.dim):
        raise _damaged(path, f"its rows are {tensor.shape}, expected {(shape.buckets, shape.dim)}")
    return Subwords(shape, np.asarray(np.memmap(path, tensor.dtype, "r", tensor.offset, tensor.shape)))


def _find_tensor(source: Source) -> _Tensor:
    """Locate the vectors, and check all sizes against the size of the file before allocating memory."""
    path = source.path
    start = source.read_at(0, 8)
    length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
    if not 2 <= length <= min(_MAX_HEADER_BYTES, source.size - 8):
        raise _damaged(path, f"its header claims {length} bytes")
    try:
        header = _parse(source.read_at(8, length))
    except ValueError as error:
        raise _damaged(path, f"its header is not JSON: {error}") from error
    tensors = {name: entry for name, entry in header.items() if name != "__metadata__"}
    if "vectors" not in tensors:
        listed = ", ".join(ascii(name[:40])[1:-1] for name in sorted(tensors)[:_LISTED]) or "nothing"
        raise InputError(f"{path} holds the tensors {listed}, expected one named vectors: save it again")
    offsets = {name: _offsets(entry, path) for name, entry in tensors.items()}
    if 8 + length + max(end for _, end in offsets.values()) != source.size:
        raise _damaged(path, f"its tensors do not end with its {source.size} bytes")
    begin, end = offsets["vectors"]
    tensor = _tensor(tensors["vectors"], 8 + length + begin, path)
    if end - begin != tensor.shape[0] * tensor.row_bytes:
        raise _damaged(path, f"its vectors have {end - begin} bytes, which is not {tensor.dtype} of {tensor.shape}")
    return tensor


def _tensor(entry: dict[str, Any], offset: int, path: Path) -> _Tensor:
    """Return the tensor of a header entry."""
    kind, shape = entry.get("dtype"), _shape(entry.get("shape"), path)
    name = kind if isinstance(kind, str) else "nothing"
    if len(shape) != 2 or 0 in shape or shape[1] > MAX_DIM or name not in _KINDS:
        raise InputError(
            f"'vectors' in {path} is {ascii(name[:10])[1:-1]} of shape {shape}, expected one of {', '.join(_KINDS)} of "
            f"shape (words, dimension), at most {MAX_DIM} numbers in a row"
        )
    return _Tensor(np.dtype(_KINDS[name]), (shape[0], shape[1]), offset)


def _offsets(entry: object, path: Path) -> tuple[int, int]:
    """Return begin and end of a tensor, relative to the end of the header."""
    offsets = entry.get("data_offsets") if isinstance(entry, dict) else None
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(type(at) is int and at >= 0 for at in offsets):
        raise _damaged(path, "a tensor has no valid offsets")
    if offsets[0] > offsets[1]:
        raise _damaged(path, "a tensor ends before it begins")
    return offsets[0], offsets[1]


def _shape(shape: object, path: Path) -> tuple[int, ...]:
    if not isinstance(shape, list) or not all(type(size) is int and size >= 0 for size in shape):
        raise _damaged(path, "its vectors have no shape")
    return tuple(shape[:8])


def _damaged(path: Path, why: str) -> InputError:
    return InputError(f"{path} is a damaged safetensors file ({why}), expected a complete one: copy or save it again")


def _parse(data: bytes) -> dict[str, Any]:
    """Parse a JSON object; other JSON values give an empty one. Raise a ValueError for invalid JSON."""
    content = parse_json(data)
    return content if isinstance(content, dict) else {}


def _read_words(path: Path, count: int) -> list[str]:
    sidecar = json_sidecar(path)
    if not sidecar.exists():
        raise InputError(f"the words of {path} are missing, expected them in {sidecar}: copy both files")
    most = _FREE_BYTES + _BYTES_PER_WORD * count
    with open_source(sidecar) as source:
        if source.size > most:
            raise InputError(
                f"{sidecar} has {source.size:,} bytes, expected at most {most:,} for {count} words: "
                "copy both files again"
            )
        data = source.read_at(0, source.size)
    try:
        content = _parse(data)
    except ValueError as error:
        raise InputError(f'{sidecar} is not JSON ({error}), expected {{"words": [...]}}: copy it again') from error
    words = content.get("words")
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise InputError(f'{sidecar} has no list of strings "words", expected {{"words": [...]}}')
    if len(words) != count:
        raise InputError(
            f"{sidecar} holds {len(words)} words and {path} {count} vectors, expected the same number: copy both files"
        )
    return words


@contextmanager
def open_rows(target: Target) -> Iterator[RowWriter]:
    """Return a writer of this format; file and sidecar appear when they are complete."""
    sidecar = json_sidecar(target.path)
    check_folder(sidecar)
    if sidecar.exists() and not _is_word_file(sidecar):
        raise InputError(
            f"{sidecar} exists and does not hold the words of a safetensors file: it would be overwritten; "
            "choose another name or remove it"
        )
    number = np.dtype(target.dtype).newbyteorder("<")
    # The sidecar is renamed first: no safetensors file exists without its words.
    with atomic_write(target.path) as file, atomic_write(sidecar) as words_file:
        file.write(bytes(_HEADER_BYTES))
        words_file.write(_OPENING)
        separator = b"\n"

        def put(words: list[str], vectors: AnyFloats) -> None:
            nonlocal separator
            for word in words:
                words_file.write(separator + json.dumps(word, ensure_ascii=False).encode())
                separator = b",\n"
            file.write(vectors.astype(number, copy=False).tobytes())

        writer = RowWriter(target, put)
        yield writer
        count = writer.finish()
        words_file.write(f'\n], "count": {count}, "dim": {target.dim}}}\n'.encode())
        file.seek(0)
        file.write(_header(count, target.dim, number))


def _is_word_file(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_OPENING)) == _OPENING


def _header(count: int, dim: int, number: np.dtype[Any] = _FLOAT) -> bytes:
    kind = next(name for name, known in _KINDS.items() if known == number.str)
    entry = {"dtype": kind, "shape": [count, dim], "data_offsets": [0, number.itemsize * count * dim]}
    text = json.dumps({"vectors": entry}).encode()
    size = _HEADER_BYTES - 8
    return struct.pack("<Q", size) + text.ljust(size)
