"""Forms are chosen by the name of a file."""

from __future__ import annotations

from pathlib import Path

from qwp.experiments.forms import FORMS, form_of
from qwp.experiments.report import make_report
from tests.experiments.records import known_answers, sizes_plan


def test_the_name_of_a_file_says_its_form() -> None:
    forms = {"x.tex": "latex", "x.HTML": "html", "x.json": "json", "x.md": "markdown", "x": "markdown"}
    assert {name: form_of(Path(name)) for name in forms} == forms


def test_every_form_writes_something() -> None:
    report = make_report(sizes_plan(), known_answers())
    begins = {name: write(report)[:5] for name, write in FORMS.items()}
    assert begins == {"markdown": "# A r", "latex": "% A r", "html": "<!DOC", "json": '{\n"ti'}
    assert form_of(None) == "markdown"
