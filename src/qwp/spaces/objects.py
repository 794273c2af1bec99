"""Convert Python objects to embeddings: DataFrames, gensim models, dicts, arrays, paths.

Objects are recognised by their attributes, so that no optional library is imported. Rows keep their order. Rows without
words, of an array or of a DataFrame with a RangeIndex, are named "src:0", "src:1", ... after their side, so that names
of two sides never match. Words have to be text. Row numbers of a filtered or shuffled DataFrame are refused, since they
would match the row numbers of another one.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from qwp.arrays import AnyFloats
from qwp.errors import InputError
from qwp.spaces import io
from qwp.spaces.child_readers import VECTOR_NAMES, WORD_NAMES
from qwp.spaces.embeddings import Embeddings
from qwp.spaces.subwords import Shape, Subwords

NUMBERS = "fiu"
"""NumPy's codes of real number types."""

Words: TypeAlias = "str | Iterable[str] | npt.NDArray[Any]"
Vectors: TypeAlias = "npt.ArrayLike | Iterable[npt.ArrayLike]"


def as_words(items: Words) -> list[str]:
    """Return a list of words from a word or a collection of words."""
    found = words_or_array(items)
    if isinstance(found, np.ndarray):
        raise InputError(
            f"received {_named(items)} of numbers as words, expected text: a word, or a list of words; vectors go into "
            "vectors=..."
        )
    return found


def as_array(items: Vectors, dim: int) -> npt.NDArray[Any]:
    """Return vectors (n, d) or a vector (d,) from any object that holds finite numbers. dim: the required d."""
    found = words_or_array(items)
    if not isinstance(found, np.ndarray):
        raise InputError(f"received words ({reprlib.repr(found)}) as vectors, expected numbers ({dim},) or (n, {dim})")
    return checked_array(found, dim)


def checked_array(vectors: npt.NDArray[Any], dim: int) -> npt.NDArray[Any]:
    """Return the vectors if they are finite and have `dim` dimensions; raise an InputError otherwise."""
    if vectors.ndim not in (1, 2) or vectors.shape[-1] != dim:
        raise InputError(f"vectors have shape {vectors.shape}; expected (n, {dim}) or ({dim},)")
    if not np.isfinite(vectors).all():
        raise InputError("vectors hold NaN or infinite entries; expected finite numbers")
    return vectors


def words_or_array(items: Any) -> list[str] | npt.NDArray[Any]:
    """Return a list of words or an array of numbers; an empty collection is an empty list of words."""
    if isinstance(items, str):
        return [str(items)]
    given = items.to_numpy() if hasattr(items, "to_numpy") else items  # columns, indexes and DataFrames
    if isinstance(given, (bytes, Mapping)) or not isinstance(given, Iterable):
        raise InputError(f"received {_named(items)}, expected words, or vectors (n, d) or (d,)")
    if not isinstance(given, np.ndarray) and not hasattr(given, "detach"):
        given = list(given)
        texts = [isinstance(item, str) for item in given]
        if all(texts):
            return [str(item) for item in given]
        if any(texts):
            raise _mixed(items, given[texts.index(False)])
    found = host_array(given)
    if found is None:
        raise InputError(f"received {_named(items)} of uneven shape, expected words, or vectors (n, d) or (d,)")
    if found.dtype.kind in NUMBERS:
        return found
    words: list[Any] = np.atleast_1d(found).tolist()
    others = [word for word in words if not isinstance(word, str)]
    if others:
        raise _mixed(items, others[0])
    return words


def host_array(given: Any) -> npt.NDArray[Any] | None:
    """Return lists of numbers, or an array of any library, as a NumPy array; None for other objects."""
    if hasattr(given, "detach") and hasattr(given, "cpu"):  # a torch tensor may be on a GPU or require gradients
        given = given.detach().cpu()
    try:
        return np.asarray(given)
    except (TypeError, ValueError, RuntimeError):  # rows of different lengths, or objects that are not arrays
        return None


def with_article(given: object) -> str:
    """Return the type of an object with its article, for a message."""
    kind = type(given).__name__
    return f"{'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind}"


def _named(items: object) -> str:
    if isinstance(items, np.ndarray):
        return f"an array of shape {items.shape} and type {items.dtype}"
    short = isinstance(items, (int, float, bytes)) or items is None
    return f"{items!r} ({type(items).__name__})" if short else with_article(items)


def _mixed(items: object, other: object) -> InputError:
    return InputError(
        f"received {_named(items)} that holds {reprlib.repr(other)} ({type(other).__name__}), expected words, all "
        "of them text, or vectors (n, d) or (d,)"
    )


