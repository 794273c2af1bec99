"""`qwp align`: put two vector files into one space."""

from __future__ import annotations

import inspect
import shlex
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from qwp.alignment import INDEX_FILE, Alignment, read_index
from qwp.checkpoint import Checkpoint
from qwp.cli import console, options, parameters
from qwp.cli.progress import AlignProgress
from qwp.cli.stopwatch import Stopwatch
from qwp.embeddings import FloatArray
from qwp.errors import InputError
from qwp.io.files import check_file
from qwp.lexicon import Lexicon
from qwp.quality import UNDECIDED, Quality

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
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for the result.", show_default=False)],
    config: Config = None,
    resume: Resume = False,
    json: options.Json = False,
    quiet: Quiet = False,
    profile: Profile = False,
    **flags: Any,
) -> None:
    """Align SRC onto TGT without a dictionary and save the result in DIR.

    Exit code 0: done (a warning says when there were too few words to judge it); 2: bad input;
    3: the result was saved but is judged to have failed; 130: interrupted, continue with --resume.
    """
    values = parameters.resolve(flags, config)
    if out.exists() and not out.is_dir():
        raise InputError(f"--out {out} is a file; expected the name of a folder to save into")
    files = {name: values.pop(name, parameters.PARAMETERS[name].default) for name in ("max_vocab", "errors")}
    aligner, lexicon, matrix = _make_aligner(values)
    checkpoint = Checkpoint(out, resume=resume)
    if resume and not checkpoint.path.exists() and (out / INDEX_FILE).exists():
        _report_finished(out, aligner, json=json, quiet=quiet)
        return
    _announce(checkpoint, out)
    clock = Stopwatch()
    try:
        spaces, warnings = [], []
        for path in (src, tgt):  # both before the first is read, which may take minutes
            check_file(path)
        for path in (src, tgt):
            if not quiet:
                console.note(f"reading {path}")
            space, found = options.load_space(path, **files)
            spaces.append(space)
            warnings += found
        clock.lap("read")
        with AlignProgress(quiet=quiet) as progress:
            aligner.fit(*spaces, lexicon=lexicon, start_matrix=matrix, progress=progress, checkpoint=checkpoint)
        clock.skip()
        aligner.alignment_.save(out)
        checkpoint.clear()
        clock.lap("save")
    except KeyboardInterrupt:
        _tell_interrupted(checkpoint)
        raise typer.Exit(console.EXIT_INTERRUPTED) from None
    stages = _profile(clock, aligner.alignment_.provenance.seconds)
    if json:
        about = _as_json(out, aligner.alignment_.to_dict(), warnings)
        console.print_json({**about, "profile": stages} if profile else about)
    elif not quiet:
        _show(out, aligner.alignment_)
    if profile and not json:
        rows = [(s["stage"], console.seconds(s["seconds"]), f"{100 * s['share']:.1f} %") for s in stages]
        console.table(("stage", "time", "share"), rows, title=f"Profile ({aligner.alignment_.provenance.backend})")
    _exit_by(aligner.alignment_.quality, explained=not (json or quiet))


def _make_aligner(values: dict[str, Any]) -> tuple[Any, Lexicon | None, FloatArray | None]:
    """The aligner, checked before any file is read, with what its start needs."""
    from qwp.aligners import make_aligner
    from qwp.aligners.base import Supervision

    lexicon: Lexicon | None = None
    matrix: FloatArray | None = None
    kind, colon, file = str(values.get("start", "")).partition(":")
    if kind in ("lexicon", "matrix"):
        if not file:
            raise InputError(f"--start {kind} names no file; expected --start {kind}:FILE")
        values["start"] = kind
        if kind == "lexicon":
            lexicon = Lexicon.load(file)
        else:
            matrix = _load_matrix(Path(file))
    elif colon:
        raise InputError(f"--start {values['start']} is not known; only lexicon:FILE and matrix:FILE take a file")
    aligner = make_aligner(values.pop("method", "qwp"), **values)
    aligner._validate(Supervision(lexicon, matrix))
    return aligner, lexicon, matrix


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


def _tell_interrupted(checkpoint: Checkpoint) -> None:
    if checkpoint.path.exists():
        console.note(
            f"interrupted: the checkpoint {checkpoint.path} is kept; give the same command with --resume to continue"
        )
    else:
        console.note("interrupted before the first checkpoint: nothing was saved")


