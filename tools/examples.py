"""The changes that docs/architecture.md shows: diffs in docs/examples, which a test applies and runs."""

from __future__ import annotations

from tools import project

FOLDER = project.ROOT / "docs" / "examples"


def example(argument: str) -> str:
    """The diff that adds a thing of this kind (method, start, format, command) as a block of Markdown."""
    diff = (FOLDER / f"add-a-{argument}.diff").read_text("utf-8")
    return f"```diff\n{diff.rstrip()}\n```"
