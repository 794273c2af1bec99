"""Sentence retrieval: rank the translation of a sentence by the vectors of its words.

Two files contain the same sentences line by line, words separated by blanks, as in the Europarl task of MUSE. The
vector of a sentence is the sum of the vectors of its words in the common space, weighted by inverse document frequency

    idf(w) = log(lines / lines with w)

in the same files or in others. A word that these lack counts as if it occurred in one line. For each query, all
sentences of the other language are ranked by cosine or CSLS. The neighbourhoods of CSLS are those of the queries, as in
MUSE.

A sentence is covered if the vocabulary has one of its words with a weight above 0; a pair if both sentences are. Pairs
with a repeated sentence on either side are left out and counted, because their translation is ambiguous. `P@k` is the
share of queries whose translation is among the k best, `MRR` the mean of 1 / rank. Ties count against the system.
Intervals are percentile bootstrap over queries.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, TypeAlias

import numpy as np

from qwp import arrays
from qwp.arrays import AnyFloats, Array, Ints, Stream
from qwp.errors import InputError, whole
from qwp.judging.evaluation import Score, ratios
from qwp.judging.ranks import AlignedSpaces, Gold, check_aligned, check_methods, gold_ranks, mapped_sides
from qwp.search import retrieval as retrieve
from qwp.showing import html
from qwp.spaces.io.arguments import as_choice, as_path
from qwp.spaces.io.line_files import Skipped, split_blanks, text_lines

logger = logging.getLogger(__name__)

DIRECTIONS = ("src-tgt", "tgt-src")
QUERIES = 2000
"""Queries in each direction, as in MUSE."""
MOST_SENTENCES = 200_000
"""Lines that are read from each file, as in MUSE."""
AT = (1, 5, 10)

Text: TypeAlias = "str | PathLike[str] | Sequence[str]"
"""The path of a file with one sentence on each line, or a list of sentences."""
TwoTexts: TypeAlias = "TextPair | tuple[Text, Text]"


@dataclass(frozen=True)
class TextPair:
    """Sentences of the two languages. skipped: number of lines that are not text; sources: the files."""

    src: Sequence[str]
    tgt: Sequence[str]
    skipped: int = 0
    sources: tuple[str | None, str | None] = (None, None)

    def __repr__(self) -> str:
        return f"TextPair({len(self.src):,} and {len(self.tgt):,} sentences)"

    @classmethod
    def of(cls, given: TwoTexts) -> TextPair:
        """Convert a TextPair, two paths or two lists of sentences."""
        if isinstance(given, TextPair):
            return given
        if isinstance(given, (str, PathLike)) or not isinstance(given, Sequence) or len(given) != 2:
            raise InputError(
                f"received {type(given).__name__} as sentences, expected two files or two lists: (src, tgt)"
            )
        return cls.load(*given)

    @classmethod
    def load(cls, src: Text, tgt: Text, *, case: str = "keep", max_sentences: int | None = MOST_SENTENCES) -> TextPair:
        """Read at most `max_sentences` lines of two files or lists; case="lower" lower-cases them."""
        lower = as_choice("case", case, ("keep", "lower")) == "lower"
        if max_sentences is not None:
            whole(1, max_sentences=max_sentences)
        skipped = Skipped()
        one, other = (_lines(text, max_sentences, skipped, lower=lower) for text in (src, tgt))
        names = [str(text) if isinstance(text, (str, PathLike)) else None for text in (src, tgt)]
        return cls(one, other, skipped.count, (names[0], names[1]))


@dataclass(frozen=True)
class SentenceCoverage:
    """How many of the pairs of lines are repeated, covered (the candidates) and queries."""

    lines: int
    repeated: int
    covered: int
    queries: int

    @property
    def share(self) -> float:
        """The share of covered pairs among those that are not repeated."""
        return self.covered / max(1, self.lines - self.repeated)

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        counts = {"lines": self.lines, "repeated": self.repeated, "covered": self.covered, "queries": self.queries}
        return {**counts, "share": self.share}


@dataclass(frozen=True)
class SentenceRetrieval(html.NotebookCard):
    """The scores of sentence retrieval: by direction ("src-tgt", "tgt-src"), retrieval method and measure."""

    coverage: SentenceCoverage
    scores: Mapping[str, Mapping[str, Mapping[str, Score]]]
    csls_k: int
    bootstrap: int
    seed: int
    sources: tuple[str | None, str | None] = (None, None)
    skipped: int = 0

    def __repr__(self) -> str:
        best = ", ".join(
            f"{direction} {method} {name} {100 * score.value:.1f} %"
            for direction, methods in self.scores.items()
            for method, measures in [*methods.items()][-1:]
            for name, score in [*measures.items()][:1]
        )
        return f"SentenceRetrieval({best}, {self.coverage.covered:,} of {self.coverage.lines:,} lines)"

    def _as_html(self) -> str:
        """Show one row for each direction and method."""
        rows = [
            (direction, method, *(score.percent() for score in measures.values()))
            for direction, methods in self.scores.items()
            for method, measures in methods.items()
        ]
        names = [*next(iter(next(iter(self.scores.values())).values()))]
        count = f"{self.coverage.queries:,} queries among {self.coverage.covered:,} sentences"
        title = html.line(count, html.FIGURES, "scores in percent, with 95 % intervals")
        return html.card(html.FIGURES, title, html.table(rows, ("direction", "retrieval", *names)))

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types. Scores are shares from 0 to 1, not percent."""
        return {
            "paths": list(self.sources),
            "skipped": self.skipped,
            "coverage": self.coverage.to_dict(),
            "csls_k": self.csls_k,
            "scores": {
                direction: {
                    method: {name: score.to_dict() for name, score in measures.items()}
                    for method, measures in methods.items()
                }
                for direction, methods in self.scores.items()
            },
        }


