"""The published figures of the paper, from the data file beside the code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from qwp.spaces.io.toml import read_toml

FILE = Path(__file__).parent / "published" / "aboagye2022.toml"
AVERAGE = "average"


@dataclass(frozen=True)
class PublishedTable:
    """One table in percent. systems: by name and direction (`average` too), a figure for each of `sizes`, or one."""

    caption: str
    measure: str
    systems: Mapping[str, Mapping[str, tuple[float, ...]]]
    sizes: tuple[int, ...] = ()

    def value(self, system: str, direction: str, size: int | None = None) -> float | None:
        """A figure, or None where the paper has none. size: of the coreset, where the table has several."""
        found = self.systems.get(system, {}).get(direction)
        if found is None:
            return None
        if not self.sizes:
            return found[0]
        return found[self.sizes.index(size)] if size in self.sizes else None

    def directions(self, system: str) -> tuple[str, ...]:
        """Those that a system has figures for."""
        return tuple(name for name in self.systems.get(system, {}) if name != AVERAGE)


@dataclass(frozen=True)
class Published:
    """All tables of the paper, by name."""

    citation: str
    tables: Mapping[str, PublishedTable] = field(default_factory=dict)


@cache
def published() -> Published:
    """The tables of Aboagye et al. 2022, `table1` to `table4`."""
    content = read_toml(FILE, like="citation = ...")
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
