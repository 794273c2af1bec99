"""Degenerate vectors: a method refuses them or returns an alignment that is no success."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import pytest

from qwp import Alignment, Embeddings, InputError, Lexicon, align, align_all
from qwp.methods import METHODS
from qwp.methods.settings import REQUIRED
from tests.libraries import pot, skip_without_library
from tests.problems import Array

WORDS, DIM = 16, 4
QUICK: dict[str, Any] = {
    "refine": 2,
    "coreset_size": 6,
    "bank_size": 2,
    "epochs": 2,
    "steps": 3,
    "start_words": 16,
    "start_steps": 3,
    "stages": 2,
    "train_words": 16,
    "max_steps": 5,
    "hidden_size": 4,
    "batch_size": 4,
    "restarts": 2,
    "rounds": 2,
    "threads": 1,
}
# The search for an initial map takes hundreds of steps.
ONE_START = dict.fromkeys(("qwp", "wp"), "profiles")


def normal(n: int, d: int = DIM, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal((n, d))


def with_one(value: float) -> Array:
    vectors = normal(WORDS)
    vectors[0] = value
    return vectors


SAME, ZERO, USUAL, OTHER = np.ones((WORDS, DIM)), np.zeros((WORDS, DIM)), normal(WORDS), normal(WORDS, seed=1)
FEW = np.concatenate([normal(3), np.zeros((WORDS - 3, DIM))])
SPACES: dict[str, tuple[Array, Array]] = {
    "constant": (SAME, SAME),
    "constant source": (SAME, USUAL),
    "zero": (ZERO, ZERO),
    "zero target": (USUAL, ZERO),
    "few not zero": (FEW, FEW[::-1]),
    "one dimension": (normal(WORDS, 1), normal(WORDS, 1, seed=1)),
    "one dimension, one sign": (abs(normal(WORDS, 1)), abs(normal(WORDS, 1, seed=1))),
    "one word": (normal(1), normal(1, seed=1)),
    "one target word": (USUAL, normal(1)),
    "one zero": (np.zeros((1, 1)), np.zeros((1, 1))),
    "multiples of one vector": (normal(WORDS, 1) * normal(1), normal(WORDS, 1, seed=2) * normal(1)),
    "two vectors": (np.repeat(normal(2), WORDS // 2, 0), np.repeat(normal(2, seed=1), WORDS // 2, 0)),
    "fewer words than dimensions": (normal(3, 9), normal(4, 9, seed=1)),
    "huge": (1e300 * USUAL, 1e300 * OTHER),
    "large": (1e150 * USUAL, 1e150 * OTHER),
    "large for float32": (1e15 * USUAL, 1e15 * OTHER),
    "one huge": (with_one(1e150), USUAL),
    "subnormal": (1e-310 * USUAL, 1e-320 * OTHER),
}
# Spaces that are also tried without normalisation.
UNSCALED = ("constant source", "zero target", "one word", "two vectors", "huge", "large for float32", "subnormal")


@pytest.fixture(autouse=True)
def no_numerical_warning() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def words(vectors: Array) -> Embeddings:
    return Embeddings([f"w{i}" for i in range(len(vectors))], vectors)


def refused_or_judged(spaces: tuple[Array, Array], method: str, **options: Any) -> str:
    """Align and check all numbers of the result; return the verdict, or "refused"."""
    src, tgt = spaces
    known = METHODS[method].parameter_names()
    pairs = tuple((f"w{i}", f"w{i}") for i in range(min(len(src), len(tgt), 15)))
    lexicon = Lexicon(pairs) if METHODS[method].supervision == REQUIRED else None
    start = {"start": ONE_START[method]} if method in ONE_START else {}
    chosen = {name: value for name, value in {**QUICK, **start, **options}.items() if name in known}
    try:
        found = align(words(src), words(tgt), lexicon=lexicon, **{"method": method, **chosen})
    except InputError:
        return "refused"
    assert_sound(found)
    return found.quality.verdict


def assert_sound(found: Alignment) -> None:
    """Assert that all numbers of a result are finite."""
    assert np.isfinite(found.src_map).all()
    assert found.tgt_map is None or np.isfinite(found.tgt_map).all()
    quality = found.quality
    figures = (quality.fitted, quality.random, quality.held_out, quality.null)
    assert np.isfinite([quality.ratio, *(each.mean_csls for each in figures)]).all()
    assert all(np.isfinite(translation.score) for translation in found.translate("w0")["w0"])
    for pair in found.induce(mutual_only=False):
        assert np.isfinite(pair.score)
        assert 0 <= pair.confidence <= 1


@pytest.mark.parametrize("method", METHODS)
def test_refused_or_judged(method: str) -> None:
    skip_without_library(method)
    # Held-out known pairs can tell a failure where the vectors alone cannot.
    expected = ("refused", "undecided", *(["failed"] if METHODS[method].supervision == REQUIRED else []))
    for name, spaces in SPACES.items():
        assert refused_or_judged(spaces, method) in expected, name
    plain: dict[str, Any] = {"normalize": "none", "dtype": "float64"}
    for name in UNSCALED:
        assert refused_or_judged(SPACES[name], method, **plain) in expected, name


@pytest.mark.parametrize(
    ("start", "ot", "coreset"),
    [
        ("frank-wolfe", "unbalanced", "random"),
        ("identity", "exact", "lloyd"),
        ("identical", "balanced", "lloyd"),
        ("identity", "unbalanced", "kmeans++"),
    ],
)
def test_parts_of_the_default_method(start: str, ot: str, coreset: str) -> None:
    options = {"start": start, "ot": ot, "coreset": coreset}
    for name, spaces in SPACES.items():
        assert refused_or_judged(spaces, "qwp", **options) in ("refused", "undecided"), name


@pytest.mark.usefixtures("short_trials")
def test_the_choice_of_the_initializer() -> None:
    for name in ("constant source", "zero target", "one word", "two vectors"):
        assert refused_or_judged(SPACES[name], "qwp", start="auto") in ("refused", "undecided"), name


@pytest.mark.parametrize("method", METHODS)
def test_enough_words_for_a_verdict(method: str) -> None:
    """Enough words for an estimated order and a verdict. Identical words are no success."""
    skip_without_library(method)
    for name, expected in (("constant source", ("refused", "failed")), ("two vectors", ("succeeded", "failed"))):
        src, tgt = (np.tile(side, (38, 1)) for side in SPACES[name])
        assert refused_or_judged((src, tgt), method) in expected, name


def test_several_languages() -> None:
    known = METHODS["qwp"].parameter_names()
    for src, tgt in SPACES.values():
        try:
            found = align_all(
                {"a": words(src), "b": words(src), "c": words(tgt)},
                start="profiles",
                **{option: value for option, value in QUICK.items() if option in known},
            )
        except InputError:
            continue
        for alignment in found.alignments.values():
            assert_sound(alignment)


@pytest.mark.parametrize(("constraint", "learning_rate"), [("spectral", 1e6), ("none", 1e6), ("spectral", 1e-6)])
def test_long_vectors_and_long_steps(constraint: str, learning_rate: float) -> None:
    for name in ("large", "large for float32", "one huge", "huge"):
        for dtype in ("float32", "float64"):
            rate: dict[str, Any] = {"constraint": constraint, "learning_rate": learning_rate}
            refused_or_judged(SPACES[name], "rcsls", normalize="none", dtype=dtype, **rate)


def test_what_gromov_cannot_compare_is_explained() -> None:
    pot()
    with pytest.raises(InputError, match="the words of one side are all alike"):
        align(words(SAME), words(USUAL), "gromov", threads=1)
    with pytest.raises(InputError, match=r"no coupling was found with an entropic regularisation of .*: raise epsilon"):
        align(words(USUAL), words(OTHER), "gromov", epsilon=1e-300, threads=1)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_that_overflow_in_sums_are_refused(dtype: Literal["float32", "float64"]) -> None:
    with pytest.raises(InputError, match=rf"whose square is too large for {dtype}: scale the vectors down"):
        align(words(1e300 * USUAL), words(USUAL), dtype=dtype)
    long = 1e14 if dtype == "float32" else 1e150
    with pytest.raises(InputError, match=rf"too large for {dtype} without scaling: .* the step unit"):
        align(words(long * USUAL), words(USUAL), dtype=dtype, normalize="center")
    assert refused_or_judged((long * USUAL, USUAL), "identical", dtype=dtype) == "undecided"
