"""The possible reasons for a failure, and the options to try next."""

from __future__ import annotations

import numpy as np
import pytest

import qwp
from qwp import Embeddings, arrays
from qwp.methods.advice import Advisor, effective_dimensions
from qwp.stages.problem import Prepare, Problem
from tests.conftest import QUICK
from tests.problems import space


def problem(src: Embeddings, tgt: Embeddings) -> Problem:
    """Return the problem of two spaces in the order of their words."""
    prepare = Prepare(order="given")
    return prepare.problem(prepare.spaces([src, tgt], arrays.HOST, 0), seed=0)


def gaussian(name: str, scales: np.ndarray, n: int = Advisor.few_words) -> Embeddings:
    """Return random vectors whose directions have given deviations."""
    vectors = np.random.default_rng(len(name)).standard_normal((n, len(scales))) * scales
    return Embeddings([f"{name}{i}" for i in range(n)], vectors.astype("f4"), name=name)


EVEN, STEEP = np.ones(60), np.arange(1, 61) ** -1.0


def test_good_data_show_no_reason() -> None:
    found = problem(gaussian("one", EVEN), gaussian("other", EVEN))
    assert list(Advisor().reasons(found)) == []
    assert Advisor().advice(found, options=["`--a`", "`--b`"]) == "Try next: `--a`, or `--b`."


def test_each_reason_is_named_with_its_figures() -> None:
    few, steep = gaussian("few", EVEN[:20], n=300), gaussian("steep", STEEP)
    found = list(Advisor().reasons(problem(few, steep)))
    assert found[:2] == ["few has only 300 words, and a search uses 2,500", "few has only 20 dimensions"]
    [spectra] = list(Advisor().reasons(problem(gaussian("even", EVEN), steep)))
    assert spectra.startswith("the spectra differ: the variance is spread over 5")
    assert spectra.endswith(" in steep")
    assert not list(Advisor(few_words=300, few_dimensions=20).reasons(problem(few, few)))


def test_effective_dimensions_of_known_spectra() -> None:
    assert effective_dimensions(np.eye(7)) == pytest.approx(7)
    assert effective_dimensions(np.ones((5, 1)) @ np.ones((1, 4))) == pytest.approx(1)


@pytest.mark.usefixtures("short_trials")
def test_a_failed_alignment_names_reasons_and_options_and_a_good_one_does_not() -> None:
    src, tgt = (
        Embeddings([f"{side}{i}" for i in range(300)], space(300, 12, seed).astype("f4"), name=side)
        for side, seed in (("s", 1), ("t", 2))
    )
    found = qwp.align(src, tgt, order="given", **QUICK).quality
    assert found.failed
    assert "Possible reasons: s has only 300 words" in found.explanation
    assert found.explanation.endswith(
        "Try next: `--via FILE` with a third language, or `--lexicon FILE` with 100 pairs, or `--effort high`."
    )
    high = qwp.align(src, tgt, order="given", effort="high", **QUICK).quality
    assert "`--effort high`" not in high.explanation
    assert "Try next" not in qwp.align(src, src, order="given", **QUICK).quality.explanation
