"""Lookups answer a few queries like a search among all words, and are cached in sidecars."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from qwp import Alignment, Embeddings, align, arrays
from qwp.errors import InputError
from qwp.results import lookup
from qwp.results.lookup import Lookup, coefficients
from qwp.results.sidecars import Origin
from qwp.results.sides import AlignedSide
from qwp.search import retrieval
from qwp.spaces import normalization
from qwp.spaces.embeddings import FloatArray
from tests.conftest import QUICK, planted_embeddings
from tests.problems import rotation


def some_side(steps: str, *, mapped: bool, n: int = 60, d: int = 7, seed: int = 0) -> AlignedSide:
    rng = np.random.default_rng(seed)
    vectors = (rng.standard_normal((n, d)) * rng.uniform(0.1, 9, (n, 1)) + 0.3).astype("f4")
    vectors[5] = 0
    fitted, _ = normalization.fit(vectors, steps)
    weights = np.diag(np.linspace(0.2, 2.0, d))
    return AlignedSide(
        Embeddings([f"w{i}" for i in range(n)], vectors),
        (rotation(d, 1) @ weights @ rotation(d, 2)).astype("f4") if mapped else None,
        fitted,
    )


@pytest.mark.parametrize("steps", ["unit,center,unit", "center,unit,center,unit", "unit", "center", "none"])
def test_similarities_equal_those_of_mapped_words(steps: str) -> None:
    mapped = steps != "center"
    side = some_side(steps, mapped=mapped)
    rng = np.random.default_rng(3)
    queries = arrays.to_numpy(arrays.unit(rng.standard_normal((4, 7)).astype("f4")))
    found = Lookup(side, np.zeros(60, dtype="f4"), coefficients(side, "float32"), 5)
    expected = queries @ arrays.to_numpy(arrays.unit(side.mapped(side.space.vectors, arrays.HOST, "float32"))).T
    assert np.abs(found.similarities(queries) - expected).max() < 3e-6


def test_blocks_change_coefficients_by_rounding_only() -> None:
    side = some_side("unit,center,unit", mapped=True)
    whole = coefficients(side, "float32")
    assert np.allclose(coefficients(side, "float32", block_rows=7), whole, rtol=1e-5)


@pytest.mark.parametrize("method", ["csls", "nn"])
def test_few_and_many_queries_have_the_same_answers(aligned: Alignment, method: str) -> None:
    words = aligned.src.words[:20]
    fresh = replace(aligned)
    fresh.lookup("tgt")
    few = fresh.translate(words, 4, retrieval=method)
    assert not fresh.translator.has_retrievers
    other = replace(aligned)
    many = other.translate(aligned.src.words[: lookup.FEW_QUERIES + 1], 4, retrieval=method)
    assert other.translator.has_retrievers
    for word in words:
        assert [t.word for t in few[word]] == [t.word for t in many[word]]
        assert [t.score for t in few[word]] == pytest.approx([t.score for t in many[word]], abs=2e-6)


class CountingLookup(Lookup):
    """Counts the queries of each block."""

    def __init__(self, found: Lookup) -> None:
        super().__init__(found.side, found.hubs, found.coefficients, found.csls_k)
        object.__setattr__(self, "sizes", [])

    sizes: list[int]

    def similarities(self, queries: FloatArray) -> FloatArray:
        self.sizes.append(len(queries))
        return super().similarities(queries)


@pytest.mark.parametrize("method", ["nn", "csls"])
def test_memory_is_bounded_by_blocks_of_queries(aligned: Alignment, method: str) -> None:
    found = CountingLookup(aligned.lookup("tgt"))
    queries = arrays.to_numpy(aligned.mapped("src"))[:50]
    expected = found.top_k(queries, 3, method)
    found.sizes.clear()
    with arrays.use_memory(1e-7):
        rows, scores = found.top_k(queries, 3, method)
    assert found.sizes == [1] * 50
    np.testing.assert_array_equal(rows, expected[0])
    np.testing.assert_allclose(scores, expected[1], atol=1e-5)
    assert [part.shape for part in found.top_k(queries[:0], 3, method)] == [(0, 3), (0, 3)]


def test_search_by_cosine_needs_no_neighbourhood_means(aligned: Alignment) -> None:
    fresh = replace(aligned)
    first = fresh.translate(aligned.src.words[:3], 2, retrieval="nn")
    assert not fresh.has_lookup("tgt")
    assert fresh.translate(aligned.src.words[:3], 2, retrieval="nn") == first
    # The scores are the same if the neighbourhood means exist.
    fresh.lookup("tgt")
    assert fresh.translate(aligned.src.words[:3], 2, retrieval="nn") == first


def test_the_hubs_are_the_neighbourhood_means(aligned: Alignment) -> None:
    for side, other in (("src", "tgt"), ("tgt", "src")):
        expected = retrieval.neighbourhood_means(aligned.mapped(side), aligned.mapped(other), 10)  # type: ignore[arg-type]
        assert np.array_equal(replace(aligned).lookup(side).hubs, arrays.to_numpy(expected))  # type: ignore[arg-type]
    # A neighbourhood is at most as large as a vocabulary.
    small = replace(aligned)
    assert small.lookup("tgt", 10_000) is small.lookup("tgt", len(aligned.src))


def saved_alignment(folder: Path) -> Alignment:
    align(*planted_embeddings(150, noise=0.1), **QUICK).save(folder)
    return Alignment.load(folder, check="size")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("lookup") / "a"
    saved_alignment(found).translate("s3")
    return found


def copy_of(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "copy"))


def test_lookup_is_cached_in_a_sidecar(folder: Path) -> None:
    assert [path.name for path in folder.glob("lookup-*")] == ["lookup-tgt-10.safetensors"]
    again = Alignment.load(folder, check="size")
    assert again.has_lookup("tgt")
    assert not again.has_lookup("src")
    assert again.translate("s3", 1)["s3"][0].word == "t3"
    # Nothing was mapped, and the vectors are memory-mapped.
    assert not again.common.is_mapped
    assert isinstance(again.tgt.vectors.base, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        again.tgt.vectors[0] = 0


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b"nothing of the kind"),
        lambda path: path.write_bytes(path.read_bytes()[:-8]),
        lambda path: path.write_bytes(path.read_bytes()[:-3] + b"\x01\x02\x03"),
        lambda path: path.write_bytes(b""),
        lambda path: (path.unlink(), path.mkdir()),
    ],
)
def test_damaged_sidecar_is_computed_again(folder: Path, tmp_path: Path, damage: object) -> None:
    copy = copy_of(folder, tmp_path)
    damage(copy / "lookup-tgt-10.safetensors")  # type: ignore[operator]
    found = Alignment.load(copy, check="size")
    assert not found.has_lookup("tgt")
    assert found.translate("s3", 1)["s3"][0].word == "t3"
    assert found.has_lookup("tgt")


def test_sidecar_of_another_alignment_is_ignored(folder: Path, tmp_path: Path) -> None:
    copy = copy_of(folder, tmp_path)
    origin = Alignment.load(copy).origin
    assert origin is not None
    other = align(*planted_embeddings(150, noise=0.1, seed=5), **QUICK)
    # Saving another result removes the sidecar. Restored, it has the hash of the earlier result.
    kept = (copy / "lookup-tgt-10.safetensors").read_bytes()
    other.save(copy)
    assert not list(copy.glob("lookup-*"))
    (copy / "lookup-tgt-10.safetensors").write_bytes(kept)
    assert not Alignment.load(copy).has_lookup("tgt")
    assert lookup.read(Origin(copy, "0" * 64), "tgt", other.tgt_side, 10) is None


def test_read_only_folder_is_no_error(folder: Path, tmp_path: Path) -> None:
    copy = copy_of(folder, tmp_path)
    (copy / "lookup-tgt-10.safetensors").unlink()
    (copy / "lookup-tgt-10.safetensors").mkdir()
    assert Alignment.load(copy, check="size").translate("s3", 1)["s3"][0].word == "t3"


def test_size_check_compares_sizes_only(folder: Path, tmp_path: Path) -> None:
    copy = copy_of(folder, tmp_path)
    [vectors] = copy.glob("parts-*/tgt.safetensors")
    whole = vectors.read_bytes()
    vectors.write_bytes(whole[:-4])
    with pytest.raises(InputError, match=r"has [\d,]+ bytes, [\d,]+ were saved"):
        Alignment.load(copy, check="size")
    # Only the content check notices other content of the same size.
    vectors.write_bytes(whole[:-4] + b"\0\0\0\1")
    Alignment.load(copy, check="size")
    with pytest.raises(InputError, match="has changed since it was saved"):
        Alignment.load(copy)
    with pytest.raises(InputError, match="check='all' is not known"):
        Alignment.load(copy, check="all")
