"""What is computed with: the contents of files, and what reading them warned of.

A `Source` says which file and how it is read. Who reads it, and where, is for the engine to say.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from qwp.spaces import io
from qwp.spaces.lexicon import Lexicon

_MOST_WARNINGS = 20
# Files whose contents a process keeps: what it comes to next mostly needs the same.
KEPT_FILES = 4


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


def read_all(sources: Mapping[str, Source]) -> Material:
    """Read files, or take what this process has read before."""
    return {name: _kept(source) for name, source in sources.items()}


@lru_cache(maxsize=KEPT_FILES)
def _kept(source: Source) -> Read:
    return source.read()


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
