"""The settings of the paper as a composition, beside its Algorithms 1 and 2, and the presets derived from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from qwp import parameters
from qwp.errors import InputError, one_of
from qwp.methods.compositions import INITIALIZERS
from qwp.ot.coreset_source import Coresets
from qwp.ot.transport import Transport
from qwp.stages.init.frank_wolfe import FrankWolfe
from qwp.stages.pipeline import Pipeline
from qwp.stages.problem import Prepare
from qwp.stages.refinement import CslsRefinement
from qwp.stages.wasserstein_procrustes import WassersteinProcrustes

if TYPE_CHECKING:
    from qwp.methods.options import Options

METHOD = "qwp"
"""The method that presets belong to."""

PAPER = Pipeline(
    prepare=Prepare(normalize="unit,center", order="given"),
    init=FrankWolfe(words=2500),
    solve=WassersteinProcrustes(  # Algorithm 1
        epochs=5,  # for e = 1, ..., E
        steps=600,  # for t = 1, ..., T
        coresets=Coresets(  # Algorithm 2: draw m = k^2 log k points, then k anchor points by k-means++
            kind="kmeans++",
            size=2000,  # k
            weight_power=1.0,  # a, b: how many points each Voronoi cell holds
            sphere_centroids=False,
            bank_size=300,
            pairs_per_step=1,
        ),
        transport=Transport(  # Algorithm 2: C, then P = ApproxOT(C, a, b, epsilon)
            cost="sqeuclidean",
            solver="balanced",
            epsilon=0.05,
        ),
        update="normalized",  # update W by gradient descent and Procrustes
        learning_rate=0.8,
        final_rate=0.1,
        schedule="budget",
        train_words=20_000,
    ),
    refine=CslsRefinement(
        rounds=5,
        words=15_000,
        first_words=0,
        directions="mutual",
        weights="equal",
        search_map="orthogonal",
        map="orthogonal",
    ),
)
"""The method with the settings of the paper."""

REMARKS = {
    "normalize": "unit length normalized and centered",
    "order": "silent; files are taken to be in their order",
    "train_words": "the first 20k most frequent words",
    "start": "Q0 from the Frank-Wolfe algorithm",
    "start_words": "the first 2.5k words",
    "coreset": "k-means++ on m = k^2 log k draws",
    "coreset_size": "200 to 3000; 2000 where methods are compared",
    "weight_power": "each centre in proportion to its Voronoi cell",
    "sphere_centroids": "Lloyd moves a centre to the average of its points",
    "schedule": "one k in all E epochs of T steps (Algorithm 1); here every k sees as many points",
    "epochs": "E, not stated",
    "steps": "T, not stated; here three million points in all, for which every k converges (docs/results.md)",
    "pairs_per_step": "one pair of coresets a step",
    "bank_size": "new coresets at each step; here 300 a side, drawn once and combined freely",
    "update": "gradient descent; here of a length that is comparable between coresets",
    "learning_rate": "not stated; chosen on other pairs, as for each coreset (docs/results.md)",
    "final_rate": "not stated; constant in the script of Grave et al.",
    "cost": "squared Euclidean distance",
    "ot": "balanced, and unbalanced as a variant",
    "epsilon": "always 0.05",
    "refine": "five epochs",
    "refine_words": "not stated; as in the work it refers to",
    "refine_first_words": "not stated; as in the work it refers to",
    "refine_directions": "not stated; as in the work it refers to",
    "refine_weights": "plain Procrustes",
    "refine_map": "orthogonal",
    "map": "orthogonal",
}
"""What the paper says about each option of the preset, by flat name."""

# How each preset differs from `PAPER`.
VARIANTS: dict[str, dict[str, Any]] = {
    "paper": {},
    "paper-lloyd": {"coreset": "lloyd"},
    "paper-unbalanced": {"ot": "unbalanced"},
}
PRESETS = tuple(VARIANTS)


def preset(name: str) -> Options:
    """Return the options of a preset, for `make_aligner("qwp", **preset("paper"))`.

    Explicit options take precedence over them. A result records the values, not the name of the preset.
    """
    one_of(PRESETS, preset=name)
    start = next(name for name, each in INITIALIZERS.among.items() if type(each) is type(PAPER.init))
    values = {**parameters.values(PAPER), "start": start, **VARIANTS[name]}
    return cast("Options", {option: values[option] for option in REMARKS})


def check_method(name: str, method: str) -> None:
    """Raise an InputError for a preset with a method that it does not belong to."""
    if method != METHOD:
        raise InputError(
            f"the preset {name!r} has settings of the method {METHOD!r}, but the method is {method!r}: leave one of "
            "them out, or take coreset 'random' for 'wp' under the settings of the paper"
        )
