"""A small alignment with known translations, for reports."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from qwp.judging.estimate import empty_estimate
from qwp.judging.verdict import SUCCEEDED, Quality
from qwp.results.alignment import Alignment
from qwp.results.provenance import InputRecord, Provenance
from qwp.results.sides import AlignedSide
from qwp.spaces.embeddings import Embeddings
from qwp.spaces.lexicon import Lexicon
from qwp.spaces.normalization import Normalization
from qwp.stages.agreement import Agreement
from tests.problems import planted

WORDS = 300


@pytest.fixture(scope="session")
def alignment() -> Alignment:
    """300 words a side; source word `word<i>` means target word `wort<i>`, most of which are nearest to each other."""
    made = planted(WORDS, d=16, noise=0.05, seed=3)
    order = np.argsort(made.gold[:, 0])
    src = Embeddings([f"word{i}" for i in range(WORDS)], made.src.astype(np.float32)).named("en")
    tgt = Embeddings([f"wort{i}" for i in range(WORDS)], made.tgt[made.gold[order, 1]].astype(np.float32)).named("de")
    plain = Normalization((), ())
    found = Agreement(200, 0.7, 0.3)
    scale = replace(empty_estimate(16).scale, agreement=0.8, succeeded=True, lead=0.2, lead_spread=0.1)
    estimate = replace(empty_estimate(16), scale=scale)
    quality = Quality(SUCCEEDED, "Succeeded.", 2.0, WORDS, found, found, found, found, estimate=estimate)
    provenance = Provenance(
        "0.2.0", "qwp", {"csls_k": 10}, 0, "numpy", InputRecord.of(src), InputRecord.of(tgt), {"loop": 1.0}
    )
    history = [{"stage": "loop", "step": step, "objective": 1.0 / step} for step in (1, 2, 3)]
    sides = AlignedSide(src, made.w.astype(np.float32), plain), AlignedSide(tgt, None, plain)
    return Alignment(*sides, quality=quality, provenance=provenance, history=history)


@pytest.fixture(scope="session")
def lexicon() -> Lexicon:
    """The correct translations of the first 200 words, and of a word that is not in the vocabulary."""
    return Lexicon((*((f"word{i}", f"wort{i}") for i in range(200)), ("nothing", "nichts")))
