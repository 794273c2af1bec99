"""The result object: mapping, translating, inducing. test_saved.py is about saving and loading it."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from qwp import Alignment, Embeddings, InputError
from qwp.maps.procrustes import orthogonality_error
from qwp.results.sides import AlignedSide
from qwp.search import confidence
from qwp.search.spelling import COMPARED, WEIGHT, similarities
from qwp.spaces.embeddings import Side
from qwp.spaces.normalization import Normalization
from tests.conftest import planted_embeddings
from tests.problems import planted

MANY = 1_200


def without_tgt_map(alignment: Alignment) -> Alignment:
    return replace(alignment, tgt_side=replace(alignment.tgt_side, map=None))


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


def test_new_vectors_are_mapped_as_the_training_words_were(aligned: Alignment) -> None:
    raw = aligned.src.vectors[5:9]
    by_word = aligned.transform(aligned.src.words[5:9])
    np.testing.assert_array_equal(aligned.transform(raw), by_word)
    np.testing.assert_allclose(aligned.transform(raw[0]), by_word[0], atol=1e-6)
    np.testing.assert_allclose(aligned.transform("s5"), by_word[0], atol=1e-6)
    # The recorded means are used, not the means of the new batch: scaling is undone by `unit`, shifting is not.
    np.testing.assert_allclose(aligned.transform(3.0 * raw), by_word, atol=1e-5)
    assert np.abs(aligned.transform(raw + 0.5) - by_word).max() > 0.05


def test_target_side_is_normalised_and_mapped_where_there_is_a_map_of_it(aligned: Alignment) -> None:
    rows = np.asarray(aligned.tgt_side.normalization.apply(aligned.tgt.vectors[:4]))
    assert aligned.tgt_map is not None
    np.testing.assert_allclose(aligned.transform(aligned.tgt.words[:4], side="tgt"), rows @ aligned.tgt_map, atol=1e-6)
    # A target space that is the common one is not rotated.
    as_it_is = without_tgt_map(aligned)
    np.testing.assert_array_equal(as_it_is.transform(aligned.tgt.words[:4], side="tgt"), rows)


def test_default_settings_bring_translations_together_in_the_common_space(aligned: Alignment) -> None:
    # Neither side has a map that is a rotation; together they put a word next to its translation.
    assert aligned.tgt_map is not None
    assert min(orthogonality_error(matrix) for matrix in (aligned.src_map, aligned.tgt_map)) > 0.1
    names = range(100)
    src, tgt = aligned.transform([f"s{i}" for i in names]), aligned.transform([f"t{i}" for i in names], side="tgt")
    cosine = np.sum(src * tgt, axis=1) / np.linalg.norm(src, axis=1) / np.linalg.norm(tgt, axis=1)
    assert float(cosine.mean()) > 0.95
    # The source map alone leads nowhere.
    alone = without_tgt_map(aligned).translate([f"s{i}" for i in names], k=1)
    assert np.mean([best[0].word == f"t{word[1:]}" for word, best in alone.items()]) < 0.5


def test_mapped_rows_have_unit_length(aligned: Alignment) -> None:
    for side in ("src", "tgt"):
        np.testing.assert_allclose(np.linalg.norm(np.asarray(aligned.mapped(side)), axis=1), 1.0, atol=1e-5)


def test_induced_lexicon_is_mutual_right_and_ordered_by_source(aligned: Alignment) -> None:
    pairs = aligned.induce()
    assert all(p.mutual for p in pairs)
    assert [aligned.src.index[p.src] for p in pairs] == sorted(aligned.src.index[p.src] for p in pairs)
    assert np.mean([p.tgt == f"t{p.src[1:]}" for p in pairs]) > 0.95
    assert all(0.0 < p.confidence <= 1.0 and p.margin >= 0.0 for p in pairs)
    everything = aligned.induce(mutual_only=False, max_words=30)
    assert [p.src for p in everything] == aligned.src.words[:30]


def test_confidence_is_higher_for_right_pairs(aligned: Alignment) -> None:
    pairs = aligned.induce(mutual_only=False)
    right = [p.confidence for p in pairs if p.tgt == f"t{p.src[1:]}"]
    wrong = [p.confidence for p in pairs if p.tgt != f"t{p.src[1:]}"]
    assert not wrong or np.mean(right) > np.mean(wrong)


def test_induced_figures_follow_their_definitions(aligned: Alignment) -> None:
    src, tgt = np.asarray(aligned.mapped("src"), float), np.asarray(aligned.mapped("tgt"), float)
    similarity = src @ tgt.T
    own = np.sort(similarity, axis=1)[:, -10:].mean(axis=1)
    csls = 2 * similarity - own[:, None] - np.sort(similarity, axis=0)[-10:].mean(axis=0)
    scale = aligned.estimate.scale
    for i, pair in enumerate(aligned.induce(mutual_only=False)[:40]):
        ten = np.sort(csls[i])[::-1][:10]
        j = int(csls[i].argmax())
        mutual = int(csls[:, j].argmax()) == i
        assert (pair.src, pair.tgt, pair.mutual) == (aligned.src.words[i], aligned.tgt.words[j], mutual)
        assert pair.score == pytest.approx(ten[0], abs=1e-5)
        assert pair.margin == pytest.approx(ten[0] - ten[1], abs=1e-5)
        # How many source words are better for the translation than the word itself; ten is as far as is looked.
        before = min(int((csls[:, j] > csls[i, j]).sum()), 10)
        preferred = aligned.preferred(np.array([i]), np.argsort(-csls[i], kind="stable")[None, :10])
        found = confidence.Found([ten], [before], [np.delete(csls[:, j], i).max()], preferred)
        assert pair.confidence == pytest.approx(confidence.confidence(found, scale)[0], abs=1e-3)
        assert type(pair.mutual) is bool
        assert type(pair.score) is type(pair.margin) is type(pair.confidence) is float


def test_confidences_are_those_of_the_features(aligned: Alignment) -> None:
    odds = aligned.pair_features() @ np.array(confidence.WEIGHTS)
    found = [pair.confidence for pair in aligned.induce(mutual_only=False)]
    np.testing.assert_allclose(found, 1 / (1 + np.exp(-odds)), rtol=1e-12)


def test_a_result_without_an_estimate_gets_one(aligned: Alignment) -> None:
    assert aligned.quality.estimate is not None
    assert aligned.estimate is aligned.quality.estimate
    before = replace(aligned, quality=replace(aligned.quality, estimate=None))
    # The fit had one thread: with another number BLAS may round otherwise, and another pair may be mutual.
    assert before.estimate.overall.p1 == pytest.approx(aligned.estimate.overall.p1, abs=0.01)
    assert before.estimate.n_words == aligned.estimate.n_words
    # It is the same for the words in any order, which the side knows.
    turned = np.arange(len(aligned.src))[::-1]
    src = Embeddings([aligned.src.words[i] for i in turned], np.asarray(aligned.src.vectors)[turned])
    reversed_side = replace(aligned.src_side, space=src, order=np.argsort(turned))
    again = replace(before, src_side=reversed_side).estimate
    assert again.overall.p1 == pytest.approx(before.estimate.overall.p1, abs=0.01)


@pytest.mark.parametrize("approximate", [False, True])
def test_ten_source_words_are_looked_at_on_the_way_back(aligned: Alignment, approximate: bool) -> None:
    if approximate:
        pytest.importorskip("faiss", reason='approximate search needs FAISS: pip install "qwp[faiss]"')
    # Twenty source words have the same best translation: s<i> is i degrees away from it, the others are far off.
    degrees = np.deg2rad([*np.arange(20.0), *np.linspace(120.0, 240.0, 20)])
    src = np.stack([np.cos(degrees), np.sin(degrees)], axis=1)
    tgt = src[[0, *range(20, 40)]]
    as_it_is = Normalization((), ())
    crowd = replace(
        aligned,
        src_side=AlignedSide(Embeddings([f"s{i}" for i in range(40)], src), np.eye(2), as_it_is),
        tgt_side=AlignedSide(Embeddings([f"t{i}" for i in range(21)], tgt), None, as_it_is),
    )
    # With one neighbour a CSLS is 2 cos - cos - 1 here: it falls with the angle.
    pairs = crowd.induce(mutual_only=False, csls_k=1, approximate=approximate)[:20]
    assert {pair.tgt for pair in pairs} == {"t0"}
    assert [pair.mutual for pair in pairs] == [True] + [False] * 19
    ranks = np.expm1(crowd.pair_features(csls_k=1)[:20, 2])
    np.testing.assert_allclose(ranks, np.minimum(np.arange(20), 10), atol=1e-9)


@pytest.fixture(scope="module")
def many_words(aligned: Alignment) -> Alignment:
    """An alignment of 1,200 x 1,200 planted words, enough for the approximate search to differ from the exact one."""
    pytest.importorskip("faiss", reason='approximate search needs FAISS: pip install "qwp[faiss]"')
    src, tgt = planted_embeddings(MANY, d=30, noise=0.2)
    w = planted(MANY, d=30, noise=0.2, dtype="float32").w
    as_it_is = Normalization((), ())
    return replace(
        aligned,
        src_side=AlignedSide(src, w, as_it_is),
        tgt_side=AlignedSide(tgt, None, as_it_is),
        history=[],
    )


def test_approximate_lexicon_agrees_with_the_exact_one(many_words: Alignment) -> None:
    exact = {(p.src, p.tgt): p for p in many_words.induce()}
    found = {(p.src, p.tgt): p for p in many_words.induce(approximate=True)}
    shared = exact.keys() & found.keys()
    assert len(exact) > 0.8 * MANY
    assert len(shared) >= 0.95 * max(len(exact), len(found))
    for pair in list(shared)[:50]:
        assert found[pair].score == pytest.approx(exact[pair].score, abs=0.01)
        assert found[pair].confidence == pytest.approx(exact[pair].confidence, abs=0.05)
    everything = many_words.induce(mutual_only=False, max_words=30, approximate=True)
    assert [p.src for p in everything] == many_words.src.words[:30]


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


def test_unknown_words_are_told_and_the_others_translated(aligned: Alignment) -> None:
    found = aligned.translate(["S1", "s1", "nope", "s1"], k=2)
    assert list(found) == ["s1"]
    assert found == aligned.translate("s1", k=2)
    assert found.unknown == ["S1", "nope"]
    assert found.hints == {"S1": "s1"}
    assert aligned.translate("s1").unknown == []
    with pytest.raises(InputError, match=r"'t7' is not among the .* source side .* \(try side=\"tgt\"\)"):
        aligned.translate("t7")
    with pytest.raises(InputError, match=r"'T7'.*\('t7' would be there\).*leave out side=\"tgt\""):
        aligned.translate("T7", side="tgt")


def test_words_may_come_in_anything_that_holds_them(aligned: Alignment) -> None:
    words = ["s5", "s3"]
    for make in (list, tuple, np.array, lambda words: np.array(words, dtype=object), iter):
        assert aligned.translate(make(words)) == aligned.translate(words)
        np.testing.assert_array_equal(aligned.transform(make(words)), aligned.transform(words))
        assert list(aligned.translate(make(words))) == words


def test_vectors_may_come_as_lists(aligned: Alignment) -> None:
    rows = aligned.src.vectors[5:8]
    expected = aligned.transform(rows)
    for given in (rows.tolist(), list(rows), tuple(rows), rows.astype("f8")):
        np.testing.assert_array_equal(aligned.transform(given), expected)
    assert aligned.transform(rows[0].tolist()).shape == (12,)


def test_what_is_neither_word_nor_vector_is_one_clear_line(aligned: Alignment) -> None:
    neither: list[Any] = [None, 5, ["s1", 2], [["s1"]], [[1.0], [1.0, 2.0]], {"s1": 1}]
    for items in (*neither, np.array([True] * 12), np.array(1.0)):
        with pytest.raises(InputError, match="expected"):
            aligned.transform(items)
        with pytest.raises(InputError, match="expected"):
            aligned.translate(items)


@pytest.mark.parametrize("side", ["src", "tgt"])
@pytest.mark.parametrize("retrieval", ["nn", "csls", "softmax"])
def test_vectors_outside_of_the_vocabulary_are_translated(aligned: Alignment, side: Side, retrieval: str) -> None:
    space = aligned.side(side).space
    by_word = aligned.translate(space.words[:5], k=3, side=side, retrieval=retrieval)
    found = aligned.translate(vectors=space.vectors[:5], k=3, side=side, retrieval=retrieval)
    assert [[t.word for t in best] for best in found] == [[t.word for t in best] for best in by_word.values()]
    # As in `transform` their length does not matter, and one vector is one row.
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


def test_it_is_shown_in_one_line(aligned: Alignment) -> None:
    share = aligned.estimate.overall
    assert repr(aligned) == f"Alignment(400 x 12 -> 400 x 12, qwp, succeeded: about {share} right)"
    record = replace(aligned.provenance.src, path="/data/en.vec.gz", name="en", n_words=20_000)
    named = replace(aligned, provenance=replace(aligned.provenance, src=record))
    failed = replace(named, quality=replace(aligned.quality, verdict="failed"))
    assert repr(failed) == "Alignment(en 20,000 x 12 -> 400 x 12, qwp, failed)"


def test_bad_requests_are_explained(aligned: Alignment) -> None:
    with pytest.raises(InputError, match="'nope'"):
        aligned.transform(["s1", "nope"])
    with pytest.raises(InputError, match="k=0"):
        aligned.translate("s1", k=0)
    with pytest.raises(InputError, match="at least one"):
        aligned.translate([])
    with pytest.raises(InputError, match=r"\(3, 5\)"):
        aligned.transform(np.ones((3, 5)))
    with pytest.raises(InputError, match="NaN"):
        aligned.transform(np.full((1, 12), np.nan))
    with pytest.raises(InputError, match="'left'"):
        aligned.mapped("left")  # type: ignore[arg-type]


# --------------------------------------------------------------------------- spelling


@pytest.fixture(scope="module")
def spelled(aligned: Alignment) -> Alignment:
    """The same alignment with words of a few letters: many are spelled alike by chance."""
    rng = np.random.default_rng(3)

    def named(side: AlignedSide) -> AlignedSide:
        words: dict[str, None] = {}
        while len(words) < len(side.space):
            words["".join(rng.choice([*"abcd"], size=rng.integers(3, 9)))] = None
        return replace(side, space=Embeddings([*words], side.space.vectors))

    return replace(aligned, src_side=named(aligned.src_side), tgt_side=named(aligned.tgt_side))


def dense_csls(alignment: Alignment) -> np.ndarray:
    """CSLS of all words with all, (n, m)."""
    similarities = np.asarray(alignment.mapped("src"), float) @ np.asarray(alignment.mapped("tgt"), float).T
    own = np.sort(similarities, axis=1)[:, -10:].mean(axis=1)
    return np.asarray(2 * similarities - own[:, None] - np.sort(similarities, axis=0)[-10:].mean(axis=0))


def dense_spelled(alignment: Alignment, side: Side, weight: float) -> np.ndarray:
    """CSLS of all words of a side with all of the other, and spelling for the first COMPARED, by the definition."""
    csls = dense_csls(alignment) if side == "src" else dense_csls(alignment).T
    words, others = (each.words for each in (alignment.src, alignment.tgt)[:: 1 if side == "src" else -1])
    best = np.argsort(-csls, axis=1)[:, :COMPARED]
    added = weight * similarities(words, others, best)
    np.put_along_axis(csls, best, np.take_along_axis(csls, best, axis=1) + added, axis=1)
    return csls


@pytest.mark.parametrize(("side", "k"), [("src", 1), ("tgt", 3), ("src", COMPARED + 20)])
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


def test_no_weight_changes_nothing(spelled: Alignment) -> None:
    words = spelled.src.words[:20]
    assert spelled.translate(words, spelling=0.0) == spelled.translate(words)
    assert spelled.induce(spelling=0.0) == spelled.induce()
    assert spelled.translate(words, spelling=True) == spelled.translate(words, spelling=WEIGHT)


def test_words_without_a_common_letter_are_found_as_before(aligned: Alignment) -> None:
    words = aligned.src.words[:20]
    assert aligned.translate(words, k=3, spelling=WEIGHT) == aligned.translate(words, k=3)
    assert aligned.induce(mutual_only=False, spelling=WEIGHT) == aligned.induce(mutual_only=False)


def test_foreign_words_in_a_vocabulary_of_another_script_change_nothing(spelled: Alignment) -> None:
    russian = [word.translate(str.maketrans("abcd", "абцд")) for word in spelled.tgt.words]
    russian[7] = spelled.src.words[3]
    assert spelled.translate(russian[7], spelling=True) != spelled.translate(russian[7])
    other = replace(spelled, tgt_side=replace(spelled.tgt_side, space=Embeddings(russian, spelled.tgt.vectors)))
    words = spelled.src.words[:10]
    assert other.translate(words, spelling=True) == other.translate(words)
    assert other.induce(spelling=True) == other.induce()


def test_induced_pairs_with_spelling_follow_their_definitions(spelled: Alignment) -> None:
    csls, scale, weight = dense_csls(spelled), spelled.estimate.scale, 1.0
    forward, backward = (dense_spelled(spelled, side, weight) for side in ("src", "tgt"))
    pairs = spelled.induce(mutual_only=False, spelling=weight)
    changed = 0
    for i, pair in enumerate(pairs[:60]):
        j = int(forward[i].argmax())
        first, second = np.sort(forward[i])[::-1][:2]
        assert (pair.src, pair.tgt) == (spelled.src.words[i], spelled.tgt.words[j])
        assert pair.mutual == (int(backward[j].argmax()) == i)
        assert pair.score == pytest.approx(first, abs=1e-5)
        assert pair.margin == pytest.approx(first - second, abs=1e-5)
        # The confidence is that of this pair by CSLS alone, whether CSLS would have chosen it or not.
        others = np.sort(np.delete(csls[i], j))[::-1][:9]
        before = min(int((csls[:, j] > csls[i, j]).sum()), 10)
        ranked = [j, *(each for each in np.argsort(-csls[i], kind="stable")[:10].tolist() if each != j)][:10]
        preferred = spelled.preferred(np.array([i]), np.array([ranked]))
        found = confidence.Found([[csls[i, j], *others]], [before], [np.delete(csls[:, j], i).max()], preferred)
        assert pair.confidence == pytest.approx(confidence.confidence(found, scale)[0], abs=1e-3)
        changed += int(csls[i].argmax()) != j
    assert changed > 5
    mutual = spelled.induce(spelling=weight)
    assert mutual == [pair for pair in pairs if pair.mutual]
    assert 0 < len(mutual) < len(pairs)
    # A pair that CSLS would not have chosen is not sure by CSLS.
    plain = {pair.src: pair for pair in spelled.induce(mutual_only=False)}
    other = [pair.confidence - plain[pair.src].confidence for pair in pairs if pair.tgt != plain[pair.src].tgt]
    assert np.mean(other) < 0


def test_spelling_and_approximate_search_go_together(many_words: Alignment) -> None:
    # Every source word has a namesake among the targets, which are shuffled: spelling alone leads astray.
    names = [f"{'abcdefghij'[i % 10]}{chr(97 + i // 10 % 26)}{chr(97 + i // 260)}" for i in range(MANY)]
    src = replace(many_words.src_side, space=Embeddings(names, many_words.src.vectors))
    tgt = replace(many_words.tgt_side, space=Embeddings(names[::-1], many_words.tgt.vectors))
    both = replace(many_words, src_side=src, tgt_side=tgt)
    exact = both.translate(names[:200], k=1, spelling=0.3)
    found = both.translate(names[:200], k=1, spelling=0.3, approximate=True)
    assert exact != both.translate(names[:200], k=1)
    assert np.mean([found[word][0].word == exact[word][0].word for word in names[:200]]) >= 0.95
    pairs = {(p.src, p.tgt) for p in both.induce(spelling=0.3)}
    near = {(p.src, p.tgt) for p in both.induce(spelling=0.3, approximate=True)}
    assert pairs != {(p.src, p.tgt) for p in both.induce()}
    assert len(pairs & near) >= 0.95 * max(len(pairs), len(near))


def test_spelling_that_cannot_work_is_explained(aligned: Alignment) -> None:
    with pytest.raises(InputError, match=r"spelling=0\.5 was received with vectors; expected words, which are spelled"):
        aligned.translate(vectors=aligned.src.vectors[:2], spelling=0.5)
    with pytest.raises(InputError, match=r"spelling=0\.5 was received with retrieval='softmax'; expected 'csls'"):
        aligned.translate("s1", retrieval="softmax", spelling=0.5)
    with pytest.raises(InputError, match="spelling=-1 is no weight"):
        aligned.induce(spelling=-1)
