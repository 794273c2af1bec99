from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from qwp import Embeddings
from qwp.errors import InputError
from qwp.explore import views
from qwp.explore.views import TableQuery
from qwp.explore.workspace import Items, Workspace
from tests.explore.conftest import pairs_of

SPACE = Embeddings([f"src:{row}" for row in range(3)], np.eye(3, dtype=np.float32), name="store")
ROWS = [("src:2", "the third", "news"), ("src:0", 'a "quoted" text', "law"), ("gone", "not there", "law")]


def test_three_formats_hold_the_same(tmp_path: Path) -> None:
    lines = ["id\ttext\ttopic", *("\t".join(row) for row in ROWS)]
    (tmp_path / "a.tsv").write_text("\n".join(lines) + "\n")
    (tmp_path / "a.csv").write_text('id,text,topic\nsrc:2,the third,news\nsrc:0,"a ""quoted"" text",law\ngone,x,law\n')
    (tmp_path / "a.jsonl").write_text(
        "".join(json.dumps(dict(zip(("id", "text", "topic"), row, strict=True))) + "\n" for row in ROWS)
    )
    for name in ("a.tsv", "a.csv", "a.jsonl"):
        found = Items.load(tmp_path / name, SPACE)
        assert found.texts == {"src:2": "the third", "src:0": 'a "quoted" text'}, name
        assert found.metadata["src:0"] == {"topic": "law"}
        assert found.categories() == {"topic": ["law", "news"]}


def test_rows_without_names_are_in_the_order_of_the_vectors(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("title\tyear\nfirst\t1\nsecond\t2\nthird\t2\n")
    found = Items.load(path, SPACE)
    assert found.texts == {"src:0": "first", "src:1": "second", "src:2": "third"}
    assert found.categories() == {"year": ["1", "2"]}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", "id\ttext\n", "holds no rows"),
        ("a.tsv", "id\tbody\nsrc:0\tx\n", "has the columns id, body; expected one of text"),
        ("a.tsv", "text\nx\n", "has 1 rows and no column id or name or key or word"),
        ("a.tsv", "id\ttext\nb\tx\n", "names 'b' and others, expected names of items of store"),
        ("a.jsonl", "[1]\n", "line 1 of .* is no JSON object"),
        ("a.jsonl", "{\n", "cannot be read"),
    ],
)
def test_files_that_do_not_fit_raise(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=message):
        Items.load(tmp_path / name, SPACE)
    with pytest.raises(InputError, match="cannot be read"):
        Items.load(tmp_path / "none.tsv", SPACE)


def with_items(workspace: Workspace) -> Workspace:
    """Give the items of a workspace texts of 200 characters and a topic."""
    for side in ("src", "tgt"):
        words = workspace.words(side)
        texts = {word: f"Paragraph {word[1:]} of {side}: " + "lorem ipsum dolor " * 10 for word in words}
        topics = {word: {"topic": ("law", "news", "sports")[row % 3]} for row, word in enumerate(words)}
        workspace.items[side] = Items(texts, topics)
    return workspace


def test_views_send_the_texts_of_what_they_name(workspace: Workspace) -> None:
    found = pairs_of(with_items(workspace))
    assert workspace.noun == "items"
    word = views.word(workspace, "src", "s0", 3)
    assert word["texts"]["src"]["s0"].startswith("Paragraph 0 of src")
    assert {each["word"] for each in word["translations"]} <= set(word["texts"]["tgt"])
    assert {each["word"] for each in word["neighbours"]["other"]} <= set(word["texts"]["tgt"])
    assert word["metadata"] == {"topic": "law"}
    table = views.table(workspace, found, TableQuery(text="paragraph 39 of", limit=5))
    assert [row["src"] for row in table["rows"]] == ["s39"]
    assert table["texts"]["src"]["s39"].startswith("Paragraph 39")
    assert workspace.completed("src", "paragraph 7 ", 3) == ["s7"]
    law = views.table(workspace, found, TableQuery(column="topic", value="law"))
    assert law["total"] == 134
    assert workspace.map is not None
    points = views.points(workspace, found, workspace.map)
    assert points["categories"] == {"topic": ["law", "news", "sports"]}
    assert len(points["src"]["texts"][0]) == 120
    assert points["src"]["metadata"][1] == {"topic": "news"}


def test_words_are_completed_without_case_and_accents(workspace: Workspace) -> None:
    assert workspace.completed("src", "S1", 3) == ["s1", "s10", "s11"]
    assert workspace.completed("src", "99", 2) == ["s99", "s199"]
    assert workspace.completed("src", "", 5) == []
    assert workspace.completed("tgt", "nothing like it", 5) == []


def test_answers_are_judged_by_the_lexicon(workspace: Workspace) -> None:
    assert workspace.right("src", "s0", "t0") is True
    assert workspace.right("src", "s0", "t1") is False
    assert workspace.right("src", "s9", "t9") is None
    assert workspace.right("tgt", "t300", "s1") is True
    assert workspace.judged(["s1", "s2", "s3"], ["t300", "t2", "t3"]) == [True, False, None]


def test_ranks_count_from_one(workspace: Workspace) -> None:
    assert workspace.ranks("src")[:3].tolist() == [1, 2, 3]


def test_accepted_answers_replace_the_computed_ones(workspace: Workspace) -> None:
    computed = pairs_of(workspace)
    assert workspace.answers is not None
    assert workspace.answers.best.tolist() == computed.best.tolist()
    workspace.corrections.set([("s5", "t200"), ("s0", "t0")], "right")
    answers = workspace.answers
    assert answers is not None
    row = workspace.row("tgt", "t200")
    assert (answers.best[5], answers.confidence[5], bool(answers.pinned[5])) == (row, 1.0, True)
    assert answers.margin[5] < 0 < computed.margin[5]
    assert answers.mutual[5]
    assert answers.back[answers.tgt_rows.tolist().index(row)] == workspace.row("src", "s5")
    assert not answers.mutual[200]  # its best translation is taken
    assert (answers.best[0], answers.score[0]) == (computed.best[0], computed.score[0])
    assert not answers.suspects[[0, 5]].any()
    workspace.corrections.undo()
    assert workspace.answers.best.tolist() == computed.best.tolist()
