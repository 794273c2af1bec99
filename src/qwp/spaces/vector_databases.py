"""Stores of embedded vector databases: Qdrant in its local mode, and LanceDB. Both are folders.

A copy with other vectors is built in a folder with the suffix `.building` and renamed when it is complete.
"""

from __future__ import annotations

import hashlib
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from qwp.errors import InputError, QwpError, installed
from qwp.spaces.stores import Items, finite_rows

_ID, _LANCE_VECTOR = "id", "vector"


class FolderStore(ABC):
    """A collection in the folder of an embedded database.

    path: the folder. collection: its name; needed if the folder has several.
    """

    engine: str
    extra: str

    def __init__(self, path: str | Path, collection: str | None = None) -> None:
        self.path = Path(path)
        installed(self.extra, f"{self.engine} in {self.path}")
        if not self.path.is_dir():
            raise InputError(f"{self.path} is no folder, expected one that {self.engine} wrote: check the spelling")
        with self._open(self.path) as database:
            names = self._names(database)
        listed = ", ".join(names[:8]) or "none"
        if collection is None and len(names) != 1:
            raise InputError(f"{self.path} has {len(names)} collections ({listed}), expected one: name it")
        self.collection = names[0] if collection is None else collection
        if self.collection not in names:
            raise InputError(f"{self.path} has no collection {self.collection!r}, expected one of {listed}")

    @property
    def identity(self) -> str:
        """A digest of the collection and of the names, sizes and times of the files."""
        files = sorted(path for path in self.path.rglob("*") if path.is_file() and path.name != ".lock")
        about = [
            (path.relative_to(self.path).as_posix(), path.stat().st_size, path.stat().st_mtime_ns) for path in files
        ]
        return hashlib.sha256(repr((self.collection, about)).encode()).hexdigest()

    @contextmanager
    def database(self, path: Path) -> Iterator[Any]:
        """Open a folder, and turn errors of the engine into InputErrors."""
        try:
            with self._open(path) as database:
                yield database
        except QwpError:
            raise
        except Exception as error:  # each engine has exceptions of many libraries
            reason = str(error).split("\n", 1)[0][:200]
            raise InputError(f"{path} cannot be used as a database of {self.engine} ({reason})") from error

    @contextmanager
    def _building(self, out: Path) -> Iterator[Path]:
        """Yield a new folder that becomes `out` when the block succeeds."""
        if out.exists():
            raise InputError(f"{out} exists, expected the name of a new folder")
        folder = out.with_name(f"{out.name}.building")
        shutil.rmtree(folder, ignore_errors=True)
        try:
            yield folder
            folder.rename(out)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @abstractmethod
    def _open(self, path: Path) -> Any:
        """Return a context manager that opens the engine on a folder."""

    @abstractmethod
    def _names(self, database: Any) -> list[str]:
        """Return the names of all collections."""

    @abstractmethod
    def batches(self, size: int) -> Iterator[Items]:
        """Yield all items in a fixed order: ids as text, and vectors (b, d)."""

    @abstractmethod
    def copy_with(self, out: Path, batches: Iterable[Items]) -> int:
        """Write the items with everything but their vectors into a new folder. Return the number of items.

        batches: new vectors of all items, in the order of `batches`.
        """


def _first(batches: Iterable[Items], what: object) -> tuple[int, Iterator[Items]]:
    """Return the dimension of the vectors, and all batches."""
    rest = iter(batches)
    first = next(rest, None)
    if first is None:
        raise InputError(f"{what} holds no vector, expected at least one")
    return int(first[1].shape[1]), chain([first], rest)


