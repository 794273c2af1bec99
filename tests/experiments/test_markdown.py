"""Markdown: tables, marks, claims, times and remarks."""

from __future__ import annotations

import pytest

from qwp.experiments.markdown import markdown
from qwp.experiments.plan import Plan
from qwp.experiments.report import make_report
from tests.experiments.records import RECORDS, SIZES, known_answers, planned, sizes_plan


@pytest.fixture
def sizes() -> Plan:
    return sizes_plan()


def test_sizes_side_by_side(sizes: Plan) -> None:
    text = markdown(make_report(sizes, RECORDS))
    assert "| direction | system | 200 | 500 |" in text
    assert "| en-es | Random | 37.00 ± 1.41 (36.40, +0.60) | - (47.22) |" in text
    assert "| en-es | KMeans++ | - (45.21) | 50.00 (48.69, +1.31) |" in text
    assert "MAP in percent, csls. 5 of 16 cells are done, 1 failed." in text
    assert "- es-en, qwp: no" in text
    assert "AMTA 2022" in text


def test_averages_are_over_what_both_have(sizes: Plan) -> None:
    text = markdown(make_report(sizes, RECORDS))
    # Seeds 38 and 41; published, of these two directions of ten, (36.40 + 43.74) / 2.
    assert "| average | Random | 39.50 ± 2.12 (40.07, -0.57) |" in text
    # One direction is done: the published figure is of that one.
    assert "| average | KMeans++ | - (46.23) | 50.00 (48.69, +1.31) |" in text


def test_another_retrieval(sizes: Plan) -> None:
    text = markdown(make_report(sizes, RECORDS, retrieval="nn"))
    assert "MAP in percent, nn." in text
    assert "45.00 (48.69, -3.69)" in text


def test_without_published_figures() -> None:
    text = markdown(make_report(planned(None, ["en-pl"], ["a|b"], SIZES), {}))
    assert "| en-pl | a\\|b | - | - |" in text
    assert "ublished" not in text


def test_marks_claims_and_times(sizes: Plan) -> None:
    text = markdown(make_report(sizes, known_answers()))
    assert "| en-es | Random | 75.00 ± 0.00 (36.40, +38.60) | *75.00 ± 0.00* (47.22, +27.78) |" in text
    assert "| en-es | KMeans++ | **76.88 ± 0.00** (45.21, +31.66) | **75.12 ± 0.00** (48.69, +26.44) |" in text
    assert "The best of the systems compared is in bold, those not significantly worse in italic" in text
    claim = "k-means++ beats random samples of the same size, without refinement"
    assert f"| {claim} | Table 1 | holds | +1.00 points (95 % " in text
    assert "over directions, sizes and seeds, computed by numpy." in text
    assert "| A title | Random | 1.0 | 1.0 | 1.0 |" in text
