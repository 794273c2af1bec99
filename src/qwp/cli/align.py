"""`qwp align`: put two or more vector files into one space."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from qwp.cli import console, export, options, parameters
from qwp.cli.aliases import ALIGN_ALIASES, EXPLAINED_BY_ALIGN, AliasedCommand
from qwp.cli.folders import Folder
from qwp.cli.help import HelpAll
from qwp.cli.options import file
from qwp.cli.results import Pair, Several, Task
from qwp.downloads.folders import named_vectors
from qwp.errors import InputError
from qwp.methods import Aligner, make_aligner, starts_from_lexicon
from qwp.methods.settings import Supervision
from qwp.showing.bar import AlignProgress
from qwp.spaces.embeddings import SIDES, Embeddings, FloatArray, Side
from qwp.spaces.io.files import check_file
from qwp.spaces.lexicon import Lexicon


class Stopwatch:
    """Takes the time of one part after the other. `seconds` holds them by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._since = time.perf_counter()

    def lap(self, name: str) -> None:
        """The part that ends now is called `name`."""
        now = time.perf_counter()
        self.seconds[name] = self.seconds.get(name, 0.0) + now - self._since
        self._since = now

    def skip(self) -> None:
        """Do not count the part that ends now."""
        self._since = time.perf_counter()


@dataclass(frozen=True)
class Inputs:
    """Arguments that name the vectors of two or more languages."""

    src: Annotated[
        Path,
        typer.Argument(
            metavar="SRC", help="Vectors of the source language, or its name in `qwp data`.", show_default=False
        ),
    ]
    tgt: Annotated[Path, typer.Argument(metavar="TGT", help="Vectors of the target language.", show_default=False)]
    more: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="MORE",
            help="Vectors of further languages, aligned onto TGT too (--method multi).",
            show_default=False,
        ),
    ] = None

    def paths(self) -> list[Path]:
        """Return the vector files. A name of `qwp data` stands for a downloaded file."""
        return [named_vectors(path) for path in (self.src, self.tgt, *(self.more or []))]


@dataclass(frozen=True)
class Mode:
    """Options of the command itself."""

    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="Settings by name in TOML, with - or _. Flags win over it.",
            show_default=False,
            rich_help_panel=parameters.RUN,
        ),
    ] = None
    force: Annotated[
        bool,
        typer.Option("--force", help="Align again and replace an existing result.", rich_help_panel=parameters.RUN),
    ] = False
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Show warnings and errors only.", rich_help_panel=parameters.RUN)
    ] = False
    json: options.Json = False
    help_all: HelpAll = False


@dataclass(frozen=True)
class SingleMode(Mode):
    """Options of `qwp align` itself."""

    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted run.", rich_help_panel=parameters.RUN)
    ] = False
    profile: Annotated[
        bool,
        typer.Option(
            "--profile",
            help="Show the time and the share of each stage, including reading and saving.",
            rich_help_panel=parameters.RUN,
        ),
    ] = False


# Settings that say how the files are read.
OF_THE_FILES = (
    *("max_vocab", "errors", "input_format", "encoding"),
    *("src_vocab", "tgt_vocab", "src_words", "tgt_words"),
)


class Command(AliasedCommand):
    """`qwp align`, whose --help shows the options of every day only."""

    aliases, explained = ALIGN_ALIASES, EXPLAINED_BY_ALIGN
    brief = parameters.brief_help()
    panels = parameters.HELP_PANELS
    everyday = frozenset(
        {
            *("out", "json", "help_all", "force", "src_out", "tgt_out"),
            *("config", "resume", "quiet", "method", "seed", "device", "threads", "verdict"),
            *("max_vocab", "errors", "lexicon", "start", "refine"),
        }
    )


