"""How sure a translation is: a logistic model of what the search for it showed.

A pair looks surer the further its CSLS is ahead of the other candidates' and the nearer the two words are to being
each other's best. The weights of these features were fitted by `benchmarks/confidence.py` to the training
split of MUSE over several pairs of spaces; docs/accuracy.md says how well they hold on words and spaces they were not
fitted to. A confidence is the chance that a dictionary like MUSE has the pair, so it counts synonyms that are not
listed as wrong.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

# Candidates of each word that are looked at, in both directions.
CANDIDATES = 10
_LEAST = 0.01
# By kind of map: constant, each other's best, log(1 + rank of the source word among the best of the target), lead of
# the best candidate over the mean of the others, logarithm of that lead.
WEIGHTS = {
    "reweighted": (1.669, 0.3958, -0.3418, 2.6898, 1.5319),
    "orthogonal": (2.4018, 0.4891, -0.1876, 2.494, 1.9474),
}


def features(scores: npt.ArrayLike, back_ranks: npt.ArrayLike) -> Floats:
    """What the model looks at, (n, 5).

    scores: (n, k) CSLS of the k best candidates of each word, best first; back_ranks: (n,) how many source words are
    better for the first candidate than the word itself, `CANDIDATES` where that are as many or more.
    """
    found, ranks = np.asarray(scores, dtype=np.float64), np.asarray(back_ranks, dtype=np.float64)
    best, others = found[:, 0], found[:, 1:]
    # The only candidate there is leads by nothing.
    lead = best - others.mean(axis=1) if others.shape[1] else np.zeros_like(best)
    return np.column_stack([np.ones_like(best), ranks == 0, np.log1p(ranks), lead, np.log(lead + _LEAST)])


def confidence(scores: npt.ArrayLike, back_ranks: npt.ArrayLike, kind: str) -> Floats:
    """The chance, (n,), that the first candidate of each word is right. kind: of the map; others as for `features`."""
    chance: Floats = 1.0 / (1.0 + np.exp(-(features(scores, back_ranks) @ np.asarray(WEIGHTS[kind]))))
    return chance
