"""Options that several commands share, their ranges and completions, and `with_options`, which makes a command of them.

A dataclass is a group of options: a command takes an instance of it, the command line one option for each field.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer

from qwp.cli import console
from qwp.cli.results import expect_alignment
from qwp.errors import InputError
from qwp.methods import METHODS, Aligner
from qwp.parameters import MOST_SIZE, MOST_WORDS, RUN, Declaration, Parameter
from qwp.results.alignment import Alignment
from qwp.results.saved import ALIGNMENT, SEVERAL
from qwp.search.approximate import RECALL_K, RECALL_SAMPLE
from qwp.search.spelling import LABEL, Spelling
from qwp.spaces.embeddings import Embeddings, LoadReport, Side
from qwp.spaces.io import FORMATS
from qwp.spaces.io.arguments import UTF8, as_encoding
from qwp.spaces.io.reading import Reading as ReadingNotes
from qwp.spaces.io.writing import WRITABLE_DTYPES
from qwp.spaces.lexicon import Lexicon

DEVICES = ("auto", "cpu", "cuda")
ERRORS = ("raise", "skip")
_SHOWN_LINES = 3
"""Damaged lines to quote: a file can have thousands, and the first ones show what is wrong."""

# --------------------------------------------------------------------------- commands from functions


def with_options(function: Callable[..., None], flags: Sequence[inspect.Parameter] = ()) -> Callable[..., None]:
    """Make a command of a function.

    Each parameter whose type is a dataclass becomes one option for each field of the dataclass.

    Args:
        function: does the work. Its errors become one line on stderr and an exit code, see `console.guarded`.
        flags: the options that its `**` parameter takes.
    """
    own = inspect.signature(function, eval_str=True).parameters.values()
    groups: dict[str, Any] = {p.name: p.annotation for p in own if is_dataclass(p.annotation)}
    options: list[inspect.Parameter] = []
    for parameter in own:
        if parameter.name in groups:
            options += _fields(groups[parameter.name])
        elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
            options += flags
        else:
            options.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    def call(**values: Any) -> None:
        made = {
            name: group(**{each.name: values.pop(each.name) for each in fields(group)})
            for name, group in groups.items()
        }
        function(**made, **values)

    command = console.guarded(functools.wraps(function)(call))
    command.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    # Older versions of typer read the annotations rather than the signature.
    command.__annotations__ = {p.name: p.annotation for p in options} | {"return": None}
    return command


def _fields(group: Any) -> list[inspect.Parameter]:
    """Return the fields of a group as keyword parameters for typer."""
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if each.default is MISSING else each.default,
            annotation=each.metadata[_OPTION].annotated(each.name, hints[each.name])
            if _OPTION in each.metadata
            else hints[each.name],
        )
        for each in fields(group)
    ]


_OPTION = "qwp"


@dataclass(frozen=True)
class Option:
    """Declaration of a field of a group as an option, see `option`."""

    help: str
    metavar: str | None
    flags: tuple[str, ...]
    choices: tuple[str, ...]
    bounds: Mapping[str, float]
    completer: Completer | None
    panel: str | None

    def annotated(self, name: str, hint: Any) -> Any:
        """Return the type of the field with the option for typer."""
        kinds = (hint, *get_args(hint))
        flag = "--" + name.replace("_", "-")
        metavar, completer, check = self.metavar, self.completer, None
        if self.choices:
            metavar, completer = metavar or "|".join(self.choices), completer or among(self.choices)
            check = one_of(self.flags[0] if self.flags else flag, self.choices)
        elif self.bounds:
            kind, letter = (int, "N") if int in kinds else (float, "X")
            metavar = metavar or letter
            check = checked(Parameter(name, kind, True, None, Declaration("", RUN, **self.bounds)))  # type: ignore[arg-type]
        elif bool not in kinds:
            metavar = metavar or "FILE"
        info = typer.Option(
            *(self.flags or (flag,)),
            metavar=metavar,
            help=self.help,
            autocompletion=completer,
            callback=check,
            rich_help_panel=self.panel,
        )
        return Annotated[hint, info]


def option(
    help: str,
    metavar: str | None = None,
    default: Any = None,
    *,
    flags: Iterable[str] = (),
    choices: Iterable[str] = (),
    completer: Completer | None = None,
    panel: str | None = None,
    **bounds: float,
) -> Any:
    """Return a field of a group: an option.

    Args:
        help: its text in --help.
        metavar: what --help calls the value; by default FILE, N, X or the choices.
        default: its default.
        flags: its names, by default the name of the field.
        choices: the values it can have.
        completer: completes values in the shell.
        panel: the section of --help.
        bounds: `least`, `above` and `most` of a number.
    """
    declared = Option(help, metavar, tuple(flags), tuple(choices), bounds, completer, panel)
    return field(default=default, metadata={_OPTION: declared})


def count(help: str, default: int | None = None, *, least: int = 1, most: int = MOST_SIZE, **declared: Any) -> Any:
    """Return a field of a group: an option that takes a whole number in a range."""
    return option(help, default=default, least=least, most=most, **declared)


# --------------------------------------------------------------------------- completion by the shell

Completer = Callable[[str], "list[str | tuple[str, str]]"]


def among(choices: Iterable[str] | Mapping[str, str]) -> Completer:
    """Return a completer that offers words. The values of a mapping explain its keys."""
    items: list[str | tuple[str, str]] = list(choices.items() if isinstance(choices, Mapping) else choices)

    def complete(incomplete: str) -> list[str | tuple[str, str]]:
        return [item for item in items if (item if isinstance(item, str) else item[0]).startswith(incomplete)]

    return complete


complete_methods = among({name: method.summary for name, method in METHODS.items()})


def complete_results(incomplete: str) -> list[str]:
    """Offer folders that `qwp align` wrote. The shell completes file names if there are none."""
    folder, start = os.path.split(incomplete)
    try:
        paths = sorted(path for path in Path(folder or ".").iterdir() if path.name.startswith(start))
    except OSError:
        return []
    is_result = {path: any((path / index).is_file() for index in (ALIGNMENT, SEVERAL)) for path in paths}
    return [os.path.join(folder, path.name) for path in paths if is_result[path]]


# --------------------------------------------------------------------------- checks of values


def one_of(option: str, choices: Iterable[str]) -> Callable[[str | None], str | None]:
    """Return a callback that refuses a value that is not one of the choices."""
    names = tuple(choices)

    def check(value: str | None) -> str | None:
        if value is not None and value not in names:
            raise InputError(f"{option} {value} is not known; expected one of {', '.join(names)}")
        return value

    return check


def checked(parameter: Parameter) -> Callable[[Any], Any]:
    """Return a callback that checks the value of an option like that of a parameter."""

    def check(value: Any) -> Any:
        if value is not None:
            parameter.check(value)
        return value

    return check


def action(choices: Iterable[str], help: str) -> Any:
    """Return an argument with a fixed set of values: what the command is to do."""
    names = tuple(choices)
    check = one_of("action", names)
    return typer.Argument(metavar="|".join(names), help=help, autocompletion=among(names), callback=check)


def of_methods(name: str, help: str, metavar: str = "N") -> Any:
    """Return an option that means the same as a parameter of every method, with the range of the parameter."""
    parameter = Aligner.parameters()[name]
    return typer.Option(parameter.flag, metavar=metavar, help=help, callback=checked(parameter))


# --------------------------------------------------------------------------- options and groups

_ENCODING = Parameter(
    "encoding", str, False, UTF8, Declaration("", RUN, text=as_encoding, range="an encoding that Python knows")
)
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else there.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show warnings and errors only.")]
AlignmentFolder = Annotated[
    Path,
    typer.Argument(metavar="DIR", help="A folder written by `qwp align --out`.", autocompletion=complete_results),
]
Device = Annotated[
    str,
    typer.Option(
        "--device",
        metavar="NAME",
        help="Where to compute: auto (a GPU if torch finds one), cpu, cuda or cuda:N.",
        autocompletion=among(DEVICES),
    ),
]
MaxMemory = Annotated[
    float | None,
    of_methods(
        "max_memory",
        "Limit the blocks of large computations to this many GiB. (default: 32 MiB a thread, 1 GiB on a GPU)",
        "GIB",
    ),
]
Seed = Annotated[int, of_methods("seed", "Seed of all random choices.")]
Threads = Annotated[int | None, of_methods("threads", "Number of threads. (default: all cores)")]
CslsK = Annotated[int, of_methods("csls_k", "Neighbourhood size of CSLS.")]
SpellingWeight = Annotated[
    bool,
    typer.Option(
        "--spelling",
        help="Prefer words that are spelled alike; for languages that share a script.",
    ),
]
Words = Annotated[
    Path | None,
    typer.Option(
        "--words",
        metavar="FILE",
        help="Words of vectors that have none, one a line. (default: x.words.txt for x.npy, if it exists)",
    ),
]
Encoding = Annotated[
    str,
    typer.Option(
        "--encoding",
        metavar="NAME",
        help="Encoding of the words in text and binary files, such as latin-1 or cp1251.",
        callback=checked(_ENCODING),
    ),
]


@dataclass(frozen=True)
class FileFormat:
    """Format of a vector file."""

    input_format: str | None = option(
        f"Format to read: {', '.join(FORMATS)}. (default: detected from the content)", "NAME", choices=FORMATS
    )
    encoding: Encoding = UTF8

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `qwp.load`."""
        return {"format": self.input_format, "encoding": self.encoding}


