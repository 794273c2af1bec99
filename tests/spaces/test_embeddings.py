from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qwp.errors import InputError
from qwp.spaces.embeddings import Embeddings, LoadReport, disambiguated


def small() -> Embeddings:
    return Embeddings(["a", "b", "c"], np.array([[1, 2], [3, 4], [5, 6]], dtype=np.float32))


def test_lookup() -> None:
    found = small()
    assert (len(found), found.dim, found.name) == (3, 2, "embeddings")
    assert "b" in found
    assert "z" not in found
    assert found["b"].tolist() == [3, 4]
    assert found.index == {"a": 0, "b": 1, "c": 2}
    with pytest.raises(KeyError, match="'z' is not one of the 3 words"):
        found["z"]
    assert repr(found) == "Embeddings('embeddings', 3 words, 2 dimensions, float32)"
    many = Embeddings([f"w{i}" for i in range(1234)], np.ones((1234, 2), dtype="f4"))
    assert "1,234 words" in repr(many)


def test_head_shares_memory() -> None:
    found = small()
    assert found.head(2).words == ["a", "b"]
    assert np.shares_memory(found.head(2).vectors, found.vectors)
    assert found.head(9) is found
    with pytest.raises(InputError, match="n=0"):
        found.head(0)


@pytest.mark.parametrize(
    ("path", "name"), [("x/wiki.en.vec", "wiki.en"), ("a.vec.gz", "a"), ("plain", "plain"), ("b.npz", "b")]
)
def test_name_is_the_stem(path: str, name: str) -> None:
    report = LoadReport(path=path, format="text", n_words=1, dim=1)
    assert Embeddings(["a"], np.ones((1, 1)), report).name == name
    assert json.loads(json.dumps(report.to_dict()))["skipped_lines"] == []


def test_spaces_of_equal_names_are_disambiguated_by_their_paths() -> None:
    def made(path: str | None) -> Embeddings:
        report = None if path is None else LoadReport(path, "text", 1, 1)
        return Embeddings(["a"], np.ones((1, 1)), report)

    assert disambiguated([made("a/en.vec"), made("b/es.vec")]) == ["en", "es"]
    assert disambiguated([made("a/en.vec"), made("b/en.vec"), made("c/es.vec")]) == ["a/en.vec", "b/en.vec", "es"]
    assert disambiguated([made(None), made(None)]) == ["embeddings", "embeddings"]


@pytest.mark.parametrize(
    ("words", "vectors", "message"),
    [
        (["a"], np.ones(3), r"shape \(3,\), expected two dimensions"),
        (["a"], np.ones((2, 3)), "received 1 words and 2 vectors"),
        ([], np.ones((0, 3)), r"shape \(0, 3\), expected at least one word"),
        (["a"], np.ones((1, 0)), r"shape \(1, 0\)"),
        (["a", "b"], np.array([[1, 1], [1, np.nan]]), r"vector of 'b' \(row 1\) holds nan at position 1"),
        (["a", "b", "a"], np.ones((3, 1)), "'a' is in row 0 and again in row 2"),
        (["a"], np.ones((1, 1), dtype=complex), "complex128"),
        ("ab", np.ones((2, 1)), "received the string 'ab' as words"),
        (["a", 7], np.ones((2, 1)), r"word 1 is 7 \(int\)"),
    ],
)
def test_invalid_embeddings_are_refused(words: Any, vectors: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Embeddings(words, vectors)


@pytest.mark.parametrize(
    ("given_type", "kept"),
    [("f4", "f4"), ("f8", "f8"), ("f2", "f4"), ("i8", "f4"), (">f4", "f4"), (">f8", "f8")],
)
def test_number_types(given_type: str, kept: str) -> None:
    vectors = Embeddings(["a"], np.ones((1, 2), dtype=given_type)).vectors
    assert vectors.dtype == np.dtype(kept)
    assert vectors.dtype.isnative
    assert vectors.tolist() == [[1, 1]]


def test_subclasses_of_str_become_str() -> None:
    words = Embeddings(list(np.array(["a", "b"])), np.ones((2, 1))).words
    assert [type(word) for word in words] == [str, str]


def test_columns_first_arrays_are_accepted() -> None:
    found = Embeddings(["a", "b"], np.asfortranarray([[1.0, 2.0], [3.0, 4.0]]))
    assert found.vectors.flags.c_contiguous
    assert found["b"].tolist() == [3, 4]


def test_fingerprint_is_stable() -> None:
    # A constant: the next version must recognise files of this version.
    assert small().sha256() == small().sha256()
    assert small().sha256() == "24fd6f8a185d8f692ea4e8335ce824051c6f3294889f394cfbf92da2c1866c6d"


@given(st.integers(0, 2), st.integers(0, 1))
def test_the_fingerprint_depends_on_every_value(row: int, column: int) -> None:
    original = small()
    vectors = original.vectors.copy()
    vectors[row, column] += 1
    words = list(original.words)
    words[row] += "x"
    others = [
        Embeddings(original.words, vectors),
        Embeddings(words, original.vectors),
        Embeddings(original.words, original.vectors.astype(np.float64)),
        original.head(2),
    ]
    assert len({original.sha256(), *(other.sha256() for other in others)}) == 5


def test_the_fingerprint_depends_on_word_boundaries() -> None:
    vectors = np.ones((2, 1), dtype=np.float32)
    assert Embeddings(["ab", "c"], vectors).sha256() != Embeddings(["a", "bc"], vectors).sha256()


@pytest.mark.parametrize("word", ["\ud800", "a\udfffb"])
def test_half_a_surrogate_pair_is_refused(word: str) -> None:
    words = [f"w{i}" for i in range(2000)]
    with pytest.raises(InputError, match=r"\(row 1500\) holds half of a surrogate pair"):
        Embeddings([*words[:1500], word, *words[1501:]], np.ones((2000, 1)))
    # Halves in neighbouring words do not form a pair.
    with pytest.raises(InputError, match=r"row 0"):
        Embeddings(["\ud83d", "\ude00"], np.ones((2, 1)))


@pytest.mark.parametrize(
    ("words", "vectors", "message"),
    [
        (5, np.ones((1, 1)), "received int as words"),
        (None, np.ones((1, 1)), "received NoneType as words"),
        (["a", "b"], [[1, 2], [3]], "received vectors that are not an array"),
        (["a"], None, r"shape \(\)"),
        (["a"], [["x"]], "expected real numbers"),
    ],
)
def test_arguments_of_another_type_are_refused(words: Any, vectors: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Embeddings(words, vectors)


def test_the_name_can_be_set_and_changed() -> None:
    plain = Embeddings(["a"], np.ones((1, 2), "f4"))
    assert plain.name == "embeddings"
    given = Embeddings(["a", "b"], np.ones((2, 2), "f4"), name="en")
    assert (given.name, given.head(1).name) == ("en", "en")
    other = given.named("es")
    assert (other.name, given.name, other.sha256()) == ("es", "en", given.sha256())
    assert other.vectors is given.vectors
    assert "'es', 2 words" in repr(other)


def test_a_notebook_shows_the_first_words() -> None:
    shown = Embeddings(["<a>", "b"], np.eye(2))._repr_html_()
    assert "&lt;a&gt;" in shown
    assert "1.000 0.000" in shown
