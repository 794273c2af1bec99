"""fastText models, compared with gensim and byte by byte."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qwp.errors import InputError
from qwp.spaces.embeddings import Embeddings
from qwp.spaces.io import load, save, sniff, stream
from qwp.spaces.io.fasttext import MAGIC, ModelSettings, load_subwords, write_mapped
from tests.spaces import fasttext_models

gensim: Any = pytest.importorskip("gensim.models.fasttext")

UNKNOWN = ["zzz", "ab", "日本語", "x", "жжж😀", "eeé" * 9, "a b"]


def made(
    words: list[bytes] = [b"a", b"b"],  # noqa: B006
    *,
    version: int = 12,
    dim: int = 2,
    model: int = 2,
    buckets: int = 3,
    labels: int = 0,
    pruned: int = -1,
    quantized: bool = False,
    rows: int | None = None,
    kind: int = 0,
) -> bytes:
    """Return the bytes of a model with modified values."""
    settings = ModelSettings(dim, 5, 5, 1, 5, 1, 2, model, buckets, 2, 3, 100, 1e-4)
    n = len(words) + buckets if rows is None else rows
    numbers = np.arange(n * dim, dtype="<f4").tobytes()
    dictionary = b"".join(word + b"\0" + struct.pack("<qb", 7, kind) for word in words)
    counts = struct.pack("<3i2q", len(words), len(words) - labels, labels, 99, pruned)
    matrices = struct.pack("<?2q", quantized, n, dim) + numbers + struct.pack("<?2q", False, 0, dim)
    return MAGIC + struct.pack("<i", version) + settings.packed() + counts + dictionary + matrices


def test_vectors_of_known_and_unknown_words_equal_those_of_gensim(tmp_path: Path) -> None:
    path = fasttext_models.saved(tmp_path)
    theirs = gensim.load_facebook_vectors(str(path))
    found = load(path)
    assert sniff(path) == "fasttext"
    assert found.words == theirs.index_to_key
    assert np.abs(found.vectors - np.array([theirs[word] for word in found.words])).max() < 1e-5
    assert np.ptp(found.vectors) > 0.01
    for word in UNKNOWN:
        assert word not in found
        assert np.abs(found[word] - theirs[word]).max() < 1e-5


def test_models_are_read_partially_and_in_batches(tmp_path: Path) -> None:
    path = fasttext_models.saved(tmp_path)
    whole = load(path)
    first = load(path, max_vocab=7)
    assert first.words == whole.words[:7]
    assert np.array_equal(first.vectors, whole.vectors[:7])
    assert np.array_equal(first[whole.words[9]], load(path, max_vocab=7)[whole.words[9]])
    batches = list(stream(path, batch=9))
    assert np.array_equal(np.concatenate([batch.vectors for batch in batches]), whole.vectors)


@pytest.mark.parametrize("width", [10, 6])
def test_a_mapped_model_gives_mapped_vectors_in_gensim(tmp_path: Path, width: int) -> None:
    path, out = fasttext_models.saved(tmp_path), tmp_path / "mapped.bin"
    turn = np.random.default_rng(1).normal(size=(fasttext_models.DIM, width))
    done: list[int] = []
    original = load(path)
    assert write_mapped(path, out, turn, done.append) == len(original)
    assert sum(done) == len(original) + fasttext_models.BUCKETS
    theirs = gensim.load_facebook_model(str(out))
    for word in [*original.words, *UNKNOWN]:
        assert np.abs(theirs.wv[word] - original[word] @ turn).max() < 1e-5
    again = load(out)
    assert again.dim == width
    assert np.abs(again["zzz"] - original["zzz"] @ turn).max() < 1e-5


def test_a_map_preserves_products_of_inputs_and_outputs(tmp_path: Path) -> None:
    path, out = fasttext_models.saved(tmp_path), tmp_path / "mapped.bin"
    write_mapped(path, out, np.random.default_rng(2).normal(size=(fasttext_models.DIM, fasttext_models.DIM)))
    before, after = (gensim.load_facebook_model(str(name)) for name in (path, out))
    products = [model.wv.vectors @ model.syn1neg.T for model in (before, after)]
    assert np.abs(products[0]).max() > 1e-3
    np.testing.assert_allclose(products[1], products[0], atol=1e-4)


def test_vectors_without_subwords_become_a_model_of_whole_words(tmp_path: Path) -> None:
    space = Embeddings(["a", "b c", "日本"], np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32))
    save(space, tmp_path / "x.bin", format="fasttext")
    found = load(tmp_path / "x.bin")
    assert (found.words, found.subwords) == (space.words, None)
    assert np.array_equal(found.vectors, space.vectors)
    theirs = gensim.load_facebook_vectors(str(tmp_path / "x.bin"))
    assert np.array_equal(theirs.vectors, space.vectors)
    assert load_subwords(tmp_path / "x.bin") is None
    with pytest.raises(InputError, match="holds a NUL"):
        save(Embeddings(["a\0b"], space.vectors[:1]), tmp_path / "y.bin", format="fasttext")
    assert not (tmp_path / "y.bin").exists()


def test_the_end_of_sentence_has_no_ngrams(tmp_path: Path) -> None:
    """As in fastText; gensim gives it n-grams like any other word."""
    (tmp_path / "x.bin").write_bytes(made([b"</s>", b"a"]))
    assert load(tmp_path / "x.bin")["</s>"].tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (made(model=3), "is a supervised fastText model, a text classifier, expected a skipgram or cbow model"),
        (made(labels=1), "is a fastText model with 1 labels"),
        (made(pruned=0), "is a quantized fastText model .* expected the .bin it was made from"),
        (made(quantized=True), "is a quantized fastText model"),
        (made(version=13), "is a fastText model of version 13, expected 11 or 12"),
        (made(rows=4), r"its input matrix has the shape \(4, 2\), expected \(5, 2\)"),
        (made(dim=0), "it claims 0 dimensions"),
        (made(dim=1 << 20), "dimensions"),
        (made(buckets=-1), "-1 buckets"),
        (made(kind=1), "entry 1 is not a word"),
        (made()[:-5], "it ends within the output matrix"),
        (made()[:-30], "it ends within the input matrix of 40 bytes"),
        (made()[:80], "it ends within"),
        (made()[:98], "claims 2 words"),
        (made([b"x" * 70_000]), "word 1 of 1 has no end"),
        (made([b"\xff"]), "word 1 of .* has a word with broken characters"),
        (gzip.compress(made()), "is a gzip-compressed fastText model, expected an uncompressed one"),
    ],
)
def test_unsupported_and_damaged_models_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "x.bin").write_bytes(content)
    with pytest.raises(InputError, match=message):
        load(tmp_path / "x.bin")


def test_other_files_and_maps_of_other_shape_are_refused(tmp_path: Path) -> None:
    save(Embeddings(["a"], np.ones((1, 2), np.float32)), tmp_path / "x.vec")
    with pytest.raises(InputError, match="does not begin as a fastText model does"):
        load(tmp_path / "x.vec", format="fasttext")
    (tmp_path / "x.bin").write_bytes(made())
    with pytest.raises(InputError, match="has 2 dimensions, the map 3"):
        write_mapped(tmp_path / "x.bin", tmp_path / "y.bin", np.eye(3))
    assert not (tmp_path / "y.bin").exists()
    with pytest.raises(InputError, match="stores words as text: leave it out"):
        load(tmp_path / "x.bin", encoding="latin-1")


def test_damaged_words_can_be_skipped(tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(made([b"\xff", b"b"]))
    assert load(tmp_path / "x.bin", errors="skip").words == ["b"]
