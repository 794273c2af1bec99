from __future__ import annotations

from pathlib import Path

import pytest

from qwp import Alignment
from qwp.errors import InputError
from qwp.explore import realign
from qwp.explore.opened import Explored
from qwp.explore.realign import next_folder, realigned, settings
from tests.conftest import QUICK


def test_too_few_pairs_are_refused(explored: Explored) -> None:
    with pytest.raises(InputError, match="0 pairs are marked as right, expected at least 20 to align with: mark some"):
        realigned(explored)
    explored.corrections.set([("s0", "t0"), ("not", "there")], "right")
    with pytest.raises(InputError, match="1 pairs are marked as right"):
        realigned(explored)


def test_the_settings_are_those_of_before_with_the_pairs_as_start_and_anchors(explored: Explored) -> None:
    found = settings(explored.alignment)
    assert found["start"] == "lexicon"
    assert found["anchor_weight"] == realign.ANCHOR_WEIGHT
    assert found["coreset_size"] == QUICK["coreset_size"]


def test_it_aligns_again(explored: Explored) -> None:
    explored.corrections.set([(f"s{i}", f"t{i}") for i in range(40)], "right")
    stages: list[str] = []
    made = realigned(explored, lambda event: stages.append(event.stage))
    assert isinstance(made, Alignment)
    assert made.provenance.config["start"] == "lexicon"
    assert made.provenance.supervision["lexicon"] is not None
    assert {"loop", "refine", "verdict"} <= set(stages)


def test_folders_are_counted(tmp_path: Path) -> None:
    assert next_folder(tmp_path / "a").name == "a-corrected"
    (tmp_path / "a-corrected").mkdir()
    assert next_folder(tmp_path / "a").name == "a-corrected-2"
