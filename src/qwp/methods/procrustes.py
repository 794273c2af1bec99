"""The orthogonal map from a seed lexicon (PROC): Xing et al. 2015, Artetxe et al. 2016, Schoenemann 1966."""

from __future__ import annotations

from qwp.methods.aligner import Aligner
from qwp.methods.supervision import REQUIRED
from qwp.stages.init.given import LexiconPairs
from qwp.stages.pipeline import Pipeline
from qwp.stages.refinement import CslsRefinement


class Procrustes(Aligner):
    """The orthogonal W that minimises |X W - Y| over the pairs of a seed lexicon: equation 2 of the paper.

    Schoenemann (1966) solved it; Xing et al. (2015) and Artetxe et al. (2016) brought it, with vectors of unit length
    and centred, to word embeddings. `refine` rounds of CSLS refinement may follow; the plain method has none.
    """

    method = "procrustes"
    summary = "orthogonal map from a seed lexicon"
    paper = "Schoenemann 1966; Xing et al. 2015; Artetxe et al. 2016"
    supervision = REQUIRED
    pipeline = Pipeline(init=LexiconPairs(), refine=CslsRefinement(rounds=0))
