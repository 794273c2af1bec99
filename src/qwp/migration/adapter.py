"""Adapters: affine maps from the vectors of one embedding model into the unchanged space of another.

The maps of an `Alignment` lead into a common space, which need not be the space of either model. An adapter leads into
the space of the target model, so that vectors of that model find what it returns.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from qwp import arrays
from qwp.arrays import AnyFloats
from qwp.errors import InputError
from qwp.maps.procrustes import least_squares, procrustes
from qwp.results.alignment import Alignment
from qwp.spaces.embeddings import Side
from qwp.spaces.io.files import atomic_write

KINDS = ("orthogonal", "residual", "ridge")
FILE_TYPES = (".npz", ".json", ".onnx")
_ARRAYS = ("matrix", "offset")
_MOST_PAIRS = 50_000
"""Pairs of an alignment to fit an adapter to: enough for 4,096 dimensions."""


@dataclass(frozen=True, eq=False)
class Adapter:
    """The map unit(unit(x) matrix + offset) of rows x.

    matrix: (d, e) float32. offset: (e,) float32. kind: how the map was fitted, one of KINDS.
    """

    matrix: AnyFloats
    offset: AnyFloats
    kind: str = KINDS[0]

    def __post_init__(self) -> None:
        shapes = np.shape(self.matrix), np.shape(self.offset)
        finite = all(np.asarray(part).dtype.kind == "f" and np.isfinite(part).all() for part in self._parts().values())
        if len(shapes[0]) != 2 or shapes[1] != shapes[0][1:] or 0 in shapes[0] or not finite:
            raise InputError(
                f"received an adapter with a matrix of shape {shapes[0]} and an offset of shape {shapes[1]}, expected "
                "finite numbers of shapes (d, e) and (e,)"
            )

    @property
    def dims(self) -> tuple[int, int]:
        """Number of dimensions of the vectors that go in and that come out."""
        rows, columns = self.matrix.shape
        return int(rows), int(columns)

    def __call__(self, vectors: AnyFloats) -> AnyFloats:
        """Return vectors (n, d) or (d,) in the other space, as unit vectors (n, e) or (e,)."""
        given = np.asarray(vectors, dtype=np.float32)
        if given.ndim not in (1, 2) or given.shape[-1] != self.dims[0]:
            raise InputError(f"received vectors of shape {given.shape}, expected ({self.dims[0]},) or (n, that)")
        moved = unit_rows(np.atleast_2d(given)) @ self.matrix + self.offset
        return unit_rows(moved).reshape(*given.shape[:-1], self.dims[1])

    def _parts(self) -> dict[str, AnyFloats]:
        return {"matrix": self.matrix, "offset": self.offset}

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the adapter into a file that ends in .npz, .json or .onnx."""
        target = Path(path)
        check_suffix(target)
        with atomic_write(target) as file:
            if target.suffix == ".npz":
                np.savez(file, matrix=self.matrix, offset=self.offset, kind=np.array(self.kind))
            elif target.suffix == ".onnx":
                file.write(onnx_model(self.matrix, self.offset))
            else:
                lists = {name: part.tolist() for name, part in self._parts().items()}
                file.write(json.dumps({"kind": self.kind, **lists}).encode())
        return target

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Adapter:
        """Read an adapter that `save` wrote."""
        source = Path(path)
        check_suffix(source)
        if source.suffix == ".onnx":
            raise InputError(f"{source} is written for other programs; expected .npz or .json to read an adapter from")
        try:
            if source.suffix == ".npz":
                with np.load(source, allow_pickle=False) as stored:
                    found: Mapping[str, Any] = {name: stored[name] for name in (*_ARRAYS, "kind")}
            else:
                found = json.loads(source.read_text(encoding="utf-8"))
            matrix, offset = (np.asarray(found[name], dtype=np.float32) for name in _ARRAYS)
            return cls(matrix, offset, str(found["kind"]))
        except (KeyError, TypeError, ValueError, zipfile.BadZipFile, EOFError) as error:
            raise InputError(
                f"{source} is not an adapter ({error}), expected a file that `qwp migrate --adapter` wrote"
            ) from error

    @classmethod
    def of_alignment(cls, alignment: Alignment, source: Side = "src") -> Adapter:
        """Return the adapter from the vectors of one side of an alignment to those of the other, as they were read.

        The adapter is an orthogonal map, fitted to the mutual nearest neighbours of the alignment. It is checked by
        queries with vectors of the other side.

        Raises:
            InputError: the alignment failed, or the queries do not find their neighbours again.
        """
        if alignment.quality.failed:
            raise InputError(
                "the alignment failed, so nothing can be converted with it: give known pairs, or more vectors"
            )
        x, y = mutual_pairs(alignment)
        if source == "tgt":
            x, y = y, x
        adapter = fit("orthogonal", x, y)
        asked = slice(0, 1000)
        found = np.argmax(unit_rows(y[asked]) @ adapter(x[asked]).T, axis=1)
        share = float(np.mean(found == np.arange(len(found))))
        if share < 0.5:
            raise InputError(
                f"only {100 * share:.0f} % of {len(found):,} test queries found their converted counterpart, expected "
                "at least 50 %: no orthogonal map connects these spaces; give known pairs to qwp.migrate"
            )
        return adapter


def check_suffix(path: Path) -> None:
    """Raise an InputError unless an adapter can be written into a file of this name."""
    if path.suffix not in FILE_TYPES:
        raise InputError(f"{path} is no name for an adapter, expected one that ends in {', '.join(FILE_TYPES)}")


