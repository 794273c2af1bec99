"""`qwp align`: put two or more vector files into one space."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from qwp.cli import console, options, parameters
from qwp.cli.help import HelpAll, HelpfulCommand
from qwp.cli.results import Pair, Several, Task
from qwp.cli.stopwatch import Stopwatch
from qwp.errors import InputError
from qwp.methods import Aligner, make_aligner, starts_from_lexicon
from qwp.methods.supervision import Supervision
from qwp.results.checkpoints import Checkpoint
from qwp.showing.bar import AlignProgress
from qwp.spaces.embeddings import Embeddings, FloatArray
from qwp.spaces.io.files import check_file
from qwp.spaces.lexicon import Lexicon

More = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="MORE", help="Vectors of further languages, aligned onto TGT too (--method multi).", show_default=False
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="Settings by name in TOML, with - or _. Flags win over it.",
        show_default=False,
        rich_help_panel=parameters.RUN,
    ),
]
Resume = Annotated[bool, typer.Option("--resume", help="Continue an interrupted run.", rich_help_panel=parameters.RUN)]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Show warnings and errors only.", rich_help_panel=parameters.RUN)
]
Profile = Annotated[
    bool,
    typer.Option(
        "--profile",
        help="Show the time and the share of each stage, reading and saving included.",
        rich_help_panel=parameters.RUN,
    ),
]


class AlignCommand(HelpfulCommand):
    """`qwp align`, whose --help shows the options of every day only."""

    brief = parameters.brief_help()
    panels = parameters.HELP_PANELS
    everyday = frozenset(
        {
            *("out", "json", "help_all", "force", "src_out", "tgt_out", "save"),
            *("config", "resume", "quiet", "method", "seed", "device", "threads", "verdict"),
            *("max_vocab", "errors", "lexicon", "start", "refine"),
        }
    )


def align(
    src: Annotated[Path, typer.Argument(metavar="SRC", help="Vectors of the source language.", show_default=False)],
    tgt: Annotated[Path, typer.Argument(metavar="TGT", help="Vectors of the target language.", show_default=False)],
    more: More = None,
    *,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for the result.", show_default=False)],
    config: Config = None,
    resume: Resume = False,
    json: options.Json = False,
    quiet: Quiet = False,
    profile: Profile = False,
    help_all: HelpAll = False,
    **flags: Any,
) -> None:
    """Align SRC onto TGT and save the result in DIR. The default method, qwp, needs no dictionary.

    Exit code 0: done (a warning says when there were too few words to judge it); 2: bad input;
    3: the result was saved but is judged to have failed; 130: interrupted, continue with --resume.
    """
    values = parameters.resolve(flags, config)
    if out.exists() and not out.is_dir():
        raise InputError(f"--out {out} is a file; expected the name of a folder to save into")
    files = {
        name: values.pop(name, parameters.FLAGS[name].parameter.default)
        for name in ("max_vocab", "errors", "input_format")
    }
    aligner, supervision = _make_aligner(values)
    paths = [src, tgt, *(more or [])]
    task: Task = Several(aligner, supervision, paths) if more else Pair(aligner, supervision)
    checkpoint = Checkpoint(out, resume=resume)
    clock = Stopwatch()
    try:
        spaces, warnings = _read(paths, files, quiet=quiet)
        clock.lap("read")
        finished = resume and not checkpoint.path.exists() and (out / task.index_file).exists()
        if finished:
            _load_same(task, out, spaces, checkpoint)
        else:
            _announce(checkpoint, out)
            with AlignProgress(quiet=quiet) as progress:
                task.fit(spaces, progress, checkpoint)
            clock.skip()
            _save(task, out, checkpoint)
            clock.lap("save")
    except KeyboardInterrupt as error:
        code = console.stop(console.INTERRUPTED, _interrupted(checkpoint), console.interrupted_code(error))
        raise typer.Exit(code) from None
    stages = [] if finished else _profile(clock, task.seconds())
    if json:
        about = {**task.as_json(out), "warnings": warnings}
        console.print_json({**about, "profile": stages} if profile else about)
    elif not quiet:
        (task.show_again if finished else task.show)(out)
    if stages and profile and not json:
        rows = [(s["stage"], console.seconds(s["seconds"]), f"{100 * s['share']:.1f} %") for s in stages]
        console.table(("stage", "time", "share"), rows, title=f"Profile ({task.place()})")
    task.exit(explained=not (json or quiet))


def _load_same(task: Task, out: Path, spaces: Sequence[Embeddings], checkpoint: Checkpoint) -> None:
    """Load the finished result of an earlier run, if it was the same run as the one that is asked for."""
    difference = task.identity(spaces).difference(task.load(out))
    if difference is not None:
        raise InputError(
            f"{out} holds the finished result of another run ({difference}): "
            "run without --resume to replace it, or give another --out"
        )
    with suppress(OSError):  # nothing depends on it: the folder may be one that can only be read
        checkpoint.clear()


def _save(task: Task, out: Path, checkpoint: Checkpoint) -> None:
    """Save the result; the checkpoint goes when that has worked."""
    try:
        task.save(out)
    except (OSError, InputError) as error:
        reason = (error.strerror or error) if isinstance(error, OSError) else error
        kept = " and so is the checkpoint" if checkpoint.path.exists() else ""
        raise InputError(
            f"the result could not be saved in {out} ({reason}); what was there before is kept{kept}: when that "
            "is put right, give the same command with --resume"
        ) from error
    checkpoint.clear()


def _read(paths: Sequence[Path], files: dict[str, Any], *, quiet: bool) -> tuple[list[Embeddings], list[str]]:
    """The vectors of all files, and the warnings about them."""
    for path in paths:  # all before the first is read, which may take minutes
        check_file(path)
    spaces, warnings = [], []
    for path in paths:
        if not quiet:
            console.note(f"reading {path}")
        space, found = options.load_space(path, files["max_vocab"], files["errors"], files["input_format"])
        spaces.append(space)
        warnings += found
    return spaces, warnings


def _make_aligner(values: dict[str, Any]) -> tuple[Aligner, Supervision]:
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


def _announce(checkpoint: Checkpoint, out: Path) -> None:
    """Say what happens with an earlier run in the same folder."""
    if checkpoint.resume:
        if checkpoint.path.exists():
            console.note(f"continuing the interrupted run in {out}")
        else:
            console.note(f"there is no interrupted run in {out}; starting from the beginning")
    elif checkpoint.path.exists():
        console.warn(f"an interrupted run is in {out}; starting afresh (--resume would have continued it)")
        checkpoint.clear()


def _interrupted(checkpoint: Checkpoint) -> str:
    if checkpoint.path.exists():
        return f"interrupted: the checkpoint {checkpoint.path} is kept; give the same command with --resume to continue"
    return "interrupted before the first checkpoint: nothing was saved"


def _profile(clock: Stopwatch, fitted: dict[str, float]) -> list[dict[str, Any]]:
    """Seconds and share of every stage from reading to saving."""
    seconds = {"read": clock.seconds["read"], **fitted, "save": clock.seconds["save"]}
    total = sum(seconds.values())
    return [{"stage": name, "seconds": value, "share": value / total} for name, value in seconds.items()]


def _with_flags() -> Any:
    """`align` with one flag for each parameter in place of **flags."""
    own = inspect.signature(align, eval_str=True)
    given = [p for p in own.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    # Annotations too: older versions of typer read them rather than the signature.
    named = given + parameters.flag_signature()
    align.__signature__ = own.replace(parameters=named)  # type: ignore[attr-defined]
    align.__annotations__ = {p.name: p.annotation for p in named} | {"return": None}
    return console.guarded(align)


command = _with_flags()
