"""safetensors with one tensor ``vectors``, and the words in a JSON file of the same name beside it."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import safetensors as library

from qwp.errors import InputError
from qwp.spaces.embeddings import FloatArray
from qwp.spaces.io.files import check_file, replacing
from qwp.spaces.io.reading import Batch, Reading, batch_rows, sound_rows
from qwp.spaces.io.writing import RowWriter, Target

_HEADER_BYTES = 256  # room for any shape; the format allows blanks at the end
_KINDS = {"F16": 2, "F32": 4, "F64": 8}
_OPENING = b'{"words": ['


def sidecar(path: Path) -> Path:
    """Where the words of ``path`` are."""
    return path.with_suffix(".json")


def read(reading: Reading) -> Iterator[Batch]:
    """Batches of the sound rows; only the rows that are wanted are read from the tensor."""
    path = reading.path
    try:
        with library.safe_open(path, framework="numpy") as file:
            names = list(file.keys())
            if "vectors" not in names:
                held = ", ".join(sorted(names)) or "nothing"
                raise InputError(f"{path} holds the tensors {held}, expected one named vectors: save it again")
            tensor = file.get_slice("vectors")
            shape, kind = tensor.get_shape(), tensor.get_dtype()
            if len(shape) != 2 or 0 in shape or kind not in _KINDS:
                raise InputError(
                    f"'vectors' in {path} is {kind} of shape {tuple(shape)}, expected one of "
                    f"{', '.join(_KINDS)} of shape (words, dimension)"
                )
            words = _read_words(path, shape[0])
            reading.expected_rows = shape[0]
            done = 0
            while (rows := min(batch_rows(reading, _KINDS[kind] * shape[1]), shape[0] - done)) > 0:
                yield sound_rows(
                    words[done : done + rows],
                    tensor[done : done + rows],
                    reading,
                    lambda row, done=done: f"row {done + row + 1}",  # type: ignore[misc]
                )
                done += rows
            reading.at_end = done == shape[0]
    except library.SafetensorError as error:
        raise InputError(
            f"{path} is a damaged safetensors file ({error}), expected a complete one: copy or save it again"
        ) from error


def _read_words(path: Path, count: int) -> list[str]:
    beside = sidecar(path)
    if not beside.exists():
        raise InputError(f"the words of {path} are missing: expected {beside} beside it; copy both files")
    check_file(beside)
    try:
        content = json.loads(beside.read_bytes())
    except ValueError as error:
        raise InputError(f'{beside} is not JSON ({error}), expected {{"words": [...]}}: copy it again') from error
    words = content.get("words") if isinstance(content, dict) else None
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise InputError(f'{beside} has no list of strings "words", expected {{"words": [...]}}')
    if len(words) != count:
        raise InputError(f"{beside} holds {len(words)} words and {path} {count} vectors, expected as many")
    return words


@contextmanager
def open_rows(target: Target) -> Iterator[RowWriter]:
    """A writer for this format; both files appear when all is written."""
    beside = sidecar(target.path)
    if beside.exists() and not _is_ours(beside):
        raise InputError(
            f"{beside} exists and does not hold the words of a safetensors file: it would be overwritten; "
            "choose another name or remove it"
        )
    # The words are renamed first: a safetensors file is never there without them.
    with replacing(target.path) as file, replacing(beside) as words_file:
        file.write(bytes(_HEADER_BYTES))
        words_file.write(_OPENING)
        separator = b"\n"

        def put(words: list[str], vectors: FloatArray) -> None:
            nonlocal separator
            for word in words:
                if not word:
                    raise InputError("received the empty word, expected text: remove the word")
                words_file.write(separator + json.dumps(word, ensure_ascii=False).encode())
                separator = b",\n"
            file.write(vectors.astype("<f4", copy=False).tobytes())

        writer = RowWriter(target, put)
        yield writer
        count = writer.finish()
        words_file.write(f'\n], "count": {count}, "dim": {target.dim}}}\n'.encode())
        file.seek(0)
        file.write(_header(count, target.dim))


def _is_ours(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_OPENING)) == _OPENING


def _header(count: int, dim: int) -> bytes:
    entry = {"dtype": "F32", "shape": [count, dim], "data_offsets": [0, 4 * count * dim]}
    text = json.dumps({"vectors": entry}).encode()
    size = _HEADER_BYTES - 8
    return struct.pack("<Q", size) + text.ljust(size)
