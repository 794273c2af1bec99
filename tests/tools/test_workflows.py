"""The YAML files of the repository agree with pyproject.toml, the Makefile and each other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tools import project, structure

yaml: Any = pytest.importorskip("yaml")

FILES = sorted([*(project.ROOT / ".github").rglob("*.yml"), project.ROOT / ".pre-commit-config.yaml"])
WORKFLOWS = [path for path in FILES if path.parent.name == "workflows"]
FORMS = [path for path in FILES if path.parent.name == "ISSUE_TEMPLATE" and path.name != "config.yml"]


def load(path: Path) -> dict[Any, Any]:
    content = yaml.safe_load(path.read_text("utf-8"))
    assert isinstance(content, dict)
    return content


def jobs(path: Path) -> dict[str, Any]:
    return dict(load(path)["jobs"])


def test_every_file_parses() -> None:
    assert WORKFLOWS
    assert FORMS
    assert all(load(path) for path in FILES)


def test_the_python_versions_that_are_tested_are_those_we_claim() -> None:
    classifiers = project.pyproject()["project"]["classifiers"]
    claimed = [
        found[1] for c in classifiers if (found := re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", c))
    ]
    tested = jobs(project.ROOT / ".github/workflows/test.yml")["test"]["strategy"]["matrix"]["python"]
    assert tested == claimed
    assert project.pyproject()["project"]["requires-python"] == f">={claimed[0]}"


def test_the_systems_that_are_tested_are_those_we_claim() -> None:
    classifiers = project.pyproject()["project"]["classifiers"]
    claimed = {c.split(" :: ")[-1] for c in classifiers if c.startswith("Operating System ::")}
    tested = jobs(project.ROOT / ".github/workflows/test.yml")["test"]["strategy"]["matrix"]["os"]
    assert {{"ubuntu": "Linux", "macos": "MacOS"}[system.split("-")[0]] for system in tested} == claimed


def test_the_make_targets_exist() -> None:
    called = set()
    for job in (job for path in WORKFLOWS for job in jobs(path).values()):
        matrix = job.get("strategy", {}).get("matrix", {})
        called |= {case["target"] for case in matrix.get("include", [])}
        for step in job["steps"]:
            called |= set(re.findall(r"^make ([a-z-]+)$", step.get("run", ""), re.MULTILINE))
    assert called <= set(structure.target_help())


def test_workflows_may_do_little() -> None:
    """They may read the repository. Only the publishing job has an identity token, and it runs no code of ours."""
    assert all(load(path)["permissions"] == {"contents": "read"} for path in WORKFLOWS)
    for job in (job for path in WORKFLOWS for job in jobs(path).values()):
        assert "timeout-minutes" in job
        assert all(re.search(r"@(v\d+|release/v\d+)$", step["uses"]) for step in job["steps"] if "uses" in step)
        if "permissions" in job:
            assert job["permissions"] == {"id-token": "write"}
            assert job["environment"] == "pypi"
            assert all("run" not in step for step in job["steps"])


def test_the_forms_are_such_that_github_shows_them() -> None:
    for form in map(load, FORMS):
        assert {"name", "description", "body"} <= set(form)
        fields = [field for field in form["body"] if field["type"] != "markdown"]
        names = [field["id"] for field in fields]
        assert fields
        assert len(names) == len(set(names))
        assert all(field["attributes"]["label"] for field in fields)


def test_ruff_before_a_commit_is_the_ruff_of_make_lint() -> None:
    pinned = re.search(r"^ruff==(\S+)$", (project.ROOT / "constraints.txt").read_text("utf-8"), re.MULTILINE)
    assert pinned is not None
    hooks = load(project.ROOT / ".pre-commit-config.yaml")["repos"]
    (ruff,) = [repository for repository in hooks if repository["repo"].endswith("/ruff-pre-commit")]
    assert ruff["rev"] == f"v{pinned[1]}"