EXPECTED = (
    "Embeddings, the path of a file, numbers (n, d), a DataFrame (words as its index or as its only column of text, "
    "and numbers or one column of lists), gensim KeyedVectors, a dict of words to vectors, or a pair (words, numbers)"
)


class Frame(Protocol):
    """A DataFrame of pandas or polars."""

    @property
    def columns(self) -> Any:
        """Names of the columns."""
        ...

    def to_numpy(self) -> Any:
        """Return the content as an array."""
        ...


class KeyedVectors(Protocol):
    """KeyedVectors of gensim."""

    @property
    def index_to_key(self) -> Any:
        """Words."""
        ...

    @property
    def vectors(self) -> Any:
        """Vectors (n, d)."""
        ...


class Model(Protocol):
    """A Word2Vec or FastText model of gensim."""

    @property
    def wv(self) -> Any:
        """KeyedVectors of the model."""
        ...


Space: TypeAlias = (
    "Embeddings | AnyFloats | str | PathLike[str] | Frame | KeyedVectors | Model | Mapping[str, npt.ArrayLike] "
    "| tuple[Sequence[str], npt.ArrayLike] | Sequence[npt.ArrayLike]"
)


def as_embeddings(space: Space, name: str) -> Embeddings:
    """Return embeddings from any accepted object. name: the side, which becomes the name of the embeddings."""
    if isinstance(space, Embeddings):
        return space
    if isinstance(space, (str, PathLike)):
        return io.load(space, label=name)
    words, vectors = _parts(space, name)
    numbers = _as_numbers(vectors, space, name)
    if words is None:
        words = [f"{name}:{row}" for row in range(len(numbers))]
    try:
        found = Embeddings([_as_word(word, row) for row, word in enumerate(words)], numbers, name=name)
        return found.with_subwords(_subwords(getattr(space, "wv", space), found.dim))
    except InputError as error:
        raise InputError(f"{name}: {error}") from error


def _parts(given: Any, name: str) -> tuple[Any, Any]:
    """Return words and vectors, unchecked; words are None if the object has none."""
    # DataFrames first: the columns of a pandas DataFrame are attributes, and may be called "wv" or "vectors".
    if hasattr(given, "columns") and hasattr(given, "to_numpy"):
        return _frame_parts(given, name)
    given = getattr(given, "wv", given)
    if hasattr(given, "index_to_key") and hasattr(given, "vectors"):
        return given.index_to_key, given.vectors
    if isinstance(given, Mapping):
        return _mapping_parts(given, name)
    if isinstance(given, tuple) and len(given) == 2 and _are_words(given[0]):
        return given
    return None, given


def _subwords(given: Any, dim: int) -> Subwords | None:
    """Return the rows of n-grams of gensim's FastTextKeyedVectors; None for other objects."""
    least, most, buckets, rows = (getattr(given, name, None) for name in ("min_n", "max_n", "bucket", "vectors_ngrams"))
    if not (isinstance(least, int) and isinstance(most, int) and isinstance(buckets, int)):
        return None
    if not isinstance(rows, np.ndarray) or rows.shape != (buckets, dim) or rows.dtype.kind != "f":
        return None
    return Subwords(Shape(least, most, buckets, dim), rows) if buckets > 0 and 0 <= least <= most > 0 else None


def _as_word(word: object, row: int) -> str:
    if not isinstance(word, str):
        raise InputError(
            f"received {reprlib.repr(word)} ({type(word).__name__}) as the word of row {row}, expected text: pass the "
            "words as strings, or the numbers alone as an array"
        )
    return word


def _as_numbers(vectors: Any, given: object, name: str) -> AnyFloats:
    """Return vectors (n, d) as an array of real numbers. given: the object of the user, for the message."""
    found = host_array(vectors)
    if found is None or found.ndim == 0:
        raise InputError(f"{name} is {with_article(given)}, not an array of numbers; expected {EXPECTED}")
    if found.ndim != 2 or found.dtype.kind not in NUMBERS:
        what = f"an array of shape {found.shape} and type {found.dtype}"
        if not isinstance(given, np.ndarray):
            what = f"{with_article(given)} that reads as {what}"
        raise InputError(f"{name} is {what}; expected {EXPECTED}")
    return found if found.dtype in (np.float32, np.float64) else found.astype(np.float32)


