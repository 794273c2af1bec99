"""Options that several commands share, their ranges and completions, and `with_options`, which makes a command of them.

A dataclass is a group of options: a command takes an instance of it, the command line one option for each field.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from qwp.cli import console
from qwp.cli.results import expect_alignment
from qwp.errors import InputError
from qwp.methods import METHODS, Aligner
from qwp.parameters import MOST_SIZE, MOST_WORDS, RUN, Declaration, Parameter
from qwp.results.alignment import Alignment
from qwp.results.saved import ALIGNMENT, SEVERAL
from qwp.search.approximate import RECALL_K, RECALL_SAMPLE
from qwp.search.spelling import LABEL, one_alphabet
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
            name: group(**{field.name: values.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        function(**made, **values)

    command = console.guarded(functools.wraps(function)(call))
    command.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    # Older versions of typer read the annotations rather than the signature.
    command.__annotations__ = {p.name: p.annotation for p in options} | {"return": None}
    return command


def _fields(group: Any) -> list[inspect.Parameter]:
    """Return the fields of a dataclass as keyword parameters."""
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(group)
    ]


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


# --------------------------------------------------------------------------- checked options


def check_choice(option: str, value: str | None, choices: Iterable[str]) -> None:
    """Refuse a value that is not one of the choices."""
    if value is not None and value not in choices:
        raise InputError(f"{option} {value} is not known; expected one of {', '.join(choices)}")


def choice(flag: str, choices: Iterable[str], help: str, *, show_default: bool = True, **more: Any) -> Any:
    """Return an option with a fixed set of values, which --help and the shell offer and the parser checks."""
    names = tuple(choices)

    def check(value: str | None) -> str | None:
        check_choice(flag, value, names)
        return value

    more = {"metavar": "|".join(names), "callback": check, **more}
    return typer.Option(flag, help=help, show_default=show_default, autocompletion=among(names), **more)


def action(choices: Iterable[str], help: str) -> Any:
    """Return an argument with a fixed set of values: what the command is to do."""
    names = tuple(choices)

    def check(value: str) -> str:
        check_choice("action", value, names)
        return value

    return typer.Argument(
        metavar="|".join(names), help=help, show_default=False, autocompletion=among(names), callback=check
    )


def checked(parameter: Parameter) -> Callable[[Any], Any]:
    """Return a callback that checks the value of an option as that of a parameter."""

    def check(value: Any) -> Any:
        if value is not None:
            parameter.check(value)
        return value

    return check


def count(flag: str, help: str, *, least: int = 1, most: int = MOST_SIZE, show_default: bool = True) -> Any:
    """Return an option that takes a whole number in a range."""
    name = flag.lstrip("-").replace("-", "_")
    parameter = Parameter(name, int, True, None, Declaration("", RUN, least=least, most=most))
    return typer.Option(flag, metavar="N", help=help, show_default=show_default, callback=checked(parameter))


def number(
    flag: str, help: str, metavar: str = "X", *, least: float | None = None, above: float | None = None, most: float
) -> Any:
    """Return an option that takes a number in a range, which may begin `above` a bound."""
    declaration = Declaration("", RUN, least=least, above=above, most=most)
    parameter = Parameter(flag[2:].replace("-", "_"), float, False, 0.0, declaration)
    return typer.Option(flag, metavar=metavar, help=help, callback=checked(parameter))


def file(*flags: str, help: str, metavar: str = "FILE") -> Any:
    """Return an option that takes a path, or another text of the user, and has no default."""
    return typer.Option(*flags, metavar=metavar, help=help, show_default=False)


def of_methods(name: str, help: str, metavar: str = "N", *, show_default: bool = True) -> Any:
    """Return an option that means the same as a parameter of every method, with the range of the parameter."""
    parameter = Aligner.parameters()[name]
    return typer.Option(
        parameter.flag, metavar=metavar, help=help, show_default=show_default, callback=checked(parameter)
    )


_ENCODING = Parameter(
    "encoding", str, False, UTF8, Declaration("", RUN, text=as_encoding, range="an encoding that Python knows")
)
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else there.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show warnings and errors only.")]
AlignmentFolder = Annotated[
    Path,
    typer.Argument(
        metavar="DIR",
        help="A folder written by `qwp align --out`.",
        show_default=False,
        autocompletion=complete_results,
    ),
]
MaxVocab = Annotated[
    int | None,
    count(
        "--max-vocab", "Read only the first N words of each file. (default: all)", most=MOST_WORDS, show_default=False
    ),
]
Device = Annotated[
    str,
    choice(
        "--device",
        DEVICES,
        "Where to compute: auto (a GPU if torch finds one), cpu, cuda or cuda:N.",
        metavar="NAME",
        callback=None,  # `arrays` parses cuda:N
    ),
]
MaxMemory = Annotated[
    float | None,
    of_methods(
        "max_memory",
        "Limit the blocks of large computations to this many GiB. (default: 32 MiB a thread, 1 GiB on a GPU)",
        "GIB",
        show_default=False,
    ),
]
Threads = Annotated[int | None, of_methods("threads", "Number of threads. (default: all cores)", show_default=False)]
CslsK = Annotated[int, of_methods("csls_k", "Neighbourhood size of CSLS.")]
Spelling = Annotated[
    bool,
    typer.Option(
        "--spelling",
        help="Add the similarity of the letters to CSLS. For languages with one script it helps much.",
    ),
]
Words = Annotated[
    Path | None,
    file(
        "--words",
        help="Words of vectors that have none, one a line. (default: x.words.txt for x.npy, if it exists)",
    ),
]


@dataclass(frozen=True)
class FileFormat:
    """Format of a vector file."""

    input_format: Annotated[
        str | None,
        choice(
            "--input-format",
            FORMATS,
            f"Format to read: {', '.join(FORMATS)}. (default: detected from the content)",
            metavar="NAME",
            show_default=False,
        ),
    ] = None
    encoding: Annotated[
        str,
        typer.Option(
            "--encoding",
            metavar="NAME",
            help="Encoding of the words in text and binary files, such as latin-1 or cp1251.",
            callback=checked(_ENCODING),
        ),
    ] = UTF8

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `qwp.load`."""
        return {"format": self.input_format, "encoding": self.encoding}


