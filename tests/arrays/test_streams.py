"""Random streams."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from qwp import arrays
from qwp.arrays import Stream
from tests.libraries import assert_same


def test_the_numbers_of_the_streams_never_change() -> None:
    # Another number would change the results of all seeds.
    assert {stream.name: stream.value for stream in Stream} == {
        "BANK": 1,
        "RANDOM_BATCH": 2,
        "PAIRING": 3,
        "TRIAL": 7,
        "ROTATION": 9,
        "DROPOUT": 11,
        "JOINT_EPOCH": 12,
        "ADVERSARIAL": 13,
        "ORDER": 15,
        "JOINT_TURN": 16,
        "START_WORDS": 17,
        "NULL_RUNS": 18,
        "COUNTERPARTS": 19,
        "MIGRATION": 20,
        "DENSITY_START": 21,
        "DENSITY_SAMPLE": 22,
        "PERMUTATION": 23,
        "SEARCH": 24,
        "NEIGHBOUR_MEANS": 25,
        "NULL_DATA": 26,
        "APPROXIMATE": 0x666169,
        "BOOTSTRAP": 0x6576616C,
        "SKETCH": 0x706C616E,
        "SENTENCES": 0x73656E74,
    }


def test_rng_is_that_of_numpy_with_the_stream_and_the_key_as_spawn_key() -> None:
    expected = np.random.default_rng(np.random.SeedSequence(entropy=5, spawn_key=(3, 1, 4)))
    found = arrays.rng(5, Stream.PAIRING, 1, 4)
    assert_same(found.integers(2**63, size=8), expected.integers(2**63, size=8))


def test_rng_is_reproducible_and_its_streams_differ() -> None:
    keys = [(), (0,), (1,), (0, 0), (0, 1), (1, 0)]
    draws = {
        (seed, stream, key): tuple(arrays.rng(seed, stream, *key).integers(2**63, size=4))
        for seed in (0, 1)
        for stream in Stream
        for key in keys
    }
    assert len(set(draws.values())) == len(draws) == 2 * len(Stream) * len(keys)
    for (seed, stream, key), expected in draws.items():
        assert tuple(arrays.rng(seed, stream, *key).integers(2**63, size=4)) == expected


def test_rng_streams_are_uncorrelated() -> None:
    streams = (Stream.BANK, Stream.RANDOM_BATCH)
    draws = np.stack([arrays.rng(5, stream, step).standard_normal(4000) for stream in streams for step in range(4)])
    correlation = np.corrcoef(draws) - np.eye(len(draws))
    assert np.abs(correlation).max() < 5 / np.sqrt(4000)


def test_poisson_numbers_are_the_same_in_every_library(library: Any) -> None:
    like = library(np.zeros(1))
    found = arrays.poisson(arrays.rng(1, Stream.BANK), 2.5, (200, 100), like)
    assert found.dtype == like.dtype
    assert_same(arrays.to_numpy(found), arrays.rng(1, Stream.BANK).poisson(2.5, (200, 100)))


def test_a_stream_of_torch_follows_from_that_of_numpy() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    like = torch.zeros(1)
    one, two, other = (
        torch.rand(5, generator=arrays.torch_generator(arrays.rng(1, Stream.ADVERSARIAL, key), like))
        for key in (0, 0, 1)
    )
    assert torch.equal(one, two)
    assert not torch.equal(one, other)