def _mapping_parts(given: Mapping[Any, Any], name: str) -> tuple[list[Any], list[Any]]:
    widths = [(word, len(vector)) for word, vector in given.items() if hasattr(vector, "__len__")]
    for word, width in widths:
        if width != widths[0][1]:
            raise InputError(
                f"{name}: the vector of {word!r} has {width} numbers, that of {widths[0][0]!r} has {widths[0][1]}; "
                "expected the same number for all words"
            )
    return list(given), list(given.values())


def _are_words(given: object) -> bool:
    """Return whether an object is a collection of words, and not a row of numbers or a single word."""
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        return False
    return isinstance(next(iter(given), None), str)


def _frame_parts(frame: Any, name: str) -> tuple[Any, Any]:
    """Return words and vectors of a DataFrame of pandas, or of polars, which has no index."""
    index = getattr(frame, "index", None)
    lists = [column for column in frame.columns if _begins_with(frame[column], _is_list)]
    if lists:
        return _list_column_parts(frame, lists, name)
    if index is not None and not _is_range(index):
        return index, _frame_numbers(frame, name)
    if index is not None and _is_numeric(frame.to_numpy()):
        return None, frame.to_numpy()
    texts = [column for column in frame.columns if not _is_numeric(np.asarray(frame[column]))]
    if not texts:
        return None, _frame_numbers(frame, name)
    others = [column for column in frame.columns if column != texts[0]]
    if len(texts) > 1 or not others:
        listed = ", ".join(repr(column) for column in texts[:5])
        raise InputError(
            f"{name} is {with_article(frame)} with {len(texts)} columns that are not numbers ({listed}) and "
            f"{len(frame.columns) - len(texts)} that are; expected one column of words and numbers in all others"
        )
    return list(frame[texts[0]]), _frame_numbers(frame[others], name)


def _list_column_parts(frame: Any, lists: list[Any], name: str) -> tuple[Any, Any]:
    """Return words and vectors of a DataFrame with columns of lists, chosen as in Parquet files."""
    vectors = _usual_column(lists, VECTOR_NAMES, "lists", name)
    texts = [column for column in frame.columns if _begins_with(frame[column], lambda value: isinstance(value, str))]
    index = getattr(frame, "index", None)
    if index is not None and not _is_range(index):
        words = index
    else:
        words = frame[_usual_column(texts, WORD_NAMES, "text", name)] if texts else None
    rows = [np.asarray(row, dtype=np.float64) if _is_list(row) else np.empty(0) for row in frame[vectors]]
    uneven = [number for number, row in enumerate(rows) if row.shape != rows[0].shape]
    if uneven:
        raise InputError(
            f"{name}: row {uneven[0]} of the column {vectors!r} has the shape {rows[uneven[0]].shape}, expected "
            f"{rows[0].shape} as in row 0"
        )
    return words if words is None else list(words), np.stack(rows).astype(np.float32)


def _usual_column(candidates: list[Any], usual: Sequence[str], what: str, name: str) -> Any:
    """Return the only candidate, or else the one with a usual name."""
    named = candidates if len(candidates) == 1 else [column for column in usual if column in candidates]
    if not named:
        listed = ", ".join(repr(column) for column in candidates[:5])
        raise InputError(
            f"{name} has {len(candidates)} columns of {what} ({listed}), expected one, or one that is called "
            f"{usual[0]!r}: select the columns"
        )
    return named[0]


def _begins_with(column: Any, is_kind: Callable[[Any], bool]) -> bool:
    """Return whether the first value of a column is of a kind."""
    return is_kind(next(iter(column), None))


def _is_list(value: object) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, (str, bytes, Mapping))


def _is_range(index: Any) -> bool:
    """Return whether an index of pandas is a plain range, so that the rows have no names."""
    return isinstance(index, range) or type(index).__name__ == "RangeIndex"


def _is_numeric(values: npt.NDArray[Any]) -> bool:
    return values.dtype.kind in NUMBERS


def _frame_numbers(frame: Any, name: str) -> npt.NDArray[Any]:
    values = np.asarray(frame.to_numpy())
    if _is_numeric(values):
        return values
    others = [column for column in frame.columns if getattr(frame[column].dtype, "kind", "O") not in NUMBERS]
    if others:
        raise InputError(
            f"{name} is {with_article(frame)} whose column {others[0]!r} does not hold numbers; expected one numeric "
            "column per dimension, and words as its index or as its only text column"
        )
    # Nullable numbers of pandas are objects to NumPy. A missing one becomes NaN, which is refused later.
    return np.asarray(frame.to_numpy(dtype="float64", na_value=np.nan))