@dataclass(frozen=True)
class Reading(FileFormat):
    """How to read vector files."""

    errors: Annotated[str, choice("--errors", ERRORS, "Damaged lines: raise (stop) or skip (leave out and count).")] = (
        "raise"
    )

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `qwp.load`."""
        return {**super().arguments(), "errors": self.errors}


@dataclass(frozen=True)
class HeadReading(Reading):
    """How to read vector files, or their first words."""

    max_vocab: MaxVocab = None

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `qwp.load`."""
        return {**super().arguments(), "max_vocab": self.max_vocab}


@dataclass(frozen=True)
class Writing:
    """How to write a vector file. The fields are arguments of `qwp.spaces.io.open_writer`."""

    format: Annotated[
        str | None,
        choice(
            "--format",
            FORMATS,
            f"Format to write: {', '.join(FORMATS)}. (default: by the suffix)",
            metavar="NAME",
            show_default=False,
        ),
    ] = None
    digits: Annotated[
        int | None,
        typer.Option(
            "--digits",
            metavar="N",
            help="Digits after the point in text. (default: as many as restore the same float32)",
            show_default=False,
        ),
    ] = None
    dtype: Annotated[
        str,
        choice("--dtype", WRITABLE_DTYPES, "Numbers to write: float32, or float16 in formats that hold arrays."),
    ] = "float32"


@dataclass(frozen=True)
class GoldReading:
    """How to read gold dictionaries."""

    lexicon_format: Annotated[
        str,
        choice(
            "--lexicon-format",
            ("auto", "muse", "xling", "csv"),
            "auto, muse (blanks), xling (one tab) or csv.",
            metavar="NAME",
        ),
    ] = "auto"
    case: Annotated[str, choice("--case", ("keep", "lower"), "keep, or lower to lower-case the lexicon.")] = "keep"
    reverse: Annotated[bool, typer.Option("--reverse", help="Swap the columns of the lexicon.")] = False

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
class Search:
    """How to search for translations."""

    csls_k: CslsK = 10
    approximate: Annotated[
        bool,
        typer.Option(
            "--approximate",
            help="Search with FAISS: faster for many words, but not exact. Its recall is measured and shown.",
        ),
    ] = False
    spelling: Spelling = False


# --------------------------------------------------------------------------- reading what the options name


def spelling_note(weight: float, src: Embeddings, tgt: Embeddings) -> str:
    """Return the remark on scores that include spelling."""
    if not one_alphabet(src.words, tgt.words):
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
class Recall:
    """Recall of an approximate search, from 0 to 1, and the number of words it was measured on."""

    value: float
    words: int

    def __str__(self) -> str:
        return f"approximate search: recall@{RECALL_K} {self.value:.2f}, measured on {self.words:,} words"


def lowest_recall(alignment: Alignment, *sides: Side) -> Recall:
    """Return the recall of the approximate search for the words of a side; the lowest of several sides."""
    value, side = min((alignment.approximate_recall(side), side) for side in sides)
    return Recall(value, min(RECALL_SAMPLE, len(getattr(alignment, side))))


def load_alignment(folder: Path, *, check: str = "content") -> Alignment:
    """Read a saved alignment and warn if it failed. check: as of `Alignment.load`."""
    expect_alignment(folder)
    alignment = Alignment.load(folder, check=check)
    if alignment.quality.failed:
        console.warn("this alignment failed: do not trust its translations. " + alignment.quality.explanation)
    return alignment
