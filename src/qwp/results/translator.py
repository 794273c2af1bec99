"""Translation of words: exact and approximate search in the common space.

A `Lookup` finds a few words in a large vocabulary without mapping it. The vector of a word in the common space is a
linear combination of its own vector and the means of the normalisation, times the map. So one product with the vectors
as they were read, which may be memory-mapped, and a few coefficients of each word give the cosines of a query with all
words. A sidecar file of the alignment holds these coefficients and the CSLS neighbourhood means, which need a search of
all words against all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

import numpy as np

from qwp import arrays
from qwp.arrays import AnyFloats, Array, Ints
from qwp.errors import InputError, whole
from qwp.results import sidecars
from qwp.results.saved import LOOKUPS
from qwp.results.sidecars import Origin
from qwp.results.sides import AlignedSide, CommonSpace
from qwp.search import retrieval
from qwp.search.approximate import ApproximateRetriever, CrossIndex
from qwp.search.one_pass import one_pass
from qwp.search.retrieval import DEFAULT_CSLS_K, Retriever
from qwp.search.spelling import Spelling, checked_weight
from qwp.showing import html
from qwp.spaces.embeddings import SIDES, Embeddings, Side, other
from qwp.spaces.objects import Vectors, Words, as_array, as_words

QUICK_PAIRS = 400_000_000
"""Number of word pairs that are compared in a second or two. Larger lookups wait for the first translation."""


@dataclass(frozen=True)
class Translation:
    """A target word and its retrieval score: CSLS, with or without spelling, cosine or log-probability."""

    word: str
    score: float


class Translations(dict[str, list[Translation]]):
    """The translations of each known word, best first: a dict by word that also records the unknown words.

    Attributes:
        unknown: words that the vocabulary lacks.
        hints: for some unknown words, the same word in another case, which the vocabulary has.
        composed: words outside the vocabulary that were translated by the vectors of their subwords.
    """

    def __init__(
        self,
        found: Mapping[str, list[Translation]] | Iterable[tuple[str, list[Translation]]] = (),
        unknown: Iterable[str] = (),
        hints: Mapping[str, str] | None = None,
        composed: Iterable[str] = (),
    ) -> None:
        super().__init__(found)
        self.unknown = list(unknown)
        self.composed = list(composed)
        self.hints = dict(hints or {})

    def __missing__(self, word: str) -> NoReturn:
        """Raise a KeyError that says why a word has no translations."""
        if word not in self.unknown:
            raise KeyError(word)
        hint = f"; did you mean {self.hints[word]!r}?" if word in self.hints else ""
        raise KeyError(f"{word!r} is not in the vocabulary{hint}")

    def _repr_html_(self) -> str:
        """Show one row for each word in a notebook."""
        return html.never_failing(self._as_html, self)

    def _as_html(self) -> str:
        rows = [(word, ", ".join(f"{each.word} ({each.score:.2f})" for each in best)) for word, best in self.items()]
        rows += [(word, "not in the vocabulary") for word in self.unknown]
        return html.table(rows, ("word", "best first"))

    def __repr__(self) -> str:
        found = super().__repr__()
        return f"Translations({found}, unknown={self.unknown})" if self.unknown else found


@dataclass(frozen=True)
class WordQuery:
    """Words to translate, each once and in their order, sorted into known and unknown ones.

    Attributes:
        vocabulary: the language of the words.
        known: words that have a vector.
        unknown: the others.
        hints: for some unknown words, the same word in another case, which the vocabulary has.
        composed: known words outside the vocabulary, whose vectors are made from subwords.
    """

    vocabulary: Embeddings
    known: list[str]
    unknown: list[str]
    hints: Mapping[str, str]
    composed: list[str]

    @classmethod
    def of(cls, words: Iterable[str], vocabulary: Embeddings) -> WordQuery:
        """Look words up in a vocabulary."""
        asked = list(dict.fromkeys(words))
        if not asked:
            raise InputError("no word was given; expected at least one")
        outside = [word for word in asked if word not in vocabulary]
        cases = {word: (word.lower(), word.capitalize(), word.upper()) for word in outside}
        hints = {word: next((c for c in found if c in vocabulary), None) for word, found in cases.items()}
        composed = vocabulary.composed(outside)
        return cls(
            vocabulary,
            [word for word in asked if word in vocabulary or word in composed],
            [word for word in outside if word not in composed],
            {word: hint for word, hint in hints.items() if hint is not None},
            list(composed),
        )

    def explained(self, word: str, where: str) -> str:
        """Return the message about a word outside the vocabulary. where: the name of the result."""
        hint = f"; did you mean {self.hints[word]!r}?" if word in self.hints else ""
        composed = ", so its vector is made from its subwords" if word in self.composed else ""
        return f"{word!r} is not among the {len(self.vocabulary):,} words of {where}{composed}{hint}"

    def none_known(self, side: Side, option: str, *, listed: bool = False) -> InputError:
        """Return the error for a query without any known word.

        option: the option that translates in the other direction. listed: the words have been named already.
        """
        named = {"src": "source", "tgt": "target"}[side]
        words = "" if listed else f" ({_shortened(self.unknown)})"
        hints = f" (did you mean {_shortened(self.hints.values())}?)" if self.hints and not listed else ""
        count = len(self.unknown)
        missing = f"{self.unknown[0]!r} is not" if count == 1 else f"none of the {count} words{words} is"
        return InputError(
            f"{missing} among the {len(self.vocabulary):,} words of the {named} "
            f"side (such as {', '.join(self.vocabulary.words[:3])}): check the spelling{hints} and the direction "
            f"({'leave out' if side == 'tgt' else 'try'} {option})"
        )


def _shortened(words: Iterable[str]) -> str:
    shown = [repr(word) for word in words]
    return ", ".join(shown[:5] + ["..."] * (len(shown) > 5))


# --------------------------------------------------------------------------- lookups

FEW_QUERIES = 256
"""Up to this many queries use a lookup; for more it pays to map the vocabulary."""


@dataclass(frozen=True, eq=False)
class Lookup:
    """The words of one language, ready to be found.

    Attributes:
        side: the language.
        hubs: (n,) CSLS neighbourhood means: mean similarity of each word to its `csls_k` nearest of the other language.
        coefficients: (n, 1 + c), see `lookup_coefficients`.
        csls_k: neighbourhood size.
    """

    side: AlignedSide
    hubs: AnyFloats
    coefficients: AnyFloats
    csls_k: int

    def similarities(self, queries: AnyFloats) -> AnyFloats:
        """Return the cosines (q, n) of queries (q, d), unit rows in the common space, with all words."""
        rotated = queries if self.side.map is None else queries @ self.side.map.T
        found = rotated @ self.side.space.vectors.T
        found *= self.coefficients[:, 0]
        for number, mean in enumerate(self.side.normalization.means, start=1):
            found -= np.outer(rotated @ arrays.to_numpy(mean), self.coefficients[:, number])
        return np.asarray(found)

    def top_k(self, queries: AnyFloats, k: int, method: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the k best words for queries (q, d) by "nn" or "csls": rows (q, k) and scores (q, k), best first."""

        def best(block: slice) -> tuple[np.ndarray, np.ndarray]:
            cosines = self.similarities(queries[block])
            if method == "nn":
                rows, scores = retrieval.best_of(cosines, np.zeros_like(self.hubs), k, scale=1.0)
            else:
                rows, scores = retrieval.best_of(cosines, self.hubs, k, scale=2.0, neighbours=self.csls_k)
            return arrays.to_numpy(rows), arrays.to_numpy(scores)

        size = arrays.block_rows(len(self.hubs), queries)
        found = arrays.map_blocks(best, len(queries), size, queries) or [best(slice(0, 0))]
        return np.concatenate([rows for rows, _ in found]), np.concatenate([scores for _, scores in found])


