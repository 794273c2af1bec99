"""What a report says of an alignment, as figures: scores, reliability, hubs, mistakes, examples, pairs for the map."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from qwp import arrays
from qwp.checks import whole
from qwp.errors import InputError
from qwp.judging.estimate import Share
from qwp.judging.evaluation import Evaluation, evaluate
from qwp.judging.verdict import Quality
from qwp.report.word_map import WordPoint, content_pairs, example_words, word_map
from qwp.results.alignment import Alignment, InducedPair
from qwp.results.sides import AlignedSide
from qwp.search import retrieval
from qwp.search.retrieval import Retriever
from qwp.spaces.embeddings import Embeddings
from qwp.spaces.lexicon import Lexicon

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

_BINS = 10
# The last rank of each band; the vocabulary ends the last one.
_EDGES = (500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000)
_Z = 1.959964  # of a normal distribution, for 95 %


@dataclass(frozen=True)
class Judged:
    """Source words, most frequent first.

    confidence: (n,) that of the best translation. known: (n,) whether a lexicon has the word; right: (n,) whether it
    has the translation as well.
    """

    confidence: Floats
    known: Flags
    right: Flags


@dataclass(frozen=True)
class Measured:
    """A share of right translations among some words, with its interval; all from 0 to 1."""

    words: int
    share: float
    low: float
    high: float

    @classmethod
    def of(cls, right: int, words: int) -> Measured:
        """Wilson's interval for so many right ones among at least one word."""
        share, square = right / words, _Z**2 / words
        middle = (share + square / 2) / (1 + square)
        half = _Z * math.sqrt(share * (1 - share) / words + square / (4 * words)) / (1 + square)
        return cls(words, share, max(0.0, middle - half), min(1.0, middle + half))


@dataclass(frozen=True)
class Bin:
    """Words whose confidence lies between two limits: its mean, and how many are right."""

    low: float
    high: float
    confidence: float
    measured: Measured


@dataclass(frozen=True)
class Reliability:
    """The confidence held against a lexicon.

    error: by how much confidence and share differ, the mean over the words, bin by bin (the expected calibration
    error). confidence: its mean over the words of the lexicon.
    """

    bins: list[Bin]
    error: float
    confidence: float
    measured: Measured


@dataclass(frozen=True)
class RankBand:
    """The words from one rank to another, counted from 1.

    estimated: the share of right translations by the confidence alone; measured: by a lexicon that has some of them.
    """

    first: int
    last: int
    estimated: Share | None
    measured: Measured | None


def reliability(words: Judged) -> Reliability | None:
    """Bins of equal width of the words that a lexicon has; None where it has none."""
    confidence, right = words.confidence[words.known], words.right[words.known]
    if not len(confidence):
        return None
    which = np.minimum((confidence * _BINS).astype(int), _BINS - 1)
    bins = []
    for number in range(_BINS):
        inside = which == number
        if inside.any():
            measured = Measured.of(int(right[inside].sum()), int(inside.sum()))
            bins.append(Bin(number / _BINS, (number + 1) / _BINS, float(confidence[inside].mean()), measured))
    error = sum(each.measured.words * abs(each.confidence - each.measured.share) for each in bins) / len(confidence)
    return Reliability(bins, error, float(confidence.mean()), Measured.of(int(right.sum()), len(right)))


def by_rank(words: Judged, *, real: bool) -> list[RankBand]:
    """Bands of rank, wider and wider. real: whether it is worth estimating, being no failure."""
    n = len(words.confidence)
    edges = [0, *(edge for edge in _EDGES if edge < n), n]
    found = []
    for first, last in pairwise(edges):
        band = slice(first, last)
        known = int(words.known[band].sum())
        measured = Measured.of(int(words.right[band].sum()), known) if known else None
        found.append(RankBand(first + 1, last, Share.of(words.confidence[band]) if real else None, measured))
    return found


