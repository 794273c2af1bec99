"""Index files of FAISS: flat ones, and others that can give back the vectors they hold, as far as these keep them.

An index has no words: they are in a file beside it, or those of a map of ids (IndexIDMap) are its ids. The library is
the extra ``faiss``; `qwp.spaces.foreign.indexes` reads with it in a child process.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from qwp.errors import installed
from qwp.spaces.embeddings import FloatArray
from qwp.spaces.io import isolated
from qwp.spaces.io.beside import words_written
from qwp.spaces.io.files import replacing
from qwp.spaces.io.reading import Reading, Rows
from qwp.spaces.io.sources import Source
from qwp.spaces.io.writing import RowWriter, Target


def _words_file(path: Path) -> Path:
    """Where the words are: x.faiss.words.txt, which is not that of an array of the same name."""
    return path.with_name(f"{path.name}.words.txt")


# Product quantization keeps a byte for each of several numbers.
_KIND = isolated.Kind("index of FAISS", _words_file, own_words=False, ratio=3)


def read(reading: Reading, source: Source) -> Iterator[Rows]:
    """The vectors of an index, in the order in which they were added."""
    installed("faiss", f"reading {source.path} (an {_KIND.what})")
    yield from isolated.read(reading, source, _KIND)


@contextmanager
def open_rows(target: Target) -> Iterator[RowWriter]:
    """A writer of a flat index for inner products, with the words beside it; it is in memory until it is complete."""
    installed("faiss", f"writing {target.path}")
    import faiss

    index = faiss.IndexFlatIP(target.dim)
    with replacing(target.path) as file, words_written(target, _words_file(target.path)) as put_words:

        def put(words: list[str], vectors: FloatArray) -> None:
            put_words(words)
            index.add(vectors)

        writer = RowWriter(target, put)
        yield writer
        writer.finish()
        file.write(faiss.serialize_index(index).tobytes())
