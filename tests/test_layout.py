"""Tests mirror the package: every module has a file of its own name in the same place."""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "src" / "qwp"
# `__init__` gathers names, `__main__` calls the command line.
MODULES = sorted(
    path.relative_to(PACKAGE).as_posix()
    for path in PACKAGE.rglob("*.py")
    if path.stem not in ("__init__", "__main__") and "data" not in path.relative_to(PACKAGE).parts
)
# Modules in which nothing runs, and what looks at them instead.
WITHOUT = {
    "arrays/types.py": "protocols, which mypy checks against all that uses them",
    "methods/options.py": "generated; `python -m tools.generate --check` compares it with the parameters",
    "spaces/sides.py": "the two names of the sides",
    "version.py": "one line, which tests/tools/test_metadata.py compares with what follows it",
}


def namesake(module: str) -> Path:
    """Where the test of a module belongs."""
    path = Path(module)
    return TESTS / path.parent / f"test_{path.name}"


@pytest.mark.parametrize("module", [module for module in MODULES if module not in WITHOUT])
def test_every_module_has_a_test_of_its_name(module: str) -> None:
    path = namesake(module)
    assert path.is_file(), f"src/qwp/{module} has no {path.relative_to(TESTS.parent)}"
    assert "def test_" in path.read_text("utf-8"), f"{path} holds no test"


def test_the_exceptions_are_modules_that_are_there() -> None:
    assert set(WITHOUT) <= set(MODULES)
    assert len(WITHOUT) < 6


def test_every_folder_of_the_package_has_one_of_tests() -> None:
    folders = {path.parent.relative_to(PACKAGE) for path in PACKAGE.rglob("__init__.py")}
    for folder in folders:
        assert (TESTS / folder / "__init__.py").is_file(), f"tests/{folder} is missing"
