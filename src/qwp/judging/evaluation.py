"""Bilingual lexicon induction: how high two aligned spaces rank the right translations.

**One ranking.** For every source word, all target words are ranked by retrieval score, best first. Ties count against
the system (`qwp.judging.ranks`). All measures use this ranking. `rank_1 < rank_2 < ...` are the ranks of the gold words
of one source word:

- `P@k`: 1 if `rank_1 <= k`, else 0; averaged over source words.
- `MRR`: `1 / rank_1`, the reciprocal rank of the best gold word; averaged over source words.
- `MAP`: the XLING convention, `1 / rank_i` of every gold *pair*, averaged over pairs. Two gold words of one source word
  cannot both rank 1st, so even a perfect system stays below 1 if words have several golds.
- `AP`: textbook average precision, the mean of `i / rank_i` over the gold words of one source word; averaged over
  source words. A perfect system has 1.

**Two denominators.** A source word is covered if it is in the source vocabulary and at least one of its gold words is
in the target vocabulary. A pair is covered if both of its words are.

- `covered` (MUSE, VecMap): covered source words only; for MAP covered pairs, for AP the gold words in the vocabulary.
- `all_words` (fastText's evaluation script): every source word of the lexicon, uncovered ones scoring 0; for MAP every
  pair, for AP every listed gold word.

**Intervals.** 95 % percentile bootstrap over source words with all of their pairs, widened if needed to contain the
value. All methods use the same resamples.
"""

from __future__ import annotations

import logging
import operator
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from qwp import arrays
from qwp.arrays import Floats, Ints, Stream
from qwp.errors import InputError, one_of, whole
from qwp.judging.ranks import (
    AlignedSpaces,
    Gold,
    Ranks,
    SpellingTerm,
    check_aligned,
    check_methods,
    gold_ranks,
    mapped_sides,
)
from qwp.search import retrieval as retrieve
from qwp.search.spelling import LABEL, Spelling, checked_weight
from qwp.showing import html
from qwp.spaces.embeddings import Embeddings
from qwp.spaces.lexicon import Coverage, Lexicon, PairsOfWords

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Score:
    """One measure in 0..1 with its bootstrap 95 % interval."""

    value: float
    low: float
    high: float

    def percent(self) -> str:
        """Return the value in percent, with the interval if there is one."""
        shown = f"{100 * self.value:.1f}"
        return shown if self.low == self.high else f"{shown} ({100 * self.low:.1f} to {100 * self.high:.1f})"

    def to_dict(self) -> dict[str, float]:
        """Return plain JSON types."""
        return {"value": self.value, "low": self.low, "high": self.high}


