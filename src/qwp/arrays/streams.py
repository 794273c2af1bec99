"""Independent random streams, one for each purpose."""

from __future__ import annotations

from enum import IntEnum, unique
from typing import Any

import numpy as np

from qwp.arrays.namespaces import Array, Tensor, asarray, device, is_cuda


@unique
class Stream(IntEnum):
    """The purpose of a stream, which is the first number of its key."""

    BANK = 1
    RANDOM_BATCH = 2
    PAIRING = 3
    TRIAL = 7
    ROTATION = 9
    DROPOUT = 11
    JOINT_EPOCH = 12
    ADVERSARIAL = 13
    ORDER = 15
    JOINT_TURN = 16
    START_WORDS = 17
    NULL_RUNS = 18
    COUNTERPARTS = 19
    MIGRATION = 20
    DENSITY_START = 21
    DENSITY_SAMPLE = 22
    PERMUTATION = 23
    SEARCH = 24
    NEIGHBOUR_MEANS = 25
    NULL_DATA = 26
    APPROXIMATE = 0x666169
    BOOTSTRAP = 0x6576616C
    SKETCH = 0x706C616E
    SENTENCES = 0x73656E74


def rng(seed: int, stream: Stream, *key: int) -> np.random.Generator:
    """Return the independent random stream of a seed, a purpose and a key.

    Every stage and step has its own key, so its draws do not depend on those of others. So an interrupted run continues
    to the same result.
    """
    return np.random.default_rng(np.random.SeedSequence(entropy=seed, spawn_key=(int(stream), *key)))


def torch_generator(rng: np.random.Generator, like: Tensor) -> Any:
    """Return a torch generator on the device of a tensor, seeded by `rng`."""
    import torch

    return torch.Generator(like.device).manual_seed(int(rng.integers(2**63)))


def poisson(rng: np.random.Generator, mean: float, shape: tuple[int, ...], like: Array) -> Array:
    """Return Poisson numbers as floating-point numbers of the library and device of `like`.

    On a GPU they are drawn on the device by a generator that `rng` seeds.
    """
    if not is_cuda(like):
        return asarray(rng.poisson(mean, shape).astype(np.float64), like)
    import torch

    means = torch.full(shape, mean, dtype=like.dtype, device=device(like))
    return torch.poisson(means, generator=torch_generator(rng, like))
