"""`qwp compare`: whether one model made the vectors of two collections."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from qwp.cli import console, options
from qwp.cli.options import count, option
from qwp.cli.outputs import TABLE, Output, TextRows
from qwp.migration.comparison import MIXED, Comparison, compare
from qwp.showing import terminal
from qwp.spaces.lexicon import Lexicon

_LISTED = 10


@dataclass(frozen=True)
class ComparisonOptions:
    """Options that say which items to compare."""

    pairs: Path | None = option("Pairs of an id of A and an id of B, one a line. (default: the ids in common)")
    top: int = count("Number of most moved items to show.", 20)
    seed: options.Seed = 0


@options.with_options
def command(
    first: Annotated[Path, typer.Argument(metavar="A", help="Vectors: a file, table or collection.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="Vectors of the same items.")],
    items: ComparisonOptions,
    output: Output,
) -> None:
    """Tell whether one embedding model made the vectors of A and B, and which items moved most.

    It warns if A or B mixes two models, and names the items of the smaller group in the JSON (`other_model`).
    """
    output.check()
    pairs = None if items.pairs is None else list(Lexicon.load(items.pairs))
    found = compare(first, second, pairs=pairs, top=items.top, seed=items.seed)
    output.write(
        json=lambda: {"command": "compare", **found.to_dict()},
        rows=lambda: TextRows(("id", "drift"), [(each.id, f"{each.drift:.6f}") for each in found.moved]),
        show=lambda: _show(found),
    )
    if output.kind != TABLE:
        terminal.note(f"{found.verdict}: {found.items:,} items")
    if found.verdict == MIXED:
        named = ", ".join(found.other_model[:_LISTED])
        console.warn(
            f"{len(found.other_model):,} of {found.items:,} items have vectors of another model on one side: {named}"
            f"{', ...' if len(found.other_model) > _LISTED else ''}"
        )


def _show(found: Comparison) -> None:
    figures = [
        ("verdict", found.verdict),
        ("items", f"{found.items:,}"),
        ("dimensions", f"{found.dims[0]}, {found.dims[1]}"),
        ("mean cosine", "the dimensions differ" if found.cosine is None else f"{found.cosine:.3f}"),
        ("linear CKA", f"{found.cka:.3f}"),
        ("same among ten neighbours", f"{100 * found.overlap:.1f} %"),
        ("Procrustes residual", f"{found.residual:.3f}"),
        ("mean drift", f"{found.mean_drift:.3f}"),
    ]
    console.figures(figures)
    console.table(["most moved", "drift"], [[each.id, f"{each.drift:.3f}"] for each in found.moved])
