"""The orthogonal map from a seed lexicon (PROC): Xing et al. 2015, Artetxe et al. 2016, Schoenemann 1966."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qwp.arrays import Array
from qwp.maps.pairs import from_pairs
from qwp.maps.procrustes import Maps
from qwp.methods.refined import RefinedAligner
from qwp.methods.run import Run, timed
from qwp.methods.supervision import REQUIRED


@dataclass(kw_only=True, eq=False, repr=False)
class Procrustes(RefinedAligner):
    """The orthogonal W that minimises |X W - Y| over the pairs of a seed lexicon: equation 2 of the paper.

    Schoenemann (1966) solved it; Xing et al. (2015) and Artetxe et al. (2016) brought it, with vectors of unit length
    and centred, to word embeddings. `refine` rounds of CSLS refinement may follow; the plain method has none.
    """

    method: ClassVar[str] = "procrustes"
    summary: ClassVar[str] = "orthogonal map from a seed lexicon"
    paper: ClassVar[str] = "Schoenemann 1966; Xing et al. 2015; Artetxe et al. 2016"
    supervision: ClassVar[str] = REQUIRED

    refine: int = 0

    def find_maps(self, run: Run) -> Maps:
        """Procrustes on the lexicon, then the rounds, if any."""
        return self.refined_from(run, lambda: self._initial_map(run))

    def _initial_map(self, run: Run) -> Array:
        with timed([run], "start"):
            return from_pairs(run.x, run.y, *run.lexicon_rows())