def align(
    inputs: Inputs,
    *,
    out: Annotated[
        Path | None, file("--out", "-o", metavar="DIR", help="Folder for the result; not needed with --src-out.")
    ] = None,
    exported: export.Outs,
    mode: SingleMode,
    **flags: Any,
) -> None:
    """Align SRC onto TGT and save the result in DIR. The default method, qwp, needs no dictionary.

    --src-out and --tgt-out write the vectors in the common space as well, or alone, as `qwp export` does.

    Exit code 0: done (a warning says when there were too few words to judge it); 2: bad input;
    3: the result was saved but is judged to have failed; 130: interrupted, the same command continues.
    """
    values = parameters.resolve(flags, mode.config)
    files = {name: values.pop(name, parameters.FLAGS[name].parameter.default) for name in OF_THE_FILES}
    keep = values.pop("save", parameters.FLAGS["save"].parameter.default)
    aligner, supervision = checked_aligner(values)
    paths = inputs.paths()
    task: Task = Several(aligner, supervision, paths) if inputs.more else Pair(aligner, supervision)
    outs = exported.checked({})
    _check_asked(out, outs, paths)
    folder = Folder(out, force=mode.force, resume=mode.resume, vectors=keep == "all")
    folder.check(task)
    silent = mode.json or mode.quiet
    clock = Stopwatch()
    try:
        spaces, warnings = _read(paths, files, quiet=mode.quiet)
        clock.lap("read")
        already_there = folder.holds_result()
        if already_there:
            folder.load_same(task, task.identity(spaces))
        else:
            folder.announce()
            with AlignProgress(quiet=mode.quiet) as progress:
                task.fit(spaces, progress, folder.checkpoint)
            clock.skip()
            folder.save(task)
            clock.lap("save")
    except KeyboardInterrupt as error:
        code = console.stop(console.INTERRUPTED, folder.interrupted(), console.interrupted_code(error))
        raise typer.Exit(code) from None
    stages = [] if already_there else _profile(clock, task.seconds())
    if not silent:
        (task.show_again if already_there else task.show)(out)
    written = _export(task, outs, paths, files, quiet=silent)
    if mode.json:
        about = {**task.as_json(out), "already_there": already_there, **written, "warnings": warnings}
        console.print_json({**about, "profile": stages} if mode.profile else about)
    elif stages and mode.profile:
        rows = [(s["stage"], console.seconds(s["seconds"]), f"{100 * s['share']:.1f} %") for s in stages]
        console.table(("stage", "time", "share"), rows, title=f"Profile ({task.place()})")
    task.exit(explained=not silent)


def _export(
    task: Task, outs: Mapping[Side, Path], paths: Sequence[Path], files: Mapping[str, Any], *, quiet: bool
) -> dict[str, Any]:
    """Write the vectors of both languages: all words of a file of which only the first were aligned."""
    if not outs:
        return {}
    assert isinstance(task, Pair), "several languages are not exported here"
    sources: dict[Side, Path | None] = {
        side: None if getattr(task.alignment.provenance, side).whole else path
        for side, path in zip(SIDES, paths, strict=True)
    }
    reading = {side: {**how_to_read(files), **_naming(files, side)} for side in outs}
    return {"exported": export.write_sides(task.alignment, outs, sources, reading, json=quiet)}


def _check_asked(out: Path | None, outs: Mapping[Side, Path], paths: Sequence[Path]) -> None:
    """Refuse a run whose result would go nowhere, or onto what it is made from."""
    if len(paths) > 2 and (out is None or outs):
        raise InputError(
            f"{len(paths)} vector files were given, and the result of several is a folder: expected --out DIR, and "
            "--src-out and --tgt-out of `qwp export DIR/NAME` afterwards"
        )
    if out is None and not outs:
        raise InputError("nothing to write was asked for; expected --out DIR, or --src-out FILE and --tgt-out FILE")
    if outs:
        from qwp.cli.streaming import refuse_sources

        refuse_sources(outs.values(), paths)


