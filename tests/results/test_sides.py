"""The two languages of an alignment and the space they share."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

from qwp import Alignment, Embeddings, InputError, align, arrays
from qwp.results.sides import AlignedSide, DeferredSpace
from qwp.spaces import normalization
from qwp.spaces.normalization import Normalization
from tests.problems import planted, rotation

SPACE = Embeddings([f"w{i}" for i in range(5)], np.arange(15, dtype="f4").reshape(5, 3) ** 1.5)


PLAIN = Normalization((), ())


def test_the_most_frequent_words_are_the_first_unless_an_order_was_estimated() -> None:
    side = AlignedSide(SPACE, None, PLAIN)
    np.testing.assert_array_equal(side.frequent(2), [0, 1])
    np.testing.assert_array_equal(side.frequent(9), range(5))
    ordered = replace(side, order=np.array([3, 1, 4, 0, 2]))
    np.testing.assert_array_equal(ordered.frequent(2), [3, 1])
    np.testing.assert_array_equal(ordered.frequent(9), [3, 1, 4, 0, 2])


def test_vectors_are_normalised_then_mapped() -> None:
    fitted, rows = normalization.fit(SPACE.vectors)
    turn = rotation(3, 0).astype("f4")
    side = AlignedSide(SPACE, turn, fitted)
    mapped = side.mapped(SPACE.vectors, arrays.HOST, "float32")
    np.testing.assert_allclose(np.asarray(mapped), np.asarray(rows) @ turn, atol=1e-6)
    np.testing.assert_array_equal(replace(side, map=None).mapped(SPACE.vectors, arrays.HOST, "float32"), rows)


def test_arrays_by_name() -> None:
    means = (np.zeros(3, "f4"), np.ones(3, "f4"))
    side = AlignedSide(SPACE, None, Normalization(("center", "unit", "center"), means))
    assert list(side.tensors()) == ["mean_0", "mean_1"]
    both = replace(side, map=rotation(3, 0).T, order=np.arange(5))
    assert set(both.tensors()) == {"mean_0", "mean_1", "map", "order"}
    assert all(tensor.flags.c_contiguous for tensor in both.tensors().values())


def test_deferred_vectors_are_read_once() -> None:
    calls = []

    def read() -> Embeddings:
        calls.append(1)
        return SPACE

    side = AlignedSide(DeferredSpace(read), None, PLAIN)
    assert (side.map, side.order, calls) == (None, None, [])
    assert side.space is side.space is SPACE
    assert replace(side, map=np.eye(3)).space is SPACE
    assert calls == [1]


@pytest.fixture(scope="module")
def alignment() -> Alignment:
    problem = planted(120, d=10, noise=0.0, shuffle=False, seed=0)
    src = Embeddings([f"s{i}" for i in range(120)], problem.src.astype(np.float32))
    tgt = Embeddings([f"t{i}" for i in range(120)], problem.tgt.astype(np.float32))
    pairs = [(f"s{i}", f"t{i}") for i in range(120)]
    return align(src, tgt, method="procrustes", lexicon=pairs, refine=0, verdict="none")


def test_similarity_is_the_cosine_in_the_common_space(alignment: Alignment) -> None:
    assert alignment.similarity("s7", "t7") == pytest.approx(1, abs=1e-4)
    src, tgt = alignment.transform("s7"), alignment.transform("t8", "tgt")
    expected = src @ tgt / np.linalg.norm(src) / np.linalg.norm(tgt)
    assert alignment.similarity("s7", "t8") == pytest.approx(float(expected), abs=1e-5)
    with pytest.raises(InputError, match="not among the 120 words"):
        alignment.similarity("s7", "s7")


def test_the_nearest_words_of_either_language(alignment: Alignment) -> None:
    nearest = alignment.most_similar("s7", 3)
    assert (nearest[0].word, nearest[0].side) == ("t7", "tgt")
    assert [each.similarity for each in nearest] == sorted((each.similarity for each in nearest), reverse=True)
    assert "s7" not in [each.word for each in alignment.most_similar("s7", 500)]
    assert len(alignment.most_similar("s7", 500)) == 239
    within = alignment.most_similar("s7", 5, within="src")
    assert {each.side for each in within} == {"src"}
    assert alignment.most_similar("t7", 1, side="tgt", within="src")[0].word == "s7"
    for wrong in ({"within": "all"}, {"side": "en"}):
        with pytest.raises(InputError, match="is not known"):
            alignment.most_similar("s7", **wrong)  # type: ignore[arg-type]


def test_keyed_vectors_equal_mapped_vectors(alignment: Alignment) -> None:
    pytest.importorskip("gensim")
    both = alignment.to_keyed_vectors()
    assert len(both) == 240
    assert both.most_similar("src:s7", topn=1)[0][0] == "tgt:t7"
    src = alignment.to_keyed_vectors("src")
    assert src.index_to_key == alignment.src.words
    # BLAS may round products of one row and of all rows differently.
    np.testing.assert_allclose(src["s7"], alignment.transform("s7"), atol=1e-6)
    np.testing.assert_allclose(alignment.to_keyed_vectors("tgt")["t7"], alignment.transform("t7", "tgt"), atol=1e-6)
    with pytest.raises(InputError, match="side='en' is not known"):
        alignment.to_keyed_vectors("en")


def test_missing_gensim_is_explained(alignment: Alignment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    with pytest.raises(InputError, match=r"need gensim, which cannot be imported .*: pip install gensim"):
        alignment.to_keyed_vectors()
