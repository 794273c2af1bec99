"""`qwp align`: put two or more vector files into one space."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from qwp.cli import console, folders, options, parameters
from qwp.cli.progress import AlignProgress
from qwp.cli.results import Pair, Several, Task
from qwp.cli.stopwatch import Stopwatch
from qwp.errors import InputError
from qwp.methods import METHODS, Aligner, make_aligner
from qwp.methods.supervision import OPTIONAL, Supervision
from qwp.results.checkpoints import Checkpoint
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
        metavar="FILE.toml",
        help="Settings by name, with - or _. Flags win over it.",
        show_default=False,
        rich_help_panel=parameters.RUN,
    ),
]
Resume = Annotated[bool, typer.Option("--resume", help="Continue an interrupted run.", rich_help_panel=parameters.RUN)]
Force = Annotated[
    bool,
    typer.Option("--force", help="Align anew, and replace what DIR holds.", rich_help_panel=parameters.RUN),
]
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


def align(
    src: Annotated[Path, typer.Argument(metavar="SRC", help="Vectors of the source language.", show_default=False)],
    tgt: Annotated[Path, typer.Argument(metavar="TGT", help="Vectors of the target language.", show_default=False)],
    more: More = None,
    *,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for the result.", show_default=False)],
    config: Config = None,
    resume: Resume = False,
    force: Force = False,
    json: options.Json = False,
    quiet: Quiet = False,
    profile: Profile = False,
    **flags: Any,
) -> None:
    """Align SRC onto TGT and save the result in DIR. The default method, qwp, needs no dictionary.

    Exit code 0: done (a warning says when there were too few words to judge it); 2: bad input;
    3: the result was saved but is judged to have failed; 130: interrupted, the same command continues.
    """
    values = parameters.resolve(flags, config)
    files = {
        name: values.pop(name, parameters.FLAGS[name].parameter.default)
        for name in ("max_vocab", "errors", "input_format")
    }
    aligner, supervision = _make_aligner(values)
    paths = [src, tgt, *(more or [])]
    task: Task = Several(aligner, supervision, paths) if more else Pair(aligner, supervision)
    folders.check(out, task, force=force, resume=resume)
    checkpoint = Checkpoint(out, resume=not force)
    clock = Stopwatch()
    try:
        spaces, warnings = _read(paths, files, quiet=quiet)
        clock.lap("read")
        already_there = not force and folders.holds_result(out)
        if already_there:
            folders.load_same(task, out, spaces)
        else:
            folders.announce(checkpoint, out, resume=resume)
            with AlignProgress(quiet=quiet) as progress:
                task.fit(spaces, progress, checkpoint)
            clock.skip()
            _save(task, out, checkpoint)
            clock.lap("save")
    except KeyboardInterrupt as error:
        _tell_interrupted(checkpoint)
        raise typer.Exit(console.interrupted_code(error)) from None
    stages = [] if already_there else _profile(clock, task.seconds())
    if json:
        about = {**task.as_json(out), "already_there": already_there, "warnings": warnings}
        console.print_json({**about, "profile": stages} if profile else about)
    elif not quiet:
        (task.show_again if already_there else task.show)(out)
    if stages and profile and not json:
        rows = [(s["stage"], console.seconds(s["seconds"]), f"{100 * s['share']:.1f} %") for s in stages]
        console.table(("stage", "time", "share"), rows, title=f"Profile ({task.place()})")
    task.exit(explained=not (json or quiet))


def _save(task: Task, out: Path, checkpoint: Checkpoint) -> None:
    """Save the result; the checkpoint goes when that has worked."""
    try:
        task.save(out)
    except (OSError, InputError) as error:
        reason = (error.strerror or error) if isinstance(error, OSError) else error
        kept = " and so is the checkpoint" if checkpoint.path.exists() else ""
        raise InputError(
            f"the result could not be saved in {out} ({reason}); what was there before is kept{kept}: when that "
            f"is put right, give {_same_command(checkpoint)}"
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
    if lexicon is not None and _can_start_from_lexicon(METHODS[method]):
        values.setdefault("start", "lexicon")
    aligner = make_aligner(method, **values)
    supervision = Supervision(
        None if lexicon is None else Lexicon.load(lexicon), None if matrix is None else _load_matrix(Path(matrix))
    )
    aligner.validate(supervision)
    return aligner, supervision


def _can_start_from_lexicon(method: type[Aligner]) -> bool:
    return method.supervision == OPTIONAL and "start" in method.parameter_names()


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


def _tell_interrupted(checkpoint: Checkpoint) -> None:
    if checkpoint.path.exists():
        console.note(
            f"interrupted: the checkpoint {checkpoint.path} is kept; give {_same_command(checkpoint)} to continue"
        )
    else:
        console.note("interrupted before the first checkpoint: nothing was saved")


def _same_command(checkpoint: Checkpoint) -> str:
    """How to say what continues a run: --force would discard its checkpoint."""
    return "the same command again" + ("" if checkpoint.resume else " without --force")


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
