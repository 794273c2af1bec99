"""The diffs of docs/architecture.md as Markdown; tests/test_examples.py runs what they add."""

from __future__ import annotations

import pytest

from tools import examples


@pytest.mark.parametrize("name", ["method", "start", "format", "command"])
def test_a_diff_becomes_a_block_and_says_nothing_about_its_making(name: str) -> None:
    block = examples.example(name)
    assert block.startswith("```diff\ndiff --git a/src/qwp/")
    assert block.endswith("\n```")
    assert "\nindex " not in block
