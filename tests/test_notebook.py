"""The notebook runs from its first cell to its last."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tools.site import NOTEBOOK, notebook


def test_its_outputs_are_small_and_say_nothing_of_the_machine() -> None:
    text = NOTEBOOK.read_text("utf-8")
    assert len(text) < 20_000
    assert "/home/" not in text
    assert str(Path(__file__).parents[1]) not in text
    assert all(cell.get("execution_count") is None for cell in json.loads(text)["cells"])


def test_it_becomes_a_page_with_what_it_printed() -> None:
    page = notebook()
    assert page.startswith("# First alignment, as a notebook\n")
    assert "```python\nimport qwp\n" in page
    assert "```text\nEmbeddings('en', 5,000 words" in page


@pytest.mark.slow
def test_it_prints_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Words up to the first number or comma of a line are equal, and its first number is close: others vary by CPU."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for cell in json.loads(NOTEBOOK.read_text("utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        exec("".join(cell["source"]), names)
        printed = capsys.readouterr().out.splitlines()
        stored = "".join("".join(output["text"]) for output in cell["outputs"]).splitlines()
        for line, shown in zip(printed, stored, strict=True):
            assert begin(line) == begin(shown)
            assert first_number(line) == pytest.approx(first_number(shown), rel=0.1, abs=0.05)
    assert (tmp_path / "report.html").is_file()


def begin(line: str) -> str:
    """Return a line up to its first digit, comma or bracket."""
    return re.split(r"[\d,(]", line)[0]


def first_number(line: str) -> float:
    found = re.search(r"\d[\d,]*(?:\.\d+)?", line)
    return float(found[0].replace(",", "")) if found else 0.0
