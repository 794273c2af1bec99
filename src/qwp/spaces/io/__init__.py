"""Reading and writing vector files of many formats: docs/formats.md lists them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from os import PathLike
from typing import TYPE_CHECKING, Any, TypedDict

from qwp.errors import InputError
from qwp.spaces.embeddings import Embeddings, LoadReport, name_of
from qwp.spaces.io import formats, safetensors
from qwp.spaces.io.arguments import UTF8, as_choice, as_count, as_dtype, as_encoding, as_path
from qwp.spaces.io.entries import Vocabulary, as_vocabulary
from qwp.spaces.io.files import check_folder
from qwp.spaces.io.numbers import MAX_DIGITS
from qwp.spaces.io.reading import Batch, Reading, collect, first_of_each, paced, rebatched, restricted
from qwp.spaces.io.sources import Source, failures_explained, opened
from qwp.spaces.io.writing import WRITTEN, RowWriter, Target
from qwp.spaces.limits import MAX_DIM

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = [
    "FORMATS",
    "Batch",
    "ReadOptions",
    "RowWriter",
    "load",
    "on_disk",
    "open_writer",
    "save",
    "sniff",
    "stream",
]

FORMATS = tuple(formats.FORMATS)
_SAVE_ROWS = 4096


class ReadOptions(TypedDict, total=False):
    """How a file is read: the arguments of ``load``."""

    max_vocab: int | None
    format: str | None
    errors: str
    dtype: str
    vocab: Vocabulary | None
    encoding: str
    words: str | PathLike[str] | None
    label: str | None


def load(
    path: str | PathLike[str],
    *,
    max_vocab: int | None = None,
    format: str | None = None,
    errors: str = "raise",
    dtype: str = "float32",
    vocab: Vocabulary | None = None,
    encoding: str = "utf-8",
    words: str | PathLike[str] | None = None,
    label: str | None = None,
) -> Embeddings:
    """Read a vector file.

    A pipe is read once and in full. A file that asks for more memory than its size can account for is refused:
    see ``limits``.

    Args:
        path: the file. Its format is told from its content.
        max_vocab: stop after this many words.
        format: one of FORMATS, when the content should not decide; then it does not.
        errors: "raise" an InputError at the first damaged row, or "skip" and count such rows.
        dtype: "float32" or "float64".
        vocab: the only words to keep, a list or a file (UTF-8, one a line). The order stays that of the vectors;
            max_vocab counts the words that are kept.
        encoding: that of the words in text and word2vec binary files.
        words: a file with a word a line for vectors that have none of their own, such as a `.npy` array; without it
            the one beside them is taken, `x.words.txt` for `x.npy`.
        label: what rows are called that have no words: "label:0", "label:1", ...; by default the name of the file.

    Returns:
        the words with their vectors; ``report`` says what was found on the way. Of words that occur more
        than once, the first is kept.
    """
    reading, source = _open(
        path,
        max_vocab=max_vocab,
        format=format,
        errors=errors,
        dtype=dtype,
        vocab=vocab,
        encoding=encoding,
        words=words,
        label=label,
    )
    with source:
        return collect(_batches(reading, source), reading)


def on_disk(path: str | PathLike[str]) -> Embeddings:
    """A safetensors file that this program wrote, without reading its vectors: they stay on the disk, read-only.

    Nothing is checked but that the words and the vectors are as many as the file says.
    """
    name = as_path(path)
    words, vectors = safetensors.on_disk(name)
    report = LoadReport(str(name), "safetensors", *vectors.shape)
    return Embeddings.unchecked(words, vectors, report)


def stream(
    path: str | PathLike[str],
    *,
    batch: int = 8192,
    on_open: Callable[[Reading], None] | None = None,
    **how: Unpack[ReadOptions],
) -> Iterator[Batch]:
    """Read a vector file in batches of words, without holding all of its vectors; arguments as for ``load``.

    Args:
        on_open: is handed the notes of this reading, which grow while it runs: repeated and damaged rows,
            warnings, the header's count.

    Yields:
        ``batch`` words at a time with their vectors (batch, d), in the order of the file, repeated words
        left out.
    """
    batch = as_count("batch", batch)
    reading, source = _open(path, **how)
    if on_open is not None:
        on_open(reading)
    return rebatched(_batches(reading, source), batch)


def sniff(path: str | PathLike[str]) -> str:
    """The name of the format a file is in (one of FORMATS), from its content."""
    with opened(as_path(path)) as source:
        return formats.detect(source)


def save(
    embeddings: Embeddings,
    path: str | PathLike[str],
    *,
    format: str | None = None,
    digits: int | None = None,
    dtype: str = "float32",
) -> None:
    """Write words and vectors; the file appears when it is complete.

    Args:
        embeddings: what to write.
        path: the suffix chooses the format, see docs/formats.md; text and word2vec binary also with .gz.
        format: one of FORMATS, when the suffix should not decide.
        digits: digits after the point in text; without it, as many as give the same float32 back.
        dtype: "float32", or "float16" for formats that hold arrays.
    """
    if not isinstance(embeddings, Embeddings):
        raise InputError(f"received {type(embeddings).__name__}, expected Embeddings to save")
    how: dict[str, Any] = {"format": format, "digits": digits, "dtype": dtype}
    with open_writer(path, embeddings.dim, count=len(embeddings), **how) as writer:
        for begin in range(0, len(embeddings), _SAVE_ROWS):
            rows = slice(begin, begin + _SAVE_ROWS)
            writer.write(embeddings.words[rows], embeddings.vectors[rows])


def open_writer(
    path: str | PathLike[str],
    dim: int,
    *,
    count: int | None = None,
    format: str | None = None,
    digits: int | None = None,
    dtype: str = "float32",
    words: bool = True,
) -> AbstractContextManager[RowWriter]:
    """A context manager that writes vectors as they come, for more of them than memory holds.

    ``with open_writer("x.vec", 300) as writer: writer.write(words, vectors)``. The file appears under its
    name when the block ends; on any exception nothing is left behind.

    Args:
        path, format, digits, dtype: as for ``save``.
        dim: numbers in each vector.
        count: how many words will come, if known; otherwise a header is padded with blanks and filled in at
            the end.
        words: False leaves the words out where a format holds vectors without them.
    """
    target = as_path(path)
    chosen, compress = formats.for_writing(target, format)
    check_folder(target)
    dim = as_count("dim", dim, most=MAX_DIM)
    count = None if count is None else as_count("count", count)
    if digits is not None and not chosen.rows_of_text:
        raise InputError(f"received digits={digits} for {chosen.name}, expected it for text only: leave it out")
    digits = None if digits is None else as_count("digits", digits, least=0, most=MAX_DIGITS)
    as_choice("dtype", dtype, WRITTEN)
    if dtype != WRITTEN[0] and not chosen.any_number:
        raise InputError(f"received dtype={dtype!r} for {chosen.name}, which holds {WRITTEN[0]}: leave it out")
    assert chosen.open_rows is not None, "formats that are only read were refused"
    return chosen.open_rows(Target(target, chosen.name, dim, count, digits, compress, dtype, words, formats.detect))


def _open(
    path: str | PathLike[str],
    *,
    max_vocab: int | None = None,
    format: str | None = None,
    errors: str = "raise",
    dtype: str = "float32",
    vocab: Vocabulary | None = None,
    encoding: str = UTF8,
    words: str | PathLike[str] | None = None,
    label: str | None = None,
) -> tuple[Reading, Source]:
    """Check what was asked, open the file and tell its format."""
    name = as_path(path)
    most = None if max_vocab is None else as_count("max_vocab", max_vocab)
    kind = as_dtype(dtype)
    how = as_choice("errors", errors, ("raise", "skip"))
    coded = as_encoding(encoding)
    chosen = None if format is None else formats.by_name(format).name
    wanted = None if vocab is None else as_vocabulary(vocab)
    named = None if words is None else as_path(words)
    source = opened(name)
    try:
        found = chosen if chosen is not None else formats.detect(source, coded)
        if coded != UTF8 and formats.by_name(found).words_as_text:
            raise InputError(
                f"received encoding={encoding!r} for {name}, which is {found} and holds its words as text: leave it out"
            )
        if named is not None and not formats.by_name(found).nameless:
            raise InputError(f"received the words {named} for {name}, which is {found} and has its own: leave them out")
    except BaseException:
        source.close()
        raise
    listed = str(as_path(vocab)) if isinstance(vocab, (str, PathLike)) else None
    reading = Reading(name, found, kind, how, most, source.size, source.max_rows, coded, wanted, listed)
    reading.words_path, reading.label = named, label or name_of(str(name))
    return reading, source


def _batches(reading: Reading, source: Source) -> Iterator[Batch]:
    """The words of the file, each once; the file is closed at the end."""
    with source, failures_explained(reading.path, "words: pass max_vocab= (--max-vocab)"):
        rows = formats.by_name(reading.format).read(reading, source)
        yield from first_of_each(paced(restricted(rows, reading), reading), reading)
