"""Limits of compressed files."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from qwp.errors import InputError
from qwp.spaces import io
from qwp.spaces.embeddings import Embeddings
from qwp.spaces.limits import UNPACK


def test_limits_grow_with_the_size() -> None:
    assert UNPACK.max_bytes(0) == 64 << 20
    assert UNPACK.max_bytes(10**9) == 12 * 10**9 + (64 << 20)
    assert UNPACK.max_rows(0) == 1_000_000
    assert UNPACK.max_rows(8 * 10**6) == 2_000_000


def test_real_vectors_are_far_from_the_limits(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(500, 50)).astype(np.float32)
    path = tmp_path / "x.vec.gz"
    io.save(Embeddings([f"w{i}" for i in range(500)], rows), path)
    unpacked = len(gzip.decompress(path.read_bytes()))
    assert unpacked < 4 * path.stat().st_size


@pytest.mark.slow
def test_a_bomb_is_refused_with_a_remedy(tmp_path: Path) -> None:
    path = tmp_path / "bomb.vec.gz"
    block = b"".join(b"w%d " % i + b"0 " * 63 + b"0\n" for i in range(8192))
    with gzip.open(path, "wb", compresslevel=9) as file:
        for _ in range(110):
            file.write(block)
    with pytest.raises(InputError, match="made to exhaust memory; if you trust it, unpack it yourself"):
        io.load(path)


def test_errors_name_the_file_and_both_limits() -> None:
    for error in (UNPACK.bomb("x.gz", 1000), UNPACK.too_compressible("x.gz", 1000)):
        assert str(error).startswith("x.gz ")
        assert f"{UNPACK.max_bytes(1000):,} bytes" in str(error)
        assert f"{UNPACK.max_rows(1000):,} rows" in str(error)
