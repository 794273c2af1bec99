"""The published figures: those of the paper, to the last digit."""

from __future__ import annotations

import re
import statistics
from pathlib import Path

import pytest

from qwp.experiments.paper import published
from tools.project import ROOT

PAPER = ROOT.parent / "shared" / "qwp-paper.tex"

PAPER = ROOT.parent / "shared" / "qwp-paper.tex"
LANGUAGES = ("es", "fr", "de", "ru", "it")


def test_some_figures_copied_by_hand() -> None:
    tables = published().tables
    assert tables["table1"].value("KMeans++", "en-es", 200) == 45.21
    assert tables["table2"].value("Random", "en-ru", 2000) == 35.47
    assert tables["table3"].value("KMeans++", "it-en", 3000) == 64.71
    assert tables["table4"].value("PROC", "ru-en") == 63.7
    assert tables["table4"].value("qWP + Refine, Lloyd, unbalanced", "average") == 75.9
    assert "AMTA 2022" in published().citation


def test_missing_figures_are_none() -> None:
    tables = published().tables
    assert tables["table1"].value("KMeans++", "en-es", 400) is None
    assert tables["table1"].value("KMeans++", "en-pl", 200) is None
    assert tables["table4"].value("RCSLS", "en-it") is None
    assert tables["table4"].value("unknown", "en-es") is None
    assert "en-it" not in tables["table4"].directions("RCSLS")
    assert "average" not in tables["table4"].directions("RCSLS")


def test_published_averages_match_their_figures() -> None:
    """A copying error would show here. The averages of the paper differ from its figures by up to 0.6."""
    for name in ("table1", "table2", "table3", "table4"):
        table = published().tables[name]
        for system in table.systems:
            for size in table.sizes or (None,):
                figures = [table.value(system, direction, size) for direction in table.directions(system)]
                printed = table.value(system, "average", size)
                assert printed is not None
                assert statistics.mean(f for f in figures if f is not None) == pytest.approx(printed, abs=0.6)


# --------------------------------------------------------------------------- against the source of the paper


def rows_of_sizes(tabular: str) -> dict[tuple[str, str], list[float]]:
    """Return the figures by (system, direction) of a table by coreset size."""
    found: dict[tuple[str, str], list[float]] = {}
    direction = ""
    for line in tabular.split(r"\\"):
        if named := re.search(r"\\multirow\{2\}\*\{([\w-]+) ?\}", line):
            direction = named[1].lower().replace("avg", "average")
        if row := re.search(r"(Random|KMeans ?\+\+)\s*&(.*)", line, re.DOTALL):
            cells = [re.sub(r"\\textbf\{|\}|\s", "", cell) for cell in row[2].split("&")]
            found[row[1].replace(" ", ""), direction] = [float(cell) for cell in cells]
    return found


def rows_of_systems(tabular: str) -> list[list[float]]:
    """Return the figures of each line of the comparison, with the average last."""
    lines = [line for line in tabular.split(r"\\") if re.search(r"\d\d\.\d", line)]
    return [[float(figure) for figure in re.findall(r"\d\d\.\d", line)] for line in lines]


@pytest.mark.skipif(not Path(PAPER).is_file(), reason="the source of the paper is not here")
def test_every_figure_matches_the_paper() -> None:
    tabulars = re.findall(r"\\begin\{tabular\}(.*?)\\end\{tabular\}", PAPER.read_text("utf-8"), re.DOTALL)
    assert len(tabulars) == 4
    for number, count in ((1, 22), (2, 12), (3, 22)):
        table = published().tables[f"table{number}"]
        expected = rows_of_sizes(tabulars[number - 1])
        assert len(expected) == count
        ours = {(s, d): list(values) for s, rows in table.systems.items() for d, values in rows.items()}
        assert ours == expected
    ways = [way for lang in LANGUAGES for way in (f"en-{lang}", f"{lang}-en")]
    systems = published().tables["table4"].systems.values()
    ours_4 = [[rows[way][0] for way in (*ways, "average") if way in rows] for rows in systems]
    assert ours_4 == rows_of_systems(tabulars[3])