def _read(paths: Sequence[Path], files: dict[str, Any], *, quiet: bool) -> tuple[list[Embeddings], list[str]]:
    """The vectors of all files, and the warnings about them."""
    vocabularies = [None if files[name] is None else Path(files[name]) for name in ("src_vocab", "tgt_vocab")]
    words = [None if files[name] is None else Path(files[name]) for name in ("src_words", "tgt_words")]
    for path in (*paths, *vocabularies, *words):  # all before the first is read, which may take minutes
        if path is not None:
            check_file(path)
    how = {"max_vocab": files["max_vocab"], **how_to_read(files)}
    spaces, warnings = [], []
    for path, vocab, side in zip_longest(paths, vocabularies, SIDES):
        if not quiet:
            console.note(f"reading {path}")
        space, found = options.load_space(path, vocab=vocab, **how, **_naming(files, side))
        if vocab is not None and space.report is not None and not quiet:
            console.note(f"{len(space):,} of the {space.report.vocab_words:,} words of {vocab} found in {path}")
        spaces.append(space)
        warnings += found
    return spaces, warnings


def how_to_read(files: Mapping[str, Any]) -> dict[str, Any]:
    """How the words and vectors of all files are read."""
    return {"errors": files["errors"], "format": files["input_format"], "encoding": files["encoding"]}


def _naming(files: Mapping[str, Any], side: Side | None) -> dict[str, Any]:
    """Where the words of a file are, and what its rows are called if they have none. side: None for further files."""
    return {} if side is None else {"words": files[f"{side}_words"], "label": side}


def checked_aligner(values: dict[str, Any]) -> tuple[Aligner, Supervision]:
    """The aligner and what it is told besides the vectors, checked before any of them is read."""
    method = values.pop("method", parameters.DEFAULT_METHOD)
    lexicon, matrix = _files_of_start(values)
    parameters.check_options(method, values)
    if lexicon is not None and starts_from_lexicon(method):
        values.setdefault("start", "lexicon")
    aligner = make_aligner(method, **values)
    supervision = Supervision(
        None if lexicon is None else Lexicon.load(lexicon), None if matrix is None else _load_matrix(Path(matrix))
    )
    aligner.validate(supervision)
    return aligner, supervision


def _files_of_start(values: dict[str, Any]) -> tuple[str | None, str | None]:
    """The lexicon and the matrix that `--lexicon` and `--start KIND:FILE` name; `values` keeps the bare kind."""
    files = {"lexicon": values.pop("lexicon", None), "matrix": None}
    kind, colon, file = str(values.get("start", "")).partition(":")
    if colon and kind not in files:
        raise InputError(f"--start {values['start']} is not known; only lexicon:FILE and matrix:FILE take a file")
    if file and files[kind] is not None:
        raise InputError(f"--lexicon {files[kind]} and --start {kind}:{file} name two lexicons: leave one of them out")
    if kind in files:
        values["start"] = kind
        files[kind] = file or files[kind]
        if files[kind] is None:
            raise InputError(f"--start {kind} names no file; expected --start {kind}:FILE")
    return files["lexicon"], files["matrix"]


def _load_matrix(path: Path) -> FloatArray:
    try:
        matrix = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{path} cannot be read as a .npy array ({error}); expected one from numpy.save") from error
    if not isinstance(matrix, np.ndarray) or matrix.ndim != 2 or matrix.dtype.kind not in "fiu":
        raise InputError(f"{path} does not hold one matrix of numbers; expected a (d, d) array from numpy.save")
    return matrix


def _profile(clock: Stopwatch, fitted: dict[str, float]) -> list[dict[str, Any]]:
    """Seconds and share of every stage from reading to saving."""
    seconds = {"read": clock.seconds["read"], **fitted, "save": clock.seconds["save"]}
    total = sum(seconds.values())
    return [{"stage": name, "seconds": value, "share": value / total} for name, value in seconds.items()]


command = options.with_options(align, parameters.flag_signature())