def lookup_coefficients(side: AlignedSide, dtype: str, block_rows: int = 8192) -> AnyFloats:
    """Return the coefficients of the words of a language in the common space, (n, 1 + c) for c normalisation means.

    The unit vector of word i there is (a[i, 0] * vectors[i] - sum over k of a[i, 1 + k] * means[k]) @ map.

    block_rows: words read from the disk at a time.
    """
    n = len(side.space)
    found = np.zeros((n, 1 + len(side.normalization.means)), dtype=dtype)
    for start in range(0, n, block_rows):
        block = slice(start, start + block_rows)
        found[block] = _coefficients(side, side.space.vectors[block].astype(dtype, copy=False))
    return found


def _coefficients(side: AlignedSide, rows: AnyFloats) -> AnyFloats:
    means = [arrays.to_numpy(mean) for mean in side.normalization.means]
    found = np.zeros((len(rows), 1 + len(means)), dtype=rows.dtype)
    found[:, 0] = 1.0
    number = 0
    for step in side.normalization.steps:
        if step == "unit":
            lengths = _lengths(rows)
            rows, found = rows / lengths, found / lengths
        else:
            rows = rows - means[number]
            number += 1
            found[:, number] = 1.0
    return np.asarray(found / _lengths(rows if side.map is None else rows @ side.map))


