from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwp.spaces.embeddings import Embeddings
from qwp.spaces.subwords import END_OF_SENTENCE, Shape, Subwords, hash_ngrams

ROWS = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)


def plain(word: str, shape: Shape) -> list[int]:
    """Hash every n-gram of "<word>" except "<" and ">" alone, as signed bytes, one by one."""
    marked = f"<{word}>"
    rows = []
    for begin in range(len(marked)):
        for size in range(shape.min_chars, shape.max_chars + 1):
            part = marked[begin : begin + size]
            if len(part) < size or size == 0 or (part in ("<", ">") and (begin == 0 or begin + size == len(marked))):
                continue
            number = 2166136261
            for byte in part.encode():
                number ^= (byte if byte < 128 else byte - 256) % 2**32
                number = number * 16777619 % 2**32
            rows.append(number % shape.buckets)
    return sorted(rows)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=9), min_size=1, max_size=5),
    st.integers(0, 4),
    st.integers(0, 5),
    st.integers(1, 2**31 - 1),
)
def test_ngrams_follow_the_definition(words: list[str], least: int, more: int, buckets: int) -> None:
    shape = Shape(least, least + more, buckets, 3)
    counts, rows = hash_ngrams(words, shape)
    assert counts.sum() == len(rows)
    for word, own in zip(words, np.split(rows, np.cumsum(counts)[:-1]), strict=True):
        assert sorted(own.tolist()) == ([] if word == END_OF_SENTENCE else plain(word, shape))


def test_a_vector_is_the_mean_of_its_rows_in_any_batch() -> None:
    shape = Shape(2, 3, 50, 3)
    subwords = Subwords(shape, ROWS)
    kept, vectors = subwords.vectors(["ab", END_OF_SENTENCE, "日本", ""])
    assert kept == [0, 2, 3]
    np.testing.assert_allclose(vectors[0], ROWS[plain("ab", shape)].mean(axis=0), rtol=1e-6)
    assert np.array_equal(subwords.vectors(["日本"])[1][0], vectors[1])
    assert subwords.vectors([])[1].shape == (0, 3)


def test_rows_are_opened_at_first_use() -> None:
    opened: list[int] = []

    def rows() -> np.ndarray:
        opened.append(1)
        return ROWS

    later = Subwords(Shape(2, 3, 50, 3), rows)
    assert later.n_bytes == 600
    assert opened == []
    assert later.sha256() == Subwords(Shape(2, 3, 50, 3), ROWS).sha256()
    assert later.sha256() != Subwords(Shape(2, 4, 50, 3), ROWS).sha256()
    assert opened == [1]


def test_rows_that_are_not_finite_give_no_vector() -> None:
    broken = np.full((50, 3), np.nan, dtype=np.float32)
    assert Subwords(Shape(2, 3, 50, 3), broken).vectors(["ab"])[0] == []


def test_embeddings_compose_vectors_of_unknown_words() -> None:
    space = Embeddings(["a", "b"], np.eye(2, 3, dtype=np.float32), subwords=Subwords(Shape(2, 3, 50, 3), ROWS))
    assert "ab" not in space
    np.testing.assert_allclose(space["ab"], ROWS[plain("ab", Shape(2, 3, 50, 3))].mean(axis=0), rtol=1e-6)
    assert np.array_equal(space["a"], space.vectors[0])
    assert set(space.composed(["a", "ab", END_OF_SENTENCE])) == {"ab"}
    assert space.head(1).composed(["b"])
    assert space.named("x").subwords is space.subwords
    assert space.composed(["half \ud800"]) == {}
    with pytest.raises(KeyError, match="is not one of the 2 words"):
        space.with_subwords(None)["ab"]