def evaluate_sentences(
    aligned: AlignedSpaces,
    sentences: TwoTexts,
    *,
    idf: TwoTexts | None = None,
    queries: int = QUERIES,
    retrieval: Sequence[str] = ("nn", "csls"),
    csls_k: int = 10,
    bootstrap: int = 1000,
    seed: int = 0,
) -> SentenceRetrieval:
    """Score how often the translation of a sentence is found among all sentences, in both directions.

    Args:
        aligned: an Alignment, or two files in one space.
        sentences: (src, tgt), each a file or a list, translations line by line.
        idf: other texts (src, tgt) for the inverse document frequencies, which need not be translations; the sentences
            themselves by default.
        queries: number of covered sentences that are searched; all covered ones are candidates.
        retrieval: one or more of "nn", "csls", "softmax".
        csls_k: neighbourhood size of CSLS.
        bootstrap: number of resamples for the intervals.
        seed: of the queries and the resamples.
    """
    whole(1, csls_k=csls_k, queries=queries)
    whole(0, bootstrap=bootstrap, seed=seed)
    check_aligned(aligned)
    methods = check_methods(retrieval)
    text = TextPair.of(sentences)
    _check_lengths(text)
    kept = _first_of_each(text)
    words = mapped_sides(aligned)
    vectors = _vectors(aligned, text, kept, words, text if idf is None else TextPair.of(idf))
    known = np.flatnonzero(np.all([np.abs(rows).max(axis=1) > 0 for rows in vectors], axis=0))
    if len(known) < 2:
        raise InputError(
            f"{len(known)} of the {len(kept):,} different pairs of sentences have known words on both sides, expected "
            "at least 2: check the languages, the order (source first), upper and lower case (--case lower), and that "
            "blanks separate the words"
        )
    chosen = np.sort(arrays.rng(seed, Stream.SENTENCES).permutation(len(known))[:queries])
    sides = [arrays.unit(arrays.asarray(rows[known], like)) for rows, like in zip(vectors, words, strict=True)]
    logger.info("%d sentences looked for among %d", len(chosen), len(known))
    scores = {
        direction: _directed(one, other, chosen, methods, csls_k, (bootstrap, seed, number))
        for number, (direction, one, other) in enumerate(zip(DIRECTIONS, sides, sides[::-1], strict=True))
    }
    coverage = SentenceCoverage(len(text.src), len(text.src) - len(kept), len(known), len(chosen))
    csls_k = min(csls_k, len(chosen))
    return SentenceRetrieval(coverage, scores, csls_k, bootstrap, seed, text.sources, text.skipped)


# --------------------------------------------------------------------------- texts


