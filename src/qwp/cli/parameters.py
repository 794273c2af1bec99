"""The options of `qwp align`, made from the method's own parameters: one source for names and defaults.

Values come from three places: the defaults of the method, a TOML file, and flags; the later ones win.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import typer

from qwp import coreset, refine, transport, wasserstein
from qwp.aligners import METHODS, QWP
from qwp.backend import BACKENDS, DTYPES
from qwp.errors import InputError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

CORESETS, LOOP, START, REFINE, RUN = "Coresets", "Transport and loop", "Start", "Refinement", "Run"

CHOICES: dict[str, tuple[str, ...]] = {
    "method": tuple(METHODS),
    "coreset": coreset.KINDS,
    "cost": transport.COSTS,
    "ot": transport.SOLVERS,
    "schedule": wasserstein.SCHEDULES,
    "refine_directions": refine.DIRECTIONS,
    "dtype": DTYPES,
    "backend": BACKENDS,
    "errors": ("raise", "skip"),
}

# Help and panel of each parameter; one that is missing here still becomes a flag.
HELP: dict[str, tuple[str, str]] = {
    "method": (RUN, "qwp (quantized Wasserstein-Procrustes) or wp (random batches)."),
    "coreset": (CORESETS, "How each side is summarised: random, kmeans++ or lloyd."),
    "coreset_size": (CORESETS, "Points in a coreset."),
    "weight_power": (
        CORESETS,
        "Weights of coreset points: cell size to this power; 0 is equal, 1 is the paper's.",
    ),
    "sphere_centroids": (CORESETS, "Put Lloyd centroids back on the unit sphere."),
    "bank_size": (CORESETS, "Coresets drawn once per side; each has its turn before any comes again."),
    "epsilon": (LOOP, "Entropy of the transport, on the scale of --cost."),
    "cost": (LOOP, "sqeuclidean (as the paper) or dot (minus the inner product; half the scale)."),
    "ot": (LOOP, "Transport: balanced, unbalanced or exact."),
    "rho": (LOOP, "Strength of the marginals in unbalanced transport."),
    "sinkhorn_tol": (LOOP, "Sinkhorn stops when the marginals are met to this error."),
    "sinkhorn_max_iter": (LOOP, "Most Sinkhorn iterations of one step."),
    "schedule": (
        LOOP,
        "fixed (all epochs alike) or grave (each doubles the coreset and quarters the steps).",
    ),
    "epochs": (LOOP, "Epochs of the loop."),
    "steps": (LOOP, "Steps of the (first) epoch."),
    "learning_rate": (LOOP, "How far each step moves the map."),
    "final_rate": (LOOP, "Share of the learning rate that is left at the last step."),
    "start": (
        START,
        "auto, profiles, frank-wolfe, identity, identical (shared strings), lexicon:FILE or matrix:FILE.npy.",
    ),
    "start_words": (START, "Most frequent words that take part in the profiles and Frank-Wolfe starts."),
    "start_steps": (START, "Frank-Wolfe steps."),
    "start_epsilon": (START, "Entropy of each Frank-Wolfe step, relative to its gradient."),
    "refine": (REFINE, "Refinement rounds after the loop; 0 for none."),
    "refine_max_rank": (REFINE, "Most frequent words that take part in the refinement; 0 for all."),
    "refine_directions": (REFINE, "Pairs kept in the refinement: mutual, forward, backward or union."),
    "csls_k": (REFINE, "Neighbourhood size of CSLS."),
    "train_vocab": (RUN, "Most frequent words that the loop trains on; all words are mapped."),
    "normalize": (RUN, "Steps of normalisation: a comma-separated list of unit and center, or none."),
    "dtype": (RUN, "Precision of the computation: float32 or float64."),
    "pairs_per_step": (LOOP, "Pairs of coresets whose transport plans are averaged in one step."),
    "device": (RUN, "Where to compute: auto (a GPU if torch sees one), cpu, cuda or cuda:N."),
    "backend": (RUN, "Array library: auto (torch on a GPU, numpy on the CPU), numpy or torch."),
    "threads": (RUN, "Threads to use."),
    "max_memory": (RUN, "Bound the blocks of large computations to this many GiB."),
    "seed": (RUN, "Seed of all random choices."),
    "max_vocab": (RUN, "Read only the first N words of each file."),
    "errors": (RUN, "Damaged lines of the files: raise (stop) or skip (leave out and count)."),
}

# What a default of None stands for.
DECIDED = {
    "coreset_size": "a fifth of the words, 500 to 2000",
    "bank_size": "by the coreset size",
    "threads": "all",
    "max_memory": "32 MiB for each thread, 1 GiB on a GPU",
    "max_vocab": "all",
}


@dataclass(frozen=True)
class Parameter:
    """One setting: its name in Python, its type without None, and its default (None: decided by the data)."""

    name: str
    type: type
    default: Any

    @property
    def flag(self) -> str:
        """As it is written on the command line."""
        return "--" + self.name.replace("_", "-")


def _without_none(hint: Any) -> type:
    if get_origin(hint) in (Union, UnionType):
        [hint] = [part for part in get_args(hint) if part is not NoneType]
    if not isinstance(hint, type):
        raise TypeError(f"{hint!r} cannot become a command line option")
    return hint


def _method_parameters() -> dict[str, Parameter]:
    hints = get_type_hints(QWP.__init__)
    return {
        name: Parameter(name, _without_none(hints[name]), parameter.default)
        for name, parameter in inspect.signature(QWP.__init__).parameters.items()
        if name != "self"
    }


METHOD_PARAMETERS = _method_parameters()
PARAMETERS: dict[str, Parameter] = {
    "method": Parameter("method", str, "qwp"),
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
        for parameter in PARAMETERS.values()
    ]


def _option(parameter: Parameter) -> Any:
    panel, text = HELP.get(parameter.name, (RUN, f"Parameter {parameter.name} of the method."))
    default = parameter.default if parameter.default is not None else DECIDED.get(parameter.name, "decided by the data")
    text += f" (default: {default})"
    flag = parameter.flag
    if parameter.type is bool:
        flag += f"/--no-{flag.removeprefix('--')}"
    return typer.Option(flag, help=text, rich_help_panel=panel, show_default=False)


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
