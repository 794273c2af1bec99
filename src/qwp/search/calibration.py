"""The calibration of confidences, estimates and verdicts: a versioned data file, and how well it covers unseen data.

`python -m benchmarks.confidence` writes `data/calibration.json` from the records of `benchmarks.judgement`.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

VERSION = 2
FILE_NAME = "calibration.json"


@dataclass(frozen=True)
class Correction:
    """How an estimate follows from the mean confidence, for words or for unordered items.

    Attributes:
        shift: of the mean confidence, in log-odds. Confidences are fitted to dictionaries, which lack many right
            translations; words of dictionaries are right more often than others of the same rank.
        half_width: of the 90 % interval of an estimate, in log-odds: a conformal quantile of the errors on languages
            or, for items, on pairs of encoders that were left out.
        fewest: words or items of the alignments. A side with fewer is outside the calibration range.
        dimensions: fewest and most dimensions of the alignments.
        origins: for each origin of vectors, the error and the coverage of intervals calibrated on the other origins.
    """

    shift: float
    half_width: float
    fewest: int
    dimensions: tuple[int, int]
    origins: Mapping[str, Mapping[str, Any]]

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Correction:
        """Return the correction of a part of a file."""
        low, high = values["dimensions"]
        return cls(**{**values, "dimensions": (low, high)})


@dataclass(frozen=True)
class Calibration:
    """What was fitted to alignments of known accuracy.

    Attributes:
        version: of the format.
        weights: of the features of a confidence.
        words, items: the corrections of estimates.
        unrelated: for each kind of unrelated pairs, the statistics of the verdict on full fits, in ascending order.
    """

    version: int
    weights: tuple[float, ...]
    words: Correction
    items: Correction
    unrelated: Mapping[str, tuple[float, ...]]

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Calibration:
        """Return the calibration of the content of a file."""
        unrelated = {kind: tuple(found) for kind, found in values["unrelated"].items()}
        words, items = (Correction.from_dict(values[name]) for name in ("words", "items"))
        return cls(values["version"], tuple(values["weights"]), words, items, unrelated)

    def p_value(self, statistic: float) -> float:
        """Return the p-value of a statistic: its rank in the least favourable kind, (1 + as high) / (1 + pairs).

        If a pair of spaces is exchangeable with the unrelated pairs of any one kind, the p-value is at most p with
        probability at most p (Vovk et al. 2005).
        """
        return max((1 + len(found) - bisect_left(found, statistic)) / (1 + len(found)) for found in self._kinds())

    @property
    def smallest_p_value(self) -> float:
        """The p-value of a statistic above those of all unrelated pairs."""
        return self.p_value(math.inf)

    def threshold(self, level: float) -> float:
        """Return the statistic above which the p-value is at most a level; infinity if a kind has too few pairs."""
        allowed = [math.floor(level * (1 + len(found)) + 1e-9) for found in self._kinds()]
        return max(found[-n] if n else math.inf for found, n in zip(self._kinds(), allowed, strict=True))

    def _kinds(self) -> list[tuple[float, ...]]:
        return list(self.unrelated.values())


CALIBRATION = Calibration.from_dict(json.loads((files("qwp") / "data" / FILE_NAME).read_text("utf-8")))
