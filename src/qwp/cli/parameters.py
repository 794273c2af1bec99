"""The options of `qwp align`, made from the parameters of all methods.

Values come from four places: the defaults of the method, a preset, a TOML file, and flags; the later ones win.
"""

from __future__ import annotations

import inspect
import reprlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import typer

from qwp.cli.options import DEVICES, ERRORS, Completer, among, complete_methods
from qwp.errors import InputError
from qwp.methods import METHODS, Aligner, preset
from qwp.methods.presets import PRESETS, check_method
from qwp.parameters import MOST_WORDS, OTHER, PANELS, RUN, START, Declaration, Parameter
from qwp.spaces.io import FORMATS
from qwp.spaces.io.arguments import UTF8, as_encoding, read_toml

DEFAULT_METHOD = "qwp"
READ = "Reading"
# What the value of a flag is called in --help, where its type or its choices do not say it; and what a shell completes.
METAVARS = {
    **dict.fromkeys(("lexicon", "src_vocab", "tgt_vocab"), "FILE"),
    "max_memory": "GIB",
    "normalize": "STEPS",
    "start": "START",
    "device": "NAME",
    "encoding": "NAME",
}
_COMPLETED: dict[str, Completer] = {
    "method": complete_methods,
    "device": among(DEVICES),
    "normalize": among(("unit,center,unit", "unit", "none")),
}
_LONGEST_CHOICES = 24


@dataclass(frozen=True)
class Flag:
    """One setting of `qwp align`. by_method: the parameter in each method that has it; none for one of the command."""

    parameter: Parameter
    by_method: Mapping[str, Parameter] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """As in Python."""
        return self.parameter.name

    @property
    def flag(self) -> str:
        """As it is written on the command line."""
        return self.parameter.flag

    @property
    def panel(self) -> str:
        """Where --help shows it."""
        of_another = self.by_method and DEFAULT_METHOD not in self.by_method
        return OTHER if of_another else self.parameter.declared.panel

    @property
    def help(self) -> str:
        """What it is: in the first method that has it, and in those where it is something else."""
        texts: dict[str, list[str]] = {}
        for method, parameter in self.by_method.items():
            texts.setdefault(parameter.declared.help, []).append(method)
        texts.pop(self.parameter.declared.help, None)
        others = " ".join(f"{', '.join(methods)}: {text}" for text, methods in texts.items())
        return f"{self.parameter.declared.help} {others}".rstrip()


def _of_the_command() -> dict[str, Flag]:
    """Settings that belong to the command and not to a method."""
    declared = {
        "method": (str, DEFAULT_METHOD, Declaration("`qwp methods` says what each is.", RUN, choices=tuple(METHODS))),
        "preset": (
            str,
            None,
            Declaration(
                "Settings of qwp by name, which all others win over: those of the paper and of its two variants.",
                RUN,
                choices=PRESETS,
                decided="none",
            ),
        ),
        "lexicon": (
            str,
            None,
            Declaration(
                "Seed lexicon for the methods that take one, see `qwp methods`; qwp and wp start from it.",
                START,
                range="a file",
                decided="none",
            ),
        ),
        "max_vocab": (
            int,
            None,
            Declaration("Read only the first N words of each file.", READ, least=1, most=MOST_WORDS, decided="all"),
        ),
        "errors": (
            str,
            "raise",
            Declaration(
                "Damaged lines of the files: raise (stop) or skip (leave out and count).",
                READ,
                choices=ERRORS,
            ),
        ),
        "input_format": (
            str,
            None,
            Declaration("Format of the files.", READ, choices=FORMATS, decided="told from their content"),
        ),
        "save": (
            str,
            "all",
            Declaration(
                "What DIR keeps: all, or map (no words and vectors: they are read from SRC and TGT when needed).",
                RUN,
                choices=("all", "map"),
            ),
        ),
        "encoding": (
            str,
            UTF8,
            Declaration(
                "Encoding of the words in text and binary files, such as latin-1 or cp1251.",
                READ,
                text=as_encoding,
                range="an encoding that Python knows",
            ),
        ),
        **{
            f"{side}_vocab": (
                str,
                None,
                Declaration(
                    f"Read only the {language} words in this file, one a line.", READ, range="a file", decided="all"
                ),
            )
            for side, language in (("src", "source"), ("tgt", "target"))
        },
        **{
            f"{side}_words": (
                str,
                None,
                Declaration(
                    f"Words of {place}, one a line, where its vectors have none (a .npy array).",
                    READ,
                    range="a file",
                    decided=f"{place} with .words.txt for its suffix, if that is there",
                ),
            )
            for side, place in (("src", "SRC"), ("tgt", "TGT"))
        },
    }
    return {
        name: Flag(Parameter(name, kind, default is None, default, about))
        for name, (kind, default, about) in declared.items()
    }


def flags_of(methods: Mapping[str, type[Aligner]]) -> dict[str, Flag]:
    """Return the flags of all these methods; the first to have a name says the type and the default."""
    found: dict[str, Flag] = {}
    for method, aligner in methods.items():
        for name, own in aligner.parameters().items():
            first = found.get(name, Flag(own))
            if first.parameter.type is not own.type:
                raise TypeError(
                    f"{name} is {first.parameter.type.__name__} in {next(iter(first.by_method))} and "
                    f"{own.type.__name__} in {method}: rename one of them"
                )
            found[name] = Flag(first.parameter, {**first.by_method, method: own})
    return found


COMMAND_FLAGS = _of_the_command()
METHOD_FLAGS = flags_of(METHODS)
FLAGS: dict[str, Flag] = {**COMMAND_FLAGS, **METHOD_FLAGS}


