from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from qwp.errors import InputError
from qwp.explore import views
from qwp.explore.views import CompareQuery, TableQuery
from qwp.explore.workspace import Workspace
from qwp.spaces.embeddings import Embeddings
from qwp.spaces.lexicon import Lexicon
from tests.explore.conftest import pairs_of


def test_the_view_of_a_word(workspace: Workspace) -> None:
    found = views.word(workspace, "src", "s0", 5)
    json.dumps(found)
    best = found["translations"][0]
    assert (best["word"], best["right"], best["mark"]) == ("t0", True, None)
    assert best["score"] == pytest.approx(2 * best["cosine"] - best["hubness"] - found["hubness"], abs=1e-5)
    assert (best["cosine_rank"], best["back_rank"]) == (1, 1)
    assert best["back"][0]["word"] == "s0"
    assert found["gold"] == [{"word": "t0", "rank": 1, "cosine": pytest.approx(best["cosine"])}]
    scores = [each["score"] for each in found["translations"]]
    assert scores == sorted(scores, reverse=True)
    assert len(found["neighbours"]["own"]) == len(found["neighbours"]["other"]) == 10
    assert 0 <= found["neighbours"]["overlap"] <= 1


def test_translations_are_those_of_translate(workspace: Workspace) -> None:
    found = views.word(workspace, "tgt", "t7", 5)
    expected = workspace.alignment.translate("t7", k=5, side="tgt")["t7"]
    assert [each["word"] for each in found["translations"]] == [each.word for each in expected]
    np.testing.assert_allclose([e["score"] for e in found["translations"]], [e.score for e in expected], atol=1e-5)


def test_confidence_is_the_same_in_both_directions(workspace: Workspace) -> None:
    pairs = {pair.src: pair for pair in workspace.alignment.induce(mutual_only=False)}
    for word in ("s0", "s5", "s77"):
        best = views.word(workspace, "src", word, 10)["translations"][0]
        assert best["confidence"] == pytest.approx(pairs[word].confidence, abs=1e-5)
        back = views.word(workspace, "tgt", best["word"], 10)["translations"]
        assert next(e for e in back if e["word"] == word)["confidence"] == pytest.approx(best["confidence"], abs=1e-5)


def test_gold_translations_out_of_the_vocabulary(workspace: Workspace) -> None:
    assert views.word(workspace, "src", "s2", 3)["gold"] == [{"word": "elsewhere", "rank": None, "cosine": None}]
    assert views.word(workspace, "src", "s3", 3)["gold"] is None


def test_an_unknown_word_comes_with_hints(workspace: Workspace) -> None:
    found = views.word(workspace, "src", "S0", 3)
    assert not found["known"]
    assert found["message"] == "'S0' is not among the 400 words of src"
    assert found["hints"][0] == "s0"
    assert views.word(workspace, "src", "t0", 3)["other_side"]


def test_the_table_is_sorted_filtered_and_paged(workspace: Workspace) -> None:
    found = pairs_of(workspace)
    table = views.table(workspace, found, TableQuery(sort="confidence", descending=True, limit=3, offset=1))
    assert table["total"] == table["all"] == 400
    assert [row["confidence"] for row in table["rows"]] == pytest.approx(np.sort(found.confidence)[::-1][1:4])
    some = views.table(workspace, found, TableQuery(text="S39", sort="src"))
    assert [row["src"] for row in some["rows"]] == sorted(["s39", *(f"s{n}" for n in range(390, 400))])
    for sort in views.SORTS:
        views.table(workspace, found, TableQuery(sort=sort))
    right = views.table(workspace, found, TableQuery(right="right"))
    assert [row["src"] for row in right["rows"]] == ["s0", "s1"]
    assert views.table(workspace, found, TableQuery(right="wrong"))["rows"][0]["src"] == "s2"
    assert views.table(workspace, found, TableQuery(right="unknown"))["total"] == 397
    least = float(np.median(found.confidence))
    assert views.table(workspace, found, TableQuery(least=least))["total"] == int((found.confidence >= least).sum())
    frequent = views.table(workspace, found, TableQuery(first=3, last=5))
    assert [row["src_rank"] for row in frequent["rows"]] == [3, 4, 5]
    assert views.table(workspace, found, TableQuery(first=399))["total"] == 2
    one_way = views.table(workspace, found, TableQuery(mutual="no"))["total"]
    assert one_way == int((~found.mutual).sum())
    assert views.table(workspace, found, TableQuery(suspect="one-way"))["total"] == one_way
    assert views.table(workspace, found, TableQuery(suspect="some"))["total"] == int(found.suspects.any(axis=1).sum())


