"""Methods without an algorithm of their own: each is a composition of the stages in `qwp.stages`."""

from __future__ import annotations

from dataclasses import replace

from qwp.arrays import Array
from qwp.judging.verdict import FULL_EFFORT, judge
from qwp.maps.procrustes import Maps
from qwp.methods.aligner import Aligner
from qwp.methods.settings import IDENTICAL, OPTIONAL, REQUIRED
from qwp.stages.anchored import AnchoredRefinement
from qwp.stages.init.belief_propagation import BeliefPropagation
from qwp.stages.init.best_of import BestOf
from qwp.stages.init.frank_wolfe import FrankWolfe
from qwp.stages.init.fused import FusedGromovWasserstein
from qwp.stages.init.given import GivenMatrix, IdenticalStrings, Identity, LexiconPairs, RidgeRegression
from qwp.stages.init.profiles import Profiles
from qwp.stages.pipeline import Choice, Pipeline
from qwp.stages.problem import View
from qwp.stages.refinement import CslsRefinement
from qwp.stages.wasserstein_procrustes import WassersteinProcrustes


def no_better_than_null(view: View, w: Array, seed: int, csls_k: int) -> bool:
    """Return whether the verdict on a map (d, d) of a view is "failed"."""
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
    )


INITIALIZERS = initializers(SEARCH)


class QWP(Aligner):
    """Wasserstein-Procrustes on coresets: search for an initial map, Algorithm 1, refinement by weighted CSLS pairs.

    The coresets are random batches by default: quantized ones cost more and are no more accurate (docs/results.md).
    `coreset="kmeans++"` or "lloyd" quantizes both spaces. `qwp.methods.presets.PAPER` has the settings of the paper.

    With `start="lexicon"` `fit` takes `lexicon=...`, with `start="matrix"` `start_matrix=...`; `lexicon:FILE` and
    `matrix:FILE.npy` below are for the command line.

    Examples:
        >>> import qwp
        >>> aligner = qwp.QWP(seed=1).fit("en.vec", "es.vec")  # doctest: +SKIP
        >>> aligner.alignment_.translate("house")  # doctest: +SKIP
    """

    method = "qwp"
    summary = "optimal transport between coresets (random, k-means++ or Lloyd), then refinement"
    paper = "Aboagye et al. 2022"
    supervision = OPTIONAL
    pipeline = Pipeline(init=INITIALIZERS, solve=WassersteinProcrustes(), refine=AnchoredRefinement())


class WP(Aligner):
    """Wasserstein-Procrustes with random batches, as `qwp` has by default; its options are those of `qwp`.

    Grave, Joulin, Berthet (2019), Unsupervised alignment of embeddings with Wasserstein Procrustes. Their published
    schedule is `schedule="grave", coreset_size=500, steps=5000, epochs=5, update="gradient", learning_rate=1.7,
    final_rate=1.0`.
    """

    method = "wp"
    summary = "optimal transport between random batches of words, then refinement"
    paper = "Grave, Joulin, Berthet 2019"
    supervision = OPTIONAL
    pipeline = QWP.pipeline


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


class LeastSquares(Aligner):
    """The matrix W that minimises |X W - Y|^2 + ridge |W|^2 over the pairs of a seed lexicon: equation 1 of the paper.

    Mikolov, Le, Sutskever (2013), Exploiting similarities among languages for machine translation.
    """

    method = "least-squares"
    summary = "linear map without constraint from a seed lexicon"
    paper = "Mikolov, Le, Sutskever 2013"
    supervision = REQUIRED
    pipeline = Pipeline(init=RidgeRegression())


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
