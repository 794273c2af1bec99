"""`qwp align-all`: align every two of several vector files."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from qwp.cli import align, console, export, options, parameters
from qwp.cli.aliases import AliasedCommand
from qwp.cli.align_many import EXCLUDED_FLAGS, refuse_options_of_one_pair
from qwp.cli.options import option
from qwp.cli.outputs import TextRows, for_stdout, tsv_lines
from qwp.downloads.folders import named_vectors
from qwp.errors import InputError
from qwp.judging.verdict import SUCCEEDED
from qwp.methods.align_all import align_all as every_two
from qwp.methods.align_all import check_names
from qwp.methods.aligner import Aligner
from qwp.parameters import RUN
from qwp.results.all_pairs import AllPairs, PairStore, pair_of, pair_record, pairs_of
from qwp.results.saved import ALIGNMENT
from qwp.results.several import MultiAlignment
from qwp.showing import terminal
from qwp.showing.bar import AlignProgress
from qwp.showing.events import Progress
from qwp.spaces.embeddings import Embeddings, name_of

_EXCLUDED = tuple(name for name in EXCLUDED_FLAGS if name != "threads")
_COLUMNS = ("src", "tgt", "verdict", "estimate", "ratio", "via", "seconds")


class Command(AliasedCommand):
    """`qwp align-all`, whose --help shows the most used options."""

    brief = parameters.brief_help()
    panels = parameters.HELP_PANELS
    everyday = align.Command.everyday | {"hub", "joint_out"}


@dataclass(frozen=True)
class AllOuts:
    """Options that name the results."""

    out: Path = option("Folder with a folder for each pair.", "DIR", flags=("--out", "-o"))
    joint_out: Path | None = option("Also write all languages in one space, as FOLDER/NAME.vec.", "FOLDER")
    hub: str | None = option("With --joint-out: the language that keeps its space.", "NAME", panel=RUN)

    def check(self, names: Sequence[str], paths: Sequence[Path]) -> None:
        """Refuse outputs that cannot be written, before any vectors are read."""
        if (self.out / ALIGNMENT).exists():
            raise InputError(f"--out {self.out} holds the alignment of one pair: expected another folder")
        if self.hub is not None and (self.hub not in names or self.joint_out is None):
            raise InputError(f"--hub {self.hub} expects --joint-out FOLDER and one of the languages {', '.join(names)}")
        if self.joint_out is not None:
            if self.joint_out.exists() and not self.joint_out.is_dir():
                raise InputError(f"--joint-out {self.joint_out} is a file; expected the name of a folder")
            if {path.resolve() for path in self.joint_files(names).values()} & {path.resolve() for path in paths}:
                raise InputError(f"--joint-out {self.joint_out} would replace the vectors: expected another folder")

    def joint_files(self, names: Sequence[str]) -> dict[str, Path]:
        """Return the file of each language in the joint space."""
        return {} if self.joint_out is None else {name: self.joint_out / f"{name}.vec" for name in names}


def align_all(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILES...", help="Vectors of two or more languages, named by their files.")
    ],
    outs: AllOuts,
    mode: align.AlignMode,
    **flags: Any,
) -> None:
    """Align every two of several vector files, bridge the pairs that fail, and show a matrix of languages.

    DIR gets a folder for each pair, such as DIR/en-es, which all commands take. The options are those of `qwp align`,
    for all pairs. Finished pairs are not computed again, so a language can be added later.

    Exit code 0: done; 2: bad input; 3: a pair is judged to have failed, all are saved; 130: interrupted, the same
    command continues.
    """
    values = parameters.resolve(flags, mode.config)
    refuse_options_of_one_pair(values, _EXCLUDED, "leave it out")
    inputs = align.InputFiles([named_vectors(path) for path in files], parameters.popped(values, align.READING))
    names = _names(inputs.paths)
    keep = parameters.popped(values, ["save"])["save"]
    aligner, _ = align.checked_aligner(values)
    outs.check(names, inputs.paths)
    inputs.check()
    store = PairStore(outs.out, vectors=keep == "all", force=mode.force)
    spaces, warnings = inputs.read(quiet=mode.quiet or mode.json)
    try:
        found = _run(aligner, dict(zip(names, spaces, strict=True)), store, quiet=mode.quiet or mode.json)
        joint = _joint(found, aligner, outs)
    except KeyboardInterrupt as error:
        again = "the same command again" + (" without --force" if mode.force else "")
        raise console.interrupted(error, f"interrupted: finished pairs are kept; give {again} to continue") from None
    if mode.json:
        console.print_json({**_as_json(found, outs, joint), "warnings": warnings})
    elif not mode.quiet and sys.stdout.isatty():
        show(found, outs)
    elif not mode.quiet:
        console.print_lines(for_stdout(tsv_lines(TextRows(_COLUMNS, [_line(each) for each in found.records()]))))
    _exit(found, outs.out)


def _names(paths: Sequence[Path]) -> list[str]:
    names = [name_of(str(path)) for path in paths]
    for name, path in zip(names, paths, strict=True):
        if names.count(name) > 1:
            raise InputError(f"{path} is not the only file named {name!r}, which is to name its language: rename it")
    check_names(names)
    return names


def _run(aligner: Aligner, spaces: Mapping[str, Embeddings], store: PairStore, *, quiet: bool) -> AllPairs:
    """Align all pairs, with a line for each finished one."""
    pairs = pairs_of(spaces)
    with AlignProgress(quiet=quiet) as bar:

        def show_event(number: int, event: Progress) -> None:
            bar(event)
            if event.stage == "verdict" and event.done == event.total:
                name = "-".join(pairs[number])
                bar.note(f"{name} (pair {number + 1} of {len(pairs)}): {event.figures.get('verdict', '')}")

        return every_two(aligner, spaces, store=store, progress=show_event)


def _joint(found: AllPairs, aligner: Aligner, outs: AllOuts) -> MultiAlignment | None:
    """Write the vectors of all languages in the joint space, if asked for."""
    if outs.joint_out is None:
        return None
    joint = found.on(aligner.device, aligner.backend).joint(outs.hub)
    outs.joint_out.mkdir(parents=True, exist_ok=True)
    files = outs.joint_files(joint.names)
    for name, alignment in joint.alignments.items():
        export.write_sides(alignment, {"src": files[name]}, {"src": None}, {"src": {}}, saved=True, quiet=True)
    first = next(iter(joint.alignments.values()))
    export.write_sides(first, {"tgt": files[joint.hub]}, {"tgt": None}, {"tgt": {}}, saved=True, quiet=True)
    for name in sorted(set(found.names) - set(joint.names)):
        console.warn(f"{name} is not in the joint space: no successful alignment connects it with {joint.hub}")
    return joint


def _as_json(found: AllPairs, outs: AllOuts, joint: MultiAlignment | None) -> dict[str, Any]:
    return {
        "command": "align-all",
        "out": str(outs.out),
        "languages": list(found.names),
        "verdict": found.verdict,
        "pairs": [{**each, "out": str(outs.out / f"{each['src']}-{each['tgt']}")} for each in found.records()],
        "joint": None
        if joint is None
        else {
            "hub": joint.hub,
            "files": {name: str(path) for name, path in outs.joint_files(joint.names).items()},
            "pairs": [pair_record(name, joint.hub, each) for name, each in joint.alignments.items()],
        },
    }


def _line(record: Mapping[str, Any]) -> list[str]:
    """Return the cells of a pair for TSV."""
    shown = {**record, "via": ",".join(record["via"]), "ratio": f"{record['ratio']:.3f}"}
    shown["estimate"] = "" if record["estimate"] is None else f"{record['estimate']:.3f}"
    return [str(shown[name]) if name != "seconds" else f"{record['seconds']:.1f}" for name in _COLUMNS]


def show(found: AllPairs, outs: AllOuts) -> None:
    """Print the matrix of languages, the pairs that need attention, and the next commands."""
    records = {(each["src"], each["tgt"]): each for each in found.records()}

    def cell(one: str, other: str) -> str:
        if one == other:
            return ""
        record = records[pair_of(one, other)]
        if record["verdict"] != SUCCEEDED or record["estimate"] is None:
            return str(record["verdict"])
        return f"{100 * record['estimate']:.0f} %"

    rows = [(name, *(cell(name, other) for other in found.names)) for name in found.names]
    console.table(("", *found.names), rows, title="Estimated accuracy")
    bridged = [f"{pair[0]}-{pair[1]} over {', '.join(each['via'])}" for pair, each in records.items() if each["via"]]
    seconds = sum(each["seconds"] for each in records.values())
    console.figures(
        [
            ("pairs", f"{len(records)}, {len(found.failed)} failed"),
            *([("bridged", "; ".join(bridged))] if bridged else []),
            ("time", terminal.seconds(seconds)),
            ("saved in", f"{outs.out}, a folder for each pair"),
            *([] if outs.joint_out is None else [("joint space", f"{outs.joint_out}, a file for each language")]),
        ]
    )
    first = outs.out / "-".join(next(iter(records)))
    console.say("Next:")
    console.say(f"  qwp explore {first}", whole=True)
    console.say(f"  qwp report {outs.out} --out languages.html", whole=True)


def _exit(found: AllPairs, out: Path) -> None:
    """Exit with code 3 if a pair failed."""
    names = ["-".join(pair) for pair in found.failed]
    if names:
        console.fail(
            f"{len(names)} of {len(found.alignments)} pairs failed: {', '.join(names)}; `qwp info {out / names[0]}` "
            "shows why"
        )
        raise typer.Exit(console.EXIT_FAILED)


command = options.with_options(align_all, [flag for flag in parameters.flag_signature() if flag.name not in _EXCLUDED])
