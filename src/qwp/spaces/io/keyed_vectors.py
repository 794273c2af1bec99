"""Vectors that gensim saved with `KeyedVectors.save` (`.kv`), read without trusting them.

The file is a pickle, and a pickle can run whatever it names. Here nothing that it names is run: the few classes that
vectors need have stand-ins, which hold data and do nothing; all other names, and all instructions of a pickle that
vectors do not need, are refused. Large arrays lie beside it as `.npy` files.
"""

from __future__ import annotations

import math
import pickle
import re
import struct
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from qwp.errors import InputError
from qwp.spaces.embeddings import FloatArray
from qwp.spaces.io.array_files import open_matrix
from qwp.spaces.io.damage import damage_explained
from qwp.spaces.io.reading import Reading, Rows, batch_rows, sound_rows
from qwp.spaces.io.sources import Source
from qwp.spaces.subwords import Shape, Subwords

_CONVERT = (
    "in gensim, load it and call save_word2vec_format(path, binary=True), of `.wv` if it is a model; or give the "
    "object itself to qwp.align"
)
_KINDS = re.compile(r"[<>=|]?f[248]")
_MAX_NAME = 60


class _Stored:
    """What was an object of gensim: its attributes."""

    def __setstate__(self, state: object) -> None:
        if not isinstance(state, dict) or not all(isinstance(name, str) for name in state):
            raise InputError("an object in it has no attributes by name")
        self.__dict__.update(state)


class _Kind:
    """What was a dtype of NumPy."""

    def __init__(self, name: object = "", *_: object) -> None:
        self.name = name
        self.order: object = "<"

    def __setstate__(self, state: object) -> None:
        self.order = state[1] if isinstance(state, tuple) and len(state) > 1 else "<"

    def dtype(self) -> np.dtype[Any]:
        name = f"{self.order if self.order in ('<', '>') else ''}{self.name}"
        if not _KINDS.fullmatch(name):
            raise InputError("an array in it does not hold numbers")
        return np.dtype(name)


class _Array:
    """What was an array of NumPy."""

    def __init__(self, *_: object) -> None:
        self.state: object = None

    def __setstate__(self, state: object) -> None:
        self.state = state

    def array(self) -> FloatArray:
        """The matrix (n, d)."""
        state = self.state
        if not isinstance(state, tuple) or len(state) != 5:
            raise InputError("an array in it has no content")
        _, shape, kind, fortran, data = state
        if not isinstance(kind, _Kind) or not isinstance(data, bytes) or not _is_shape(shape):
            raise InputError("an array in it has no content")
        dtype = kind.dtype()
        if math.prod(shape) * dtype.itemsize != len(data):
            raise InputError("an array in it has another size than it says")
        return np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")


def _is_shape(shape: object) -> bool:
    return isinstance(shape, tuple) and len(shape) == 2 and all(type(size) is int and size > 0 for size in shape)


def _encoded(text: object, encoding: object = "latin-1", *_: object) -> bytes:
    """How older pickles hold bytes."""
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise InputError("it holds bytes in a way that is not known")
    return text.encode("latin-1")


def _from_buffer(data: object, kind: object, shape: object, order: object = "C", *_: object) -> _Array:
    """How pickles of protocol 5 hold arrays."""
    made = _Array()
    made.state = (1, shape, kind, order == "F", data)
    return made


def _nothing(*_: object) -> None:
    """In the place of what vectors do not need."""


_CORES = ("numpy.core.multiarray", "numpy._core.multiarray")
_STAND_INS: dict[tuple[str, str], Any] = {
    **{
        ("gensim.models.keyedvectors", name): _Stored
        for name in ("KeyedVectors", "EuclideanKeyedVectors", "Word2VecKeyedVectors", "WordEmbeddingsKeyedVectors")
    },
    ("gensim.models.fasttext", "FastTextKeyedVectors"): _Stored,
    **{(core, "_reconstruct"): _Array for core in _CORES},
    **{(core, "scalar"): _nothing for core in _CORES},
    **{(module, kind): _nothing for module in ("builtins", "__builtin__") for kind in ("set", "frozenset")},
    **{(core, "_frombuffer"): _from_buffer for core in ("numpy.core.numeric", "numpy._core.numeric")},
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Kind,
    ("_codecs", "encode"): _encoded,
}