class QdrantStore(FolderStore):
    """A collection of Qdrant's local mode with one unnamed vector for each point; needs the extra ``qdrant``."""

    engine, extra = "Qdrant", "qdrant"

    @contextmanager
    def _open(self, path: Path) -> Iterator[Any]:
        from qdrant_client import QdrantClient

        with closing(QdrantClient(path=str(path))) as client:
            yield client

    def _names(self, database: Any) -> list[str]:
        return sorted(each.name for each in database.get_collections().collections)

    def _points(self, client: Any, size: int) -> Iterator[list[Any]]:
        offset = None
        while True:
            points, offset = client.scroll(self.collection, limit=size, offset=offset, with_vectors=True)
            if points:
                yield points
            if offset is None:
                return

    def batches(self, size: int) -> Iterator[Items]:
        """Yield all points in the order of their ids: ids as text, and vectors (b, d)."""
        with self.database(self.path) as client:
            for points in self._points(client, size):
                if not all(isinstance(point.vector, list) for point in points):
                    raise InputError(f"{self.collection} has named, sparse or multiple vectors, expected one a point")
                yield [str(point.id) for point in points], np.asarray([p.vector for p in points], dtype=np.float32)

    def copy_with(self, out: Path, batches: Iterable[Items]) -> int:
        """Write the points with their payloads and other vectors into a new folder. Return the number of points.

        batches: new vectors of all points, in the order of `batches`.
        """
        from qdrant_client import models

        dim, rest = _first(batches, self.collection)
        done = 0
        with self._building(out) as folder, self.database(self.path) as client, self.database(folder) as target:
            distance = client.get_collection(self.collection).config.params.vectors.distance
            target.create_collection(self.collection, models.VectorParams(size=dim, distance=distance))
            for ids, vectors in rest:
                keys = [int(id) if id.isdecimal() else id for id in ids]
                found = {str(p.id): p for p in client.retrieve(self.collection, keys, with_payload=True)}
                _check_ids(ids, found, self.collection)
                rows = zip(ids, finite_rows(vectors).tolist(), strict=True)
                points = [
                    models.PointStruct(id=found[id].id, vector=row, payload=found[id].payload) for id, row in rows
                ]
                target.upsert(self.collection, points)
                done += len(points)
            _check_all(done, client.count(self.collection).count, self.collection)
        return done


class LanceStore(FolderStore):
    """A table of LanceDB with an `id` column and a `vector` column; needs the extra ``lancedb``."""

    engine, extra = "LanceDB", "lancedb"

    @contextmanager
    def _open(self, path: Path) -> Iterator[Any]:
        import lancedb

        yield lancedb.connect(str(path))

    def _names(self, database: Any) -> list[str]:
        return sorted(path.stem for path in self.path.glob("*.lance"))

    def _rows(self, database: Any, size: int) -> Iterator[Any]:
        """Yield the table in batches of pyarrow."""
        table = database.open_table(self.collection)
        for name in (_ID, _LANCE_VECTOR):
            if name not in table.schema.names:
                raise InputError(f"{self.collection} has no column {name!r}; it has {', '.join(table.schema.names)}")
        rows = table.count_rows()
        for begin in range(0, rows, size):
            yield table.search().limit(min(size, rows - begin)).offset(begin).to_arrow()

    def batches(self, size: int) -> Iterator[Items]:
        """Yield all rows in their order: ids as text, and vectors (b, d)."""
        with self.database(self.path) as database:
            for rows in self._rows(database, size):
                vectors = np.asarray(rows[_LANCE_VECTOR].to_pylist(), dtype=np.float32)
                yield [str(id) for id in rows[_ID].to_pylist()], vectors

    def copy_with(self, out: Path, batches: Iterable[Items]) -> int:
        """Write the table with its other columns and other vectors into a new folder. Return the number of rows.

        batches: new vectors of all rows, in the order of `batches`.
        """
        import pyarrow as pa

        dim, rest = _first(batches, self.collection)
        done = 0
        with self._building(out) as folder, self.database(self.path) as database, self.database(folder) as target:
            table = None
            for ids, vectors in rest:
                rows = database.open_table(self.collection).search().limit(len(ids)).offset(done).to_arrow()
                _check_ids(ids, dict.fromkeys(map(str, rows[_ID].to_pylist())), self.collection)
                flat = pa.array(finite_rows(vectors).astype(np.float32).ravel())
                column = pa.FixedSizeListArray.from_arrays(flat, dim)
                rows = rows.set_column(rows.schema.get_field_index(_LANCE_VECTOR), _LANCE_VECTOR, column)
                if table is None:
                    table = target.create_table(self.collection, rows)
                else:
                    table.add(rows)
                done += len(ids)
            _check_all(done, database.open_table(self.collection).count_rows(), self.collection)
        return done


def _check_ids(ids: list[str], found: Iterable[str], name: str) -> None:
    missing = set(ids) - set(found)
    if missing:
        raise InputError(f"{name} has no item {min(missing)!r}; it changed while it was converted: start again")


def _check_all(done: int, expected: int, name: str) -> None:
    if done != expected:
        raise InputError(
            f"{name} has {expected:,} items, of which {done:,} were converted: ids are repeated, or it changed"
        )


def open_folder(path: Path) -> QdrantStore | LanceStore | None:
    """Return the store in a folder, named as FOLDER or FOLDER#COLLECTION; None if the path names no folder."""
    before, mark, name = str(path).rpartition("#")
    folder, collection = (path, None) if path.exists() or not mark else (Path(before), name)
    if not folder.is_dir():
        return None
    if any(folder.glob("*.lance")):
        return LanceStore(folder, collection)
    if (folder / "meta.json").is_file():
        return QdrantStore(folder, collection)
    raise InputError(f"{folder} holds no collection of Qdrant and no table of LanceDB, expected one of them, or a file")
