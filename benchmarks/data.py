"""The pair of spaces that the benchmarks of whole stages work on: real vectors where they are at hand, else generated.

The real ones are novels en-es, read as `benchmarks.tasks` reads them ($QWP_BENCH or ../shared/bench).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.common import Floats, clustered_space
from benchmarks.tasks import BENCH, novels
from qwp import Embeddings, Lexicon, arrays
from qwp.spaces import normalization

Array = npt.NDArray[Any]

_NOISE = 0.3


@dataclass(frozen=True)
class SpacePair:
    """Two spaces and the gold dictionary that scores a map. rotation: (d, d) the true map, for generated ones."""

    name: str
    src: Embeddings
    tgt: Embeddings
    gold: Lexicon
    rotation: Floats | None = None

    def normalised(self) -> tuple[Array, Array]:
        """Source (n, d) and target (m, d) as the method sees them: unit rows, centred, unit rows again."""
        x, y = (arrays.to_numpy(normalization.fit(side.vectors)[1]) for side in (self.src, self.tgt))
        return x, y


def space_pair(n: int = 20_000, d: int = 300, *, generated: bool = False) -> SpacePair:
    """At most n words of novels en-es (d is theirs), or n generated ones of dimension d where those are absent."""
    task = replace(novels("en-es"), max_vocab=n)
    if generated or not (BENCH / task.src).is_file():
        return generated_pair(n, d)
    src, tgt, gold = task.load()
    return SpacePair(task.name, src, tgt, gold)


def generated_pair(n: int, d: int, seed: int = 0, noise: float = _NOISE) -> SpacePair:
    """A space with structure (n, d) and its rotated, noisy, shuffled copy; noise is relative to the rows."""
    rng = np.random.default_rng(seed + 1)
    x = clustered_space(n, d, seed)
    q, r = np.linalg.qr(rng.standard_normal((d, d)))
    rotation = (q * np.sign(np.diag(r))).astype(np.float32)
    order = rng.permutation(n)
    y = x[order] @ rotation + noise / d**0.5 * rng.standard_normal((n, d)).astype(np.float32)
    y /= np.linalg.norm(y, axis=1, keepdims=True)
    src = Embeddings([f"s{i}" for i in range(n)], x)
    tgt = Embeddings([f"t{i}" for i in order], y)
    gold = Lexicon(tuple((f"s{i}", f"t{i}") for i in range(n)))
    return SpacePair("generated", src, tgt, gold, rotation)
