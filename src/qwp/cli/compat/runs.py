"""Shared parts of `qwp muse` and `qwp vecmap`: the parser, the parameters, the alignment and the vector files."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from qwp.cli import console, options
from qwp.cli.aliases import normalization_step
from qwp.cli.results import STYLES, exit_by
from qwp.cli.streaming import BATCH, batches_of, check_target, copy, refuse_sources
from qwp.errors import InputError
from qwp.methods import METHODS, lexicon_start, make_aligner
from qwp.methods.settings import Supervision
from qwp.results.alignment import Alignment
from qwp.results.summary import quality_rows, times
from qwp.showing import terminal
from qwp.showing.bar import AlignProgress
from qwp.spaces import io
from qwp.spaces.embeddings import Side
from qwp.spaces.io import Batch
from qwp.spaces.io.files import check_file
from qwp.spaces.lexicon import Lexicon


class Parser(argparse.ArgumentParser):
    """A parser for the options of another tool."""

    def __init__(self, command: str, description: str) -> None:
        super().__init__(prog=f"qwp {command}", description=description, argument_default=argparse.SUPPRESS)
        own = self.add_argument_group("options of qwp")
        own.add_argument("--method", metavar="NAME", help="another method, see `qwp methods`")
        own.add_argument("--json", action="store_true", help="print one JSON object on stdout")

    def error(self, message: str) -> NoReturn:
        """Report a usage error like all other errors."""
        raise InputError(f"{message} (`{self.prog} --help` shows what it takes)")

    def given(self, args: list[str]) -> dict[str, Any]:
        """Return the options that were given, by name, without defaults."""
        return vars(self.parse_args(args))


@dataclass
class MethodSettings:
    """Parameters of a method, from options of another tool. ignored: options without a counterpart."""

    method: str
    values: dict[str, Any] = field(default_factory=dict)
    ignored: list[str] = field(default_factory=list)

    def take(self, given: Mapping[str, Any], names: Mapping[str, str]) -> None:
        """Take over given options. names: the parameter for each option."""
        for option, parameter in names.items():
            if option in given:
                self.set(option, parameter, given[option])

    def set(self, option: str, parameter: str, value: Any) -> None:
        """Set a parameter if the method has it."""
        if parameter in METHODS[self.method].parameter_names():
            self.values[parameter] = value
        else:
            self.ignored.append(option)

    def ignore(self, given: Mapping[str, Any], options: tuple[str, ...]) -> None:
        """Ignore given options, which do not change the result much."""
        self.ignored += [option for option in options if option in given]

    def report_ignored(self) -> None:
        """Print the ignored options."""
        if self.ignored:
            flags = ", ".join(f"--{option}" for option in self.ignored)
            terminal.note(f"note: ignored, without a counterpart in method {self.method}: {flags}")


def check_method(given: Mapping[str, Any]) -> None:
    """Refuse an unknown method."""
    if given.get("method", "qwp") not in METHODS:
        raise InputError(f"method {given['method']} is not known; expected one of {', '.join(METHODS)}")


def normalize(steps: str) -> str:
    """Translate comma-separated normalization steps to their names here; "none" for an empty text."""
    return ",".join(normalization_step(step.strip()) for step in steps.split(",")) or "none"


@dataclass(frozen=True)
class Request:
    """An alignment to compute, and the files to write.

    dim: the expected dimension. whole_files: write all words of the files, not only the first `max_vocab`.
    """

    src: Path
    tgt: Path
    settings: MethodSettings
    outs: dict[Side, Path]
    lexicon: Path | None = None
    max_vocab: int | None = None
    dim: int | None = None
    whole_files: bool = False
    json: bool = False


def run(request: Request) -> Alignment:
    """Align and write the vectors. All options are checked before any vectors are read."""
    method = request.settings.method
    start = lexicon_start(method, given=request.lexicon is not None)
    aligner = make_aligner(method, **{**start, **request.settings.values})
    supervision = Supervision(None if request.lexicon is None else Lexicon.load(request.lexicon))
    aligner.validate(supervision)
    for path in request.outs.values():
        check_target(path, "text", None)
    if len({path.resolve() for path in request.outs.values()}) < len(request.outs):
        raise InputError(f"both languages would be written to {request.outs['src']}; expected two files")
    refuse_sources(request.outs.values(), (request.src, request.tgt))
    for path in (request.src, request.tgt):
        check_file(path)
    request.settings.report_ignored()
    src, tgt = (options.load_space(path, max_vocab=request.max_vocab)[0] for path in (request.src, request.tgt))
    if request.dim not in (None, src.dim):
        raise InputError(f"{request.src} has {src.dim} dimensions, but --emb_dim is {request.dim}: correct the option")
    with AlignProgress(quiet=request.json) as progress:
        aligner.fit(src, tgt, lexicon=supervision.lexicon, progress=progress)
    alignment = aligner.alignment_
    for side, out in request.outs.items():
        batches, count = _words(request, alignment, side)
        copy(batches, out, treat=_mapping(alignment, side), count=count, format="text", quiet=request.json)
    return alignment


def _words(request: Request, alignment: Alignment, side: Side) -> tuple[Iterator[Batch], int | None]:
    """Return the words to write, and their number if it is known."""
    if request.whole_files:
        return io.stream(getattr(request, side), batch=BATCH), None
    space = alignment.side(side).space
    return batches_of(space), len(space)


def _mapping(alignment: Alignment, side: Side) -> Callable[[Any], Any]:
    return lambda vectors: alignment.transform(vectors, side)


def report(command: str, alignment: Alignment, files: list[Path], *, json: bool, **more: Any) -> None:
    """Print the verdict, the key figures and the files; exit with code 3 for a failure. more: further JSON entries."""
    quality, provenance = alignment.quality, alignment.provenance
    if json:
        console.print_json(
            {
                "command": command,
                "method": provenance.method,
                "verdict": quality.verdict,
                "files": [str(path) for path in files],
                "quality": quality.to_dict(),
                "provenance": provenance.to_dict(),
                **more,
            }
        )
    else:
        console.say(quality.explanation, STYLES[quality.verdict])
        console.figures(
            [
                ("method", f"{provenance.method}, seed {provenance.seed}"),
                *quality_rows(quality),
                ("time", times(provenance.seconds)),
                *(("file" if number == 0 else "", str(path)) for number, path in enumerate(files)),
            ]
        )
    exit_by(quality, explained=not json)
