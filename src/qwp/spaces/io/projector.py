"""TensorFlow's Embedding Projector: numbers between tabs, a vector a line; the words in a metadata file beside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from qwp.errors import InputError
from qwp.spaces.embeddings import FloatArray
from qwp.spaces.io.arguments import UTF8
from qwp.spaces.io.beside import Names, words_written
from qwp.spaces.io.files import replacing
from qwp.spaces.io.formatting import format_rows
from qwp.spaces.io.limits import MAX_DIM
from qwp.spaces.io.lines import parse_block, trailing_numbers
from qwp.spaces.io.reading import Reading, Rows, sound_rows
from qwp.spaces.io.sources import Source
from qwp.spaces.io.text import line_blocks
from qwp.spaces.io.writing import RowWriter, Target

_USUAL = ("vectors", "tensors")  # what the projector calls its own files
_MARK = b"0"  # in the place of a word, for the reader of lines of text


def metadata_file(path: Path) -> Path:
    """Where the words are: metadata.tsv for vectors.tsv and tensors.tsv, x.metadata.tsv for x.tsv."""
    stem = path.name.split(".")[0]
    return path.with_name("metadata.tsv" if stem in _USUAL else f"{stem}.metadata.tsv")


def vector_lines(vectors: FloatArray, digits: int | None = None) -> Iterator[bytes]:
    """Vectors (n, d) as lines of numbers between tabs."""
    for line in format_rows(vectors.astype(np.float32, copy=False), digits):
        yield line.replace(b" ", b"\t") + b"\n"


def read(reading: Reading, source: Source) -> Iterator[Rows]:
    """The lines of a file, in order."""
    dim: int | None = None
    first = 1
    with Names(reading, source, metadata_file(source.path)) as names, source.plain() as handle:
        for block in line_blocks(handle, reading.path):
            if dim is None:
                dim = _dimension(block, reading.path)
            marked = _MARK + b"\t" + block[:-1].replace(b"\n", b"\n" + _MARK + b"\t") + b"\n"
            yield _rows(marked, dim, names, reading, first)
            first += block.count(b"\n")
        names.check_end()


def _dimension(block: bytes, path: Path) -> int:
    dim = trailing_numbers(_MARK + b"\t" + block.split(b"\n", 1)[0])
    if not 0 < dim <= MAX_DIM:
        raise InputError(
            f"line 1 of {path} holds {dim} numbers, expected 1 to {MAX_DIM} between tabs and nothing else: this is no "
            "file of TensorFlow's projector"
        )
    return dim


def _rows(marked: bytes, dim: int, names: Names, reading: Reading, first: int) -> Rows:
    """Sound and bad lines of a block whose first line has this number."""
    parsed = parse_block(marked, dim, reading.dtype, UTF8)
    bad = dict(parsed.bad)
    sound = [line for line in range(parsed.n_lines) if line not in bad]
    # A line with more numbers has some of them in what was taken for its word.
    longer = [row for row, mark in enumerate(parsed.words) if mark.encode() != _MARK]
    bad.update((sound[row], f"does not hold {dim} numbers and nothing else") for row in longer)
    kept = np.delete(np.arange(len(sound)), longer)
    words = names.take(parsed.n_lines)
    lines = [sound[row] for row in kept.tolist()]
    found = sound_rows(
        [words[line] for line in lines], parsed.vectors[kept], reading, lambda row: f"line {first + lines[row]}"
    )
    complaints = [(line, f"line {first + line}", what.replace("a word and ", "")) for line, what in bad.items()]
    complaints += [(lines[row], where, what) for row, where, what in found.bad]
    positions = lines if found.positions is None else [lines[row] for row in found.positions]
    return Rows(found.words, found.vectors, positions, sorted(complaints))


@contextmanager
def open_rows(target: Target) -> Iterator[RowWriter]:
    """A writer for this format; both files appear when all is written."""
    with replacing(target.path) as file, words_written(target, metadata_file(target.path)) as put_words:

        def put(words: list[str], vectors: FloatArray) -> None:
            put_words(words)
            file.writelines(vector_lines(vectors, target.digits))

        writer = RowWriter(target, put)
        yield writer
        writer.finish()
