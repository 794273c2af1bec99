"""`qwp align-many`: align a list of pairs, several at a time."""

from __future__ import annotations

import json as json_text
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from qwp.cli import align, console, options, parameters
from qwp.cli.aliases import AliasedCommand
from qwp.cli.folders import ResultFolder
from qwp.cli.jobs import EngineOptions, JobProgress, JobStatus
from qwp.cli.results import PairTask
from qwp.downloads.folders import named_vectors
from qwp.errors import InputError
from qwp.experiments.data import DataFile
from qwp.experiments.engines import LOCAL, EngineChoice
from qwp.experiments.jobs import Dispatch, JobRecord
from qwp.experiments.pairs import PairJob, digests, read_pairs, summary
from qwp.methods import lexicon_start, make_aligner
from qwp.methods.settings import Supervision
from qwp.showing import terminal
from qwp.spaces.io.files import atomic_write, check_file
from qwp.spaces.lexicon import Lexicon

SUMMARY = "pairs.json"
_DONE, _FAILED, _EXISTING = "done", "failed", "already there"
# Options of a single pair, and `threads`, which the engine decides.
EXCLUDED_FLAGS = ("lexicon", "src_vocab", "tgt_vocab", "src_words", "tgt_words", "threads")
_INSTEAD = "expected lexicons in the fourth column of the list, and --workers N in the place of threads"


class Command(AliasedCommand):
    """`qwp align-many`, whose --help shows the most used options."""

    brief = parameters.brief_help()
    panels = parameters.HELP_PANELS
    everyday = align.Command.everyday | {"engine", "address", "workers"}


def align_many(
    pairs: Annotated[
        Path,
        typer.Argument(
            metavar="PAIRS.tsv",
            help="A pair a line, separated by tabs: SRC, TGT, optionally a name and a seed lexicon.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder with a folder for each pair.")],
    engine: EngineOptions,
    mode: align.AlignMode,
    **flags: Any,
) -> None:
    """Align a list of pairs of vector files, several at a time, on this machine or on a Ray cluster.

    The options are those of `qwp align`, for all pairs. Existing results are not computed again.

    Exit code 0: done; 2: bad input; 3: some pairs failed, or are judged to have failed, the others are done;
    130: interrupted, the same command continues.
    """
    values = parameters.resolve(flags, mode.config)
    refuse_options_of_one_pair(values)
    chosen = engine.checked(values.pop("device", "auto"))
    files = align.InputFiles((), parameters.popped(values, align.READING))
    keep, method = parameters.popped(values, ["save", "method"]).values()
    parameters.check_options(method, values)
    make_aligner(method, **values).check()  # before any file is read
    reading = {"max_vocab": files.settings["max_vocab"], **files.format()}
    jobs = {
        each.name: PairJob(
            _source(each.src, reading),
            _source(each.tgt, reading),
            _lexicon(each.lexicon),
            out / each.name,
            method,
            values,
            vectors=keep == "all",
            resume=engine.engine == LOCAL,
        )
        for each in read_pairs(pairs)
    }
    try:
        records = ListRun(jobs, chosen, out, force=mode.force, quiet=mode.quiet or mode.json).all()
    except KeyboardInterrupt as error:
        message = "interrupted: finished pairs are kept, the same command continues"
        raise console.interrupted(error, message) from None
    if mode.json:
        console.print_json({"command": "align-many", "out": str(out), "pairs": records})
    elif not mode.quiet:
        _show(records)
    _exit(records)


def refuse_options_of_one_pair(
    values: Mapping[str, Any], excluded: Sequence[str] = EXCLUDED_FLAGS, instead: str = _INSTEAD
) -> None:
    """Refuse settings that cannot hold for all pairs. instead: what the command expects in their place."""
    strange = [parameters.FLAGS[name].flag for name in excluded if name in values]
    if ":" in str(values.get("start", "")):
        strange.append(f"--start {values['start']}")
    if strange:
        raise InputError(f"{', '.join(strange)}: not of several pairs; {instead}")


def _source(path: Path, reading: Mapping[str, Any]) -> DataFile:
    found = named_vectors(path)
    check_file(found)
    return DataFile.vectors(found, **reading)


