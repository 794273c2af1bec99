"""The English and Spanish vectors of the package, and their lexicon."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import resources
from pathlib import Path

from qwp.spaces import io
from qwp.spaces.embeddings import Embeddings
from qwp.spaces.lexicon import Lexicon


def load_demo() -> tuple[Embeddings, Embeddings, Lexicon]:
    """Load the packaged vectors and their lexicon. Their reports name the file without the path of the installation."""
    spaces = []
    for name in ("en.npz", "es.npz"):
        with _packaged(name) as path:
            space = io.load(path)
        assert space.report is not None
        spaces.append(replace(space, report=replace(space.report, path=name)))
    with _packaged("en-es.tsv") as path:
        return spaces[0], spaces[1], Lexicon.load(path, format="xling")


@contextmanager
def _packaged(name: str) -> Iterator[Path]:
    with resources.as_file(resources.files("qwp") / "data" / "demo" / name) as path:
        yield path
