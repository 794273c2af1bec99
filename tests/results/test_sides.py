"""One language of an alignment, and the files that keep it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from fuzz.edits import reseal
from qwp import Alignment, Embeddings, InputError, arrays
from qwp.results.saved import MAPS_FILE
from qwp.results.sides import AlignedSide
from qwp.spaces import normalization
from qwp.spaces.normalization import Normalization
from tests.problems import Array, rotation
from tests.results.test_saved import parts

SPACE = Embeddings([f"w{i}" for i in range(5)], np.arange(15, dtype="f4").reshape(5, 3) ** 1.5)
PLAIN = Normalization((), ())


def test_the_most_frequent_words_are_the_first_unless_an_order_was_estimated() -> None:
    side = AlignedSide(SPACE, None, PLAIN)
    np.testing.assert_array_equal(side.frequent(2), [0, 1])
    np.testing.assert_array_equal(side.frequent(9), range(5))
    ordered = replace(side, order=np.array([3, 1, 4, 0, 2]))
    np.testing.assert_array_equal(ordered.frequent(2), [3, 1])
    np.testing.assert_array_equal(ordered.frequent(9), [3, 1, 4, 0, 2])


def test_vectors_are_normalised_then_mapped() -> None:
    fitted, rows = normalization.fit(SPACE.vectors)
    turn = rotation(3, 0).astype("f4")
    side = AlignedSide(SPACE, turn, fitted)
    mapped = side.mapped(SPACE.vectors, arrays.HOST, "float32")
    np.testing.assert_allclose(np.asarray(mapped), np.asarray(rows) @ turn, atol=1e-6)
    np.testing.assert_array_equal(replace(side, map=None).mapped(SPACE.vectors, arrays.HOST, "float32"), rows)


def test_arrays_by_name() -> None:
    means = (np.zeros(3, "f4"), np.ones(3, "f4"))
    side = AlignedSide(SPACE, None, Normalization(("center", "unit", "center"), means))
    assert list(side.tensors()) == ["mean_0", "mean_1"]
    both = replace(side, map=rotation(3, 0).T, order=np.arange(5))
    assert set(both.tensors()) == {"mean_0", "mean_1", "map", "order"}
    assert all(tensor.flags.c_contiguous for tensor in both.tensors().values())


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda t: t.pop("src_map"), "src_map is missing"),
        (lambda t: t.pop("src_mean_0"), "src_mean_0 is missing"),
        (lambda t: t.update(src_mean_1=t["src_mean_0"]), "src_mean_1 is not known"),
        (lambda t: t.update(other=t["src_map"]), "'other' is not known"),
        (lambda t: t.update(tgt_map=t["tgt_map"][:5]), r"tgt_map is float32 of shape \(5, 12\), expected float32 or"),
        (lambda t: t.update(tgt_map=t["tgt_map"].astype("f2")), "'tgt_map' is of type F16"),
        (lambda t: t.update(tgt_map=t["tgt_map"].astype("i8")), "tgt_map is int64"),
        (lambda t: t.update(src_map=t["src_map"] * np.float32("nan")), "src_map holds NaN"),
        (lambda t: t.update(src_mean_0=t["src_mean_0"] * np.float32("inf")), "src_mean_0 holds NaN or infinite"),
        (lambda t: t.update(src_order=np.arange(399)), r"src_order is int64 of shape \(399,\)"),
        (lambda t: t.update(src_order=np.zeros(400, int)), "src_order does not name each of the 400 words once"),
        (lambda t: t.update(src_order=np.arange(400) - 1), "src_order does not name each of the 400 words once"),
        (lambda t: t.update(src_order=np.arange(400.0)), "src_order is float64"),
    ],
)
def test_arrays_that_make_no_sense_are_refused_even_with_the_right_hash(
    aligned: Alignment, tmp_path: Path, edit: Callable[[dict[str, Array]], object], message: str
) -> None:
    aligned.save(tmp_path)
    path = parts(tmp_path) / MAPS_FILE
    tensors = load_file(path)
    edit(tensors)
    save_file({name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}, path)
    assert reseal(tmp_path)
    with pytest.raises(InputError, match=f"{MAPS_FILE} is damaged .*{message}"):
        Alignment.load(tmp_path)
