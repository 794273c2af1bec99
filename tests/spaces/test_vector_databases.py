from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qwp.errors import InputError
from qwp.spaces.stores import load
from qwp.spaces.vector_databases import LanceStore, QdrantStore, open_folder
from tests.libraries import optional_module

qdrant_client: Any = optional_module("qdrant_client")
lancedb: Any = optional_module("lancedb")
needs_qdrant = pytest.mark.skipif(qdrant_client is None, reason='not installed: pip install "qwp[qdrant]"')
needs_lancedb = pytest.mark.skipif(lancedb is None, reason='not installed: pip install "qwp[lancedb]"')

ROWS = np.random.default_rng(0).standard_normal((50, 4)).astype(np.float32)
ROWS /= np.linalg.norm(ROWS, axis=1, keepdims=True)


@pytest.fixture
def qdrant(tmp_path: Path) -> Path:
    """A folder of Qdrant with a collection."""
    from qdrant_client import models

    client = qdrant_client.QdrantClient(path=str(tmp_path / "qdrant"))
    client.create_collection("items", models.VectorParams(size=4, distance=models.Distance.COSINE))
    points = [models.PointStruct(id=i, vector=row.tolist(), payload={"title": f"t{i}"}) for i, row in enumerate(ROWS)]
    client.upsert("items", points)
    client.close()
    return tmp_path / "qdrant"


@pytest.fixture
def lance(tmp_path: Path) -> Path:
    """A folder of LanceDB with a table."""
    rows = [{"id": f"i{i}", "vector": row.tolist(), "title": f"t{i}"} for i, row in enumerate(ROWS)]
    lancedb.connect(str(tmp_path / "lance")).create_table("items", rows)
    return tmp_path / "lance"


def wider(store: Any) -> list[tuple[list[str], np.ndarray]]:
    """New vectors of six dimensions for all items."""
    return [(ids, np.pad(rows, ((0, 0), (0, 2)))) for ids, rows in store.batches(20)]


@needs_qdrant
def test_a_copy_of_a_qdrant_collection_keeps_ids_and_payloads(qdrant: Path, tmp_path: Path) -> None:
    store = open_folder(Path(f"{qdrant}#items"))
    assert isinstance(store, QdrantStore)
    space = load(store)
    assert space.words[:3] == ["0", "1", "2"]
    np.testing.assert_allclose(space.vectors, ROWS, atol=1e-6)
    identity = store.identity
    assert store.copy_with(tmp_path / "new", wider(store)) == 50
    assert store.identity == identity
    copy = QdrantStore(tmp_path / "new")
    assert load(copy).dim == 6
    client = qdrant_client.QdrantClient(path=str(tmp_path / "new"))
    [found] = client.query_points("items", query=np.pad(ROWS[7], (0, 2)).tolist(), limit=1).points
    client.close()
    assert (found.id, found.payload) == (7, {"title": "t7"})


@needs_lancedb
def test_a_copy_of_a_lance_table_keeps_ids_and_columns(lance: Path, tmp_path: Path) -> None:
    store = open_folder(lance)
    assert isinstance(store, LanceStore)
    space = load(store)
    assert space.words[:3] == ["i0", "i1", "i2"]
    np.testing.assert_allclose(space.vectors, ROWS, atol=1e-6)
    assert store.copy_with(tmp_path / "new", wider(store)) == 50
    assert load(LanceStore(tmp_path / "new")).dim == 6
    table = lancedb.connect(str(tmp_path / "new")).open_table("items")
    [found] = table.search(np.pad(ROWS[7], (0, 2))).limit(1).to_list()
    assert (found["id"], found["title"]) == ("i7", "t7")


@needs_qdrant
def test_an_error_leaves_no_copy(qdrant: Path, tmp_path: Path) -> None:
    store = QdrantStore(qdrant)
    with pytest.raises(InputError, match="has 50 items, of which 20 were converted"):
        store.copy_with(tmp_path / "new", wider(store)[:1])
    with pytest.raises(InputError, match="has no item 'x'"):
        store.copy_with(tmp_path / "new", [(["x"], ROWS[:1])])
    assert [path.name for path in tmp_path.iterdir()] == ["qdrant"]
    with pytest.raises(InputError, match="exists, expected the name of a new folder"):
        store.copy_with(qdrant, wider(store))


@needs_qdrant
def test_folders_that_are_no_database_are_explained(qdrant: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no collection 'x', expected one of items"):
        QdrantStore(qdrant, "x")
    with pytest.raises(InputError, match="is no folder"):
        QdrantStore(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="holds no collection of Qdrant and no table of LanceDB"):
        open_folder(tmp_path / "empty")
    assert open_folder(tmp_path / "x.npz") is None