Ints = npt.NDArray[np.int64]

K = 10
_QUERIES = 5000  # source words that are asked; an even part of more
_LARGEST = 5
# k-occurrences up to each of these are shown together.
_LIMITS = (0, 2, 5, 10, 20, 50, 100)
GROUPS = (
    "0",
    *(f"{low + 1}–{high}" for low, high in pairwise(_LIMITS)),
    f">{_LIMITS[-1]}",
)


@dataclass(frozen=True)
class Occurrences:
    """The k-occurrences of all target words under one retrieval.

    skewness: of their distribution. orphans: the share that is among the k best of no word. shares: of the target
    words, by `GROUPS`. largest: the words with the most, and how many.
    """

    skewness: float
    orphans: float
    shares: list[float]
    largest: list[tuple[str, int]]


@dataclass(frozen=True)
class Hubness:
    """k-occurrences before and after. k: candidates of each word; queries: source words that were asked."""

    k: int
    queries: int
    cosine: Occurrences
    csls: Occurrences


def hubness(alignment: Alignment, csls_k: int) -> Hubness:
    """Hubs by plain cosine and by CSLS."""
    src, tgt = alignment.mapped("src"), alignment.mapped("tgt")
    xp = arrays.namespace(src)
    n, k = src.shape[0], min(K, tgt.shape[0])
    rows = np.unique(np.linspace(0, n - 1, min(n, _QUERIES)).astype(np.int64))
    queries = xp.take(src, arrays.asarray(rows, src), axis=0)
    found = []
    for method in ("nn", "csls"):
        best = arrays.to_numpy(searcher(alignment, method, csls_k).top_k(queries, k)[0])
        found.append(occurrences(np.bincount(best.reshape(-1), minlength=tgt.shape[0]), alignment.tgt.words))
    return Hubness(k, len(rows), *found)


def searcher(alignment: Alignment, method: str, csls_k: int) -> Retriever:
    """What ranks the target words, by the neighbourhoods that are kept beside the alignment."""
    src, tgt = alignment.mapped("src"), alignment.mapped("tgt")
    hubs = alignment.place.put(alignment.lookup("tgt", csls_k).hubs, alignment.src_map.dtype.name)
    return retrieval.retriever(tgt, src, method=method, csls_k=csls_k, hubs=hubs)


def occurrences(counts: Ints, words: Sequence[str]) -> Occurrences:
    """What the k-occurrences (m,) of target words show."""
    groups = np.searchsorted(_LIMITS, counts)
    shares = np.bincount(groups, minlength=len(GROUPS)) / len(counts)
    largest = np.lexsort((np.arange(len(counts)), -counts))[:_LARGEST].tolist()
    return Occurrences(
        skewness(counts), float(shares[0]), shares.tolist(), [(words[row], int(counts[row])) for row in largest]
    )


def skewness(counts: Ints) -> float:
    """The third moment of counts (m,), in their deviations; zero where all are alike."""
    centred = counts - counts.mean()
    deviation = float(np.sqrt(np.mean(centred**2)))
    return float(np.mean(centred**3)) / deviation**3 if deviation > 0 else 0.0


MOST_WORDS = 20_000
"""Words of each side that are looked at unless more are asked for: two cores take less than a minute for them."""
_EXAMPLES, _SHOWN = 16, 3
_MISTAKES = 15
_MAP_PAIRS = 40


@dataclass(frozen=True)
class Example:
    """A word with its best translations and their scores, and whether a lexicon has the first (None: not listed)."""

    word: str
    translations: list[tuple[str, float]]
    confidence: float
    right: bool | None


@dataclass(frozen=True)
class Mistake:
    """A word whose best translation is not in the lexicon, which has others.

    rank: of the word by frequency; gold: what the lexicon has of the target vocabulary; gold_rank: the place of the
    best of these among all candidates.
    """

    word: str
    rank: int
    translation: str
    confidence: float
    gold: list[str]
    gold_rank: int


