"""What is computed with: the contents of files, and what reading them warned of.

A `Source` says which file and how it is read. Who reads it, and where, is for the engine to say.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from qwp.spaces import io
from qwp.spaces.embeddings import Embeddings
from qwp.spaces.lexicon import Lexicon

_MOST_WARNINGS = 20
# What a process keeps: so many files at least, and others as long as they take no more memory than this together.
_KEPT_FILES = 4
_KEPT_BYTES = 1 << 30


@dataclass(frozen=True)
class Read:
    """The content of a file: Embeddings or a Lexicon. warnings: of everything that is computed with it."""

    content: Any
    warnings: tuple[str, ...] = ()


Material: TypeAlias = Mapping[str, Read]
"""Contents by name."""


@dataclass(frozen=True)
class Source:
    """A file. reading: the arguments of `qwp.load`, for vectors; None for a dictionary."""

    path: Path
    reading: tuple[tuple[str, Any], ...] | None = None

    @classmethod
    def vectors(cls, path: Path, **reading: Any) -> Source:
        """A file of vectors."""
        return cls(path, tuple(sorted(reading.items())))

    def read(self) -> Read:
        """What is in the file."""
        with warnings_kept() as texts:
            content = Lexicon.load(self.path) if self.reading is None else io.load(self.path, **dict(self.reading))
        return Read(content, tuple(texts))


class Shelf:
    """Contents of files that are kept, because what comes next mostly needs the same; the least recent ones go."""

    def __init__(self, most_bytes: int = _KEPT_BYTES) -> None:
        self._most_bytes = most_bytes
        self._kept: OrderedDict[Source, Read] = OrderedDict()

    def take(self, source: Source, read: Callable[[], Read]) -> Read:
        """What is in a file. read: gets it where it is not kept."""
        if source not in self._kept:
            self._kept[source] = read()
        self._kept.move_to_end(source)
        while len(self._kept) > _KEPT_FILES and sum(map(_size, self._kept.values())) > self._most_bytes:
            self._kept.popitem(last=False)
        return self._kept[source]


def _size(read: Read) -> int:
    """The memory of vectors; that of all else is small beside it."""
    return read.content.vectors.nbytes if isinstance(read.content, Embeddings) else 0


_SHELF = Shelf()


def read_all(sources: Mapping[str, Source]) -> Material:
    """Read files, or take what this process has read before."""
    return {name: _SHELF.take(source, source.read) for name, source in sources.items()}


def warnings_of(material: Material) -> list[str]:
    """What reading warned of, once."""
    return list(dict.fromkeys(text for part in material.values() for text in part.warnings))


@contextmanager
def warnings_kept() -> Iterator[list[str]]:
    """What the library warns of meanwhile."""
    texts: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            add_warnings(texts, [record.getMessage()])

    handler, logger = Kept(logging.WARNING), logging.getLogger("qwp")
    logger.addHandler(handler)
    try:
        yield texts
    finally:
        logger.removeHandler(handler)


def add_warnings(texts: list[str], more: Iterable[str]) -> None:
    """Add those that are new, until there are enough."""
    for text in more:
        if len(texts) < _MOST_WARNINGS and text not in texts:
            texts.append(text)
