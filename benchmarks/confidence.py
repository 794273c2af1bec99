"""Fit the weights of `qwp.search.confidence` to the training split. `python -m benchmarks.confidence --help`.

    python -m benchmarks.judgement related --device cuda --workers 12
    python -m benchmarks.confidence

`benchmarks.judgement` leaves what the confidences of gold words are computed from beside its records: for alignments of
all pairs, good and weak, cut and damaged. The words of the training split fit the weights, but for alignments that
were made from pairs of that very split; those of the test split, of languages that were left out of the fit, say how
well they hold: the error of the calibration, and that of the mean confidence as an estimate of P@1. As the test split
has few words, and chance alone makes an error then, the error is also given for both splits together: of a language
that was left out, neither has been seen. The printed weights belong into `src/qwp/search/confidence.py`, the other two
constants into `src/qwp/judging/estimate.py`.
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
from benchmarks.judgement import SAMPLE
from qwp.search.confidence import WEIGHTS, Floats, chances, log_odds

RESULTS = Path(__file__).parent / "results" / "confidence.json"
FEWEST_FITTED, FEWEST_SCORED = 50, 100
# Alignments as users make them count for more than cut, damaged and weak ones.
_USUAL = 10.0
# Of normal errors, nine in ten are within so many deviations.
_NINE_IN_TEN = 1.645
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

    @property
    def taught(self) -> bool:
        """Whether the method had pairs of the training split, so that its words say too much."""
        return _was_taught(self.record)

    @property
    def key(self) -> tuple[str, str, str, int]:
        """By which the splits of an alignment belong together."""
        return tuple(self.record[name] for name in ("task", "label", "method", "seed"))

    def weights(self) -> Floats:
        """Of the words, as if their ranks were those of a dictionary, which thins out with the root of the rank."""
        roots = np.sqrt(self.ranks + 100.0) - 10.0
        part = np.minimum((_PARTS * roots / (roots.max() + 1e-9)).astype(int), _PARTS - 1)
        weights = 1.0 / np.maximum(np.bincount(part, minlength=_PARTS)[part], _FEWEST_IN_PART)
        return np.asarray(weights / weights.sum() * (_USUAL if self.usual else 1.0))


def _was_taught(record: Record) -> bool:
    return bool(record["label"].endswith("pairs"))


def language(task: str) -> str:
    """The language of a pair that is not English."""
    if task.startswith(("zhang ", "novels ")):
        names = task.split()[1].split("-")
    else:
        names = [side.split("/")[1].split("_")[0] for side in task.split(" to ")]
    return next(name for name in names if name != "en")


def samples(records: Path) -> dict[str, list[Sample]]:
    """By split, those of all related alignments that are real by the verdict."""
    found: dict[str, list[Sample]] = {"train": [], "test": [], SAMPLE: []}
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


def fitted_to(data: dict[str, list[Sample]], without: str | None = None) -> Floats:
    """Weights fitted to the training split of all languages but one."""
    return fit(
        [
            s
            for s in data["train"]
            if len(s.right) >= FEWEST_FITTED and not s.taught and language(s.record["task"]) != without
        ]
    )


def left_out(data: dict[str, list[Sample]]) -> list[Record]:
    """For every alignment what weights say that were fitted without its language: estimate, P@1, calibration error.

    printed: the estimate as a user sees it, from a sample of all words, with a correction that was found without the
    language, too. ece_all: the calibration error of both splits together.
    """
    of = {split: {s.key: s for s in some} for split, some in data.items()}
    scored = [s for s in data["test"] if len(s.right) >= FEWEST_SCORED]
    found = []
    for name in sorted({language(s.record["task"]) for s in scored}):
        weights = fitted_to(data, without=name)
        others = [s for s in data["train"] if language(s.record["task"]) != name]
        shift = in_a_dictionary(others, of[SAMPLE], weights)
        for sample in (s for s in scored if language(s.record["task"]) == name):
            said = chances(sample.features @ weights)
            known = [sample, *([of["train"][sample.key]] if sample.key in of["train"] and not sample.taught else [])]
            all_said = np.concatenate([chances(s.features @ weights) for s in known])
            all_right = np.concatenate([s.right for s in known])
            whole = log_odds(float(chances(of[SAMPLE][sample.key].features @ weights).mean())) + shift
            found.append(
                {
                    **{key: sample.record[key] for key in ("task", "label", "method", "seed")},
                    "usual": sample.usual,
                    "estimate": 100 * float(said.mean()),
                    "printed": 100 * float(chances(np.array(whole))),
                    "p1": 100 * float(sample.right.mean()),
                    "ece": calibration_error(said, sample.right)[0],
                    "ece_all": calibration_error(all_said, all_right)[0],
                    "words": len(sample.right),
                    "all_words": len(all_right),
                }
            )
    return found


def in_a_dictionary(train: Sequence[Sample], of: dict[tuple[str, str, str, int], Sample], weights: Floats) -> float:
    """By how much, in log odds, words of the training split are surer than others of the same ranks."""
    differences = []
    for sample in train:
        if sample.usual and len(sample.right) >= FEWEST_FITTED and sample.key in of:
            in_it = float(np.average(chances(sample.features @ weights), weights=sample.weights()))
            differences.append(log_odds(in_it) - log_odds(float(chances(of[sample.key].features @ weights).mean())))
    return float(np.mean(differences))


def half_width(found: Sequence[Record]) -> float:
    """Of the interval, in log odds: so far from the truth are nine in ten of the printed estimates.

    Cut and damaged spaces count, too: the next ones will not be as they are here either.
    """
    some = [r for r in found if not _was_taught(r)]
    errors = [log_odds(r["printed"] / 100) - log_odds(r["p1"] / 100) for r in some]
    return _NINE_IN_TEN * float(np.sqrt(np.mean(np.square(errors))))


def summary(found: Sequence[Record], width: float, which: Callable[[Record], bool] = bool) -> dict[str, Any]:
    """Means and worst cases of some of the alignments; of each direction, the mean of its seeds."""
    some = [r for r in found if which(r)]
    of: dict[str, dict[str, Any]] = {}
    for name in ("estimate", "printed"):
        errors = [abs(r[name] - r["p1"]) for r in some]
        odds = [abs(log_odds(r[name] / 100) - log_odds(r["p1"] / 100)) for r in some]
        held = float(np.mean([each <= width for each in odds]))
        of[name] = {"error": float(np.mean(errors)), "worst_error": max(errors), "held_by_interval": held}
    for name in ("ece", "ece_all"):
        values = [r[name] for r in some]
        by_kind: dict[tuple[str, str, str], list[float]] = {}
        for r in some:
            by_kind.setdefault((r["task"], r["label"], r["method"]), []).append(r[name])
        worst_mean = max(float(np.mean(each)) for each in by_kind.values())
        of[name] = {"mean": float(np.mean(values)), "worst": max(values), "worst_mean_of_seeds": worst_mean}
    return {"alignments": len(some), **of}


def main() -> None:
    """Fit, print the weights and the errors, keep them."""
    parser = argparse.ArgumentParser(prog="benchmarks.confidence", description=__doc__)
    parser.add_argument("--records", type=Path, default=RECORDS, help="the records of benchmarks.judgement")
    parser.add_argument("--output", type=Path, default=RESULTS, help="write the figures here")
    options = parser.parse_args()
    data = samples(options.records)
    found, weights = left_out(data), fitted_to(data)
    of_sample, width = {s.key: s for s in data[SAMPLE]}, half_width(found)
    result = {
        "weights": [round(float(w), 4) for w in weights],
        "in_a_dictionary": round(in_a_dictionary(data["train"], of_sample, weights), 2),
        "half_width": round(width, 2),
        "all": summary(found, width),
        "usual": summary(found, width, lambda r: bool(r["usual"])),
        "left_out": found,
    }
    save(result, options.output)
    print({key: value for key, value in result.items() if key != "left_out"})


if __name__ == "__main__":
    main()
