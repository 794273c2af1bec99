"""Bilingual lexicon induction: how often, and how high, two aligned spaces rank the right translation.

**One ranking.** For every source word all target words are ranked by retrieval score, best first. Ties count
against the system: among equal scores the wrong words come first, so a scorer that says the same about
everything puts the gold words last and earns next to nothing, while gold words that tie with each other share
the places they would have had anyway. A score that is NaN is worse than every number. All measures read this
one ranking; with `rank_1 < rank_2 < ...` the places of the gold words of one source word:

- `P@k`: 1 if `rank_1 <= k`, else 0; averaged over source words.
- `MRR`: `1 / rank_1`, the reciprocal rank of the best gold word; averaged over source words.
- `MAP`: the XLING convention, `1 / rank_i` of every gold *pair*, averaged over pairs. A word with two gold
  words cannot have both in first place, so on a lexicon with several golds a word even a perfect system stays
  below 1.
- `AP`: textbook average precision, the mean of `i / rank_i` over the gold words of one source word; averaged
  over source words. A perfect system has 1.

**Two denominators.** A source word is covered when it is in the source vocabulary and at least one of its
gold words is in the target vocabulary; a pair is covered when both of its words are.

- `covered` (MUSE, VecMap): covered source words only; for MAP covered pairs, for AP the gold words in the
  vocabulary.
- `all_words` (fastText's eval script): every source word of the lexicon, uncovered ones scoring 0; for MAP
  every pair, for AP every gold word listed.

**Intervals.** 95 % percentile bootstrap over source words (a word brings all of its pairs along), widened
where needed to hold the value itself. All methods see the same resamples.
"""

from __future__ import annotations

import logging
import operator
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from qwp import arrays
from qwp.arrays import Array, Stream
from qwp.checks import one_of, whole
from qwp.errors import InputError
from qwp.search import retrieval as retrieve
from qwp.search.spelling import COMPARED, LABEL, added, checked_weight, one_alphabet
from qwp.showing import html
from qwp.spaces.embeddings import Embeddings
from qwp.spaces.lexicon import Coverage, Lexicon, PairsOfWords

logger = logging.getLogger(__name__)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

CONFIDENCE = 0.95
CONVENTIONS: Mapping[str, str] = MappingProxyType(
    {
        "covered": "over covered source words, as MUSE and VecMap do (MAP: covered pairs)",
        "all_words": "over all source words, uncovered ones score 0, as fastText does (MAP: all pairs)",
        "P@k": "share of source words with a gold word among the k best",
        "MRR": "reciprocal rank of the best gold word, mean over source words",
        "MAP": "XLING: reciprocal rank of every gold pair, mean over pairs",
        "AP": "textbook average precision over the gold words, mean over source words",
        "ties": "wrong words come before gold words of the same score",
        "interval": "95 % percentile bootstrap over source words",
    }
)

DENOMINATORS: Mapping[str, str] = MappingProxyType({"covered": "covered words", "all_words": "all words"})
"""The two, as tables name them."""

# Of what is shown in notebooks: figures, neither good nor bad.
_COLOUR = "#3465a4"
# Numbers held by one block of bootstrap resamples.
_RESAMPLE_ELEMENTS = 1 << 20


class AlignedSpaces(Protocol):
    """Two vocabularies whose vectors can be had in one common space."""

    @property
    def src(self) -> Embeddings: ...

    @property
    def tgt(self) -> Embeddings: ...

    def mapped(self, side: Literal["src", "tgt"]) -> Array:
        """Vectors of one side in the common space, (n, d) unit rows in vocabulary order."""
        ...


@dataclass(frozen=True)
class AlignedFiles:
    """Two sets of vectors that are in one space already, such as aligned files from another tool."""

    src: Embeddings
    tgt: Embeddings
    place: arrays.Place = arrays.HOST

    def on(self, device: str = "auto", library: str = "auto") -> AlignedFiles:
        """The same files, scored on a device: cpu, cuda, cuda:1, ..."""
        return replace(self, place=arrays.choose_place(device, library))

    def mapped(self, side: Literal["src", "tgt"]) -> Array:
        """Vectors of one side scaled to length one, (n, d)."""
        vectors = (self.src if side == "src" else self.tgt).vectors
        return arrays.unit(self.place.put(vectors, vectors.dtype.name))


