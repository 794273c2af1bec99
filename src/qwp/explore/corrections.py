"""What a person says of pairs: right or wrong. Kept beside the result as two lexicons that any command can read."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from threading import Lock

from qwp.errors import InputError
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