def test_the_most_suspicious_pairs_are_confident_and_contradicted(workspace: Workspace) -> None:
    found = pairs_of(workspace)
    query = TableQuery(sort="suspicion", descending=True, suspect="some", top=7)
    table = views.table(workspace, found, query)
    suspects = np.flatnonzero(found.suspects.any(axis=1))
    assert (table["total"], table["matching"]) == (7, len(suspects))
    suspicion = found.confidence * found.suspects.mean(axis=1)
    expected = np.sort(suspicion[suspects])[::-1][:7]
    assert [suspicion[row["src_rank"] - 1] for row in table["rows"]] == pytest.approx(expected.tolist())
    assert len(views.pairs_tsv(workspace, found, query).splitlines()) == 8
    by_word = views.table(workspace, found, TableQuery(sort="src", suspect="some", top=7))
    assert {row["src"] for row in by_word["rows"]} == {row["src"] for row in table["rows"]}


def test_marks_are_shown_and_filtered(workspace: Workspace) -> None:
    found = pairs_of(workspace)
    workspace.corrections.set([("s0", "t0")], "right")
    workspace.corrections.set([("s1", "t1")], "wrong")
    assert [row["mark"] for row in views.table(workspace, found, TableQuery(limit=3))["rows"]] == [
        "right",
        "wrong",
        None,
    ]
    assert views.table(workspace, found, TableQuery(mark="wrong"))["rows"][0]["src"] == "s1"
    assert views.table(workspace, found, TableQuery(mark="none"))["total"] == 398
    lines = views.pairs_tsv(workspace, found, TableQuery(mark="right")).splitlines()
    assert lines[0].split("\t")[:3] == ["src", "tgt", "confidence"]
    assert lines[1].split("\t")[0] == "s0"
    assert lines[1].split("\t")[-1] == "right"
    assert len(lines) == 2


def test_the_points_of_the_map(workspace: Workspace) -> None:
    found = pairs_of(workspace)
    assert workspace.map is not None
    shown = views.points(workspace, found, workspace.map)
    json.dumps(shown)
    assert shown["src"]["words"][:2] == ["s0", "s1"]
    assert {
        len(shown["src"][name]) for name in ("x", "y", "partner", "confidence", "right", "occurrences", "mutual")
    } == {400}
    assert shown["src"]["right"][:4] == [1, 1, 2, 0]
    partner = shown["src"]["partner"][0]
    assert shown["tgt"]["words"][partner] == "t0"
    assert shown["tgt"]["right"][partner] == 1
    assert shown["tgt"]["confidence"][partner] == shown["src"]["confidence"][0]
    assert max(shown["src"]["x"] + shown["tgt"]["y"]) <= shown["grid"]


def test_pairs_that_are_near_on_the_map_are_counted(workspace: Workspace) -> None:
    found = pairs_of(workspace)
    same = np.random.default_rng(0).random((400, 2))
    mutual = found.mutual
    tgt = np.zeros((400, 2))
    tgt[found.best_positions[mutual]] = same[mutual]
    tgt[np.setdiff1d(np.arange(400), found.best_positions[mutual])] = 9.0
    assert views.near_on_map(found, {"src": same, "tgt": tgt}) == 1.0
    by_chance = np.random.default_rng(1).random((400, 2))
    near = views.near_on_map(found, {"src": same, "tgt": by_chance})
    assert near is not None
    assert near < 0.1
    none = replace(found, mutual=np.zeros_like(mutual))
    assert views.near_on_map(none, {"src": same, "tgt": tgt}) is None


