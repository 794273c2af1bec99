"""How sure a translation is: a logistic model of what the search for it showed.

A pair looks surer the further its CSLS is ahead of the other candidates', in both directions, measured by the leads of
other words of the same alignment, and if two refits on different words prefer it, too (`qwp.judging.estimate`); and the
surer, the better the alignment is as a whole, which shows in how many of its translations the refits agree on. The
weights were fitted by `benchmarks/confidence.py` to the training split of MUSE over many alignments, good and weak
ones; docs/judgement.md says how well they hold on spaces they were not fitted to. A confidence is the chance that a
dictionary like MUSE has the pair, so it counts synonyms that are not listed as wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

# Candidates of each word that are looked at, in both directions.
CANDIDATES = 10
# The confidences of an alignment that is not real are this share of what they would be.
FAILED_FACTOR = 0.02
# Constant; each other's best; log(1 + rank of the source word among the best of the target); lead of the candidate over
# the mean of the others and, again, where it is below the usual; lead of the word over the other source words where it
# is below the usual; log odds of the agreement of two refits; log(dimensions / 300); log(words of the refits / 5,000);
# the log odds times the lead, and times whether the two are each other's best: signs within an alignment say more in a
# good one; whether both refits prefer the pair, whether one of them does, and whether both prefer the same other one.
WEIGHTS = (
    *(-1.3275, -0.0259, -0.3737, 0.9256, 0.9473, 0.1975, 0.8974),
    *(1.0956, -0.3479, 0.2186, 0.2331, 0.6836, 0.4345, 0.2955),
)
_BOUNDS = (-3.0, 6.0)
_LEAST_SHARE = 0.004
# Refits of many words of usual vectors are of so many, in so many dimensions; nothing is known of fewer than the last.
USUAL_WORDS, _USUAL_DIMENSIONS, _FEWEST_WORDS = 5000, 300, 500


@dataclass(frozen=True)
class Scale:
    """What the confidences of one alignment are measured by.

    agreement: the share of its mutual translations that two refits on different words have in common. lead, back_lead:
    the usual leads of best candidates over the others, from the source and from the target; the spreads: between their
    quartiles. real: whether the alignment is not a failure. words: how many of each side the refits are made of.
    """

    agreement: float
    dimensions: int
    lead: float
    lead_spread: float
    back_lead: float
    back_lead_spread: float
    succeeded: bool = True
    words: int = USUAL_WORDS


@dataclass(frozen=True)
class Found:
    """What the search for the translations of n words showed.

    scores: (n, k) CSLS of the k best candidates of each word, best first. back_ranks: (n,) how many source words are
    better for the first candidate than the word itself, `CANDIDATES` where that are as many or more. back_others: (n,)
    the best CSLS that the first candidate has with another source word. preferred: (n, 2) which candidate each of two
    refits on different words prefers, zero for the first (`qwp.judging.estimate`).
    """

    scores: npt.ArrayLike
    back_ranks: npt.ArrayLike
    back_others: npt.ArrayLike
    preferred: npt.ArrayLike

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
    """What the model looks at, (n, 14)."""
    ranks = np.asarray(found.back_ranks, dtype=np.float64)
    forward, backward = found.leads()
    lead = _measured(forward, scale.lead, scale.lead_spread)
    back_lead = _measured(backward, scale.back_lead, scale.back_lead_spread)
    one, mutual = np.ones_like(lead), ranks == 0
    agreement = log_odds(scale.agreement)
    preferred = np.asarray(found.preferred).reshape(-1, 2)
    first, alike = preferred == 0, preferred[:, 0] == preferred[:, 1]
    return np.column_stack(
        [
            one,
            mutual,
            np.log1p(ranks),
            lead,
            np.minimum(lead, 0.0),
            np.minimum(back_lead, 0.0),
            one * agreement,
            one * np.log(scale.dimensions / _USUAL_DIMENSIONS),
            one * np.log(max(scale.words, _FEWEST_WORDS) / USUAL_WORDS),
            lead * agreement,
            mutual * agreement,
            first.all(axis=1),
            first.any(axis=1),
            alike & ~first[:, 0],
        ]
    )


def _measured(leads: Floats, usual: float, spread: float) -> Floats:
    return np.clip((leads - usual) / (spread + 1e-6), *_BOUNDS)


def log_odds(share: float) -> float:
    """Of a share that is kept from none and from all."""
    inside = min(max(share, _LEAST_SHARE), 1.0 - _LEAST_SHARE)
    return float(np.log(inside / (1.0 - inside)))


def logistic(odds: Floats) -> Floats:
    """The logistic function."""
    return np.asarray(1.0 / (1.0 + np.exp(-odds)))


def confidence(found: Found, scale: Scale) -> Floats:
    """The chance, (n,), that the first candidate of each word is right."""
    chance = logistic(features(found, scale) @ np.asarray(WEIGHTS))
    return chance if scale.succeeded else FAILED_FACTOR * chance
