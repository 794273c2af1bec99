"""The notebook runs from its first cell to its last."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.site import NOTEBOOK, notebook

# Before the first cell: the demo on its most frequent words, which takes a few seconds.
_FEWER_WORDS = """
from qwp.spaces import demo
src, tgt, gold = demo.load_demo()
demo.load_demo = lambda: (src.head(2000), tgt.head(2000), gold)
"""


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
def test_it_runs(tmp_path: Path) -> None:
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    found = nbformat.read(NOTEBOOK, as_version=4)
    found.cells.insert(0, nbformat.v4.new_code_cell(_FEWER_WORDS))
    nbclient.NotebookClient(found, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    printed = "".join(output.get("text", "") for cell in found.cells for output in cell.get("outputs", ()))
    assert "succeeded" in printed
    assert "house    casa" in printed
    assert (tmp_path / "report.html").is_file()
