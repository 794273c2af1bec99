"""Small files in the form of the publishers, and a server for them."""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterator

import pytest

from qwp.downloads.catalogue import Item, item
from tests.downloads.server import Served, serving

WORDS, DIM = 300, 20


def vectors(words: int = WORDS, dim: int = DIM, seed: int = 0) -> bytes:
    """Return vectors as fastText writes them: trailing blanks on each line, some words with other kinds of blanks."""
    rng = random.Random(seed)
    lines = [f"{words} {dim}"]
    for number in range(words):
        word = f"w\u00a0{number}" if number % 50 == 0 else f"wórd{number}"
        lines.append(" ".join([word, *(f"{rng.uniform(-1, 1):.5f}" for _ in range(dim))]) + " ")
    return ("\n".join(lines) + "\n").encode()


def cut(data: bytes, words: int) -> bytes:
    """Return the expected content of a file shortened to its first words."""
    lines = data.split(b"\n")
    return b"\n".join([b"%d %d" % (words, DIM), *lines[1 : words + 1]]) + b"\n"


VECTORS = vectors()
PACKED = gzip.compress(VECTORS, mtime=0)
PAIRS = "".join(f"word{i}\tpalabra{i}\n" for i in range(500)).encode()
WIKI, CRAWL, MUSE = item("en"), item("crawl:en"), item("en-es")
FILES = {
    WIKI: VECTORS,
    CRAWL: PACKED,
    MUSE: PAIRS,
    item("en-es.train"): PAIRS[:3000].rpartition(b"\n")[0] + b"\n",
    item("en-es.test"): PAIRS[3000:].partition(b"\n")[2],
    item("es"): vectors(seed=1),
}


def expected(wanted: Item, max_words: int) -> bytes:
    """Return the content of an undisturbed download."""
    if wanted.source.kind == "pairs":
        return FILES[wanted]
    data = VECTORS if wanted in (WIKI, CRAWL) else FILES[wanted]
    return cut(data, min(WORDS, max_words))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with serving({f"/{each.remote}": data for each, data in FILES.items()}) as served:
        yield served