@dataclass(frozen=True)
class Score:
    """One measure in 0..1 with its bootstrap 95 % interval."""

    value: float
    low: float
    high: float

    def percent(self) -> str:
        """In percent, with the interval where it has one."""
        shown = f"{100 * self.value:.1f}"
        return shown if self.low == self.high else f"{shown} ({100 * self.low:.1f} to {100 * self.high:.1f})"

    def to_dict(self) -> dict[str, float]:
        """The three numbers, ready for JSON."""
        return {"value": self.value, "low": self.low, "high": self.high}


@dataclass(frozen=True)
class RetrievalScores:
    """The measures of one retrieval method under both denominators.

    Keys are "P@1" (and the other k asked for), "MRR", "MAP" and "AP"; the module docstring defines them.
    """

    method: str
    covered: Mapping[str, Score]
    all_words: Mapping[str, Score]

    def to_dict(self) -> dict[str, dict[str, dict[str, float]]]:
        """Both denominators as nested dictionaries, ready for JSON."""
        return {
            "covered": {name: score.to_dict() for name, score in self.covered.items()},
            "all_words": {name: score.to_dict() for name, score in self.all_words.items()},
        }


@dataclass(frozen=True)
class Evaluation:
    """What `evaluate` found: coverage first, then the scores of every retrieval method asked for.

    spelling: the weight of the term for words that are spelled alike, 0 for none; the scores with it are those of
    "csls + spelling".
    """

    coverage: Coverage
    scores: Mapping[str, RetrievalScores]
    csls_k: int
    n_src: int
    n_tgt: int
    bootstrap: int
    seed: int
    spelling: float = 0.0

    def __repr__(self) -> str:
        best = ", ".join(
            f"{method} {name} {100 * score.value:.1f} %"
            for method, scores in self.scores.items()
            for name, score in [*scores.covered.items()][:1]
        )
        words = f"{self.coverage.covered_source_words:,} of {self.coverage.source_words:,} words covered"
        return f"Evaluation({best}, {words})"

    def _repr_html_(self) -> str:
        """For notebooks: coverage, and the scores in percent, with their intervals."""
        return html.never_failing(self._as_html, self)

    def _as_html(self) -> str:
        coverage, names = self.coverage, [*next(iter(self.scores.values())).covered]
        rows = [
            (method, words, *(score.percent() for score in measures.values()))
            for method, scores in self.scores.items()
            for key, words in DENOMINATORS.items()
            for measures in [getattr(scores, key)]
        ]
        covered = f"{coverage.covered_source_words:,} of {coverage.source_words:,} source words covered"
        return html.card(
            _COLOUR,
            html.line(covered, _COLOUR, f"({100 * coverage.share:.1f} %); scores in percent, with 95 % intervals"),
            html.table(rows, ("retrieval", "out of", *names)),
        )

    def p_at_1(self, method: str = "csls") -> float:
        """P@1 in 0..1 over covered source words."""
        if method not in self.scores:
            raise InputError(
                f"no scores for retrieval {method!r}; this evaluation holds {', '.join(self.scores)}: "
                f"ask for it with retrieval=({method!r},)"
            )
        measures = self.scores[method].covered
        if "P@1" not in measures:
            raise InputError(f"P@1 was not computed, only {', '.join(measures)}: put 1 into `at`")
        return measures["P@1"].value

    def to_dict(self) -> dict[str, Any]:
        """Everything ready for JSON. Scores are shares in 0..1, not percent."""
        return {
            "coverage": self.coverage.to_dict(),
            "n_src": self.n_src,
            "n_tgt": self.n_tgt,
            "csls_k": self.csls_k,
            "spelling": self.spelling,
            "percent": False,
            "bootstrap": {"resamples": self.bootstrap, "confidence": CONFIDENCE, "seed": self.seed},
            "conventions": dict(CONVENTIONS),
            "scores": {method: scores.to_dict() for method, scores in self.scores.items()},
        }


