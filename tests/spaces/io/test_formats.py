from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwp.errors import InputError
from qwp.spaces.embeddings import Embeddings
from qwp.spaces.io import FORMATS, load, open_writer, save, sniff, stream

NAMES = {
    "x.vec": "text",
    "x.txt": "text",
    "x.vec.gz": "text",
    "x.glove": "glove",
    "x.glove.gz": "glove",
    "x.bin": "word2vec-binary",
    "x.bin.gz": "word2vec-binary",
    "x.npz": "npz",
    "x.safetensors": "safetensors",
}

word = st.text(st.characters(exclude_characters=" \t\n\0", exclude_categories=["Cs"]), min_size=1, max_size=6)
number = st.floats(width=32, allow_nan=False, allow_infinity=False)


@st.composite
def embeddings(draw: st.DrawFn) -> Embeddings:
    words = draw(st.lists(word, min_size=1, max_size=12, unique=True))
    dim = draw(st.integers(2, 6))
    rows = draw(st.lists(st.lists(number, min_size=dim, max_size=dim), min_size=len(words), max_size=len(words)))
    return Embeddings(words, np.array(rows, dtype=np.float32))


def bits(vectors: np.ndarray) -> list[list[int]]:
    listed: list[list[int]] = vectors.view(np.uint32).tolist()
    return listed


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=20)
@given(embeddings())
def test_what_is_written_comes_back(tmp_path_factory: pytest.TempPathFactory, name: str, original: Embeddings) -> None:
    path = tmp_path_factory.mktemp("io") / name
    save(original, path)
    found = load(path, format=NAMES[name])
    assert found.words == original.words
    assert bits(found.vectors) == bits(original.vectors)
    assert found.sha256() == original.sha256()


def sample(n: int = 40, dim: int = 8) -> Embeddings:
    vectors = np.random.default_rng(0).normal(size=(n, dim)).astype(np.float32)
    return Embeddings([f"wörd{i}" for i in range(n)], vectors)


@pytest.mark.parametrize("name", NAMES)
def test_sniff_goes_by_content(tmp_path: Path, name: str) -> None:
    save(sample(), tmp_path / name)
    assert sniff(tmp_path / name) == NAMES[name]
    # Only safetensors needs its name, to find the words.
    if NAMES[name] != "safetensors":
        (tmp_path / name).rename(tmp_path / "unnamed")
        assert sniff(tmp_path / "unnamed") == NAMES[name]
        assert load(tmp_path / "unnamed").sha256() == sample().sha256()


@pytest.mark.parametrize("name", NAMES)
def test_stream_and_max_vocab_in_every_format(tmp_path: Path, name: str) -> None:
    original = sample()
    save(original, tmp_path / name)
    batches = list(stream(tmp_path / name, batch=7, max_vocab=17))
    assert [len(batch) for batch in batches] == [7, 7, 3]
    assert [w for batch in batches for w in batch.words] == original.words[:17]
    assert np.array_equal(np.concatenate([batch.vectors for batch in batches]), original.vectors[:17])
    cut = load(tmp_path / name, max_vocab=17)
    assert cut.sha256() == original.head(17).sha256()
    assert cut.report is not None
    assert cut.report.complete is False


@pytest.mark.parametrize("name", NAMES)
def test_writing_in_pieces_gives_the_same_vectors(tmp_path: Path, name: str) -> None:
    original = sample()
    with open_writer(tmp_path / name, original.dim) as writer:
        for begin in range(0, 40, 9):
            writer.write(original.words[begin : begin + 9], original.vectors[begin : begin + 9])
    found = load(tmp_path / name)
    assert found.sha256() == original.sha256()
    assert found.report is not None
    assert found.report.warnings == ()


@pytest.mark.parametrize("name", NAMES)
def test_the_same_vectors_give_the_same_bytes(tmp_path: Path, name: str) -> None:
    save(sample(), tmp_path / name)
    first = (tmp_path / name).read_bytes()
    save(sample(), tmp_path / name)
    assert (tmp_path / name).read_bytes() == first


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_left_after_an_exception(tmp_path: Path, name: str, error: type[BaseException]) -> None:
    def interrupted() -> None:
        with open_writer(tmp_path / name, 8) as writer:
            writer.write(sample().words, sample().vectors)
            raise error

    with pytest.raises(error):
        interrupted()
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_count_is_refused(tmp_path: Path) -> None:
    for name in ("x.vec", "x.npz"):
        with (
            pytest.raises(InputError, match=r"1 words were written .* expected count=2"),
            open_writer(tmp_path / name, 1, count=2) as writer,
        ):
            writer.write(["a"], np.ones((1, 1)))
    with pytest.raises(InputError, match="no word was written"), open_writer(tmp_path / "x.vec", 1):
        pass
    assert list(tmp_path.iterdir()) == []


