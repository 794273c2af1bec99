"""Translations of words and vectors, exact, approximate and with the spelling term."""

from __future__ import annotations

import copy
import json
import pickle
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from qwp import Alignment, Embeddings, InputError, align, arrays
from qwp.arrays import AnyFloats
from qwp.results.sidecars import Origin
from qwp.results.sides import AlignedSide
from qwp.results.translator import (
    FEW_QUERIES,
    Lookup,
    Translation,
    Translations,
    WordQuery,
    lookup_coefficients,
    read_lookup,
)
from qwp.search import retrieval
from qwp.search.spelling import Spelling
from qwp.spaces import normalization
from qwp.spaces.embeddings import Side
from tests.conftest import QUICK, planted_embeddings
from tests.problems import rotation
from tests.tolerance import rounding

VOCABULARY = Embeddings(["house", "Haus", "UNO", "water"], np.eye(4))


def test_queries_are_unique_and_ordered() -> None:
    asked = WordQuery.of(["water", "x", "house", "water", "x"], VOCABULARY)
    assert (asked.known, asked.unknown, asked.hints) == (["water", "house"], ["x"], {})
    with pytest.raises(InputError, match="no word was given; expected at least one"):
        WordQuery.of([], VOCABULARY)


def test_a_word_in_another_case_is_a_hint() -> None:
    asked = WordQuery.of(["House", "haus", "uno", "Zzz"], VOCABULARY)
    assert asked.hints == {"House": "house", "haus": "Haus", "uno": "UNO"}
    assert asked.explained("House", "en-es") == "'House' is not among the 4 words of en-es; did you mean 'house'?"
    assert asked.explained("Zzz", "en-es") == "'Zzz' is not among the 4 words of en-es"


def test_none_of_the_words_is_known() -> None:
    asked = WordQuery.of(["House", "x"], VOCABULARY)
    assert str(asked.none_known("src", "--reverse", listed=True)) == (
        "none of the 2 words is among the 4 words of the source side (such as house, Haus, UNO): "
        "check the spelling and the direction (try --reverse)"
    )
    assert str(asked.none_known("tgt", 'side="tgt"')) == (
        "none of the 2 words ('House', 'x') is among the 4 words of the target side (such as house, Haus, UNO): "
        "check the spelling (did you mean 'house'?) and the direction (leave out side=\"tgt\")"
    )
    one = WordQuery.of(["x"], VOCABULARY)
    assert str(one.none_known("src", "--reverse")).startswith("'x' is not among the 4 words of the source")
    many = WordQuery.of("abcdefgh", VOCABULARY)
    assert "('a', 'b', 'c', 'd', 'e', ...)" in str(many.none_known("src", ""))


def test_translations_are_a_dict_with_unknown_words() -> None:
    best = [Translation("casa", 0.5)]
    found = Translations({"house": best}, ["House", "x"], {"House": "house"})
    assert found == {"house": best}
    assert isinstance(found, dict)
    assert list(found) == ["house"]
    assert found.unknown == ["House", "x"]
    assert repr(found) == ("Translations({'house': [Translation(word='casa', score=0.5)]}, unknown=['House', 'x'])")
    assert repr(Translations({"house": best})) == repr({"house": best})
    assert json.loads(json.dumps({word: len(best) for word, best in found.items()})) == {"house": 1}


def test_key_error_of_an_unknown_word() -> None:
    found = Translations({}, ["House", "x"], {"House": "house"})
    for word, message in {
        "House": "'House' is not in the vocabulary; did you mean 'house'?",
        "x": "'x' is not in",
    }.items():
        with pytest.raises(KeyError, match=message):
            found[word]
    with pytest.raises(KeyError, match="never asked"):
        found["never asked"]
    assert found.get("House") is None