@dataclass(frozen=True)
class Findings:
    """All figures of a report.

    alignment: of the words that were looked at; of: how many words there are on each side; quality: its judgement, made
    now where there was none. evaluations: by name of the lexicon; empty without one, and then there is no reliability
    and there are no mistakes.
    """

    alignment: Alignment
    of: tuple[int, int]
    quality: Quality
    evaluations: Mapping[str, Evaluation]
    bands: list[RankBand]
    reliability: Reliability | None
    hubness: Hubness
    mistakes: list[Mistake]
    examples: list[Example]
    points: list[WordPoint]

    @property
    def words(self) -> tuple[int, int]:
        """How many words of each side were looked at."""
        return len(self.alignment.src), len(self.alignment.tgt)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types, but for the judgement and the provenance."""
        return {
            "words": dict(zip(("src", "tgt"), self.words, strict=True)),
            "words_in_all": dict(zip(("src", "tgt"), self.of, strict=True)),
            "evaluations": {name: found.to_dict() for name, found in self.evaluations.items()},
            "bands": [asdict(band) for band in self.bands],
            "reliability": None if self.reliability is None else asdict(self.reliability),
            "hubness": asdict(self.hubness),
            "mistakes": [asdict(mistake) for mistake in self.mistakes],
            "examples": [asdict(example) for example in self.examples],
            "map": [asdict(point) for point in self.points],
        }


def find(
    alignment: Alignment,
    lexicons: Mapping[str, Lexicon],
    *,
    words: Sequence[str] = (),
    max_words: int = MOST_WORDS,
    csls_k: int = retrieval.DEFAULT_CSLS_K,
) -> Findings:
    """Measure all that a report shows.

    lexicons: gold dictionaries by name; each is scored, and all together say which translations are right. words: those
    to show as examples; some content words unless they are given. max_words: only so many of the most frequent words of
    each side are looked at, so that the time is bounded.
    """
    whole(1, max_words=max_words, csls_k=csls_k)
    of = (len(alignment.src), len(alignment.tgt))
    looked = most_frequent(alignment, max_words)
    quality = alignment.quality if alignment.quality.estimate is not None else looked.judged_anew()
    # The same estimate for the confidences; judging takes its time, so it is done once.
    looked = replace(looked, quality=quality)
    evaluations = {name: evaluate(looked, gold, csls_k=csls_k) for name, gold in lexicons.items()}
    pairs = looked.induce(mutual_only=False, csls_k=csls_k)
    gold = _gold(lexicons.values(), looked.tgt)
    judged = Judged(
        np.array([pair.confidence for pair in pairs]),
        np.array([pair.src in gold for pair in pairs]),
        np.array([pair.tgt in gold.get(pair.src, ()) for pair in pairs]),
    )
    return Findings(
        alignment=looked,
        of=of,
        quality=alignment.quality,
        evaluations=evaluations,
        bands=by_rank(judged, real=not quality.failed),
        reliability=reliability(judged),
        hubness=hubness(looked, csls_k),
        mistakes=_mistakes(looked, pairs, gold, csls_k),
        examples=_examples(looked, words, pairs, gold, csls_k),
        points=_points(looked, pairs),
    )


def most_frequent(alignment: Alignment, n: int) -> Alignment:
    """The same alignment of the n most frequent words of each side, or itself where it has no more."""
    if max(len(alignment.src), len(alignment.tgt)) <= n:
        return alignment
    sides = (_first(alignment.src_side, n), _first(alignment.tgt_side, n))
    return replace(alignment, src_side=sides[0], tgt_side=sides[1], origin=None)


def _first(side: AlignedSide, n: int) -> AlignedSide:
    rows = side.frequent(n)
    space = Embeddings([side.space.words[row] for row in rows.tolist()], side.space.vectors[rows])
    return AlignedSide(space.named(side.space.name), side.map, side.normalization)


def _gold(lexicons: Iterable[Lexicon], tgt: Embeddings) -> dict[str, list[str]]:
    """The translations of each word in any of the lexicons, as far as the target vocabulary has them."""
    found: dict[str, list[str]] = {}
    for lexicon in lexicons:
        for word, translations in lexicon.targets.items():
            there = [each for each in translations if each in tgt]
            if there:
                found[word] = list(dict.fromkeys([*found.get(word, []), *there]))
    return found


def _mistakes(
    alignment: Alignment, pairs: Sequence[InducedPair], gold: Mapping[str, list[str]], csls_k: int
) -> list[Mistake]:
    """The surest of the wrong translations."""
    wrong = [row for row, pair in enumerate(pairs) if pair.src in gold and pair.tgt not in gold[pair.src]]
    worst = sorted(wrong, key=lambda row: -pairs[row].confidence)[:_MISTAKES]
    places = _gold_ranks(alignment, [pairs[row].src for row in worst], gold, csls_k)
    return [
        Mistake(pairs[row].src, row + 1, pairs[row].tgt, pairs[row].confidence, gold[pairs[row].src], place)
        for row, place in zip(worst, places, strict=True)
    ]


def _gold_ranks(alignment: Alignment, words: Sequence[str], gold: Mapping[str, list[str]], csls_k: int) -> list[int]:
    """The place of the best gold word of each word among all candidates, from 1, by CSLS."""
    if not words:
        return []
    src = alignment.mapped("src")
    rows = arrays.asarray(np.array([alignment.src.index[word] for word in words]), src)
    queries = arrays.namespace(src).take(src, rows, axis=0)
    scores = arrays.to_numpy(searcher(alignment, "csls", csls_k).scores(queries))
    golds = [
        max(row[alignment.tgt.index[each]] for each in gold[word]) for word, row in zip(words, scores, strict=True)
    ]
    return [1 + int(np.count_nonzero(row > best)) for row, best in zip(scores, golds, strict=True)]


def _examples(
    alignment: Alignment,
    words: Sequence[str],
    pairs: Sequence[InducedPair],
    gold: Mapping[str, list[str]],
    csls_k: int,
) -> list[Example]:
    """The words that were given, as far as they are there; content words by rank alone unless some were."""
    wanted = [word for word in words if word in alignment.src]
    if words and not wanted:
        shown = ", ".join(map(repr, words[:5]))
        raise InputError(f"none of the {len(words)} words ({shown}) is in the source vocabulary; expected some of it")
    chosen = wanted or example_words(alignment.src_side, _EXAMPLES)
    found = alignment.translate(chosen, k=_SHOWN, csls_k=csls_k)
    sure = {pair.src: pair.confidence for pair in pairs}
    return [
        Example(
            word,
            [(each.word, each.score) for each in best],
            sure[word],
            best[0].word in gold[word] if word in gold else None,
        )
        for word, best in found.items()
    ]


def _points(alignment: Alignment, pairs: Sequence[InducedPair]) -> list[WordPoint]:
    """Sure pairs of content words in the plane."""
    rows = alignment.src_side.frequent(len(pairs))
    src = arrays.to_numpy(alignment.mapped("src"))[rows]
    chosen = content_pairs(pairs, (alignment.src_side, alignment.tgt_side), src, _MAP_PAIRS)
    targets = [alignment.tgt.index[pairs[row].tgt] for row in chosen]
    places = word_map(src[chosen], arrays.to_numpy(alignment.mapped("tgt"))[targets])
    points = []
    for number, row in enumerate(chosen):
        (sx, sy), (tx, ty) = places[0][number].tolist(), places[1][number].tolist()
        points.append(WordPoint(pairs[row].src, "src", sx, sy, number))
        points.append(WordPoint(pairs[row].tgt, "tgt", tx, ty, number))
    return points
