"""The figures of a report: scores, reliability of the confidence, hubs, mistakes, examples, word pairs for the map."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from qwp import arrays
from qwp.arrays import Bools, Floats, Ints
from qwp.errors import InputError, whole
from qwp.judging.estimate import Share
from qwp.judging.evaluation import Evaluation, evaluate
from qwp.judging.verdict import Quality
from qwp.report.word_map import ContentWords, WordPoint, word_map
from qwp.results.alignment import Alignment
from qwp.results.corrections import anchors, held_out
from qwp.results.lexicon import InducedPair
from qwp.results.sides import AlignedSide
from qwp.search import retrieval
from qwp.search.retrieval import Retriever
from qwp.spaces.embeddings import Embeddings
from qwp.spaces.lexicon import Lexicon

MAX_WORDS = 20_000
"""Default number of words of each side to analyse: two cores take less than a minute for them."""
K = 10
"""Neighbours per query of the k-occurrences."""
# Upper limits of the groups of k-occurrences.
_LIMITS = (0, 2, 5, 10, 20, 50, 100)
GROUPS = (
    "0",
    *(f"{low + 1}–{high}" for low, high in pairwise(_LIMITS)),
    f">{_LIMITS[-1]}",
)

_BINS = 10
# The last rank of each band; the last band ends with the vocabulary.
_EDGES = (500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000)
_Z = 1.959964  # quantile of the normal distribution for a two-sided interval of 95 %
_QUERIES = 5000  # queries of the hub statistics: evenly spaced source words
_LARGEST = 5  # hubs that are shown
_EXAMPLES, _SHOWN = 16, 3  # words, and translations of each
_MISTAKES = 15
_MAP_PAIRS = 40

# --------------------------------------------------------------------------- confidence


@dataclass(frozen=True)
class JudgedWords:
    """The n source words, most frequent first, compared with a lexicon.

    Attributes:
        confidence: confidence of the best translation (n,).
        known: whether the lexicon has the word (n,).
        right: whether the lexicon has the best translation (n,).
    """

    confidence: Floats
    known: Bools
    right: Bools


@dataclass(frozen=True)
class MeasuredShare:
    """A share of correct translations among some words, with its 95 % interval; all from 0 to 1."""

    words: int
    share: float
    low: float
    high: float

    @classmethod
    def of(cls, right: int, words: int) -> MeasuredShare:
        """Return the share with its Wilson interval, for `right` correct translations among at least one word."""
        share, square = right / words, _Z**2 / words
        middle = (share + square / 2) / (1 + square)
        half = _Z * math.sqrt(share * (1 - share) / words + square / (4 * words)) / (1 + square)
        return cls(words, share, max(0.0, middle - half), min(1.0, middle + half))


@dataclass(frozen=True)
class Bin:
    """The words with a confidence between two limits: their mean confidence and the share of correct translations."""

    low: float
    high: float
    confidence: float
    measured: MeasuredShare


@dataclass(frozen=True)
class Reliability:
    """The confidence compared with a lexicon.

    Attributes:
        error: expected calibration error, the mean over words of the difference of confidence and share in each bin.
        confidence: mean confidence over the words of the lexicon.
    """

    bins: list[Bin]
    error: float
    confidence: float
    measured: MeasuredShare


@dataclass(frozen=True)
class RankBand:
    """The words from rank `first` to rank `last`, counted from 1.

    Attributes:
        estimated: share of correct translations estimated from the confidence alone.
        measured: share of correct translations among the words that a lexicon has.
    """

    first: int
    last: int
    estimated: Share | None
    measured: MeasuredShare | None


def reliability(words: JudgedWords) -> Reliability | None:
    """Bin the words of the lexicon by confidence, in bins of equal width; None if it has no words."""
    confidence, right = words.confidence[words.known], words.right[words.known]
    if not len(confidence):
        return None
    which = np.minimum((confidence * _BINS).astype(int), _BINS - 1)
    bins = []
    for number in range(_BINS):
        inside = which == number
        if inside.any():
            measured = MeasuredShare.of(int(right[inside].sum()), int(inside.sum()))
            bins.append(Bin(number / _BINS, (number + 1) / _BINS, float(confidence[inside].mean()), measured))
    error = sum(each.measured.words * abs(each.confidence - each.measured.share) for each in bins) / len(confidence)
    return Reliability(bins, error, float(confidence.mean()), MeasuredShare.of(int(right.sum()), len(right)))


def by_rank(words: JudgedWords, *, estimate: bool) -> list[RankBand]:
    """Divide the words into bands of rank of growing width. estimate: whether to estimate the shares as well."""
    n = len(words.confidence)
    edges = [0, *(edge for edge in _EDGES if edge < n), n]
    found = []
    for first, last in pairwise(edges):
        band = slice(first, last)
        known = int(words.known[band].sum())
        measured = MeasuredShare.of(int(words.right[band].sum()), known) if known else None
        found.append(RankBand(first + 1, last, Share.of(words.confidence[band]) if estimate else None, measured))
    return found


# --------------------------------------------------------------------------- hubs


@dataclass(frozen=True)
class Occurrences:
    """The k-occurrences of all target words with one retrieval method.

    Attributes:
        skewness: skewness of their distribution.
        orphans: share of the target words that are among the k nearest of no source word.
        shares: share of the target words in each of `GROUPS`.
        largest: the words with the most k-occurrences, and their counts.
    """

    skewness: float
    orphans: float
    shares: list[float]
    largest: list[tuple[str, int]]


@dataclass(frozen=True)
class Hubness:
    """k-occurrences by cosine and by CSLS. k: neighbours per query; queries: number of source words."""

    k: int
    queries: int
    cosine: Occurrences
    csls: Occurrences


def hubness(alignment: Alignment, csls_k: int) -> Hubness:
    """Return the hub statistics by cosine and by CSLS."""
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
    """Return a retriever of target words that uses the cached CSLS means of the alignment."""
    src, tgt = alignment.mapped("src"), alignment.mapped("tgt")
    hubs = alignment.device.put(alignment.lookup("tgt", csls_k).hubs, alignment.src_map.dtype.name)
    return retrieval.retriever(tgt, src, method=method, csls_k=csls_k, hubs=hubs)


def occurrences(counts: Ints, words: Sequence[str]) -> Occurrences:
    """Summarise the k-occurrences (m,) of target words."""
    groups = np.searchsorted(_LIMITS, counts)
    shares = np.bincount(groups, minlength=len(GROUPS)) / len(counts)
    largest = np.lexsort((np.arange(len(counts)), -counts))[:_LARGEST].tolist()
    return Occurrences(
        skewness(counts), float(shares[0]), shares.tolist(), [(words[row], int(counts[row])) for row in largest]
    )


def skewness(counts: Ints) -> float:
    """Return the skewness of counts (m,); zero if all counts are equal."""
    centred = counts - counts.mean()
    deviation = float(np.sqrt(np.mean(centred**2)))
    return float(np.mean(centred**3)) / deviation**3 if deviation > 0 else 0.0


# --------------------------------------------------------------------------- all figures


@dataclass(frozen=True)
class Example:
    """A word with its best translations and scores, and whether the first is correct (None: not in the lexicon)."""

    word: str
    translations: list[tuple[str, float]]
    confidence: float
    right: bool | None


@dataclass(frozen=True)
class Mistake:
    """A word for which the lexicon has translations, but not the best one found.

    Attributes:
        rank: frequency rank of the word.
        gold: translations in the lexicon and the target vocabulary.
        gold_rank: rank of the best gold translation among all candidates.
    """

    word: str
    rank: int
    translation: str
    confidence: float
    gold: list[str]
    gold_rank: int


@dataclass(frozen=True)
class Analysis:
    """All figures of a report.

    Attributes:
        alignment: the alignment of the analysed words.
        all_words: size of the whole vocabulary of each side.
        quality: quality of the whole alignment.
        evaluations: scores by name of the lexicon. Without a lexicon, `reliability` is None and `mistakes` is empty.
        left_out: by name of the lexicon, how many of its source words no figure counts, because the fit was given
            their pairs. A lexicon of such words alone has no scores.
        anchors_known: whether the known pairs of the fit were found; True if it was given none.
    """

    alignment: Alignment
    all_words: tuple[int, int]
    quality: Quality
    evaluations: Mapping[str, Evaluation]
    bands: list[RankBand]
    reliability: Reliability | None
    hubness: Hubness
    mistakes: list[Mistake]
    examples: list[Example]
    points: list[WordPoint]
    left_out: Mapping[str, int]
    anchors_known: bool

    @property
    def words(self) -> tuple[int, int]:
        """Number of analysed words of each side."""
        return len(self.alignment.src), len(self.alignment.tgt)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures in plain JSON types, without the quality and the provenance."""
        return {
            "words": dict(zip(("src", "tgt"), self.words, strict=True)),
            "words_in_all": dict(zip(("src", "tgt"), self.all_words, strict=True)),
            "evaluations": {name: found.to_dict() for name, found in self.evaluations.items()},
            "left_out": dict(self.left_out),
            "anchors_known": self.anchors_known,
            "bands": [asdict(band) for band in self.bands],
            "reliability": None if self.reliability is None else asdict(self.reliability),
            "hubness": asdict(self.hubness),
            "mistakes": [asdict(mistake) for mistake in self.mistakes],
            "examples": [asdict(example) for example in self.examples],
            "map": [asdict(point) for point in self.points],
        }


