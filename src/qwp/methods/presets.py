"""Settings by name: those of the paper, where it states them, and what was chosen where it is silent.

A preset is a set of options of the method `qwp`. Whatever else is said wins over it, and a result records the values
themselves, not the name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from qwp.checks import one_of
from qwp.errors import InputError

if TYPE_CHECKING:
    from qwp.methods.options import Options

METHOD = "qwp"
"""The method that presets belong to."""


@dataclass(frozen=True)
class Chosen:
    """The value of a parameter, and what the paper says about it."""

    value: Any
    says: str


# In the order in which a run meets them. m = k^2 log k draws for a coreset are no parameter: they are always made.
PAPER: dict[str, Chosen] = {
    "normalize": Chosen("unit,center", "unit length normalized and centered"),
    "order": Chosen("given", "silent; files are taken to be in their order"),
    "train_words": Chosen(20_000, "the first 20k most frequent words"),
    "start": Chosen("frank-wolfe", "Q0 from the Frank-Wolfe algorithm"),
    "start_words": Chosen(2500, "the first 2.5k words"),
    "coreset": Chosen("kmeans++", "k-means++ on m = k^2 log k draws"),
    "coreset_size": Chosen(2000, "200 to 3000; 2000 where methods are compared"),
    "weight_power": Chosen(1.0, "each centre in proportion to its Voronoi cell"),
    "sphere_centroids": Chosen(False, "Lloyd moves a centre to the average of its points"),
    "schedule": Chosen("fixed", "one k in all E epochs of T steps (Algorithm 1)"),
    "epochs": Chosen(5, "E, not stated"),
    "steps": Chosen(60, "T, not stated; 300 steps see as many pairs of coresets as the default does"),
    "pairs_per_step": Chosen(1, "one pair of coresets a step"),
    "bank_size": Chosen(300, "new coresets at each step: as many as there are steps"),
    "learning_rate": Chosen(2.0, "not stated; the script of Grave et al. has what is 1.7 here in 300 dimensions"),
    "final_rate": Chosen(1.0, "not stated; constant in the script of Grave et al."),
    "cost": Chosen("sqeuclidean", "squared Euclidean distance"),
    "ot": Chosen("balanced", "balanced, and unbalanced as a variant"),
    "epsilon": Chosen(0.05, "always 0.05"),
    "refine": Chosen(5, "five epochs"),
    "refine_words": Chosen(15_000, "not stated; as in the work it refers to"),
    "refine_first_words": Chosen(0, "not stated; as in the work it refers to"),
    "refine_directions": Chosen("mutual", "not stated; as in the work it refers to"),
    "refine_weights": Chosen("equal", "plain Procrustes"),
    "refine_map": Chosen("orthogonal", "orthogonal"),
    "map": Chosen("orthogonal", "orthogonal"),
}
# What differs in each preset from the first.
VARIANTS: dict[str, dict[str, Any]] = {
    "paper": {},
    "paper-lloyd": {"coreset": "lloyd"},
    "paper-unbalanced": {"ot": "unbalanced"},
}
PRESETS = tuple(VARIANTS)


def preset(name: str) -> Options:
    """The options of a preset: `make_aligner("qwp", **preset("paper"))`."""
    one_of(PRESETS, preset=name)
    return cast("Options", {key: chosen.value for key, chosen in PAPER.items()} | VARIANTS[name])


def check_method(name: str, method: str) -> None:
    """Refuse a preset together with a method that it does not belong to."""
    if method != METHOD:
        raise InputError(
            f"the preset {name!r} has settings of the method {METHOD!r}, but the method is {method!r}: leave one of "
            "them out, or take coreset 'random' for 'wp' under the settings of the paper"
        )