def _lengths(rows: AnyFloats) -> AnyFloats:
    """Return the lengths of rows (n, d), (n, 1); 1 for zero rows, so that division leaves them unchanged."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(np.where(lengths > 0, lengths, 1.0), dtype=rows.dtype)


# --------------------------------------------------------------------------- lookups as sidecars


def write_lookup(origin: Origin, name: Side, found: Lookup) -> None:
    """Write the lookup of a language as a sidecar file, if the folder of the alignment is writable."""
    tensors = {"hubs": found.hubs, "coefficients": found.coefficients}
    sidecars.write(origin, LOOKUPS, f"{name}-{found.csls_k}", tensors)


def read_lookup(origin: Origin, name: Side, side: AlignedSide, csls_k: int) -> Lookup | None:
    """Return the lookup of a language from its sidecar file, or None without a valid one."""
    n = len(side.space)
    shapes = {"hubs": (n,), "coefficients": (n, 1 + len(side.normalization.means))}
    tensors = sidecars.read(origin, LOOKUPS, f"{name}-{csls_k}", shapes)
    return None if tensors is None else Lookup(side, tensors["hubs"], tensors["coefficients"], csls_k)


# --------------------------------------------------------------------------- translating


@dataclass(frozen=True)
class Search:
    """How to search: the language of the queries, the retrieval method, and whether FAISS may approximate."""

    side: Side = "src"
    method: str = "csls"
    csls_k: int = DEFAULT_CSLS_K
    approximate: bool = False


class Translator:
    """Finds the nearest words of the other language.

    A few queries are answered from a `Lookup`, which needs no mapped vocabulary. More of them are searched with a
    retriever. Lookups, retrievers and FAISS indexes are made on first use and kept; lookups also as sidecar files.

    seed: of the approximate search. origin: the folder of the alignment, if it was loaded from one.
    """

    def __init__(self, space: CommonSpace, *, seed: int, origin: Origin | None) -> None:
        self.space = space
        self._seed, self._origin = seed, origin
        self._lookups: dict[tuple[Side, int], Lookup] = {}
        self._retrievers: dict[Search, Retriever | ApproximateRetriever] = {}
        self._recalls: dict[Side, float] = {}

    def translate(self, words: Words, k: int, search: Search, spelling: float = 0.0) -> Translations:
        """Return the k best translations of each word, by word."""
        whole(1, k=k)
        term = self.spelling_term(spelling, search.method)
        query = WordQuery.of(as_words(words), self.space.side(search.side).space)
        if not query.known:
            raise query.none_known(search.side, 'side="tgt"')
        found = self._best_words(self.space.vectors(query.known, search.side), k, search, query.known, term)
        return Translations(zip(query.known, found, strict=True), query.unknown, query.hints, query.composed)

    def translate_vectors(self, vectors: Vectors, k: int, search: Search) -> list[list[Translation]]:
        """Return the k best words for each of the vectors (n, d) or (d,), as they were read."""
        whole(1, k=k)
        dim = self.space.side(search.side).space.dim
        return self._best_words(np.atleast_2d(self.space.checked(as_array(vectors, dim), search.side)), k, search)

    def spelling_term(self, spelling: float, method: str) -> Spelling | None:
        """Return the spelling term of a weight, or None if it adds nothing, as between two alphabets."""
        weight = checked_weight(spelling, method)
        return Spelling(weight) if weight and self._one_alphabet else None

    @cached_property
    def _one_alphabet(self) -> bool:
        return Spelling().one_alphabet(self.space.words("src"), self.space.words("tgt"))

    def _best_words(
        self, vectors: AnyFloats, k: int, search: Search, asked: Sequence[str] = (), term: Spelling | None = None
    ) -> list[list[Translation]]:
        """Return the k best words of the other language for vectors (n, d) as they were read.

        asked: the words of the vectors, for the spelling term.
        """
        words = self.space.words(other(search.side))
        rows = arrays.to_numpy(arrays.unit(self.space.map(vectors, search.side)))
        found = self._nearest(rows, max(k, term.compared) if term else k, search)
        if term:
            found = term.reranked(asked, words, *found)
        lists = (part[:, :k].tolist() for part in found)
        return [
            [Translation(words[j], score) for j, score in zip(*best, strict=True)] for best in zip(*lists, strict=True)
        ]

    def _nearest(self, queries: AnyFloats, k: int, search: Search) -> tuple[np.ndarray, np.ndarray]:
        """Return the k best words of the other language for queries (q, d), unit rows: rows and scores, (q, k)."""
        if len(queries) <= FEW_QUERIES and self._prefers_lookup(search):
            return self._lookup_for(search.method, other(search.side), search.csls_k).top_k(queries, k, search.method)
        put = queries if search.approximate else self.space.device.put(queries, self.space.dtype)
        indices, scores = self.retriever(search).top_k(put, k)
        return arrays.to_numpy(indices), arrays.to_numpy(scores)

    def _prefers_lookup(self, search: Search) -> bool:
        """Whether a lookup answers a few queries sooner: the vocabulary is not mapped yet, and on the CPU."""
        if search.approximate or search.method not in ("csls", "nn"):
            return False
        return self.space.device == arrays.HOST and search not in self._retrievers

    def retriever(self, search: Search) -> Retriever | ApproximateRetriever:
        """Return the retriever of a search over the whole vocabulary."""
        if search not in self._retrievers:
            self._retrievers[search] = self._new_retriever(search)
        return self._retrievers[search]

    def _new_retriever(self, search: Search) -> Retriever | ApproximateRetriever:
        side, method, csls_k = search.side, search.method, search.csls_k
        if search.approximate:
            return self._cross_index.retriever(side, method, csls_k)
        keys, pool = self.space.mapped(other(side)), self.space.mapped(side)
        hubs = self._hubs(other(side), csls_k) if method == "csls" else None
        return retrieval.retriever(keys, pool, method=method, csls_k=csls_k, hubs=hubs)

    def best_rows(
        self, side: Side, rows: Ints, k: int, csls_k: int, *, approximate: bool = False
    ) -> tuple[Ints, AnyFloats]:
        """Return the k best words of the other language by CSLS for words of this one: rows and scores, (r, k)."""
        if approximate:
            return self._cross_index.top_k(side, rows, k, csls_k)
        retriever = self.retriever(Search(side, "csls", csls_k))
        indices, scores = retriever.top_k(self.space.mapped_rows(side, rows), k)
        return arrays.to_numpy(indices), arrays.to_numpy(scores)

    # ----------------------------------------------------------------- lookups

    def lookup(self, side: Side, csls_k: int, callback: Callable[[int], None] | None = None) -> Lookup:
        """Return the lookup of one language: from memory, from a sidecar, or computed now and saved as a sidecar.

        callback: gets the numbers of words that are done while it is computed.
        """
        if self._known_lookup(side, csls_k) is None:
            k = self._clamped(csls_k)
            for each, means in self._neighbourhood_means(side, k, callback).items():
                aligned = self.space.side(each)
                found = Lookup(aligned, arrays.to_numpy(means), lookup_coefficients(aligned, self.space.dtype), k)
                if self._origin is not None:
                    write_lookup(self._origin, each, found)
                self._lookups[each, k] = found
        return self._lookups[side, self._clamped(csls_k)]

    def _neighbourhood_means(self, side: Side, k: int, callback: Callable[[int], None] | None) -> dict[Side, Array]:
        """Return the neighbourhood means of one language, or of both where the other ones cost hardly anything."""
        src, tgt = (self.space.mapped(each) for each in SIDES)
        n, own = src.shape[0], self.space.mapped(side)
        if self._known_lookup(other(side), k) is None and n * tgt.shape[0] <= QUICK_PAIRS:
            share = own.shape[0] / n
            both = one_pass(src, tgt, k, None if callback is None else lambda done: callback(round(done * share)))
            if both is not None:
                return {"src": both.src_means, "tgt": both.tgt_means}
        return {side: retrieval.neighbourhood_means(own, self.space.mapped(other(side)), k, callback)}

    def has_lookup(self, side: Side, csls_k: int) -> bool:
        """Whether the lookup of one language is in memory or in a sidecar."""
        return self._known_lookup(side, csls_k) is not None

    def _known_lookup(self, side: Side, csls_k: int) -> Lookup | None:
        k = self._clamped(csls_k)
        if (side, k) not in self._lookups and self._origin is not None:
            found = read_lookup(self._origin, side, self.space.side(side), k)
            if found is not None:
                self._lookups[side, k] = found
        return self._lookups.get((side, k))

    def _lookup_for(self, method: str, side: Side, csls_k: int) -> Lookup:
        """Return a lookup for CSLS, or one for cosines, which needs no neighbourhood means.

        Both compute cosines in the same way, so the answers do not depend on whether a sidecar exists.
        """
        if method == "csls":
            return self.lookup(side, csls_k)
        found = self._known_lookup(side, csls_k)
        if found is not None:
            return found
        if (side, 0) not in self._lookups:
            aligned, dtype = self.space.side(side), self.space.dtype
            hubs = np.zeros(len(aligned.space), dtype=dtype)
            self._lookups[side, 0] = Lookup(aligned, hubs, lookup_coefficients(aligned, dtype), 0)
        return self._lookups[side, 0]

    def _hubs(self, side: Side, csls_k: int) -> Array:
        """Return the CSLS neighbourhood means of one language, (n,), on the device."""
        return self.space.device.put(self.lookup(side, csls_k).hubs, self.space.dtype)

    def _clamped(self, csls_k: int) -> int:
        whole(1, csls_k=csls_k)
        return min(csls_k, *(len(self.space.words(side)) for side in SIDES))

    # ----------------------------------------------------------------- approximate search

    @cached_property
    def _cross_index(self) -> CrossIndex:
        src, tgt = (arrays.to_numpy(self.space.mapped(side)) for side in SIDES)
        return CrossIndex(src, tgt, seed=self._seed)

    def approximate_recall(self, side: Side) -> float:
        """Return recall@10 of the approximate search for queries of one language."""
        self.space.side(side)
        if side not in self._recalls:
            self._recalls[side] = self._cross_index.recall_at(side)
        return self._recalls[side]
