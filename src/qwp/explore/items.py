"""Texts and metadata of items that are not words: what the explorer shows in place of their names."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from qwp.errors import InputError
from qwp.spaces.embeddings import Embeddings

NAMES = ("id", "name", "key", "word")
"""Columns that may hold the names of items; without one, the rows are in the order of the vectors."""
TEXTS = ("text", "label", "title", "content")
"""Columns that may hold the texts."""
MAX_VALUES = 12
"""A column with at most this many values is a category, by which the explorer colours and filters."""


@dataclass(frozen=True)
class Items:
    """The texts and the metadata of the items of one side, by name.

    Attributes:
        texts: text of each item.
        metadata: further columns of each item.
    """

    texts: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path, space: Embeddings) -> Items:
        """Read a file with a header (TSV, CSV) or JSON Lines about the items of a space."""
        rows = list(_rows(path))
        if not rows:
            raise InputError(f"{path} holds no rows, expected one for each item, below a header")
        text = next((name for name in TEXTS if name in rows[0]), None)
        if text is None:
            raise InputError(f"{path} has the columns {', '.join(rows[0])}; expected one of {', '.join(TEXTS)}")
        name = next((name for name in NAMES if name in rows[0]), None)
        if name is None and len(rows) != len(space):
            raise InputError(
                f"{path} has {len(rows):,} rows and no column {' or '.join(NAMES)}; expected one row for each of the "
                f"{len(space):,} items of {space.name}, in their order, or a column with their names"
            )
        names = space.words if name is None else [row[name] for row in rows]
        if not any(each in space for each in names):
            raise InputError(f"{path} names {names[0]!r} and others, expected names of items of {space.name}")
        known = {each: row for each, row in zip(names, rows, strict=True) if each in space}
        return cls(
            {each: row[text] for each, row in known.items() if row[text].strip()},
            {each: {key: row[key] for key in row if key not in (text, name)} for each, row in known.items()},
        )

    def categories(self) -> dict[str, list[str]]:
        """Return the values of each column with 2 to 12 different ones, in alphabetical order."""
        values: dict[str, set[str]] = {}
        for row in self.metadata.values():
            for key, value in row.items():
                values.setdefault(key, set()).add(value)
        return {key: sorted(found) for key, found in values.items() if 1 < len(found) <= MAX_VALUES}


def _rows(path: Path) -> Iterator[dict[str, str]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            if path.suffix in (".jsonl", ".ndjson"):
                columns: list[str] | None = None
                for number, line in enumerate(file, start=1):
                    values = json.loads(line) if line.strip() else None
                    if values is None:
                        continue
                    if not isinstance(values, dict):
                        raise InputError(f"line {number} of {path} is no JSON object, expected one on each line")
                    columns = columns or list(values)
                    yield {key: _shown(values.get(key)) for key in columns}
                return
            dialect = {"delimiter": ","} if path.suffix == ".csv" else {"delimiter": "\t", "quoting": csv.QUOTE_NONE}
            reader = csv.DictReader(file, restkey="", restval="", **dialect)
            for row in reader:
                yield {key: value for key, value in row.items() if key}
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, csv.Error) as error:
        raise InputError(
            f"{path} cannot be read ({error}), expected UTF-8 text: TSV or CSV with a header, or JSON Lines (.jsonl)"
        ) from error


def _shown(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
