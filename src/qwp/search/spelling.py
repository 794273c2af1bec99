"""How alike two words are spelled: a term that the retrieval may add to CSLS for languages of one script.

Cognates, loans and names are spelled alike in two languages more often than chance would have it. The score of a
candidate y for a word x becomes CSLS(x, y) + weight * s(x, y), for the `COMPARED` best words by CSLS alone; all
others stay where they are. With d the least number of letters to insert, delete or replace and l the length of the
longer word, s = (1 - d / l)^2. Upper and lower case and accents are left aside. Only letters can agree, so words of
different scripts have s = 0, and so have numbers that are not the same. Languages that do not share an alphabet are
left alone altogether: the English words in a Japanese vocabulary are seldom the translations of those they look like.

It is off unless it is asked for. Fits, verdicts, estimates and confidences know nothing of it.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qwp.errors import InputError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Scores = npt.NDArray[np.floating]

LABEL = "csls + spelling"
"""The name of scores with the term, wherever scores are shown or kept."""
WEIGHT = 0.7
"""The one weight that was measured: docs/accuracy.md."""
COMPARED = 100
"""So many words, the best by CSLS, are compared with a word."""
_MOST_WEIGHT = 10.0
# Letters of a word that are compared. Longer ones are no words, and would take long.
_LONGEST = 40
# Words of a side that show its alphabet, and how much two alphabets have to overlap. English has 0.75 and more with
# other languages of Latin script, 0.005 with Russian or Japanese.
_SEEN_WORDS, _SHARED_LETTERS = 5_000, 0.25
# Letters that have no accent to be taken off by Unicode.
_PLAIN = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "ð": "d", "ħ": "h", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"})
BLOCK_PAIRS = 1 << 14
"""Pairs of words that are compared at once: their tables stay in the cache."""


def checked_weight(spelling: float, retrieval: str = "csls") -> float:
    """The weight of the term, 0 for none. True stands for the measured one; what cannot be a weight is refused."""
    if not isinstance(spelling, (int, float, np.integer, np.floating)) or not 0 <= spelling <= _MOST_WEIGHT:
        raise InputError(
            f"spelling={spelling!r} is no weight; expected 0 (off) to {_MOST_WEIGHT:g}, or True for {WEIGHT}, which "
            "was measured"
        )
    if spelling and retrieval != "csls":
        raise InputError(
            f"spelling={spelling!r} was received with retrieval={retrieval!r}; expected 'csls', which it is added to: "
            "leave out one of them"
        )
    return WEIGHT if spelling is True else float(spelling)


def one_alphabet(words: Sequence[str], others: Sequence[str]) -> bool:
    """Whether two vocabularies are written with the same letters: their distributions overlap by a quarter."""
    ours, theirs = (
        Counter(c for word in side[:_SEEN_WORDS] for c in folded(word[:_LONGEST]) if c.isalpha())
        for side in (words, others)
    )
    total, other_total = max(1, ours.total()), max(1, theirs.total())
    return sum(min(n / total, theirs[c] / other_total) for c, n in ours.items()) >= _SHARED_LETTERS


def folded(word: str) -> str:
    """A word without case and accents."""
    decomposed = unicodedata.normalize("NFKD", word.casefold())
    return "".join(c for c in decomposed if not unicodedata.combining(c)).translate(_PLAIN)


def similarity(word: str, other: str) -> float:
    """s of two words, 0 to 1; 1 for words that differ by case and accents at most."""
    return float(similarities([word], [other], np.zeros((1, 1), dtype=np.int64))[0, 0])


def similarities(words: Sequence[str], others: Sequence[str], rows: Ints, *, block_pairs: int = BLOCK_PAIRS) -> Floats:
    """s of each of n words and some of the others: those of these rows, (n, c). Returns (n, c)."""
    wanted, right = np.unique(rows, return_inverse=True)
    names: dict[str, int] = {}
    a = _spelled(words, names, no_letter=0)
    b = _spelled([others[row] for row in wanted.tolist()], names, no_letter=-1)
    left, right = np.repeat(np.arange(len(words)), rows.shape[1]), right.reshape(-1)
    found = np.empty(rows.size)
    # Words of like length together: the longest of a block decides how long all of it takes.
    order = np.argsort(a.lengths[left], kind="stable")
    for start in range(0, rows.size, block_pairs):
        pairs = order[start : start + block_pairs]
        found[pairs] = _compared(a.of(left[pairs]), b.of(right[pairs]))
    return found.reshape(rows.shape)


def reranked(
    words: Sequence[str],
    others: Sequence[str],
    rows: Ints,
    scores: Scores,
    weight: float,
) -> tuple[Ints, Scores]:
    """Candidates by CSLS and spelling, best first: rows of the other words (n, c) and their scores (n, c).

    rows, scores: (n, c) by CSLS, best first. The first `COMPARED` of them are compared.
    """
    total = scores + added(words, others, rows, scores.dtype, weight)
    order = np.argsort(-total, axis=1, kind="stable")
    return np.take_along_axis(rows, order, axis=1), np.take_along_axis(total, order, axis=1)


def added(
    words: Sequence[str],
    others: Sequence[str],
    rows: Ints,
    dtype: npt.DTypeLike,
    weight: float,
) -> Scores:
    """What spelling adds to the scores of candidates, whose rows (n, c) are in the order of their CSLS: (n, c)."""
    found = np.zeros(rows.shape, dtype=dtype)
    compared = np.asarray(rows[:, :COMPARED], dtype=np.int64)
    found[:, : compared.shape[1]] = weight * similarities(words, others, compared)
    return found


# --------------------------------------------------------------------------- letters


@dataclass(frozen=True)
class _Spelled:
    """Words as numbers.

    names: (n,), the same for words that are equal once folded. letters: (longest, n), a column a word. lengths: (n,).
    """

    names: Ints
    letters: npt.NDArray[np.int32]
    lengths: Ints

    def of(self, which: Ints) -> _Spelled:
        """Some of the words, no longer than they have to be."""
        lengths = self.lengths[which]
        return _Spelled(self.names[which], self.letters[: lengths.max(), which], lengths)


def _spelled(words: Sequence[str], names: dict[str, int], *, no_letter: int) -> _Spelled:
    """The words folded. names: those given so far. no_letter: stands for all that is none, and for nothing."""
    whole = [folded(word) for word in words]
    cut = [word[:_LONGEST] for word in whole]
    lengths = np.array([len(word) for word in cut], dtype=np.int64)
    text = "".join(cut)
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<i4")
    is_letter = np.fromiter(map(str.isalpha, text), dtype=bool, count=len(text))
    letters = np.full((lengths.max(initial=0), len(words)), no_letter, dtype=np.int32)
    word = np.repeat(np.arange(len(words)), lengths)
    place = np.arange(len(text)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    letters[place, word] = np.where(is_letter, codes, no_letter)
    named = np.array([names.setdefault(each, len(names)) for each in whole], dtype=np.int64)
    return _Spelled(named, letters, lengths)


def _compared(a: _Spelled, b: _Spelled) -> Floats:
    """s of pairs of words, (p,)."""
    longer = np.maximum(np.maximum(a.lengths, b.lengths), 1)
    alike = (1.0 - _distances(a, b) / longer) ** 2
    return np.where(a.names == b.names, 1.0, alike)


def _distances(a: _Spelled, b: _Spelled) -> Ints:
    """Edit distances (p,) of p pairs of words. Their tables are filled together, row by row: int8 holds all entries."""
    width, pairs = b.letters.shape
    one = np.int8(1)
    row = np.repeat(np.arange(width + 1, dtype=np.int8)[:, None], pairs, axis=1)
    found = b.lengths.copy()
    for i, letter in enumerate(a.letters, start=1):
        step = row + one
        step[0] = i
        np.minimum(step[1:], row[:-1] + (letter != b.letters), out=step[1:])
        # Entry after entry: a running minimum along the row (`accumulate`) takes ten times as long.
        for j in range(1, width + 1):
            np.minimum(step[j], step[j - 1] + one, out=step[j])
        row = step
        ended = np.flatnonzero(a.lengths == i)
        found[ended] = row[b.lengths[ended], ended]
    return found
