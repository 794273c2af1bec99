"""The options of `qwp align`, made from the parameters of all methods: one source for names and defaults.

Values come from three places: the defaults of the method, a TOML file, and flags; the later ones win.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import typer

from qwp import coreset, frequency, procrustes, refine, transport, wasserstein
from qwp.aligners import METHODS, multi, rcsls
from qwp.backend import BACKENDS, DTYPES
from qwp.errors import InputError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CORESETS, LOOP, START, REFINE, RUN = "Coresets", "Transport and loop", "Start", "Refinement", "Run"
OTHER = "Other methods"
# In the order of --help.
PANELS = (RUN, CORESETS, LOOP, START, REFINE, OTHER)
DEFAULT_METHOD = "qwp"

CHOICES: dict[str, tuple[str, ...]] = {
    "method": tuple(METHODS),
    "coreset": coreset.KINDS,
    "cost": transport.COSTS,
    "ot": transport.SOLVERS,
    "schedule": wasserstein.SCHEDULES,
    "refine_directions": refine.DIRECTIONS,
    "constraint": rcsls.CONSTRAINTS,
    "refine_weights": refine.WEIGHTS,
    "refine_map": procrustes.KINDS,
    "map": procrustes.KINDS,
    "strategy": multi.STRATEGIES,
    "order": frequency.ORDERS,
    "dtype": DTYPES,
    "backend": BACKENDS,
    "errors": ("raise", "skip"),
}

# Panel and help of each parameter; one that is missing here still becomes a flag.
HELP: dict[str, tuple[str, str]] = {
    "method": (RUN, f"{', '.join(METHODS)}; `qwp methods` says what each is."),
    "coreset": (CORESETS, "How each side is summarised: random, kmeans++ or lloyd."),
    "coreset_size": (CORESETS, "Points in a coreset."),
    "weight_power": (
        CORESETS,
        "Weights of coreset points: cell size to this power; 0 is equal, 1 is the paper's.",
    ),
    "sphere_centroids": (CORESETS, "Put Lloyd centroids back on the unit sphere."),
    "bank_size": (CORESETS, "Coresets drawn once per side; each has its turn before any comes again."),
    "epsilon": (LOOP, "Entropy of the transport, on the scale of --cost (gromov: of the mean square similarity)."),
    "cost": (LOOP, "sqeuclidean (as the paper) or dot (minus the inner product; half the scale)."),
    "ot": (LOOP, "Transport: balanced, unbalanced or exact."),
    "rho": (LOOP, "Strength of the marginals in unbalanced transport."),
    "sinkhorn_tol": (LOOP, "Sinkhorn stops when the marginals are met to this error."),
    "sinkhorn_max_iter": (LOOP, "Most Sinkhorn iterations of one step."),
    "schedule": (
        LOOP,
        "fixed (all epochs alike) or grave (each doubles the coreset and quarters the steps).",
    ),
    "epochs": (LOOP, "Epochs of the loop, or of the training."),
    "steps": (LOOP, "Steps of an epoch (grave: of the first; gromov: of a stage; rcsls: in all)."),
    "learning_rate": (LOOP, "Length of a step at the beginning (adversarial: of the discriminator's)."),
    "final_rate": (LOOP, "Share of the learning rate that is left at the last step."),
    "start": (
        START,
        "auto, profiles, frank-wolfe, identity, identical (shared strings), lexicon:FILE or matrix:FILE.npy; "
        "self-learning: profiles, identical or lexicon:FILE; dema: random, identity or profiles.",
    ),
    "start_words": (START, "Most frequent words that take part in the start."),
    "start_steps": (START, "Frank-Wolfe steps."),
    "start_epsilon": (START, "Entropy of each Frank-Wolfe step, relative to its gradient."),
    "lexicon": (START, "Seed lexicon for the methods that take one, see `qwp methods`; qwp and wp start from it."),
    "refine": (REFINE, "Refinement rounds at the end; 0 for none."),
    "refine_max_rank": (REFINE, "Most frequent words that take part in the refinement; 0 for all."),
    "refine_directions": (REFINE, "Pairs kept in the refinement: mutual, forward, backward or union."),
    "refine_first_rank": (REFINE, "Words in the first round, from which they grow to all in the last; 0 for all."),
    "refine_weights": (REFINE, "Weights of the pairs in the refinement: csls or equal."),
    "refine_map": (REFINE, "Where the rounds look for pairs: under reweighted or orthogonal maps."),
    "map": (REFINE, "The final map: reweighted (both sides whitened and re-weighted) or orthogonal (the source only)."),
    "reweight": (REFINE, "Power of the singular values that re-weights the maps; 0 for none."),
    "dewhiten": (REFINE, "How far the extent of each direction is restored in re-weighted maps: 0 not, 1 fully."),
    "csls_k": (REFINE, "Neighbourhood size of CSLS."),
    "train_vocab": (RUN, "Most frequent words that are trained on; all words are mapped."),
    "normalize": (RUN, "Steps of normalisation: a comma-separated list of unit and center, or none."),
    "order": (RUN, "Order of the words: auto (estimated where they are not sorted by frequency) or given."),
    "dtype": (RUN, "Precision of the computation: float32 or float64."),
    "pairs_per_step": (LOOP, "Pairs of coresets whose transport plans are averaged in one step."),
    "device": (RUN, "Where to compute: auto (a GPU if torch sees one), cpu, cuda or cuda:N."),
    "backend": (RUN, "Array library: auto (torch on a GPU, numpy on the CPU), numpy or torch."),
    "threads": (RUN, "Threads to use."),
    "max_memory": (RUN, "Bound the blocks of large computations to this many GiB."),
    "seed": (RUN, "Seed of all random choices."),
    "max_vocab": (RUN, "Read only the first N words of each file."),
    "errors": (RUN, "Damaged lines of the files: raise (stop) or skip (leave out and count)."),
    "words": (OTHER, "Most frequent words that are coupled."),
    "anneal": (OTHER, "Factor by which --epsilon falls from one stage to the next."),
    "stages": (OTHER, "Stages of falling entropy."),
    "batch_size": (OTHER, "Words of each side in one step."),
    "hidden_size": (OTHER, "Size of the two hidden layers of the discriminator."),
    "discriminator_steps": (OTHER, "Steps of the discriminator for each step of the mapper."),
    "mapper_rate": (OTHER, "Length of a step of the mapper at the beginning."),
    "rate_decay": (OTHER, "Factor of both rates from one epoch to the next."),
    "dropout": (OTHER, "Share of the inputs that the discriminator does not see."),
    "smoothing": (OTHER, "How far the labels of the discriminator are moved from 0 and 1."),
    "beta": (OTHER, "How strongly the map is pulled back to orthogonal after a step."),
    "criterion_words": (OTHER, "Most frequent words whose translations choose the best epoch."),
    "restarts": (OTHER, "Random starts that are trained side by side."),
    "components": (OTHER, "Most frequent words that are the Gaussians of a mixture."),
    "frequency_power": (OTHER, "Weights of the Gaussians: rank to minus this power; 0 is equal."),
    "sigma": (OTHER, "Standard deviation of the Gaussians at the beginning."),
    "final_sigma": (OTHER, "Standard deviation of the Gaussians at the end."),
    "back_translation": (OTHER, "Weight of coming back to the same word after both maps."),
    "identical": (OTHER, "Use words that both sides spell alike, too."),
    "identical_weight": (OTHER, "Weight of those words."),
    "epoch_steps": (OTHER, "Steps of an epoch of dema."),
    "keep": (OTHER, "Share of the similarities that the first dictionaries see; the others are dropped at random."),
    "keep_growth": (OTHER, "Factor by which --keep grows when there is no more progress."),
    "patience": (OTHER, "Steps without progress before --keep grows."),
    "tol": (OTHER, "Rise of the mean CSLS that counts as progress."),
    "max_steps": (OTHER, "Most steps of self-learning."),
    "strategy": (OTHER, "Several languages: hub (each onto TGT by itself) or joint (then all to each other)."),
    "joint_epochs": (OTHER, "Epochs in which the maps of all languages move together."),
    "joint_rate": (OTHER, "Length of a joint step, relative to --learning-rate."),
    "ridge": (OTHER, "Penalty on the size of the map."),
    "constraint": (OTHER, "The map: none (any matrix) or spectral (singular values at most one)."),
    "neighbour_words": (OTHER, "Most frequent words among which neighbours are sought."),
    "seed_pairs": (OTHER, "Use only the first N covered pairs of the seed lexicon."),
    "rounds": (OTHER, "Rounds of bootstrapping; 0 for none."),
    "growth": (OTHER, "Induced pairs that join the seeds in the first round; twice as many in the second, and so on."),
    "max_rank": (OTHER, "Most frequent words that take part in the dictionaries; 0 for all."),
}
METAVARS = {"lexicon": "FILE"}

# What a default of None stands for.
DECIDED = {
    "coreset_size": "a fifth of the words, 500 to 2000",
    "bank_size": "by the coreset size",
    "threads": "all",
    "max_memory": "32 MiB for each thread, 1 GiB on a GPU",
    "max_vocab": "all",
    "lexicon": "none",
    "seed_pairs": "all",
}


@dataclass(frozen=True)
class Parameter:
    """One setting: its name in Python, its type without None, and its default (None: decided by the data).

    by_method: the default in each method that has it; empty for a setting of the command itself.
    """

    name: str
    type: type
    default: Any
    by_method: Mapping[str, Any] = field(default_factory=dict)

    @property
    def flag(self) -> str:
        """As it is written on the command line."""
        return "--" + self.name.replace("_", "-")

    @property
    def panel(self) -> str:
        """Where --help shows it."""
        of_another = self.by_method and DEFAULT_METHOD not in self.by_method
        return HELP[self.name][0] if self.name in HELP else OTHER if of_another else RUN

    @property
    def help(self) -> str:
        """What it is."""
        return HELP[self.name][1] if self.name in HELP else f"Parameter {self.name} of the method."

    def shown(self, default: Any) -> str:
        """A default for people."""
        return str(default) if default is not None else DECIDED.get(self.name, "decided by the data")


def _without_none(hint: Any) -> type:
    if get_origin(hint) in (Union, UnionType):
        [hint] = [part for part in get_args(hint) if part is not NoneType]
    if not isinstance(hint, type):
        raise TypeError(f"{hint!r} cannot become a command line option")
    return hint


def parameters_of(method: str) -> dict[str, Parameter]:
    """The parameters of one method, with its own defaults."""
    aligner = METHODS[method]
    hints = get_type_hints(aligner)
    return {
        name: Parameter(name, _without_none(hints[name]), default, {method: default})
        for name, default in aligner().get_params().items()
    }


def _method_parameters() -> dict[str, Parameter]:
    """Those of all methods. A name means the same in each, so the first to have it says the type and the default."""
    found: dict[str, Parameter] = {}
    for method in METHODS:
        for name, own in parameters_of(method).items():
            first = found.get(name, own)
            found[name] = Parameter(name, first.type, first.default, {**first.by_method, **own.by_method})
    return found


METHOD_PARAMETERS = _method_parameters()
PARAMETERS: dict[str, Parameter] = {
    "method": Parameter("method", str, DEFAULT_METHOD),
    "lexicon": Parameter("lexicon", str, None),
    "max_vocab": Parameter("max_vocab", int, None),
    "errors": Parameter("errors", str, "raise"),
    **METHOD_PARAMETERS,
}


def flag_signature() -> list[inspect.Parameter]:
    """The parameters as keyword arguments that typer turns into flags; a flag that was not given is None."""
    return [
        inspect.Parameter(
            parameter.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[parameter.type | None, _option(parameter)],
        )
        for parameter in sorted(PARAMETERS.values(), key=lambda p: PANELS.index(p.panel))
    ]


def _option(parameter: Parameter) -> Any:
    flag = parameter.flag
    if parameter.type is bool:
        flag += f"/--no-{flag.removeprefix('--')}"
    return typer.Option(
        flag,
        help=f"{parameter.help} ({_defaults(parameter)})",
        metavar=METAVARS.get(parameter.name),
        rich_help_panel=parameter.panel,
        show_default=False,
    )


def _defaults(parameter: Parameter) -> str:
    """Its default, the methods that have another one, and, where not all have the parameter, which do."""
    has = list(parameter.by_method)
    lacks = [method for method in METHODS if method not in has]
    parts = []
    if has and lacks:
        parts.append(", ".join(has) if len(has) <= len(lacks) else f"not {', '.join(lacks)}")
    parts.append(f"default: {parameter.shown(parameter.default)}")
    others: dict[str, list[str]] = {}
    for method, default in parameter.by_method.items():
        if default != parameter.default:
            others.setdefault(parameter.shown(default), []).append(method)
    parts += [f"{', '.join(methods)}: {default}" for default, methods in others.items()]
    return "; ".join(parts)


# --------------------------------------------------------------------------- values


def resolve(flags: Mapping[str, Any], config: Path | None) -> dict[str, Any]:
    """The values the user set, flags before the file; all others keep the method's defaults."""
    values = read_config(config) if config is not None else {}
    values.update({name: flags[name] for name in PARAMETERS if flags.get(name) is not None})
    for name, value in values.items():
        choices = CHOICES.get(name)
        if choices is not None and value not in choices:
            raise InputError(f"{PARAMETERS[name].flag} {value} is not known; expected one of {', '.join(choices)}")
    return values


