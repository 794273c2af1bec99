"""Refits beside a saved alignment: made once, found again, and never trusted where they do not fit."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import qwp
from qwp import Alignment, arrays
from qwp.judging.refits import refits
from qwp.maps.procrustes import Maps
from qwp.results import refitted
from qwp.results.kept import Origin
from tests.libraries import assert_close, assert_same
from tests.problems import planted


def test_they_are_made_once_and_then_found(tmp_path: Path) -> None:
    problem = planted(400, d=8, noise=0.2)
    given = (problem.src, problem.tgt, Maps(problem.w))
    origin = Origin(tmp_path, "a" * 64)
    made = refitted.kept_or_made(origin, *given, 10)
    assert [path.name for path in tmp_path.iterdir()] == ["lookup-refits-10.safetensors"]
    # Other spaces would have other refits: these were read.
    found = refitted.kept_or_made(origin, problem.tgt, problem.src, Maps(problem.w), 10)
    for one, other in zip(made, found, strict=True):
        assert_same(one.src, other.src)
        assert_same(one.tgt, other.tgt)


def test_they_are_the_refits_up_to_scale_and_precision() -> None:
    problem = planted(400, d=8, noise=0.2)
    given = (problem.src, problem.tgt, Maps(problem.w))
    for kept, made in zip(refitted.kept_or_made(None, *given, 10), refits(*given, csls_k=10), strict=True):
        assert made.tgt is not None
        for one, other in ((kept.src, made.src), (kept.tgt, made.tgt)):
            expected = arrays.to_numpy(other)
            assert_close(one, expected / np.abs(expected).max(), atol=1e-3)


def test_confidences_are_the_same_after_loading(tmp_path: Path) -> None:
    problem = planted(250, d=8, noise=0.3)
    lexicon = [(int(i), int(j)) for i, j in problem.gold[:60]]
    alignment = qwp.align(problem.src, problem.tgt, "procrustes", lexicon=lexicon, refine=2, threads=1)
    before = [pair.confidence for pair in alignment.induce(mutual_only=False)]
    folder = alignment.save(tmp_path / "saved")
    for _ in range(2):
        pairs = Alignment.load(folder).induce(mutual_only=False)
        np.testing.assert_allclose([pair.confidence for pair in pairs], before, rtol=1e-6)
    assert list(folder.glob("lookup-refits-*"))
