from __future__ import annotations

from pathlib import Path

import pytest

from qwp.explore.atlas import columns, write_atlas
from qwp.explore.opened import Explored
from tests.explore.conftest import nobody


def test_one_row_for_each_word(explored: Explored) -> None:
    found = columns(explored, nobody)
    assert {len(values) for values in found.values()} == {800}
    at = found["word"].index("s0")
    assert found["translation"][at] == "t0"
    assert found["judged"][at] == "right"
    assert found["side"][at] == "src"
    assert 0 <= min(found["x"] + found["y"]) <= max(found["x"] + found["y"]) <= 1


def test_the_file_is_read_by_others(explored: Explored, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    assert write_atlas(explored, tmp_path / "out.parquet", nobody) == 800
    table = parquet.read_table(tmp_path / "out.parquet")
    assert table.column_names[:5] == ["word", "language", "side", "x", "y"]
    assert table["word"][0].as_py() == "s0"
