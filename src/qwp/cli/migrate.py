"""`qwp migrate`: move a store of vectors to a new embedding model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from qwp.cli import console, options
from qwp.cli.console import EXIT_FAILED
from qwp.cli.options import FileFormat, WritingOptions, option
from qwp.errors import InputError
from qwp.migration.measure import Recall
from qwp.migration.run import DOCUMENTS, GO, LEAST_RECALL, Migration, migrate
from qwp.migration.sources import FileOptions
from qwp.showing import terminal
from qwp.spaces.lexicon import Lexicon


@dataclass(frozen=True)
class Targets:
    """Options that say what to write."""

    out: Path | None = option(
        "Convert the old vectors into this file, a vector file or a table.", flags=("--out", "-o")
    )
    adapter: Path | None = option(
        "Leave the old vectors, and write a map for queries of the new model (.npz, .json, .onnx)."
    )
    least: float = option('Recall@10 on held-out pairs that is a "go".', "SHARE", LEAST_RECALL, least=0, most=1)
    force: bool = option('Write after a "no-go", too.', default=False)
    json: options.Json = False


@dataclass(frozen=True)
class Pairing:
    """Options that say which items are known to be the same."""

    pairs: Path | None = option(
        "Pairs of an old and a new id, one a line; rows without ids by number, from 0. (default: ids in common)"
    )
    unpaired: bool = option("Use no pairs, although ids are in common.", default=False)
    seed: options.Seed = 0

    def given(self) -> Lexicon | list[tuple[str, str]] | None:
        """Return the pairs as an argument of `migrate`."""
        if self.unpaired and self.pairs is not None:
            raise InputError(f"--pairs {self.pairs} and --unpaired were both given; expected one of them")
        if self.unpaired:
            return []
        return None if self.pairs is None else Lexicon.load(self.pairs)


@options.with_options
def command(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="Vectors of the old model: a file, table or collection.")],
    new: Annotated[
        Path, typer.Argument(metavar="NEW", help="Vectors of the new model, of the same or of other items.")
    ],
    targets: Targets,
    pairing: Pairing,
    reading: FileFormat,
    writing: WritingOptions,
) -> None:
    """Move the vectors of an OLD embedding model to a NEW one, with or without paired items, measured first.

    Items with the same id are pairs; a fifth of them is held out to measure how many queries of the new model find
    their document. --out converts the documents, and an interrupted conversion continues when the command is given
    again. --adapter leaves the documents and writes a map for queries. With neither, the command only measures.

    Exit code 0: done, and a "go"; 2: bad input; 3: a "no-go", so nothing was written unless --force was given; 130:
    interrupted, the same command continues.
    """
    from qwp.showing.bar import words_bar

    files = FileOptions(reading.arguments(), asdict(writing) if targets.out is not None else {})
    with _kept_when_interrupted(targets.out), words_bar(quiet=targets.json) as bar:
        task = bar.add_task(f"measuring {old}", total=None)
        if pairing.unpaired:
            terminal.note("aligning without pairs, which takes minutes for thousands of items", on=bar.console)
        done = migrate(
            old,
            new,
            pairs=pairing.given(),
            out=targets.out,
            adapter=targets.adapter,
            least=targets.least,
            force=targets.force,
            seed=pairing.seed,
            progress=lambda items: bar.update(task, completed=items, description=f"converting {old}"),
            files=files,
        )
    if targets.json:
        console.print_json(_json(done))
    else:
        _show(done)
    if done.report.decision != GO:
        if done.out is None and (targets.out or targets.adapter):
            terminal.note("nothing was written; --force writes it nevertheless")
        raise typer.Exit(EXIT_FAILED)


@contextmanager
def _kept_when_interrupted(out: Path | None) -> Iterator[None]:
    """Tell how an interrupted conversion continues."""
    try:
        yield
    except KeyboardInterrupt as error:
        if out is None:
            raise
        raise console.interrupted(error, f"interrupted: {out} is not written; the same command continues") from None


def _json(done: Migration) -> dict[str, Any]:
    out = None if done.out is None else str(done.out)
    return {"command": "migrate", **done.report.to_dict(), "out": out, "items": done.items}


def _show(done: Migration) -> None:
    """Print the measurement and what was written."""
    report = done.report
    rows = [("decision", f"{report.decision}: {report.reason}"), ("map", report.map)]
    rows.append(("known pairs", f"{report.pairs:,}"))
    for name, measured in (("before", report.before), ("after", report.after)):
        if measured is not None:
            rows.append((name, _in_words(measured)))
    if report.after is not None and report.before is None:
        rows.append(("before", "no query of the new model fits the old vectors: the dimensions differ"))
    if report.verdict is not None:
        rows.append(("alignment", report.verdict))
    if report.estimated_recall_at_1 is not None:
        rows.append(("estimated recall@1", f"{100 * report.estimated_recall_at_1:.0f} %, without pairs"))
    if report.seconds_per_query is not None:
        rows.append(("time for a query", f"{1000 * report.seconds_per_query:.3f} ms"))
    console.figures(rows, title=f"Conversion of {'documents' if report.convert == DOCUMENTS else 'queries'}")
    if done.out is not None:
        what = f"{done.items:,} vectors" if report.convert == DOCUMENTS else "the adapter"
        console.say(f"{what} written to {done.out}")


def _in_words(measured: Recall) -> str:
    overlap = measured.overlap_at_10
    shared = "" if overlap is None else f", {100 * overlap:.1f} % of the ten nearest as after re-embedding"
    return (
        f"recall@1 {100 * measured.at_1:.1f} %, recall@10 {100 * measured.at_10:.1f} % "
        f"({measured.queries:,} queries, {measured.documents:,} documents){shared}"
    )
