"""The notebook runs from its first cell to its last."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from qwp.spaces import demo
from qwp.spaces.demo import load_demo
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
def test_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Run it on the 1,500 most frequent words, whose alignment takes a few seconds."""
    src, tgt, lexicon = load_demo()
    monkeypatch.setattr(demo, "load_demo", lambda: (src.head(1500), tgt.head(1500), lexicon))
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for cell in json.loads(NOTEBOOK.read_text("utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    printed = capsys.readouterr().out
    assert "succeeded" in printed
    assert "house    casa" in printed
    assert (tmp_path / "report.html").is_file()
