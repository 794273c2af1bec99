"""The pictures of the explorer: all are there, and none is large. What they show is for people to look at."""

from __future__ import annotations

from tools.screenshots import FOLDER, MOST_BYTES, PICTURES


def test_exactly_the_listed_pictures_are_there_and_small() -> None:
    paths = {path.stem: path for path in FOLDER.glob("explore-*.png")}
    assert set(paths) == {f"explore-{picture.name}" for picture in PICTURES}
    for path in paths.values():
        assert path.read_bytes().startswith(b"\x89PNG"), path
        assert path.stat().st_size <= MOST_BYTES, path
