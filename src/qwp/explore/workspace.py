"""One alignment in the explorer: its vectors, its pairs and map once they are computed, and the marks of the user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from threading import RLock
from types import MappingProxyType

import numpy as np

from qwp import arrays
from qwp.arrays import AnyFloats, Ints
from qwp.explore.items import Items
from qwp.explore.pairs import OnProgress, PairTable, find_pairs
from qwp.explore.tsne import map_positions
from qwp.results.alignment import Alignment
from qwp.results.corrections import Corrections, anchors, pins
from qwp.search.spelling import folded
from qwp.spaces.embeddings import SIDES, Side
from qwp.spaces.lexicon import Lexicon

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
