"""Tests mirror the package: every module has a file of its own name in the same place."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent / "src" / "qwp"
# `__init__` gathers names, `__main__` calls the command line.
MODULES = sorted(
    path.relative_to(PACKAGE).as_posix()
    for path in PACKAGE.rglob("*.py")
    if path.stem not in ("__init__", "__main__") and "data" not in path.relative_to(PACKAGE).parts
)
# Modules without a test file, and why.
WITHOUT = {
    "methods/options.py": "generated; `python -m tools.generate --check` compares it with the parameters",
    "version.py": "one line, which tests/tools/test_metadata.py compares with the citation and the change log",
}


def namesake(module: str) -> Path:
    """Return the test file that belongs to a module."""
    path = Path(module)
    return TESTS / path.parent / f"test_{path.name}"


def test_every_module_has_a_test_file_of_its_name() -> None:
    tested = {module: namesake(module) for module in MODULES if module not in WITHOUT}
    assert len(tested) > 100
    missing = [path for path in tested.values() if not path.is_file() or "def test_" not in path.read_text("utf-8")]
    assert not missing, "no tests in " + ", ".join(map(str, missing))


def test_the_exceptions_exist_and_are_few() -> None:
    assert set(WITHOUT) <= set(MODULES)
    assert len(WITHOUT) < 6


def test_every_package_has_a_package_of_tests() -> None:
    folders = {path.parent.relative_to(PACKAGE) for path in PACKAGE.rglob("__init__.py")}
    missing = [str(folder) for folder in folders if not (TESTS / folder / "__init__.py").is_file()]
    assert not missing, "no tests/ folder for " + ", ".join(missing)
