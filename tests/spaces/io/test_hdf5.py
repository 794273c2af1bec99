from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qwp import Embeddings
from qwp.errors import InputError
from qwp.spaces.io import load, save

h5py: Any = pytest.importorskip("h5py")
ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)
WORDS = ["a", "b", "ç", "d"]


def test_datasets_are_found_or_named(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["group/rows"] = ROWS.astype(np.float16)
        file["keys"] = [word.encode() for word in WORDS]
    found = load(path)
    assert found.words == WORDS
    np.testing.assert_array_equal(found.vectors, ROWS)
    assert load(f"{path}#group/rows", label="src").words[0] == "src:0"
    with h5py.File(path, "a") as file:
        file["more"] = 2 * ROWS
    with pytest.raises(InputError, match="expected one matrix of numbers: name the datasets behind the file"):
        load(path)
    np.testing.assert_array_equal(load(f"{path}#keys,more").vectors, 2 * ROWS)
    with pytest.raises(InputError, match="expected #WORDS,VECTORS or #VECTORS of the datasets"):
        load(f"{path}#nothing")


def test_other_files_are_not_opened(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(ROWS.tobytes())
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("vectors", ROWS.shape, "f4", external=[(str(tmp_path / "secret"), 0, ROWS.nbytes)])
    with pytest.raises(InputError, match="refers to other files, which are not opened"):
        load(tmp_path / "x.h5")
    with h5py.File(tmp_path / "own.h5", "w") as file:
        file["vectors"] = ROWS
    with h5py.File(tmp_path / "y.h5", "w") as file:
        file["vectors"] = h5py.ExternalLink(str(tmp_path / "own.h5"), "/vectors")
    with pytest.raises(InputError, match="holds no datasets"):
        load(tmp_path / "y.h5")


def test_what_is_no_vectors_or_not_whole_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file["vectors"], file["words"] = ROWS, ["a"]
    with pytest.raises(InputError, match=r"holds words of shape \(1,\) and 4 vectors"):
        load(path)
    with h5py.File(path, "w") as file:
        file.create_dataset("vectors", (10_000_000, 1000), "f4", chunks=(10, 10))
    with pytest.raises(InputError, match="looks like a file made to fill the memory"):
        load(path)
    save(Embeddings(WORDS, ROWS), path)
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(InputError, match="is a damaged or cut HDF5 file"):
        load(path)
    with pytest.raises(InputError, match="holds a NUL"):
        save(Embeddings(["a\0"], ROWS[:1]), tmp_path / "y.h5")
    assert not (tmp_path / "y.h5").exists()
