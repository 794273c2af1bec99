"""Files are restored exactly, or refused when they are written."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from qwp.errors import InputError
from qwp.spaces.embeddings import Embeddings
from qwp.spaces.io import load, save, sniff
from tests.spaces.jobs import items

OWN = {
    "x.vec": "text",
    "x.vec.gz": "text",
    "x.glove": "glove",
    "x.bin": "word2vec-binary",
    "x.npz": "npz",
    "x.safetensors": "safetensors",
    "x.npy": "npy",
    "x.fasttext": "fasttext",
}
ISOLATED = {
    "x.db": "sqlite",
    **({"x.parquet": "parquet", "x.arrow": "arrow"} if find_spec("pyarrow") else {}),
    **({"x.faiss": "faiss"} if find_spec("faiss") else {}),
}

# Words that are hard for formats: numbers, signs, byte-order marks, separators, line ends, magic bytes.
ODD = [
    "12",
    "-0",
    "=10",
    "1",
    "0",
    "1 2",
    "3 4 5",
    "nan",
    "-inf",
    "1e5",
    ".",
    "-",
    "\ufeff",
    "\ufeffa",
    "\r",
    "a\r",
    "a\rb",
]
ODD += [
    "\x85",
    "\u2028",
    "\u2029",
    "\u00a0",
    "\u3000",
    "\0",
    "a\0",
    "\0a",
    "\t",
    "a\tb",
    " a",
    "a ",
    "a b",
    "a  b",
    "at 8",
]
ODD += [
    "\n",
    "a\nb",
    "😀",
    "e\u0301",
    "é",
    "PK\x03\x04",
    "{",
    "{}",
    '"',
    "\\",
    "<html",
    "%PDF",
    "\x1f",
    "\x7f",
    "a 1\rb",
    "'",
    "b 1",
]

word = st.one_of(
    st.sampled_from(ODD),
    st.integers(-99, 9999).map(str),
    st.text("0123456789.+-eE \t\r\nabPK\0{}\ufeff\u2028", min_size=1, max_size=6),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5),
)
bits = st.one_of(
    st.integers(0, 2**32 - 1),
    # Numbers whose bytes are text: digits, blanks, line breaks.
    st.lists(st.sampled_from(b"0123456789.- \n\ra"), min_size=4, max_size=4).map(
        lambda some: int.from_bytes(bytes(some), "little")
    ),
)
number = st.one_of(
    st.sampled_from(
        [0.0, -0.0, 1.0, 1e-45, -1e-45, 1.1754944e-38, 3.4028235e38, -3.4028235e38, 0.1, 1e-5, 1e6, 16777216.0]
    ),
    st.floats(width=32, allow_nan=False, allow_infinity=False),
    bits.map(lambda value: float(np.array(value, dtype=np.uint32).view(np.float32))).filter(np.isfinite),
)


@st.composite
def spaces(draw: st.DrawFn) -> Embeddings:
    words = draw(st.lists(word, min_size=1, max_size=6, unique=True))
    dim = draw(st.integers(1, 4))
    rows = draw(st.lists(st.lists(number, min_size=dim, max_size=dim), min_size=len(words), max_size=len(words)))
    return Embeddings(words, np.array(rows, dtype=np.float32))


def one(words: list[str], *rows: list[float]) -> Embeddings:
    return Embeddings(words, np.array(rows, dtype=np.float32))


@pytest.mark.parametrize("name", OWN)
@settings(max_examples=80, deadline=None)
@given(spaces())
@example(one(["12"], [3.0]))
@example(one(["12", "-0"], [3.0], [4.0]))
@example(one(["=10", "7"], [0.0, -0.0], [1.0, 2.0]))
@example(one(["\ufeffa", "b"], [1.0], [2.0]))
@example(one(["a 1\rb"], [0.5]))
@example(one(["5"], [float(np.frombuffer(b"1234", dtype="<f4")[0])]))
def test_files_are_restored_exactly_or_refused(
    tmp_path_factory: pytest.TempPathFactory, name: str, original: Embeddings
) -> None:
    come_back_or_be_refused(tmp_path_factory.mktemp("trip") / name, original)


@pytest.mark.parametrize("name", ISOLATED)
@settings(max_examples=20, deadline=None)
@given(spaces())
@example(one(["\ufeffa", "b"], [1.0], [2.0]))
@example(one(["a\0b", "b"], [1.0], [2.0]))
def test_files_of_other_writers_are_restored_exactly_or_refused(
    tmp_path_factory: pytest.TempPathFactory, name: str, original: Embeddings
) -> None:
    """Read in this process with the readers of the child process."""
    path = tmp_path_factory.mktemp("trip") / name
    try:
        save(original, path)
    except InputError:
        assert not path.exists()
        return
    assert sniff(path) == ISOLATED[name]
    words, vectors = items(path, ISOLATED[name])
    assert words == (None if name == "x.faiss" else original.words)
    assert vectors.view(np.uint32).tolist() == original.vectors.view(np.uint32).tolist()


def come_back_or_be_refused(path: Path, original: Embeddings) -> None:
    name = path.name
    try:
        save(original, path)
    except InputError:
        assert not path.exists()
        return
    assert sniff(path) == OWN[name]
    for format in (None, OWN[name]):
        found = load(path, format=format)
        assert found.words == original.words
        assert found.vectors.view(np.uint32).tolist() == original.vectors.view(np.uint32).tolist()
        assert found.report is not None
        assert (found.report.format, found.report.skipped, found.report.warnings) == (OWN[name], 0, ())


@pytest.mark.parametrize("name", OWN)
def test_ordinary_words_are_never_refused(tmp_path: object, name: str) -> None:
    """Digits, signs and punctuation are valid words, at any position and for any dimension."""
    from pathlib import Path

    assert isinstance(tmp_path, Path)
    words = [
        "12",
        "-0",
        "=10",
        "1",
        "0",
        "nan",
        "1e5",
        ".",
        "-",
        "{",
        '"',
        "<html",
        "%PDF",
        "é",
        "😀",
        "\u2028",
        "\x85",
        "a\rb",
    ]
    rng = np.random.default_rng(0)
    for dim in (1, 2, 50):
        for first in range(0, len(words), 3):
            some = words[first:] + words[:first]
            for vectors in (rng.normal(size=(len(some), dim)), np.zeros((len(some), dim)), np.ones((len(some), dim))):
                original = Embeddings(some, vectors.astype(np.float32))
                save(original, tmp_path / name)
                found = load(tmp_path / name)
                assert found.words == some
                assert np.array_equal(found.vectors, original.vectors)
