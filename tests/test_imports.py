"""Imports: the modules that are loaded, and those that are loaded on first use."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

import qwp

HEAVY = (
    *("numpy", "scipy", "safetensors", "array_api_compat", "rich", "typer", "click", "torch", "ot", "faiss"),
    *("pandas", "polars", "gensim", "IPython"),
)


def imported_by(program: str) -> set[str]:
    """Return the modules of a new Python process after a program, which may exit."""
    code = f"import sys\ntry:\n    {program}\nfinally:\n    print(*sys.modules, file=sys.stderr)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return {name.split(".")[0] for name in ran.stderr.split()} | set(ran.stderr.split())


def cli(*arguments: str) -> str:
    return f"sys.argv = ['qwp', {', '.join(map(repr, arguments))}]; from qwp.__main__ import main; main()"


@pytest.mark.parametrize("program", ["import qwp", cli("--version")])
def test_nothing_heavy_is_imported_before_it_is_needed(program: str) -> None:
    assert imported_by(program).isdisjoint(HEAVY)


def test_help_loads_no_command_and_no_numbers() -> None:
    found = imported_by(cli("--help"))
    assert found.isdisjoint(set(HEAVY) - {"rich", "typer", "click"})
    assert found.isdisjoint({"qwp.cli.align", "qwp.methods", "qwp.spaces"})


def test_a_command_does_not_load_the_others() -> None:
    found = imported_by(cli("convert", "--help"))
    assert "qwp.cli.convert" in found
    assert found.isdisjoint({"qwp.cli.align", "qwp.cli.demo", "qwp.report", "torch", "ot", "faiss"})


def test_every_public_name_exists_and_is_listed_by_dir() -> None:
    for name in qwp.__all__:
        assert getattr(qwp, name) is getattr(qwp, name)
    assert set(qwp.__all__) <= set(dir(qwp))
    assert not {"importlib", "annotations", "TYPE_CHECKING", "_HOMES"} & set(dir(qwp))
    assert qwp.methods.METHODS["qwp"] is qwp.QWP
    with pytest.raises(AttributeError, match="module 'qwp' has no attribute 'nothing'"):
        qwp.nothing  # type: ignore[attr-defined]  # noqa: B018


def test_all_public_names_are_attributes_of_the_package() -> None:
    from qwp.api import align
    from qwp.spaces.embeddings import Embeddings

    assert qwp.align is align
    assert qwp.Embeddings is Embeddings
    assert pickle.loads(pickle.dumps(qwp.align)) is align
    found = pickle.loads(pickle.dumps(qwp.Embeddings(["a"], [[1.0, 2.0]])))  # type: ignore[arg-type]
    assert isinstance(found, Embeddings)
    assert found.words == ["a"]
