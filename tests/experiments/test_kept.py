"""A report that is kept: what is read says the same in every form."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from qwp.errors import InputError
from qwp.experiments.kept import as_file, read_report
from qwp.experiments.latex import latex
from qwp.experiments.markdown import markdown
from qwp.experiments.page import page
from qwp.experiments.report import make_report
from tests.experiments.records import RECORDS, known_answers, sizes_plan


@pytest.mark.parametrize("records", [RECORDS, known_answers(), {}], ids=["some", "all", "none"])
def test_every_form_says_the_same(records: dict[str, dict[str, object]], tmp_path: Path) -> None:
    report = make_report(sizes_plan(), records)
    (tmp_path / "x.json").write_text(as_file(report))
    found = read_report(tmp_path / "x.json")
    for form in (markdown, latex, page):
        assert form(found) == form(report)
    assert as_file(found) == as_file(report)


def test_folders_of_the_machine_are_not_kept(tmp_path: Path) -> None:
    report = replace(make_report(sizes_plan(), known_answers()), missing=("no vectors in /home/me",))
    assert "/home/me" not in as_file(report)


def test_a_row_a_line() -> None:
    lines = as_file(make_report(sizes_plan(), known_answers())).splitlines()
    assert sum(line.startswith('{"group": ') for line in lines) == 6


def test_other_files_are_refused(tmp_path: Path) -> None:
    for text in ("", "[]", "{}", '{"views": [{"rows": [{}]}], "claims": [], "plans": []}'):
        (tmp_path / "x.json").write_text(text)
        with pytest.raises(InputError, match=r"x.json is not a report .*expected one that `qwp experiment report"):
            read_report(tmp_path / "x.json")