def ratios(
    shares: Floats, weights: Floats, resamples: int, generator: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    """Return sum(shares) / sum(weights) by column with its percentile interval over resampled rows.

    shares, weights: (n, q). Returns value, low and high, (q,) each.
    """
    value = np.sum(shares, axis=0) / np.sum(weights, axis=0)

    def of_samples(counts: Floats) -> Floats:
        # Two matrix products evaluate every resample.
        return np.asarray((counts @ shares) / (counts @ weights))

    low, high = interval(value, of_samples, shares.shape[0], resamples, generator)
    return value, low, high


def interval(
    value: Floats,
    of_samples: Callable[[Floats], Floats],
    n: int,
    resamples: int,
    generator: np.random.Generator,
    *,
    at_once: int = 1 << 20,
) -> tuple[Floats, Floats]:
    """Return the percentile interval of statistics of n rows over resampled rows, low and high, (q,) each.

    Args:
        value: (q,) of the rows themselves. The interval contains it, and is empty without resamples.
        of_samples: maps the number of times each row was drawn in r samples, (r, n), to statistics (r, q). NaN, for a
            sample without a statistic, counts as the value.
        n: number of rows.
        resamples: number of samples.
        generator: draws the samples.
        at_once: numbers in one block of samples.
    """
    if resamples == 0:
        return value, value

    estimates = np.concatenate(
        [of_samples(counts) for counts in bootstrap_counts(n, resamples, generator, block_elements=at_once)]
    )
    estimates = np.where(np.isnan(estimates), value, estimates)
    tail = (1.0 - CONFIDENCE) / 2.0
    low, high = np.quantile(estimates, [tail, 1.0 - tail], axis=0)
    return np.minimum(low, value), np.maximum(high, value)


def bootstrap_counts(
    n: int, resamples: int, generator: np.random.Generator, *, block_elements: int
) -> Iterator[Floats]:
    """Yield how often each of n rows is drawn in each bootstrap sample, (r, n), in blocks of r samples.

    Args:
        n: number of rows, and of draws in each sample.
        resamples: number of samples in all blocks together.
        generator: draws the samples.
        block_elements: numbers in one block.
    """
    block = max(1, block_elements // n)
    for begin in range(0, resamples, block):
        size = min(resamples - begin, block)
        picks = generator.integers(n, size=(size, n)) + n * np.arange(size)[:, None]
        yield np.bincount(picks.reshape(-1), minlength=size * n).reshape(size, n).astype(np.float64)


logger = logging.getLogger(__name__)

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
"""The denominators and their names in tables."""


@dataclass(frozen=True)
class RetrievalScores:
    """The measures of one retrieval method under both denominators.

    Keys are "P@1" (and the other requested k), "MRR", "MAP" and "AP"; the module docstring defines them.
    """

    method: str
    covered: Mapping[str, Score]
    all_words: Mapping[str, Score]

    def to_dict(self) -> dict[str, dict[str, dict[str, float]]]:
        """Return plain JSON types."""
        return {
            "covered": {name: score.to_dict() for name, score in self.covered.items()},
            "all_words": {name: score.to_dict() for name, score in self.all_words.items()},
        }


@dataclass(frozen=True)
class QueryRanks:
    """The ranks of the gold words of each covered source word, by one retrieval method.

    Two systems on the same vocabularies and lexicon can be compared word by word.

    golds: (w,) number of gold words of each covered source word, in the order of the lexicon. ranks: (p,) from 1, word
    by word, best first.
    """

    golds: Ints
    ranks: Ints

    def shares(self, measure: str) -> tuple[Floats, Floats]:
        """Return the shares and weights (w,) of words in a measure; sum(shares) / sum(weights) is its value."""
        at = tuple(int(k) for k in [measure.removeprefix("P@")] if k.isdigit())
        starts = np.cumsum(self.golds) - self.golds
        word = np.repeat(np.arange(self.golds.shape[0]), self.golds)
        order = np.arange(self.ranks.shape[0]) - starts[word] + 1
        every = np.arange(self.golds.shape[0])
        table = _table(Ranks(word, order, self.ranks), self.golds.shape[0], self.golds, self.golds, every, at)
        one_of(table.names, measure=measure)
        column = table.names.index(measure)
        return table.shares[:, column], table.weights[:, column]


@dataclass(frozen=True)
class Evaluation(html.NotebookCard):
    """The coverage of a lexicon and the scores of each retrieval method.

    Attributes:
        coverage: covered words and pairs.
        scores: by retrieval method.
        csls_k: neighbourhood size of CSLS.
        n_src: source words.
        n_tgt: target words.
        bootstrap: number of resamples.
        seed: of the resamples.
        spelling: weight of the spelling term, 0 for none. Scores with it are those of "csls + spelling".
        ranks: by retrieval method, for comparisons word by word.
    """

    coverage: Coverage
    scores: Mapping[str, RetrievalScores]
    csls_k: int
    n_src: int
    n_tgt: int
    bootstrap: int
    seed: int
    spelling: float = 0.0
    ranks: Mapping[str, QueryRanks] = field(default_factory=dict, compare=False)

    def __repr__(self) -> str:
        best = ", ".join(
            f"{method} {name} {100 * score.value:.1f} %"
            for method, scores in self.scores.items()
            for name, score in [*scores.covered.items()][:1]
        )
        words = f"{self.coverage.covered_source_words:,} of {self.coverage.source_words:,} words covered"
        return f"Evaluation({best}, {words})"

    def _as_html(self) -> str:
        """Show the coverage and the scores."""
        coverage, names = self.coverage, [*next(iter(self.scores.values())).covered]
        rows = [
            (method, words, *(score.percent() for score in measures.values()))
            for method, scores in self.scores.items()
            for key, words in DENOMINATORS.items()
            for measures in [getattr(scores, key)]
        ]
        covered = f"{coverage.covered_source_words:,} of {coverage.source_words:,} source words covered"
        return html.card(
            html.FIGURES,
            html.line(covered, html.FIGURES, f"({100 * coverage.share:.1f} %); scores in percent, with 95 % intervals"),
            html.table(rows, ("retrieval", "out of", *names)),
        )

    def p_at_1(self, method: str = "csls") -> float:
        """Return P@1 over covered source words, 0 to 1."""
        if method not in self.scores:
            raise InputError(
                f"no scores for retrieval {method!r}; this evaluation holds {', '.join(self.scores)}: "
                f"evaluate with retrieval=({method!r},)"
            )
        measures = self.scores[method].covered
        if "P@1" not in measures:
            raise InputError(f"P@1 was not computed, only {', '.join(measures)}: put 1 into `at`")
        return measures["P@1"].value

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types. Scores are shares from 0 to 1, not percent."""
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
    """Score the translations of an alignment against a lexicon.

    All target words compete, and all source words are neighbours for CSLS, whether the lexicon lists them or not.

    Args:
        aligned: an Alignment, or two files in one space.
        lexicon: a Lexicon, a path, pairs of words or a dict.
        retrieval: one or more of "nn", "csls", "softmax".
        csls_k: neighbourhood size of CSLS, clamped to the vocabulary sizes.
        at: the k of P@k.
        bootstrap: number of resamples; with 0 the intervals are empty.
        seed: of the resamples.
        spelling: weight of a term for words that are spelled alike, True for the measured weight. It adds scores of
            "csls + spelling".
    """
    methods = check_methods(retrieval)
    weight = checked_weight(spelling)
    ks = _check_at(at)
    whole(1, csls_k=csls_k)
    whole(0, bootstrap=bootstrap, seed=seed)
    check_aligned(aligned)
    lexicon = Lexicon.of(lexicon)
    coverage = lexicon.coverage(aligned.src.index, aligned.tgt.index)
    if coverage.covered_source_words == 0:
        raise InputError(_nothing_covered(aligned, lexicon, coverage))
    _warn_of_direction(aligned, lexicon, coverage)
    logger.info(
        "evaluating on %d of %d source words (%d of %d pairs)",
        coverage.covered_source_words,
        coverage.source_words,
        coverage.covered_pairs,
        coverage.pairs,
    )
    src, tgt = mapped_sides(aligned)
    if ks and ks[-1] >= tgt.shape[0]:
        logger.warning("P@%d over %d target words is 1 for every covered word", ks[-1], tgt.shape[0])
    gold = _gold(lexicon, aligned.src.index, aligned.tgt.index)
    csls_k = min(csls_k, src.shape[0], tgt.shape[0])
    ranks = {
        method: gold_ranks(retrieve.retriever(tgt, src, method=method, csls_k=csls_k), src, gold) for method in methods
    }
    if weight:
        words, spelled = (aligned.src.words, aligned.tgt.words), Spelling(weight)
        term = SpellingTerm(*words, spelled) if spelled.one_alphabet(*words) else None
        ranks[LABEL] = gold_ranks(retrieve.retriever(tgt, src, method="csls", csls_k=csls_k), src, gold, term)
    covered = _scores({m: _covered_table(r, gold, ks) for m, r in ranks.items()}, bootstrap, seed, 0)
    every = _scores({m: _all_words_table(r, gold, ks) for m, r in ranks.items()}, bootstrap, seed, 1)
    scores = {m: RetrievalScores(m, covered[m], every[m]) for m in ranks}
    query_ranks = {m: _in_order(r, gold) for m, r in ranks.items()}
    sizes = (len(aligned.src), len(aligned.tgt))
    return Evaluation(coverage, scores, csls_k, *sizes, bootstrap, seed, weight, query_ranks)


# --------------------------------------------------------------------------- checks


def _check_at(at: Sequence[int]) -> tuple[int, ...]:
    ks = sorted({operator.index(k) for k in at})
    if ks and ks[0] < 1:
        raise InputError(f"at={list(at)} holds {ks[0]}; every k of P@k should be at least 1")
    return tuple(ks)


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


# A lexicon of the right direction may share many words with one of the wrong direction, such as names and numbers.
_MORE_REVERSED = 3


def _warn_of_direction(aligned: AlignedSpaces, lexicon: Lexicon, coverage: Coverage) -> None:
    """Warn about a lexicon that covers far more words if its columns are swapped."""
    reversed_words = lexicon.reverse().coverage(aligned.src.index, aligned.tgt.index).covered_source_words
    if reversed_words >= _MORE_REVERSED * coverage.covered_source_words:
        logger.warning(
            "the lexicon covers %d source words, but %d if its columns are swapped: it seems to have the target "
            "language first; swap them with --reverse, or Lexicon.reverse() in Python",
            coverage.covered_source_words,
            reversed_words,
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
    in_lower_case = sum(s.lower() in src and t.lower() in tgt for s, t in lexicon.pairs)
    if in_lower_case:
        return f'In lower case {in_lower_case} pairs would be covered: load the lexicon with case="lower"'
    return "Check the languages, the direction (source first) and upper and lower case of the lexicon"


def _gold(lexicon: Lexicon, src: Mapping[str, int], tgt: Mapping[str, int]) -> Gold:
    words = []
    for i, (word, translations) in enumerate(lexicon.targets.items()):
        rows = [tgt[t] for t in translations if t in tgt]
        if word in src and rows:
            words.append((i, src[word], rows))
    # Words with most golds first: those of a block with more than t golds are then a slice, not a copy.
    words.sort(key=lambda entry: -len(entry[2]))
    counts = np.array([len(rows) for _, _, rows in words], dtype=np.int64)
    return Gold(
        ids=np.array([i for i, _, _ in words], dtype=np.int64),
        src=np.array([row for _, row, _ in words], dtype=np.int64),
        counts=counts,
        starts=np.cumsum(counts) - counts,
        tgt=np.array([row for _, _, rows in words for row in rows], dtype=np.int64),
        listed=np.array([len(translations) for translations in lexicon.targets.values()], dtype=np.int64),
    )


def _in_order(ranks: Ranks, gold: Gold) -> QueryRanks:
    """Return the ranks with words in the order of the lexicon."""
    by_word = np.argsort(gold.ids[ranks.word], kind="stable")
    return QueryRanks(gold.counts[np.argsort(gold.ids)], ranks.rank[by_word])


# --------------------------------------------------------------------------- measures


@dataclass(frozen=True)
class _Table:
    """Measures as ratios of sums over words: value = sum(shares) / sum(weights), column by column.

    shares, weights: (n, q) for n words and the q measures `names`.
    """

    names: tuple[str, ...]
    shares: Floats
    weights: Floats


def _table(ranks: Ranks, n_words: int, golds: Ints, weights: Ints, ids: Ints, at: tuple[int, ...]) -> _Table:
    """Return the table over n_words words. ids: (w,) the ranked ones; the others score 0.

    golds: (w,) denominators of AP; weights: (n_words,) number of pairs of each word, for MAP.
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


def _sum_by_word(ranks: Ranks, values: Floats) -> Floats:
    """Sum values (p,) over the pairs of each word, (w,)."""
    return np.asarray(np.bincount(ranks.word, weights=values), dtype=np.float64)


def _covered_table(ranks: Ranks, gold: Gold, at: tuple[int, ...]) -> _Table:
    w = gold.counts.shape[0]
    return _table(ranks, w, gold.counts, gold.counts, np.arange(w), at)


def _all_words_table(ranks: Ranks, gold: Gold, at: tuple[int, ...]) -> _Table:
    return _table(ranks, gold.listed.shape[0], gold.listed[gold.ids], gold.listed, gold.ids, at)


def _scores(tables: Mapping[str, _Table], resamples: int, seed: int, stream: int) -> dict[str, dict[str, Score]]:
    """Return values and intervals of the tables of all methods, from one set of resamples."""
    shares = np.concatenate([table.shares for table in tables.values()], axis=1)
    weights = np.concatenate([table.weights for table in tables.values()], axis=1)
    value, low, high = ratios(shares, weights, resamples, arrays.rng(seed, Stream.BOOTSTRAP, stream))
    keys = [(method, name) for method, table in tables.items() for name in table.names]
    scores: dict[str, dict[str, Score]] = {method: {} for method in tables}
    for (method, name), v, lo, hi in zip(keys, value, low, high, strict=True):
        scores[method][name] = Score(float(v), float(lo), float(hi))
    return scores
