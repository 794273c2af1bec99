"""The version, the citation and the change log agree, and a tag is refused where they do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import check_tag, project

# Of the Citation File Format 1.2.0.
REQUIRED_IN_CITATION = {"cff-version", "message", "title", "authors"}


def checkout(
    root: Path, *, version: str = "0.3.0", cited: str = "0.3.0", changes: str = "[0.3.0] - 2031-02-03"
) -> Path:
    """A folder with the files that say which version it is."""
    (root / "src" / "qwp").mkdir(parents=True)
    (root / "src" / "qwp" / "version.py").write_text(f'"""The version."""\n\n__version__ = "{version}"\n')
    (root / "CITATION.cff").write_text(
        f'# How to cite.\ncff-version: 1.2.0\ntitle: "a: b"\nversion: {cited}\nauthors:\n  - name: someone\n'
    )
    (root / "CHANGELOG.md").write_text(f"# Changelog\n\n## {changes}\n\n### Added\n\n## [0.1.0] - 2030-01-01\n")
    return root


def test_the_version_has_one_place() -> None:
    from qwp.version import __version__

    about = project.pyproject()
    assert about["project"]["dynamic"] == ["version"]
    assert about["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "qwp.version.__version__"}
    assert project.version() == __version__


def test_the_citation_is_complete_and_names_the_release() -> None:
    """While a version is in development, the citation already names the release that it leads to."""
    citation = project.citation()
    assert set(citation) >= REQUIRED_IN_CITATION
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == project.release_of(project.version())
    assert citation["license"] == project.pyproject()["project"]["license"]


def test_the_citation_names_the_same_repository() -> None:
    address = project.citation().get("repository-code")
    if address is None:
        pytest.skip("CITATION.cff names no repository")
    assert address == project.pyproject()["project"]["urls"]["Source"]


def test_the_change_log_has_a_section_for_the_release() -> None:
    assert project.release_of(project.version()) in project.changes()


@pytest.mark.parametrize("version", ["0.2.0", "0.2.0.dev0", "0.2.0rc1", "0.2.0a12.dev3", "0.2.0.post1"])
def test_the_release_of_a_version(version: str) -> None:
    assert project.release_of(version) == "0.2.0"


@pytest.mark.parametrize("version", ["", "v0.2.0", "0.2.0-dev", "0.2.", "0.2.0 "])
def test_what_is_no_version(version: str) -> None:
    with pytest.raises(ValueError, match="is not a version"):
        project.release_of(version)


def test_a_version_file_without_a_version(tmp_path: Path) -> None:
    root = checkout(tmp_path)
    (root / "src" / "qwp" / "version.py").write_text("version = 1\n")
    with pytest.raises(ValueError, match="does not set __version__"):
        project.version(root)


def test_reading_a_citation(tmp_path: Path) -> None:
    assert project.citation(checkout(tmp_path)) == {
        "cff-version": "1.2.0",
        "title": "a: b",
        "version": "0.3.0",
        "authors": "",
    }


@pytest.mark.parametrize(
    ("line", "problem"), [("no key", "line 7: expected `key: value`"), ("title: again", "line 7: title is there twice")]
)
def test_a_citation_that_cannot_be_read(tmp_path: Path, line: str, problem: str) -> None:
    root = checkout(tmp_path)
    with (root / "CITATION.cff").open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(ValueError, match=problem):
        project.citation(root)


def test_reading_the_change_log(tmp_path: Path) -> None:
    root = checkout(tmp_path, changes="[0.3.0] - unreleased")
    assert project.changes(root) == {"0.3.0": "unreleased", "0.1.0": "2030-01-01"}


@pytest.mark.parametrize("version", ["0.3.0", "0.3.0rc1"])
def test_a_tag_that_may_be_released(tmp_path: Path, version: str) -> None:
    assert check_tag.problems(f"v{version}", checkout(tmp_path, version=version)) == []


def test_a_candidate_has_no_date_yet(tmp_path: Path) -> None:
    root = checkout(tmp_path, version="0.3.0rc1", changes="[0.3.0] - unreleased")
    assert check_tag.problems("v0.3.0rc1", root) == []


@pytest.mark.parametrize(
    ("tag", "version", "cited", "changes", "problem"),
    [
        ("v0.3.1", "0.3.0", "0.3.0", "[0.3.0] - 2031-02-03", "expected the tag v0.3.0"),
        ("0.3.0", "0.3.0", "0.3.0", "[0.3.0] - 2031-02-03", "expected the tag v0.3.0"),
        ("v0.3.0", "0.3.0.dev1", "0.3.0", "[0.3.0] - 2031-02-03", "take the .dev part off"),
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
