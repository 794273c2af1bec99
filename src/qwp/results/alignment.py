"""The result: the maps, the normalisation, where everything came from, and what to do with it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from qwp import arrays
from qwp.arrays import Array
from qwp.checks import one_of, whole
from qwp.errors import InputError
from qwp.judging.estimate import Estimate, found_from
from qwp.judging.refits import Refits
from qwp.judging.verdict import Quality, judge
from qwp.maps import widths
from qwp.maps.procrustes import Maps
from qwp.results import lookup, saved, schema, sidecars, sides
from qwp.results.lookup import Lookup
from qwp.results.provenance import InputRecord, Provenance
from qwp.results.saved import Stored
from qwp.results.sidecars import Origin
from qwp.results.sides import AlignedSide, UnsavedSide
from qwp.results.summary import alignment_card, some_words
from qwp.results.translations import Asked, Translation, Translations
from qwp.search import confidence, retrieval
from qwp.search.approximate import ApproximateRetriever, CrossIndex
from qwp.search.retrieval import Retriever
from qwp.search.spelling import COMPARED, checked_weight, one_alphabet, reranked
from qwp.showing import html
from qwp.spaces.embeddings import SIDES, Embeddings, FloatArray, Side, disambiguated
from qwp.spaces.frequency import NO_ORDER, Ints
from qwp.spaces.objects import Vectors, Words, as_array, as_words, checked_array, words_or_array

# Products of numbers among which translations are found in a blink: 5,000 words of 100 dimensions on each side take one
# core a seventh of a second.
_QUICK_SEARCH = 3_000_000_000
CHECKS = ("content", "size")
"""How closely the files of a saved result are looked at."""
# Words whose translations are shown as examples.
_EXAMPLES = 8


@dataclass(frozen=True)
class InducedPair:
    """One line of an induced lexicon.

    score: CSLS of the pair, with the term for spelling where that was asked for; margin: its lead over the second
    candidate; mutual: each is the other's best; confidence: the estimated chance that the pair is right by CSLS, see
    `qwp.search.confidence`.
    """

    src: str
    tgt: str
    score: float
    margin: float
    mutual: bool
    confidence: float


@dataclass(frozen=True)
class Neighbour:
    """A word near another one in the common space: its language ("src" or "tgt") and the cosine of the two."""

    word: str
    side: Side
    similarity: float


@dataclass(frozen=True)
class _Chosen:
    """The best translations of n source words.

    best: (n,) their rows. scores: (n, c) of the candidates, best first. mutual: (n,) each is the other's best. found:
    what CSLS showed of the pairs.
    """

    best: Ints
    scores: FloatArray
    mutual: npt.NDArray[np.bool_]
    found: confidence.Found


@dataclass(frozen=True, eq=False)
class Alignment:
    """Two spaces put into one.

    history: what was measured on the way (start, loop and refinement records). place: where words are mapped and
    searched; see `on`. origin: where it was read from, if it was.
    """

    src_side: AlignedSide
    tgt_side: AlignedSide
    quality: Quality
    provenance: Provenance
    history: list[dict[str, Any]] = field(default_factory=list)
    place: arrays.Device = arrays.HOST
    origin: Origin | None = None

    def __repr__(self) -> str:
        of, quality = self.provenance, self.quality
        return f"Alignment({of.src} -> {of.tgt}, {of.method}, {quality.short})"

    def _repr_html_(self) -> str:
        """For notebooks, with some translations where they cost next to nothing."""
        return html.never_failing(lambda: alignment_card(self.provenance, self.quality, self._examples()), self)

    def _examples(self, most: int = _QUICK_SEARCH) -> Mapping[str, list[Translation]]:
        """Translations of some content words, if no file is to be read and the search is quick or was prepared.

        most: products of numbers that a quick search takes.
        """
        if not all(self.side(side).at_hand for side in SIDES):
            return {}
        if not self.has_lookup("tgt") and len(self.src) * len(self.tgt) * self.src.dim > most:
            return {}
        return self.translate(some_words(self.src_side, _EXAMPLES), k=3)

    @property
    def src(self) -> Embeddings:
        """The source vectors as they were read."""
        return self.src_side.space

    @property
    def tgt(self) -> Embeddings:
        """The target vectors as they were read."""
        return self.tgt_side.space

    @property
    def src_map(self) -> FloatArray:
        """The map of the source side, (d, common)."""
        assert self.src_side.map is not None, "the source side is always mapped"
        return self.src_side.map

    @property
    def tgt_map(self) -> FloatArray | None:
        """The map of the target side, (d, common), or None where the target space is the common one."""
        return self.tgt_side.map

    def side(self, side: Side) -> AlignedSide:
        """One of the two languages."""
        if side not in SIDES:
            raise InputError(f"side {side!r} is not known; expected 'src' or 'tgt'")
        return self.src_side if side == "src" else self.tgt_side

    def on(self, device: str = "auto", library: str = "auto") -> Alignment:
        """The same alignment, with translations, lexicon and scores computed on a device: cpu, cuda, cuda:1, ..."""
        return replace(self, place=arrays.choose_device(device, library))

    # ----------------------------------------------------------------- mapping

    def transform(self, items: Words | Vectors, side: Side = "src") -> FloatArray:
        """Vectors of words, or new vectors, in the common space, treated exactly as the training words were.

        items: words of that side's vocabulary, or any that its subwords have a vector for (a word, or a list, a tuple,
        an array or a column of a frame of them), or vectors (n, d) or (d,) as an array or as lists. Returns (n, c), or
        (c,) for one word or one vector; c, of the common space, is d unless the two spaces differ in theirs.
        """
        self.side(side)
        found = words_or_array(items)
        if isinstance(found, np.ndarray):
            vectors = self._checked(found, side)
            mapped = self._transformed(np.atleast_2d(vectors), side)
            return mapped if vectors.ndim == 2 else mapped[0]
        rows = self._transformed(self._vectors(found, side), side)
        row: FloatArray = rows[0] if isinstance(items, str) else rows
        return row

    def _checked(self, vectors: npt.NDArray[Any], side: Side) -> FloatArray:
        """New vectors (n, d) or (d,) in the precision of the maps, if they can be mapped."""
        with np.errstate(over="ignore"):  # what becomes infinite is refused
            return checked_array(vectors.astype(self.src_map.dtype, copy=False), self.side(side).dim)

    def _transformed(self, vectors: FloatArray, side: Side) -> FloatArray:
        """Vectors (n, d) of one side in the common space (n, d), in host memory."""
        return arrays.to_numpy(self._map(vectors, side))

    def mapped(self, side: Side) -> Array:
        """All words of one side in the common space, unit rows (n, d): NumPy, or where `on` said."""
        self.side(side)
        if side not in self._mapped:
            self._mapped[side] = arrays.unit(self._map(getattr(self, side).vectors, side, self.place))
        return self._mapped[side]

    @cached_property
    def _mapped(self) -> dict[str, Array]:
        return {}

    def _map(self, vectors: FloatArray, side: Side, place: arrays.Device = arrays.HOST) -> Array:
        """Vectors (n, d) of one side in the common space (n, d), computed in `place`."""
        return self.side(side).mapped(vectors, place, self.src_map.dtype.name)

    def _vectors(self, words: Sequence[str], side: Side) -> FloatArray:
        space = self.src if side == "src" else self.tgt
        composed = space.composed(words)
        unknown = [w for w in words if w not in space and w not in composed]
        if unknown:
            shown = ", ".join(repr(w) for w in unknown[:5])
            name = dict(zip(SIDES, disambiguated([self.src, self.tgt]), strict=True))[side]
            raise InputError(
                f"{len(unknown)} of {len(words)} words are not among the {len(space):,} words of {name}: {shown}"
            )
        if not composed:
            return np.asarray(space.vectors[[space.index[w] for w in words]], dtype=self.src_map.dtype)
        return np.asarray([composed[w] if w in composed else space[w] for w in words], dtype=self.src_map.dtype)

    # ----------------------------------------------------------------- translating

    @overload
    def translate(
        self,
        words: Words,
        k: int = 5,
        *,
        vectors: None = None,
        retrieval: str = "csls",
        csls_k: int = 10,
        side: Side = "src",
        approximate: bool = False,
        spelling: float = 0.0,
    ) -> Translations: ...

    @overload
    def translate(
        self,
        words: None = None,
        k: int = 5,
        *,
        vectors: Vectors,
        retrieval: str = "csls",
        csls_k: int = 10,
        side: Side = "src",
        approximate: bool = False,
        spelling: float = 0.0,
    ) -> list[list[Translation]]: ...

    def translate(
        self,
        words: Words | None = None,
        k: int = 5,
        *,
        vectors: Vectors | None = None,
        retrieval: str = "csls",
        csls_k: int = 10,
        side: Side = "src",
        approximate: bool = False,
        spelling: float = 0.0,
    ) -> Translations | list[list[Translation]]:
        """The k best translations of each word, by word: a dict whose `unknown` lists the words that are not there.

        An InputError if all of them are unknown. Where a side came from a fastText model, words outside of its
        vocabulary have vectors from their subwords, and `composed` lists them. vectors: in place of words, vectors (n,
        d) or (d,) of the space as it was read, such as those of words outside of the vocabulary; the result is then a
        list with the k best of each row, of one list for a single vector. side="tgt" translates target words into the
        source language. approximate: search with FAISS, faster for many words and not exact; `approximate_recall` says
        how good it is. spelling: the weight of a term for words that are spelled alike, which is added to CSLS; 0 for
        none, True for the measured weight; see `qwp.search.spelling`.
        """
        whole(1, k=k)
        weight = self._weight(spelling, retrieval)
        space = self.side(side).space
        search = partial(self._best_words, k=k, side=side, method=retrieval, csls_k=csls_k, approximate=approximate)
        if vectors is not None:
            if words is not None:
                raise InputError("received both words and vectors; expected one of them to translate")
            if spelling:
                raise InputError(f"spelling={spelling} was received with vectors; expected words, which are spelled")
            return search(np.atleast_2d(self._checked(as_array(vectors, space.dim), side)))
        if words is None:
            raise InputError("received neither words nor vectors; expected one of them to translate")
        asked = Asked.of(as_words(words), space)
        if not asked.known:
            raise asked.none_known(side, 'side="tgt"')
        found = search(self._vectors(asked.known, side), asked.known, weight)
        return Translations(zip(asked.known, found, strict=True), asked.unknown, asked.hints, asked.composed)

    def _weight(self, spelling: float, retrieval: str) -> float:
        """What spelling weighs in a search: nothing where the two languages do not share an alphabet."""
        weight = checked_weight(spelling, retrieval)
        return weight if weight and self._one_alphabet else 0.0

    @cached_property
    def _one_alphabet(self) -> bool:
        return one_alphabet(self.src.words, self.tgt.words)

    def _best_words(
        self,
        vectors: FloatArray,
        asked: Sequence[str] = (),
        weight: float = 0.0,
        *,
        k: int,
        side: Side,
        method: str,
        csls_k: int,
        approximate: bool,
    ) -> list[list[Translation]]:
        """The k best words of the other side for vectors (n, d) of this one, as they were read.

        asked: the words whose vectors they are, wanted where spelling has a weight.
        """
        words = self.side(_other(side)).space.words
        rows = arrays.to_numpy(arrays.unit(self._map(vectors, side)))
        found = self._nearest(rows, side, max(k, COMPARED) if weight else k, method, csls_k, approximate)
        if weight:
            found = reranked(asked, words, *found, weight)
        lists = (part[:, :k].tolist() for part in found)
        return [
            [Translation(words[j], score) for j, score in zip(*best, strict=True)] for best in zip(*lists, strict=True)
        ]

    def _nearest(
        self, queries: FloatArray, side: Side, k: int, method: str, csls_k: int, approximate: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """The k best words of the other side for queries (q, d), unit rows: rows (q, k) and scores (q, k)."""
        if not approximate and len(queries) <= lookup.FEW and self._looks_up(side, method, csls_k):
            return self._lookup_for(method, _other(side), csls_k).top_k(queries, k, method)
        retriever = self._retriever(side, method, csls_k, approximate)
        put = queries if approximate else self.place.put(queries, self.src_map.dtype.name)
        indices, scores = retriever.top_k(put, k)
        return arrays.to_numpy(indices), arrays.to_numpy(scores)

    def _looks_up(self, side: Side, method: str, csls_k: int) -> bool:
        """Whether a few words of a side are better looked up than searched among all, mapped words."""
        searched = (side, method, csls_k, False) in self._retrievers
        return self.place == arrays.HOST and not searched and method in ("csls", "nn")

    def _retriever(
        self, side: Side, method: str, csls_k: int, approximate: bool = False
    ) -> Retriever | ApproximateRetriever:
        key = (side, method, csls_k, approximate)
        if key not in self._retrievers:
            self._retrievers[key] = (
                self._cross_index.retriever(side, method, csls_k)
                if approximate
                else retrieval.retriever(
                    self.mapped(_other(side)),
                    self.mapped(side),
                    method=method,
                    csls_k=csls_k,
                    hubs=self._hubs(_other(side), csls_k) if method == "csls" else None,
                )
            )
        return self._retrievers[key]

    def _hubs(self, side: Side, csls_k: int) -> Array:
        """The CSLS neighbourhood means of the words of a side, (n,), where words are searched."""
        return self.place.put(self.lookup(side, csls_k).hubs, self.src_map.dtype.name)

    def lookup(
        self,
        side: Side,
        csls_k: int = retrieval.DEFAULT_CSLS_K,
        callback: Callable[[int], None] | None = None,
    ) -> Lookup:
        """The words of one side, ready to be found.

        Where it is neither in memory nor kept beside the saved alignment, all words are compared with all others once;
        then it is kept there if that can be written. callback: gets numbers of words that are done then.
        """
        found = self._lookup_at_hand(side, csls_k)
        if found is None:
            k = self._neighbours(csls_k)
            means = retrieval.neighbourhood_means(self.mapped(side), self.mapped(_other(side)), k, callback)
            aligned, dtype = self.side(side), self.src_map.dtype.name
            found = Lookup(aligned, arrays.to_numpy(means), lookup.coefficients(aligned, dtype), k)
            if self.origin is not None:
                lookup.write(self.origin, side, found)
            self._lookups[side, k] = found
        return found

    def _lookup_for(self, method: str, side: Side, csls_k: int) -> Lookup:
        """The words of one side for a search by CSLS, or by cosine, which needs no hubs.

        Both compute the same cosines in the same way, whether a sidecar file is there or not.
        """
        if method == "csls":
            return self.lookup(side, csls_k)
        found = self._lookup_at_hand(side, csls_k)
        if found is not None:
            return found
        if (side, 0) not in self._lookups:
            aligned, dtype = self.side(side), self.src_map.dtype.name
            hubs = np.zeros(len(aligned.space), dtype=dtype)
            self._lookups[side, 0] = Lookup(aligned, hubs, lookup.coefficients(aligned, dtype), 0)
        return self._lookups[side, 0]

    def has_lookup(self, side: Side, csls_k: int = retrieval.DEFAULT_CSLS_K) -> bool:
        """Whether the words of a side can be found without comparing all with all first."""
        return self._lookup_at_hand(side, csls_k) is not None

    def _lookup_at_hand(self, side: Side, csls_k: int) -> Lookup | None:
        """A lookup that is in memory or kept beside the saved alignment."""
        k = self._neighbours(csls_k)
        if (side, k) not in self._lookups and self.origin is not None:
            found = lookup.read(self.origin, side, self.side(side), k)
            if found is not None:
                self._lookups[side, k] = found
        return self._lookups.get((side, k))

    def _neighbours(self, csls_k: int) -> int:
        """The size of a neighbourhood that the vocabularies allow."""
        whole(1, csls_k=csls_k)
        return min(csls_k, len(self.src), len(self.tgt))

    @cached_property
    def _lookups(self) -> dict[tuple[Side, int], Lookup]:
        return {}

    @cached_property
    def _retrievers(self) -> dict[tuple[str, str, int, bool], Retriever | ApproximateRetriever]:
        return {}

    @cached_property
    def _cross_index(self) -> CrossIndex:
        src, tgt = (arrays.to_numpy(self.mapped(side)) for side in SIDES)
        return CrossIndex(src, tgt, seed=self.provenance.seed)

    def approximate_recall(self, side: Side = "src") -> float:
        """Recall@10 of the approximate search: the share of the ten nearest words of the other side that it finds.

        Measured against exact search on 500 words of `side`, or on all where it has fewer.
        """
        self.side(side)
        if side not in self._recalls:
            self._recalls[side] = self._cross_index.recall_at(side)
        return self._recalls[side]

    @cached_property
    def _recalls(self) -> dict[Side, float]:
        return {}

    def induce(
        self,
        *,
        max_words: int | None = None,
        mutual_only: bool = True,
        csls_k: int = 10,
        approximate: bool = False,
        spelling: float = 0.0,
    ) -> list[InducedPair]:
        """The induced bilingual lexicon, most frequent source words first.

        max_words: only so many of the most frequent source words. mutual_only: keep only pairs that are each other's
        best. approximate: search with FAISS, faster for large vocabularies and not exact; `approximate_recall` says how
        good it is. spelling: as for `translate`; scores, margins and what is mutual are then those with the term, and
        the confidence is that of the pair by CSLS alone: low where spelling chose another word than CSLS.
        """
        weight = self._weight(spelling, "csls")
        if max_words is not None:
            whole(1, max_words=max_words)
        rows = self.src_side.frequent(len(self.src) if max_words is None else max_words)
        chosen = self._chosen(rows, csls_k, approximate, weight)
        scores, mutual = chosen.scores, chosen.mutual
        chance = confidence.confidence(chosen.found, self.estimate.scale)
        margin = scores[:, 0] - scores[:, 1] if scores.shape[1] > 1 else np.full(len(rows), np.inf)
        kept = np.flatnonzero(mutual) if mutual_only else np.arange(len(rows))
        # Plain lists: reading arrays number by number would take longer than the rest of this function.
        columns = [column[kept].tolist() for column in (chosen.best, scores[:, 0], margin, mutual, chance)]
        src_words, tgt_words = self.src.words, self.tgt.words
        return [
            InducedPair(src_words[i], tgt_words[j], *figures)
            for i, j, *figures in zip(rows[kept].tolist(), *columns, strict=True)
        ]

    @cached_property
    def estimate(self) -> Estimate:
        """The estimated share of right translations; made now where the result was saved without one."""
        quality = self.quality if self.quality.estimate is not None else self.judged_anew()
        assert quality.estimate is not None, "a judgement has one unless it is told not to"
        return quality.estimate

    def judged_anew(self) -> Quality:
        """The verdict on the maps as they are, with the seed and the neighbourhoods of the run."""
        x, y, maps = self._as_judged
        ordered = self.provenance.config.get("order") != NO_ORDER
        return judge(x, y, maps, seed=self.provenance.seed, csls_k=self._csls_k(), ordered=ordered)

    @property
    def _as_judged(self) -> tuple[Array, Array, Maps]:
        """Both sides as a judgement sees them, (n, r) and (m, r), most frequent words first, and the maps of them."""
        dtype = self.src_map.dtype.name
        x, y = (self.side(side).normalized(self.place, dtype) for side in SIDES)
        src_map, tgt_map = (None if m is None else self.place.put(m, dtype) for m in (self.src_map, self.tgt_map))
        assert src_map is not None
        width = max(x.shape[1], y.shape[1], src_map.shape[1])
        maps = widths.pad_maps(Maps(src_map, tgt_map), width)
        wide = widths.pad(x, width), widths.pad(y, width)
        narrow = widths.project_spaces(*wide, x.shape[1], y.shape[1])
        return narrow.x, narrow.y, narrow.project(maps)

    def preferred(self, rows: Ints, candidates: Ints) -> Ints:
        """Which of their candidates two refits of the maps prefer for some source words, see `qwp.judging.refits`.

        rows: (r,); candidates: (r, k) rows of the target. Returns places among the candidates, (r, 2).
        """
        return self._refits.preferred(self.src_side.places(rows), self.tgt_side.places(candidates))

    @cached_property
    def _refits(self) -> Refits:
        x, y, maps = self._as_judged
        return Refits(x, y, sidecars.kept_or_made(self.origin, x, y, maps, self._csls_k()))

    def _csls_k(self) -> int:
        """The size of the neighbourhoods with which it was judged."""
        found = self.provenance.config.get("csls_k", retrieval.DEFAULT_CSLS_K)
        return found if type(found) is int and found >= 1 else retrieval.DEFAULT_CSLS_K

    def pair_features(self, csls_k: int = 10) -> npt.NDArray[np.float64]:
        """What the confidence of each source word's best translation is computed from, see `qwp.search.confidence`.

        Most frequent source words first, (n, 14).
        """
        _, found = self._candidates(self.src_side.frequent(len(self.src)), csls_k, approximate=False)
        return confidence.features(found, self.estimate.scale)

    def _chosen(self, rows: Ints, csls_k: int, approximate: bool, weight: float) -> _Chosen:
        """The best translations of these n source words by CSLS, and by spelling where it has a weight."""
        if weight:
            return self._chosen_by_spelling(rows, csls_k, approximate, weight)
        best, found = self._candidates(rows, csls_k, approximate)
        return _Chosen(best, np.asarray(found.scores), np.asarray(found.back_ranks) == 0, found)

    def _chosen_by_spelling(self, rows: Ints, csls_k: int, approximate: bool, weight: float) -> _Chosen:
        src, tgt = self.src.words, self.tgt.words
        candidates, csls = self._best("src", rows, COMPARED, csls_k, approximate)
        ranked, scores = reranked([src[row] for row in rows.tolist()], tgt, candidates, csls, weight)
        best = ranked[:, 0]
        wanted, which = np.unique(best, return_inverse=True)
        back, back_csls = self._best("tgt", wanted, COMPARED, csls_k, approximate)
        back_ranked, _ = reranked([tgt[row] for row in wanted.tolist()], src, back, back_csls, weight)
        # What CSLS says of the pair: its own figure first, then those of the other candidates.
        order = np.argsort(candidates != best[:, None], axis=1, kind="stable")[:, : confidence.CANDIDATES]
        few = slice(confidence.CANDIDATES + 1)
        preferred = self.preferred(rows, np.take_along_axis(candidates, order, axis=1))
        of_csls = np.take_along_axis(csls, order, axis=1)
        found = found_from(of_csls, back_csls[which, few], back[which, few], rows, preferred)
        return _Chosen(best, scores, back_ranked[which, 0] == rows, found)

    def _candidates(self, rows: Ints, csls_k: int, approximate: bool) -> tuple[Ints, confidence.Found]:
        """The best translations of these n source words, (n,), and what the search for them showed."""
        indices, scores = self._best("src", rows, confidence.CANDIDATES, csls_k, approximate)
        best = indices[:, 0]
        wanted, which = np.unique(best, return_inverse=True)
        back, back_scores = self._best("tgt", wanted, confidence.CANDIDATES + 1, csls_k, approximate)
        return best, found_from(scores, back_scores[which], back[which], rows, self.preferred(rows, indices))

    def _best(self, side: Side, rows: Ints, k: int, csls_k: int, approximate: bool) -> tuple[Ints, FloatArray]:
        """Best k words of the other side by CSLS for some rows of this one: indices (r, k), scores (r, k)."""
        if approximate:
            return self._cross_index.top_k(side, rows, k, csls_k)
        indices, scores = self._retriever(side, "csls", csls_k).top_k(self._mapped_rows(side, rows), k)
        return arrays.to_numpy(indices), arrays.to_numpy(scores)

    def _mapped_rows(self, side: Side, rows: Ints) -> Array:
        """Some words of one side in the common space (r, d)."""
        mapped = self.mapped(side)
        if len(rows) == mapped.shape[0] and self.side(side).order is None:
            return mapped  # all of them as they are: no copy
        return arrays.namespace(mapped).take(mapped, arrays.asarray(rows, mapped), axis=0)

    # ----------------------------------------------------------------- similarities

    def similarity(self, src_word: str, tgt_word: str) -> float:
        """The cosine of a source word and a target word in the common space, -1 to 1."""
        src, tgt = self._unit([src_word], "src")[0], self._unit([tgt_word], "tgt")[0]
        return float(src @ tgt)

    def most_similar(self, word: str, k: int = 10, *, side: Side = "src", within: str = "both") -> list[Neighbour]:
        """The k words nearest to a word by cosine in the common space, nearest first; the word itself is left out.

        side: the language of the word. within: where to look, "src", "tgt" or "both". `translate` finds better
        translations, for it corrects for words that are near to many others.
        """
        whole(1, k=k)
        one_of((*SIDES, "both"), within=within)
        query = self._unit(as_words(word)[:1], side)[0]
        found: list[Neighbour] = []
        for name in SIDES if within == "both" else [each for each in SIDES if each == within]:
            space = self.side(name).space
            cosines = arrays.to_numpy(self.mapped(name)) @ query
            if name == side and word in space:
                cosines[space.index[word]] = -np.inf
            rows = np.argsort(-cosines, kind="stable")[: k + 1]
            found += [Neighbour(space.words[row], name, float(cosines[row])) for row in rows.tolist()]
        kept = [each for each in found if np.isfinite(each.similarity)]
        return sorted(kept, key=lambda each: -each.similarity)[:k]

    def _unit(self, words: Sequence[str], side: Side) -> FloatArray:
        """Words of one side in the common space, unit rows (n, d)."""
        self.side(side)
        return arrays.to_numpy(arrays.unit(self._map(self._vectors(words, side), side)))

    def to_keyed_vectors(self, side: str = "both") -> Any:
        """The words of one language in the common space, or of both, as KeyedVectors of gensim, which has to be there.

        side: "src", "tgt", or "both", whose words are then called "src:house" and "tgt:casa": many are in both.
        """
        one_of((*SIDES, "both"), side=side)
        try:
            from gensim.models import KeyedVectors
        except ImportError as error:
            raise InputError(
                f"KeyedVectors need gensim, which cannot be imported ({error}): pip install gensim"
            ) from error
        made = KeyedVectors(self.src_map.shape[1])
        for name in SIDES if side == "both" else [each for each in SIDES if each == side]:
            space = self.side(name).space
            words = [f"{name}:{word}" for word in space.words] if side == "both" else space.words
            made.add_vectors(words, self._transformed(np.asarray(space.vectors, dtype=self.src_map.dtype), name))
        return made

    # ----------------------------------------------------------------- keeping

    def save(self, folder: str | Path, *, vectors: bool = True, subwords: bool | None = None) -> Path:
        """Write the alignment into a folder, in place of what was saved there.

        vectors: False leaves out the words and vectors; `load` then finds them in the files that were aligned.
        subwords: whether those of fastText models are saved with the vectors, or found in the files of the models; None
        saves up to 1 GiB of each side. It is complete or not there: a save that is stopped leaves an earlier result,
        and all other files, as they were.
        """
        folder = Path(folder)
        fill = partial(self.write_parts, vectors=vectors, subwords=subwords)
        saved.write(folder, self.checked_content(vectors=vectors), fill)
        return folder

    def checked_content(self, *, vectors: bool = True) -> dict[str, Any]:
        """`to_dict` as it is saved; an InputError where `load` would refuse it, or not find the vectors."""
        content: dict[str, Any] = json.loads(json.dumps(schema.finite(self.to_dict())))
        problem = saved.CONTENT.problem(content, "")
        if problem is not None:
            raise InputError(f"the alignment cannot be saved: {problem}")
        records: dict[Side, InputRecord] = {side: getattr(self.provenance, side) for side in SIDES}
        for side in SIDES:
            sides.check(side, self.side(side), records[side])
        if not vectors:
            sides.check_originals(records)
        return content

    @property
    def holds_vectors(self) -> bool:
        """Whether the vectors were saved with it, or it was made from them: they need not be read from their files."""
        return not any(isinstance(self.side(side), UnsavedSide) for side in SIDES)

    def write_parts(self, folder: Path, *, vectors: bool = True, subwords: bool | None = None) -> None:
        """Write the vectors, maps, means and orders into a folder."""
        sides.write({side: self.side(side) for side in SIDES}, folder, vectors=vectors, subwords=subwords)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the arrays, as plain JSON types."""
        return {
            "provenance": self.provenance.to_dict(),
            "normalization": {side: list(self.side(side).normalization.steps) for side in SIDES},
            "quality": self.quality.to_dict(),
            "history": self.history,
        }

    @classmethod
    def load(cls, folder: str | Path, *, check: str = "content") -> Alignment:
        """Read an alignment that `save` wrote, and refuse one that has changed since.

        check: `content` compares the hashes of all files. `size` does so for words, maps and means, compares the files
        of the vectors by size alone and leaves them on the disk until they are needed: it does not see a changed number
        in them.
        """
        one_of(CHECKS, check=check)
        folder = Path(folder)
        read = partial(cls.from_stored, check=check)
        return saved.read(folder, saved.ALIGNMENT, lambda: read(saved.read_alignment_index(folder)))

    @classmethod
    def from_stored(cls, stored: Stored, *, check: str = "content") -> Alignment:
        """The alignment to which an index belongs. check: as that of `load`."""
        unhashed = stored.check_parts(content=check == "content")
        content = stored.content
        provenance = Provenance.from_dict(content["provenance"])
        inputs: dict[Side, InputRecord] = {"src": provenance.src, "tgt": provenance.tgt}
        found = sides.read(stored, inputs, on_disk=check == "size")
        return cls(
            found["src"],
            found["tgt"],
            quality=Quality.from_dict(content["quality"]),
            provenance=provenance,
            history=content["history"],
            origin=None if stored.sha256 is None else Origin(stored.path.parent, stored.sha256, unhashed),
        )


def _other(side: Side) -> Side:
    return "tgt" if side == "src" else "src"
