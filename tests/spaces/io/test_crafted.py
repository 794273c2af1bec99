"""Crafted files are refused for the right reason, within the limits of memory and time."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz import crafted
from qwp.errors import InputError
from qwp.spaces import stores
from qwp.spaces.io import load

TOO_LARGE = r"unpacks to more than|takes more than [\d,]+ bytes of memory"
VIEW = "takes its rows from a view or an expression|cannot be used as a database"
REFUSALS = {
    "long-ngrams.fasttext": "whose words have more than",
    "many-words.fasttext": "whose words have more than",
    "constant.parquet": TOO_LARGE,
    "words.parquet": TOO_LARGE,
    "constant.arrow": TOO_LARGE,
    "words.arrow": TOO_LARGE,
    "head.faiss": "bytes cannot hold",
    "wide.faiss": TOO_LARGE,
    "lists.faiss": "damaged or truncated FAISS index|" + TOO_LARGE,
    "codes.faiss": TOO_LARGE,
    "generated.duckdb": "has generated columns, which compute when they are read",
    "view.duckdb": "has 0 tables",
    "long.duckdb": TOO_LARGE,
    "wide.duckdb": TOO_LARGE,
    "view.db": "has 0 tables",
    "table-view.db": VIEW,
    "generated.db": "0 columns could hold vectors",
    "pages.db": "its pages form a cycle",
}

STORES = ("generated.duckdb", "long.duckdb", "generated.db", "pages.db")


QUICK = ("long-ngrams.fasttext", "many-words.fasttext", "head.faiss", "words.arrow", "generated.duckdb", "pages.db")
NAMES = [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow]) for name in crafted.names()]


@pytest.mark.parametrize("name", NAMES)
def test_a_crafted_file_is_refused(tmp_path: Path, name: str) -> None:
    crafted.FILES[name](tmp_path / name)
    if name not in REFUSALS:
        assert len(load(tmp_path / name)) == 1
        return
    with pytest.raises(InputError, match=REFUSALS[name]):
        load(tmp_path / name)


@pytest.mark.parametrize("name", [name for name in crafted.names() if name in STORES])
def test_stores_refuse_crafted_databases(tmp_path: Path, name: str) -> None:
    crafted.FILES[name](tmp_path / name)
    with pytest.raises(InputError, match=REFUSALS[name]):
        stores.load((stores.DuckdbStore if name.endswith("duckdb") else stores.SqliteStore)(tmp_path / name, None))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["view.db", "table-view.db"])
def test_a_named_view_is_refused(tmp_path: Path, name: str) -> None:
    crafted.FILES[name](tmp_path / name)
    with pytest.raises(InputError, match=f"has no table 'items'|{VIEW}"):
        load(f"{tmp_path / name}#items,word,vector")


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in crafted.names() if name in ("words.parquet", "wide.faiss")])
def test_memory_of_the_child_is_bounded(tmp_path: Path, name: str) -> None:
    shown, wrong = crafted.run(name, tmp_path)
    assert wrong != "takes too much memory", shown
