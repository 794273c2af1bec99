"""Quantized Wasserstein-Procrustes (Aboagye et al., AMTA 2022): initial map, loop over coresets, CSLS refinement."""

from __future__ import annotations

from dataclasses import replace

from qwp.arrays import Array
from qwp.judging.verdict import FULL_EFFORT, judge
from qwp.maps.procrustes import Maps
from qwp.methods.aligner import Aligner
from qwp.methods.supervision import OPTIONAL
from qwp.stages.anchored import AnchoredRefinement
from qwp.stages.init.belief_propagation import BeliefPropagation
from qwp.stages.init.best_of import BestOf
from qwp.stages.init.frank_wolfe import FrankWolfe
from qwp.stages.init.fused import FusedGromovWasserstein
from qwp.stages.init.given import GivenMatrix, IdenticalStrings, Identity, LexiconPairs
from qwp.stages.init.profiles import Profiles
from qwp.stages.pipeline import Choice, Pipeline
from qwp.stages.problem import View
from qwp.stages.wasserstein_procrustes import WassersteinProcrustes


def no_better_than_null(view: View, w: Array, seed: int, csls_k: int) -> bool:
    """Return whether the verdict on a map of a view is that it failed."""
    effort = replace(FULL_EFFORT, estimated=False)
    return judge(view.x, view.y, Maps(w), seed=seed, csls_k=csls_k, effort=effort).failed


SEARCH = BestOf()


def initializers(search: BestOf) -> Choice:
    """Return the choice among all initializers, with a search as its default."""
    return Choice(
        start="auto",
        among={
            "auto": replace(search, fallback=IdenticalStrings(), rejects=no_better_than_null),
            "unsupervised": search,
            "profiles": Profiles(),
            "belief-propagation": BeliefPropagation(),
            "fused": FusedGromovWasserstein(),
            "frank-wolfe": FrankWolfe(),
            "identity": Identity(),
            "identical": IdenticalStrings(),
            "lexicon": LexiconPairs(),
            "matrix": GivenMatrix(),
        },
        help="auto, unsupervised (auto without shared strings as a fallback), profiles, belief-propagation, "
        "fused, frank-wolfe, identity, identical (shared strings), lexicon:FILE or matrix:FILE.npy.",
    )


INITIALIZERS = initializers(SEARCH)


class QWP(Aligner):
    """Quantized Wasserstein-Procrustes. docs/accuracy.md says what each part of it brings.

    With `start="lexicon"` `fit` takes `lexicon=...`, with `start="matrix"` `start_matrix=...`; `lexicon:FILE` and
    `matrix:FILE.npy` below are for the command line.

    Examples:
        >>> import qwp
        >>> aligner = qwp.QWP(seed=1).fit("en.vec", "es.vec")  # doctest: +SKIP
        >>> aligner.alignment_.translate("house")  # doctest: +SKIP
    """

    method = "qwp"
    summary = "optimal transport between quantized spaces (k-means++ or Lloyd), then refinement"
    paper = "Aboagye et al. 2022"
    supervision = OPTIONAL
    takes_matrix = True
    pipeline = Pipeline(init=INITIALIZERS, solve=WassersteinProcrustes(), refine=AnchoredRefinement())
