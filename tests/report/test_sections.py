"""Pieces of a page: tables, translations, provenance."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from qwp.report import sections
from tests.report.pages import cells, full_page, page_of, section, text, tree


def test_scores_take_the_union_of_the_columns_and_line_up_decimals() -> None:
    page = tree(full_page())
    assert cells(page, "scores") == [
        ["lexicon", "P@1", "n", "MRR"],
        ["a", "31.25", "1,025", "–"],
        ["b", "60.00", "–", "–"],
    ]
    head = section(page, "scores").findall(".//th")
    assert [cell.get("class") for cell in head] == [None, "num", "num", "num"]


def test_translations_show_scores_and_whether_right() -> None:
    page = tree(full_page())
    rows = cells(page, "translations")[1:]
    assert rows == [["king", "rey0.710conde0.500", "0.50", "✓"], ["sea", "", "–", "✗"], ["x", "", "0.25", ""]]
    assert "1 of 2 checked examples are right." in text(section(page, "translations"))


def test_provenance_is_flattened_and_unrounded_in_details() -> None:
    page = tree(full_page())
    assert section(page, "provenance").find("details/summary") is not None
    assert cells(page, "provenance") == [
        ["version", "0.1.0"],
        ["config.k", "500"],
        ["config.coreset.kind", "lloyd"],
        ["seed", "1234567"],
    ]


def test_provenance_takes_values_json_does_not_know() -> None:
    values: Mapping[str, object] = {"path": Path("a.vec"), "shape": (2, 3)}
    assert cells(tree(page_of(provenance=values)), "provenance") == [["path", '"a.vec"'], ["shape", "[2, 3]"]]


def test_without_a_judged_example_there_is_no_column_for_it() -> None:
    html = sections.translations([("king", [("rey", 0.5)], 0.5, None)])
    assert "Right" not in html
    assert "right" not in html


def test_code_is_marked_and_words_stay_text() -> None:
    assert sections.lead("say `qwp <x>` & go") == '<p class="lead">say <code>qwp &lt;x&gt;</code> &amp; go</p>'


def test_cells_with_words_keep_their_own_direction() -> None:
    assert sections.table([{"word": "בית", "n": 1}]).count("<bdi>") == 1