def mutual_pairs(alignment: Alignment) -> tuple[AnyFloats, AnyFloats]:
    """Return the vectors of the mutual nearest neighbours of an alignment as they were read, (p, d) and (p, e)."""
    pairs = alignment.induce(max_words=_MOST_PAIRS)
    if len(pairs) < 2:
        raise InputError(f"the alignment has {len(pairs)} mutual pairs, expected at least 2: it connects nothing")
    src, tgt = alignment.src, alignment.tgt
    return src.vectors[[src.index[pair.src] for pair in pairs]], tgt.vectors[[tgt.index[pair.tgt] for pair in pairs]]


def unit_rows(rows: AnyFloats) -> AnyFloats:
    """Return rows (n, d) scaled to length one; zero rows stay zero."""
    scaled: AnyFloats = arrays.to_numpy(arrays.unit(np.asarray(rows, dtype=np.float32)))
    return scaled


def fit(kind: str, x: AnyFloats, y: AnyFloats, strength: float = 0.0) -> Adapter:
    """Return the adapter of a kind for matched rows x (p, d) and y (p, e).

    Args:
        kind: "orthogonal" (Procrustes of centred rows), "ridge" (regularised least squares) or "residual" (orthogonal,
            and a ridge regression of low rank on what it misses).
        x: vectors of the source model.
        y: vectors of the target model.
        strength: of the ridge, relative to the mean variance of a dimension, or the rank of the residual.
    """
    x, mean_x = _centred(x)
    y, mean_y = _centred(y)
    if kind == "ridge":
        matrix = arrays.to_numpy(least_squares(x, y, ridge=_ridge(x, strength)))
    else:
        rotation = arrays.to_numpy(procrustes(x, y))
        matrix = rotation * _scale(y, x @ rotation)
        if kind == "residual":
            missed = arrays.to_numpy(least_squares(x, y - x @ matrix, ridge=_ridge(x, 1.0)))
            # Reduced-rank regression (Izenman 1975): the directions of the fitted values with the largest variance.
            _, _, axes = np.linalg.svd(x @ missed, full_matrices=False)
            axes = axes[: int(strength)]
            matrix = matrix + missed @ axes.T @ axes
    # A regression shrinks the rows towards the mean, which would outweigh them in the cosine.
    matrix = matrix * _scale(y, x @ matrix)
    return Adapter(matrix.astype(np.float32), (mean_y - mean_x @ matrix).astype(np.float32), kind)


def _centred(rows: AnyFloats) -> tuple[AnyFloats, AnyFloats]:
    """Return unit rows (p, d) in float64 less their mean, and the mean (d,)."""
    scaled = unit_rows(rows).astype(np.float64)
    mean = scaled.mean(axis=0)
    return scaled - mean, mean


def _ridge(x: AnyFloats, strength: float) -> float:
    """Return a ridge relative to the mean eigenvalue of the Gram matrix of x."""
    return float(strength * np.sum(x * x) / x.shape[1])


def _scale(of: AnyFloats, rows: AnyFloats) -> float:
    """Return the factor that gives rows the mean square length of others."""
    return float(np.linalg.norm(of)) / max(float(np.linalg.norm(rows)), 1e-12)


# --------------------------------------------------------------------------- ONNX

# Written without a library: a model of four nodes is a few nested protobuf messages. Field numbers and types are those
# of `onnx.proto` (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto).
_IR_VERSION, _OPSET = 8, 13  # of 2021, so that older runtimes read it, too
_FLOAT, _INT_ATTRIBUTE = 1, 2
_BATCH = "n"


def onnx_model(matrix: AnyFloats, offset: AnyFloats) -> bytes:
    """Return the model unit(unit(input) matrix + offset). input: (n, d), output: (n, e) float32."""
    d, e = matrix.shape
    nodes = (
        _normalization("input", "scaled"),
        _node("MatMul", ["scaled", "matrix"], "product"),
        _node("Add", ["product", "offset"], "sum"),
        _normalization("sum", "output"),
    )
    graph = b"".join(_field(1, node) for node in nodes) + _field(2, b"qwp adapter")
    graph += _field(5, _tensor("matrix", matrix)) + _field(5, _tensor("offset", offset))
    graph += _field(11, _value("input", int(d))) + _field(12, _value("output", int(e)))
    opset = _field(1, b"") + _number(2, _OPSET)
    return _number(1, _IR_VERSION) + _field(2, b"qwp") + _field(7, graph) + _field(8, opset)


def _normalization(source: str, target: str) -> bytes:
    attributes = (("axis", -1), ("p", 2))
    return _node("LpNormalization", [source], target) + b"".join(
        _field(5, _field(1, name.encode()) + _number(3, value) + _number(20, _INT_ATTRIBUTE))
        for name, value in attributes
    )


def _node(kind: str, sources: list[str], target: str) -> bytes:
    inputs = b"".join(_field(1, source.encode()) for source in sources)
    return inputs + _field(2, target.encode()) + _field(4, kind.encode())


def _tensor(name: str, values: AnyFloats) -> bytes:
    dims = b"".join(_number(1, size) for size in values.shape)
    return dims + _number(2, _FLOAT) + _field(8, name.encode()) + _field(9, np.asarray(values, dtype="<f4").tobytes())


def _value(name: str, width: int) -> bytes:
    shape = _field(1, _field(2, _BATCH.encode())) + _field(1, _number(1, width))
    return _field(1, name.encode()) + _field(2, _field(1, _number(1, _FLOAT) + _field(2, shape)))


def _field(number: int, content: bytes) -> bytes:
    """Return a field of bytes, of text or of another message."""
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _number(number: int, value: int) -> bytes:
    """Return a field of an integer."""
    return _varint(number << 3) + _varint(value % 2**64)


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    found.append(value)
    return bytes(found)
