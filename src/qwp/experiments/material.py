"""What a cell computes with: the contents of its files, and what reading them warned of."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Generic, TypeVar

from qwp.experiments.data import Inputs
from qwp.spaces import io
from qwp.spaces.embeddings import Embeddings
from qwp.spaces.lexicon import Lexicon

T = TypeVar("T")

_MOST_WARNINGS = 20


@dataclass(frozen=True)
class Read(Generic[T]):
    """The content of a file. warnings: of every cell that has to do with it, whoever read it."""

    content: T
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Material:
    """The contents of the files of one direction."""

    src: Read[Embeddings]
    tgt: Read[Embeddings]
    gold: Read[Lexicon]
    train: Read[Lexicon] | None = None

    @property
    def warnings(self) -> list[str]:
        """What reading warned of."""
        parts = (self.src, self.tgt, self.gold, self.train)
        return list(dict.fromkeys(text for part in parts if part is not None for text in part.warnings))


def read_material(inputs: Inputs, max_vocab: int | None, *, train: bool) -> Material:
    """Read the files of a direction. train: whether the dictionary to learn from is wanted."""
    return Material(
        read_space(inputs.src, max_vocab),
        read_space(inputs.tgt, max_vocab),
        read_lexicon(inputs.gold),
        read_lexicon(inputs.train) if train and inputs.train is not None else None,
    )


@lru_cache(maxsize=4)
def read_space(path: Path, max_vocab: int | None) -> Read[Embeddings]:
    """Vectors, kept for the next cells of this process, which mostly want the same."""
    with warnings_kept() as texts:
        return Read(io.load(path, max_vocab=max_vocab), tuple(texts))


def read_lexicon(path: Path) -> Read[Lexicon]:
    """A dictionary."""
    with warnings_kept() as texts:
        return Read(Lexicon.load(path), tuple(texts))


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


def add_warnings(texts: list[str], more: Iterator[str] | list[str] | tuple[str, ...]) -> None:
    """Add those that are new, until there are enough."""
    for text in more:
        if len(texts) < _MOST_WARNINGS and text not in texts:
            texts.append(text)
