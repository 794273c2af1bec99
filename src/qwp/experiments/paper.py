"""The published figures of the paper (Aboagye et al. 2022), from data files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from qwp.spaces.io.arguments import read_toml

FOLDER = Path(__file__).parent / "published"
AVERAGE = "average"


@dataclass(frozen=True)
class PublishedTable:
    """A table of the paper, in percent.

    Attributes:
        caption, measure: what the table shows.
        systems: by system and direction (or `average`), a figure for each of `sizes`, or one figure.
        sizes: coreset sizes, if the table has several.
    """

    caption: str
    measure: str
    systems: Mapping[str, Mapping[str, tuple[float, ...]]]
    sizes: tuple[int, ...] = ()

    def value(self, system: str, direction: str, size: int | None = None) -> float | None:
        """Return a figure, or None if the paper has none."""
        found = self.systems.get(system, {}).get(direction)
        if found is None:
            return None
        if not self.sizes:
            return found[0]
        return found[self.sizes.index(size)] if size in self.sizes else None

    def directions(self, system: str) -> tuple[str, ...]:
        """Return the directions for which the paper has figures of a system."""
        return tuple(name for name in self.systems.get(system, {}) if name != AVERAGE)


@dataclass(frozen=True)
class Published:
    """All tables of the paper by name, `table1` to `table4`."""

    citation: str
    tables: Mapping[str, PublishedTable] = field(default_factory=dict)


@cache
def published() -> Published:
    """Return the tables of the paper."""
    content = read_toml(FOLDER / "aboagye2022.toml", like="citation = ...")
    tables = {
        name: PublishedTable(
            table["caption"],
            table["measure"],
            {
                system: {direction: tuple(values) for direction, values in rows.items()}
                for system, rows in table["systems"].items()
            },
            tuple(table.get("sizes", ())),
        )
        for name, table in content["tables"].items()
    }
    return Published(content["citation"], tables)
