"""Copying vectors batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from qwp.cli import streaming
from qwp.errors import InputError
from qwp.spaces import io
from qwp.spaces.embeddings import Embeddings
from qwp.spaces.io import Batch
from tests.cli.conftest import leftovers


@pytest.fixture
def space() -> Embeddings:
    return Embeddings([f"w{i}" for i in range(7)], np.arange(14, dtype=np.float32).reshape(7, 2))


def test_batches_hold_every_word_once_in_order(space: Embeddings) -> None:
    batches = list(streaming.batches_of(space, 3))
    assert [len(batch) for batch in batches] == [3, 3, 1]
    assert [word for batch in batches for word in batch.words] == space.words


def test_copied_vectors_are_mapped_and_counted(
    space: Embeddings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.vec"
    assert streaming.copy(streaming.batches_of(space), out, treat=lambda rows: rows + 1) == 7
    np.testing.assert_array_equal(io.load(out).vectors, space.vectors + 1)
    assert f"7 words, 2 dimensions written to {out}" in capsys.readouterr().out.replace("\n", "")
    streaming.copy(streaming.batches_of(space), out, quiet=True)
    assert capsys.readouterr().out == ""


def test_an_empty_input_is_an_error_and_writes_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no word to write"):
        streaming.copy(iter(()), tmp_path / "out.vec")

    def broken(space: Embeddings) -> object:
        yield Batch(space.words[:1], space.vectors[:1])
        raise InputError("the source ended early")

    batches = broken(Embeddings(["a"], np.ones((1, 2))))
    with pytest.raises(InputError, match="ended early"):
        streaming.copy(batches, tmp_path / "out.vec")  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_target_is_checked_before_reading(tmp_path: Path) -> None:
    streaming.check_target(tmp_path / "x.vec", None, 3)
    for out, format, digits in (
        (tmp_path / "missing" / "x.vec", None, None),
        (tmp_path / "x.unknown", None, None),
        (tmp_path / "x.npz", None, 3),
        (tmp_path / "x.vec", "nope", None),
    ):
        with pytest.raises(InputError):
            streaming.check_target(out, format, digits)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["x.vec", "x.vec.gz", "x.bin", "x.npz", "x.safetensors"])
def test_an_interrupt_keeps_the_earlier_file(tmp_path: Path, name: str) -> None:
    def interrupted() -> Iterator[Batch]:
        yield Batch(["a", "b"], np.eye(2, dtype=np.float32))
        yield Batch(["c"], np.ones((1, 2), np.float32))
        raise KeyboardInterrupt

    (tmp_path / name).write_bytes(b"earlier")
    with pytest.raises(KeyboardInterrupt):
        streaming.copy(interrupted(), tmp_path / name, quiet=True)
    assert leftovers(tmp_path) == []
    assert (tmp_path / name).read_bytes() == b"earlier"
