"""Copy vector files batch by batch, with a progress bar."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from qwp.arrays import AnyFloats
from qwp.cli import console
from qwp.errors import InputError
from qwp.spaces import io
from qwp.spaces.embeddings import Embeddings
from qwp.spaces.io import Batch
from qwp.spaces.io.files import check_folder
from qwp.spaces.io.sources import split_part

BATCH = 4096
"""Number of words to read and write at a time."""


def batches_of(space: Embeddings, batch: int = BATCH) -> Iterator[Batch]:
    """Yield the words of a space in batches."""
    for begin in range(0, len(space), batch):
        rows = slice(begin, begin + batch)
        yield Batch(space.words[rows], space.vectors[rows])


def check_target(out: Path, format: str | None = None, digits: int | None = None, dtype: str = "float32") -> None:
    """Raise an InputError for a file that cannot be written, before any input is read."""
    check_folder(out)
    io.open_writer(out, 1, format=format, digits=digits, dtype=dtype)  # it checks now, and opens the file when entered


def refuse_sources(outs: Iterable[Path], sources: Iterable[Path]) -> None:
    """Raise an InputError if an output file is one of the input files."""
    existing = [file for file in (split_part(source)[0] for source in sources) if file.exists()]
    for out in outs:
        if out.exists() and any(out.samefile(source) for source in existing):
            raise InputError(f"{out}, to be written, is one of the files to read; expected another name")


def copy(
    batches: Iterable[Batch],
    out: Path,
    *,
    treat: Callable[[AnyFloats], AnyFloats] | None = None,
    count: int | None = None,
    format: str | None = None,
    digits: int | None = None,
    dtype: str = "float32",
    named: Callable[[], bool] = lambda: True,
    quiet: bool = False,
) -> int:
    """Write batches to a file and report the number of words and the speed.

    Args:
        batches: words with their vectors (b, d).
        out: the file.
        treat: maps the vectors of a batch, (b, d) -> (b, e).
        count: number of words, if known.
        named: returns, after the first batch, whether the rows have words.
        quiet: print nothing on stdout.

    Returns:
        the number of words written.
    """
    from qwp.showing.bar import words_bar  # slow to import, and only this function needs a bar

    begin = time.perf_counter()
    incoming = iter(batches)
    first = next(incoming, None)
    if first is None:
        raise InputError(f"there is no word to write to {out}; expected at least one")
    first = first if treat is None else Batch(first.words, treat(first.vectors))
    dim = first.vectors.shape[1]
    how: dict[str, Any] = {"format": format, "digits": digits, "dtype": dtype, "words": named()}
    with words_bar(quiet=quiet) as bar, io.open_writer(out, dim, count=count, **how) as writer:
        task = bar.add_task(f"writing {out}", total=count)
        writer.write(first.words, first.vectors)
        bar.update(task, completed=writer.n_written)
        for batch in incoming:
            writer.write(batch.words, batch.vectors if treat is None else treat(batch.vectors))
            bar.update(task, completed=writer.n_written)
    rate = writer.n_written / max(time.perf_counter() - begin, 1e-9)
    if not quiet:
        console.say(f"{writer.n_written:,} words, {dim} dimensions written to {out} ({rate:,.0f} words/s)")
    return writer.n_written
