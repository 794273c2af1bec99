"""The diffs of docs/architecture.md as Markdown; tests/test_examples.py runs what they add."""

from __future__ import annotations

from tools import examples


def test_a_diff_becomes_a_block_without_hashes_of_its_making() -> None:
    for name in ("method", "initializer", "format", "command"):
        block = examples.example(name)
        assert block.startswith("```diff\ndiff --git a/src/qwp/")
        assert block.endswith("\n```")
        assert "\nindex " not in block
