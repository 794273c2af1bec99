"""One alignment in the explorer: its vectors, its pairs and map once they are computed, and the marks of the user.

If its vectors are not of words, the explorer shows the texts of the items in place of their names.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import RLock
from types import MappingProxyType

import numpy as np

from qwp import arrays
from qwp.arrays import AnyFloats, Ints
from qwp.errors import InputError
from qwp.explore.pairs import OnProgress, PairTable, find_pairs
from qwp.explore.tsne import map_positions
from qwp.results.alignment import Alignment
from qwp.results.corrections import Corrections, anchors, pins
from qwp.search.spelling import folded
from qwp.spaces.embeddings import SIDES, Embeddings, Side
from qwp.spaces.lexicon import Lexicon

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


MAX_WORDS = 20_000
"""Default number of words of each side in the table and on the map."""


class Workspace:
    """An alignment with its name, a lexicon to compare it with, and the marks of the user.

    Several threads use it: requests read what a thread in the background computes.

    Args:
        name: name on the pages.
        alignment: the alignment.
        folder: its folder.
        lexicon: gold dictionary.
        items: texts and metadata of each side, for items that are not words.
        max_words: most frequent words of each side in the table and on the map.
    """

    def __init__(
        self,
        name: str,
        alignment: Alignment,
        *,
        folder: Path,
        lexicon: Lexicon | None = None,
        items: Mapping[Side, Items] = MappingProxyType({}),
        max_words: int = MAX_WORDS,
    ) -> None:
        self.name, self.alignment, self.folder, self.lexicon = name, alignment, folder, lexicon
        self.items: dict[Side, Items] = {side: items.get(side, Items()) for side in SIDES}
        self.max_words = max_words
        self.corrections = Corrections.of(folder)
        self._pairs: PairTable | None = None
        self._answers: tuple[int, PairTable] | None = None
        self._map: dict[Side, AnyFloats] | None = None
        self._lock = RLock()

    # ----------------------------------------------------------------- computed in seconds

    def unit(self, side: Side) -> AnyFloats:
        """Return all words of a side in the common space, unit rows (n, d)."""
        with self._lock:
            return arrays.to_numpy(self.alignment.mapped(side))

    def hubs(self, side: Side) -> AnyFloats:
        """Return the CSLS neighbourhood means of a side, (n,)."""
        with self._lock:
            return self.alignment.lookup(side).hubs

    def preferred(self, rows: Ints, candidates: Ints) -> Ints:
        """Return which of the candidates (r, k) of source words (r,) two refits prefer, (r, 2)."""
        with self._lock:
            return self.alignment.inducer.preferred(rows, candidates)

    def words(self, side: Side) -> list[str]:
        """Return all words of a side, by row."""
        return self.alignment.side(side).space.words

    @property
    def noun(self) -> str:
        """What the pages call the entries of a vocabulary."""
        unordered = self.alignment.quality.counterparts is not None
        return "items" if unordered or any(each.texts for each in self.items.values()) else "words"

    def text(self, side: Side, name: str) -> str:
        """Return the text of an item, or its name if it has none."""
        return self.items[side].texts.get(name, name)

    def row(self, side: Side, word: str) -> int | None:
        """Return the row of a word, or None if it is not in the vocabulary."""
        return self.alignment.side(side).space.index.get(word)

    @cached_property
    def _ranks(self) -> dict[Side, Ints]:
        return {side: 1 + self.alignment.side(side).ranks(np.arange(len(self.words(side)))) for side in SIDES}

    def ranks(self, side: Side) -> Ints:
        """Return the frequency rank of each word of a side, from 1, (n,)."""
        with self._lock:
            return self._ranks[side]

    @cached_property
    def _folded(self) -> dict[Side, list[tuple[str, int]]]:
        """Words without case and accents and their rows, most frequent first."""
        return {
            side: [
                (folded(self.text(side, self.words(side)[row])), row)
                for row in self.alignment.side(side).frequent(len(self.words(side))).tolist()
            ]
            for side in SIDES
        }

    def completed(self, side: Side, start: str, n: int) -> list[str]:
        """Return words that begin like `start`, most frequent first, and then words that contain it."""
        wanted = folded(start)
        if not wanted:
            return []
        with self._lock:
            known = self._folded[side]
        words = self.words(side)
        first = [row for text, row in known if text.startswith(wanted)][:n]
        if len(first) < n:
            first += [row for text, row in known if wanted in text[1:] and not text.startswith(wanted)][
                : n - len(first)
            ]
        return [words[row] for row in first]

    # ----------------------------------------------------------------- computed in minutes, or read from sidecar files

    @property
    def pairs(self) -> PairTable | None:
        """The pairs of all words, once they are computed."""
        return self._pairs

    @property
    def answers(self) -> PairTable | None:
        """The pairs with the accepted answers of the user in place of the computed ones."""
        with self._lock:
            version = self.corrections.version
            if self._pairs is not None and (self._answers is None or self._answers[0] != version):
                self._answers = version, self._pinned(self._pairs)
            return None if self._answers is None else self._answers[1]

    def _pinned(self, pairs: PairTable) -> PairTable:
        known = [(self.row("src", src), self.row("tgt", tgt)) for src, tgt in self.pins("src").items()]
        rows = np.array([pair for pair in known if None not in pair], dtype=np.int64).reshape(-1, 2)
        x, y = (self.unit(side)[rows[:, at]] for at, side in enumerate(SIDES))
        hubs = self.hubs("src")[rows[:, 0]] + self.hubs("tgt")[rows[:, 1]]
        back = {self.row("tgt", tgt): self.row("src", src) for tgt, src in self.pins("tgt").items()}
        return pairs.pin(rows, 2.0 * np.einsum("ij,ij->i", x, y) - hubs, back)

    @property
    def map(self) -> dict[Side, AnyFloats] | None:
        """The positions of the words on the map, (n, 2) and (m, 2), once they are computed."""
        return self._map

    def prepare(self, on_progress: OnProgress) -> None:
        """Compute what the views need: first vectors for single words, then the pairs, then the map."""
        for side in SIDES:
            self.unit(side), self.hubs(side), self.completed(side, "a", 1)
        if self._pairs is None:
            self._pairs = find_pairs(self.alignment, self.max_words, on_progress)
        if self._map is None:
            self._map = map_positions(self.alignment, self._pairs, on_progress)

    # ----------------------------------------------------------------- accepted pairs and anchors

    def pins(self, side: Side) -> dict[str, str]:
        """Return the accepted answers by word."""
        return pins(self.alignment, self.corrections)[side]

    @cached_property
    def anchors(self) -> Lexicon | None:
        """The known pairs that the fit was given; None if it was given some that are not found."""
        return anchors(self.alignment, *([] if self.lexicon is None else [self.lexicon]))

    def taught(self) -> set[str]:
        """Return the source words that no score may count: those of anchors and of accepted pairs."""
        return {*self.pins("src"), *(() if self.anchors is None else self.anchors.targets)}

    # ----------------------------------------------------------------- the lexicon

    @cached_property
    def gold(self) -> dict[Side, dict[str, tuple[str, ...]]]:
        """The gold translations by word, in both directions; empty without a lexicon."""
        if self.lexicon is None:
            return {"src": {}, "tgt": {}}
        return {"src": self.lexicon.targets, "tgt": self.lexicon.reverse().targets}

    def right(self, side: Side, word: str, answer: str) -> bool | None:
        """Return whether an answer is in the lexicon; None if the lexicon does not have the word."""
        gold = self.gold[side].get(word)
        return None if gold is None else answer in gold

    def judged(self, words: Sequence[str], answers: Sequence[str]) -> list[bool | None]:
        """Return `right` for many source words."""
        gold = self.gold["src"]
        return [answer in gold[word] if word in gold else None for word, answer in zip(words, answers, strict=True)]
