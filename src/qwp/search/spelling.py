"""Spelling similarity: a term that retrieval may add to CSLS for languages of one script.

Cognates, loanwords and names are often spelled alike in two languages. The score of a candidate y for a word x becomes
CSLS(x, y) + weight * s(x, y) for the best candidates by CSLS. s = (1 - d / l)^2 with the edit distance d and the length
l of the longer word. Case and accents are ignored. Only letters can match, so s = 0 for words of different scripts and
for different numbers. Languages without a common alphabet are not changed: the English words in a Japanese vocabulary
are seldom translations of the words they look like.

The term is off by default. Fits, verdicts, estimates and confidences do not use it.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qwp.arrays import AnyFloats, Floats, Ints
from qwp.errors import InputError

LABEL = "csls + spelling"
"""The name of scores with the term, in output and saved files."""
_MOST_WEIGHT = 10.0
# Letters whose mark Unicode does not treat as an accent.
_PLAIN = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "ð": "d", "ħ": "h", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"})


def checked_weight(spelling: float, retrieval: str = "csls") -> float:
    """Return the weight of the term, 0 for none and the measured one for True; an InputError for other values."""
    if not isinstance(spelling, (int, float, np.integer, np.floating)) or not 0 <= spelling <= _MOST_WEIGHT:
        raise InputError(
            f"spelling={spelling!r} is not a weight; expected 0 (off) to {_MOST_WEIGHT:g}, or True for the measured "
            f"weight {Spelling.weight}"
        )
    if spelling and retrieval != "csls":
        raise InputError(
            f"spelling={spelling!r} was received with retrieval={retrieval!r}; expected 'csls', because the term is "
            "added to CSLS: leave out one of them"
        )
    return Spelling.weight if spelling is True else float(spelling)


def folded(word: str) -> str:
    """Remove case and accents from a word."""
    decomposed = unicodedata.normalize("NFKD", word.casefold())
    return "".join(c for c in decomposed if not unicodedata.combining(c)).translate(_PLAIN)


@dataclass(frozen=True)
class Spelling:
    """The spelling term of the scores of candidates.

    Attributes:
        weight: of the similarity; benchmarks/spelling.py chose it, docs/accuracy.md measures it.
        compared: number of candidates, the best by CSLS, that are compared with a word.
        longest: letters of a word that are compared. Longer strings are seldom words, and the time grows with the
            square.
        alphabet_words: most frequent words of a side that represent its alphabet.
        shared_letters: overlap of two letter distributions from which they count as one alphabet. English has 0.75 and
            more with other languages of Latin script, 0.005 with Russian or Japanese.
        block_pairs: pairs of words that are compared at once: their tables fit the cache.
    """

    weight: float = 0.7
    compared: int = 100
    longest: int = 40
    alphabet_words: int = 5_000
    shared_letters: float = 0.25
    block_pairs: int = 1 << 14

    def one_alphabet(self, words: Sequence[str], others: Sequence[str]) -> bool:
        """Whether two vocabularies share an alphabet, so that spelling can help."""
        ours, theirs = (
            Counter(c for word in side[: self.alphabet_words] for c in folded(word[: self.longest]) if c.isalpha())
            for side in (words, others)
        )
        total, other_total = max(1, ours.total()), max(1, theirs.total())
        return sum(min(n / total, theirs[c] / other_total) for c, n in ours.items()) >= self.shared_letters

    def similarities(self, words: Sequence[str], others: Sequence[str], rows: Ints) -> Floats:
        """Return s of n words with some of the others, (n, c). rows: (n, c) of the others."""
        wanted, right = np.unique(rows, return_inverse=True)
        names: dict[str, int] = {}
        a = _spelled(words, names, self.longest, no_letter=0)
        b = _spelled([others[row] for row in wanted.tolist()], names, self.longest, no_letter=-1)
        left, right = np.repeat(np.arange(len(words)), rows.shape[1]), right.reshape(-1)
        found = np.empty(rows.size)
        # Sorted by length, because the longest word of a block determines its time.
        order = np.argsort(a.lengths[left], kind="stable")
        for start in range(0, rows.size, self.block_pairs):
            pairs = order[start : start + self.block_pairs]
            found[pairs] = _compared(a.of(left[pairs]), b.of(right[pairs]))
        return found.reshape(rows.shape)

    def added(self, words: Sequence[str], others: Sequence[str], rows: Ints, dtype: npt.DTypeLike) -> AnyFloats:
        """Return the term for candidates, (n, c), whose rows (n, c) are ordered by CSLS."""
        found = np.zeros(rows.shape, dtype=dtype)
        compared = np.asarray(rows[:, : self.compared], dtype=np.int64)
        found[:, : compared.shape[1]] = self.weight * self.similarities(words, others, compared)
        return found

    def reranked(
        self, words: Sequence[str], others: Sequence[str], rows: Ints, scores: AnyFloats
    ) -> tuple[Ints, AnyFloats]:
        """Re-rank candidates by CSLS plus spelling: return rows of the other words and scores, (n, c), best first.

        rows, scores: (n, c) by CSLS, best first.
        """
        total = scores + self.added(words, others, rows, scores.dtype)
        order = np.argsort(-total, axis=1, kind="stable")
        return np.take_along_axis(rows, order, axis=1), np.take_along_axis(total, order, axis=1)


# --------------------------------------------------------------------------- letters


@dataclass(frozen=True)
class _Spelled:
    """Words encoded as numbers.

    names: (n,) equal for words that are equal without case and accents. letters: (longest, n), one column for each
    word. lengths: (n,).
    """

    names: Ints
    letters: npt.NDArray[np.int32]
    lengths: Ints

    def of(self, which: Ints) -> _Spelled:
        """Return some of the words, trimmed to the longest of them."""
        lengths = self.lengths[which]
        return _Spelled(self.names[which], self.letters[: lengths.max(), which], lengths)


def _spelled(words: Sequence[str], names: dict[str, int], longest: int, *, no_letter: int) -> _Spelled:
    """Encode words without case and accents.

    names: numbers of the words so far, extended by new ones. longest: letters of a word that are encoded.
    no_letter: the code of characters that are no letters.
    """
    whole = [folded(word) for word in words]
    cut = [word[:longest] for word in whole]
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
    """Return s of pairs of words, (p,)."""
    longer = np.maximum(np.maximum(a.lengths, b.lengths), 1)
    alike = (1.0 - _distances(a, b) / longer) ** 2
    return np.where(a.names == b.names, 1.0, alike)


def _distances(a: _Spelled, b: _Spelled) -> Ints:
    """Return the edit distances (p,) of p pairs of words. Their tables are filled together, row by row, in int8."""
    width, pairs = b.letters.shape
    one = np.int8(1)
    row = np.repeat(np.arange(width + 1, dtype=np.int8)[:, None], pairs, axis=1)
    found = b.lengths.copy()
    for i, letter in enumerate(a.letters, start=1):
        step = row + one
        step[0] = i
        np.minimum(step[1:], row[:-1] + (letter != b.letters), out=step[1:])
        # A loop over the entries: np.minimum.accumulate along the row takes ten times as long.
        for j in range(1, width + 1):
            np.minimum(step[j], step[j - 1] + one, out=step[j])
        row = step
        ended = np.flatnonzero(a.lengths == i)
        found[ended] = row[b.lengths[ended], ended]
    return found
