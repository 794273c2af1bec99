"""Words or vectors that are asked about: one, or many in a list, a tuple, an array or a column of a frame."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from qwp.errors import InputError

NUMBERS = "fiu"
"""Kinds of arrays of real numbers, as NumPy names them."""

Words: TypeAlias = "str | Iterable[str] | npt.NDArray[Any]"
Vectors: TypeAlias = "npt.ArrayLike | Iterable[npt.ArrayLike]"


def as_words(items: Words) -> list[str]:
    """Words from a word, or from whatever holds words."""
    found = words_or_array(items)
    if isinstance(found, np.ndarray):
        raise InputError(
            f"received {_named(items)} of numbers as words, expected text: a word, or a list of words; vectors go into "
            "vectors=..."
        )
    return found


def as_array(items: Vectors, dim: int) -> npt.NDArray[Any]:
    """Vectors (n, d) or a vector (d,) from whatever holds finite numbers. dim: the d that is needed."""
    found = words_or_array(items)
    if not isinstance(found, np.ndarray):
        raise InputError(f"received words ({reprlib.repr(found)}) as vectors, expected numbers ({dim},) or (n, {dim})")
    return checked_array(found, dim)


def checked_array(vectors: npt.NDArray[Any], dim: int) -> npt.NDArray[Any]:
    """The vectors, if they are finite and have so many dimensions."""
    if vectors.ndim not in (1, 2) or vectors.shape[-1] != dim:
        raise InputError(f"vectors have shape {vectors.shape}; expected (n, {dim}) or ({dim},)")
    if not np.isfinite(vectors).all():
        raise InputError("vectors hold NaN or infinite entries; expected finite numbers")
    return vectors


def words_or_array(items: Any) -> list[str] | npt.NDArray[Any]:
    """A list of words or an array of numbers, whichever it is; nothing at all is a list of no words."""
    if isinstance(items, str):
        return [str(items)]
    given = items.to_numpy() if hasattr(items, "to_numpy") else items  # columns, indexes and frames
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
        raise InputError(f"received {_named(items)} of no one shape, expected words, or vectors (n, d) or (d,)")
    if found.dtype.kind in NUMBERS:
        return found
    words: list[Any] = np.atleast_1d(found).tolist()
    strange = [word for word in words if not isinstance(word, str)]
    if strange:
        raise _mixed(items, strange[0])
    return words


def host_array(given: Any) -> npt.NDArray[Any] | None:
    """Lists of numbers, or an array of any library, as NumPy in host memory; None for what is neither."""
    if hasattr(given, "detach") and hasattr(given, "cpu"):  # a tensor of torch: it may be on a GPU, or be learned
        given = given.detach().cpu()
    try:
        return np.asarray(given)
    except (TypeError, ValueError, RuntimeError):  # rows of different lengths, and what libraries say of the rest
        return None


def with_article(given: object) -> str:
    """The type of an object, for a message."""
    kind = type(given).__name__
    return f"{'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind}"


def _named(items: object) -> str:
    if isinstance(items, np.ndarray):
        return f"an array of shape {items.shape} and type {items.dtype}"
    shown = isinstance(items, (int, float, bytes)) or items is None
    return f"{items!r} ({type(items).__name__})" if shown else with_article(items)


def _mixed(items: object, strange: object) -> InputError:
    return InputError(
        f"received {_named(items)} that holds {reprlib.repr(strange)} ({type(strange).__name__}), expected words, all "
        "of them text, or vectors (n, d) or (d,)"
    )
