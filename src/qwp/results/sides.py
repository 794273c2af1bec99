"""The two languages of an alignment, and the space they share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from qwp import arrays
from qwp.arrays import AnyFloats, Array, Ints
from qwp.errors import InputError, one_of, whole
from qwp.maps import projection
from qwp.maps.procrustes import Maps
from qwp.spaces.embeddings import SIDES, Embeddings, Side, disambiguated
from qwp.spaces.normalization import Normalization
from qwp.spaces.objects import Vectors, Words, as_words, checked_array, words_or_array


class DeferredSpace:
    """Vectors that were not saved with an alignment. They are read from their file on first use, and then kept."""

    def __init__(self, read: Callable[[], Embeddings]) -> None:
        self._read = read
        self._space: Embeddings | None = None

    @property
    def loaded(self) -> bool:
        """Whether the vectors have been read."""
        return self._space is not None

    def get(self) -> Embeddings:
        """Return the vectors."""
        if self._space is None:
            self._space = self._read()
        return self._space

    def __repr__(self) -> str:
        return repr(self._space) if self.loaded else "not read yet"


@dataclass(frozen=True, eq=False)
class AlignedSide:
    """One language of an alignment, and how its vectors get into the common space.

    Attributes:
        source: the vectors as they were read, or where to read them when they are needed.
        map: (d, common), or None where the space of this language is the common one.
        normalization: the steps applied to the vectors before the map.
        order: (n,) rows from frequent to rare where the order was estimated; None if the words came in that order.
    """

    source: Embeddings | DeferredSpace
    map: AnyFloats | None
    normalization: Normalization
    order: Ints | None = None

    @property
    def space(self) -> Embeddings:
        """The vectors as they were read."""
        return self.source if isinstance(self.source, Embeddings) else self.source.get()

    @property
    def in_memory(self) -> bool:
        """Whether `space` is available without reading a file."""
        return isinstance(self.source, Embeddings) or self.source.loaded

    @property
    def dim(self) -> int:
        """Number of dimensions of the vectors as they were read. Does not read them."""
        return self.space.dim if self.map is None else int(self.map.shape[0])

    def frequent(self, n: int) -> Ints:
        """Return the rows of the n most frequent words, most frequent first; all rows if there are fewer."""
        rows = np.arange(len(self.space)) if self.order is None else self.order
        return rows[:n]

    def ranks(self, rows: Ints) -> Ints:
        """Return the frequency ranks of rows, 0 for the most frequent word; same shape as rows."""
        return rows if self.order is None else self._ranks[rows]

    @cached_property
    def _ranks(self) -> Ints:
        return np.argsort(self.frequent(len(self.space)))

    def mapped(self, vectors: AnyFloats, device: arrays.Device, dtype: str) -> Array:
        """Map vectors (n, d) of this language into the common space on a device. Returns (n, common)."""
        rows = self.normalization.at(device).apply(device.put(vectors, dtype))
        return rows if self.map is None else rows @ device.put(self.map, dtype)

    def normalized(self, device: arrays.Device, dtype: str) -> Array:
        """Return all vectors as they were aligned: normalised, most frequent first, (n, d), on a device."""
        vectors = self.space.vectors if self.order is None else self.space.vectors[self.order]
        return self.normalization.at(device).apply(device.put(vectors, dtype))

    def tensors(self) -> dict[str, np.ndarray]:
        """Return all arrays but the vectors, by name: map (d, common), mean_0 (d,), mean_1 (d,), ..., order (n,)."""
        found: dict[str, Any] = {"map": self.map, "order": self.order}
        found.update((f"mean_{number}", mean) for number, mean in enumerate(self.normalization.means))
        return {name: np.ascontiguousarray(tensor) for name, tensor in found.items() if tensor is not None}


@dataclass(frozen=True)
class Neighbour:
    """A word near another word in the common space.

    side: its language, "src" or "tgt". similarity: the cosine of the two words.
    """

    word: str
    side: Side
    similarity: float


class CommonSpace:
    """Both languages of an alignment in the space they share, on one device.

    The mapped vocabularies are computed on first use and kept.
    """

    def __init__(self, sides: Mapping[Side, AlignedSide], device: arrays.Device) -> None:
        assert sides["src"].map is not None, "the source side is always mapped"
        self.device = device
        self.dtype: str = sides["src"].map.dtype.name
        self._sides = dict(sides)
        self._mapped: dict[Side, Array] = {}

    def side(self, side: Side) -> AlignedSide:
        """Return one of the two languages."""
        if side not in SIDES:
            raise InputError(f"side {side!r} is not known; expected 'src' or 'tgt'")
        return self._sides[side]

    def words(self, side: Side) -> list[str]:
        """Return the vocabulary of one language."""
        return self.side(side).space.words

    # ----------------------------------------------------------------- mapping

    def transform(self, items: Words | Vectors, side: Side) -> AnyFloats:
        """Return words or vectors of one language in the common space, (n, common) or (common,), in host memory."""
        self.side(side)
        found = words_or_array(items)
        if isinstance(found, np.ndarray):
            vectors = self.checked(found, side)
            mapped = arrays.to_numpy(self.map(np.atleast_2d(vectors), side))
            return mapped if vectors.ndim == 2 else mapped[0]
        rows = arrays.to_numpy(self.map(self.vectors(found, side), side))
        row: AnyFloats = rows[0] if isinstance(items, str) else rows
        return row

    def checked(self, vectors: npt.NDArray[Any], side: Side) -> AnyFloats:
        """Return new vectors (n, d) or (d,) in the precision of the maps, or raise an InputError."""
        with np.errstate(over="ignore"):  # checked_array refuses infinite values
            return checked_array(vectors.astype(self.dtype, copy=False), self.side(side).dim)

    def map(self, vectors: AnyFloats, side: Side, device: arrays.Device = arrays.HOST) -> Array:
        """Map vectors (n, d) of one language into the common space, (n, common)."""
        return self.side(side).mapped(vectors, device, self.dtype)

    def mapped(self, side: Side) -> Array:
        """Return all words of one language in the common space, unit rows (n, common), on the device."""
        aligned = self.side(side)
        if side not in self._mapped:
            self._mapped[side] = arrays.unit(self.map(aligned.space.vectors, side, self.device))
        return self._mapped[side]

    def mapped_rows(self, side: Side, rows: Ints) -> Array:
        """Return some words of one language in the common space, (r, common), on the device."""
        mapped = self.mapped(side)
        if len(rows) == mapped.shape[0] and self.side(side).order is None:
            return mapped  # all words in vocabulary order: no copy
        return arrays.namespace(mapped).take(mapped, arrays.asarray(rows, mapped), axis=0)

    def vectors(self, words: Sequence[str], side: Side) -> AnyFloats:
        """Return the vectors of words as they were read, (n, d); an InputError names unknown words."""
        space = self.side(side).space
        composed = space.composed(words)
        unknown = [w for w in words if w not in space and w not in composed]
        if unknown:
            shown = ", ".join(repr(w) for w in unknown[:5])
            name = dict(zip(SIDES, disambiguated([self.side(each).space for each in SIDES]), strict=True))[side]
            raise InputError(
                f"{len(unknown)} of {len(words)} words are not among the {len(space):,} words of {name}: {shown}"
            )
        if not composed:
            return np.asarray(space.vectors[[space.index[w] for w in words]], dtype=self.dtype)
        return np.asarray([composed[w] if w in composed else space[w] for w in words], dtype=self.dtype)

    def unit(self, words: Sequence[str], side: Side) -> AnyFloats:
        """Return words of one language in the common space, unit rows (n, common), in host memory."""
        self.side(side)
        return arrays.to_numpy(arrays.unit(self.map(self.vectors(words, side), side)))

    def normalized(self) -> tuple[Array, Array, Maps]:
        """Return both spaces as the judge compares them, (n, r) and (m, r), most frequent words first, and their maps.

        Spaces of different widths are padded to the same width. Very wide spaces are projected.
        """
        x, y = (self.side(side).normalized(self.device, self.dtype) for side in SIDES)
        src_map, tgt_map = (
            None if matrix is None else self.device.put(matrix, self.dtype)
            for matrix in (self.side(side).map for side in SIDES)
        )
        assert src_map is not None
        width = max(x.shape[1], y.shape[1], src_map.shape[1])
        maps = projection.pad_maps(Maps(src_map, tgt_map), width)
        padded = projection.pad(x, width), projection.pad(y, width)
        projected = projection.project_spaces(*padded, x.shape[1], y.shape[1])
        return projected.x, projected.y, projected.project(maps)

    # ----------------------------------------------------------------- similarities

    def similarity(self, src_word: str, tgt_word: str) -> float:
        """Return the cosine of a source word and a target word, -1 to 1."""
        src, tgt = self.unit([src_word], "src")[0], self.unit([tgt_word], "tgt")[0]
        return float(src @ tgt)

    def most_similar(self, word: str, k: int, side: Side, within: str) -> list[Neighbour]:
        """Return the k words with the highest cosine to a word of one language, without the word itself."""
        whole(1, k=k)
        one_of((*SIDES, "both"), within=within)
        query = self.unit(as_words(word)[:1], side)[0]
        found: list[Neighbour] = []
        for name in _sides_of(within):
            space = self.side(name).space
            cosines = arrays.to_numpy(self.mapped(name)) @ query
            if name == side and word in space:
                cosines[space.index[word]] = -np.inf
            rows = np.argsort(-cosines, kind="stable")[: k + 1]
            found += [Neighbour(space.words[row], name, float(cosines[row])) for row in rows.tolist()]
        kept = [each for each in found if np.isfinite(each.similarity)]
        return sorted(kept, key=lambda each: -each.similarity)[:k]

    def to_keyed_vectors(self, side: str) -> Any:
        """Return the words of one language, or of both, as gensim KeyedVectors."""
        one_of((*SIDES, "both"), side=side)
        try:
            from gensim.models import KeyedVectors
        except ImportError as error:
            raise InputError(
                f"KeyedVectors need gensim, which cannot be imported ({error}): pip install gensim"
            ) from error
        src_map = self.side("src").map
        assert src_map is not None
        made = KeyedVectors(src_map.shape[1])
        for name in _sides_of(side):
            space = self.side(name).space
            words = [f"{name}:{word}" for word in space.words] if side == "both" else space.words
            made.add_vectors(words, arrays.to_numpy(self.map(np.asarray(space.vectors, dtype=self.dtype), name)))
        return made


def _sides_of(name: str) -> list[Side]:
    return [side for side in SIDES if name in (side, "both")]
