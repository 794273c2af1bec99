"""Checks of rows to write."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from qwp.errors import InputError
from qwp.spaces import io
from qwp.spaces.embeddings import Embeddings
from qwp.spaces.io.writing import RowWriter, Target


def writer(count: int | None = None) -> tuple[RowWriter, list[tuple[list[str], np.ndarray]]]:
    taken: list[tuple[list[str], np.ndarray]] = []
    target = Target(Path("x.npz"), "npz", 2, count)
    return RowWriter(target, lambda words, rows: taken.append((words, rows))), taken


def test_rows_are_converted_to_float32() -> None:
    rows, taken = writer()
    rows.write(("a", "b"), np.array([[1, 2], [3, 4]]))
    rows.write([], np.empty((0, 2)))
    assert [words for words, _ in taken] == [["a", "b"]]
    assert taken[0][1].dtype == np.float32
    assert rows.finish() == rows.n_written == 2


@pytest.mark.parametrize(
    ("words", "vectors", "expected"),
    [
        (["a"], np.ones((2, 2)), r"1 words and vectors of shape \(2, 2\)"),
        (["a"], np.ones((1, 3)), r"expected shape \(1, 2\)"),
        (["a"], np.array([[1e300, 0.0]]), "not finite as float32"),
        (["a"], np.array([["1", "2"]]), "expected real numbers"),
        (["a", ""], np.ones((2, 2)), r"the empty word \(row 1\)"),
        (["a\ud800"], np.ones((1, 2)), "half of a surrogate pair"),
        (["x" * 70_000], np.ones((1, 2)), "more than 65535 bytes"),
        ("ab", np.ones((2, 2)), "expected a list of strings"),
    ],
)
def test_rows_that_no_file_can_hold_are_refused(words: list[str], vectors: np.ndarray, expected: str) -> None:
    rows, taken = writer()
    with pytest.raises(InputError, match=expected):
        rows.write(words, vectors)
    assert not taken
    assert rows.n_written == 0


def test_a_wrong_count_is_refused() -> None:
    with pytest.raises(InputError, match="expected at least one"):
        writer()[0].finish()
    rows, _ = writer(count=3)
    rows.write(["a"], np.ones((1, 2)))
    with pytest.raises(InputError, match=r"1 words were written to x\.npz, expected count=3"):
        rows.finish()


def test_a_file_that_looks_like_another_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.glove"
    with pytest.raises(InputError, match="would be taken for text when it is read, expected glove"):
        io.save(Embeddings(["1", "a"], np.array([[1.0], [2.0]])), path, digits=0)
    assert list(tmp_path.iterdir()) == []
