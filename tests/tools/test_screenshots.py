"""The screenshots of the explorer are complete and small."""

from __future__ import annotations

from tools.screenshots import FOLDER, MOST_BYTES, PICTURES


def test_all_screenshots_exist_and_are_small() -> None:
    paths = {path.stem: path for path in FOLDER.glob("explore-*.png")}
    assert set(paths) == {f"explore-{picture.name}" for picture in PICTURES}
    for path in paths.values():
        assert path.read_bytes().startswith(b"\x89PNG"), path
        assert path.stat().st_size <= MOST_BYTES, path
