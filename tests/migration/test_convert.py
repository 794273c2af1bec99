from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from qwp.errors import InputError
from qwp.migration.adapter import fit
from qwp.migration.convert import rewrite
from qwp.spaces.stores import SqliteStore, load
from tests.migration.problems import encoders

TEXTS = encoders(200)


@pytest.fixture
def old(tmp_path: Path) -> SqliteStore:
    store = SqliteStore.create(tmp_path / "items.db", "old")
    store.write([(TEXTS.ids, TEXTS.old)])
    return store


def test_queries_of_the_new_model_find_the_rewritten_store(old: SqliteStore, tmp_path: Path) -> None:
    new = SqliteStore.create(tmp_path / "items.db", "new")
    assert rewrite(old, new, fit("orthogonal", TEXTS.old[:100], TEXTS.new[:100]), batch=64) == 200
    assert load(new).words == TEXTS.ids
    assert TEXTS.recall(load(new).vectors, TEXTS.new) > 0.9


def test_other_maps_are_refused(old: SqliteStore) -> None:
    with pytest.raises(InputError, match=r"received function to convert a store with, expected an Adapter"):
        rewrite(old, old, cast(Any, lambda rows: rows))
