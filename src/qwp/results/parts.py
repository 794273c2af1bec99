"""The vectors, maps, means and orders of a saved alignment: the files in its parts folder.

The vectors may have been left out of a save; then they are read from the files that were aligned when needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as safetensors_bytes

from qwp.arrays import AnyFloats
from qwp.errors import InputError
from qwp.results.provenance import InputRecord
from qwp.results.saved import AGAIN, MAPS_FILE, Stored
from qwp.results.sides import AlignedSide, DeferredSpace
from qwp.spaces import io
from qwp.spaces.embeddings import SIDES, Embeddings, Side
from qwp.spaces.io import fasttext, safetensors
from qwp.spaces.io.sources import split_part
from qwp.spaces.normalization import Normalization
from qwp.spaces.subwords import Shape, Subwords

FEW_SUBWORDS = 1 << 30
"""Subword tables of up to this many bytes are saved with a result; larger ones stay in the file of their model."""
_MAP_KINDS, _ORDER_KINDS = ("F32", "F64"), ("I64",)


# --------------------------------------------------------------------------- writing


def write(
    sides: Mapping[Side, AlignedSide], folder: Path, *, vectors: bool = True, subwords: bool | None = None
) -> None:
    """Write the vectors in float32, unless vectors=False, and the maps, means and orders as they are.

    subwords: whether to write the subword tables of fastText models; None writes those of up to `FEW_SUBWORDS` bytes.
    """
    for side, aligned in sides.items() if vectors else ():
        io.save(aligned.space, folder / f"{side}.safetensors")
        parts, report = aligned.space.subwords, aligned.space.report
        # A table that came from no file cannot be read again, so it is saved whatever its size.
        small = parts is not None and (report is None or parts.n_bytes <= FEW_SUBWORDS)
        if parts is not None and (small if subwords is None else subwords):
            safetensors.save_subwords(parts, folder / f"{side}.subwords.safetensors")
    tensors = {f"{side}_{name}": t for side, aligned in sides.items() for name, t in aligned.tensors().items()}
    (folder / MAPS_FILE).write_bytes(safetensors_bytes(tensors))


def check(side: Side, aligned: AlignedSide, record: InputRecord) -> None:
    """Raise an InputError if `read` would refuse the arrays of a language."""
    _check_tensors(aligned.tensors(), side, record.n_words, record.dim, aligned.normalization.steps)


# --------------------------------------------------------------------------- reading


def read(stored: Stored, inputs: Mapping[Side, InputRecord], *, on_disk: bool = False) -> dict[Side, AlignedSide]:
    """Return both languages of a saved alignment, whose files the caller has checked.

    on_disk: memory-map the vectors instead of reading them.
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
        return AlignedSide(DeferredSpace(partial(_read_original, stored.path.parent, side, record)), *how)
    space = _read_space(stored, side, record, on_disk=on_disk).with_subwords(_read_subwords(stored, side, record))
    return AlignedSide(_named(space, record), *how)


def _read_subwords(stored: Stored, side: Side, record: InputRecord) -> Subwords | None:
    """Return the subwords of a language. Their file, the saved one or that of the model, is opened on first use."""
    if record.subwords is None:
        return None
    sizes = {name: value for name, value in record.subwords.items() if name != "sha256"}
    part = stored.parts.get(f"{side}.subwords.safetensors")
    where = Path(record.path or "") if part is None else part.path
    shape = Shape(**sizes, dim=record.dim)
    return Subwords(shape, partial(_open_subwords, where, shape, record.subwords["sha256"], saved=part is not None))


def _open_subwords(path: Path, shape: Shape, sha256: str, *, saved: bool) -> AnyFloats:
    """Memory-map the rows of subwords, (buckets, d), and check that they are those of the model that was aligned."""
    if not saved and not path.is_file():
        raise InputError(
            f"the subword table was too large to be saved with the result, and its file {path} does not exist: put "
            "it back, or save the table with `Alignment.save(..., subwords=True)`"
        )
    found = safetensors.load_subwords(path, shape) if saved else fasttext.load_subwords(path)
    if found is None or found.sha256() != sha256:
        raise InputError(f"{path} does not hold the subwords of the model that was aligned: {AGAIN}")
    return found.rows


