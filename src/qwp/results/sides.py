"""The two languages of an alignment: how each gets into the common space, and the files that keep it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as safetensors_bytes

from qwp import arrays
from qwp.arrays import Array
from qwp.errors import InputError
from qwp.results.provenance import InputRecord
from qwp.results.saved import AGAIN, MAPS_FILE, Stored
from qwp.spaces import io
from qwp.spaces.embeddings import SIDES, Embeddings, FloatArray, Side
from qwp.spaces.frequency import Ints
from qwp.spaces.io import fasttext, safetensors
from qwp.spaces.io.sources import located
from qwp.spaces.normalization import Normalization
from qwp.spaces.subwords import Shape, Subwords

FEW_SUBWORDS = 1 << 30
"""Subwords of so many bytes are saved with a result; larger ones stay in the file of their model unless asked for."""
_MAP_KINDS, _ORDER_KINDS = ("F32", "F64"), ("I64",)


@dataclass(frozen=True, eq=False)
class AlignedSide:
    """One language of an alignment, and how it gets into the common space.

    space: the vectors as they were read. map: (d, common), or None where its space is the common one. order: the rows
    from frequent to rare where an order was estimated, None where the words came in theirs.
    """

    space: Embeddings
    map: FloatArray | None
    normalization: Normalization
    order: Ints | None = None

    @property
    def at_hand(self) -> bool:
        """Whether the words and vectors are there, and not in a file that would have to be read."""
        return True

    @property
    def dim(self) -> int:
        """Dimensions of its vectors as they were read, without reading them."""
        return self.space.dim if self.map is None else int(self.map.shape[0])

    def frequent(self, n: int) -> Ints:
        """The rows of the n most frequent words (all of them when there are fewer), most frequent first."""
        rows = np.arange(len(self.space)) if self.order is None else self.order
        return rows[:n]

    def places(self, rows: Ints) -> Ints:
        """The places of rows among all words, zero for the most frequent one; as many as there are rows."""
        return rows if self.order is None else self._places[rows]

    @cached_property
    def _places(self) -> Ints:
        return np.argsort(self.frequent(len(self.space)))

    def mapped(self, vectors: FloatArray, place: arrays.Device, dtype: str) -> Array:
        """Vectors (n, d) of this language in the common space (n, common), computed in `place`."""
        rows = self.normalization.at(place).apply(place.put(vectors, dtype))
        return rows if self.map is None else rows @ place.put(self.map, dtype)

    def normalized(self, place: arrays.Device, dtype: str) -> Array:
        """All words as they were aligned, normalised in `place`, most frequent first, (n, d)."""
        vectors = self.space.vectors if self.order is None else self.space.vectors[self.order]
        return self.normalization.at(place).apply(place.put(vectors, dtype))

    def tensors(self) -> dict[str, np.ndarray]:
        """All arrays but the vectors, by name: map (d, common), mean_0 (d,), mean_1 (d,), ..., order (n,)."""
        found: dict[str, Any] = {"map": self.map, "order": self.order}
        found.update((f"mean_{number}", mean) for number, mean in enumerate(self.normalization.means))
        return {name: np.ascontiguousarray(tensor) for name, tensor in found.items() if tensor is not None}


class UnsavedSide(AlignedSide):
    """A language whose vectors were not saved with its map: they are read when they are asked for."""

    def __init__(
        self,
        space: Embeddings | Callable[[], Embeddings],
        map: FloatArray | None,
        normalization: Normalization,
        order: Ints | None = None,
    ) -> None:
        given = {"map": map, "normalization": normalization, "order": order, "_space": space}
        for name, value in given.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        """Nothing is read to show it."""
        return super().__repr__() if self.at_hand else "UnsavedSide(its vectors are not read yet)"

    @property
    def at_hand(self) -> bool:
        """Whether the vectors were read."""
        return "space" in self.__dict__ or isinstance(self.__dict__["_space"], Embeddings)

    @cached_property
    def space(self) -> Embeddings:
        """The vectors as they were read for the alignment, from the same file."""
        found: Embeddings | Callable[[], Embeddings] = self.__dict__["_space"]
        return found if isinstance(found, Embeddings) else found()


# --------------------------------------------------------------------------- writing


def write(
    sides: Mapping[Side, AlignedSide], folder: Path, *, vectors: bool = True, subwords: bool | None = None
) -> None:
    """Vectors with the precision of float32, unless they are to be left out; maps, means and orders as they are.

    subwords: whether those of fastText models are written with the vectors; None for those that are not many.
    """
    for side, aligned in sides.items() if vectors else ():
        io.save(aligned.space, folder / f"{side}.safetensors")
        parts, report = aligned.space.subwords, aligned.space.report
        # Those that came from no file could not be found again.
        few = parts is not None and (report is None or parts.n_bytes <= FEW_SUBWORDS)
        if parts is not None and (few if subwords is None else subwords):
            safetensors.save_subwords(parts, folder / f"{side}.subwords.safetensors")
    tensors = {f"{side}_{name}": t for side, aligned in sides.items() for name, t in aligned.tensors().items()}
    (folder / MAPS_FILE).write_bytes(safetensors_bytes(tensors))


def check(side: Side, aligned: AlignedSide, record: InputRecord) -> None:
    """Raise an InputError for a language that could not be loaded again."""
    _check_tensors(aligned.tensors(), side, record.n_words, record.dim, aligned.normalization.steps)


# --------------------------------------------------------------------------- reading


def read(stored: Stored, inputs: Mapping[Side, InputRecord], *, on_disk: bool = False) -> dict[Side, AlignedSide]:
    """Both languages of a saved alignment.

    on_disk: leave the vectors on the disk. The caller has compared the files with their hashes, or the vectors with
    their sizes.
    """
    tensors = _read_tensors(stored.parts[MAPS_FILE].path)
    strange = [name for name in tensors if name.partition("_")[0] not in SIDES]
    if strange or "src_map" not in tensors:
        problem = f"{strange[0]!r} is not known" if strange else "src_map is missing"
        raise InputError(f"{stored.parts[MAPS_FILE].path} is damaged ({problem}): {AGAIN}")
    common = {side: inputs[side].dim if (m := tensors.get(f"{side}_map")) is None else m.shape[-1] for side in SIDES}
    if common["src"] != common["tgt"]:
        problem = f"src is mapped into {common['src']} dimensions, tgt into {common['tgt']}"
        raise InputError(f"{stored.parts[MAPS_FILE].path} is damaged ({problem}): {AGAIN}")
    return {side: _read_side(stored, side, inputs[side], _of_side(tensors, side), on_disk=on_disk) for side in SIDES}


def _of_side(tensors: Mapping[str, np.ndarray], side: Side) -> dict[str, np.ndarray]:
    return {name.partition("_")[2]: t for name, t in tensors.items() if name.partition("_")[0] == side}


def _read_side(
    stored: Stored, side: Side, record: InputRecord, tensors: dict[str, np.ndarray], *, on_disk: bool
) -> AlignedSide:
    steps = tuple(stored.content["normalization"][side])
    try:
        _check_tensors(tensors, side, record.n_words, record.dim, steps)
    except InputError as error:
        raise InputError(f"{stored.parts[MAPS_FILE].path} is damaged ({error}): {AGAIN}") from error
    means = tuple(tensors[f"mean_{number}"] for number in range(steps.count("center")))
    how = (tensors.get("map"), Normalization(steps, means), tensors.get("order"))
    if f"{side}.safetensors" not in stored.parts:
        return UnsavedSide(partial(_read_original, stored.path.parent, side, record), *how)
    space = _read_space(stored, side, record, on_disk=on_disk).with_subwords(_read_subwords(stored, side, record))
    return AlignedSide(_named(space, record), *how)


def _read_subwords(stored: Stored, side: Side, record: InputRecord) -> Subwords | None:
    """The subwords of a language, opened when asked for: saved with the result, or in the file of their model."""
    if record.subwords is None:
        return None
    sizes = {name: value for name, value in record.subwords.items() if name != "sha256"}
    part = stored.parts.get(f"{side}.subwords.safetensors")
    where = Path(record.path or "") if part is None else part.path
    shape = Shape(**sizes, dim=record.dim)
    return Subwords(shape, partial(_open_subwords, where, shape, record.subwords["sha256"], saved=part is not None))


def _open_subwords(path: Path, shape: Shape, sha256: str, *, saved: bool) -> FloatArray:
    """The rows of subwords (buckets, d) on the disk, if they are those that were there when the model was aligned."""
    if not saved and not path.is_file():
        raise InputError(
            f"the subwords were not saved with the result, being many, and {path}, where they were, is not there: put "
            "it back, or save them with `Alignment.save(..., subwords=True)`"
        )
    found = safetensors.subwords_on_disk(path, shape) if saved else fasttext.subwords_of(path)
    if found is None or found.sha256() != sha256:
        raise InputError(f"{path} does not hold the subwords of the model that was aligned: {AGAIN}")
    return found.rows


def _named(space: Embeddings, record: InputRecord) -> Embeddings:
    """Vectors under the name that they had."""
    return space if record.known_name is None else space.named(record.known_name)


def _read_original(folder: Path, side: Side, record: InputRecord) -> Embeddings:
    """The vectors from the file that was aligned, if it is still the same."""
    what = f"{folder} holds the maps and not the vectors of {side} (--save map)"
    again = "put back the file that was aligned, or align again without --save map"
    if record.path is None or record.reading is None:
        raise InputError(f"{what}, and they did not come from a file: {again}")
    if not located(Path(record.path))[0].is_file():
        seen = "" if Path(record.path).is_absolute() else " (seen from the folder where it was aligned)"
        raise InputError(f"{what}, and {record.path}, where they were read{seen}, is not there: {again}")
    if record.vocab_words is not None and record.reading["vocab"] is None:
        raise InputError(f"{what}, and the words of {record.path} that were read are not known: {again}")
    try:
        space = io.load(record.path, max_vocab=None if record.complete else record.n_words, **record.reading)
    except InputError as error:
        raise InputError(f"{what}, and {record.path} cannot be read as it was ({error}): {again}") from error
    if space.sha256() != record.sha256:
        raise InputError(f"{what}, and {_source(record)} no longer holds those that were aligned: {again}")
    return _named(space, record)


def _source(record: InputRecord) -> str:
    """The file of vectors, and the vocabulary with which it was read."""
    vocab = None if record.reading is None else record.reading["vocab"]
    return f"{record.path}" if vocab is None else f"{record.path} with the vocabulary {vocab}"


def check_originals(inputs: Mapping[Side, InputRecord]) -> None:
    """Raise an InputError where vectors could not be found again if they were not saved."""
    for side, record in inputs.items():
        if record.path is None or (record.vocab_words is not None and (record.reading or {}).get("vocab") is None):
            why = "did not come from a file" if record.path is None else "are those of a vocabulary that was not a file"
            raise InputError(f"the vectors of {side} {why}, and nobody could find them again: save them, too")


def _read_space(stored: Stored, side: Side, record: InputRecord, *, on_disk: bool) -> Embeddings:
    path = stored.parts[f"{side}.safetensors"].path
    # Schema 1 has no sizes to tell a damaged file by.
    space = io.on_disk(path) if on_disk and stored.schema > 1 else io.load(path, format="safetensors")
    if (len(space), space.dim) != (record.n_words, record.dim):
        raise InputError(
            f"{path} holds {len(space)} x {space.dim} vectors, the alignment was made with "
            f"{record.n_words} x {record.dim}: {AGAIN}"
        )
    # Schema 1 has no hashes of its files, but that of the vectors. They were saved as float32: what was float64 before
    # has another hash now. That can be so where they came from Python, and where the computation was in float64.
    comparable = record.path is not None and stored.content["provenance"]["config"].get("dtype") == "float32"
    if stored.schema == 1 and comparable and space.sha256() != record.sha256:
        raise InputError(f"{path} and its words are not those that were aligned (another sha256): {AGAIN}")
    return space


def _read_tensors(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a safetensors file that have one of the kinds that are expected there."""
    try:
        with safe_open(path, framework="numpy") as file:
            for name in file.keys():  # noqa: SIM118  (it is no dictionary)
                kind = file.get_slice(name).get_dtype()
                if kind not in (*_MAP_KINDS, *_ORDER_KINDS):
                    raise InputError(f"{path} is damaged ({name!r} is of type {kind}): {AGAIN}")
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path} cannot be read ({error}): {AGAIN}") from error


