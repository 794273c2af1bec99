"""Small files crafted to exhaust memory or time, each read in a process of its own.

``python -m fuzz.crafted`` writes each file, reads it, and prints what that took; ``--only NAME`` reads one of them. A
finding is an exception that is no QwpError, more than MEMORY bytes of the reader and its child together beyond what the
reader starts with, or more than SECONDS of processor time.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

SECONDS, MEMORY = 5.0, 1 << 30
_PAGE = 4096

# --------------------------------------------------------------------------- fastText


def fasttext(words: Sequence[bytes], dim: int, max_chars: int) -> bytes:
    """Return a model with one bucket of n-grams."""
    from qwp.spaces.io.fasttext import MAGIC, ModelSettings

    settings = ModelSettings(dim, 5, 5, 1, 5, 1, 2, 2, 1, 1, max_chars, 100, 1e-4)
    dictionary = b"".join(word + b"\0" + struct.pack("<qb", 7, 0) for word in words)
    counts = struct.pack("<3i2q", len(words), len(words), 0, 99, -1)
    n = len(words) + 1
    matrices = struct.pack("<?2q", False, n, dim) + bytes(4 * n * dim) + struct.pack("<?2q", False, 0, dim)
    return MAGIC + struct.pack("<i", 12) + settings.packed() + counts + dictionary + matrices


def _long_word(path: Path) -> None:
    path.write_bytes(fasttext([b"a" * 60_000], 8, 6))


def _long_ngrams(path: Path) -> None:
    path.write_bytes(fasttext([b"%d" % i + b"a" * 1000 for i in range(60)], 8, 1 << 30))


def _many_words(path: Path) -> None:
    path.write_bytes(fasttext([b"%06d" % i + b"a" * 600 for i in range(5_000)], 1, 6))


# --------------------------------------------------------------------------- Parquet and Arrow


def _constant_table(rows: int, dim: int) -> Any:
    import pyarrow as pa

    words = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, "i4")), pa.array(["w"]))
    numbers = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(rows * dim, "f4")), dim)
    return pa.table({"word": words, "vector": numbers})


def _parquet(path: Path, table: Any, times: int) -> None:
    import pyarrow.parquet as pq

    with pq.ParquetWriter(path, table.schema, compression="zstd") as writer:
        for _ in range(times):
            writer.write_table(table)


def _arrow(path: Path, table: Any, times: int) -> None:
    import pyarrow as pa

    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema, options=options) as writer:
        for _ in range(times):
            writer.write_table(table)


def _long_words_table() -> Any:
    """Return rows that repeat a few words of 60,000 characters."""
    import pyarrow as pa

    rows = 200_000
    words = pa.array([f"{i:06d}" + "x" * 60_000 for i in range(64)])
    column = pa.DictionaryArray.from_arrays(pa.array(np.arange(rows, dtype="i4") % 64), words)
    return pa.table({"word": column, "number": pa.array(np.arange(rows, dtype="f4"))})


# --------------------------------------------------------------------------- FAISS


def _flat_index() -> bytes:
    import faiss

    index = faiss.IndexFlatL2(4)
    index.add(np.zeros((1000, 4), "f4"))
    return bytes(faiss.serialize_index(index).tobytes())


def _large_head(path: Path) -> None:
    content = _flat_index()
    path.write_bytes(content[:4] + struct.pack("<iq", 1 << 17, 1 << 20) + content[16:])


def _inverted_index() -> bytes:
    import faiss

    index = faiss.index_factory(64, "IVF4,PQ8x4")
    rows = np.random.default_rng(0).normal(size=(700, 64)).astype("f4")
    index.train(rows)
    index.add(rows)
    return bytes(faiss.serialize_index(index).tobytes())


def _wide_index(path: Path) -> None:
    content = _inverted_index()
    path.write_bytes(content[:4] + struct.pack("<i", 200_000) + content[8:])


def _many_lists(path: Path) -> None:
    content = bytearray(_inverted_index())
    at = content.find(struct.pack("<q", 4), 30)
    content[at : at + 8] = struct.pack("<q", 1 << 29)
    path.write_bytes(content)


def _short_codes(path: Path) -> None:
    """Write vectors of 512 numbers that are stored in one byte each."""
    import faiss

    index = faiss.IndexPQ(512, 1, 4)
    index.train(np.random.default_rng(0).normal(size=(64, 512)).astype("f4"))
    index.add_sa_codes(np.zeros((1_000_000, 1), "u1"))
    faiss.write_index(index, str(path))


# --------------------------------------------------------------------------- DuckDB


def _duckdb(statement: str) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        import duckdb

        with duckdb.connect(str(path)) as connection:
            connection.execute(statement)

    return make


# --------------------------------------------------------------------------- SQLite

_ENDLESS = (
    "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) SELECT i AS word, zeroblob(4) AS vector FROM r"
)


def _sqlite(*statements: str) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        with closing(sqlite3.connect(path)) as connection, connection:
            for statement in statements:
                connection.execute(statement)

    return make


def _endless_pages(path: Path, rows: int = 100, size: int = 20_000, rounds: int = 240) -> None:
    """Write vectors whose last overflow page points to their first, with a length of `rounds` cycles."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA page_size = {_PAGE}")
        connection.execute("CREATE TABLE items (word TEXT, vector BLOB)")
        connection.executemany("INSERT INTO items VALUES (?, ?)", [(f"w{i:03d}", bytes(size)) for i in range(rows)])
        connection.commit()
    content = bytearray(path.read_bytes())
    for begin in range(_PAGE, len(content), _PAGE):
        cells = struct.unpack_from(">H", content, begin + 3)[0]
        if content[begin] == 13 and cells <= 7:  # a leaf; the other pages hold zeros
            for cell in range(cells):
                _lengthen(content, begin + struct.unpack_from(">H", content, begin + 8 + 2 * cell)[0], rounds)
    path.write_bytes(content)


