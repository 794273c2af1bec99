"""Formats of a report: Markdown, LaTeX and JSON."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from qwp.errors import InputError
from qwp.experiments.formats import FORMATS, as_file, format_of, latex, markdown, read_report
from qwp.experiments.html_page import page
from qwp.experiments.report import make_report
from qwp.experiments.run import ExperimentPlan
from tests.experiments.records import RECORDS, SIZES, known_answers, planned, sizes_plan


def test_the_file_name_determines_the_format() -> None:
    forms = {"x.tex": "latex", "x.HTML": "html", "x.json": "json", "x.md": "markdown", "x": "markdown"}
    assert {name: format_of(Path(name)) for name in forms} == forms


def test_every_format_writes_a_report() -> None:
    report = make_report(sizes_plan(), known_answers())
    begins = {name: write(report)[:5] for name, write in FORMATS.items()}
    assert begins == {"markdown": "# A r", "latex": "% A r", "html": "<!DOC", "json": '{\n"ti'}
    assert format_of(None) == "markdown"


@pytest.fixture
def sizes() -> ExperimentPlan:
    return sizes_plan()


def test_sizes_side_by_side(sizes: ExperimentPlan) -> None:
    text = markdown(make_report(sizes, RECORDS))
    assert "| direction | system | 200 | 500 |" in text
    assert "| en-es | Random | 37.00 ± 1.41 (36.40, +0.60) | - (47.22) |" in text
    assert "| en-es | KMeans++ | - (45.21) | 50.00 (48.69, +1.31) |" in text
    assert "MAP in percent, csls. 5 of 16 cells are computed, 1 failed." in text
    assert "- es-en, qwp: no" in text
    assert "AMTA 2022" in text


def test_averages_are_over_directions_of_both(sizes: ExperimentPlan) -> None:
    text = markdown(make_report(sizes, RECORDS))
    # Seeds 38 and 41; published, of these two directions of ten, (36.40 + 43.74) / 2.
    assert "| average | Random | 39.50 ± 2.12 (40.07, -0.57) |" in text
    # One direction is done: the published figure is of that one.
    assert "| average | KMeans++ | - (46.23) | 50.00 (48.69, +1.31) |" in text


def test_another_retrieval(sizes: ExperimentPlan) -> None:
    text = markdown(make_report(sizes, RECORDS, retrieval="nn"))
    assert "MAP in percent, nn." in text
    assert "45.00 (48.69, -3.69)" in text


def test_without_published_figures() -> None:
    text = markdown(make_report(planned(None, ["en-pl"], ["a|b"], SIZES), {}))
    assert "| en-pl | a\\|b | - | - |" in text
    assert "ublished" not in text


def test_marks_claims_and_times(sizes: ExperimentPlan) -> None:
    text = markdown(make_report(sizes, known_answers()))
    assert "| en-es | Random | 75.00 ± 0.00 (36.40, +38.60) | *75.00 ± 0.00* (47.22, +27.78) |" in text
    assert "| en-es | KMeans++ | **76.88 ± 0.00** (45.21, +31.66) | **75.12 ± 0.00** (48.69, +26.44) |" in text
    assert "The best of the compared systems is in bold, those not significantly worse in italic" in text
    claim = "k-means++ beats random samples of the same size, without refinement"
    assert f"| {claim} | Table 1 | holds | +1.00 points (95 % " in text
    assert "over directions, sizes and seeds, computed with numpy." in text
    assert "| A title | Random | 1.0 | 1.0 | 1.0 |" in text


def test_latex_is_laid_out_like_the_paper(sizes: ExperimentPlan) -> None:
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


def test_the_best_is_bold_and_those_level_with_it_underlined(sizes: ExperimentPlan) -> None:
    text = latex(make_report(sizes, known_answers()))
    assert r"\textbf{76.88 $\pm$ 0.00} & \textbf{75.12 $\pm$ 0.00}" in text
    assert r"75.00 $\pm$ 0.00 & \underline{75.00 $\pm$ 0.00}" in text


def test_names_of_data_keep_the_pairs_of_directions() -> None:
    plan = planned(None, ["en-es", "zhang:es-en", "zhang:en-es"], ["a"], [])
    lines = [line.strip() for line in latex(make_report(plan, {})).splitlines()]
    head = r"Method & \multicolumn{1}{c}{EN-ES} & \multicolumn{2}{c}{ZHANG:ES-EN} & \multicolumn{1}{c}{Avg} \\"
    assert head in lines


@pytest.mark.parametrize("records", [RECORDS, known_answers(), {}], ids=["some", "all", "none"])
def test_formats_of_a_saved_report_are_identical(records: dict[str, dict[str, object]], tmp_path: Path) -> None:
    report = make_report(sizes_plan(), records)
    (tmp_path / "x.json").write_text(as_file(report))
    found = read_report(tmp_path / "x.json")
    for form in (markdown, latex, page):
        assert form(found) == form(report)
    assert as_file(found) == as_file(report)


def test_saved_reports_contain_no_paths(tmp_path: Path) -> None:
    report = replace(make_report(sizes_plan(), known_answers()), missing=("no vectors in /home/me",))
    assert "/home/me" not in as_file(report)


def test_saved_reports_have_a_line_per_row() -> None:
    lines = as_file(make_report(sizes_plan(), known_answers())).splitlines()
    assert sum(line.startswith('{"group": ') for line in lines) == 6


def test_other_files_raise(tmp_path: Path) -> None:
    for text in ("", "[]", "{}", '{"views": [{"rows": [{}]}], "claims": [], "plans": []}'):
        (tmp_path / "x.json").write_text(text)
        with pytest.raises(InputError, match=r"x.json is not a report .*expected one that `qwp experiment report"):
            read_report(tmp_path / "x.json")