def analyse(
    alignment: Alignment,
    lexicons: Mapping[str, Lexicon],
    *,
    words: Sequence[str] = (),
    max_words: int = MAX_WORDS,
    csls_k: int = retrieval.DEFAULT_CSLS_K,
) -> Analysis:
    """Compute all figures of a report.

    Args:
        alignment: the alignment to report on.
        lexicons: gold dictionaries by name. Each is scored; their union decides which translations are correct.
        words: words to show as examples; by default some content words.
        max_words: analyse only the most frequent words of each side, which bounds the time.
        csls_k: neighbours of CSLS.
    """
    whole(1, max_words=max_words, csls_k=csls_k)
    trained = anchors(alignment, *lexicons.values())
    untaught = {name: held_out(each, trained) for name, each in lexicons.items()}
    left_out = {name: len(each.targets) - len(untaught[name].targets) for name, each in lexicons.items()}
    part = most_frequent(alignment, max_words)
    quality = alignment.quality if alignment.quality.estimate is not None else part.judge_again()
    # Confidences use the estimate of the whole alignment, so it is not computed again for the part.
    part = replace(part, quality=quality)
    pairs = part.induce(mutual_only=False, csls_k=csls_k)
    gold = _gold(untaught.values(), part.tgt)
    judged = JudgedWords(
        np.array([pair.confidence for pair in pairs]),
        np.array([pair.src in gold for pair in pairs]),
        np.array([pair.tgt in gold.get(pair.src, ()) for pair in pairs]),
    )
    return Analysis(
        alignment=part,
        all_words=(len(alignment.src), len(alignment.tgt)),
        quality=alignment.quality,
        evaluations={
            name: evaluate(part, each, csls_k=csls_k)
            for name, each in untaught.items()
            if not left_out[name] or each.coverage(part.src.index, part.tgt.index).covered_source_words
        },
        bands=by_rank(judged, estimate=not quality.failed and not quality.outside_calibration),
        reliability=reliability(judged),
        hubness=hubness(part, csls_k),
        mistakes=_mistakes(part, pairs, gold, csls_k),
        examples=_examples(part, words, pairs, gold, csls_k),
        points=_points(part, pairs),
        left_out=left_out,
        anchors_known=trained is not None,
    )