def test_rows_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    for words, vectors, message in (
        (["a"], np.ones((1, 3)), r"shape \(1, 3\), expected shape \(1, 2\)"),
        (["a", "b"], np.ones((1, 2)), r"received 2 words and vectors of shape \(1, 2\)"),
        (["a", "b"], np.array([[1, 1], [np.nan, 1]]), "vector of 'b' .* not finite"),
        (["a"], np.array([[1e39, 1]]), "not finite as float32"),
    ):
        with pytest.raises(InputError, match=message), open_writer(tmp_path / "x.vec", 2) as writer:
            writer.write(words, vectors)


def test_fasttext_models_are_named(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(struct.pack("<ii", 793712314, 12) + bytes(100))
    with pytest.raises(InputError, match=r"fastText model .* use the \.vec file"):
        load(path)


PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x01\x00 0.5 1\n"


@pytest.mark.parametrize(
    "content",
    [PNG, b"\0" * 50, b"just some words\nand more of them\n", b"\n\n", b'{"words": []}', b"\xff\xfe1\0"],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.vec"
    path.write_bytes(content)
    with pytest.raises(InputError, match="expected a vector file"):
        sniff(path)
    path.write_bytes(gzip.compress(content))
    with pytest.raises(InputError, match="expected a vector file"):
        load(path)


def test_missing_empty_and_directory(tmp_path: Path) -> None:
    (tmp_path / "empty.vec").touch()
    for name, message in (("no.vec", "does not exist"), (".", "is a directory"), ("empty.vec", "is empty")):
        with pytest.raises(InputError, match=message):
            load(tmp_path / name)


def test_text_after_a_header_is_told_from_binary(tmp_path: Path) -> None:
    path = tmp_path / "x"
    zeros = np.zeros(4, dtype="<f4").tobytes()
    for content, expected in (
        (b"1 4\nw " + zeros, "word2vec-binary"),
        (b"2 2\nnew york 1 2\nb 1 2\n", "text"),
        (b"2 5\na 1 2\nb 1 2\n", "text"),
        (b"1 2\ncaf\xe9 1 2\n", "text"),
        (b"1 3\ngarbage without numbers\n", "text"),
    ):
        path.write_bytes(content)
        assert sniff(path) == expected


def test_very_long_lines_are_recognised(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"a" + b" 0.1234567e-1" * 20_000 + b"\n")
    assert sniff(path) == "glove"
    assert load(path).dim == 20_000


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("x.foo", {}, r"'\.foo', expected one of \.vec/\.txt \(text\)"),
        ("x", {}, "no suffix"),
        ("x.npz.gz", {}, "asks for gzip, which npz does not use"),
        ("x.vec", {"format": "nope"}, "received format='nope', expected one of text, glove"),
        ("x.npz", {"digits": 4}, "received digits=4 for npz"),
        ("x.vec", {"digits": 13}, "received digits=13, expected 0 to 12"),
        ("no/x.vec", {}, "folder .* does not exist"),
    ],
)
def test_wrong_targets(tmp_path: Path, name: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        save(sample(), tmp_path / name, **options)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_vocab": 0}, "max_vocab=0"),
        ({"errors": "ignore"}, "errors='ignore', expected 'raise' or 'skip'"),
        ({"dtype": "float16"}, "dtype='float16'"),
        ({"format": "bin"}, "format='bin'"),
    ],
)
def test_wrong_options(tmp_path: Path, options: dict[str, object], message: str) -> None:
    save(sample(), tmp_path / "x.vec")
    with pytest.raises(InputError, match=message):
        load(tmp_path / "x.vec", **options)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="batch=0"):
        stream(tmp_path / "x.vec", batch=0)


def test_format_overrides_the_suffix(tmp_path: Path) -> None:
    save(sample(), tmp_path / "x.vec", format="word2vec-binary")
    assert sniff(tmp_path / "x.vec") == "word2vec-binary"
    assert set(NAMES.values()) == set(FORMATS)
