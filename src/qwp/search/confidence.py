"""How sure a translation is: a logistic model of what the search for it showed.

A pair looks surer the further its CSLS is ahead of the other candidates', in both directions, measured by the leads of
other words of the same alignment; and the surer, the better the alignment is as a whole, which shows in how many of its
translations a fresh search finds again (`qwp.judging.estimate`). The weights were fitted by `benchmarks/confidence.py`
to the training split of MUSE over many alignments, good and weak ones; docs/judgement.md says how well they hold on
spaces they were not fitted to. A confidence is the chance that a dictionary like MUSE has the pair, so it counts
synonyms that are not listed as wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

# Candidates of each word that are looked at, in both directions.
CANDIDATES = 10
# The confidences of an alignment that is not real are this share of what they would be.
NOT_REAL = 0.02
# Constant; each other's best; log(1 + rank of the source word among the best of the target); lead of the candidate over
# the mean of the others and, again, where it is below the usual; lead of the word over the other source words,
# likewise; log odds of the agreement with a fresh search, and their square; log(dimensions / 300).
WEIGHTS = (-0.1026, -0.0591, -0.323, 1.106, 1.3113, 0.0094, 0.2597, 0.9138, -0.031, 0.5115)
_BOUNDS = (-3.0, 6.0)
_LEAST_SHARE = 0.004


@dataclass(frozen=True)
class Scale:
    """What the confidences of one alignment are measured by.

    agreement: the share of its mutual translations that a fresh search finds again. lead, back_lead: the usual leads
    of best candidates over the others, from the source and from the target; the spreads: between their quartiles.
    real: whether the alignment is not a failure.
    """

    agreement: float
    dimensions: int
    lead: float
    lead_spread: float
    back_lead: float
    back_lead_spread: float
    real: bool = True


@dataclass(frozen=True)
class Found:
    """What the search for the translations of n words showed.

    scores: (n, k) CSLS of the k best candidates of each word, best first. back_ranks: (n,) how many source words are
    better for the first candidate than the word itself, `CANDIDATES` where that are as many or more. back_others: (n,)
    the best CSLS that the first candidate has with another source word.
    """

    scores: npt.ArrayLike
    back_ranks: npt.ArrayLike
    back_others: npt.ArrayLike

    def leads(self) -> tuple[Floats, Floats]:
        """The lead of the best candidate over the mean of the others, and that of the word over other words, (n,)."""
        scores = np.asarray(self.scores, dtype=np.float64)
        best, others = scores[:, 0], scores[:, 1:]
        back = np.asarray(self.back_others, dtype=np.float64)
        # The only candidate there is leads by nothing.
        forward = best - others.mean(axis=1) if others.shape[1] else np.zeros_like(best)
        return forward, np.where(np.isfinite(back), best - back, 0.0)


def quartiles(values: Floats) -> tuple[float, float]:
    """The middle of values (n,) and the spread between their quartiles."""
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
    return float(middle), float(high - low)


def features(found: Found, scale: Scale) -> Floats:
    """What the model looks at, (n, 10)."""
    ranks = np.asarray(found.back_ranks, dtype=np.float64)
    forward, backward = found.leads()
    lead = _measured(forward, scale.lead, scale.lead_spread)
    back_lead = _measured(backward, scale.back_lead, scale.back_lead_spread)
    one = np.ones_like(lead)
    return np.column_stack(
        [
            one,
            ranks == 0,
            np.log1p(ranks),
            lead,
            np.minimum(lead, 0.0),
            back_lead,
            np.minimum(back_lead, 0.0),
            one * log_odds(scale.agreement),
            one * log_odds(scale.agreement) ** 2,
            one * np.log(scale.dimensions / 300),
        ]
    )


def _measured(leads: Floats, usual: float, spread: float) -> Floats:
    return np.clip((leads - usual) / (spread + 1e-6), *_BOUNDS)


def log_odds(share: float) -> float:
    """Of a share that is kept from none and from all."""
    inside = min(max(share, _LEAST_SHARE), 1.0 - _LEAST_SHARE)
    return float(np.log(inside / (1.0 - inside)))


def chances(odds: Floats) -> Floats:
    """The logistic function."""
    return np.asarray(1.0 / (1.0 + np.exp(-odds)))


def confidence(found: Found, scale: Scale) -> Floats:
    """The chance, (n,), that the first candidate of each word is right."""
    chance = chances(features(found, scale) @ np.asarray(WEIGHTS))
    return chance if scale.real else NOT_REAL * chance