def most_frequent(alignment: Alignment, n: int) -> Alignment:
    """Restrict an alignment to the n most frequent words of each side; return itself if it has no more."""
    if max(len(alignment.src), len(alignment.tgt)) <= n:
        return alignment
    sides = (_first(alignment.src_side, n), _first(alignment.tgt_side, n))
    return replace(alignment, src_side=sides[0], tgt_side=sides[1], origin=None)


def _first(side: AlignedSide, n: int) -> AlignedSide:
    rows = side.frequent(n)
    space = Embeddings([side.space.words[row] for row in rows.tolist()], side.space.vectors[rows])
    return AlignedSide(space.named(side.space.name), side.map, side.normalization)


def _gold(lexicons: Iterable[Lexicon], tgt: Embeddings) -> dict[str, list[str]]:
    """Merge the lexicons: the translations of each word that are in the target vocabulary."""
    found: dict[str, list[str]] = {}
    for lexicon in lexicons:
        for word, translations in lexicon.targets.items():
            known = [each for each in translations if each in tgt]
            if known:
                found[word] = list(dict.fromkeys([*found.get(word, []), *known]))
    return found


def _mistakes(
    alignment: Alignment, pairs: Sequence[InducedPair], gold: Mapping[str, list[str]], csls_k: int
) -> list[Mistake]:
    """Return the most confident of the wrong translations."""
    wrong = [row for row, pair in enumerate(pairs) if pair.src in gold and pair.tgt not in gold[pair.src]]
    worst = sorted(wrong, key=lambda row: -pairs[row].confidence)[:_MISTAKES]
    ranks = _gold_ranks(alignment, [pairs[row].src for row in worst], gold, csls_k)
    return [
        Mistake(pairs[row].src, row + 1, pairs[row].tgt, pairs[row].confidence, gold[pairs[row].src], rank)
        for row, rank in zip(worst, ranks, strict=True)
    ]


