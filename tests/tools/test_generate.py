"""Generated parts of documents: finding, writing and checking them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import generate, project, structure

GENERATORS = {"hello": lambda name: f"Hello {name or 'you'}!\n", "list": lambda _: "- a\n- b"}

DOCUMENT = """\
# Title

Write `<!-- generated:hello -->` on a line of its own.

<!-- generated:hello -->
old
<!-- /generated:hello -->
between
<!-- generated:hello:world -->
<!-- /generated:hello:world -->
<!-- generated:list -->
- a
- b
<!-- /generated:list -->

end
"""


def test_the_documents_of_the_repository_are_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    code = generate.main(["--check"])
    said = capsys.readouterr()
    assert (code, said.out, said.err) == (0, "", "")


def test_parts_are_replaced_and_the_rest_is_kept() -> None:
    text, stale = generate.regenerate(DOCUMENT, GENERATORS)
    assert stale == ["hello", "hello:world"]
    assert text == DOCUMENT.replace("old\n", "Hello you!\n").replace(
        "world -->\n<!-- /", "world -->\nHello world!\n<!-- /"
    )
    assert generate.regenerate(text, GENERATORS) == (text, [])


def test_a_document_without_parts_stays_as_it_is() -> None:
    for text in ("", "\n", "no end of line", "two\n\n", "a\x0cb\u2028c\n"):
        assert generate.regenerate(text, GENERATORS) == (text, [])


def test_markers_that_cannot_work() -> None:
    for text, problem in (
        ("a\n<!-- generated:list -->\nb\n", "line 2: generated:list has no end"),
        ("<!-- /generated:list -->\n", "line 1: /generated:list has no beginning"),
        ("<!-- generated:list -->\n<!-- /generated:hello -->\n", "line 2: /generated:hello has no beginning"),
        ("<!-- generated:list -->\n<!-- generated:list -->\n", "line 2: generated:list begins inside"),
        (
            "<!-- generated:lost:x -->\n<!-- /generated:lost:x -->\n",
            "no generator for 'lost:x'; expected one of hello, list",
        ),
    ):
        with pytest.raises(generate.DocumentError, match=problem):
            generate.regenerate(text, GENERATORS)


FILES = {"docs/made.py": lambda _: "x = 1\n"}


def run(root: Path, *arguments: str) -> int:
    return generate.main([*arguments], root, GENERATORS, FILES)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a folder with documents, one of them stale, and a generated file."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("nothing here\n", "utf-8")
    (tmp_path / "docs" / "é.md").write_text(DOCUMENT, "utf-8")
    (tmp_path / "docs" / "made.py").write_text("x = 0\n")
    return tmp_path


def test_which_files_are_documents(repository: Path) -> None:
    (repository / "CHANGELOG.md").write_text("x")
    (repository / "docs" / "a.txt").write_text("x")
    assert generate.documents(repository) == [repository / "README.md", repository / "docs" / "é.md"]


def test_checking_names_what_is_stale_and_changes_nothing(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(repository, "--check") == 1
    stale = "stale, run `make generated`"
    assert capsys.readouterr().out == f"made.py: {stale}\ndocs/é.md: hello, hello:world: {stale}\n"
    assert (repository / "docs" / "é.md").read_text("utf-8") == DOCUMENT
    assert (repository / "docs" / "made.py").read_text("utf-8") == "x = 0\n"


def test_writing_makes_the_check_pass(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(repository) == 0
    assert capsys.readouterr().out == "made.py: written\ndocs/é.md: hello, hello:world: written\n"
    assert "Hello world!" in (repository / "docs" / "é.md").read_text("utf-8")
    assert (repository / "docs" / "made.py").read_text("utf-8") == "x = 1\n"
    assert run(repository, "--check") == 0
    assert capsys.readouterr().out == ""


def test_a_bad_document_is_named(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (repository / "README.md").write_text("<!-- generated:list -->\n")
    assert run(repository) == 2
    assert capsys.readouterr().err == "README.md: line 1: generated:list has no end\n"


# --------------------------------------------------------------------------- the structure of the project


def test_the_layers(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[[tool.importlinter.contracts]]\ntype = "independence"\n'
        '[[tool.importlinter.contracts]]\ntype = "layers"\nlayers = ["top", "left | right", "(gone)", "base"]\n'
    )
    for name in ("top/__init__.py", "left.py", "right.py", "base.py"):
        path = tmp_path / "src" / "qwp" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'"""{name.upper()} a|b."""\n')
    assert structure.layers("", tmp_path).splitlines()[2:] == [
        "| 1 | `qwp.top` | TOP/__INIT__.PY a\\|b. |",
        "| 2 | `qwp.left` | LEFT.PY a\\|b. |",
        "| 2 | `qwp.right` | RIGHT.PY a\\|b. |",
        "| 4 | `qwp.base` | BASE.PY a\\|b. |",
    ]


def test_every_part_of_the_package_is_in_a_layer() -> None:
    parts = {path.stem for path in project.PACKAGE.glob("*.py")} - {"__init__", "__main__"}
    parts |= {path.parent.name for path in project.PACKAGE.glob("*/__init__.py")}
    assert parts <= {name for names in structure.layer_names() for name in names}


def test_the_make_targets(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text(
        "A := 1 ## not a target\nall: $(X)/.y ## do: all | more\n\ttrue ## no\n.hidden: ## no\nlast: no comment\n"
    )
    assert structure.make_targets("", tmp_path).splitlines()[2:] == ["| `make all` | do: all \\| more |"]


def test_every_target_a_contributor_calls_has_a_help_text() -> None:
    makefile = (project.ROOT / "Makefile").read_text("utf-8")
    phony = next(line for line in makefile.splitlines() if line.startswith(".PHONY:"))
    assert set(structure.target_help()) == set(phony.split()[1:])