def _lines(text: Text, most: int | None, skipped: Skipped, *, lower: bool) -> list[str]:
    if not isinstance(text, (str, PathLike)):
        found = list(text)[:most]
        if strange := next((line for line in found if not isinstance(line, str)), None):
            raise InputError(f"received {strange!r} as a sentence, expected text with words separated by blanks")
        return [line.lower() for line in found] if lower else found
    name, found, before = as_path(text), [], skipped.count
    for _, line in text_lines(name, "a sentence", skipped):
        if most is not None and len(found) == most:
            break
        found.append(line.lower() if lower else line)
    if not any(line.strip() for line in found):
        raise InputError(f"{name} holds no sentence, expected one on each line, words separated by blanks")
    if skipped.count > before:
        skipped.warn(name)
    return found


def _check_lengths(text: TextPair) -> None:
    if len(text.src) != len(text.tgt):
        one, other = (name or side for name, side in zip(text.sources, ("the source", "the target"), strict=True))
        raise InputError(
            f"{one} has {len(text.src):,} lines and {other} {len(text.tgt):,}, expected the same number: translations "
            "line by line"
        )


def _first_of_each(text: TextPair) -> list[int]:
    """Return the numbers of the lines whose sentences do not occur in an earlier line, on either side."""
    seen: tuple[set[str], set[str]] = (set(), set())
    kept = []
    for number, pair in enumerate(zip(text.src, text.tgt, strict=True)):
        if not any(line in lines for line, lines in zip(pair, seen, strict=True)):
            kept.append(number)
        for line, lines in zip(pair, seen, strict=True):
            lines.add(line)
    return kept


@dataclass(frozen=True)
class _Idf:
    """The number of lines that contain each word."""

    lines: int
    counts: Counter[str]

    def weight(self, word: str) -> float:
        return math.log(self.lines / max(1, self.counts[word]))


def _idf(lines: Sequence[str]) -> _Idf:
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(set(split_blanks(line)))
    return _Idf(len(lines), counts)


def _vectors(
    aligned: AlignedSpaces, text: TextPair, kept: Sequence[int], words: Sequence[Array], weighing: TextPair
) -> list[AnyFloats]:
    """Return the vectors of the kept sentences of both sides, (n, d) each."""
    given = zip((text.src, text.tgt), (aligned.src, aligned.tgt), words, (weighing.src, weighing.tgt), strict=True)
    return [
        _sentence_vectors([lines[i] for i in kept], space.index, mapped, _idf(texts))
        for lines, space, mapped, texts in given
    ]


def _sentence_vectors(lines: Sequence[str], index: Mapping[str, int], mapped: Array, idf: _Idf) -> AnyFloats:
    """Return the weighted sums of the vectors of the known words of each line, (n, d), in host memory."""
    import scipy.sparse  # takes as long to import as NumPy, and few runs need it

    weights: dict[str, float] = {}
    columns, values, ends = [], [], [0]
    for line in lines:
        for word in split_blanks(line):
            if word in index:
                columns.append(index[word])
                values.append(weights.setdefault(word, idf.weight(word)))
        ends.append(len(columns))
    vectors = arrays.to_numpy(mapped)
    shape = (len(lines), vectors.shape[0])
    return np.asarray(scipy.sparse.csr_matrix((np.array(values, vectors.dtype), columns, ends), shape=shape) @ vectors)


# --------------------------------------------------------------------------- ranking


def _directed(
    one: Array, other: Array, chosen: Ints, methods: Sequence[str], csls_k: int, key: tuple[int, int, int]
) -> dict[str, dict[str, Score]]:
    """Return the scores of the queries (q,) of one language (n, d) among all sentences of the other (n, d)."""
    bootstrap, seed, number = key
    queries = arrays.namespace(one).take(one, arrays.asarray(chosen, one), axis=0)
    q = len(chosen)
    gold = Gold(np.arange(q), np.arange(q), np.ones(q, np.int64), np.arange(q), chosen, np.ones(q, np.int64))
    found = {}
    for method in methods:
        retriever = retrieve.retriever(other, queries, method=method, csls_k=csls_k)
        rank = gold_ranks(retriever, queries, gold).rank
        columns = {**{f"P@{k}": (rank <= k).astype(np.float64) for k in AT}, "MRR": 1.0 / rank}
        table = np.stack([*columns.values()], axis=1)
        # All methods use the same resamples.
        generator = arrays.rng(seed, Stream.BOOTSTRAP, 4, number)
        values = zip(columns, *ratios(table, np.ones_like(table), bootstrap, generator), strict=True)
        found[method] = {name: Score(float(v), float(low), float(high)) for name, v, low, high in values}
    return found