def _lengthen(content: bytearray, at: int, rounds: int) -> None:
    """Extend the payload of a cell by `rounds` cycles; the numbers of the header keep their size."""
    usable = _PAGE - 4
    payload, after = _varint(content, at)
    _, body = _varint(content, after)
    content[at:after] = _packed(payload + usable * rounds)
    _, first = _varint(content, body)
    _, second = _varint(content, first)
    kind, end = _varint(content, second)
    content[second:end] = _packed(kind + 2 * usable * rounds)
    least = (_PAGE - 12) * 32 // 255 - 23
    local = least + (payload - least) % usable
    (page,) = struct.unpack_from(">I", content, body + (local if local <= _PAGE - 35 else least))
    last = page
    while following := struct.unpack_from(">I", content, (last - 1) * _PAGE)[0]:
        last = following
    struct.pack_into(">I", content, (last - 1) * _PAGE, page)


def _varint(content: bytearray, at: int) -> tuple[int, int]:
    value = 0
    while True:
        value = value << 7 | content[at] & 0x7F
        at += 1
        if not content[at - 1] & 0x80:
            return value, at


def _packed(value: int) -> bytes:
    parts = [value & 0x7F]
    while value := value >> 7:
        parts.append(value & 0x7F | 0x80)
    return bytes(reversed(parts))


# --------------------------------------------------------------------------- all files

