"""Fit the weights of the confidence (`qwp.search.confidence`) to the training split of MUSE.

    QWP_BENCH=FOLDER python -m benchmarks.judgement related --device cuda --workers 12
    python -m benchmarks.confidence [--saved]

`benchmarks.judgement` saves the features of gold words for alignments of all pairs, good and weak, cut and damaged. The
words of the training split fit the weights, except for alignments that learned from this split. The words of the test
split, in languages that were left out of the fit, measure two errors: that of the calibration, and that of the mean
confidence as an estimate of P@1. The test split has few words, so the calibration error is also reported for both
splits together; a left-out language has neither in the fit.

The result goes into `src/qwp/data/calibration.json`, which the package reads. `--saved` writes that file again from
the last fit. Its interval is conformal: the 90 % quantile of the errors of estimates, with the correction for finite
samples (Vovk et al. 2005). Errors of one origin of vectors are not independent. So the file also records how many
errors of each origin are within intervals that were calibrated on the other origins.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize

import qwp
from benchmarks import judgement
from benchmarks.ablation import calibration_error
from benchmarks.common import save
from benchmarks.judgement import KEY, SAMPLE
from benchmarks.records import Record, read_records
from qwp.arrays import Floats
from qwp.search.calibration import FILE_NAME, VERSION
from qwp.search.confidence import CONFIDENCE_MODEL, log_odds, logistic

RESULTS = judgement.CONFIDENCE
DATA = Path(qwp.__file__).parent / "data" / FILE_NAME
"""The calibration that the package reads."""
FEWEST_FITTED, FEWEST_SCORED = 50, 100
# Alignments with default settings count more than cut, damaged and weak ones.
_USUAL = 10.0
_RIDGE = 1e-4
# Of estimates of items in records that do not say theirs.
_FIRST_SHIFT = 0.19
# The vocabulary is divided into parts that hold equally many words of a usual dictionary.
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
        """Whether the default method aligned the unchanged spaces."""
        return self.record["method"] == "qwp" and self.record["label"] in ("as it is", "orthogonal")

    @property
    def taught(self) -> bool:
        """Whether the method learned from the training split."""
        return _was_taught(self.record)

    @property
    def language(self) -> str:
        """The language that is not English."""
        return language(self.record["task"])

    @property
    def key(self) -> tuple[Any, ...]:
        """Identifies the alignment, whatever the split."""
        return tuple(self.record[name] for name in KEY[1:])

    def weights(self) -> Floats:
        """Return the weights (n,) of the words.

        They make the ranks those of a usual dictionary, whose density falls with the square root of the rank.
        """
        roots = np.sqrt(self.ranks + 100.0) - 10.0
        part = np.minimum((_PARTS * roots / (roots.max() + 1e-9)).astype(int), _PARTS - 1)
        weights = 1.0 / np.maximum(np.bincount(part, minlength=_PARTS)[part], _FEWEST_IN_PART)
        return np.asarray(weights / weights.sum() * (_USUAL if self.usual else 1.0))


def _was_taught(record: Record) -> bool:
    return bool(record["label"].endswith("pairs"))


def language(task: str) -> str:
    """Return the language of a pair that is not English."""
    if task.startswith(("zhang ", "novels ")):
        names = task.split()[1].split("-")
    else:
        names = [side.split("/")[1].split("_")[0] for side in task.split(" to ")]
    return next(name for name in names if name != "en")


def samples(path: Path) -> dict[str, list[Sample]]:
    """Return the samples of each split of all related alignments whose verdict is not failed."""
    found: dict[str, list[Sample]] = {"train": [], "test": [], SAMPLE: []}
    for record in read_records(path):
        file = path.with_suffix("") / record.get("signals", "none")
        if file.is_file() and record["verdict"] != "failed":
            with np.load(file) as signals:
                for split in signals.files:
                    table = signals[split].astype(np.float64)
                    if table.shape[1] == len(CONFIDENCE_MODEL.weights) + 2:  # others have another set of features
                        found[split].append(Sample(record, table[:, :-2], table[:, -2], table[:, -1]))
    return found


def fit(data: Sequence[Sample]) -> Floats:
    """Return the weights of the logistic model with the highest likelihood."""
    features = np.vstack([s.features for s in data])
    right = np.concatenate([s.right for s in data])
    weights = np.concatenate([s.weights() for s in data])
    weights /= weights.sum()

    def loss(w: Floats) -> tuple[float, Floats]:
        odds = features @ w
        value = weights @ (np.logaddexp(0.0, odds) - right * odds) + _RIDGE * (w[1:] @ w[1:])
        gradient = features.T @ (weights * (logistic(odds) - right)) + 2 * _RIDGE * np.concatenate([[0.0], w[1:]])
        return float(value), gradient

    found: Floats = minimize(loss, np.zeros(features.shape[1]), jac=True, method="L-BFGS-B").x
    return found


def fitted_to(data: dict[str, list[Sample]], without: str | None = None) -> Floats:
    """Return the weights fitted to the training split of all languages but one."""
    return fit([s for s in data["train"] if len(s.right) >= FEWEST_FITTED and not s.taught and s.language != without])


def left_out(data: dict[str, list[Sample]]) -> list[Record]:
    """Compare every alignment with weights that were fitted without its language.

    printed: the estimate as users see it, from a sample of all words, with a correction fitted without the language.
    ece_all: the calibration error of both splits together.
    """
    of = {split: {s.key: s for s in some} for split, some in data.items()}
    scored = [s for s in data["test"] if len(s.right) >= FEWEST_SCORED]
    found = []
    for name in sorted({s.language for s in scored}):
        weights = fitted_to(data, without=name)
        shift = dictionary_shift([s for s in data["train"] if s.language != name], of[SAMPLE], weights)
        for sample in (s for s in scored if s.language == name):
            predicted = logistic(sample.features @ weights)
            known = [sample, *([of["train"][sample.key]] if sample.key in of["train"] and not sample.taught else [])]
            all_predicted = np.concatenate([logistic(s.features @ weights) for s in known])
            all_right = np.concatenate([s.right for s in known])
            estimate = log_odds(float(logistic(of[SAMPLE][sample.key].features @ weights).mean())) + shift
            found.append(
                {
                    **{key: sample.record[key] for key in KEY[1:]},
                    "usual": sample.usual,
                    "estimate": 100 * float(predicted.mean()),
                    "printed": 100 * float(logistic(np.array(estimate))),
                    "p1": 100 * float(sample.right.mean()),
                    "ece": calibration_error(predicted, sample.right)[0],
                    "ece_all": calibration_error(all_predicted, all_right)[0],
                    "words": len(sample.right),
                    "all_words": len(all_right),
                }
            )
    return found


def dictionary_shift(train: Sequence[Sample], of: dict[tuple[Any, ...], Sample], weights: Floats) -> float:
    """Return how much more confident words of the training split are than others of the same ranks, in log odds."""
    differences = []
    for sample in train:
        if sample.usual and len(sample.right) >= FEWEST_FITTED and sample.key in of:
            in_dictionary = float(np.average(logistic(sample.features @ weights), weights=sample.weights()))
            in_vocabulary = float(logistic(of[sample.key].features @ weights).mean())
            differences.append(log_odds(in_dictionary) - log_odds(in_vocabulary))
    return float(np.mean(differences))


def errors(found: Sequence[Record]) -> dict[str, Floats]:
    """Return the errors of the printed estimates in log odds by origin of the vectors.

    Cut and damaged spaces count too, because users' spaces differ from these. Methods that learned from the lexicon do
    not, because their verdict measures the accuracy.
    """
    by_origin: dict[str, list[float]] = {}
    for record in found:
        if not _was_taught(record):
            error = log_odds(record["printed"] / 100) - log_odds(record["p1"] / 100)
            by_origin.setdefault(origin(record["task"]), []).append(error)
    return {name: np.asarray(values) for name, values in sorted(by_origin.items())}


def origin(task: str) -> str:
    """Return the origin of the vectors of a pair."""
    return next(name for name in ("zhang", "mixed", "pretrained", "novels") if name in task)


def conformal_width(found: Iterable[Floats]) -> float:
    """Return the conformal 90 % quantile of absolute errors: that of rank ceil(0.9 (n + 1))."""
    values = np.sort(np.abs(np.concatenate(list(found))))
    return float(values[min(math.ceil(0.9 * (len(values) + 1)), len(values)) - 1])


def half_width(found: Sequence[Record]) -> float:
    """Return the half-width of the interval in log odds."""
    return round(conformal_width(errors(found).values()), 3)


def calibration(result: Record, records: Sequence[Record]) -> Record:
    """Return the content of the data file, from a saved result of the fit and the records of `benchmarks.judgement`."""
    found = errors(result["left_out"])
    origins = {}
    for name, values in found.items():
        width = conformal_width(others for other, others in found.items() if other != name)
        some = [r for r in result["left_out"] if origin(r["task"]) == name and not _was_taught(r)]
        points = [abs(r["printed"] - r["p1"]) for r in some]
        origins[name] = {
            "alignments": len(values),
            "error": round(float(np.mean(points)), 1),
            "half_width": round(width, 3),
            "covered": round(float(np.mean(np.abs(values) <= width)), 3),
        }
    return {
        "version": VERSION,
        "weights": result["weights"],
        "words": {
            "shift": result["in_a_dictionary"],
            "half_width": half_width(result["left_out"]),
            "fewest": min(judgement.CUTS),
            "dimensions": [50, 300],
            "origins": origins,
        },
        "items": item_correction(judgement.encoder_estimates(records)),
        "unrelated": {kind: list(found) for kind, found in judgement.unrelated_statistics(records).items()},
    }


def item_correction(found: Sequence[Record]) -> Record:
    """Return the correction of estimates of unordered items, from records with the share of items that is right.

    An origin is an unordered pair of encoders. The interval is the conformal quantile of the errors of all origins,
    each with the shift of the others.
    """
    by_origin: dict[str, list[Record]] = {}
    for record in found:
        by_origin.setdefault(" ".join(sorted(record["task"].split())), []).append(record)
    gaps = {name: _gaps(some) for name, some in by_origin.items()}
    origins, residuals = {}, {}
    for name in gaps:
        others = np.concatenate([each for other, each in gaps.items() if other != name])
        residuals[name] = gaps[name] - others.mean()
        points = [abs(100 * float(logistic(_confidence(r) + others.mean())) - r["p1"]) for r in by_origin[name]]
        origins[name] = {"alignments": len(points), "error": round(float(np.mean(points)), 1)}
    width = conformal_width(residuals.values())
    for name, values in residuals.items():
        origins[name] |= {"half_width": round(width, 3), "covered": round(float(np.mean(np.abs(values) <= width)), 3)}
    shift = round(float(np.concatenate(list(gaps.values())).mean()), 3)
    return {
        "shift": shift,
        "half_width": round(width, 3),
        "fewest": min(judgement.TEXTS),
        "dimensions": [256, 300],
        "origins": origins,
    }


def _gaps(found: Iterable[Record]) -> Floats:
    """Return by how much the share of right items exceeds the mean confidence, in log-odds."""
    return np.asarray([log_odds(r["p1"] / 100) - _confidence(r) for r in found])


def _confidence(record: Record) -> float:
    """Return the log-odds of the mean confidence of a record, whose estimate has the shift of its time."""
    return log_odds(record["estimate"] / 100) - float(record.get("shift", _FIRST_SHIFT))


def summary(found: Sequence[Record], width: float, which: Callable[[Record], bool] = bool) -> dict[str, Any]:
    """Return means and worst cases of some alignments, and the worst mean over the seeds of a case."""
    some = [r for r in found if which(r)]
    of: dict[str, dict[str, Any]] = {}
    for name in ("estimate", "printed"):
        errors = [abs(r[name] - r["p1"]) for r in some]
        odds = [abs(log_odds(r[name] / 100) - log_odds(r["p1"] / 100)) for r in some]
        held = float(np.mean([each <= width for each in odds]))
        of[name] = {"error": float(np.mean(errors)), "worst_error": max(errors), "held_by_interval": held}
    for name in ("ece", "ece_all"):
        values = [r[name] for r in some]
        by_case: dict[tuple[str, str, str], list[float]] = {}
        for r in some:
            by_case.setdefault((r["task"], r["label"], r["method"]), []).append(r[name])
        worst_mean = max(float(np.mean(each)) for each in by_case.values())
        of[name] = {"mean": float(np.mean(values)), "worst": max(values), "worst_mean_of_seeds": worst_mean}
    return {"alignments": len(some), **of}


def main() -> None:
    """Fit, print the weights and the errors, and save them."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.confidence",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--records", type=Path, default=judgement.RESULTS, help="records of benchmarks.judgement")
    parser.add_argument("--output", type=Path, default=RESULTS, help="file that gets the figures")
    parser.add_argument("--saved", action="store_true", help="only write the data file again, from the last fit")
    options = parser.parse_args()
    result = with_interval(json.loads(options.output.read_text("utf-8")) if options.saved else fitted(options.records))
    save(result, options.output)
    save(calibration(result, list(read_records(options.records))), DATA)
    print({key: value for key, value in result.items() if key != "left_out"})


def fitted(records: Path) -> Record:
    """Return the weights and constants fitted to all alignments, and the errors on languages that were left out."""
    data = samples(records)
    found, weights = left_out(data), fitted_to(data)
    of_sample = {s.key: s for s in data[SAMPLE]}
    return {
        "weights": [round(float(w), 4) for w in weights],
        "in_a_dictionary": round(dictionary_shift(data["train"], of_sample, weights), 2),
        "left_out": found,
    }


def with_interval(result: Record) -> Record:
    """Return the result of a fit with the interval, and the summaries of the errors."""
    found = result["left_out"]
    width = half_width(found)
    summaries = {"all": summary(found, width), "usual": summary(found, width, lambda r: bool(r["usual"]))}
    return {
        **{name: result[name] for name in ("weights", "in_a_dictionary")},
        "half_width": width,
        **summaries,
        "left_out": found,
    }


if __name__ == "__main__":
    main()
