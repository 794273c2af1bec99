"""One alignment in the explorer: its vectors, its pairs and map once they are computed, and the marks of the user."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from threading import Lock, RLock

import numpy as np

from qwp import arrays
from qwp.arrays import AnyFloats, Ints
from qwp.errors import InputError
from qwp.explore.pairs import OnProgress, PairTable, find_pairs
from qwp.explore.tsne import map_positions
from qwp.results.alignment import Alignment
from qwp.search.spelling import folded
from qwp.spaces.embeddings import SIDES, Side
from qwp.spaces.lexicon import Lexicon

RIGHT, WRONG = "right", "wrong"
MARKS = (RIGHT, WRONG)
FILES = {RIGHT: "corrections.tsv", WRONG: "rejected.tsv"}
"""Files of the pairs that are right, which are a lexicon to align with, and of those that are wrong."""

Pair = tuple[str, str]


class Corrections:
    """The marks of a result, by pair of words. Each change is written to its folder at once, if that is writable.

    Args:
        folder: folder of the result; None keeps the marks in memory.
        marks: the marks so far.
        max_marks: how many marks there may be.
    """

    def __init__(self, folder: Path | None, marks: dict[Pair, str] | None = None, *, max_marks: int = 200_000) -> None:
        self.folder = folder
        self._max_marks = max_marks
        self._marks = dict(marks or {})
        self._lock = Lock()

    @classmethod
    def of(cls, folder: Path) -> Corrections:
        """Read the marks of a result. A file that cannot be read is an error, because the user may need it."""
        marks: dict[Pair, str] = {}
        for mark, name in FILES.items():
            if (folder / name).exists():
                marks.update(dict.fromkeys(Lexicon.load(folder / name, format="xling").pairs, mark))
        return cls(folder, marks)

    def __len__(self) -> int:
        return len(self._marks)

    def get(self, src: str, tgt: str) -> str | None:
        """Return the mark of a pair."""
        return self._marks.get((src, tgt))

    def counts(self) -> dict[str, int]:
        """Count the pairs with each mark."""
        with self._lock:
            marks = list(self._marks.values())
        return {mark: marks.count(mark) for mark in MARKS}

    def pairs(self, mark: str) -> tuple[Pair, ...]:
        """Return the pairs with a mark, in the order in which they were marked."""
        with self._lock:
            return tuple(pair for pair, given in self._marks.items() if given == mark)

    def set(self, pairs: Iterable[Pair], mark: str | None) -> bool:
        """Mark pairs, or remove their marks, and return whether the files could be written."""
        wanted = list(pairs)
        for pair in wanted:
            if any(set("\t\n\r") & set(word) or word.strip(" \t") != word for word in pair):
                raise InputError(f"the pair {pair!r} does not fit on a line of a lexicon, expected words that do")
        with self._lock:
            if mark is not None and len(self._marks) + len(wanted) > self._max_marks:
                raise InputError(f"received {len(wanted):,} more marks, expected at most {self._max_marks:,} in all")
            for pair in wanted:
                self._marks.pop(pair, None)
                if mark is not None:
                    self._marks[pair] = mark
            return self._write()

    def lexicon(self, mark: str = RIGHT) -> Lexicon:
        """Return the pairs with a mark as a lexicon."""
        return Lexicon(self.pairs(mark))

    def _write(self) -> bool:
        """Write both lexicons, remove an empty one, and return whether that worked. The caller holds the lock:
        otherwise the slower of two requests could write the older marks last."""
        if self.folder is None:
            return False
        try:
            for mark, name in FILES.items():
                if pairs := tuple(pair for pair, given in self._marks.items() if given == mark):
                    Lexicon(pairs).save(self.folder / name)
                else:
                    with suppress(FileNotFoundError):
                        (self.folder / name).unlink()
        except (OSError, InputError):
            return False
        return True


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
        max_words: most frequent words of each side in the table and on the map.
    """

    def __init__(
        self,
        name: str,
        alignment: Alignment,
        *,
        folder: Path,
        lexicon: Lexicon | None = None,
        max_words: int = MAX_WORDS,
    ) -> None:
        self.name, self.alignment, self.folder, self.lexicon = name, alignment, folder, lexicon
        self.max_words = max_words
        self.corrections = Corrections.of(folder)
        self._pairs: PairTable | None = None
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
                (folded(self.words(side)[row]), row)
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
