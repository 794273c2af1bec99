"""The diffs that docs/architecture.md shows, from docs/examples; tests/test_examples.py applies and runs them."""

from __future__ import annotations

from tools import project

FOLDER = project.ROOT / "docs" / "examples"


def example(argument: str) -> str:
    """Return the diff that adds a method, initializer, format or command as a block of Markdown."""
    diff = (FOLDER / f"add-{argument}.diff").read_text("utf-8")
    return f"```diff\n{diff.rstrip()}\n```"
