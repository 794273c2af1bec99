"""Conversion of Python objects to words and vectors."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import qwp
from qwp import Embeddings, InputError
from qwp.spaces import io
from qwp.spaces.objects import EXPECTED, as_array, as_embeddings, as_words, words_or_array
from tests.conftest import planted_embeddings
from tests.libraries import assert_same

WORDS = ["casa", "perro", "agua"]
VECTORS = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], dtype="f4")


def assert_read(space: Any, dtype: str = "float32") -> None:
    """Assert that the embeddings have the words and vectors above, in order."""
    found = as_embeddings(space, "src")
    assert found.words == WORDS
    assert all(type(word) is str for word in found.words)
    assert_same(found.vectors, VECTORS)
    assert found.vectors.dtype == dtype


def assert_bare(make: Callable[[], Any]) -> None:
    """Assert that the embeddings have the vectors above, with names made of side and number."""
    found, other = as_embeddings(make(), "src"), as_embeddings(make(), "tgt")
    assert found.words == ["src:0", "src:1", "src:2"]
    assert found.name == "src"
    assert not set(found.words) & set(other.words)
    assert_same(found.vectors, VECTORS)


# --------------------------------------------------------------------------- Embeddings, paths, arrays


def test_embeddings_are_returned_unchanged() -> None:
    src, _ = planted_embeddings(20)
    assert as_embeddings(src, "src") is src


@pytest.mark.parametrize("kind", [str, Path])
def test_a_path_is_read(kind: Any, tmp_path: Path) -> None:
    src, _ = planted_embeddings(20)
    io.save(src, tmp_path / "src.npz")
    found = as_embeddings(kind(tmp_path / "src.npz"), "src")
    assert list(found.words) == list(src.words)
    assert_same(found.vectors, src.vectors)


@pytest.mark.parametrize("dtype", ["int64", "uint8", "float16", "float32", "float64"])
def test_rows_of_an_array_are_named_by_side_and_number(dtype: str) -> None:
    x = np.arange(12).reshape(4, 3).astype(dtype)
    found = as_embeddings(x, "src")
    assert list(found.words) == ["src:0", "src:1", "src:2", "src:3"]
    # Generated names must not match.
    assert not set(found.words) & set(as_embeddings(x, "tgt").words)
    assert_same(found.vectors, x)
    assert found.vectors.dtype == ("float64" if dtype == "float64" else "float32")


@pytest.mark.parametrize(
    "make",
    [
        VECTORS.tolist,
        lambda: list(VECTORS),
        lambda: tuple(VECTORS),
        lambda: [tuple(row) for row in VECTORS.tolist()],
        lambda: ((1, 2), [3, 4], (5, 6)),
    ],
    ids=["lists", "list of arrays", "tuple of arrays", "list of tuples", "whole numbers"],
)
def test_lists_of_numbers_are_arrays_without_words(make: Callable[[], Any]) -> None:
    assert_bare(make)


def test_a_tuple_of_two_rows_is_not_a_pair_of_words_and_array() -> None:
    assert as_embeddings(([1.0, 2.0], [3.0, 4.0]), "src").words == ["src:0", "src:1"]


def test_tensors_are_arrays() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    assert_bare(lambda: torch.tensor(VECTORS))
    assert_bare(lambda: torch.tensor(VECTORS, requires_grad=True))
    assert_read((WORDS, torch.tensor(VECTORS)))


@pytest.mark.parametrize(
    "x", [np.ones(5), np.ones((2, 3, 4)), np.array([["a", "b"]]), np.ones((2, 2), dtype=complex), np.ones((2, 2), "?")]
)
def test_other_arrays_are_refused(x: Any) -> None:
    with pytest.raises(InputError, match=r"tgt is an array of shape \(.*\) and type \S+; expected Embeddings, "):
        as_embeddings(x, "tgt")


@pytest.mark.parametrize(
    ("space", "received"),
    [
        (None, "src is a NoneType, not an array of numbers"),
        (7, "src is an int, not an array of numbers"),
        (object(), "src is an object, not an array of numbers"),
        ({1, 2}, "src is a set, not an array of numbers"),
        ([[1, 2], [3]], "src is a list, not an array of numbers"),
        (["casa", "perro"], r"src is a list that reads as an array of shape \(2,\) and type <U5"),
        ((VECTORS, WORDS), "src is a tuple, not an array of numbers"),
        ((range(3), VECTORS), "src is a tuple, not an array of numbers"),
        ((WORDS, [1.0, 2.0, 3.0]), r"src is a tuple that reads as an array of shape \(3,\) and type float64"),
        (b"en.vec", "src is a bytes, not an array of numbers"),
        ({}, r"src is a dict that reads as an array of shape \(0,\) and type float64"),
        ({"a": "b"}, r"src is a dict that reads as an array of shape \(1,\) and type <U1"),
        ({"a": 1.0}, r"src is a dict that reads as an array of shape \(1,\) and type float64"),
    ],
)
def test_unsupported_objects_are_named_with_the_expected_types(space: Any, received: str) -> None:
    with pytest.raises(InputError, match=f"^{received}; expected ") as caught:
        as_embeddings(space, "src")
    assert str(caught.value).endswith(EXPECTED)
    assert "\n" not in str(caught.value)


def test_bad_inputs_are_refused_by_align() -> None:
    src, tgt = planted_embeddings(50)
    with pytest.raises(InputError, match=r"tgt is an array of shape \(2,\)"):
        qwp.align(src, np.array(["a", "b"]))
    with pytest.raises(InputError, match="finite"):
        qwp.align(src, np.full((50, 12), np.nan))
    with pytest.raises(InputError, match="does not exist"):
        qwp.align("nowhere.vec", tgt)


@pytest.mark.parametrize(
    "options", [{"method": "identical"}, {"start": "identical"}, {"method": "self-learning", "start": "identical"}]
)
def test_names_of_unnamed_rows_never_match(options: dict[str, Any]) -> None:
    src, tgt = (side.vectors for side in planted_embeddings(60))
    with pytest.raises(InputError, match="identical strings: no pair is covered by the two vocabularies"):
        qwp.align(src, tgt, **options)


# --------------------------------------------------------------------------- pairs and dicts


@pytest.mark.parametrize("words", [WORDS, tuple(WORDS), np.array(WORDS), np.array(WORDS, dtype=object)])
def test_a_pair_of_words_and_array(words: Any) -> None:
    assert_read((words, VECTORS))
    assert_read((words, VECTORS.tolist()), "float64")


def test_a_pair_of_different_lengths_is_explained() -> None:
    with pytest.raises(InputError, match="src: received 2 words and 3 vectors, expected one vector for each word"):
        as_embeddings((WORDS[:2], VECTORS), "src")


@pytest.mark.parametrize("kind", [dict, UserDict])
def test_a_dict_of_vectors(kind: Any) -> None:
    assert_read(kind(zip(WORDS, VECTORS, strict=True)))
    assert_read(kind(zip(WORDS, VECTORS.tolist(), strict=True)), "float64")


def test_a_dict_with_vectors_of_different_lengths_names_the_word() -> None:
    with pytest.raises(InputError, match="src: the vector of 'b' has 3 numbers, that of 'a' has 2; expected the same"):
        as_embeddings({"a": [1, 2], "b": [1, 2, 3]}, "src")


@pytest.mark.parametrize("word", [5, 1.5, None, ("a", "b"), b"a"])
def test_words_that_are_not_text_are_refused(word: Any) -> None:
    with pytest.raises(InputError, match=r"src: received .* as the word of row 1, expected text: pass the"):
        as_embeddings({"a": [1.0, 2.0], word: [3.0, 4.0]}, "src")


def test_duplicate_words_are_refused() -> None:
    with pytest.raises(InputError, match="tgt: the word 'a' is in row 0 and again in row 2"):
        as_embeddings((["a", "b", "a"], VECTORS), "tgt")


# --------------------------------------------------------------------------- gensim


def test_objects_with_the_attributes_of_gensim_are_read() -> None:
    assert_read(SimpleNamespace(index_to_key=WORDS, vectors=VECTORS))
    assert_read(SimpleNamespace(wv=SimpleNamespace(index_to_key=WORDS, vectors=VECTORS)))


def test_keyed_vectors_and_models_of_gensim() -> None:
    models = pytest.importorskip("gensim.models", reason="gensim is not installed")
    keyed = models.KeyedVectors(2)
    keyed.add_vectors(WORDS, VECTORS)
    assert_read(keyed)
    sentences = [["a", "b", "c", "a"], ["a", "b"]]
    for kind in (models.Word2Vec, models.FastText):
        model = kind(sentences, vector_size=4, min_count=1, epochs=1, workers=1)
        for given in (model, model.wv):
            found = as_embeddings(given, "src")
            assert found.words == ["a", "b", "c"], "most frequent first"
            assert_same(found["b"], model.wv["b"])


# --------------------------------------------------------------------------- DataFrames


@dataclass
class Column:
    """Stand-in for a column of a DataFrame."""

    values: np.ndarray

    @property
    def dtype(self) -> Any:
        return self.values.dtype

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.values

    def __iter__(self) -> Any:
        return iter(self.values.tolist())


class Frame:
    """The attributes of a DataFrame that qwp uses: with an index as in pandas, without one as in polars."""

    def __init__(self, columns: dict[str, Any], index: Any = None) -> None:
        self._columns = {name: np.asarray(values) for name, values in columns.items()}
        if index is not None:
            self.index = index

    @property
    def columns(self) -> list[str]:
        return [*self._columns]

    def __getitem__(self, name: Any) -> Any:
        if isinstance(name, list):
            return Frame({each: self._columns[each] for each in name})
        return Column(self._columns[name])

    def to_numpy(self, **options: Any) -> np.ndarray:
        kinds = {values.dtype.kind for values in self._columns.values()}
        kind = "float64" if options else object if kinds & set("OU") else "float32"
        return np.stack([values.astype(kind) for values in self._columns.values()], axis=1)


class RangeIndex:
    """Stand-in for the default index of pandas."""

    def __init__(self, n: int) -> None:
        self._range = range(n)

    def __iter__(self) -> Any:
        return iter(self._range)


X, Y = VECTORS.T
NUMBERS = {"x": X, "y": Y}


def test_words_of_a_pandas_frame_are_its_index() -> None:
    assert_read(Frame(NUMBERS, WORDS))


@pytest.mark.parametrize("index", [RangeIndex(3), range(3)])
def test_a_frame_with_a_range_index_has_no_words(index: Any) -> None:
    assert_bare(lambda: Frame(NUMBERS, index))


@pytest.mark.parametrize("index", [RangeIndex(3), None])
@pytest.mark.parametrize("at", [0, 2])
def test_the_only_column_of_text_is_the_words(index: Any, at: int) -> None:
    columns = [*NUMBERS.items()]
    columns.insert(at, ("word", np.array(WORDS, dtype=object)))
    assert_read(Frame(dict(columns), index))


def test_a_frame_of_polars_without_text_has_no_words() -> None:
    assert_bare(lambda: Frame(NUMBERS))


def test_row_numbers_of_a_filtered_frame_are_refused() -> None:
    with pytest.raises(InputError, match=r"src: received 7 \(int\) as the word of row 0, expected text"):
        as_embeddings(Frame(NUMBERS, [7, 2, 5]), "src")


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (
            Frame({"word": WORDS, "language": ["es"] * 3, **NUMBERS}),
            r"src is a Frame with 2 columns that are not numbers \('word', 'language'\) and 2 that are; expected one",
        ),
        (Frame({"word": WORDS}), r"src is a Frame with 1 columns that are not numbers \('word'\) and 0 that are"),
        (Frame({**NUMBERS, "note": WORDS}, WORDS), "src is a Frame whose column 'note' does not hold numbers"),
    ],
)
def test_unsupported_frames_are_explained(frame: Frame, message: str) -> None:
    with pytest.raises(InputError, match=message):
        as_embeddings(frame, "src")


def listed(rows: Any) -> np.ndarray:
    """A column of lists."""
    column = np.empty(len(rows), dtype=object)
    column[:] = [list(row) for row in rows]
    return column


def test_a_column_of_lists_holds_the_vectors_as_in_parquet() -> None:
    lists = listed(VECTORS.tolist())
    assert_read(Frame({"word": WORDS, "embedding": lists, "year": [1, 2, 3]}, RangeIndex(3)))
    assert_read(Frame({"note": ["x"] * 3, "text": WORDS, "embedding": lists, "tags": listed([[1]] * 3)}))
    assert_read(Frame({"embedding": lists}, WORDS))
    assert_bare(lambda: Frame({"id": [4, 5, 6], "embedding": lists}))
    with pytest.raises(InputError, match=r"src: row 1 of the column 'embedding' has the shape \(1,\), expected \(2,\)"):
        as_embeddings(Frame({"embedding": listed([[1, 2], [3], [4, 5]])}), "src")
    with pytest.raises(InputError, match=r"src has 2 columns of text \('a', 'b'\), expected one"):
        as_embeddings(Frame({"a": WORDS, "b": WORDS, "embedding": lists}), "src")


def test_nullable_numbers_are_read() -> None:
    class Nullable(Frame):
        """Numbers that NumPy sees as objects."""

        def to_numpy(self, **options: Any) -> np.ndarray:
            return super().to_numpy(**options).astype("float64" if options else object)

    assert_read(Nullable(NUMBERS, WORDS), "float64")


def test_frames_of_pandas() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    assert_read(pandas.DataFrame(VECTORS, index=WORDS))
    assert_read(pandas.DataFrame(VECTORS, index=WORDS, columns=["wv", "vectors"]))
    assert_bare(lambda: pandas.DataFrame(VECTORS))
    with_words = pandas.DataFrame(VECTORS)
    with_words.insert(0, "word", WORDS)
    assert_read(with_words)
    assert_read(pandas.DataFrame(VECTORS, index=WORDS).astype("Float64"), "float64")
    assert_read(pandas.DataFrame({"word": WORDS, "embedding": VECTORS.tolist()}))
    with pytest.raises(InputError, match="as the word of row 0, expected text"):
        as_embeddings(pandas.DataFrame(VECTORS).iloc[[2, 0, 1]], "src")


def test_frames_of_polars() -> None:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    assert_read(polars.DataFrame({"word": WORDS, "x": X, "y": Y}))
    assert_bare(lambda: polars.DataFrame({"x": X, "y": Y}))
    assert_read(polars.DataFrame({"word": WORDS, "embedding": VECTORS.tolist()}))


# --------------------------------------------------------------------------- alignment


@pytest.mark.slow
def test_every_type_of_input_gives_the_same_alignment() -> None:
    src, tgt = planted_embeddings(60)
    expected = qwp.align(src, tgt, method="procrustes", lexicon={f"s{i}": f"t{i}" for i in range(30)}, threads=1)
    kinds: list[Callable[[Embeddings], Any]] = [
        lambda space: (space.words, space.vectors),
        lambda space: dict(zip(space.words, space.vectors, strict=True)),
        lambda space: SimpleNamespace(index_to_key=space.words, vectors=space.vectors),
        lambda space: Frame(dict(zip("abcdefghijkl", space.vectors.T, strict=True)), space.words),
    ]
    for kind in kinds:
        lexicon = [(f"s{i}", f"t{i}") for i in range(30)]
        found = qwp.align(kind(src), kind(tgt), method="procrustes", lexicon=lexicon, threads=1)
        assert_same(found.src_map, expected.src_map)
        assert found.provenance.src.sha256 == expected.provenance.src.sha256


LISTED = ["house", "water"]


class Series:
    """The attributes of a column that qwp uses."""

    def __init__(self, values: Any) -> None:
        self._values = np.asarray(values)

    def to_numpy(self) -> np.ndarray:
        return self._values


@pytest.mark.parametrize(
    "items",
    [
        LISTED,
        tuple(LISTED),
        iter(LISTED),
        dict.fromkeys(LISTED).keys(),
        np.array(LISTED),
        np.array(LISTED, dtype=object),
        Series(np.array(LISTED, dtype=object)),
        [np.str_(word) for word in LISTED],
    ],
)
def test_words(items: Any) -> None:
    found = as_words(items)
    assert found == LISTED
    assert all(type(word) is str for word in found)


def test_one_word() -> None:
    assert as_words("house") == as_words(np.array("house")) == as_words(np.str_("house")) == ["house"]
    assert words_or_array([]) == []


@pytest.mark.parametrize("make", [list, np.array, lambda rows: [np.array(row) for row in rows], Series])
@pytest.mark.parametrize("rows", [[[1.0, 2.0], [3.0, 4.0]], [1.0, 2.0]])
def test_vectors(make: Any, rows: Any) -> None:
    assert_same(as_array(make(rows), 2), np.array(rows))


def test_tensors() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    assert_same(as_array(torch.ones(3, 2, requires_grad=True), 2), np.ones((3, 2)))
    assert_same(as_array([torch.ones(2)], 2), np.ones((1, 2)))


@pytest.mark.parametrize(
    ("items", "message"),
    [
        (None, r"received None \(NoneType\), expected words, or vectors"),
        (5, r"received 5 \(int\), expected words"),
        (b"house", r"received b'house' \(bytes\), expected words"),
        ({"house": 1}, "received a dict, expected words"),
        (["house", 5], r"received a list that holds 5 \(int\), expected words, all of them text"),
        ([1.0, "house"], r"received a list that holds 1.0 \(float\), expected words"),
        ([["house"], ["water"]], r"received a list that holds \['house'\] \(list\), expected words"),
        ([[1.0, 2.0], [3.0]], "received a list of uneven shape, expected words, or vectors"),
        (np.array([None, "house"]), r"received an array of shape \(2,\) and type object that holds None \(NoneType\)"),
        (np.array([True]), r"that holds True \(bool\)"),
        (np.array([b"house"]), r"holds b'house' \(bytes\)"),
    ],
)
def test_other_objects_are_explained(items: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        words_or_array(items)
    assert "\n" not in str(caught.value)


def test_words_for_vectors_and_vectors_for_words_are_refused() -> None:
    with pytest.raises(InputError, match=r"shape \(2, 3\) and type float64 of numbers as words.*into vectors="):
        as_words(np.ones((2, 3)))
    with pytest.raises(InputError, match=r"words \(\['house'\]\) as vectors, expected numbers \(3,\) or \(n, 3\)"):
        as_array("house", 3)


@pytest.mark.parametrize("vectors", [np.ones(4), np.ones((2, 4)), np.ones((1, 2, 3)), np.array(1.0)])
def test_vectors_of_another_shape_are_refused(vectors: Any) -> None:
    with pytest.raises(InputError, match=r"vectors have shape \(.*\); expected \(n, 3\) or \(3,\)"):
        as_array(vectors, 3)
    with pytest.raises(InputError, match="NaN"):
        as_array([1.0, np.nan, 2.0], 3)
