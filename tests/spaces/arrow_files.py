"""Parquet and Arrow tables as other programs write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)
WORDS = ["a", "b", "ç", "d"]
LISTS = ROWS.tolist()


def write_table(folder: Path, name: str, **columns: Any) -> Path:
    """Write a Parquet or Feather file, by its suffix, with the given columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import feather

    table = pa.table(columns)
    path = folder / name
    if name.endswith(".parquet"):
        pq.write_table(table, path)
    else:
        feather.write_feather(table, path)
    return path
