"""The page about every two of several languages: a heat map of the estimates, and a row for each pair."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from qwp.judging.verdict import SUCCEEDED
from qwp.report import page
from qwp.report.page import Section
from qwp.results.all_pairs import AllPairs, pair_of
from qwp.results.joint import Pair
from qwp.showing import html
from qwp.showing.html import HEAT, Markup, element, join
from qwp.spaces.io.files import atomic_write

_ABOUT = "Estimated share of right translations of each pair, without a dictionary. Both directions have the same maps."


def write_languages(path: str | PathLike[str], found: AllPairs, *, title: str | None = None) -> None:
    """Write a self-contained HTML page about all pairs of languages, completely or not at all."""
    with atomic_write(Path(path)) as file:
        file.write(languages_page(found, title or f"{len(found.names)} languages").encode("utf-8"))


def languages_page(found: AllPairs, title: str) -> str:
    """Return the page."""
    records = {(each["src"], each["tgt"]): each for each in found.records()}
    sections = [
        Section("matrix", "Languages", join(page.lead(_ABOUT), heat_map(found.names, records))),
        Section("pairs", "Pairs", page.table([_row(each) for each in records.values()], "Pairs")),
    ]
    succeeded = sum(each["verdict"] == SUCCEEDED for each in records.values())
    return page.render(
        title=title,
        verdict=found.verdict,
        explanation=f"{succeeded} of {len(records)} pairs succeeded.",
        sections=sections,
        settings=next(iter(found.alignments.values())).provenance.config,
        css=HEAT,
    )


def heat_map(names: tuple[str, ...], records: Mapping[Pair, Mapping[str, Any]]) -> Markup:
    """Return a table of languages by languages with the estimate of each pair, or its verdict without one."""
    rows = [[element("th", one, scope="row"), *(_cell(records, one, other) for other in names)] for one in names]
    head = [element("td"), *(element("th", name, scope="col") for name in names)]
    return html.scrollable(html.table(rows, head, class_="heat", aria_label="Estimates"), "Estimates")


def _cell(records: Mapping[Pair, Mapping[str, Any]], one: str, other: str) -> Markup:
    if one == other:
        return element("td", class_="none")
    record = records[pair_of(one, other)]
    if record["estimate"] is None:
        return element("td", record["verdict"], title=record["explanation"])
    return html.heat_cell(
        f"{100 * record['estimate']:.0f} %", record["estimate"], f"{one} - {other}: {record['verdict']}"
    )


def _row(record: Mapping[str, Any]) -> dict[str, object]:
    """Return the row of a pair."""
    return {
        "pair": f"{record['src']} - {record['tgt']}",
        "verdict": record["verdict"],
        "estimate, %": None if record["estimate"] is None else 100 * record["estimate"],
        "times the null": record["ratio"],
        "over": ", ".join(record["via"]),
        "seconds": record["seconds"],
    }
