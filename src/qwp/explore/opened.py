"""One alignment that is being explored: what the views look at, made when it is first asked for and then at hand."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from threading import Lock, RLock

import numpy as np

from qwp import arrays
from qwp.errors import InputError
from qwp.explore.findings import Findings, Told, found_in
from qwp.explore.layout import plane_of
from qwp.results.alignment import Alignment
from qwp.spaces.embeddings import SIDES, FloatArray, Side
from qwp.spaces.frequency import Ints
from qwp.spaces.lexicon import Lexicon

RIGHT, WRONG = "right", "wrong"
MARKS = (RIGHT, WRONG)
FILES = {RIGHT: "corrections.tsv", WRONG: "rejected.tsv"}
"""The pairs that are right, a lexicon to align with, and those that are wrong."""
MOST = 200_000
"""Marks of one result."""

Pair = tuple[str, str]


class Corrections:
    """The marks of one result, by pair of words. Each change is written at once, where that can be written.

    most: how many marks there may be.
    """

    def __init__(self, folder: Path | None, marks: dict[Pair, str] | None = None, *, most: int = MOST) -> None:
        self.folder = folder
        self._most = most
        self._marks = dict(marks or {})
        self._lock = Lock()

    @classmethod
    def of(cls, folder: Path) -> Corrections:
        """Those that were kept beside a result. A file that cannot be read is an error: it may be precious."""
        marks: dict[Pair, str] = {}
        for mark, name in FILES.items():
            if (folder / name).exists():
                marks.update(dict.fromkeys(Lexicon.load(folder / name, format="xling").pairs, mark))
        return cls(folder, marks)

    def __len__(self) -> int:
        return len(self._marks)

    def get(self, src: str, tgt: str) -> str | None:
        """The mark of a pair."""
        return self._marks.get((src, tgt))

    def counts(self) -> dict[str, int]:
        """How many pairs have each mark."""
        with self._lock:
            marks = list(self._marks.values())
        return {mark: marks.count(mark) for mark in MARKS}

    def pairs(self, mark: str) -> tuple[Pair, ...]:
        """The pairs with a mark, in the order in which they got it."""
        with self._lock:
            return tuple(pair for pair, given in self._marks.items() if given == mark)

    def set(self, pairs: Iterable[Pair], mark: str | None) -> bool:
        """Mark pairs, or take their marks away. Returns whether that could be written."""
        wanted = list(pairs)
        for pair in wanted:
            if any(set("\t\n\r") & set(word) or word.strip(" \t") != word for word in pair):
                raise InputError(f"the pair {pair!r} does not fit on a line of a lexicon, expected words that do")
        with self._lock:
            if mark is not None and len(self._marks) + len(wanted) > self._most:
                raise InputError(f"received {len(wanted):,} more marks, expected at most {self._most:,} in all")
            for pair in wanted:
                self._marks.pop(pair, None)
                if mark is not None:
                    self._marks[pair] = mark
            return self._write()

    def lexicon(self, mark: str = RIGHT) -> Lexicon:
        """The pairs with a mark as a lexicon."""
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


MOST_WORDS = 20_000
"""Words of each side that are in the table and on the map, unless told otherwise."""


def other(side: Side) -> Side:
    """The other side."""
    return "tgt" if side == "src" else "src"


def folded(text: str) -> str:
    """A text without case and accents, by which words are completed and filtered."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(character for character in plain if not unicodedata.combining(character))