@dataclass(frozen=True)
class ReadingOptions(FileFormat):
    """How to read vector files."""

    errors: str = option("Damaged lines: raise (stop) or skip (leave out and count).", default="raise", choices=ERRORS)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `qwp.load`."""
        return {**super().arguments(), "errors": self.errors}


@dataclass(frozen=True)
class HeadReading(ReadingOptions):
    """How to read vector files, or their first words."""

    max_vocab: int | None = count("Read only the first N words of each file. (default: all)", most=MOST_WORDS)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `qwp.load`."""
        return {**super().arguments(), "max_vocab": self.max_vocab}


@dataclass(frozen=True)
class WritingOptions:
    """How to write a vector file. The fields are arguments of `qwp.spaces.io.open_writer`."""

    format: str | None = option(
        f"Format to write: {', '.join(FORMATS)}. (default: by the suffix)", "NAME", choices=FORMATS
    )
    digits: int | None = option("Digits after the point in text. (default: as many as restore the same float32)", "N")
    dtype: str = option(
        "Numbers to write: float32, or float16 in formats that hold arrays.", default="float32", choices=WRITABLE_DTYPES
    )


@dataclass(frozen=True)
class GoldReading:
    """How to read gold dictionaries."""

    lexicon_format: str = option(
        "auto, muse (blanks), xling (one tab) or csv.", "NAME", "auto", choices=("auto", "muse", "xling", "csv")
    )
    case: str = option("keep, or lower to lower-case the lexicon.", default="keep", choices=("keep", "lower"))
    reverse: bool = option("Swap the columns of the lexicon; with --held-out, search from TGT to SRC.", default=False)

    def load(self, path: Path) -> Lexicon:
        """Read a lexicon file. The loader logs the lines that it cannot use."""
        lexicon = Lexicon.load(path, format=self.lexicon_format, case=self.case)
        return lexicon.reverse() if self.reverse else lexicon