def test_copies_keep_what_is_unknown() -> None:
    found = Translations({"house": []}, ["House"], {"House": "house"})
    for same in (copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert (same, same.unknown, same.hints) == (found, found.unknown, found.hints)


def test_translates_planted_words(aligned: Alignment) -> None:
    found = aligned.translate([f"s{i}" for i in range(50)], k=3)
    right = sum(best[0].word == f"t{word[1:]}" for word, best in found.items())
    assert right >= 48
    assert all(len(best) == 3 and best[0].score >= best[1].score >= best[2].score for best in found.values())


def test_translates_backwards(aligned: Alignment) -> None:
    assert aligned.translate("t7", k=1, side="tgt")["t7"][0].word == "s7"


@pytest.mark.parametrize("method", ["nn", "csls", "softmax"])
def test_every_retrieval_method_translates(aligned: Alignment, method: str) -> None:
    assert aligned.translate("s3", k=1, retrieval=method)["s3"][0].word == "t3"


@pytest.mark.parametrize("retrieval", ["nn", "csls"])
def test_approximate_translations_agree_with_the_exact_ones(many_words: Alignment, retrieval: str) -> None:
    words = many_words.tgt.words[:200]
    exact = many_words.translate(words, k=1, side="tgt", retrieval=retrieval)
    found = many_words.translate(words, k=1, side="tgt", retrieval=retrieval, approximate=True)
    assert np.mean([found[word][0].word == exact[word][0].word for word in words]) >= 0.95


@pytest.mark.slow
def test_approximate_search_is_the_same_every_time_and_its_recall_is_known(many_words: Alignment) -> None:
    again = replace(many_words)
    assert again.induce(approximate=True) == many_words.induce(approximate=True)
    for side in ("src", "tgt"):
        assert 0.9 <= many_words.approximate_recall(side) <= 1.0
        assert again.approximate_recall(side) == many_words.approximate_recall(side)


def test_approximate_search_that_cannot_work_is_explained(
    many_words: Alignment, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="'softmax' cannot be approximated"):
        many_words.translate("s1", retrieval="softmax", approximate=True)
    with pytest.raises(InputError, match="'left'"):
        many_words.approximate_recall("left")  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(InputError, match=r'pip install "qwp\[faiss\]"'):
        replace(many_words).induce(approximate=True)


def test_unknown_words_are_listed_and_the_others_translated(aligned: Alignment) -> None:
    found = aligned.translate(["S1", "s1", "nope", "s1"], k=2)
    assert list(found) == ["s1"]
    assert found == aligned.translate("s1", k=2)
    assert found.unknown == ["S1", "nope"]
    assert found.hints == {"S1": "s1"}
    assert aligned.translate("s1").unknown == []
    with pytest.raises(InputError, match=r"'t7' is not among the .* source side .* \(try side=\"tgt\"\)"):
        aligned.translate("t7")
    with pytest.raises(InputError, match=r"'T7'.*\(did you mean 't7'\?\).*leave out side=\"tgt\""):
        aligned.translate("T7", side="tgt")


def test_words_may_be_any_iterable(aligned: Alignment) -> None:
    words = ["s5", "s3"]
    for make in (list, tuple, np.array, lambda words: np.array(words, dtype=object), iter):
        assert aligned.translate(make(words)) == aligned.translate(words)
        np.testing.assert_array_equal(aligned.transform(make(words)), aligned.transform(words))
        assert list(aligned.translate(make(words))) == words


@pytest.mark.parametrize("side", ["src", "tgt"])
@pytest.mark.parametrize("retrieval", ["nn", "csls", "softmax"])
def test_vectors_outside_of_the_vocabulary_are_translated(aligned: Alignment, side: Side, retrieval: str) -> None:
    space = aligned.side(side).space
    by_word = aligned.translate(space.words[:5], k=3, side=side, retrieval=retrieval)
    found = aligned.translate(vectors=space.vectors[:5], k=3, side=side, retrieval=retrieval)
    assert [[t.word for t in best] for best in found] == [[t.word for t in best] for best in by_word.values()]
    # As in `transform`, their length does not matter, and one vector is one row.
    near = 2.5 * space.vectors[7] + 0.001
    for given in (near, near.tolist(), near[None, :]):
        [best] = aligned.translate(vectors=given, k=2, side=side)
        assert len(best) == 2
        assert best[0].word == ("t7" if side == "src" else "s7")


def test_vectors_that_cannot_be_translated_are_explained(aligned: Alignment) -> None:
    with pytest.raises(InputError, match=r"vectors have shape \(2, 5\); expected \(n, 12\) or \(12,\)"):
        aligned.translate(vectors=np.ones((2, 5)))
    with pytest.raises(InputError, match="NaN"):
        aligned.translate(vectors=np.full(12, np.inf))
    with pytest.raises(InputError, match="NaN or infinite"):
        aligned.translate(vectors=np.full(12, 1e300))
    with pytest.raises(InputError, match="received words"):
        aligned.translate(vectors=["s1"])
    with pytest.raises(InputError, match=r"of numbers as words, expected text.*vectors="):
        aligned.translate(np.ones((2, 12)))
    with pytest.raises(InputError, match="received both words and vectors"):
        aligned.translate("s1", vectors=np.ones(12))  # type: ignore[call-overload]
    with pytest.raises(InputError, match="received neither words nor vectors"):
        aligned.translate()  # type: ignore[call-overload]


def dense_csls(alignment: Alignment) -> np.ndarray:
    """Return CSLS of all words with all, (n, m)."""
    similarities = np.asarray(alignment.mapped("src"), float) @ np.asarray(alignment.mapped("tgt"), float).T
    own = np.sort(similarities, axis=1)[:, -10:].mean(axis=1)
    return np.asarray(2 * similarities - own[:, None] - np.sort(similarities, axis=0)[-10:].mean(axis=0))


def dense_spelled(alignment: Alignment, side: Side, weight: float) -> np.ndarray:
    """Return CSLS of one side with the other plus the spelling term of the best candidates, by the definition."""
    csls = dense_csls(alignment) if side == "src" else dense_csls(alignment).T
    words, others = (each.words for each in (alignment.src, alignment.tgt)[:: 1 if side == "src" else -1])
    best = np.argsort(-csls, axis=1)[:, : Spelling.compared]
    added = weight * Spelling().similarities(words, others, best)
    np.put_along_axis(csls, best, np.take_along_axis(csls, best, axis=1) + added, axis=1)
    return csls


@pytest.mark.parametrize(("side", "k"), [("src", 1), ("tgt", 3), ("src", Spelling.compared + 20)])
def test_spelling_is_added_to_the_csls_of_the_best_words(spelled: Alignment, side: Side, k: int) -> None:
    words, others = (spelled.side(each).space.words for each in (("src", "tgt") if side == "src" else ("tgt", "src")))
    found = spelled.translate(words[:20], k=k, side=side, spelling=0.3)
    expected = dense_spelled(spelled, side, 0.3)
    plain = spelled.translate(words[:20], k=k, side=side)
    assert found != plain
    for i, word in enumerate(words[:20]):
        best = np.argsort(-expected[i], kind="stable")[:k]
        np.testing.assert_allclose([t.score for t in found[word]], expected[i][best], atol=1e-5)
        assert found[word][0].word == others[best[0]]


def test_weight_zero_changes_nothing(spelled: Alignment) -> None:
    words = spelled.src.words[:20]
    assert spelled.translate(words, spelling=0.0) == spelled.translate(words)
    assert spelled.induce(spelling=0.0) == spelled.induce()
    assert spelled.translate(words, spelling=True) == spelled.translate(words, spelling=Spelling.weight)


def test_spelling_does_not_change_words_without_common_letters(aligned: Alignment) -> None:
    words = aligned.src.words[:20]
    assert aligned.translate(words, k=3, spelling=Spelling.weight) == aligned.translate(words, k=3)
    assert aligned.induce(mutual_only=False, spelling=Spelling.weight) == aligned.induce(mutual_only=False)


def test_spelling_does_not_change_languages_of_other_scripts(spelled: Alignment) -> None:
    russian = [word.translate(str.maketrans("abcd", "абцд")) for word in spelled.tgt.words]
    russian[7] = spelled.src.words[3]
    assert spelled.translate(russian[7], spelling=True) != spelled.translate(russian[7])
    other = replace(spelled, tgt_side=replace(spelled.tgt_side, source=Embeddings(russian, spelled.tgt.vectors)))
    words = spelled.src.words[:10]
    assert other.translate(words, spelling=True) == other.translate(words)
    assert other.induce(spelling=True) == other.induce()


def test_spelling_with_approximate_search(many_words: Alignment) -> None:
    # Every source word has a namesake among the shuffled targets, so spelling alone is misleading.
    names = [f"{'abcdefghij'[i % 10]}{chr(97 + i // 10 % 26)}{chr(97 + i // 260)}" for i in range(len(many_words.src))]
    src = replace(many_words.src_side, source=Embeddings(names, many_words.src.vectors))
    tgt = replace(many_words.tgt_side, source=Embeddings(names[::-1], many_words.tgt.vectors))
    both = replace(many_words, src_side=src, tgt_side=tgt)
    exact = both.translate(names[:200], k=1, spelling=0.3)
    found = both.translate(names[:200], k=1, spelling=0.3, approximate=True)
    assert exact != both.translate(names[:200], k=1)
    assert np.mean([found[word][0].word == exact[word][0].word for word in names[:200]]) >= 0.95
    pairs = {(p.src, p.tgt) for p in both.induce(spelling=0.3)}
    near = {(p.src, p.tgt) for p in both.induce(spelling=0.3, approximate=True)}
    assert pairs != {(p.src, p.tgt) for p in both.induce()}
    assert len(pairs & near) >= 0.95 * max(len(pairs), len(near))


def test_invalid_spelling_is_explained(aligned: Alignment) -> None:
    with pytest.raises(InputError, match=r"spelling=0\.5 was received with vectors; expected words, which are spelled"):
        aligned.translate(vectors=aligned.src.vectors[:2], spelling=0.5)
    with pytest.raises(InputError, match=r"spelling=0\.5 was received with retrieval='softmax'; expected 'csls'"):
        aligned.translate("s1", retrieval="softmax", spelling=0.5)
    with pytest.raises(InputError, match="spelling=-1 is not a weight"):
        aligned.induce(spelling=-1)


# --------------------------------------------------------------------------- lookups


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
    found = Lookup(side, np.zeros(60, dtype="f4"), lookup_coefficients(side, "float32"), 5)
    expected = queries @ arrays.to_numpy(arrays.unit(side.mapped(side.space.vectors, arrays.HOST, "float32"))).T
    assert np.abs(found.similarities(queries) - expected).max() < 3e-6


def test_blocks_change_coefficients_by_rounding_only() -> None:
    side = some_side("unit,center,unit", mapped=True)
    whole = lookup_coefficients(side, "float32")
    assert np.allclose(lookup_coefficients(side, "float32", block_rows=7), whole, rtol=1e-5)


@pytest.mark.parametrize("method", ["csls", "nn"])
def test_few_and_many_queries_have_the_same_answers(aligned: Alignment, method: str) -> None:
    words = aligned.src.words[:20]
    fresh = replace(aligned)
    fresh.lookup("tgt")
    few = fresh.translate(words, 4, retrieval=method)
    assert not fresh.translator._retrievers
    other = replace(aligned)
    many = other.translate(aligned.src.words[: FEW_QUERIES + 1], 4, retrieval=method)
    assert other.translator._retrievers
    for word in words:
        assert [t.word for t in few[word]] == [t.word for t in many[word]]
        assert [t.score for t in few[word]] == pytest.approx([t.score for t in many[word]], abs=2e-6)


class CountingLookup(Lookup):
    """Counts the queries of each block."""

    def __init__(self, found: Lookup) -> None:
        super().__init__(found.side, found.hubs, found.coefficients, found.csls_k)
        object.__setattr__(self, "sizes", [])

    sizes: list[int]

    def similarities(self, queries: AnyFloats) -> AnyFloats:
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


def test_the_lookups_of_both_sides_come_from_one_product(tmp_path: Path) -> None:
    # Enough words for one product.
    align(*planted_embeddings(650, noise=0.1), **QUICK).save(tmp_path / "a")
    found = Alignment.load(tmp_path / "a", check="size")
    reported: list[int] = []
    found.lookup("tgt", 10, reported.append)
    assert sum(reported) == 650
    assert found.has_lookup("src")
    assert Alignment.load(tmp_path / "a", check="size").has_lookup("src")
    for side, other in (("src", "tgt"), ("tgt", "src")):
        expected = retrieval.neighbourhood_means(found.mapped(side), found.mapped(other), 10)  # type: ignore[arg-type]
        hubs = found.lookup(side).hubs  # type: ignore[arg-type]
        np.testing.assert_allclose(hubs, arrays.to_numpy(expected), atol=rounding(np.float32, found.src.dim))


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
    assert not again.common._mapped
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
    assert read_lookup(Origin(copy, "0" * 64), "tgt", other.tgt_side, 10) is None


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


def test_a_notebook_shows_translations_and_unknown_words() -> None:
    found = Translations({"house": [Translation("casa", 0.5), Translation("<hogar>", 0.25)]}, unknown=["xyz"])
    shown = found._repr_html_()
    assert "casa (0.50), &lt;hogar&gt; (0.25)" in shown
    assert "not in the vocabulary" in shown