def evaluate(
    aligned: AlignedSpaces,
    lexicon: PairsOfWords,
    *,
    retrieval: Sequence[str] = ("nn", "csls"),
    csls_k: int = 10,
    at: Sequence[int] = (1, 5, 10),
    bootstrap: int = 1000,
    seed: int = 0,
    spelling: float = 0.0,
) -> Evaluation:
    """Score the translations that `aligned` proposes against `lexicon`: a Lexicon, a path, pairs of words or a dict.

    Every target word competes, and every source word counts as a neighbour for CSLS, whether the lexicon
    lists it or not. `csls_k` is clamped to the vocabulary sizes. `bootstrap` is the number of resamples; with
    0 the intervals collapse to the values. `spelling` is the weight of a term for words that are spelled alike
    (True for the measured one): scores of "csls + spelling" then stand beside those of the methods.
    """
    methods = _check_methods(retrieval)
    weight = checked_weight(spelling)
    ks = _check_at(at)
    whole(1, csls_k=csls_k)
    whole(0, bootstrap=bootstrap, seed=seed)
    _check_aligned(aligned)
    lexicon = Lexicon.of(lexicon)
    coverage = lexicon.coverage(aligned.src.index, aligned.tgt.index)
    if coverage.covered_source_words == 0:
        raise InputError(_nothing_covered(aligned, lexicon, coverage))
    logger.info(
        "evaluating on %d of %d source words (%d of %d pairs)",
        coverage.covered_source_words,
        coverage.source_words,
        coverage.covered_pairs,
        coverage.pairs,
    )
    src, tgt = _mapped(aligned)
    if ks and ks[-1] >= tgt.shape[0]:
        logger.warning("P@%d over %d target words is 1 for every covered word", ks[-1], tgt.shape[0])
    gold = _gold(lexicon, aligned.src.index, aligned.tgt.index)
    csls_k = min(csls_k, src.shape[0], tgt.shape[0])
    ranks = {
        method: _gold_ranks(retrieve.retriever(tgt, src, method=method, csls_k=csls_k), src, gold) for method in methods
    }
    if weight:
        words = aligned.src.words, aligned.tgt.words
        term = _Term(*words, weight) if one_alphabet(*words) else None
        ranks[LABEL] = _gold_ranks(retrieve.retriever(tgt, src, method="csls", csls_k=csls_k), src, gold, term)
    covered = _scores({m: _covered_table(r, gold, ks) for m, r in ranks.items()}, bootstrap, seed, 0)
    every = _scores({m: _all_words_table(r, gold, ks) for m, r in ranks.items()}, bootstrap, seed, 1)
    scores = {m: RetrievalScores(m, covered[m], every[m]) for m in ranks}
    return Evaluation(coverage, scores, csls_k, len(aligned.src), len(aligned.tgt), bootstrap, seed, weight)


# --------------------------------------------------------------------------- checks


def _check_aligned(aligned: AlignedSpaces) -> None:
    """Refuse what holds no two languages in one space; a tuple of vectors does not say that they are."""
    if not all(hasattr(aligned, name) for name in ("src", "tgt", "mapped")):
        raise InputError(
            f"received a {type(aligned).__name__} to evaluate, expected an Alignment; vectors that are in one space "
            "already are qwp.judging.evaluation.AlignedFiles(src, tgt)"
        )


def _check_methods(methods: Sequence[str]) -> tuple[str, ...]:
    # A lone string is a sequence of letters to Python; nobody means that.
    chosen = (methods,) if isinstance(methods, str) else tuple(dict.fromkeys(methods))
    if not chosen:
        raise InputError(f"retrieval is empty; expected one or more of {', '.join(retrieve.METHODS)}")
    for method in chosen:
        one_of(retrieve.METHODS, retrieval=method)
    return chosen


def _check_at(at: Sequence[int]) -> tuple[int, ...]:
    ks = sorted({operator.index(k) for k in at})
    if ks and ks[0] < 1:
        raise InputError(f"at={list(at)} holds {ks[0]}; every k of P@k should be at least 1")
    return tuple(ks)


