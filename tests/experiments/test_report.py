"""Reports on known records: means, spreads, published figures, differences, averages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from qwp.experiments.plan import Plan, PlannedTable, Slot
from qwp.experiments.report import Entry, as_json, latex, make_report, markdown

SIZES = [200, 500]


def planned(published: str | None, directions: list[str], systems: list[str], sizes: list[int]) -> Plan:
    """A plan of one table with two seeds; the address of a cell says what it is."""
    points: list[dict[str, Any]] = [{"coreset_size": size} for size in sizes] or [{}]
    slots = [
        Slot(direction, system, point, seed, f"{direction} {system} {point.get('coreset_size')} {seed}")
        for direction in directions
        for system in systems
        for point in points
        for seed in (0, 1)
    ]
    grid = {"coreset_size": sizes} if sizes else {}
    table = PlannedTable("table1", "A title", "MAP", "csls", published, grid, directions, systems, slots)
    return Plan("x", "A report", (table,))


def done(address: str, csls: float, nn: float = 0.1) -> dict[str, Any]:
    scores = {"csls": {"MAP": csls}, "nn": {"MAP": nn}}
    return {"address": address, "status": "done", "direction": address[:5], "scores": scores}


@pytest.fixture
def sizes() -> Plan:
    return planned("table1", ["en-es", "es-en"], ["Random", "KMeans++"], SIZES)


RECORDS = {
    each["address"]: each
    for each in (
        done("en-es Random 200 0", 0.36),
        done("en-es Random 200 1", 0.38),
        done("es-en Random 200 0", 0.40),
        done("es-en Random 200 1", 0.44),
        done("en-es KMeans++ 500 0", 0.50, nn=0.45),
        {"address": "es-en KMeans++ 500 0", "status": "failed", "direction": "es-en", "method": "qwp", "error": "no"},
    )
}


def test_means_spreads_and_differences() -> None:
    entry = Entry((36.0, 38.0), 36.4)
    assert entry.mean == 37.0
    assert entry.spread == pytest.approx(2**0.5)
    assert entry.difference == pytest.approx(0.6)
    assert Entry((1.0,)).spread is None
    assert (Entry().mean, Entry(published=1.0).difference) == (None, None)


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


def test_the_printed_average_stands_beside_all_directions() -> None:
    ways = ["en-es", "es-en", "en-fr", "fr-en", "en-de", "de-en", "en-ru", "ru-en"]
    plan = planned("table4", [*ways, "en-it", "it-en"], ["RCSLS"], [])
    records = {
        slot.address: done(slot.address, 0.9 if "it" in slot.direction else 0.8)
        for slot in plan.tables[0].slots
        if slot.address
    }
    [view] = make_report(plan, records).views
    average = view.rows[0].entries[-1]
    assert average.ours == pytest.approx((80.0, 80.0))  # without Italian, which the paper has no figures of
    assert average.published == 77.3


def test_another_retrieval(sizes: Plan) -> None:
    text = markdown(make_report(sizes, RECORDS, retrieval="nn"))
    assert "MAP in percent, nn." in text
    assert "45.00 (48.69, -3.69)" in text


def test_without_published_figures() -> None:
    text = markdown(make_report(planned(None, ["en-pl"], ["a|b"], SIZES), {}))
    assert "| en-pl | a\\|b | - | - |" in text
    assert "ublished" not in text


def test_latex_is_laid_out_like_the_paper(sizes: Plan) -> None:
    lines = [line.strip() for line in latex(make_report(sizes, RECORDS)).splitlines()]
    assert r"\begin{tabular}{llcc}" in lines
    assert r"& & \multicolumn{2}{c}{Coreset size} \\" in lines
    at = lines.index(r"\multirow{6}*{EN-ES} & Random & 37.00 $\pm$ 1.41 & - \\")
    assert lines[at + 1] == r"& \quad published & 36.40 & 47.22 \\"
    assert lines[at + 2] == r"& \quad difference & $+0.60$ &  \\"
    assert r"\multirow{6}*{Avg} & Random & 39.50 $\pm$ 2.12 & - \\" in lines
    columns = {line.count("&") for line in lines if line.endswith(r"\\") and "multicolumn" not in line}
    assert columns == {3}
    assert lines.count(r"\toprule") == lines.count(r"\bottomrule") == 1


def test_latex_of_systems_has_pairs_of_directions() -> None:
    plan = planned("table4", ["en-es", "es-en", "en-fr"], ["PROC", "a_b & c"], [])
    lines = [line.strip() for line in latex(make_report(plan, {})).splitlines()]
    head = r"Method & \multicolumn{2}{c}{EN-ES} & \multicolumn{1}{c}{EN-FR} & \multicolumn{1}{c}{Avg} \\"
    assert head in lines
    assert r"& $\rightarrow$ & $\leftarrow$ & $\rightarrow$ &  \\" in lines
    assert r"\quad published & 81.90 & 83.40 & 82.10 & 82.47 \\" in lines
    assert any(line.startswith(r"a\_b \& c &") for line in lines)


def test_the_same_for_programs(sizes: Plan) -> None:
    about = json.loads(json.dumps(as_json(make_report(sizes, RECORDS))))
    [table] = about["tables"]
    assert table["cells"] == {"wanted": 16, "done": 5, "failed": 1}
    first = table["figures"][0]
    assert (first["row"], first["system"], first["column"], first["seeds"]) == ("en-es", "Random", "200", 2)
    assert first["difference"] == pytest.approx(0.6)
