"""Identical strings as the seed, then refinement (Smith et al. 2017; Artetxe et al. 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qwp import start
from qwp.aligners.base import IDENTICAL, RefinedAligner, Run, timed
from qwp.backend import Array


@dataclass(kw_only=True, eq=False, repr=False)
class Identical(RefinedAligner):
    """Procrustes on the words that both vocabularies spell alike (names, numbers, loans), then CSLS refinement.

    Smith et al. (2017), Offline bilingual word vectors; Artetxe et al. (2017), Learning bilingual word embeddings with
    (almost) no bilingual data.
    """

    method: ClassVar[str] = "identical"
    summary: ClassVar[str] = "identical strings as the seed, then refinement"
    paper: ClassVar[str] = "Smith et al. 2017; Artetxe et al. 2017"
    supervision: ClassVar[str] = IDENTICAL

    def _first_map(self, run: Run) -> Array:
        with timed([run], "start"):
            return start.from_pairs(run.x, run.y, *run.identical_rows())