# --------------------------------------------------------------------------- the result


def _show(out: Path, alignment: Alignment) -> None:
    """The verdict in words, the key figures, where it is, and what to do next."""
    quality, provenance = alignment.quality, alignment.provenance
    style = "bold red" if quality.failed else "bold yellow" if quality.verdict == UNDECIDED else "bold green"
    console.say(quality.explanation, style)
    console.figures(
        [
            ("method", f"{provenance.method}, seed {provenance.seed}"),
            ("words", f"{len(alignment.src):,} source, {len(alignment.tgt):,} target"),
            ("dimensions", str(alignment.src.dim)),
            *quality_rows(quality),
            ("time", times(provenance.seconds)),
            ("saved in", str(out)),
        ]
    )
    folder = shlex.quote(str(out))
    words = " ".join(shlex.quote(word) for word in alignment.src.words[:3])
    console.say("Next:")
    console.say(f"  qwp translate {folder} {words}")
    console.say(f"  qwp evaluate {folder} --lexicon DICTIONARY.txt")
    console.say(f"  qwp export {folder} --src-out src.vec --tgt-out tgt.vec")


def quality_rows(quality: Quality) -> list[tuple[str, str]]:
    """The unsupervised figures as names and values."""
    fitted = quality.fitted
    return [
        ("judged on", f"the {quality.n_words:,} most frequent words of each side"),
        ("mutual pairs", f"{fitted.pairs:,} ({100 * fitted.share:.1f} %), mean CSLS {fitted.mean_csls:.3f}"),
        (
            "held-out words",
            f"mean CSLS {quality.held_out.mean_csls:.3f}, {quality.ratio:.2f} times a random rotation's "
            f"({quality.held_out_random.mean_csls:.3f})",
        ),
    ]


def times(seconds: dict[str, float]) -> str:
    """The total and each stage."""
    stages = ", ".join(f"{name} {console.seconds(value)}" for name, value in seconds.items())
    return f"{console.seconds(sum(seconds.values()))} ({stages})"


def _profile(clock: Stopwatch, fitted: dict[str, float]) -> list[dict[str, Any]]:
    """Seconds and share of every stage from reading to saving."""
    seconds = {"read": clock.seconds["read"], **fitted, "save": clock.seconds["save"]}
    total = sum(seconds.values())
    return [{"stage": name, "seconds": value, "share": value / total} for name, value in seconds.items()]


def _as_json(out: Path, about: dict[str, Any], warnings: list[str]) -> dict[str, Any]:
    return {
        "command": "align",
        "out": str(out),
        "verdict": about["quality"]["verdict"],
        "quality": about["quality"],
        "provenance": about["provenance"],
        "seconds": sum(about["provenance"]["seconds"].values()),
        "warnings": warnings,
    }


def _report_finished(out: Path, aligner: Any, *, json: bool, quiet: bool) -> None:
    """`--resume` where nothing is left to do."""
    about = read_index(out)
    provenance = about["provenance"]
    wanted = {"method": aligner.method, "seed": aligner.seed, **aligner.config()}
    done = {"method": provenance["method"], "seed": provenance["seed"], **provenance["config"]}
    for name in wanted:
        if wanted[name] != done.get(name):
            raise InputError(
                f"{out} holds a finished alignment with {name}={done.get(name)!r}, "
                f"now {wanted[name]!r} is asked for: run without --resume, or with another --out"
            )
    quality = Quality.from_dict(about["quality"])
    if json:
        console.print_json(_as_json(out, about, []))
    elif not quiet:
        console.say(f"The alignment in {out} is finished; there is nothing to resume.")
        console.say(quality.explanation)
    _exit_by(quality, explained=not (json or quiet))


def _exit_by(quality: Quality, *, explained: bool) -> None:
    """Exit code 3 for a failure. The words go to stderr where stdout did not have them."""
    if quality.verdict == UNDECIDED:
        console.warn("the result could not be judged" if explained else quality.explanation)
    if quality.failed:
        console.fail("the result is saved, but it failed" + ("" if explained else f". {quality.explanation}"))
        raise typer.Exit(console.EXIT_FAILED)


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
