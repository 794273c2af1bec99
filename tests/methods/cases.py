"""Helpers of the method tests: lexicons of planted problems, scores, and normalised vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from qwp import Alignment, Embeddings, Lexicon, arrays
from qwp.methods import Aligner
from qwp.stages.problem import Prepare, Problem
from tests.libraries import host
from tests.problems import Array, Planted


def seeds(n: int, first: int = 0) -> Lexicon:
    """True pairs of `planted_embeddings`: s<i> means t<i>."""
    return Lexicon(tuple((f"s{i}", f"t{i}") for i in range(first, first + n)))


def p1(aligner: Aligner) -> float:
    """Share of the source words s<i> whose best translation by CSLS is t<i>, or s<i> where they are spelt alike."""
    found = aligner.alignment_.translate(aligner.alignment_.src.words, k=1)
    return float(np.mean([best[0].word[1:] == word[1:] for word, best in found.items()]))


def normalised(alignment: Alignment) -> tuple[Array, Array]:
    """Both sides as the method saw them, in the order in which they were read: (n, d) and (m, d)."""
    dtype = alignment.src_map.dtype
    x, y = (
        host(side.normalization.apply(side.space.vectors.astype(dtype)))
        for side in (alignment.src_side, alignment.tgt_side)
    )
    return x, y


def matched(alignment: Alignment, lexicon: Lexicon) -> tuple[Array, Array]:
    """The normalised vectors of the pairs of a lexicon that both sides cover, (p, d) each."""
    x, y = normalised(alignment)
    covered = [
        (alignment.src.index[a], alignment.tgt.index[b])
        for a, b in lexicon
        if a in alignment.src and b in alignment.tgt
    ]
    src, tgt = np.array(covered).T
    return x[src], y[tgt]


def problem_of(planted: Planted, **options: Any) -> Problem:
    """Return the problem of a fit of a planted rotation, whose rows are taken as they are; words as in `seeds`."""
    names = np.full(len(planted.tgt), -1)
    names[planted.gold[:, 1]] = planted.gold[:, 0]
    src = Embeddings([f"s{i}" for i in range(len(planted.src))], planted.src)
    tgt = Embeddings([f"t{i}" if i >= 0 else f"extra{j}" for j, i in enumerate(names)], planted.tgt)
    prepare = Prepare(normalize="none", order="given", dtype=planted.src.dtype.name)
    return prepare.problem(prepare.spaces([src, tgt], arrays.HOST, 0), **{"seed": 0, **options})
