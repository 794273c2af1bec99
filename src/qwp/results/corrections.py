"""Pairs that people decided on, in the folder of a result: marks of the explorer, and the anchors of the fit."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Lock

from qwp.errors import InputError
from qwp.results.alignment import Alignment
from qwp.results.lexicon import InducedPair
from qwp.spaces.embeddings import Side
from qwp.spaces.lexicon import Lexicon

RIGHT, WRONG = "right", "wrong"
MARKS = (RIGHT, WRONG)
FILES = {RIGHT: "corrections.tsv", WRONG: "rejected.tsv"}
"""Files of the pairs that are right, which are a lexicon to align with, and of those that are wrong."""

Pair = tuple[str, str]
# Changes that can be taken back.
_MOST_UNDONE = 20


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
        self._version = 0
        self._earlier: list[dict[Pair, str]] = []

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
            before = dict(self._marks)
            if mark is not None and len(self._marks) + len(wanted) > self._max_marks:
                raise InputError(f"received {len(wanted):,} more marks, expected at most {self._max_marks:,} in all")
            for pair in wanted:
                self._marks.pop(pair, None)
                if mark is not None:
                    self._marks[pair] = mark
            self._changed(before)
            return self._write()

    def clear(self) -> bool:
        """Remove all marks, and return whether the files could be written."""
        with self._lock:
            self._changed(self._marks)
            self._marks = {}
            return self._write()

    def undo(self) -> bool:
        """Take back the last change that was not taken back yet, and return whether the files could be written."""
        with self._lock:
            if not self._earlier:
                raise InputError("there is no change to take back: only changes since the explorer started can be")
            self._marks = self._earlier.pop()
            self._version += 1
            return self._write()

    def _changed(self, before: dict[Pair, str]) -> None:
        self._earlier = [*self._earlier[1 - _MOST_UNDONE :], before]
        self._version += 1

    @property
    def undoable(self) -> int:
        """How many changes can be taken back."""
        return len(self._earlier)

    @property
    def version(self) -> int:
        """A number that grows with each change."""
        return self._version

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


# --------------------------------------------------------------------------- pinned answers


def pins(alignment: Alignment, corrections: Corrections) -> dict[Side, dict[str, str]]:
    """Return the pinned answers by word, for each side: the accepted pairs; the last one if a word has several."""
    src, tgt = alignment.src, alignment.tgt
    pairs = [pair for pair in corrections.pairs(RIGHT) if pair[0] in src and pair[1] in tgt]
    return {"src": dict(pairs), "tgt": {pair[1]: pair[0] for pair in pairs}}


def pinned_lexicon(alignment: Alignment, induced: Iterable[InducedPair], corrections: Corrections) -> list[InducedPair]:
    """Replace the answers of words with an accepted pair. A pinned pair has confidence 1.

    A pair is mutual if both words are each other's answer, so a pinned word is not mutual with any other word.

    Args:
        alignment: the alignment of the pairs.
        induced: a lexicon with all source words.
        corrections: the marks of the user.
    """
    known = pins(alignment, corrections)
    answers, back = known["src"], known["tgt"]
    found = []
    for pair in induced:
        answer = answers.get(pair.src)
        if answer is None:
            found.append(replace(pair, mutual=pair.mutual and pair.tgt not in back))
            continue
        is_best = answer == pair.tgt
        score = pair.score if is_best else _csls(alignment, pair.src, answer)
        margin = pair.margin if is_best else score - pair.score
        found.append(InducedPair(pair.src, answer, score, margin, back[answer] == pair.src, 1.0))
    return found


def _csls(alignment: Alignment, src: str, tgt: str) -> float:
    rows = {"src": alignment.src.index[src], "tgt": alignment.tgt.index[tgt]}
    x, y = (alignment.mapped(side)[rows[side]] for side in ("src", "tgt"))
    hubs = [float(alignment.lookup(side).hubs[rows[side]]) for side in ("src", "tgt")]
    return float(2.0 * (x @ y)) - sum(hubs)


# --------------------------------------------------------------------------- anchors

ANCHORS = "anchors.tsv"
"""File of the known pairs that a fit was given. No score may count their words."""


def save_anchors(folder: Path, lexicon: Lexicon) -> None:
    """Write the known pairs of a fit beside its result."""
    # Words that do not fit on a line leave the anchors unknown, which `anchors` detects by the hash.
    with suppress(InputError):
        lexicon.save(folder / ANCHORS)


def anchors(alignment: Alignment, *known: Lexicon) -> Lexicon | None:
    """Return the known pairs that the fit was given: an empty lexicon if there were none, None if they are not found.

    The hash in the provenance decides: a file of an earlier fit is ignored.

    Args:
        alignment: the alignment.
        known: lexicons that may be the one that was given.
    """
    wanted = alignment.provenance.supervision.get("lexicon")
    if wanted is None:
        return Lexicon(())
    candidates = list(known)
    if alignment.origin is not None and (path := alignment.origin.folder / ANCHORS).is_file():
        with suppress(InputError):
            candidates.append(Lexicon.load(path, format="xling"))
    return next((each for each in candidates if each.sha256() == wanted), None)


def held_out(lexicon: Lexicon, trained: Lexicon | None) -> Lexicon:
    """Return the pairs of a lexicon whose source words are not those of anchors."""
    taught = {} if trained is None else trained.targets
    return replace(lexicon, pairs=tuple(pair for pair in lexicon.pairs if pair[0] not in taught))