class _Reader(pickle._Unpickler):
    """The unpickler of Python written in Python, with stand-ins for all that has a name, and without the rest."""

    # Without persistent objects, buffers of others, extensions, and ways to make objects that no pickle of today has.
    dispatch: ClassVar[dict[int, Any]] = {
        code: step
        for code, step in pickle._Unpickler.dispatch.items()
        if bytes([code])
        not in (b"P", b"Q", b"i", b"o", b"\x82", b"\x83", b"\x84", b"\x96", b"\x97", b"\x98", b"I", b"L")
    }

    def _bytes(self: Any) -> None:
        """A bytearray, for which no room is made before its content is there."""
        (size,) = struct.unpack("<Q", self.read(8))
        self.append(self.read(size))

    dispatch[0x96] = _bytes

    def find_class(self, module: str, name: str) -> Any:
        """The stand-in of a name; an InputError for all that has none."""
        found = _STAND_INS.get((module, name))
        if found is None:
            shown = ascii(f"{module}.{name}"[:_MAX_NAME])[1:-1]
            raise InputError(f"it holds {shown}, which is no part of vectors, and a pickle can run code")
        return found


def read(reading: Reading, source: Source) -> Iterator[Rows]:
    """The words and vectors of a file of gensim."""
    stored = _unpickled(source)
    words = _words(stored, source.path)
    # A fastText model is saved without the vectors that follow from those of its words and n-grams.
    whole = "vectors_vocab" not in stored and "vectors_vocab" not in (stored.get("__numpys") or ())
    vectors = _array(stored, "vectors" if whole else "vectors_vocab", source)
    if len(vectors) != len(words):
        raise _refused(source.path, f"it has {len(words)} words and {len(vectors)} vectors")
    reading.expected_rows = len(words)
    reading.subwords = subwords = _subwords(stored, source, vectors.shape[1])
    if not whole and subwords is None:
        raise _refused(source.path, "its n-grams are hashed as gensim 3 did")
    done = 0
    while (rows := min(batch_rows(reading, vectors.itemsize * vectors.shape[1]), len(words) - done)) > 0:
        some, own = words[done : done + rows], np.array(vectors[done : done + rows])
        yield sound_rows(
            some,
            own if whole or subwords is None else subwords.with_own(some, own),
            reading,
            lambda row, done=done: f"row {done + row}",  # type: ignore[misc]
        )
        done += rows


def _unpickled(source: Source) -> dict[str, Any]:
    """The attributes of the vectors."""
    try:
        with damage_explained(source.path, "pickle of gensim"):
            # In memory: a pickle may ask for any number of bytes, and gets no more than there are.
            found = _Reader(BytesIO(source.read_at(0, source.size))).load()
            if not isinstance(found, _Stored):
                raise InputError("it holds no KeyedVectors")
    except InputError as error:
        if error.__cause__ is not None:
            raise
        raise _refused(source.path, str(error)) from None
    return dict(found.__dict__)


def _words(stored: dict[str, Any], path: Path) -> list[str]:
    keys = stored.get("index_to_key")
    if not isinstance(keys, list) or not keys or not all(isinstance(key, (str, int)) for key in keys):
        raise _refused(path, "it has no list of words, as those of gensim 3 and before")
    return [str(key) for key in keys]


def _array(stored: dict[str, Any], name: str, source: Source) -> FloatArray:
    """A matrix, of the pickle or of the file beside it."""
    try:
        if isinstance(stored.get(name), _Array):
            found: FloatArray = stored[name].array()
            return found
        apart = stored.get("__numpys")
        if not isinstance(apart, list) or name not in apart or source.spooled:
            raise InputError(f"it has no {name}")
    except InputError as error:
        raise _refused(source.path, str(error)) from None
    return open_matrix(source.path.with_name(f"{source.path.name}.{name}.npy"))


def _subwords(stored: dict[str, Any], source: Source, dim: int) -> Subwords | None:
    """The rows of n-grams of a fastText model, where there are any."""
    least, most, buckets = (stored.get(name) for name in ("min_n", "max_n", "bucket"))
    if (
        not (type(least) is int and type(most) is int and type(buckets) is int)
        or stored.get("compatible_hash") is False
    ):
        return None
    if buckets < 1 or not 0 <= least <= most or most < 1:
        return None
    rows = _array(stored, "vectors_ngrams", source)
    if rows.shape != (buckets, dim):
        raise _refused(source.path, f"its n-grams have the shape {rows.shape}, expected {(buckets, dim)}")
    return Subwords(Shape(least, most, buckets, dim), rows)


def _refused(path: Path, why: str) -> InputError:
    return InputError(f"{path} cannot be read as vectors of gensim ({why}): {_CONVERT}")