def _mapped(aligned: AlignedSpaces) -> tuple[Array, Array]:
    src, tgt = aligned.mapped("src"), aligned.mapped("tgt")
    for side, vectors, words in (("source", src, len(aligned.src)), ("target", tgt, len(aligned.tgt))):
        if vectors.shape[0] != words:
            raise InputError(
                f"the {side} side has {vectors.shape[0]} mapped vectors, expected {words}, one for each word"
            )
    if src.shape[1] != tgt.shape[1]:
        raise InputError(
            f"source vectors have {src.shape[1]} dimensions, target vectors {tgt.shape[1]}; "
            "expected the same number: give two spaces that are aligned"
        )
    return src, tgt


def _nothing_covered(aligned: AlignedSpaces, lexicon: Lexicon, coverage: Coverage) -> str:
    """The message for a lexicon that shares no pair with the vectors: what each side holds and what helps."""
    src, tgt = aligned.src.index, aligned.tgt.index
    sources = {s for s, _ in lexicon.pairs}
    targets = {t for _, t in lexicon.pairs}
    examples = ", ".join(f"{s!r} -> {t!r}" for s, t in lexicon.pairs[:3])
    return (
        f"no word of the lexicon is covered: 0 of {coverage.source_words} source words and 0 of "
        f"{coverage.pairs} pairs are in the vectors, expected at least 1 "
        f"({sum(s in src for s in sources)} of {len(sources)} source words are in the source vocabulary, "
        f"{sum(t in tgt for t in targets)} of {len(targets)} target words in the target vocabulary). "
        f"Lexicon: {examples}; source words: {_examples(aligned.src)}; "
        f"target words: {_examples(aligned.tgt)}. " + _hint(lexicon, src, tgt)
    )


def _examples(embeddings: Embeddings) -> str:
    return ", ".join(repr(word) for word in embeddings.words[:3])


def _hint(lexicon: Lexicon, src: Container[str], tgt: Container[str]) -> str:
    reversed_words = lexicon.reverse().coverage(src, tgt).covered_source_words
    if reversed_words:
        return (
            f"The reversed lexicon would cover {reversed_words} words: swap its columns (Lexicon.reverse()) "
            "or swap the two sets of vectors"
        )
    lowered = sum(s.lower() in src and t.lower() in tgt for s, t in lexicon.pairs)
    if lowered:
        return f'In lower case {lowered} pairs would be covered: load the lexicon with case="lower"'
    return "Check the languages, the direction (source first) and upper and lower case of the lexicon"


# --------------------------------------------------------------------------- ranks


@dataclass(frozen=True)
class _Gold:
    """The lexicon as rows of the two vocabularies: w covered words, most golds first, out of its n words.

    ids: (w,) place of each covered word among the n; src: (w,) source rows; counts: (w,) golds in vocabulary;
    starts: (w,) where the golds of each word begin in tgt; tgt: (p,) target rows of all covered pairs;
    listed: (n,) golds of each word in the lexicon, in vocabulary or not.
    """

    ids: Ints
    src: Ints
    counts: Ints
    starts: Ints
    tgt: Ints
    listed: Ints


def _gold(lexicon: Lexicon, src: Mapping[str, int], tgt: Mapping[str, int]) -> _Gold:
    words = []
    for i, (word, translations) in enumerate(lexicon.targets.items()):
        rows = [tgt[t] for t in translations if t in tgt]
        if word in src and rows:
            words.append((i, src[word], rows))
    # Most golds first: the words of a block with more than t golds are then its first rows, a slice, no copy.
    words.sort(key=lambda entry: -len(entry[2]))
    counts = np.array([len(rows) for _, _, rows in words], dtype=np.int64)
    return _Gold(
        ids=np.array([i for i, _, _ in words], dtype=np.int64),
        src=np.array([row for _, row, _ in words], dtype=np.int64),
        counts=counts,
        starts=np.cumsum(counts) - counts,
        tgt=np.array([row for _, _, rows in words for row in rows], dtype=np.int64),
        listed=np.array([len(translations) for translations in lexicon.targets.values()], dtype=np.int64),
    )


@dataclass(frozen=True)
class _Ranks:
    """Places of the p covered gold pairs.

    word: (p,) in 0..w-1, ascending; order: (p,) 1 for the best gold of its word, 2 for the next; rank: (p,)
    from 1.
    """

    word: Ints
    order: Ints
    rank: Ints