def _check_tensors(tensors: Mapping[str, np.ndarray], side: Side, n: int, d: int, steps: tuple[str, ...]) -> None:
    """Raise an InputError unless these are the arrays of a language of n words and d dimensions, in this kind."""
    # Into how many dimensions it maps is known from the other side alone.
    common = tensors["map"].shape[-1] if "map" in tensors and tensors["map"].ndim == 2 else d
    shapes = {"map": (d, common), "order": (n,), **{f"mean_{number}": (d,) for number in range(steps.count("center"))}}
    missing = [name for name in shapes if name not in tensors and name.startswith("mean")]
    strange = [name for name in tensors if name not in shapes]
    for name in missing + strange:
        raise InputError(f"{side}_{name} {'is missing' if name in missing else 'is not known'}")
    for name, tensor in tensors.items():
        kinds = ("int64",) if name == "order" else ("float32", "float64")
        if tensor.shape != shapes[name] or tensor.dtype.name not in kinds:
            raise InputError(
                f"{side}_{name} is {tensor.dtype} of shape {tensor.shape}, "
                f"expected {' or '.join(kinds)} of shape {shapes[name]}"
            )
        if name != "order" and not np.isfinite(tensor).all():
            raise InputError(f"{side}_{name} holds NaN or infinite entries")
        if name == "order" and not np.array_equal(np.sort(tensor), np.arange(n)):
            raise InputError(f"{side}_order does not name each of the {n} words once")
