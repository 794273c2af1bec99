"""Read and write vector files; docs/formats.md lists the formats."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from os import PathLike
from typing import TYPE_CHECKING, Any, TypedDict

from qwp.errors import InputError
from qwp.spaces.embeddings import Embeddings, LoadReport, name_of
from qwp.spaces.io import formats, safetensors
from qwp.spaces.io.arguments import UTF8, as_choice, as_count, as_dtype, as_encoding, as_path
from qwp.spaces.io.files import check_folder
from qwp.spaces.io.line_files import Vocabulary, as_vocabulary
from qwp.spaces.io.numbers import MAX_DIGITS
from qwp.spaces.io.reading import Batch, Reading, collect, drop_duplicates, filter_vocabulary, limit_rows, rebatch
from qwp.spaces.io.sources import Source, explain_failures, open_source
from qwp.spaces.io.writing import WRITABLE_DTYPES, RowWriter, Target
from qwp.spaces.limits import MAX_DIM

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = [
    "FORMATS",
    "Batch",
    "ReadOptions",
    "RowWriter",
    "load",
    "load_mapped",
    "open_writer",
    "save",
    "sniff",
    "stream",
]

FORMATS = tuple(formats.FORMATS)
_SAVE_ROWS = 4096


class ReadOptions(TypedDict, total=False):
    """Keyword arguments of ``load``."""

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

    A pipe is read once and in full. A file that would need far more memory than its size suggests is refused; see
    ``limits``.

    Args:
        path: the file.
        max_vocab: maximum number of words to load.
        format: one of FORMATS; detected from the content by default.
        errors: "raise" an InputError at the first damaged row, or "skip" and count such rows.
        dtype: "float32" or "float64".
        vocab: the words to load, a list or a UTF-8 file with one word per line. The order stays that of the vectors,
            and `max_vocab` counts the loaded words.
        encoding: encoding of the words in text and word2vec binary files.
        words: file with one word per line, for vectors without words, such as a `.npy` array. The default is the
            sidecar `x.words.txt` of `x.npy`, if it exists.
        label: prefix of the names of rows without words: "label:0", "label:1", ...; the name of the file by default.

    Returns:
        the words with their vectors, and a ``report`` of the reading. Of repeated words the first is loaded.
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


def load_mapped(path: str | PathLike[str]) -> Embeddings:
    """Open a safetensors file that qwp wrote, with its vectors as a read-only memory map.

    Only the numbers of words and vectors are checked.
    """
    name = as_path(path)
    words, vectors = safetensors.load_mapped(name)
    report = LoadReport(str(name), "safetensors", *vectors.shape)
    return Embeddings.unchecked(words, vectors, report)


def stream(
    path: str | PathLike[str],
    *,
    batch: int = 8192,
    on_open: Callable[[Reading], None] | None = None,
    **options: Unpack[ReadOptions],
) -> Iterator[Batch]:
    """Read a vector file in batches, without holding all vectors in memory.

    Args:
        path: the file.
        batch: number of words in each batch.
        on_open: receives the state of the reading, which is updated while it runs: duplicates, damaged rows, warnings,
            count of the header.
        **options: as for ``load``.

    Yields:
        batches of words with their vectors (batch, d), in file order, without repeated words.
    """
    batch = as_count("batch", batch)
    reading, source = _open(path, **options)
    if on_open is not None:
        on_open(reading)
    return rebatch(_batches(reading, source), batch)


def sniff(path: str | PathLike[str]) -> str:
    """Return the name of the format of a file, one of FORMATS, from its content."""
    with open_source(as_path(path)) as source:
        return formats.detect(source)


def save(
    embeddings: Embeddings,
    path: str | PathLike[str],
    *,
    format: str | None = None,
    digits: int | None = None,
    dtype: str = "float32",
) -> None:
    """Write words and vectors to a file, which appears when it is complete.

    Args:
        embeddings: words and vectors.
        path: the file. Its suffix selects the format (docs/formats.md); text and word2vec binary files may end in .gz.
        format: one of FORMATS; selected by the suffix by default.
        digits: digits after the decimal point in text; by default as many as restore the same float32.
        dtype: "float32", or "float16" in formats that hold arrays.
    """
    if not isinstance(embeddings, Embeddings):
        raise InputError(f"received {type(embeddings).__name__}, expected Embeddings to save")
    options: dict[str, Any] = {"format": format, "digits": digits, "dtype": dtype}
    with open_writer(path, embeddings.dim, count=len(embeddings), **options) as writer:
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
    """Open a file for writing vectors in batches: ``with open_writer("x.vec", 300) as writer: writer.write(...)``.

    The file appears under its name when the block ends. On any exception nothing is left behind.

    Args:
        path: as for ``save``.
        dim: numbers in each vector.
        count: number of words, if known in advance; otherwise a padded header is completed at the end.
        format: as for ``save``.
        digits: as for ``save``.
        dtype: as for ``save``.
        words: False to leave the words out, in a format that can hold vectors without words.
    """
    target = as_path(path)
    chosen, compress = formats.for_writing(target, format)
    check_folder(target)
    dim = as_count("dim", dim, most=MAX_DIM)
    count = None if count is None else as_count("count", count)
    if digits is not None and not chosen.takes_digits:
        raise InputError(f"received digits={digits} for {chosen.name}, expected it for text only: leave it out")
    digits = None if digits is None else as_count("digits", digits, least=0, most=MAX_DIGITS)
    as_choice("dtype", dtype, WRITABLE_DTYPES)
    if dtype != WRITABLE_DTYPES[0] and not chosen.takes_dtype:
        raise InputError(f"received dtype={dtype!r} for {chosen.name}, which holds {WRITABLE_DTYPES[0]}: leave it out")
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
    """Check the arguments, open the file and detect its format."""
    name = as_path(path)
    most = None if max_vocab is None else as_count("max_vocab", max_vocab)
    kind = as_dtype(dtype)
    on_damage = as_choice("errors", errors, ("raise", "skip"))
    codec = as_encoding(encoding)
    chosen = None if format is None else formats.by_name(format).name
    vocabulary = None if vocab is None else as_vocabulary(vocab)
    named = None if words is None else as_path(words)
    source = open_source(name)
    try:
        found = chosen if chosen is not None else formats.detect(source, codec)
        if codec != UTF8 and formats.by_name(found).words_as_text:
            raise InputError(
                f"received encoding={encoding!r} for {name}, which is {found} and stores words as text: leave it out"
            )
        if named is not None and not formats.by_name(found).words_optional:
            raise InputError(f"received the words {named} for {name}, which is {found} and has its own: leave them out")
    except BaseException:
        source.close()
        raise
    reading = Reading(
        name,
        found,
        kind,
        errors=on_damage,
        max_vocab=most,
        size=source.size,
        max_rows=source.max_rows,
        encoding=codec,
        vocab=vocabulary,
        vocab_path=str(as_path(vocab)) if isinstance(vocab, (str, PathLike)) else None,
        words_path=named,
        label=label or name_of(str(name)),
    )
    return reading, source


def _batches(reading: Reading, source: Source) -> Iterator[Batch]:
    """Yield the unique words of a file, and close it at the end."""
    with source, explain_failures(reading.path, "words: pass max_vocab= (--max-vocab)"):
        rows = formats.by_name(reading.format).read(reading, source)
        yield from drop_duplicates(limit_rows(filter_vocabulary(rows, reading), reading), reading)