@dataclass(frozen=True)
class _Term:
    """What spelling adds to CSLS. src, tgt: the two vocabularies."""

    src: Sequence[str]
    tgt: Sequence[str]
    weight: float

    def added(self, scores: Array, rows: Ints) -> Array:
        """To the scores (b, m) of source rows (b,): (b, m), zero for all but the best targets."""
        best, columns = (arrays.to_numpy(part) for part in arrays.top_k(scores, COMPARED))
        found = np.zeros(scores.shape, dtype=best.dtype)
        words = [self.src[row] for row in rows.tolist()]
        np.put_along_axis(found, columns, added(words, self.tgt, columns, best.dtype, self.weight), axis=1)
        return arrays.asarray(found, scores)


def _gold_ranks(retriever: retrieve.Retriever, src: Array, gold: _Gold, term: _Term | None = None) -> _Ranks:
    """Rank the golds of every covered word among all keys. src: (n, d) mapped source rows."""
    xp = arrays.namespace(src)

    def block(rows: slice) -> tuple[Ints, Floats, Ints]:
        queries = xp.take(src, arrays.asarray(gold.src[rows], src), axis=0)
        scores = retriever.scores(queries)
        if term is not None:
            scores = scores + term.added(scores, gold.src[rows])
        return _count_block(scores, gold, rows)

    n_keys = retriever.keys.shape[0]
    blocks = arrays.map_blocks(block, gold.src.shape[0], arrays.block_rows(n_keys, src), src)
    word, score, at_least = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return _ranks(word, score, at_least)


def _count_block(scores: Array, gold: _Gold, rows: slice) -> tuple[Ints, Floats, Ints]:
    """For each gold pair of the words `rows`: its word, its score and how many targets score at least that.

    scores: (b, m). Returns three (q,) arrays for the q pairs of the block. NaN scores come back as -inf.
    Counting against the gold's own entry of `scores` needs no sort, and no rounding error can come between.
    """
    xp = arrays.namespace(scores)
    counts = gold.counts[rows]
    slots = np.minimum(np.arange(counts[0]), counts[:, None] - 1)
    columns = gold.tgt[gold.starts[rows][:, None] + slots]
    golds = xp.take_along_axis(scores, arrays.asarray(columns, scores), axis=1)
    golds = xp.where(xp.isnan(golds), xp.full_like(golds, -xp.inf), golds)
    n_at_least = np.zeros(columns.shape, dtype=np.int64)
    for slot in range(columns.shape[1]):
        n = int(np.count_nonzero(counts > slot))
        reached = scores[:n, :] >= golds[:n, slot : slot + 1]
        n_at_least[:n, slot] = arrays.to_numpy(xp.count_nonzero(reached, axis=1))
    values = np.asarray(arrays.to_numpy(golds), dtype=np.float64)
    # NaN >= -inf is false: the count misses NaN targets, but a gold without a score stands behind them too.
    n_at_least[np.isneginf(values)] = scores.shape[1]
    real = np.arange(columns.shape[1]) < counts[:, None]
    words = np.broadcast_to(np.arange(rows.start, rows.stop)[:, None], columns.shape)
    return words[real], values[real], n_at_least[real]


def _ranks(word: Ints, score: Floats, at_least: Ints) -> _Ranks:
    """Places of gold pairs when wrong words precede golds of the same score.

    word, score, at_least: (p,) as from `_count_block`. The i-th best gold of a word stands behind i - 1 golds
    and behind every wrong word that scores at least as much: those counted, less the golds among them.
    """
    best_first = np.lexsort((-score, word))
    word, score, at_least = word[best_first], score[best_first], at_least[best_first]
    first_of_word = np.concatenate([[True], word[1:] != word[:-1]])
    first_of_tie = first_of_word | np.concatenate([[True], score[1:] != score[:-1]])
    word_start = np.flatnonzero(first_of_word)[np.cumsum(first_of_word) - 1]
    tie_end = np.append(np.flatnonzero(first_of_tie)[1:], word.shape[0])[np.cumsum(first_of_tie) - 1]
    order = np.arange(word.shape[0]) - word_start + 1
    return _Ranks(word, order, order + at_least - (tie_end - word_start))