def _lexicon(path: Path | None) -> DataFile | None:
    if path is None:
        return None
    check_file(path)
    return DataFile(path)


class ListRun:
    """Align all pairs of a list that have no result yet."""

    def __init__(
        self, jobs: Mapping[str, PairJob], chosen: EngineChoice, out: Path, *, force: bool, quiet: bool
    ) -> None:
        self._jobs, self._engine, self._out, self._force, self._quiet = jobs, chosen, out, force, quiet
        self._records: dict[str, JobRecord] = {}
        self._digests: dict[DataFile, str] = {}

    def all(self) -> list[JobRecord]:
        """Return the record of each pair, in the order of the list."""
        for name, job in self._jobs.items():
            found = self._existing(job)
            if found is not None:
                self._record(name, found)
        todo = {name: job for name, job in self._jobs.items() if name not in self._records}
        if todo:
            self._compute(todo)
        return [self._records[name] for name in self._jobs]

    def _compute(self, todo: Mapping[str, PairJob]) -> None:
        engine = self._engine.engine(len(todo))
        with JobProgress("pairs", quiet=self._quiet) as progress, Dispatch(engine, todo) as dispatch:
            progress(self._status(dispatch.running))
            for outcome in engine.outcomes():
                record = self._record(outcome.address, outcome.record)
                dispatch.next_after(outcome)
                progress(self._status(dispatch.running, _in_words(record)))

    def _existing(self, job: PairJob) -> JobRecord | None:
        """Return the record of an existing result or of bad input; None for a pair to compute."""
        folder = ResultFolder(job.out, force=self._force, vectors=job.vectors)
        try:
            lexicon = None if job.lexicon is None else Lexicon.load(job.lexicon.path)
            supervision = Supervision(lexicon)
            start = lexicon_start(job.method, given=lexicon is not None)
            aligner = make_aligner(job.method, **{**job.options, **start})
            aligner.validate(supervision)
            task = PairTask(aligner, supervision)
            folder.check(task)
            if not folder.holds_result():
                if self._force and folder.checkpoint is not None:
                    folder.checkpoint.clear()
                return None
            inputs = digests({"src": job.src, "tgt": job.tgt}, self._digests)
            folder.load(task, task.identity(inputs))
            return {**summary(task.alignment), "status": _EXISTING, "warnings": []}
        except InputError as error:
            return {"error": str(error)}

    def _record(self, name: str, found: JobRecord) -> JobRecord:
        job = self._jobs[name]
        status = _FAILED if "error" in found else _DONE
        about = {"name": name, "src": str(job.src.path), "tgt": str(job.tgt.path), "out": str(job.out)}
        self._records[name] = record = {**about, "status": status, **found}
        self._out.mkdir(parents=True, exist_ok=True)
        with atomic_write(self._out / SUMMARY) as file:
            file.write(json_text.dumps(list(self._records.values()), indent=1).encode())
        return record

    def _status(self, running: int, last: str | None = None) -> JobStatus:
        failed = sum(record["status"] == _FAILED for record in self._records.values())
        return JobStatus(len(self._jobs), len(self._records) - failed, failed, running, last)


def _in_words(record: JobRecord) -> str:
    if "error" in record:
        return f"{record['name']} failed: {record['error']}"
    return f"{record['name']} {record['verdict']} {terminal.seconds(record['seconds'])}"


def _show(records: list[JobRecord]) -> None:
    rows = [
        (
            each["name"],
            each["status"],
            each.get("verdict", "-"),
            "-" if each.get("estimate") is None else f"{100 * each['estimate']:.0f} %",
            terminal.seconds(each["seconds"]) if "seconds" in each else "-",
        )
        for each in records
    ]
    console.table(("pair", "status", "verdict", "estimated accuracy", "time"), rows)


def _exit(records: list[JobRecord]) -> None:
    """Exit with code 3 if a pair failed, by an error or by its verdict."""
    for each in records:
        if "error" in each:
            console.warn(f"{each['name']} failed: {each['error']}")
    if any(each["status"] == _FAILED or each.get("failed") for each in records):
        raise typer.Exit(console.EXIT_FAILED)


command = options.with_options(
    align_many, [flag for flag in parameters.flag_signature() if flag.name not in EXCLUDED_FLAGS]
)
