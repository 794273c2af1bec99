"""The flags of `qwp align`, derived from the parameters of all methods.

Flags override a TOML file, which overrides a preset, which overrides the defaults of the method.
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
from qwp.parameters import MOST_WORDS, OTHER, PANELS, RUN, START, Parameter, Settings, param, parameters
from qwp.spaces.io import FORMATS
from qwp.spaces.io.arguments import UTF8, as_encoding, read_toml

DEFAULT_METHOD = "qwp"
READ = "Reading"
# Metavars in --help that do not follow from the type or the choices, and completions of the shell.
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
_VOCAB = "Read only the {} words in this file, one a line."
_WORDS = "Words of {}, one a line, if its vectors have none (a .npy array)."
_WORDS_FILE = "{} with the suffix .words.txt, if it exists"


@dataclass(frozen=True)
class CommandFlag:
    """One flag of `qwp align`. by_method: the parameter of each method that has it; empty for `CommandSettings`."""

    parameter: Parameter
    by_method: Mapping[str, Parameter] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name in Python."""
        return self.parameter.name

    @property
    def flag(self) -> str:
        """The name on the command line."""
        return self.parameter.flag

    @property
    def panel(self) -> str:
        """The group of options in --help."""
        of_another = self.by_method and DEFAULT_METHOD not in self.by_method
        return OTHER if of_another else self.parameter.declared.panel

    @property
    def help(self) -> str:
        """The help of the first method that has the parameter, and differing texts of others."""
        texts: dict[str, list[str]] = {}
        for method, parameter in self.by_method.items():
            texts.setdefault(parameter.declared.help, []).append(method)
        texts.pop(self.parameter.declared.help, None)
        others = " ".join(f"{', '.join(methods)}: {text}" for text, methods in texts.items())
        return f"{self.parameter.declared.help} {others}".rstrip()


@dataclass(frozen=True)
class CommandSettings(Settings):
    """Settings of `qwp align` that belong to no method."""

    method: str = param(DEFAULT_METHOD, "`qwp methods` describes them.", RUN, choices=tuple(METHODS))
    preset: str | None = param(
        None,
        "A named set of settings of qwp, which all others override: those of the paper and of its two variants.",
        RUN,
        choices=PRESETS,
        decided="none",
    )
    lexicon: str | None = param(
        None,
        "Seed lexicon for the methods that take one, see `qwp methods`; qwp and wp start from it.",
        START,
        range="a file",
        decided="none",
    )
    max_vocab: int | None = param(
        None, "Read only the first N words of each file.", READ, least=1, most=MOST_WORDS, decided="all"
    )
    errors: str = param(
        "raise", "Damaged lines of the files: raise (stop) or skip (leave out and count).", READ, choices=ERRORS
    )
    input_format: str | None = param(
        None, "Format of the files.", READ, choices=FORMATS, decided="detected from their content"
    )
    save: str = param(
        "all",
        "Content of DIR: all, or map (no words and vectors: commands that need them read SRC and TGT).",
        RUN,
        choices=("all", "map"),
    )
    encoding: str = param(
        UTF8,
        "Encoding of the words in text and binary files, such as latin-1 or cp1251.",
        READ,
        text=as_encoding,
        range="an encoding that Python knows",
    )
    src_vocab: str | None = param(None, _VOCAB.format("source"), READ, range="a file", decided="all")
    tgt_vocab: str | None = param(None, _VOCAB.format("target"), READ, range="a file", decided="all")
    src_words: str | None = param(None, _WORDS.format("SRC"), READ, range="a file", decided=_WORDS_FILE.format("SRC"))
    tgt_words: str | None = param(None, _WORDS.format("TGT"), READ, range="a file", decided=_WORDS_FILE.format("TGT"))


def flags_of(methods: Mapping[str, type[Aligner]]) -> dict[str, CommandFlag]:
    """Return the flags of the methods. The first method with a parameter decides its type and default."""
    found: dict[str, CommandFlag] = {}
    for method, aligner in methods.items():
        for name, own in aligner.parameters().items():
            first = found.get(name, CommandFlag(own))
            if first.parameter.type is not own.type:
                raise TypeError(
                    f"{name} is {first.parameter.type.__name__} in {next(iter(first.by_method))} and "
                    f"{own.type.__name__} in {method}: rename one of them"
                )
            found[name] = CommandFlag(first.parameter, {**first.by_method, method: own})
    return found


COMMAND_FLAGS = {name: CommandFlag(parameter) for name, parameter in parameters(CommandSettings()).items()}
METHOD_FLAGS = flags_of(METHODS)
FLAGS: dict[str, CommandFlag] = {**COMMAND_FLAGS, **METHOD_FLAGS}


# In the order of the stages of a run.
HELP_PANELS = (READ, RUN, START, *(panel for panel in PANELS if panel not in (RUN, START)))


def flag_signature() -> list[inspect.Parameter]:
    """Return the flags as keyword parameters for typer. The default None means that a flag was not given."""
    return [
        inspect.Parameter(
            flag.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[flag.parameter.type | None, _option(flag)],
        )
        for flag in sorted(FLAGS.values(), key=lambda flag: HELP_PANELS.index(flag.panel))
    ]


def _option(flag: CommandFlag) -> Any:
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
    """Return the help of each flag for the default method, by name."""
    shown = {name: flag.parameter for name, flag in FLAGS.items()}
    return {name: f"{own.declared.help} (default: {own.shown_default})" for name, own in shown.items()}


def _metavar(flag: CommandFlag) -> str:
    """Return the metavar: none for a switch, a letter for a number, a few choices, or NAME."""
    kinds = {bool: "", int: "N", float: "X"}
    choices = "|".join(flag.parameter.declared.choices or ())
    usual = choices if 0 < len(choices) <= _LONGEST_CHOICES else "NAME"
    return METAVARS.get(flag.name) or kinds.get(flag.parameter.type, usual)


def _completer(flag: CommandFlag) -> Completer | None:
    """Return the completer: the choices of all methods that have the flag."""
    if flag.name in _COMPLETED:
        return _COMPLETED[flag.name]
    declared = [flag.parameter.declared, *(parameter.declared for parameter in flag.by_method.values())]
    choices = list(dict.fromkeys(choice for each in declared for choice in each.choices or ()))
    return among(choices) if choices else None


def defaults_of(flag: CommandFlag, all_methods: Iterable[str] = tuple(METHODS)) -> str:
    """Return the default, the methods with another default, and the methods that have the parameter if not all do."""
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


def check_options(method: str, names: Iterable[str], flags: Mapping[str, CommandFlag] = FLAGS) -> None:
    """Refuse settings of other methods."""
    strange = [flags[name] for name in names if method not in flags[name].by_method]
    if strange:
        owners = "; ".join(f"{p.flag} is an option of {', '.join(p.by_method)}" for p in strange)
        raise InputError(f"{owners}, not of {method}: leave it out (`qwp methods {method}` lists what it has)")


def read_config(path: Path) -> dict[str, Any]:
    """Return settings from a TOML file, whose names may contain - or _."""
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
        with suppress(OverflowError):  # too large a number is out of every range
            return float(value)
    if type(value) is not wanted or (isinstance(value, str) and "\0" in value):
        kinds = {int: "a whole number", float: "a number", str: "a text in quotes", bool: "true or false"}
        expected = kinds.get(wanted, wanted.__name__)
        raise InputError(f"{path} sets {key} = {reprlib.repr(value)} ({type(value).__name__}); expected {expected}")
    return value
