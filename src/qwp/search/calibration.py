"""The calibration of confidences, estimates and verdicts: a versioned data file, and how well it covers unseen data.

`python -m benchmarks.confidence` writes `data/calibration.json` from the records of `benchmarks.judgement`.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

VERSION = 1
FILE_NAME = "calibration.json"


@dataclass(frozen=True)
class Calibration:
    """What was fitted to alignments of known accuracy.

    Attributes:
        version: of the format.
        weights: of the features of a confidence.
        dictionary_shift: words of dictionaries are right more often than others of the same rank, by this much in
            log-odds.
        half_width: of the 90 % interval of an estimate, in log-odds: a conformal quantile of the errors on languages
            that were left out of the fit.
        fewest_words: of the alignments. A side with fewer words is outside the calibration range.
        dimensions: fewest and most dimensions of the alignments.
        origins: for each origin of vectors, the error and the coverage of intervals calibrated on the other origins.
        unrelated_ratios: ratios to the null runs that a full fit reached on unrelated pairs, in ascending order.
    """

    version: int
    weights: tuple[float, ...]
    dictionary_shift: float
    half_width: float
    fewest_words: int
    dimensions: tuple[int, int]
    origins: Mapping[str, Mapping[str, Any]]
    unrelated_ratios: tuple[float, ...]

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Calibration:
        """Return the calibration of the content of a file."""
        low, high = values["dimensions"]
        sequences = {name: tuple(values[name]) for name in ("weights", "unrelated_ratios")}
        return cls(**{**values, **sequences, "dimensions": (low, high)})

    def p_value(self, ratio: float) -> float:
        """Return the conformal p-value of a ratio: its rank among the unrelated pairs, (1 + as high) / (1 + pairs).

        If a pair of spaces is unrelated and exchangeable with these, the p-value is at most p with probability at most
        p (Vovk et al. 2005).
        """
        pairs = len(self.unrelated_ratios)
        return (1 + pairs - bisect_left(self.unrelated_ratios, ratio)) / (1 + pairs)


CALIBRATION = Calibration.from_dict(json.loads((files("qwp") / "data" / FILE_NAME).read_text("utf-8")))
