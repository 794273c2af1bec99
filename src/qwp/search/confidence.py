"""The confidence of a translation: a logistic model of CSLS figures.

The confidence of a pair grows with the lead of its CSLS over other candidates in both directions, relative to the leads
of other words of the alignment. It also grows if two refits on different words prefer the pair
(`qwp.judging.estimate`), and with the share of translations on which the refits agree. `benchmarks/confidence.py`
fitted the weights to the training split of MUSE over many alignments; docs/judgement.md reports the calibration on
spaces left out of the fit. A confidence is the probability that a dictionary like MUSE contains the pair, so unlisted
synonyms count as wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qwp.arrays import Floats
from qwp.search.calibration import CALIBRATION


@dataclass(frozen=True)
class Scale:
    """The figures of an alignment that its confidences are relative to.

    Attributes:
        agreement: share of the mutual translations that two refits on different words agree on.
        dimensions: of the vectors.
        lead: median lead of the best candidate over the others, from the source.
        lead_spread: interquartile range of these leads.
        back_lead: median lead from the target.
        back_lead_spread: interquartile range of these leads.
        succeeded: whether the alignment is better than the null distribution.
        words: number of words of each side in the refits.
    """

    agreement: float
    dimensions: int
    lead: float
    lead_spread: float
    back_lead: float
    back_lead_spread: float
    succeeded: bool = True
    words: int = 5000


@dataclass(frozen=True)
class SearchFigures:
    """The CSLS figures of the translations of n words.

    Attributes:
        scores: (n, k) CSLS of the k best candidates of each word, best first.
        back_ranks: (n,) number of source words that are better for the first candidate, at most
            `ConfidenceModel.candidates`.
        back_others: (n,) best CSLS of the first candidate with another source word.
        preferred: (n, 2) the candidate that each of two refits prefers, 0 for the first (`qwp.judging.estimate`).
    """

    scores: npt.ArrayLike
    back_ranks: npt.ArrayLike
    back_others: npt.ArrayLike
    preferred: npt.ArrayLike

    def leads(self) -> tuple[Floats, Floats]:
        """Return the lead of the best candidate over the mean of the others, and that of the word over others, (n,)."""
        scores = np.asarray(self.scores, dtype=np.float64)
        best, others = scores[:, 0], scores[:, 1:]
        back = np.asarray(self.back_others, dtype=np.float64)
        # A single candidate has no lead.
        forward = best - others.mean(axis=1) if others.shape[1] else np.zeros_like(best)
        return forward, np.where(np.isfinite(back), best - back, 0.0)


def quartiles(values: Floats) -> tuple[float, float]:
    """Return the median of values (n,) and their interquartile range."""
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
    return float(middle), float(high - low)


def log_odds(share: float, least: float = 0.004) -> float:
    """Return the log-odds of a share, which is clipped to the distance `least` from 0 and 1."""
    inside = min(max(share, least), 1.0 - least)
    return float(np.log(inside / (1.0 - inside)))


def logistic(odds: Floats) -> Floats:
    """Return the logistic function of log-odds."""
    return np.asarray(1.0 / (1.0 + np.exp(-odds)))


@dataclass(frozen=True)
class ConfidenceModel:
    """A logistic model of the probability that a translation is right.

    The weights belong to these features: whoever changes another field has to fit the weights again.

    Attributes:
        weights: in the order of the columns of `features`.
        candidates: candidates of each word that the features compare, in both directions.
        failed_factor: confidences of a failed alignment are multiplied by this, because hardly any of its pairs are in
            a dictionary.
        lead_bounds: leads are clipped to this range of spreads, so that outliers do not dominate.
        words, dimensions: usual words of the refits and dimensions of the alignments that the weights were fitted to.
        fewest_words: fewest words of the refits among these alignments.
    """

    weights: tuple[float, ...] = CALIBRATION.weights
    candidates: int = 10
    failed_factor: float = 0.02
    lead_bounds: tuple[float, float] = (-3.0, 6.0)
    words: int = 5000
    dimensions: int = 300
    fewest_words: int = 500

    def confidence(self, found: SearchFigures, scale: Scale) -> Floats:
        """Return the probability, (n,), that the first candidate of each word is right."""
        probability = logistic(self.features(found, scale) @ np.asarray(self.weights))
        return probability if scale.succeeded else self.failed_factor * probability

    def features(self, found: SearchFigures, scale: Scale) -> Floats:
        """Return the features of the model, (n, 14).

        The columns are: 1; mutual (each is the best of the other); log(1 + rank on the way back); lead in spreads; lead
        if negative; lead on the way back if negative; log-odds of the agreement of the refits; log(dimensions / 300);
        log(words of the refits / 5,000); log-odds times lead; log-odds times mutual; both refits prefer the pair; one
        of them does; both prefer the same other candidate.
        """
        ranks = np.asarray(found.back_ranks, dtype=np.float64)
        forward, backward = found.leads()
        lead = self._measured(forward, scale.lead, scale.lead_spread)
        back_lead = self._measured(backward, scale.back_lead, scale.back_lead_spread)
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
                one * np.log(scale.dimensions / self.dimensions),
                one * np.log(max(scale.words, self.fewest_words) / self.words),
                lead * agreement,
                mutual * agreement,
                first.all(axis=1),
                first.any(axis=1),
                alike & ~first[:, 0],
            ]
        )

    def _measured(self, leads: Floats, usual: float, spread: float) -> Floats:
        return np.clip((leads - usual) / (spread + 1e-6), *self.lead_bounds)


CONFIDENCE_MODEL = ConfidenceModel()
"""The model with the weights of the package."""
