"""The version, the citation and the change log agree; a tag that contradicts them is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from qwp.version import __version__
from tools import check_tag, project

# Required by the Citation File Format 1.2.0.
REQUIRED_IN_CITATION = {"cff-version", "message", "title", "authors"}


def checkout(
    root: Path, *, version: str = "0.3.0", cited: str = "0.3.0", changes: str = "[0.3.0] - 2031-02-03"
) -> Path:
    """Return a folder with the files that hold the version."""
    (root / "src" / "qwp").mkdir(parents=True)
    (root / "src" / "qwp" / "version.py").write_text(f'"""The version."""\n\n__version__ = "{version}"\n')
    (root / "CITATION.cff").write_text(
        f'# How to cite.\ncff-version: 1.2.0\ntitle: "a: b"\nversion: {cited}\nauthors:\n  - name: someone\n'
    )
    (root / "CHANGELOG.md").write_text(f"# Changelog\n\n## {changes}\n\n### Added\n\n## [0.1.0] - 2030-01-01\n")
    return root


def test_the_version_has_one_place() -> None:
    about = project.pyproject()
    assert about["project"]["dynamic"] == ["version"]
    assert about["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "qwp.version.__version__"}
    assert project.version() == __version__


def test_the_citation_and_the_change_log_name_the_release() -> None:
    """A development version counts as its coming release."""
    release, citation = project.release_of(project.version()), project.citation()
    assert release in project.changes()
    assert set(citation) >= REQUIRED_IN_CITATION
    assert (citation["cff-version"], citation["version"]) == ("1.2.0", release)
    about = project.pyproject()["project"]
    assert citation["license"] == about["license"]
    assert citation["repository-code"] == about["urls"]["Source"]


def test_the_release_of_a_version() -> None:
    for version in ("0.2.0", "0.2.0.dev0", "0.2.0rc1", "0.2.0a12.dev3", "0.2.0.post1"):
        assert project.release_of(version) == "0.2.0"
    for version in ("", "v0.2.0", "0.2.0-dev", "0.2.", "0.2.0 "):
        with pytest.raises(ValueError, match="is not a version"):
            project.release_of(version)


def test_a_tag_that_may_be_released(tmp_path: Path) -> None:
    assert check_tag.problems("v0.3.0", checkout(tmp_path / "release")) == []
    candidate = checkout(tmp_path / "candidate", version="0.3.0rc1", changes="[0.3.0] - unreleased")
    assert check_tag.problems("v0.3.0rc1", candidate) == []


@pytest.mark.parametrize(
    ("tag", "version", "cited", "changes", "problem"),
    [
        ("v0.3.1", "0.3.0", "0.3.0", "[0.3.0] - 2031-02-03", "expected the tag v0.3.0"),
        ("v0.3.0", "0.3.0.dev1", "0.3.0", "[0.3.0] - 2031-02-03", "remove the .dev part"),
        ("v0.3.0", "0.3.0", "0.2.0", "[0.3.0] - 2031-02-03", "CITATION.cff has version 0.2.0: expected 0.3.0"),
        ("v0.3.0", "0.3.0", "0.3.0", "[0.2.0] - 2031-02-03", "no section for 0.3.0"),
        ("v0.3.0", "0.3.0", "0.3.0", "[0.3.0] - unreleased", "expected the date"),
    ],
)
def test_a_tag_that_may_not(tmp_path: Path, tag: str, version: str, cited: str, changes: str, problem: str) -> None:
    (found,) = check_tag.problems(tag, checkout(tmp_path, version=version, cited=cited, changes=changes))
    assert problem in found


def test_the_command_says_why_a_tag_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert check_tag.main(["v999.0.0"]) == 1
    assert project.version() in capsys.readouterr().err