def _gold_ranks(alignment: Alignment, words: Sequence[str], gold: Mapping[str, list[str]], csls_k: int) -> list[int]:
    """Return the rank by CSLS of the best gold translation of each word among all candidates, from 1."""
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
    """Translate the given words that are in the vocabulary, or some content words if none are given."""
    known = [word for word in words if word in alignment.src]
    if words and not known:
        shown = ", ".join(map(repr, words[:5]))
        raise InputError(f"none of the {len(words)} words ({shown}) is in the source vocabulary; expected some of it")
    chosen = known or ContentWords().examples(alignment.src_side, _EXAMPLES)
    found = alignment.translate(chosen, k=_SHOWN, csls_k=csls_k)
    confidences = {pair.src: pair.confidence for pair in pairs}
    return [
        Example(
            word,
            [(each.word, each.score) for each in best],
            confidences[word],
            best[0].word in gold[word] if word in gold else None,
        )
        for word, best in found.items()
    ]


def _points(alignment: Alignment, pairs: Sequence[InducedPair]) -> list[WordPoint]:
    """Project confident pairs of content words onto the plane."""
    rows = alignment.src_side.frequent(len(pairs))
    src = arrays.to_numpy(alignment.mapped("src"))[rows]
    chosen = ContentWords().pairs(pairs, (alignment.src_side, alignment.tgt_side), src, _MAP_PAIRS)
    targets = [alignment.tgt.index[pairs[row].tgt] for row in chosen]
    positions = word_map(src[chosen], arrays.to_numpy(alignment.mapped("tgt"))[targets])
    points = []
    for number, row in enumerate(chosen):
        (sx, sy), (tx, ty) = positions[0][number].tolist(), positions[1][number].tolist()
        points.append(WordPoint(pairs[row].src, "src", sx, sy, number))
        points.append(WordPoint(pairs[row].tgt, "tgt", tx, ty, number))
    return points