# Stages in the order in which a run goes through them.
HELP_PANELS = (READ, RUN, START, *(panel for panel in PANELS if panel not in (RUN, START)))


def flag_signature() -> list[inspect.Parameter]:
    """The flags as keyword arguments that typer turns into options; one that was not given is None."""
    return [
        inspect.Parameter(
            flag.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[flag.parameter.type | None, _option(flag)],
        )
        for flag in sorted(FLAGS.values(), key=lambda flag: HELP_PANELS.index(flag.panel))
    ]


def _option(flag: Flag) -> Any:
    text = flag.flag
    if flag.parameter.type is bool:
        text += f"/--no-{text.removeprefix('--')}"
    return typer.Option(
        text,
        help=f"{flag.help} ({defaults_of(flag)})",
        metavar=_metavar(flag),
        rich_help_panel=flag.panel,
        show_default=False,
        autocompletion=_completer(flag),
    )


def brief_help() -> dict[str, str]:
    """What each flag is in the default method, by name."""
    shown = {name: flag.parameter for name, flag in FLAGS.items()}
    return {name: f"{own.declared.help} (default: {own.shown_default})" for name, own in shown.items()}


def _metavar(flag: Flag) -> str:
    """What its value is called: nothing, a letter for a number, its choices where they are few, or a name."""
    kinds = {bool: "", int: "N", float: "X"}
    choices = "|".join(flag.parameter.declared.choices or ())
    usual = choices if 0 < len(choices) <= _LONGEST_CHOICES else "NAME"
    return METAVARS.get(flag.name) or kinds.get(flag.parameter.type, usual)


def _completer(flag: Flag) -> Completer | None:
    """What a shell completes: the choices of all methods that have the flag."""
    if flag.name in _COMPLETED:
        return _COMPLETED[flag.name]
    declared = [flag.parameter.declared, *(parameter.declared for parameter in flag.by_method.values())]
    choices = list(dict.fromkeys(choice for each in declared for choice in each.choices or ()))
    return among(choices) if choices else None


def defaults_of(flag: Flag, all_methods: Iterable[str] = tuple(METHODS)) -> str:
    """Its default, the methods that have another one, and, where not all have the parameter, which do."""
    has = list(flag.by_method)
    lacks = [method for method in all_methods if method not in has]
    parts = []
    if has and lacks:
        parts.append(", ".join(has) if len(has) <= len(lacks) else f"not {', '.join(lacks)}")
    parts.append(f"default: {flag.parameter.shown_default}")
    others: dict[str, list[str]] = {}
    for method, parameter in flag.by_method.items():
        if parameter.default != flag.parameter.default:
            others.setdefault(parameter.shown_default, []).append(method)
    parts += [f"{', '.join(methods)}: {default}" for default, methods in others.items()]
    return "; ".join(parts)


# --------------------------------------------------------------------------- values


def resolve(flags: Mapping[str, Any], config: Path | None) -> dict[str, Any]:
    """Return the values that the user set: flags win over the file, the file wins over a preset."""
    given = {name: flags[name] for name in FLAGS if flags.get(name) is not None}
    values = {**(read_config(config) if config is not None else {}), **given}
    for name in COMMAND_FLAGS:
        if name in values:
            FLAGS[name].parameter.check(values[name])
    method = values.get("method", DEFAULT_METHOD)
    if given.get("identical") and method not in FLAGS["identical"].by_method:  # VecMap calls --start identical so
        del values["identical"]
        values["start"] = given.get("start", "identical")
    name = values.pop("preset", None)
    if name is None:
        return values
    check_method(name, method)
    return {**preset(name), **values}


def popped(values: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Remove settings of the command from the values, and return them or their defaults."""
    return {name: values.pop(name, FLAGS[name].parameter.default) for name in names}


def check_options(method: str, names: Iterable[str], flags: Mapping[str, Flag] = FLAGS) -> None:
    """Refuse settings that belong to other methods."""
    strange = [flags[name] for name in names if method not in flags[name].by_method]
    if strange:
        owners = "; ".join(f"{p.flag} is an option of {', '.join(p.by_method)}" for p in strange)
        raise InputError(f"{owners}, not of {method}: leave it out (`qwp methods {method}` lists what it has)")


def read_config(path: Path) -> dict[str, Any]:
    """Settings from a TOML file; names may be written with - or _."""
    values: dict[str, Any] = {}
    for key, value in read_toml(path, like='coreset = "lloyd"').items():
        name = key.replace("-", "_")
        if name not in FLAGS:
            known = [flag.replace("_", "-") for flag in FLAGS]
            near = get_close_matches(name.replace("_", "-"), known) or ["method", "seed"]
            raise InputError(
                f"{path} sets {reprlib.repr(key)}, which is not a setting; expected a parameter of "
                f"`qwp align --help-all` without its leading --, such as {', '.join(near)}"
            )
        if name in values:
            raise InputError(f"{path} sets {key!r} twice, once with - and once with _: keep one of them")
        values[name] = _typed(path, key, value, FLAGS[name].parameter.type)
    return values


def _typed(path: Path, key: str, value: Any, wanted: type) -> Any:
    if wanted is float and type(value) is int:
        with suppress(OverflowError):  # what no number of the machine can hold is out of every range
            return float(value)
    if type(value) is not wanted or (isinstance(value, str) and "\0" in value):
        kinds = {int: "a whole number", float: "a number", str: "a text in quotes", bool: "true or false"}
        expected = kinds.get(wanted, wanted.__name__)
        raise InputError(f"{path} sets {key} = {reprlib.repr(value)} ({type(value).__name__}); expected {expected}")
    return value
