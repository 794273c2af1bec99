from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from qwp import Embeddings
from qwp.errors import InputError
from qwp.spaces.io import load, save, sniff


def test_files_of_the_projector_are_read(tmp_path: Path) -> None:
    (tmp_path / "vectors.tsv").write_text("1\t2.5\n-3e-1\t4\n")
    (tmp_path / "metadata.tsv").write_text("word\tcount\nthe\t9\nof\t8\n")
    found = load(tmp_path / "vectors.tsv")
    assert sniff(tmp_path / "vectors.tsv") == "projector"
    assert found.words == ["the", "of"]
    np.testing.assert_allclose(found.vectors, [[1, 2.5], [-0.3, 4]])


def test_what_is_written_can_be_given_to_the_projector(tmp_path: Path) -> None:
    save(Embeddings(["a b", "c"], np.array([[1.5, 2], [3, 4]], np.float32)), tmp_path / "x.tsv", digits=1)
    assert (tmp_path / "x.tsv").read_text() == "1.5\t2.0\n3.0\t4.0\n"
    assert (tmp_path / "x.metadata.tsv").read_text() == "a b\nc\n"
    with pytest.raises(InputError, match=r"cannot be on a line of y.metadata.tsv"):
        save(Embeddings(["a\tb"], np.ones((1, 2), np.float32)), tmp_path / "y.tsv")


def test_lines_that_are_no_vectors_are_damaged(tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_text("1\t2\n1\t2\t3\n1\n1\tnan\n5\t6\nx\t1\n7\t8\n1\t1\n2\t2\n")
    with pytest.raises(InputError, match=r"line 2 of .* holds 3 numbers, expected 2"):
        load(tmp_path / "x.tsv")
    found = load(tmp_path / "x.tsv", errors="skip")
    assert found.words == ["x:0", "x:4", "x:6", "x:7", "x:8"]
    assert found.vectors[1].tolist() == [5, 6]
    (tmp_path / "y.tsv").write_text("a\tb\n")
    with pytest.raises(InputError, match=r"line 1 of .* holds 0 numbers"):
        load(tmp_path / "y.tsv", format="projector")


def test_a_table_with_words_is_text(tmp_path: Path) -> None:
    (tmp_path / "x.tsv").write_text("the\t1\t2\nof\t3\t4\n")
    assert sniff(tmp_path / "x.tsv") == "glove"
