"""Metadata of the checkout: folders, pyproject.toml, version, citation and change log."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "qwp"

# 0.2.0, 0.2.0rc1 or 0.2.0.dev3.
_VERSION = re.compile(r"(?P<release>\d+(?:\.\d+)*)(?:(?:a|b|rc)\d+|\.post\d+)?(?:\.dev\d+)?")
_CITATION_LINE = re.compile(r"(?P<key>[a-z][a-z-]*):\s*(?P<value>.*?)\s*")
_CHANGES = re.compile(r"^## \[(?P<release>[^]]+)\] - (?P<when>.+?)\s*$", re.MULTILINE)


def pyproject(root: Path = ROOT) -> dict[str, Any]:
    """Return the content of pyproject.toml."""
    return tomllib.loads((root / "pyproject.toml").read_text("utf-8"))


def version(root: Path = ROOT) -> str:
    """Return the version in src/qwp/version.py without importing the package."""
    path = root / "src" / "qwp" / "version.py"
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["__version__"]:
            return str(ast.literal_eval(node.value))
    raise ValueError(f"{path} does not set __version__")


def release_of(version: str) -> str:
    """Return the release of a version: 0.2.0 for 0.2.0, 0.2.0rc1 and 0.2.0.dev3."""
    found = _VERSION.fullmatch(version)
    if found is None:
        raise ValueError(f"{version!r} is not a version")
    return found["release"]


def citation(root: Path = ROOT) -> dict[str, str]:
    """Return the first level of CITATION.cff; nested values become ""."""
    entries: dict[str, str] = {}
    for number, line in enumerate((root / "CITATION.cff").read_text("utf-8").splitlines(), 1):
        if not line.strip() or line.startswith((" ", "#", "- ")):
            continue
        found = _CITATION_LINE.fullmatch(line)
        if found is None:
            raise ValueError(f"CITATION.cff, line {number}: expected `key: value`, found {line!r}")
        if found["key"] in entries:
            raise ValueError(f"CITATION.cff, line {number}: {found['key']} occurs twice")
        entries[found["key"]] = found["value"].strip("\"'")
    return entries


def changes(root: Path = ROOT) -> dict[str, str]:
    """Return the releases in CHANGELOG.md, each with its date or "unreleased"."""
    text = (root / "CHANGELOG.md").read_text("utf-8")
    return {found["release"]: found["when"] for found in _CHANGES.finditer(text)}


def docstring_line(path: Path) -> str:
    """Return the first line of the docstring of a module or package; "" without one."""
    module = path / "__init__.py" if path.is_dir() else path
    docstring = ast.get_docstring(ast.parse(module.read_text("utf-8"))) if module.is_file() else None
    return docstring.splitlines()[0].strip() if docstring else ""
