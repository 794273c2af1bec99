"""Identical strings as the seed, then refinement (Smith et al. 2017; Artetxe et al. 2017)."""

from __future__ import annotations

from qwp.methods.aligner import Aligner
from qwp.methods.supervision import IDENTICAL
from qwp.stages.init.given import IdenticalStrings
from qwp.stages.pipeline import Pipeline
from qwp.stages.refinement import CslsRefinement


class Identical(Aligner):
    """Procrustes on the words that both vocabularies spell alike (names, numbers, loans), then CSLS refinement.

    Smith et al. (2017), Offline bilingual word vectors; Artetxe et al. (2017), Learning bilingual word embeddings with
    (almost) no bilingual data.
    """

    method = "identical"
    summary = "identical strings as the seed, then refinement"
    paper = "Smith et al. 2017; Artetxe et al. 2017"
    supervision = IDENTICAL
    pipeline = Pipeline(init=IdenticalStrings(), refine=CslsRefinement())
