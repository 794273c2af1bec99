"""The page about several languages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from qwp import Alignment, AllPairs
from qwp.report.languages import write_languages


@pytest.fixture
def result(aligned: Alignment) -> AllPairs:
    """Return three languages, of which one pair failed."""
    failed = replace(aligned, quality=replace(aligned.quality, verdict="failed"))
    return AllPairs(("b<", "a", "c"), {("a", "b<"): aligned, ("a", "c"): failed, ("b<", "c"): aligned})


def test_the_heat_map_has_a_cell_for_each_direction(result: AllPairs, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    write_languages(path, result)
    root = ElementTree.fromstring(path.read_text("utf-8").partition("\n")[2])
    heat = next(table for table in root.iter("table") if table.get("class") == "heat")
    head, *rows = [[("".join(cell.itertext()), cell.get("title")) for cell in row] for row in heat.iter("tr")]
    assert [text for text, _ in head] == ["", "b<", "a", "c"]
    assert [row[0][0] for row in rows] == ["b<", "a", "c"]
    # The matrix is symmetric and its diagonal is empty.
    body = [row[1:] for row in rows]
    for i in range(3):
        assert body[i][i] == ("", None)
        for j in range(3):
            assert body[i][j][0] == body[j][i][0]
    assert body[1][2][0] == "failed"
    assert body[1][2][1] == result.alignments["a", "c"].quality.explanation
    text = "".join(root.itertext())
    assert "2 of 3 pairs succeeded." in text
    assert "3 languages" in text
    write_languages(path, result, title="My title")
    assert "My title" in path.read_text("utf-8")
