"""Did the alignment find something real? Judged without any dictionary.

A map refitted on its own translations always looks consistent with itself, and so does a random rotation treated the
same way. So the map is judged on words it was not refitted on: two plain refinement rounds on every other source word,
then the mean CSLS of the mutual pairs among the remaining ones. The yardstick is a random rotation that went through
the whole refinement of qWP and the same judgement, with few words the best of several. docs/accuracy.md has the ratios
of the two on many runs, real ones and others; half-right maps lie in between, and a ratio near the limit calls for a
look at the translations.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from qwp import arrays
from qwp.arrays import Array, Stream
from qwp.maps.extent import MOST_RESTORED
from qwp.maps.procrustes import Maps
from qwp.maps.refinement import WEIGHTED, RefineSettings, induce_pairs, refine

SUCCEEDED, FAILED, UNDECIDED = "succeeded", "failed", "undecided"

# Above every failure that was measured, below every full success.
RATIO_NEEDED = 1.17
FEWEST_WORDS = 200
MOST_WORDS = 5000
_JUDGEMENT_ROUNDS = 2
# With fewer words than this one random rotation says too little: two get half of the rounds, one of them plain ones
# too, and the best counts.
_FEW_WORDS = 1000
# What the random rotation goes through: all that a fitted map may have gone through.
YARDSTICK = replace(WEIGHTED, refine_words=0, refine_first_words=0, dewhiten=MOST_RESTORED)
# Cheaper, and easier to beat: good enough to compare maps with each other.
QUICK_YARDSTICK = RefineSettings(refine=5, refine_words=0)


@dataclass(frozen=True)
class Agreement:
    """Mutual CSLS pairs: how many, which share of the words, and their mean CSLS."""

    pairs: int
    share: float
    mean_csls: float


@dataclass(frozen=True)
class Quality:
    """Unsupervised figures of a fitted map, and what they mean.

    fitted, random: mutual pairs under the map and under a random rotation. held_out, held_out_random: the same on words
    that took no part in refitting. ratio: held_out.mean_csls / held_out_random.mean_csls. n_words: words judged.
    """

    verdict: str
    explanation: str
    ratio: float
    n_words: int
    fitted: Agreement
    random: Agreement
    held_out: Agreement
    held_out_random: Agreement

    @property
    def failed(self) -> bool:
        """True when the figures say that the alignment is not real."""
        return self.verdict == FAILED

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Quality:
        """The inverse of `to_dict`."""
        agreements = ("fitted", "random", "held_out", "held_out_random")
        fields: dict[str, Any] = {k: Agreement(**v) if k in agreements else v for k, v in values.items()}
        return cls(**fields)


def random_rotation(dim: int, seed: int, like: Array) -> Array:
    """A uniformly random orthogonal matrix (dim, dim)."""
    return arrays.asarray(_host_rotation(dim, seed), like)


@lru_cache(maxsize=2)
def _host_rotation(dim: int, seed: int) -> np.ndarray:
    gaussian = arrays.rng(seed, Stream.ROTATION).standard_normal((dim, dim))
    q, r = np.linalg.qr(gaussian)
    return np.asarray(q * np.sign(np.diag(r)))


def agreement(x: Array, y: Array, maps: Maps, csls_k: int) -> Agreement:
    """Mutual pairs of x (n, d) and y (m, d) under the maps."""
    xp = arrays.namespace(x)
    pairs = induce_pairs(x, y, maps, csls_k=csls_k)
    mean = float(xp.mean(pairs.scores)) if len(pairs) else 0.0
    return Agreement(len(pairs), len(pairs) / min(x.shape[0], y.shape[0]), mean)


def held_out(x: Array, y: Array, maps: Maps, csls_k: int) -> Agreement:
    """Mutual pairs of every other word of x (n, d) with y (m, d), after a refit on the remaining ones; n >= 2."""
    rounds = RefineSettings(refine=_JUDGEMENT_ROUNDS, csls_k=csls_k, refine_words=0)
    return agreement(x[1::2, :], y, refine(x[::2, :], y, maps, rounds), csls_k)


def times_random(found: Agreement, random: Agreement) -> float:
    """How many times the mean CSLS of a random rotation is reached; zero where that says nothing."""
    ratio = found.mean_csls / random.mean_csls if random.mean_csls > 0 else 0.0
    return ratio if math.isfinite(ratio) else 0.0


def judge(
    x: Array, y: Array, maps: Maps, *, seed: int = 0, csls_k: int = 10, yardstick: RefineSettings = YARDSTICK
) -> Quality:
    """The verdict on maps. x: (n, d), y: (m, d) normalised rows, most frequent first.

    yardstick: the refinement of the random rotation. The words held out are always judged under an orthogonal map that
    was refitted on the others, so that every kind of map is measured alike.
    """
    n = min(x.shape[0], y.shape[0], MOST_WORDS)
    x, y = x[:n, :], y[:n, :]
    rotation = Maps(random_rotation(x.shape[1], seed, x))
    tried = [(rotation, yardstick)]
    if n < FEWEST_WORDS:
        tried = [(rotation, QUICK_YARDSTICK)]
    elif n < _FEW_WORDS:
        half = replace(yardstick, refine=(yardstick.refine + 1) // 2)
        other = Maps(random_rotation(x.shape[1], seed + 1, x))
        tried = [(rotation, half), (other, half), (rotation, QUICK_YARDSTICK)]
    lost = [refine(x, y, start, replace(rounds, csls_k=csls_k)) for start, rounds in tried]
    fitted, random = agreement(x, y, maps, csls_k), agreement(x, y, rotation, csls_k)
    if n < 2:
        return _decide(n, fitted, random, fitted, random)
    held, *held_random = [held_out(x, y, start, csls_k) for start in (maps, *lost)]
    return _decide(n, fitted, random, held, max(held_random, key=lambda found: found.mean_csls))


def _decide(n: int, fitted: Agreement, random: Agreement, held: Agreement, held_random: Agreement) -> Quality:
    ratio = times_random(held, held_random)
    figures = (
        f"on words it was not refitted on, mutual translation pairs reach a mean CSLS of {held.mean_csls:.3f}, "
        f"{ratio:.2f} times that of a random rotation ({held_random.mean_csls:.3f})"
    )
    if n < FEWEST_WORDS:
        verdict = UNDECIDED
        text = f"Undecided: {n} words are too few to tell a real alignment from chance ({FEWEST_WORDS} needed)."
    elif ratio >= RATIO_NEEDED:
        verdict, text = SUCCEEDED, f"The alignment is real: {figures}; {RATIO_NEEDED:g} is needed."
    else:
        verdict = FAILED
        text = (
            f"The alignment failed: {figures}, where {RATIO_NEEDED:g} is needed. Do not trust the translations. "
            "Try another start (identical strings, a seed lexicon), more words, or vectors from more similar text."
        )
    return Quality(verdict, text, ratio, n, fitted, random, held, held_random)
