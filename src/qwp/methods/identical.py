"""Identical strings as the seed, then refinement (Smith et al. 2017; Artetxe et al. 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qwp.arrays import Array
from qwp.maps.pairs import from_pairs
from qwp.maps.procrustes import Maps
from qwp.methods.refined import RefinedAligner
from qwp.methods.run import Run, timed
from qwp.methods.supervision import IDENTICAL


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

    def find_maps(self, run: Run) -> Maps:
        """Procrustes on the identical strings, then the rounds."""
        return self.refined_from(run, lambda: self._initial_map(run))

    def _initial_map(self, run: Run) -> Array:
        with timed([run], "start"):
            return from_pairs(run.x, run.y, *run.identical_rows())
