"""Flags of other tools and underscore spellings: taken where they mean the same here, explained where they do not.

Rewritten before parsing, so that --help shows one name each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from qwp.cli import console
from qwp.cli.help import HelpfulGroup
from qwp.errors import InputError

# Commands that take the command lines of other tools as they are.
UNCHANGED = ("muse", "vecmap")

# Another name, the same value, in any command.
ALIASES = {
    "--nmax": "--max-vocab",
    "--maxload": "--max-vocab",
    "--n-refinement": "--refine",
    "--reg": "--epsilon",
    "--csls": "--csls-k",
    "--neighborhood": "--csls-k",
    "--knn": "--csls-k",
    "--dico-max-rank": "--refine-words",
    "--bsz": "--coreset-size",
    "--nepoch": "--epochs",
    "--n-epochs": "--epochs",
    "--niter": "--steps",
    "--vocabulary-cutoff": "--train-words",
    "--dis-most-frequent": "--train-words",
}
# The same for one command.
RENAMED: dict[str, dict[str, str]] = {
    "evaluate": {
        "--dico-eval": "--lexicon",
        "--dico-test": "--lexicon",
        "--dictionary": "--lexicon",
        "-d": "--lexicon",
        "--src-emb": "--src",
        "--tgt-emb": "--tgt",
    }
}
# Without a value there, other words here.
SWITCHES: dict[str, dict[str, tuple[str, ...]]] = {
    "align": {
        "--unsupervised": (),
        "--init-unsupervised": (),
        "--identical": ("--start", "identical"),
        "--init-identical": ("--start", "identical"),
        "--orthogonal": ("--map", "orthogonal"),
        "--self-learning": ("--method", "self-learning"),
    }
}
# Flags that are true or false there: what each of them is here.
TRUTHS: dict[str, dict[bool, tuple[str, ...]]] = {"--cuda": {True: ("--device", "cuda"), False: ("--device", "cpu")}}
_TRUTHS = {"true": True, "on": True, "1": True, "yes": True, "false": False, "off": False, "0": False, "no": False}
# Another name, and other names of its values.
PRECISIONS = {"fp32": "float32", "fp64": "float64", "fp16": "float32"}
NORMALIZATIONS = {"renorm": "unit", "unit": "unit", "center": "center", "none": "none"}
_STRANGE_STEPS = {
    "unitdim": "unitdim of VecMap scales columns",
    "centeremb": "centeremb of VecMap subtracts from each vector its own mean",
}

_NAMED_BY_FILE = "not needed: languages are named by their files; leave it out"
_FILES = "not a flag here: give both files as arguments, `qwp align SRC TGT --out DIR`"
_SEED = "that is `--lexicon FILE` here, with a method that takes one, such as `--method procrustes`"
_OUT = "that is `--out DIR` here"
_EVALUATE = "that is `qwp evaluate --lexicon FILE`, with the folder of the alignment"
_ITERATIONS = "that is `--refine N` here for rounds of refinement, `--steps N` for steps of the loop"
_MAPS = "that is a part of `--map reweighted` here, with `--reweight X` and `--dewhiten X`"
_NO_COUNTERPART = "has no counterpart here: leave it out"
# What has another form here, by command.
EXPLAINED: dict[str, dict[str, str]] = {
    "align": {
        "--dico-eval": _EVALUATE,
        "--dico-test": _EVALUATE,
        "--validation": _EVALUATE,
        "--src-lang": _NAMED_BY_FILE,
        "--tgt-lang": _NAMED_BY_FILE,
        "--src-emb": _FILES,
        "--tgt-emb": _FILES,
        "--emb-dim": "not needed: the dimension is read from the files; leave it out",
        "--exp-path": _OUT,
        "--exp-name": _OUT,
        "--exp-id": _OUT,
        "--output": _OUT + "; `qwp export DIR --src-out FILE --tgt-out FILE` then writes the vectors",
        "--export": "that is `qwp export DIR --src-out FILE --tgt-out FILE` after the alignment",
        "--dico-train": _SEED,
        "--init-dictionary": _SEED,
        "-d": _SEED,
        "--dictionary": _SEED,
        "--supervised": "that is `--method procrustes --lexicon FILE` here",
        "--semi-supervised": "that is `--method self-learning --lexicon FILE` here",
        "--acl2018": "that is `--method self-learning` here",
        "--emnlp2016": "that is `--method procrustes --normalize unit,center --lexicon FILE` here",
        "--aaai2018": "that is `--method procrustes --lexicon FILE` here",
        "--acl2017": "that is near `--method self-learning --map orthogonal --start identical` here",
        "--acl2017-seed": "that is `--method self-learning --map orthogonal --lexicon FILE` here",
        "--init-numerals": "that is near `--start identical` here",
        "--num-iter": _ITERATIONS,
        "--lr": "that is `--learning-rate X` here",
        "--map-beta": "that is `--beta X` here, with `--method adversarial`",
        "--adversarial": "that is `--method adversarial` here",
        "--whiten": _MAPS,
        "--src-reweight": _MAPS,
        "--trg-reweight": _MAPS,
        "--src-dewhiten": _MAPS,
        "--trg-dewhiten": _MAPS,
        "--unconstrained": "that is `--method least-squares --lexicon FILE` here",
        "--stochastic-initial": "that is `--keep X` here, with `--method self-learning`",
        "--stochastic-multiplier": "that is `--keep-growth X` here, with `--method self-learning`",
        "--stochastic-interval": "that is `--patience N` here, with `--method self-learning`",
        "--threshold": "that is `--tol X` here, with `--method self-learning`",
        "--dico-method": "that is `--csls-k N` here",
        "--dico-build": "that is `--refine-directions` here: mutual, forward, backward or union",
        "--dim-reduction": _NO_COUNTERPART,
        "--maxneg": "that is `--train-words N` here, with `--method rcsls`",
        "--sgd": _NO_COUNTERPART,
        "--verbose": "not needed: progress is always shown, and --quiet leaves it out",
        "--log": "not needed: what was measured on the way is saved in DIR; leave it out",
    },
    "evaluate": {
        "--src-lang": _NAMED_BY_FILE,
        "--tgt-lang": _NAMED_BY_FILE,
        "--emb-dim": "not needed: the dimension is read from the files; leave it out",
        "--dico-train": "that is `qwp align SRC TGT --lexicon FILE --out DIR`",
        "--exp-path": "not needed: the scores go to stdout, or to `--out FILE`",
        "--exp-name": "not needed: the scores go to stdout, or to `--out FILE`",
        "--crosslingual": "not needed: both files are taken to be in one space; leave it out",
    },
}


@dataclass
class Understood:
    """A command line in the words of this program, and remarks about what was changed."""

    args: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def command_of(args: Sequence[str]) -> str | None:
    """The first argument that is no option."""
    return next((argument for argument in args if not argument.startswith("-")), None)


def understand(args: Sequence[str]) -> Understood:
    """The arguments with every known spelling of another tool replaced, up to a lone `--`.

    An InputError says what a flag is called here, where it cannot simply be replaced.
    """
    command = command_of(args) or ""
    if command in UNCHANGED:
        return Understood(list(args))
    switches = dict(SWITCHES.get(command, {}))
    if _method_of(args) == "dema":  # the one method with an option of this name
        switches.pop("--identical", None)
    result, rest = Understood(), list(args)
    while rest:
        argument = rest.pop(0)
        if argument == "--":
            result.args += [argument, *rest]
            break
        result.args += _replaced(command, switches, argument, rest, result.notes)
    return result


def _method_of(args: Sequence[str]) -> str | None:
    """Return the value of the last `--method` before a lone `--`; None without one."""
    options = list(args)[: list(args).index("--")] if "--" in args else list(args)
    method = None
    for place, argument in enumerate(options):
        flag, equals, value = argument.partition("=")
        if flag == "--method":
            method = value if equals else "".join(options[place + 1 : place + 2])
    return method


Switches = Mapping[str, tuple[str, ...]]


def _replaced(command: str, switches: Switches, argument: str, rest: list[str], notes: list[str]) -> list[str]:
    """What stands for one argument. rest: what follows it, from which its values are taken."""
    if not argument.startswith("-") or argument == "-":
        return [argument]
    typed, equals, value = argument.partition("=")
    flag = typed.replace("_", "-") if typed.startswith("--") else typed
    if flag in EXPLAINED.get(command, {}):
        raise InputError(f"{typed}: {EXPLAINED[command][flag]}")
    values, following = [value] if equals else [], list(rest)
    new = list(switches[flag]) if flag in switches else _other_words(command, flag, values, rest)
    if new is None:
        name = RENAMED.get(command, {}).get(flag) or ALIASES.get(flag, flag)
        if name != typed:
            notes.append(f"{typed} is {name} here")
        return [name + equals + value]
    old = [typed, *(values or following[: len(following) - len(rest)])]
    if new != old:
        notes.append(f"{' '.join(old)} is {' '.join(new) or 'the default'} here")
    return new


def _other_words(command: str, flag: str, values: list[str], rest: list[str]) -> list[str] | None:
    """What stands for a flag and its values, where it is more than another name; None where it is not."""
    if flag in TRUTHS:
        if not values and rest and rest[0].lower() in _TRUTHS:
            values = [rest.pop(0)]
        return list(TRUTHS[flag][_TRUTHS.get("".join(values).lower(), True)])
    if flag == "--precision" and command == "align":
        asked = values[0] if values else (rest.pop(0) if rest else "")
        return ["--dtype", PRECISIONS.get(asked, asked)]
    if flag in ("--normalize", "--normalize-embeddings") and command == "align":
        return _normalize(values, rest)
    return None


def _normalize(values: list[str], rest: list[str]) -> list[str]:
    """The steps, which VecMap separates by blanks and MUSE by commas, in the names of this program."""
    steps = values or ([rest.pop(0)] if rest else [])
    if not steps:
        return ["--normalize"]  # the parser says that its value is missing
    while rest and not values and rest[0] in (*NORMALIZATIONS, *_STRANGE_STEPS):
        steps.append(rest.pop(0))
    return ["--normalize", ",".join(normalization_step(step) for step in ",".join(steps).split(","))]


def as_truth(text: str) -> bool:
    """The value of a flag that is true or false. A ValueError for anything else."""
    if text.lower() not in _TRUTHS:
        raise ValueError(text)
    return _TRUTHS[text.lower()]


def normalization_step(name: str) -> str:
    """A step of VecMap or MUSE by its name here; one that is not known is left to the parameter itself."""
    if name in _STRANGE_STEPS:
        raise InputError(
            f"the step {name} of normalize is not known: {_STRANGE_STEPS[name]}, which has no counterpart here; "
            "expected a comma-separated list of unit and center, or none"
        )
    return NORMALIZATIONS.get(name, name)


class AliasGroup(HelpfulGroup):
    """The group of commands, which understands flags of other tools."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Understand, then parse as usual."""
        if ctx.resilient_parsing:  # a command line that is being completed
            return super().parse_args(ctx, args)
        understood = understand(args)
        if not {"--quiet", "-q"} & set(args):
            for text in understood.notes:
                console.note(f"note: {text}")
        return super().parse_args(ctx, understood.args)