@dataclass(frozen=True)
class Computing:
    """Where to compute, and with how much memory."""

    device: Device = "auto"
    max_memory: MaxMemory = None


@dataclass(frozen=True)
class SearchOptions:
    """How to search for translations."""

    csls_k: CslsK = 10
    approximate: bool = option(
        "Search with FAISS: faster for many words, but not exact. Its recall is measured and shown.", default=False
    )
    spelling: SpellingWeight = False


# --------------------------------------------------------------------------- reading what the options name


def spelling_note(weight: float, src: Embeddings, tgt: Embeddings) -> str:
    """Return the remark on scores that include spelling."""
    if not Spelling().one_alphabet(src.words, tgt.words):
        return f"scores are {LABEL}, but the two languages do not share an alphabet: spelling adds nothing"
    return f"scores are {LABEL}: {weight:g} times the similarity of the letters is added to CSLS"


def notes_of(found: LoadReport | ReadingNotes) -> list[str]:
    """Return what the user should know about a file besides the warnings that the library has logged."""
    notes = []
    if found.duplicates:
        notes.append(f"{found.path}: {found.duplicates:,} repeated words dropped, the first of each kept")
    if found.skipped:
        quoted = "; ".join(found.skipped_lines[:_SHOWN_LINES])
        more = "; ..." if found.skipped > _SHOWN_LINES else ""
        notes.append(f"{found.path}: {found.skipped:,} damaged lines left out ({quoted}{more})")
    if isinstance(found, LoadReport) and found.zero_vectors:
        notes.append(f"{found.path}: {found.zero_vectors:,} words have a vector of zeros and cannot be aligned")
    return notes


def warn_of(found: LoadReport | ReadingNotes) -> list[str]:
    """Show the notes on a file. Return them together with the warnings that were logged while reading."""
    notes = notes_of(found)
    for text in notes:
        console.warn(text)
    return [f"{found.path}: {text}" for text in found.warnings] + notes


def load_space(path: Path, **reading: Any) -> tuple[Embeddings, list[str]]:
    """Read a vector file and show the warnings about it. reading: arguments of `qwp.load`."""
    from qwp.spaces import io

    space = io.load(path, **reading)
    return space, warn_of(space.report) if space.report is not None else []


@dataclass(frozen=True)
class MeasuredRecall:
    """Recall of an approximate search, from 0 to 1, and the number of words it was measured on."""

    value: float
    words: int

    def __str__(self) -> str:
        return f"approximate search: recall@{RECALL_K} {self.value:.2f}, measured on {self.words:,} words"


def lowest_recall(alignment: Alignment, *sides: Side) -> MeasuredRecall:
    """Return the recall of the approximate search for the words of a side; the lowest of several sides."""
    value, side = min((alignment.approximate_recall(side), side) for side in sides)
    return MeasuredRecall(value, min(RECALL_SAMPLE, len(getattr(alignment, side))))


def load_alignment(folder: Path, *, check: str = "content") -> Alignment:
    """Read a saved alignment and warn if it failed. check: as of `Alignment.load`."""
    expect_alignment(folder)
    alignment = Alignment.load(folder, check=check)
    if alignment.quality.failed:
        console.warn("this alignment failed: do not trust its translations. " + alignment.quality.explanation)
    return alignment