Maker = Callable[[Path], None]
_DUCK_ITEMS = "CREATE TABLE items AS SELECT 'w' || i AS word,"
FILES: dict[str, Maker] = {
    "long-word.fasttext": _long_word,
    "long-ngrams.fasttext": _long_ngrams,
    "many-words.fasttext": _many_words,
    "constant.parquet": lambda path: _parquet(path, _constant_table(100_000, 100), 3),
    "words.parquet": lambda path: _parquet(path, _long_words_table(), 1),
    "constant.arrow": lambda path: _arrow(path, _constant_table(1_000_000, 100), 1),
    "words.arrow": lambda path: _arrow(path, _long_words_table(), 2),
    "head.faiss": _large_head,
    "wide.faiss": _wide_index,
    "lists.faiss": _many_lists,
    "codes.faiss": _short_codes,
    "generated.duckdb": _duckdb(
        "CREATE TABLE items (word VARCHAR, a INTEGER, vector FLOAT[1] GENERATED ALWAYS AS ([a]::FLOAT[1]))"
    ),
    "view.duckdb": _duckdb(
        "CREATE VIEW items AS SELECT 'w' || i AS word, [i]::FLOAT[1] AS vector FROM range(1000000000000) r(i)"
    ),
    "long.duckdb": _duckdb("CREATE TABLE items AS SELECT 'w' AS word, [1]::FLOAT[1] AS vector FROM range(2000000)"),
    "wide.duckdb": _duckdb(f"{_DUCK_ITEMS} list_resize([0], 500)::FLOAT[500] AS vector FROM range(70000) r(i)"),
    "view.db": _sqlite(f"CREATE VIEW items AS {_ENDLESS}"),
    "table-view.db": _sqlite(
        "CREATE TABLE items (word TEXT, vector BLOB)",
        "CREATE TABLE other (word TEXT, vector BLOB)",
        "PRAGMA writable_schema = ON",
        f"UPDATE sqlite_master SET sql = 'CREATE VIEW items AS {_ENDLESS}', type = 'view', name = 'items' "
        "WHERE name = 'other'",
        "UPDATE sqlite_master SET sql = 'CREATE TABLE other (word TEXT, vector BLOB)' WHERE type = 'table'",
    ),
    "generated.db": _sqlite(
        "CREATE TABLE items (word TEXT, vector BLOB GENERATED ALWAYS AS (zeroblob(100000000)) VIRTUAL)",
        "INSERT INTO items (word) WITH r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r LIMIT 1000) SELECT i FROM r",
    ),
    "pages.db": _endless_pages,
}
_LIBRARIES = {"parquet": "pyarrow", "arrow": "pyarrow", "faiss": "faiss", "duckdb": "duckdb"}


def names() -> list[str]:
    """Return the files whose libraries are installed."""
    return [name for name in FILES if find_spec(_LIBRARIES.get(name.rpartition(".")[2], "sqlite3"))]


def measure(path: Path) -> dict[str, Any]:
    """Read a file in this process. Returns the outcome, processor seconds, and bytes of both processes."""
    from qwp.errors import QwpError
    from qwp.spaces import io

    before = _peak(resource.RUSAGE_SELF)
    try:
        what = repr(io.load(path))
    except QwpError as error:
        what = f"{type(error).__name__}: {error}"
    taken = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    grown = _peak(resource.RUSAGE_SELF) - before + _peak(resource.RUSAGE_CHILDREN)
    return {"what": what, "seconds": sum(each.ru_utime + each.ru_stime for each in taken), "bytes": grown}


def _peak(who: int) -> int:
    return resource.getrusage(who).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def run(name: str, folder: Path) -> tuple[str, str | None]:
    """Write a file and read it in another process. Returns the measurement and what is wrong with it."""
    path = folder / name
    FILES[name](path)
    program = "import json, sys; from fuzz.crafted import *; print(json.dumps(measure(Path(sys.argv[1]))))"
    ran = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=False)
    size = path.stat().st_size
    if ran.returncode != 0:
        return f"{size:,} bytes", ran.stderr[-500:] or f"exit code {ran.returncode}"
    found = json.loads(ran.stdout)
    shown = f"{size:,} bytes: {found['seconds']:.1f} s, {found['bytes'] / 1e6:,.0f} MB, {found['what'][:100]}"
    wrong = "takes too long" if found["seconds"] > SECONDS else None
    return shown, "takes too much memory" if found["bytes"] > MEMORY else wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Returns 1 if there is a finding."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.crafted", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seed", type=int, default=0, help="taken, and of no use: nothing here is random")
    parser.add_argument("--only", choices=names(), help="make and read one of them")
    chosen = parser.parse_args(arguments)
    findings, begin = 0, time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        for name in [chosen.only] if chosen.only else names():
            shown, wrong = run(name, Path(folder))
            findings += wrong is not None
            print(f"{name}: {shown}" + (f"\n  FINDING: {wrong}" if wrong else ""))
    print(f"{findings} findings, {time.perf_counter() - begin:.0f} s")
    return 1 if findings else 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
