from __future__ import annotations

import json
from pathlib import Path

import pytest

from qwp.downloads.parts import Origin, opened_part
from qwp.errors import InputError

ONE = Origin("http://x/y", '"a"', "Mon", 100)


def test_what_came_is_there_again(tmp_path: Path) -> None:
    target = tmp_path / "x.vec"
    with opened_part(target) as part:
        part.begin(ONE)
        part.append(b"abc")
    with opened_part(target) as part:
        assert (part.origin, part.size, b"".join(part.pieces())) == (ONE, 3, b"abc")
        part.append(b"de")
        assert b"".join(part.pieces()) == b"abcde"
        part.begin(ONE.sized(7))
        assert (part.size, part.origin) == (0, ONE.sized(7))
    assert list(tmp_path.iterdir()) == []  # nothing came: nothing is left


@pytest.mark.parametrize(
    "change", [{"url": 1}, {"etag": 1}, {"length": "x"}, {"length": -1}, {"length": True}, {"more": 1}]
)
def test_notes_that_make_no_sense(tmp_path: Path, change: dict[str, object]) -> None:
    target = tmp_path / "x.vec"
    with opened_part(target) as part:
        part.begin(ONE)
        part.append(b"abc")
    notes = tmp_path / "x.vec.part.json"
    notes.write_text(json.dumps({**json.loads(notes.read_text()), **change}))
    with opened_part(target) as part:
        assert (part.origin, part.size) == (None, 0)


def test_one_at_a_time(tmp_path: Path) -> None:
    target = tmp_path / "x.vec"
    with opened_part(target), pytest.raises(InputError, match="another process"), opened_part(target):
        pass


def test_what_tells_files_apart() -> None:
    assert ONE.validator == '"a"'
    assert Origin("u", 'W/"a"', "Mon", None).validator == "Mon"
    assert Origin("u", 'W/"a"', None, None).validator is None
    assert ONE.is_same(Origin("http://x/y", None, None, None))
    assert not ONE.is_same(ONE.sized(101))
    assert not ONE.is_same(Origin("http://x/y", '"b"', "Mon", 100))