def check_options(method: str, names: Iterable[str]) -> None:
    """Refuse settings that belong to other methods."""
    strange = [PARAMETERS[name] for name in names if method not in PARAMETERS[name].by_method]
    if strange:
        owners = "; ".join(f"{p.flag} is an option of {', '.join(p.by_method)}" for p in strange)
        raise InputError(f"{owners}, not of {method}: leave it out (`qwp methods {method}` lists what it has)")


def read_config(path: Path) -> dict[str, Any]:
    """Settings from a TOML file; names may be written with - or _."""
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"the config file {path} cannot be read ({error.strerror}): check its name") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f'{path} is not TOML ({error}); expected lines like: coreset = "lloyd"') from error
    values: dict[str, Any] = {}
    for key, value in content.items():
        name = key.replace("-", "_")
        if name not in PARAMETERS:
            known = ", ".join(sorted(p.replace("_", "-") for p in PARAMETERS))
            raise InputError(f"{path} sets {key!r}, which is not a setting; expected some of {known}")
        if name in values:
            raise InputError(f"{path} sets {key!r} twice, once with - and once with _: keep one of them")
        values[name] = _typed(path, key, value, PARAMETERS[name].type)
    return values


def _typed(path: Path, key: str, value: Any, wanted: type) -> Any:
    if wanted is float and type(value) is int:
        return float(value)
    if type(value) is not wanted:
        kinds = {int: "a whole number", float: "a number", str: "a text in quotes", bool: "true or false"}
        expected = kinds.get(wanted, wanted.__name__)
        raise InputError(f"{path} sets {key} = {value!r} ({type(value).__name__}); expected {expected}")
    return value