class Explored:
    """An alignment with its name, the lexicon to compare it with, and the marks of the user."""

    def __init__(
        self,
        name: str,
        alignment: Alignment,
        *,
        folder: Path,
        lexicon: Lexicon | None = None,
        most: int = MOST_WORDS,
    ) -> None:
        self.name, self.alignment, self.folder, self.lexicon, self.most = name, alignment, folder, lexicon, most
        self.corrections = Corrections.of(folder)
        self._findings: Findings | None = None
        self._plane: dict[Side, FloatArray] | None = None
        self._lock = RLock()

    # ----------------------------------------------------------------- what takes a moment

    def ready(self) -> None:
        """Make what the answers about single words need."""
        for side in SIDES:
            self.unit(side), self.hubs(side), self._folded(side)

    def unit(self, side: Side) -> FloatArray:
        """All words of a side in the common space, unit rows (n, d)."""
        with self._lock:
            return arrays.to_numpy(self.alignment.mapped(side))

    def hubs(self, side: Side) -> FloatArray:
        """The CSLS neighbourhood means of a side, (n,)."""
        with self._lock:
            return self.alignment.lookup(side).hubs

    def preferred(self, rows: Ints, candidates: Ints) -> Ints:
        """Which of the candidates (r, k) of source words (r,) two refits prefer, (r, 2)."""
        with self._lock:
            return self.alignment.preferred(rows, candidates)

    def words(self, side: Side) -> list[str]:
        """All words of a side, by row."""
        return self.alignment.side(side).space.words

    def row(self, side: Side, word: str) -> int | None:
        """The row of a word, if it is there."""
        return self.alignment.side(side).space.index.get(word)

    @cached_property
    def _ranks(self) -> dict[Side, Ints]:
        return {side: 1 + self.alignment.side(side).ranks(np.arange(len(self.words(side)))) for side in SIDES}

    def ranks(self, side: Side) -> Ints:
        """The place of each word among those of its side, 1 for the most frequent, (n,)."""
        with self._lock:
            return self._ranks[side]

    def _folded(self, side: Side) -> list[tuple[str, int]]:
        """All words without case and accents and their rows, most frequent first."""
        with self._lock:
            return self._all_folded[side]

    @cached_property
    def _all_folded(self) -> dict[Side, list[tuple[str, int]]]:
        return {
            side: [
                (folded(self.words(side)[row]), row)
                for row in self.alignment.side(side).frequent(len(self.words(side))).tolist()
            ]
            for side in SIDES
        }

    def completed(self, side: Side, start: str, n: int) -> list[str]:
        """Words that begin like this, most frequent first, and then words that hold it."""
        wanted = folded(start)
        if not wanted:
            return []
        known, words = self._folded(side), self.words(side)
        first = [row for text, row in known if text.startswith(wanted)][:n]
        if len(first) < n:
            first += [row for text, row in known if wanted in text[1:] and not text.startswith(wanted)][
                : n - len(first)
            ]
        return [words[row] for row in first]

    # ----------------------------------------------------------------- what takes longer

    @property
    def findings(self) -> Findings | None:
        """What is known of all words, once it is."""
        return self._findings

    @property
    def plane(self) -> dict[Side, FloatArray] | None:
        """The places of the words on the map, (n, 2) and (m, 2), once they are known."""
        return self._plane

    def find(self, tell: Told) -> Findings:
        """Find what the table needs, or take what was found before."""
        if self._findings is None:
            self._findings = found_in(self.alignment, self.most, tell)
        return self._findings

    def lay_out(self, tell: Told) -> dict[Side, FloatArray]:
        """Lay the words out in the plane, or take the places that they got before."""
        if self._plane is None:
            self._plane = plane_of(self.alignment, self.find(tell), tell)
        return self._plane

    # ----------------------------------------------------------------- what the user knows

    @cached_property
    def gold(self) -> dict[Side, dict[str, tuple[str, ...]]]:
        """The right answers by word, in either direction; none without a lexicon."""
        if self.lexicon is None:
            return {"src": {}, "tgt": {}}
        return {"src": self.lexicon.targets, "tgt": self.lexicon.reverse().targets}

    def right(self, side: Side, word: str, answer: str) -> bool | None:
        """Whether an answer is in the lexicon; None where the lexicon does not have the word."""
        gold = self.gold[side].get(word)
        return None if gold is None else answer in gold

    def judged(self, words: Sequence[str], answers: Sequence[str]) -> list[bool | None]:
        """`right` of many source words."""
        gold = self.gold["src"]
        return [answer in gold[word] if word in gold else None for word, answer in zip(words, answers, strict=True)]
