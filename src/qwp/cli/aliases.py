"""Options of MUSE, VecMap and fastText: accepted if they mean the same here, explained otherwise.

An accepted option is another name of an option of qwp. It is replaced before the arguments are parsed, so that --help
shows one name each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from qwp.cli import console
from qwp.cli.help import HelpfulCommand
from qwp.errors import InputError
from qwp.showing import terminal

PRECISIONS = {"fp32": "float32", "fp64": "float64", "fp16": "float32"}
NORMALIZATIONS = {"renorm": "unit", "unit": "unit", "center": "center", "none": "none"}
_UNKNOWN_STEPS = {
    "unitdim": "unitdim of VecMap scales columns",
    "centeremb": "centeremb of VecMap subtracts from each vector its own mean",
}
_BOOLEANS = {"true": True, "on": True, "1": True, "yes": True, "false": False, "off": False, "0": False, "no": False}


def boolean(text: str) -> bool:
    """Return the value of a boolean option of MUSE; raise a ValueError for any other text."""
    if text.lower() not in _BOOLEANS:
        raise ValueError(text)
    return _BOOLEANS[text.lower()]


def normalization_step(name: str) -> str:
    """Return the name here of a normalization step of VecMap or MUSE. The parameter itself checks unknown names."""
    if name in _UNKNOWN_STEPS:
        raise InputError(
            f"the step {name} of normalize is not known: {_UNKNOWN_STEPS[name]}, which has no counterpart here; "
            "expected a comma-separated list of unit and center, or none"
        )
    return NORMALIZATIONS.get(name, name)


@dataclass(frozen=True)
class Alias:
    """An option of another tool.

    Args:
        option: the option here; "" if the other option changes nothing here.
        translate: takes the values there from the arguments after the option, and returns the value here.
    """

    option: str
    translate: Callable[[list[str]], str] = lambda following: following.pop(0)


def _device(following: list[str]) -> str:
    """Translate --cuda, a switch in VecMap and a boolean in MUSE."""
    has_value = bool(following) and following[0].lower() in _BOOLEANS
    return "cuda" if not has_value or boolean(following.pop(0)) else "cpu"


def _steps(following: list[str]) -> str:
    """Translate normalization steps, which VecMap separates by blanks and MUSE by commas."""
    steps = following.pop(0).split(",")
    while following and following[0] in (*NORMALIZATIONS, *_UNKNOWN_STEPS):
        steps.append(following.pop(0))
    return ",".join(normalization_step(step) for step in steps)


_SAME = {
    "--max-vocab": ("--nmax", "--maxload"),
    "--refine": ("--n-refinement",),
    "--epsilon": ("--reg",),
    "--csls-k": ("--csls", "--neighborhood", "--knn"),
    "--refine-words": ("--dico-max-rank",),
    "--coreset-size": ("--bsz",),
    "--epochs": ("--nepoch", "--n-epochs"),
    "--steps": ("--niter",),
    "--train-words": ("--vocabulary-cutoff", "--dis-most-frequent"),
}
ALIASES: Mapping[str, Alias] = {
    **{name: Alias(option) for option, names in _SAME.items() for name in names},
    "--cuda": Alias("--device", _device),
}
"""For every command that has the option. Underscores in options are hyphens, see `commands.loaded`."""
ALIGN_ALIASES: Mapping[str, Alias] = {
    **ALIASES,
    **dict.fromkeys(("--unsupervised", "--init-unsupervised"), Alias("", lambda _: "")),
    # `parameters.resolve` translates --identical, which is also an option of the method dema.
    "--init-identical": Alias("--start", lambda _: "identical"),
    "--orthogonal": Alias("--map", lambda _: "orthogonal"),
    "--self-learning": Alias("--method", lambda _: "self-learning"),
    "--precision": Alias("--dtype", lambda following: PRECISIONS.get(following[0], following.pop(0))),
    **dict.fromkeys(("--normalize", "--normalize-embeddings"), Alias("--normalize", _steps)),
}
EVALUATE_ALIASES: Mapping[str, Alias] = {
    **ALIASES,
    **dict.fromkeys(("--dico-eval", "--dico-test", "--dictionary", "-d"), Alias("--lexicon")),
    "--src-emb": Alias("--src"),
    "--tgt-emb": Alias("--tgt"),
}

_FILES_NAME_LANGUAGES = "not needed, because the files name the languages: leave it out"
_DIMENSION = "not needed, because the files hold the dimension: leave it out"
_STDOUT = "not needed: the scores go to stdout, or to `--out FILE`"
EXPLAINED_BY_ALIGN: Mapping[str, str] = {
    **dict.fromkeys(
        ("--dico-eval", "--dico-test", "--validation"),
        "use `qwp evaluate --lexicon FILE`, with the folder of the alignment",
    ),
    **dict.fromkeys(("--src-lang", "--tgt-lang"), _FILES_NAME_LANGUAGES),
    **dict.fromkeys(("--src-emb", "--tgt-emb"), "give both files as arguments, `qwp align SRC TGT --out DIR`"),
    "--emb-dim": _DIMENSION,
    **dict.fromkeys(("--exp-path", "--exp-name", "--exp-id"), "use `--out DIR`"),
    "--output": "use `--out DIR`; `qwp export DIR --src-out FILE --tgt-out FILE` then writes the vectors",
    "--export": "use `qwp export DIR --src-out FILE --tgt-out FILE` after the alignment",
    **dict.fromkeys(
        ("--dico-train", "--init-dictionary", "-d", "--dictionary"),
        "use `--lexicon FILE`, with a method that takes one, such as `--method procrustes`",
    ),
    **dict.fromkeys(("--supervised", "--aaai2018"), "use `--method procrustes --lexicon FILE`"),
    "--semi-supervised": "use `--method self-learning --lexicon FILE`",
    "--acl2018": "use `--method self-learning`",
    "--emnlp2016": "use `--method procrustes --normalize unit,center --lexicon FILE`",
    "--acl2017": "`--method self-learning --map orthogonal --start identical` is similar",
    "--acl2017-seed": "use `--method self-learning --map orthogonal --lexicon FILE`",
    "--init-numerals": "`--start identical` is similar",
    "--num-iter": "use `--refine N` for rounds of refinement, `--steps N` for steps of the loop",
    "--lr": "use `--learning-rate X`",
    "--map-beta": "use `--beta X`, with `--method adversarial`",
    "--adversarial": "use `--method adversarial`",
    **dict.fromkeys(
        ("--whiten", "--src-reweight", "--trg-reweight", "--src-dewhiten", "--trg-dewhiten"),
        "use `--map reweighted`, with `--reweight X` and `--dewhiten X`",
    ),
    "--unconstrained": "use `--method least-squares --lexicon FILE`",
    "--stochastic-initial": "use `--keep X`, with `--method self-learning`",
    "--stochastic-multiplier": "use `--keep-growth X`, with `--method self-learning`",
    "--stochastic-interval": "use `--patience N`, with `--method self-learning`",
    "--threshold": "use `--tol X`, with `--method self-learning`",
    "--dico-method": "use `--csls-k N`",
    "--dico-build": "use `--refine-directions`: mutual, forward, backward or union",
    **dict.fromkeys(("--dim-reduction", "--sgd"), "it has no counterpart: leave it out"),
    "--maxneg": "use `--train-words N`, with `--method rcsls`",
    "--verbose": "not needed: progress is always shown, unless --quiet is given",
    "--log": "not needed, because DIR holds the history of the run: leave it out",
}
"""What to give to `qwp align` instead of an option of another tool."""
EXPLAINED_BY_EVALUATE: Mapping[str, str] = {
    **dict.fromkeys(("--src-lang", "--tgt-lang"), _FILES_NAME_LANGUAGES),
    "--emb-dim": _DIMENSION,
    "--dico-train": "use `qwp align SRC TGT --lexicon FILE --out DIR`",
    **dict.fromkeys(("--exp-path", "--exp-name"), _STDOUT),
    "--crosslingual": "not needed, because both files must be in one space: leave it out",
}


class AliasedCommand(HelpfulCommand):
    """A command that accepts options of other tools.

    aliases: accepted options by name. explained: what to do instead of other options, by name.
    """

    aliases: Mapping[str, Alias] = MappingProxyType(ALIASES)
    explained: Mapping[str, str] = MappingProxyType({})

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options, note the aliases on stderr and explain options that only other tools have."""
        params: list[Any] = self.get_params(ctx)
        options = {name: param for param in params for name in (*param.opts, *param.secondary_opts)}
        known = {name: alias for name, alias in self.aliases.items() if not alias.option or alias.option in options}
        lengths = {name: 0 if param.is_flag else param.nargs for name, param in options.items() if name[0] == "-"}
        translated, notes = translate(args, known, lengths)
        try:
            rest: list[str] = super().parse_args(ctx, translated)
        except console.PARSER_ERROR as error:
            option = getattr(error, "option_name", "")
            if option not in self.explained:
                raise
            raise InputError(f"{option}: {self.explained[option]}") from None
        if not (ctx.resilient_parsing or ctx.params.get("quiet")):
            for text in notes:
                terminal.note(f"note: {text}")
        return rest


