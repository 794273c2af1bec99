from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import qwp
from qwp import version
from qwp.version import __version__, code_version, version_of

PACKAGE = Path(qwp.__file__).parent


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(PACKAGE, tmp_path / "qwp", ignore=shutil.ignore_patterns("__pycache__")))


def test_the_version_of_the_code_is_the_same_for_the_same_sources(copy: Path) -> None:
    assert code_version() == version_of(copy) == version_of(PACKAGE)
    assert code_version().startswith(f"{__version__}+")
    assert len(code_version()) == len(__version__) + 17


@pytest.mark.parametrize(
    "name", ["judging/verdict.py", "methods/compositions.py", "spaces/io/numpy_files.py", "parameters.py"]
)
def test_a_change_of_computing_code_changes_the_version(copy: Path, name: str) -> None:
    path = copy / name
    path.write_text(path.read_text("utf-8") + "\n", "utf-8")
    assert version_of(copy) != code_version()


def test_a_new_module_and_one_moved_are_another_version(copy: Path) -> None:
    (copy / "maps" / "new.py").write_text("")
    with_new = version_of(copy)
    (copy / "maps" / "new.py").rename(copy / "search" / "new.py")
    assert len({code_version(), with_new, version_of(copy)}) == 3


def test_code_that_only_shows_results_does_not_count(copy: Path) -> None:
    shutil.rmtree(copy / "cli")
    shutil.rmtree(copy / "explore")
    assert version_of(copy) == code_version()


def test_the_code_in_a_zip_file(tmp_path: Path, copy: Path) -> None:
    archive = Path(shutil.make_archive(str(tmp_path / "packed"), "zip", copy.parent, "qwp"))
    assert version_of(zipfile.Path(archive, "qwp/")) == code_version()
    program = "from qwp.version import code_version; import qwp; print(code_version(), '.zip' in qwp.__file__)"
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(archive)!r}); {program}"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout.split() == [code_version(), "True"]


def test_without_sources_it_is_the_version_alone(tmp_path: Path) -> None:
    assert version_of(tmp_path) == __version__
    (tmp_path / "maps").mkdir()
    (tmp_path / "maps" / "__init__.pyc").write_bytes(b"compiled")
    assert version_of(tmp_path) == __version__


def test_nothing_is_hashed_by_an_import() -> None:
    program = "import qwp.version; print(qwp.version.code_version.cache_info().currsize)"
    ran = subprocess.run([sys.executable, "-c", f"import qwp.methods; {program}"], capture_output=True, text=True)
    assert ran.stdout.strip() == "0"
    assert version.code_version() == code_version()
