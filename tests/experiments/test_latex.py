"""LaTeX: laid out like the tables of the paper."""

from __future__ import annotations

import pytest

from qwp.experiments.latex import latex
from qwp.experiments.plan import Plan
from qwp.experiments.report import make_report
from tests.experiments.records import RECORDS, known_answers, planned, sizes_plan


@pytest.fixture
def sizes() -> Plan:
    return sizes_plan()


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


def test_the_best_is_bold_and_those_level_with_it_underlined(sizes: Plan) -> None:
    text = latex(make_report(sizes, known_answers()))
    assert r"\textbf{76.88 $\pm$ 0.00} & \textbf{75.12 $\pm$ 0.00}" in text
    assert r"75.00 $\pm$ 0.00 & \underline{75.00 $\pm$ 0.00}" in text


def test_names_of_data_keep_the_pairs_of_directions() -> None:
    plan = planned(None, ["en-es", "zhang:es-en", "zhang:en-es"], ["a"], [])
    lines = [line.strip() for line in latex(make_report(plan, {})).splitlines()]
    head = r"Method & \multicolumn{1}{c}{EN-ES} & \multicolumn{2}{c}{ZHANG:ES-EN} & \multicolumn{1}{c}{Avg} \\"
    assert head in lines
