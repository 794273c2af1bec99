"""Fit the weights of `qwp.search.confidence` to the training split. `python -m benchmarks.confidence --help`.

    python -m benchmarks.judgement related --device cuda --workers 12
    python -m benchmarks.confidence

`benchmarks.judgement` leaves what the confidences of gold words are computed from beside its records: for alignments of
all pairs, good and weak, cut and damaged. The words of the training split fit the weights; those of the test split, of
languages that were left out of the fit, say how well they hold: the error of the calibration, and that of the mean
confidence as an estimate of P@1. The printed weights belong into `src/qwp/search/confidence.py`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize

from benchmarks.ablation import calibration_error
from benchmarks.common import Record, read_records, save
from benchmarks.judgement import RESULTS as RECORDS
from qwp.judging.estimate import HALF_WIDTH
from qwp.search.confidence import WEIGHTS, Floats, chances, log_odds

RESULTS = Path(__file__).parent / "results" / "confidence.json"
FEWEST_FITTED, FEWEST_SCORED = 50, 100
# Alignments as users make them count for more than cut, damaged and weak ones.
_USUAL = 3.0
_RIDGE = 1e-4
# Ranks are made even in so many parts of the vocabulary, each as large as the words of a dictionary are dense.
_PARTS, _FEWEST_IN_PART = 8, 5


@dataclass(frozen=True)
class Sample:
    """Gold words of one alignment and split. features: (n, f); ranks: (n,); right: (n,)."""

    record: Record
    features: Floats
    ranks: Floats
    right: Floats

    @property
    def usual(self) -> bool:
        """Whether it is of the default method on spaces as they are."""
        return self.record["method"] == "qwp" and self.record["label"] in ("as it is", "orthogonal")

    def weights(self) -> Floats:
        """Of the words, as if their ranks were those of a dictionary, which thins out with the root of the rank."""
        roots = np.sqrt(self.ranks + 100.0) - 10.0
        part = np.minimum((_PARTS * roots / (roots.max() + 1e-9)).astype(int), _PARTS - 1)
        weights = 1.0 / np.maximum(np.bincount(part, minlength=_PARTS)[part], _FEWEST_IN_PART)
        return np.asarray(weights / weights.sum() * (_USUAL if self.usual else 1.0))


def language(task: str) -> str:
    """The language of a pair that is not English."""
    if task.startswith(("zhang ", "novels ")):
        names = task.split()[1].split("-")
    else:
        names = [side.split("/")[1].split("_")[0] for side in task.split(" to ")]
    return next(name for name in names if name != "en")


def samples(records: Path) -> dict[str, list[Sample]]:
    """By split, those of all related alignments that are real by the verdict."""
    found: dict[str, list[Sample]] = {"train": [], "test": []}
    for record in read_records(records):
        kept = records.with_suffix("") / record.get("signals", "none")
        if kept.is_file() and record["verdict"] != "failed":
            with np.load(kept) as signals:
                for split in signals.files:
                    table = signals[split].astype(np.float64)
                    if table.shape[1] != len(WEIGHTS) + 2:  # of another set of features
                        continue
                    found[split].append(Sample(record, table[:, :-2], table[:, -2], table[:, -1]))
    return found


def fit(data: Sequence[Sample]) -> Floats:
    """Weights of the logistic model with the highest likelihood."""
    features = np.vstack([s.features for s in data])
    right = np.concatenate([s.right for s in data])
    weights = np.concatenate([s.weights() for s in data])
    weights /= weights.sum()

    def loss(w: Floats) -> tuple[float, Floats]:
        odds = features @ w
        value = weights @ (np.logaddexp(0.0, odds) - right * odds) + _RIDGE * (w[1:] @ w[1:])
        slope = features.T @ (weights * (chances(odds) - right)) + 2 * _RIDGE * np.concatenate([[0.0], w[1:]])
        return float(value), slope

    found: Floats = minimize(loss, np.zeros(features.shape[1]), jac=True, method="L-BFGS-B").x
    return found


def left_out(data: dict[str, list[Sample]]) -> list[Record]:
    """For every alignment what weights say that were fitted without its language: estimate, P@1, calibration error."""
    of = {split: [s for s in data[split] if len(s.right) >= least] for split, least in _LEAST.items()}
    found = []
    for name in sorted({language(s.record["task"]) for s in of["test"]}):
        others = [s for s in of["train"] if language(s.record["task"]) != name]
        weights = fit(others)
        for sample in of["test"]:
            if language(sample.record["task"]) == name:
                said = chances(sample.features @ weights)
                found.append(
                    {
                        **{key: sample.record[key] for key in ("task", "label", "method", "seed")},
                        "usual": sample.usual,
                        "estimate": 100 * float(said.mean()),
                        "p1": 100 * float(sample.right.mean()),
                        "ece": calibration_error(said, sample.right)[0],
                    }
                )
    return found


_LEAST = {"train": FEWEST_FITTED, "test": FEWEST_SCORED}


def summary(found: Sequence[Record], which: Callable[[Record], bool] = bool) -> dict[str, Any]:
    """Means and worst cases of some of the alignments."""
    some = [r for r in found if which(r)]
    errors = [abs(r["estimate"] - r["p1"]) for r in some]
    odds = [log_odds(r["estimate"] / 100) - log_odds(r["p1"] / 100) for r in some]
    return {
        "alignments": len(some),
        "estimate_error": float(np.mean(errors)),
        "worst_estimate_error": max(errors),
        "deviation_of_log_odds": float(np.sqrt(np.mean(np.square(odds)))),
        "held_by_interval": float(np.mean(np.abs(odds) <= HALF_WIDTH)),
        "ece": float(np.mean([r["ece"] for r in some])),
        "worst_ece": max(r["ece"] for r in some),
    }


def main() -> None:
    """Fit, print the weights and the errors, keep them."""
    parser = argparse.ArgumentParser(prog="benchmarks.confidence", description=__doc__)
    parser.add_argument("--records", type=Path, default=RECORDS, help="the records of benchmarks.judgement")
    parser.add_argument("--output", type=Path, default=RESULTS, help="write the figures here")
    options = parser.parse_args()
    data = samples(options.records)
    found = left_out(data)
    result = {
        "weights": [round(float(w), 4) for w in fit([s for s in data["train"] if len(s.right) >= FEWEST_FITTED])],
        "all": summary(found),
        "usual": summary(found, lambda r: bool(r["usual"])),
        "left_out": found,
    }
    save(result, options.output)
    print({key: result[key] for key in ("weights", "all", "usual")})


if __name__ == "__main__":
    main()
