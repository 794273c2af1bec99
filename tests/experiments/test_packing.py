"""Packing: numbers come back; ranks keep their places."""

from __future__ import annotations

import numpy as np

from qwp.experiments.packing import pack, packed_ranks, unpack, unpacked_ranks
from qwp.judging.evaluation import QueryRanks


def test_numbers_come_back() -> None:
    numbers = [0, 1, 255, 65_536, 2**32 - 1]
    assert unpack(pack(numbers)).tolist() == numbers
    assert unpack(pack([])).tolist() == []


def test_many_small_numbers_take_little_room() -> None:
    assert len(pack(np.ones(10_000))) < 100


def test_ranks_of_every_method_come_back() -> None:
    golds = np.array([2, 1])
    ranks = {"nn": QueryRanks(golds, np.array([1, 3, 7])), "csls": QueryRanks(golds, np.array([1, 2, 9]))}
    packed = packed_ranks(ranks)
    assert all(isinstance(text, str) for text in packed.values())
    found = unpacked_ranks(packed, "csls")
    assert (found.golds.tolist(), found.ranks.tolist()) == ([2, 1], [1, 2, 9])
