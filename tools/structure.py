"""Generated parts about the structure of the project: its files, its layers, its make targets.

Each function takes the argument of the marker ("" for these) and returns Markdown. Docstrings are read from the source,
so that the package need not be importable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tools import project

_TARGET = re.compile(r"^(?P<name>[a-z-]+):.*?## (?P<help>.+?)\s*$", re.MULTILINE)


def table(header: list[str], rows: list[list[str]]) -> str:
    """A Markdown table; a bar inside of a cell is escaped."""
    lines = [header, ["---"] * len(header), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def layout(_: str = "", package: Path = project.PACKAGE) -> str:
    """The tree of the package, each file and folder with the first line of its docstring."""
    lines = [(f"src/{package.name}/", project.docstring_line(package)), *_tree(package, "  ")]
    width = max(len(name) for name, _ in lines) + 2
    return "\n".join(["```", *(f"{name:<{width}}{text}".rstrip() for name, text in lines), "```"])


def _tree(folder: Path, indent: str) -> Iterator[tuple[str, str]]:
    modules = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
    packages = [path.parent for path in folder.glob("*/__init__.py")]
    for path in sorted(modules):
        yield f"{indent}{path.name}", project.docstring_line(path)
    for path in sorted(packages):
        yield f"{indent}{path.name}/", project.docstring_line(path)
        yield from _tree(path, indent + "  ")


def layers(_: str = "", root: Path = project.ROOT) -> str:
    """The layers that import-linter enforces, highest first, each with what is in it."""
    rows = []
    for number, names in enumerate(layer_names(root), 1):
        for name in names:
            path = root / "src" / "qwp" / name
            there = path if path.is_dir() else path.with_suffix(".py")
            if there.exists():
                rows.append([str(number), f"`qwp.{name}`", project.docstring_line(there)])
    return table(["layer", "package or module", "what is in it"], rows)


def layer_names(root: Path = project.ROOT) -> list[list[str]]:
    """The modules of every layer in pyproject.toml, highest first."""
    contracts = project.pyproject(root)["tool"]["importlinter"]["contracts"]
    contract = next(c for c in contracts if c["type"] == "layers")
    return [[name.strip(" ()") for name in re.split(r"[|:]", layer)] for layer in contract["layers"]]


def make_targets(_: str = "", root: Path = project.ROOT) -> str:
    """The commands of the Makefile and their help."""
    rows = [[f"`make {name}`", text] for name, text in target_help(root).items()]
    return table(["command", "what it does"], rows)


def target_help(root: Path = project.ROOT) -> dict[str, str]:
    """The targets of the Makefile that have a help text, in its order."""
    return {found["name"]: found["help"] for found in _TARGET.finditer((root / "Makefile").read_text("utf-8"))}
