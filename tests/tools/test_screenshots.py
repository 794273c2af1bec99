"""The pictures of the explorer: all are there, and none is large. What they show is for people to look at."""

from __future__ import annotations

import pytest

from tools.screenshots import _MOST_BYTES, FOLDER, PICTURES


@pytest.mark.parametrize("name", [picture.name for picture in PICTURES])
def test_the_picture_is_there(name: str) -> None:
    path = FOLDER / f"explore-{name}.png"
    assert path.read_bytes().startswith(b"\x89PNG")
    assert path.stat().st_size <= _MOST_BYTES


def test_no_picture_is_left_over() -> None:
    assert {path.stem for path in FOLDER.glob("explore-*.png")} == {f"explore-{picture.name}" for picture in PICTURES}
