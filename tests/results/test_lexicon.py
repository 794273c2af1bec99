"""Induced lexicons, their confidences and the refits behind them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import qwp
from qwp import Alignment, Embeddings, arrays
from qwp.judging.estimate import refits
from qwp.maps.procrustes import Maps
from qwp.results.lexicon import cached_refits
from qwp.results.sidecars import Origin
from qwp.results.sides import AlignedSide
from qwp.search.confidence import CONFIDENCE_MODEL, SearchFigures
from qwp.spaces.normalization import Normalization
from tests.libraries import assert_close, assert_same
from tests.problems import planted
from tests.results.test_translator import dense_csls, dense_spelled


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
        # Number of source words that are better for the translation than the word itself, at most ten.
        before = min(int((csls[:, j] > csls[i, j]).sum()), 10)
        preferred = aligned.inducer.preferred(np.array([i]), np.argsort(-csls[i], kind="stable")[None, :10])
        found = SearchFigures([ten], [before], [np.delete(csls[:, j], i).max()], preferred)
        assert pair.confidence == pytest.approx(CONFIDENCE_MODEL.confidence(found, scale)[0], abs=1e-3)
        assert type(pair.mutual) is bool
        assert type(pair.score) is type(pair.margin) is type(pair.confidence) is float


def test_confidences_follow_from_the_features(aligned: Alignment) -> None:
    odds = aligned.inducer.pair_features(aligned.estimate.scale, 10) @ np.array(CONFIDENCE_MODEL.weights)
    found = [pair.confidence for pair in aligned.induce(mutual_only=False)]
    np.testing.assert_allclose(found, 1 / (1 + np.exp(-odds)), rtol=1e-12)


@pytest.mark.parametrize("approximate", [False, True])
def test_ten_source_words_compete_on_the_way_back(aligned: Alignment, approximate: bool) -> None:
    if approximate:
        pytest.importorskip("faiss", reason='approximate search needs FAISS: pip install "qwp[faiss]"')
    # Twenty source words have the same best translation: s<i> is i degrees away from it; the others are far away.
    degrees = np.deg2rad([*np.arange(20.0), *np.linspace(120.0, 240.0, 20)])
    src = np.stack([np.cos(degrees), np.sin(degrees)], axis=1)
    tgt = src[[0, *range(20, 40)]]
    as_it_is = Normalization((), ())
    crowd = replace(
        aligned,
        src_side=AlignedSide(Embeddings([f"s{i}" for i in range(40)], src), np.eye(2), as_it_is),
        tgt_side=AlignedSide(Embeddings([f"t{i}" for i in range(21)], tgt), None, as_it_is),
    )
    # With one neighbour, CSLS is 2 cos - cos - 1 here, which falls with the angle.
    pairs = crowd.induce(mutual_only=False, csls_k=1, approximate=approximate)[:20]
    assert {pair.tgt for pair in pairs} == {"t0"}
    assert [pair.mutual for pair in pairs] == [True] + [False] * 19
    ranks = np.expm1(crowd.inducer.pair_features(crowd.estimate.scale, 1)[:20, 2])
    np.testing.assert_allclose(ranks, np.minimum(np.arange(20), 10), atol=1e-9)


def test_approximate_lexicon_agrees_with_the_exact_one(many_words: Alignment) -> None:
    exact = {(p.src, p.tgt): p for p in many_words.induce()}
    found = {(p.src, p.tgt): p for p in many_words.induce(approximate=True)}
    shared = exact.keys() & found.keys()
    assert len(exact) > 0.8 * len(many_words.src)
    assert len(shared) >= 0.95 * max(len(exact), len(found))
    for pair in list(shared)[:50]:
        assert found[pair].score == pytest.approx(exact[pair].score, abs=0.01)
        assert found[pair].confidence == pytest.approx(exact[pair].confidence, abs=0.05)
    everything = many_words.induce(mutual_only=False, max_words=30, approximate=True)
    assert [p.src for p in everything] == many_words.src.words[:30]


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
        # The confidence is that of this pair by CSLS alone, even if CSLS prefers another pair.
        others = np.sort(np.delete(csls[i], j))[::-1][:9]
        before = min(int((csls[:, j] > csls[i, j]).sum()), 10)
        ranked = [j, *(each for each in np.argsort(-csls[i], kind="stable")[:10].tolist() if each != j)][:10]
        preferred = spelled.inducer.preferred(np.array([i]), np.array([ranked]))
        found = SearchFigures([[csls[i, j], *others]], [before], [np.delete(csls[:, j], i).max()], preferred)
        assert pair.confidence == pytest.approx(CONFIDENCE_MODEL.confidence(found, scale)[0], abs=1e-3)
        changed += int(csls[i].argmax()) != j
    assert changed > 5
    mutual = spelled.induce(spelling=weight)
    assert mutual == [pair for pair in pairs if pair.mutual]
    assert 0 < len(mutual) < len(pairs)
    # A pair that CSLS does not prefer has a lower confidence.
    plain = {pair.src: pair for pair in spelled.induce(mutual_only=False)}
    other = [pair.confidence - plain[pair.src].confidence for pair in pairs if pair.tgt != plain[pair.src].tgt]
    assert np.mean(other) < 0


def test_refits_are_cached_in_a_sidecar(tmp_path: Path) -> None:
    problem = planted(400, d=8, noise=0.2)
    given = (problem.src, problem.tgt, Maps(problem.w))
    origin = Origin(tmp_path, "a" * 64)
    made = cached_refits(origin, *given, 10)
    assert [path.name for path in tmp_path.iterdir()] == ["lookup-refits-10.safetensors"]
    # The refits of other spaces would differ, so these were read.
    found = cached_refits(origin, problem.tgt, problem.src, Maps(problem.w), 10)
    for one, other in zip(made, found, strict=True):
        assert_same(one.src, other.src)
        assert_same(one.tgt, other.tgt)


def test_cached_refits_equal_the_refits_up_to_scale_and_precision() -> None:
    problem = planted(400, d=8, noise=0.2)
    given = (problem.src, problem.tgt, Maps(problem.w))
    for stored, made in zip(cached_refits(None, *given, 10), refits(*given, csls_k=10), strict=True):
        assert made.tgt is not None
        for one, other in ((stored.src, made.src), (stored.tgt, made.tgt)):
            expected = arrays.to_numpy(other)
            assert_close(one, expected / np.abs(expected).max(), atol=1e-3)


def test_confidences_are_the_same_after_loading(tmp_path: Path) -> None:
    problem = planted(250, d=8, noise=0.3)
    lexicon = [(int(i), int(j)) for i, j in problem.gold[:60]]
    alignment = qwp.align(problem.src, problem.tgt, "procrustes", lexicon=lexicon, refine=2, threads=1)
    before = [pair.confidence for pair in alignment.induce(mutual_only=False)]
    folder = alignment.save(tmp_path / "saved")
    for _ in range(2):
        pairs = Alignment.load(folder).induce(mutual_only=False)
        np.testing.assert_allclose([pair.confidence for pair in pairs], before, rtol=1e-6)
    assert list(folder.glob("lookup-refits-*"))
