"""Adapters as ONNX models, written without a library: a model of four nodes is a few nested protobuf messages.

Field numbers and types are those of `onnx.proto` (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto).
"""

from __future__ import annotations

import numpy as np

from qwp.arrays import AnyFloats

_IR_VERSION, _OPSET = 8, 13  # of 2021, so that older runtimes read it, too
_FLOAT, _INT_ATTRIBUTE = 1, 2
_BATCH = "n"


def model(matrix: AnyFloats, offset: AnyFloats) -> bytes:
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
