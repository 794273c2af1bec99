"""Fit the weights of `qwp.search.confidence` to the training split. `python -m benchmarks.confidence --help`.

Every problem that settings are chosen on (`benchmarks.ablation.development_problems`) is aligned with the default map
and with the orthogonal one; the words of the training split that are covered say, in both directions, whether the best
translation is right. The error on each family of vectors is also given for weights that were fitted without it. The
printed weights belong into `src/qwp/search/confidence.py`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize

from benchmarks.ablation import Problem, calibration_error, development_problems, fitted, judged_pairs, turned
from benchmarks.common import save
from qwp import Alignment, Lexicon
from qwp.maps.procrustes import KINDS
from qwp.search.confidence import Floats

RESULTS = Path(__file__).parent / "results" / "confidence.json"
_RIDGE = 1e-4

Sample = tuple[str, str, Floats, Floats]
"""The kind of the map, the family of vectors it belongs to, features (n, 5), and whether each is right (n,)."""


def samples(device: str) -> Iterator[Sample]:
    """Features and truth for every problem, kind of map and direction."""
    for problem in development_problems():
        for kind in KINDS:
            alignment = fitted(problem, 0, device, {"map": kind})
            for found, lexicon in _directions(alignment, problem):
                yield kind, family(problem.name), *features_and_truth(found.on(device), lexicon)


def family(name: str) -> str:
    """Problems made from the same pair of texts."""
    return "en-es" if name.startswith("demo") else name.split(",")[0].split()[1]


def _directions(alignment: Alignment, problem: Problem) -> Iterator[tuple[Alignment, Lexicon]]:
    for found, lexicon in ((alignment, problem.forward), (turned(alignment), problem.backward)):
        if lexicon is not None:
            yield found, lexicon()


def features_and_truth(alignment: Alignment, lexicon: Lexicon) -> tuple[Floats, Floats]:
    """Features (n, 5) of the best translation of every covered word, and whether it is right (n,)."""
    rows, _, right = judged_pairs(alignment, lexicon)
    return alignment.pair_features()[rows], right


def fit(data: Sequence[Sample]) -> Floats:
    """Weights of the logistic model with the highest likelihood; every sample counts alike."""
    features = np.vstack([s for *_, s, _ in data])
    right = np.concatenate([r for *_, r in data])
    weights = np.concatenate([np.full(len(r), 1.0 / len(r)) for *_, r in data]) / len(data)

    def loss(w: Floats) -> tuple[float, Floats]:
        odds = features @ w
        value = weights @ (np.logaddexp(0.0, odds) - right * odds) + _RIDGE * (w[1:] @ w[1:])
        slope = features.T @ (weights * (chances(odds) - right)) + 2 * _RIDGE * np.concatenate([[0.0], w[1:]])
        return float(value), slope

    found: Floats = minimize(loss, np.zeros(features.shape[1]), jac=True, method="BFGS").x
    return found


def chances(odds: Floats) -> Floats:
    """The logistic function."""
    return np.asarray(1.0 / (1.0 + np.exp(-odds)))


def figures(data: Sequence[Sample]) -> dict[str, Any]:
    """Weights, the mean calibration error with them, and that on each family with weights fitted to the others."""
    weights = fit(data)
    left_out = {}
    for name in dict.fromkeys(name for _, name, *_ in data):
        others = fit([sample for sample in data if sample[1] != name])
        left_out[name] = [calibration_error(chances(s @ others), r)[0] for _, of, s, r in data if of == name]
    return {
        "weights": [round(float(w), 4) for w in weights],
        "mean_error": float(np.mean([calibration_error(chances(s @ weights), r)[0] for *_, s, r in data])),
        "left_out": {
            name: {"mean": float(np.mean(e)), "worst": max(e), "samples": len(e)} for name, e in left_out.items()
        },
    }


def main() -> None:
    """Fit, print the weights and the errors, keep them."""
    parser = argparse.ArgumentParser(prog="benchmarks.confidence", description=__doc__)
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    parser.add_argument("--output", type=Path, default=RESULTS, help="write the figures here")
    options = parser.parse_args()
    made = list(samples(options.device))
    result = {kind: figures([sample for sample in made if sample[0] == kind]) for kind in KINDS}
    save(result, options.output)
    print(result)


if __name__ == "__main__":
    main()
