"""The HTML page: well-formed, self-contained, with the content of Markdown and charts."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from qwp.experiments.formats import markdown
from qwp.experiments.html_page import CSS, SCRIPT, page
from qwp.experiments.report import ExperimentReport, make_report
from tests.experiments.records import known_answers, planned, sizes_plan

NAMES = {"s": "http://www.w3.org/2000/svg"}


@pytest.fixture
def report() -> ExperimentReport:
    found = make_report(sizes_plan(), known_answers())
    return replace(found, title="A <report> & more", missing=("no <vectors>",), failures=("en-es, qwp: no",))


def parsed(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text.removeprefix("<!DOCTYPE html>"))


def test_the_page_is_self_contained(report: ExperimentReport) -> None:
    text = page(report)
    parsed(text)
    addresses = set(re.findall(r"https?://[^\"' )]+", text))
    assert addresses == set(NAMES.values())
    assert "src=" not in text
    assert "@import" not in text
    assert "url(" not in text


def test_the_page_has_the_content_of_markdown(report: ExperimentReport) -> None:
    text, words = page(report), "".join(parsed(page(report)).itertext())
    for line in markdown(report).splitlines():
        if line.startswith("| "):
            for figure in re.findall(r"\d+\.\d\d", line):
                assert figure in words
        elif line.startswith("- "):
            assert line[2:] in words
    assert all(claim.verdict in words and claim.name in words for claim in report.claims)
    assert "A &lt;report&gt; &amp; more" in text
    assert report.citation in words


def test_charts_are_described_and_have_tips(report: ExperimentReport) -> None:
    root = parsed(page(report))
    charts = root.findall(".//s:svg[@role='img']", NAMES)
    # Two directions and their average by size, one by time, two plans.
    assert len(charts) == 6
    assert all(len(str(chart.get("aria-label"))) > 30 for chart in charts)
    label = str(charts[0].get("aria-label"))
    assert "en-es: MAP in percent, csls by coreset size. Random: 200 points 75.0, 500 points 75.0." in label
    tips = [str(title.text) for title in root.findall(".//s:svg//s:title", NAMES)]
    assert "Random, 200 points: 75.00; seeds: 75.00, 75.00; worse than the best, p = 0.002; 1.0 s per fit" in tips
    assert "Random, 200 points: published 36.40" in tips


def test_cells_are_marked_by_signs_not_by_colour_alone(report: ExperimentReport) -> None:
    cells = parsed(page(report)).findall(".//section[@id='table1']//td", NAMES)
    marks = {str(cell.get("class")): "".join(cell.itertext()) for cell in cells}
    assert "●" in marks["best"]
    assert "○" in marks["level"]
    assert not {"●", "○"} & set(marks["worse"])


def test_pairs_of_languages_by_the_best_system(report: ExperimentReport) -> None:
    root = parsed(page(report))
    first, second = root.findall(".//section[@id='pairs']//div[@class='choice']", NAMES)
    assert (first.get("hidden"), second.get("hidden")) == (None, "hidden")
    cells = {cell.get("title"): cell.get("style") for cell in first.findall(".//td[@style]", NAMES)}
    assert cells == {"en → es: 76.88": "--v:1.00", "es → en: 76.88": "--v:1.00"}


def test_named_data_has_its_own_table() -> None:
    plan = planned(None, ["es-en", "zhang:es-en"], ["Random", "KMeans++"], [200, 500])
    records = {address.replace("en-es", "zhang:es-en"): each for address, each in known_answers().items()}
    root = parsed(page(make_report(plan, records)))
    # One direction: the table of scores has its figure, and a map of one cell says no more.
    assert root.findall(".//section[@id='pairs']", NAMES) == []
    assert root.findall(".//nav/a[@href='#pairs']", NAMES) == []
    plan = planned(None, ["es-en", "zhang:es-en", "zhang:en-es"], ["Random", "KMeans++"], [200, 500])
    records |= {address.replace("en-es", "zhang:en-es"): each for address, each in known_answers().items()}
    root = parsed(page(make_report(plan, records)))
    captions = [caption.text for caption in root.findall(".//section[@id='pairs']//caption", NAMES)]
    assert captions == ["zhang", "zhang"]  # one for each of two systems


def test_an_empty_report() -> None:
    root = parsed(page(make_report(sizes_plan(), {})))
    assert not root.findall(".//s:svg[@role='img']", NAMES)
    assert "not computed" in {cell.get("title") for cell in root.findall(".//td", NAMES)}


def test_a_table_of_systems() -> None:
    plan = planned("table4", ["en-es", "es-en"], ["PROC", "RCSLS"], [])
    records = {
        address.replace("Random 200", "PROC None").replace("KMeans++ 200", "RCSLS None"): each
        for address, each in known_answers().items()
    }
    root = parsed(page(make_report(plan, records)))
    assert len(root.findall(".//section[@id='times']//s:svg[@role='img']", NAMES)) == 1
    assert root.findall(".//ol/li", NAMES)


def test_the_script_is_well_formed_in_xml() -> None:
    assert not {"<", "&"} & set(SCRIPT + CSS)
