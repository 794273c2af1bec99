"""A small fastText model, trained by gensim and saved as fastText saves its own."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

DIM, BUCKETS, MIN_CHARS, MAX_CHARS = 10, 300, 2, 5


@cache
def trained() -> Any:
    """Return a model of 80 words with characters of one to four bytes."""
    fasttext = pytest.importorskip("gensim.models.fasttext")
    rng = np.random.default_rng(0)
    letters = list("abcdeéñж日😀")
    words = sorted({"".join(rng.choice(letters, size=rng.integers(1, 8))) for _ in range(80)})
    sentences = [[str(word) for word in rng.choice(words, size=12)] for _ in range(200)]
    settings = {"vector_size": DIM, "bucket": BUCKETS, "min_n": MIN_CHARS, "max_n": MAX_CHARS}
    return fasttext.FastText(sentences, min_count=1, epochs=2, workers=1, seed=1, sg=1, **settings)


@cache
def _content(folder: Path) -> bytes:
    fasttext = pytest.importorskip("gensim.models.fasttext")
    fasttext.save_facebook_model(trained(), str(folder / "saved.bin"))
    return (folder / "saved.bin").read_bytes()


def saved(folder: Path, name: str = "model.bin") -> Path:
    """Return the path of the saved model."""
    path = folder / name
    path.write_bytes(_content(folder))
    return path
