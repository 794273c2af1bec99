"""Options of MUSE, VecMap and fastText: accepted if they mean the same here, explained otherwise.

An accepted option is another name of an option of qwp. Only the parser knows it, so that --help shows one name each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
        nargs: number of values there.
        translate: returns the value here, from the value there and the arguments after it; it removes those it uses.
    """

    option: str
    nargs: int = 1
    translate: Callable[[Any, list[str]], Any] = lambda value, _: value


def _device(_: Any, following: list[str]) -> str:
    """Translate --cuda, a switch in VecMap and a boolean in MUSE."""
    has_value = bool(following) and following[0].lower() in _BOOLEANS
    return "cuda" if not has_value or boolean(following.pop(0)) else "cpu"


def _steps(first: str, following: list[str]) -> str:
    """Translate normalization steps, which VecMap separates by blanks and MUSE by commas."""
    steps = first.split(",")
    while following and following[0] in (*NORMALIZATIONS, *_UNKNOWN_STEPS):
        steps.append(following.pop(0))
    return ",".join(normalization_step(step) for step in steps)


def _switch(option: str = "", value: str = "") -> Alias:
    return Alias(option, nargs=0, translate=lambda *_: value)


ALIASES: Mapping[str, Alias] = {
    "--nmax": Alias("--max-vocab"),
    "--maxload": Alias("--max-vocab"),
    "--n-refinement": Alias("--refine"),
    "--reg": Alias("--epsilon"),
    "--csls": Alias("--csls-k"),
    "--neighborhood": Alias("--csls-k"),
    "--knn": Alias("--csls-k"),
    "--dico-max-rank": Alias("--refine-words"),
    "--bsz": Alias("--coreset-size"),
    "--nepoch": Alias("--epochs"),
    "--n-epochs": Alias("--epochs"),
    "--niter": Alias("--steps"),
    "--vocabulary-cutoff": Alias("--train-words"),
    "--dis-most-frequent": Alias("--train-words"),
    "--cuda": Alias("--device", nargs=0, translate=_device),
}
"""For every command that has the option. Underscores in options are hyphens, see `commands.loaded`."""
ALIGN_ALIASES: Mapping[str, Alias] = {
    **ALIASES,
    "--unsupervised": _switch(),
    "--init-unsupervised": _switch(),
    # `parameters.resolve` translates --identical, which is also an option of the method dema.
    "--init-identical": _switch("--start", "identical"),
    "--orthogonal": _switch("--map", "orthogonal"),
    "--self-learning": _switch("--method", "self-learning"),
    "--precision": Alias("--dtype", translate=lambda name, _: PRECISIONS.get(name, name)),
    "--normalize": Alias("--normalize", translate=_steps),
    "--normalize-embeddings": Alias("--normalize", translate=_steps),
}
EVALUATE_ALIASES: Mapping[str, Alias] = {
    **ALIASES,
    "--dico-eval": Alias("--lexicon"),
    "--dico-test": Alias("--lexicon"),
    "--dictionary": Alias("--lexicon"),
    "-d": Alias("--lexicon"),
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

    def make_parser(self, ctx: Any) -> Any:
        """Return the parser of the command, with the aliases."""
        parser = super().make_parser(ctx)
        params = {name: param for param in self.get_params(ctx) for name in param.opts}
        for name, alias in self.aliases.items():
            if not alias.option or alias.option in params:
                _add(parser, name, alias, params.get(alias.option), ctx.meta.setdefault(_NOTES, []))
        return parser

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options, note the aliases on stderr and explain options that only other tools have."""
        try:
            rest: list[str] = super().parse_args(ctx, args)
        except console.PARSER_ERROR as error:
            option = getattr(error, "option_name", "")
            if option not in self.explained:
                raise
            raise InputError(f"{option}: {self.explained[option]}") from None
        if not (ctx.resilient_parsing or ctx.params.get("quiet")):
            for text in ctx.meta.get(_NOTES, ()):
                terminal.note(f"note: {text}")
        return rest


_NOTES = "qwp.aliases"


def _add(parser: Any, name: str, alias: Alias, param: Any, notes: list[str]) -> None:
    """Add an alias to a parser of click. param: the option it stands for, None for no option."""
    dest, action = (name, "store") if param is None else (param.name, "append" if param.multiple else "store")
    parser.add_option(obj=param, opts=[name], dest=dest, action=action, nargs=alias.nargs)
    entry = {**parser._short_opt, **parser._long_opt}[name]
    store = entry.process

    def process(value: Any, state: Any) -> None:
        following = list(state.rargs)
        meant = alias.translate(value, state.rargs)
        if meant != value:
            values = [value] * alias.nargs + following[: len(following) - len(state.rargs)]
            notes.append(f"{' '.join([name, *values])} is {f'{alias.option} {meant}'.strip() or 'the default'} here")
        elif name != alias.option:
            notes.append(f"{name} is {alias.option} here")
        store(meant, state)

    # click has no public way to read a variable number of values.
    entry.process = process
