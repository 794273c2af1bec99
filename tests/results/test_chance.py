"""Runs of chance beside a result: found again as they were, and ignored where they are not whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from qwp.judging import runs
from qwp.judging.chance import QUICK, THOROUGH, Agreement, Run
from qwp.results import chance


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    runs.forget()
    yield
    runs.forget()


RUN = Run(np.array([2, 0, 1]), Agreement(7, 0.1 + 0.2, 1 / 3))


def kept(folder: Path) -> None:
    """A run of each effort, in a folder, and known no more."""
    runs.known_of("spaces").update({(QUICK.name, 0): RUN, (THOROUGH.name, 4): RUN})
    folder.mkdir()
    chance.write(folder)
    runs.forget()


@pytest.mark.parametrize("name", ["one", "beside", "not there/yet"])
def test_they_are_found_in_the_folder_and_beside_it(tmp_path: Path, name: str) -> None:
    kept(tmp_path / "one")
    chance.read_beside(tmp_path / name)
    if name == "not there/yet":
        assert runs.known() == {}
        return
    found = runs.known()["spaces"]
    assert set(found) == {(QUICK.name, 0), (THOROUGH.name, 4)}
    assert found[QUICK.name, 0].reached == RUN.reached
    assert np.array_equal(found[QUICK.name, 0].translations, RUN.translations)


def test_what_was_made_here_is_not_replaced(tmp_path: Path) -> None:
    kept(tmp_path / "one")
    own = Run(np.array([0, 1, 2]), Agreement(3, 0.5, 0.5))
    runs.known_of("spaces")[QUICK.name, 0] = own
    chance.read_beside(tmp_path / "one")
    assert runs.known()["spaces"][QUICK.name, 0] is own


def test_nothing_known_is_not_written(tmp_path: Path) -> None:
    chance.write(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_file_counts_for_nothing(tmp_path: Path) -> None:
    kept(tmp_path / "one")
    path = tmp_path / "one" / chance.FILE
    whole = path.read_bytes()
    for damaged in (b"", whole[:-3], whole[:-1] + bytes([whole[-1] ^ 1]), b"{}"):
        path.write_bytes(damaged)
        chance.read_beside(tmp_path / "one")
        assert runs.known() == {}


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    runs.known_of("spaces")[QUICK.name, 0] = RUN
    chance.write(tmp_path / "not there" / "either")