def test_about_has_verdict_curves_provenance_and_score(workspace: Workspace) -> None:
    found = views.about(workspace)
    assert found["quality"]["verdict"] == "succeeded"
    assert found["scores"] == {
        "p_at_1": 1.0,
        "words": 2,
        "left_out": 0,
        "covered": 2,
        "source_words": 3,
        "anchors_known": True,
    }
    assert {curve["title"] for curve in found["curves"]} >= {"Transport loop"}
    assert found["provenance"]["method"] == "qwp"
    workspace.lexicon = None
    assert views.scores(workspace) is None


def test_scores_leave_out_accepted_pairs_and_anchors(workspace: Workspace) -> None:
    found = pairs_of(workspace)
    workspace.corrections.set([("s1", "t1")], "right")
    scores = views.scores(workspace)
    assert scores is not None
    assert (scores["words"], scores["left_out"], scores["covered"]) == (1, 1, 2)
    compared = views.comparison(workspace, workspace, (found, found), CompareQuery())
    assert compared["right"] == [{"right": 1, "of": 1}] * 2
    assert compared["left_out"] == 1
    workspace.anchors = Lexicon((("s0", "elsewhere"),))
    scores = views.scores(workspace)
    assert scores is not None
    assert (scores["p_at_1"], scores["words"], scores["left_out"]) == (None, 0, 2)
    workspace.anchors = None
    scores = views.scores(workspace)
    assert scores is not None
    assert scores["anchors_known"] is False


def test_an_accepted_answer_comes_first(workspace: Workspace) -> None:
    pairs_of(workspace)
    workspace.corrections.set([("s5", "t200")], "right")
    for side, word, answer in (("src", "s5", "t200"), ("tgt", "t200", "s5")):
        found = views.word(workspace, side, word, 3)  # type: ignore[arg-type]
        assert found["pinned"]
        assert len(found["translations"]) == 3
        first, second = found["translations"][:2]
        assert (first["word"], first["confidence"], first["mark"]) == (answer, 1.0, "right")
        assert first["csls_rank"] > 1
        assert second["csls_rank"] == 1
    assert workspace.answers is not None
    row = views.table(workspace, workspace.answers, TableQuery(first=6, last=6))["rows"][0]
    assert (row["tgt"], row["confidence"], row["pinned"]) == ("t200", 1.0, True)
    tsv = views.pairs_tsv(workspace, workspace.answers, TableQuery(first=6, last=6)).splitlines()
    assert tsv[1].split("\t")[:3] == ["s5", "t200", "1.0000"]


def test_two_alignments_are_compared(workspace: Workspace, folder: object) -> None:
    found = pairs_of(workspace)
    same = views.comparison(workspace, workspace, (found, found), CompareQuery())
    assert same["words"] == same["same"] == 400
    assert same["total"] == 0
    assert same["right"] == [{"right": 2, "of": 2}] * 2  # the translation of s2 is not in the vocabulary
    all_of_them = views.comparison(workspace, workspace, (found, found), CompareQuery(shown="all", text="s39", limit=2))
    assert all_of_them["total"] == 11
    assert len(all_of_them["rows"]) == 2
    for shown in ("first", "second", "same"):
        views.comparison(workspace, workspace, (found, found), CompareQuery(shown=shown))


def test_comparing_different_languages_raises(workspace: Workspace) -> None:
    found, side = pairs_of(workspace), workspace.alignment.src_side
    words = Embeddings([f"other{i}" for i in range(len(side.space))], side.space.vectors)
    other = Workspace(
        "other", replace(workspace.alignment, src_side=replace(side, source=words)), folder=workspace.folder
    )
    with pytest.raises(InputError, match="have no source word in common"):
        views.comparison(workspace, other, (found, found), CompareQuery())
