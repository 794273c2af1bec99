"""The small plan of a picture: a known match shows as a diagonal, no match does not."""

from __future__ import annotations

import numpy as np

from qwp.experiments.packing import unpack
from qwp.experiments.sketch import CENTRES, LEVELS, sketch_plan
from qwp.judging.evaluation import AlignedFiles
from qwp.spaces.embeddings import Embeddings


def spaces(*, matched: bool) -> AlignedFiles:
    """40 clouds of 20 words on each side; the target side is the same, or of other clouds."""
    rng = np.random.default_rng(0)
    clouds = np.repeat(rng.normal(size=(40, 50)), 20, axis=0)
    other = clouds if matched else np.repeat(rng.normal(size=(40, 50)), 20, axis=0)
    sides = [cloud + 0.05 * rng.normal(size=cloud.shape) for cloud in (clouds, other)]
    src, tgt = (Embeddings([f"{name}{i}" for i in range(800)], x) for name, x in zip("st", sides, strict=True))
    return AlignedFiles(src, tgt)


def off_the_diagonal(aligned: AlignedFiles) -> float:
    """How far the mass of the plan is from the diagonal on average, in rows."""
    found = sketch_plan(aligned)
    plan = unpack(found["plan"]).reshape(len(found["src"]), len(found["tgt"]))
    assert (plan.max(), len(found["src"])) == (LEVELS, CENTRES)
    rows, columns = np.indices(plan.shape)
    return float((plan * np.abs(rows - columns)).sum() / plan.sum())


def test_a_plan_that_matches_shows_a_diagonal() -> None:
    assert off_the_diagonal(spaces(matched=True)) < 3 < off_the_diagonal(spaces(matched=False))


def test_centres_are_named_by_words_of_their_side() -> None:
    found = sketch_plan(spaces(matched=True))
    assert all(word.startswith("s") for word in found["src"])
    assert all(word.startswith("t") for word in found["tgt"])
    assert sketch_plan(spaces(matched=True)) == found


def test_fewer_words_than_centres() -> None:
    rng = np.random.default_rng(0)
    src, tgt = (Embeddings(["a", "b", "c"], rng.normal(size=(3, 4))) for _ in range(2))
    assert len(sketch_plan(AlignedFiles(src, tgt))["src"]) == 3