def translate(
    args: Sequence[str], aliases: Mapping[str, Alias], lengths: Mapping[str, int]
) -> tuple[list[str], list[str]]:
    """Replace the options of other tools, and return all arguments and a note on each replaced option.

    lengths: number of values of each option here, which are left as they are.
    """
    rest = list(args)
    found: list[str] = []
    notes: list[str] = []
    while rest:
        typed = rest.pop(0)
        if typed == "--":
            return [*found, typed, *rest], notes
        name, equals, value = typed.partition("=")
        name = name.replace("_", "-") if typed.startswith("--") else typed
        alias = aliases.get(name)
        if alias is None:
            values = 0 if equals else lengths.get(name, 0)
            found += [typed, *rest[:values]]
            del rest[:values]
            continue
        if equals:
            rest.insert(0, value)
        following = list(rest)
        try:
            meant = alias.translate(rest)
        except IndexError:
            raise InputError(f"'{name}' requires an argument: give a value, as for {alias.option}") from None
        found += [alias.option, meant] if alias.option else []
        given = following[: len(following) - len(rest)]
        if given != [meant]:
            notes.append(f"{' '.join([name, *given])} is {f'{alias.option} {meant}'.strip() or 'the default'} here")
        elif name != alias.option:
            notes.append(f"{name} is {alias.option} here")
    return found, notes