def _named(space: Embeddings, record: InputRecord) -> Embeddings:
    """Return the vectors under the name they had when they were aligned."""
    return space if record.known_name is None else space.named(record.known_name)


def _read_original(folder: Path, side: Side, record: InputRecord) -> Embeddings:
    """Read the vectors from the file that was aligned, and check that it has not changed."""
    what = f"{folder} holds the maps but not the vectors of {side} (--save map)"
    again = "put back the file that was aligned, or align again without --save map"
    if record.path is None or record.reading is None:
        raise InputError(f"{what}, and they did not come from a file: {again}")
    if not split_part(Path(record.path))[0].is_file():
        seen = "" if Path(record.path).is_absolute() else " (relative to the folder where it was aligned)"
        raise InputError(f"{what}, and their file {record.path}{seen} does not exist: {again}")
    if record.vocab_words is not None and record.reading["vocab"] is None:
        raise InputError(f"{what}, and it is not recorded which words of {record.path} were read: {again}")
    try:
        space = io.load(record.path, max_vocab=None if record.complete else record.n_words, **record.reading)
    except InputError as error:
        raise InputError(f"{what}, and {record.path} cannot be read as before ({error}): {again}") from error
    if space.sha256() != record.sha256:
        raise InputError(f"{what}, and {_source(record)} has changed since it was aligned: {again}")
    return _named(space, record)


def _source(record: InputRecord) -> str:
    """Name the file of the vectors, and the vocabulary with which it was read."""
    vocab = None if record.reading is None else record.reading["vocab"]
    return f"{record.path}" if vocab is None else f"{record.path} with the vocabulary {vocab}"


def check_originals(inputs: Mapping[Side, InputRecord]) -> None:
    """Raise an InputError if vectors that are not saved could not be read again from their files."""
    for side, record in inputs.items():
        if record.path is None or (record.vocab_words is not None and (record.reading or {}).get("vocab") is None):
            why = "did not come from a file" if record.path is None else "were chosen by a vocabulary that is no file"
            raise InputError(f"the vectors of {side} {why}, so they could not be read again: save them, too")


def _read_space(stored: Stored, side: Side, record: InputRecord, *, on_disk: bool) -> Embeddings:
    path = stored.parts[f"{side}.safetensors"].path
    # Schema 1 has no file sizes, so a damaged file would not be noticed without reading it.
    space = io.load_mapped(path) if on_disk and stored.schema > 1 else io.load(path, format="safetensors")
    if (len(space), space.dim) != (record.n_words, record.dim):
        raise InputError(
            f"{path} holds {len(space)} x {space.dim} vectors, the alignment was made with "
            f"{record.n_words} x {record.dim}: {AGAIN}"
        )
    # Schema 1 hashes the vectors, not the files. Vectors were saved in float32, so the hash differs if they came from
    # Python or if the computation was in float64.
    comparable = record.path is not None and stored.content["provenance"]["config"].get("dtype") == "float32"
    if stored.schema == 1 and comparable and space.sha256() != record.sha256:
        raise InputError(f"{path} and its words are not those that were aligned (another sha256): {AGAIN}")
    return space


def _read_tensors(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of a safetensors file, or raise an InputError for arrays of an unexpected type."""
    try:
        with safe_open(path, framework="numpy") as file:
            for name in file.keys():  # noqa: SIM118 (not a dict)
                kind = file.get_slice(name).get_dtype()
                if kind not in (*_MAP_KINDS, *_ORDER_KINDS):
                    raise InputError(f"{path} is damaged ({name!r} is of type {kind}): {AGAIN}")
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path} cannot be read ({error}): {AGAIN}") from error


def _check_tensors(tensors: Mapping[str, np.ndarray], side: Side, n: int, d: int, steps: tuple[str, ...]) -> None:
    """Raise an InputError unless the arrays have the names, shapes and types of a language of n words (n, d)."""
    # `read` compares the width of the map with that of the other language.
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
