"""`qwp align`: align two vector files."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from qwp.arrays import AnyFloats
from qwp.cli import console, export, options, parameters
from qwp.cli.aliases import ALIGN_ALIASES, EXPLAINED_BY_ALIGN, AliasedCommand
from qwp.cli.folders import ResultFolder
from qwp.cli.help import HelpAll
from qwp.cli.options import option
from qwp.cli.results import PairTask
from qwp.cli.streaming import refuse_sources
from qwp.downloads.folders import named_vectors
from qwp.errors import InputError
from qwp.methods import Aligner, lexicon_start, make_aligner
from qwp.methods.settings import Supervision
from qwp.parameters import RUN, START
from qwp.showing import terminal
from qwp.showing.bar import AlignProgress
from qwp.spaces.embeddings import SIDES, Embeddings, Side
from qwp.spaces.io.files import check_file, file_fingerprint
from qwp.spaces.io.sources import split_part
from qwp.spaces.lexicon import Lexicon

READING = (
    *("max_vocab", "errors", "input_format", "encoding"),
    *("src_vocab", "tgt_vocab", "src_words", "tgt_words"),
)
"""Settings that say how the files are read."""
# Files beside a vector file that belong to it: words of arrays and indexes, and logs of open databases.
_COMPANIONS = ("{stem}.words.txt", "{name}.words.txt", "{stem}.json", "{name}-wal", "{name}.wal")


@dataclass(frozen=True)
class SpaceArguments:
    """Arguments that name the vectors of two languages."""

    src: Annotated[
        Path, typer.Argument(metavar="SRC", help="Vectors of the source language, or its name in `qwp data`.")
    ]
    tgt: Annotated[Path, typer.Argument(metavar="TGT", help="Vectors of the target language.")]
    more: Annotated[
        list[Path] | None,
        typer.Argument(hidden=True, help="Refused: `qwp align-all` takes more than two files."),
    ] = None

    def paths(self) -> list[Path]:
        """Return the vector files. A name of `qwp data` stands for a downloaded file."""
        if self.more:
            files = " ".join(str(path) for path in (self.src, self.tgt, *self.more))
            raise InputError(
                f"{2 + len(self.more)} vector files were given; expected two. `qwp align-all {files} --out DIR` aligns "
                "every two of several"
            )
        return [named_vectors(path) for path in (self.src, self.tgt)]


@dataclass(frozen=True)
class AlignMode:
    """Options of the command itself."""

    config: Path | None = option("Settings by name in TOML; flags win over it.", panel=RUN)
    force: bool = option("Align again and replace an existing result.", default=False, panel=RUN)
    quiet: bool = option("Show warnings and errors only.", default=False, flags=("--quiet", "-q"), panel=RUN)
    json: options.Json = False
    help_all: HelpAll = False


@dataclass(frozen=True)
class SingleMode(AlignMode):
    """Options of `qwp align` itself."""

    resume: bool = option("Continue an interrupted run.", default=False, panel=RUN)
    via: list[Path] | None = option(
        "A third language to align over; may be repeated.",
        panel=START,
    )
    profile: bool = option(
        "Show the time and the share of each stage, including reading and saving.", default=False, panel=RUN
    )


@dataclass(frozen=True)
class AlignOuts(export.Outs):
    """Options that name the results."""

    out: Path | None = option("Folder for the result; not needed with --src-out.", "DIR", flags=("--out", "-o"))


@dataclass(frozen=True)
class InputFiles:
    """The vector files of a run. settings: the parameters `READING`."""

    paths: Sequence[Path]
    settings: Mapping[str, Any]

    def format(self) -> dict[str, Any]:
        """Return the arguments of `qwp.load` for the format of all files."""
        return {
            "errors": self.settings["errors"],
            "format": self.settings["input_format"],
            "encoding": self.settings["encoding"],
        }

    def words(self, side: Side | None) -> dict[str, Any]:
        """Return the arguments of `qwp.load` for words of rows without words. side: None for a third language."""
        return {} if side is None else {"words": self.settings[f"{side}_words"], "label": side}

    def _each(self) -> list[tuple[Path, Path | None, dict[str, Any]]]:
        """Return each file, its vocabulary and the other arguments of `qwp.load`."""
        found = []
        for path, side in zip_longest(self.paths, SIDES):
            vocab = None if side is None else self.settings[f"{side}_vocab"]
            reading = {"max_vocab": self.settings["max_vocab"], **self.format(), **self.words(side)}
            found.append((path, None if vocab is None else Path(vocab), reading))
        return found

    def check(self) -> None:
        """Refuse missing files before the first is read, which may take minutes."""
        for path, vocab, reading in self._each():
            for each in (path, vocab, reading.get("words")):
                if each is not None:
                    check_file(Path(each))

    def fingerprints(self) -> list[str | None]:
        """Return the fingerprint of each file, see `source_fingerprint`."""
        return [source_fingerprint(path, vocab, reading) for path, vocab, reading in self._each()]

    def read(self, *, quiet: bool) -> tuple[list[Embeddings], list[str]]:
        """Read all files. Returns the warnings about them, too."""
        spaces, warnings = [], []
        for path, vocab, reading in self._each():
            if not quiet:
                terminal.note(f"reading {path}")
            space, found = options.load_space(path, vocab=vocab, **reading)
            if vocab is not None and space.report is not None and not quiet:
                terminal.note(f"{len(space):,} of the {space.report.vocab_words:,} words of {vocab} found in {path}")
            spaces.append(space)
            warnings += found
        return spaces, warnings


def source_fingerprint(path: Path, vocab: Path | None, reading: Mapping[str, Any]) -> str | None:
    """Return a digest of a vector file, its companions and how it is read, without reading all of it.

    Equal fingerprints mean equal vectors; vectors from different files may be equal, too. None for a pipe, which can be
    read only once.
    """
    main, part = split_part(path)
    words = reading.get("words")
    beside = [main.with_name(name.format(stem=main.stem, name=main.name)) for name in _COMPANIONS]
    files = {"main": main, "vocab": vocab, "words": None if words is None else Path(words)}
    files |= {name: file for name, file in zip(_COMPANIONS, beside, strict=True) if file.exists()}
    given = {name: file for name, file in files.items() if file is not None}
    if not all(file.is_file() for file in given.values()):
        return None
    how = {name: value for name, value in reading.items() if name != "words"}
    if "label" not in how:
        how["label"] = main.name  # the file then names rows without words
    content = {name: file_fingerprint(file) for name, file in given.items()}
    return hashlib.sha256(json.dumps([content, part, how], sort_keys=True).encode()).hexdigest()


class Command(AliasedCommand):
    """`qwp align`, whose --help shows the most used options."""

    aliases, explained = ALIGN_ALIASES, EXPLAINED_BY_ALIGN
    brief = parameters.brief_help()
    panels = parameters.HELP_PANELS
    everyday = frozenset(
        {
            *("out", "json", "help_all", "force", "src_out", "tgt_out"),
            *("config", "resume", "quiet", "method", "seed", "device", "effort", "verdict"),
            *("max_vocab", "errors", "lexicon", "start", "via", "refine"),
        }
    )


def align(inputs: SpaceArguments, outs: AlignOuts, mode: SingleMode, **flags: Any) -> None:
    """Align SRC onto TGT and save the result in DIR. The default method, qwp, needs no dictionary.

    --src-out and --tgt-out write the vectors in the common space as well, or alone, as `qwp export` does.

    Exit code 0: done (with a warning if there were too few words to judge it); 2: bad input; 3: the result was saved
    but is judged to have failed; 130: interrupted, the same command continues.
    """
    values = parameters.resolve(flags, mode.config)
    via = [named_vectors(path) for path in mode.via or []]
    files = InputFiles([*inputs.paths(), *via], parameters.popped(values, READING))
    keep = parameters.popped(values, ["save"])["save"]
    aligner, supervision = checked_aligner(values, bridged=bool(via))
    task = PairTask(aligner, supervision, len(via))
    out, exported = outs.out, outs.checked({})
    _check_outs(out, exported, files.paths)
    folder = ResultFolder(out, force=mode.force, resume=mode.resume, vectors=keep == "all")
    folder.check(task)
    files.check()
    try:
        run = _run(task, files, folder, quiet=mode.quiet)
    except KeyboardInterrupt as error:
        raise console.interrupted(error, folder.interrupted()) from None
    silent = mode.json or mode.quiet
    if not silent:
        (task.show_existing if run.already_there else task.show)(out)
    written = _export(task, exported, files, quiet=silent)
    if mode.json:
        about = {**task.as_json(out), "already_there": run.already_there, **written, "warnings": run.warnings}
        console.print_json({**about, "profile": run.profile} if mode.profile else about)
    elif run.profile and mode.profile:
        rows = [(s["stage"], terminal.seconds(s["seconds"]), f"{100 * s['share']:.1f} %") for s in run.profile]
        console.table(("stage", "time", "share"), rows, title=f"Profile ({task.device()})")
    task.exit(explained=not silent)


@dataclass(frozen=True)
class AlignRun:
    """How a result was obtained. profile: seconds and share of each stage, empty for an existing result."""

    already_there: bool
    warnings: Sequence[str] = ()
    profile: Sequence[dict[str, Any]] = ()


def _run(task: PairTask, files: InputFiles, folder: ResultFolder, *, quiet: bool) -> AlignRun:
    """Fit the task and save the result, or load the result of the same run.

    If the fingerprints of the files match those of an existing result, the vectors are not read. If they differ, the
    vectors themselves decide: the files may have been copied or converted.
    """
    begin = time.perf_counter()
    saved = folder.path is not None
    sources = dict(zip(task.names, files.fingerprints() if saved else [None] * len(files.paths), strict=True))
    if folder.holds_result_of(sources):
        folder.load(task)
        return AlignRun(already_there=True)
    spaces, warnings = files.read(quiet=quiet)
    read = time.perf_counter() - begin
    if folder.holds_result():
        hashes = {name: space.sha256() for name, space in zip(task.names, spaces, strict=True)}
        folder.load(task, task.identity(hashes))
        return AlignRun(already_there=True, warnings=warnings)
    folder.announce()
    with AlignProgress(quiet=quiet) as progress:
        task.fit(spaces, sources, progress=progress, checkpoint=folder.checkpoint)
    begin = time.perf_counter()
    folder.save(task)
    seconds = {"read": read, **task.seconds(), "save": time.perf_counter() - begin}
    total = sum(seconds.values())
    stages = [{"stage": name, "seconds": value, "share": value / total} for name, value in seconds.items()]
    return AlignRun(already_there=False, warnings=warnings, profile=stages)


def _export(task: PairTask, outs: Mapping[Side, Path], files: InputFiles, *, quiet: bool) -> dict[str, Any]:
    """Write the vectors of both languages: all words of a file, even if only the first were aligned."""
    if not outs:
        return {}
    sources: dict[Side, Path | None] = {
        side: None if getattr(task.alignment.provenance, side).whole else path
        for side, path in zip(SIDES, files.paths, strict=True)
    }
    reading = {side: {**files.format(), **files.words(side)} for side in outs}
    return {"exported": export.write_sides(task.alignment, outs, sources, reading, quiet=quiet)}


def _check_outs(out: Path | None, outs: Mapping[Side, Path], paths: Sequence[Path]) -> None:
    """Refuse a run without an output, or with an output that would replace an input."""
    if out is None and not outs:
        raise InputError("nothing to write was asked for; expected --out DIR, or --src-out FILE and --tgt-out FILE")
    refuse_sources(outs.values(), paths)


def checked_aligner(values: dict[str, Any], *, bridged: bool = False) -> tuple[Aligner, Supervision]:
    """Return the aligner and its supervision, checked before any vectors are read."""
    method = values.pop("method", parameters.DEFAULT_METHOD)
    lexicon, matrix = _start_files(values)
    parameters.check_options(method, values)
    aligner = make_aligner(method, **{**lexicon_start(method, given=lexicon is not None), **values})
    supervision = Supervision(
        None if lexicon is None else Lexicon.load(lexicon), None if matrix is None else _load_matrix(Path(matrix))
    )
    aligner.validate(supervision, bridged=bridged)
    return aligner, supervision


def _start_files(values: dict[str, Any]) -> tuple[str | None, str | None]:
    """Return the files of `--lexicon` and `--start KIND:FILE`. `values` keeps the bare KIND."""
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


def _load_matrix(path: Path) -> AnyFloats:
    try:
        matrix = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{path} cannot be read as a .npy array ({error}); expected one from numpy.save") from error
    if not isinstance(matrix, np.ndarray) or matrix.ndim != 2 or matrix.dtype.kind not in "fiu":
        raise InputError(f"{path} does not hold one matrix of numbers; expected a (d, d) array from numpy.save")
    return matrix


command = options.with_options(align, parameters.flag_signature())
