"""The files with the vectors, maps, means and orders of a saved alignment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from fuzz.edits import reseal
from qwp import Alignment, InputError, Lexicon, align
from qwp.results.provenance import InputRecord
from qwp.results.saved import MAPS_FILE
from qwp.spaces import io
from tests.conftest import planted_embeddings
from tests.problems import Array
from tests.results.test_saved import parts


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
def test_invalid_arrays_are_refused_even_with_the_right_hash(
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


@pytest.fixture
def from_files(tmp_path: Path) -> Alignment:
    """Return an alignment of the first 100 words of one file with some words of another."""
    src, tgt = planted_embeddings(120, noise=0.1)
    io.save(src, tmp_path / "en.vec")
    io.save(tgt, tmp_path / "es.bin")
    (tmp_path / "words.txt").write_text("".join(f"{word}\n" for word in tgt.words[:110]))
    spaces = (
        io.load(tmp_path / "en.vec", max_vocab=100),
        io.load(tmp_path / "es.bin", vocab=tmp_path / "words.txt", dtype="float64"),
    )
    return align(*spaces, method="procrustes", lexicon=Lexicon(tuple((f"s{i}", f"t{i}") for i in range(50))), threads=1)


def test_unsaved_vectors_are_read_from_their_files_when_needed(from_files: Alignment, tmp_path: Path) -> None:
    from_files.save(tmp_path / "out", vectors=False)
    assert [path.name for path in parts(tmp_path / "out").iterdir()] == [MAPS_FILE]
    loaded = Alignment.load(tmp_path / "out")
    assert (from_files.holds_vectors, loaded.holds_vectors) == (True, False)
    moved = {name: (tmp_path / name).rename(tmp_path / f"{name}.moved") for name in ("en.vec", "es.bin")}
    # Mapping new vectors and showing the result do not need the files.
    assert "undecided" in loaded._repr_html_()
    assert "best first" not in loaded._repr_html_()
    assert repr(loaded.src_side).startswith("AlignedSide(source=not read yet")
    new = np.random.default_rng(0).standard_normal((4, 12)).astype("f4")
    np.testing.assert_array_equal(loaded.transform(new), from_files.transform(new))
    with pytest.raises(InputError, match=r"out holds the maps but not the vectors of src .*en.vec does not exist"):
        loaded.translate("s1")
    for name, path in moved.items():
        path.rename(tmp_path / name)
    assert loaded.translate("s1") == from_files.translate("s1")
    for side in ("src", "tgt"):
        found, expected = getattr(loaded, side), getattr(from_files, side)
        assert (found.words, found.name, found.vectors.dtype) == (expected.words, expected.name, expected.vectors.dtype)
        np.testing.assert_array_equal(found.vectors, expected.vectors)
    assert "best first" in loaded._repr_html_()
    assert repr(loaded.src_side).startswith("AlignedSide(source=Embeddings('en', 100 words")
    # It can be saved again, with or without them.
    loaded.save(tmp_path / "again", vectors=False)
    loaded.save(tmp_path / "whole")
    assert Alignment.load(tmp_path / "whole").holds_vectors
    assert Alignment.load(tmp_path / "again").translate("s1") == from_files.translate("s1")


def test_vectors_without_a_file_must_be_saved(aligned: Alignment, from_files: Alignment, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the vectors of src did not come from a file, .*: save them, too"):
        aligned.save(tmp_path / "out", vectors=False)
    listed = io.load(tmp_path / "es.bin", vocab=["t1", "t2", "t3"])
    record = InputRecord.of(listed)
    unknown = replace(from_files, provenance=replace(from_files.provenance, tgt=record))
    with pytest.raises(InputError, match="the vectors of tgt were chosen by a vocabulary that is no file"):
        unknown.save(tmp_path / "out", vectors=False)
    assert not (tmp_path / "out").exists()


def test_names_survive_saving(from_files: Alignment, tmp_path: Path) -> None:
    assert (from_files.src.name, from_files.tgt.name) == ("en", "es")
    from_files.save(tmp_path / "out")
    loaded = Alignment.load(tmp_path / "out")
    assert (loaded.src.name, loaded.tgt.name) == ("en", "es")
    with pytest.raises(InputError, match="1 of 1 words are not among the 100 words of en: 'x'"):
        loaded.transform(["x"])


def test_missing_names_are_those_of_the_files(from_files: Alignment, tmp_path: Path) -> None:
    bare = {side: replace(getattr(from_files.provenance, side), name=None, reading=None) for side in ("src", "tgt")}
    replace(from_files, provenance=replace(from_files.provenance, **bare)).save(tmp_path / "out")
    loaded = Alignment.load(tmp_path / "out")
    assert (loaded.src.name, loaded.tgt.name) == ("en", "es")