# --------------------------------------------------------------------------- measures


@dataclass(frozen=True)
class _Table:
    """Measures as ratios of sums over words: value = sum(shares) / sum(weights), column by column.

    shares, weights: (n, q) for n words and the q measures in names.
    """

    names: tuple[str, ...]
    shares: Floats
    weights: Floats


def _table(ranks: _Ranks, n_words: int, golds: Ints, weights: Ints, ids: Ints, at: tuple[int, ...]) -> _Table:
    """Build the table over n_words words, of which `ids` (w,) are the ranked ones; the others earn nothing.

    golds: (w,) denominators of AP; weights: (n_words,) pairs that each word brings to MAP.
    """
    best = ranks.rank[ranks.order == 1]
    columns: dict[str, Floats] = {f"P@{k}": (best <= k).astype(np.float64) for k in at}
    columns["MRR"] = 1.0 / best
    columns["MAP"] = _sum_by_word(ranks, 1.0 / ranks.rank)
    columns["AP"] = _sum_by_word(ranks, ranks.order / ranks.rank) / golds
    names = tuple(columns)
    shares = np.zeros((n_words, len(names)))
    shares[ids] = np.stack(list(columns.values()), axis=1)
    totals = np.ones_like(shares)
    totals[:, names.index("MAP")] = weights
    return _Table(names, shares, totals)


def _sum_by_word(ranks: _Ranks, values: Floats) -> Floats:
    """Sums of values (p,) over the pairs of each word, (w,)."""
    return np.asarray(np.bincount(ranks.word, weights=values), dtype=np.float64)


def _covered_table(ranks: _Ranks, gold: _Gold, at: tuple[int, ...]) -> _Table:
    w = gold.counts.shape[0]
    return _table(ranks, w, gold.counts, gold.counts, np.arange(w), at)


def _all_words_table(ranks: _Ranks, gold: _Gold, at: tuple[int, ...]) -> _Table:
    return _table(ranks, gold.listed.shape[0], gold.listed[gold.ids], gold.listed, gold.ids, at)


def _scores(tables: Mapping[str, _Table], resamples: int, seed: int, stream: int) -> dict[str, dict[str, Score]]:
    """Values and intervals of every method's table; one set of resamples serves all of them."""
    shares = np.concatenate([table.shares for table in tables.values()], axis=1)
    weights = np.concatenate([table.weights for table in tables.values()], axis=1)
    value, low, high = _bootstrap(shares, weights, resamples, arrays.rng(seed, Stream.BOOTSTRAP, stream))
    keys = [(method, name) for method, table in tables.items() for name in table.names]
    scores: dict[str, dict[str, Score]] = {method: {} for method in tables}
    for (method, name), v, lo, hi in zip(keys, value, low, high, strict=True):
        scores[method][name] = Score(float(v), float(lo), float(hi))
    return scores


def _bootstrap(
    shares: Floats, weights: Floats, resamples: int, generator: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    """sum(shares) / sum(weights) by column, with its percentile interval over resampled rows.

    shares, weights: (n, q). Returns value, low and high, each (q,).
    """
    n = shares.shape[0]
    value = np.sum(shares, axis=0) / np.sum(weights, axis=0)
    if resamples == 0:
        return value, value, value

    def draw(size: int) -> Floats:
        # With counts of how often each row was drawn, (size, n), two matrix products evaluate every resample.
        picks = generator.integers(n, size=(size, n)) + n * np.arange(size)[:, None]
        counts = np.bincount(picks.reshape(-1), minlength=size * n).reshape(size, n).astype(np.float64)
        return np.asarray((counts @ shares) / (counts @ weights))

    estimates = np.concatenate([draw(size) for size in _chunks(resamples, max(1, _RESAMPLE_ELEMENTS // n))])
    tail = (1.0 - CONFIDENCE) / 2.0
    low, high = np.quantile(estimates, [tail, 1.0 - tail], axis=0)
    return value, np.minimum(low, value), np.maximum(high, value)


def _chunks(total: int, size: int) -> list[int]:
    return [min(size, total - start) for start in range(0, total, size)]
