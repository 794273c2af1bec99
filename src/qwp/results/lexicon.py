"""Inducing a bilingual lexicon from an alignment, with a confidence for each pair."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from qwp import arrays
from qwp.arrays import AnyFloats, Array, Bools, Floats, Ints
from qwp.errors import whole
from qwp.judging.estimate import Refits, refits, search_figures
from qwp.maps.procrustes import Maps
from qwp.results import sidecars
from qwp.results.saved import LOOKUPS
from qwp.results.sidecars import Origin
from qwp.results.translator import Translator
from qwp.search.confidence import CONFIDENCE_MODEL, Scale, SearchFigures
from qwp.search.spelling import Spelling
from qwp.spaces.embeddings import SIDES


@dataclass(frozen=True)
class InducedPair:
    """One line of an induced lexicon.

    Attributes:
        score: CSLS of the pair, plus the spelling term if it was asked for.
        margin: lead of the score over that of the second candidate.
        mutual: whether each word is the best translation of the other.
        confidence: the estimated probability that the pair is right by CSLS, see `qwp.search.confidence`.
    """

    src: str
    tgt: str
    score: float
    margin: float
    mutual: bool
    confidence: float


@dataclass(frozen=True)
class _Chosen:
    """The best translations of n source words.

    best: (n,) target rows. scores: (n, c) of the candidates, best first. mutual: (n,) whether each is the best of the
    other. found: the CSLS figures of the pairs.
    """

    best: Ints
    scores: AnyFloats
    mutual: Bools
    found: SearchFigures


class LexiconInducer:
    """Induces lexicons and computes the features of their confidences.

    The two refits of the maps are made on first use and kept, also as a sidecar file.

    csls_k: neighbourhood size of the refits, that of the fit. origin: the folder of the alignment, if it was loaded
    from one.
    """

    def __init__(self, translator: Translator, *, csls_k: int, origin: Origin | None) -> None:
        self._translator, self._space = translator, translator.space
        self._csls_k, self._origin = csls_k, origin

    def induce(
        self,
        scale: Scale,
        *,
        max_words: int | None,
        mutual_only: bool,
        csls_k: int,
        approximate: bool,
        spelling: float,
    ) -> list[InducedPair]:
        """Return the induced lexicon, most frequent source words first. scale: of the confidences."""
        term = self._translator.spelling_term(spelling, "csls")
        if max_words is not None:
            whole(1, max_words=max_words)
        src_words, tgt_words = self._space.words("src"), self._space.words("tgt")
        rows = self._space.side("src").frequent(len(src_words) if max_words is None else max_words)
        chosen = self._chosen(rows, csls_k, approximate, term)
        scores, mutual = chosen.scores, chosen.mutual
        probability = CONFIDENCE_MODEL.confidence(chosen.found, scale)
        margin = scores[:, 0] - scores[:, 1] if scores.shape[1] > 1 else np.full(len(rows), np.inf)
        kept = np.flatnonzero(mutual) if mutual_only else np.arange(len(rows))
        # Plain lists: indexing arrays element by element would take longer than the rest of this function.
        columns = [column[kept].tolist() for column in (chosen.best, scores[:, 0], margin, mutual, probability)]
        return [
            InducedPair(src_words[i], tgt_words[j], *figures)
            for i, j, *figures in zip(rows[kept].tolist(), *columns, strict=True)
        ]

    def pair_features(self, scale: Scale, csls_k: int) -> Floats:
        """Return the features of the best translation of each source word, most frequent words first, (n, 14)."""
        rows = self._space.side("src").frequent(len(self._space.words("src")))
        _, found = self._candidates(rows, csls_k, approximate=False)
        return CONFIDENCE_MODEL.features(found, scale)

    def preferred(self, rows: Ints, candidates: Ints) -> Ints:
        """Return which candidate each of two refits prefers for source words, (r, 2), 0 for the first candidate.

        rows: (r,) source rows; candidates: (r, k) target rows. See `qwp.judging.estimate`.
        """
        src, tgt = (self._space.side(side) for side in SIDES)
        return self._refits.preferred(src.ranks(rows), tgt.ranks(candidates))

    @cached_property
    def _refits(self) -> Refits:
        x, y, maps = self._space.normalized()
        return Refits(x, y, cached_refits(self._origin, x, y, maps, self._csls_k))

    def _chosen(self, rows: Ints, csls_k: int, approximate: bool, term: Spelling | None) -> _Chosen:
        """Choose the best translations of source words by CSLS, plus the spelling term."""
        if term:
            return self._chosen_by_spelling(rows, csls_k, approximate, term)
        best, found = self._candidates(rows, csls_k, approximate)
        return _Chosen(best, np.asarray(found.scores), np.asarray(found.back_ranks) == 0, found)

    def _chosen_by_spelling(self, rows: Ints, csls_k: int, approximate: bool, term: Spelling) -> _Chosen:
        src, tgt = self._space.words("src"), self._space.words("tgt")
        best_rows = self._translator.best_rows
        candidates, csls = best_rows("src", rows, term.compared, csls_k, approximate=approximate)
        ranked, scores = term.reranked([src[row] for row in rows.tolist()], tgt, candidates, csls)
        best = ranked[:, 0]
        wanted, which = np.unique(best, return_inverse=True)
        back, back_csls = best_rows("tgt", wanted, term.compared, csls_k, approximate=approximate)
        back_ranked, _ = term.reranked([tgt[row] for row in wanted.tolist()], src, back, back_csls)
        # The confidence is that of this pair by CSLS: its own figures first, then those of the other candidates.
        order = np.argsort(candidates != best[:, None], axis=1, kind="stable")[:, : CONFIDENCE_MODEL.candidates]
        few = slice(CONFIDENCE_MODEL.candidates + 1)
        preferred = self.preferred(rows, np.take_along_axis(candidates, order, axis=1))
        of_csls = np.take_along_axis(csls, order, axis=1)
        found = search_figures(of_csls, back_csls[which, few], back[which, few], rows, preferred)
        return _Chosen(best, scores, back_ranked[which, 0] == rows, found)

    def _candidates(self, rows: Ints, csls_k: int, approximate: bool) -> tuple[Ints, SearchFigures]:
        """Return the best translations of source words, (n,), and the CSLS figures of the pairs."""
        best_rows = self._translator.best_rows
        indices, scores = best_rows("src", rows, CONFIDENCE_MODEL.candidates, csls_k, approximate=approximate)
        best = indices[:, 0]
        wanted, which = np.unique(best, return_inverse=True)
        back, back_scores = best_rows("tgt", wanted, CONFIDENCE_MODEL.candidates + 1, csls_k, approximate=approximate)
        return best, search_figures(scores, back_scores[which], back[which], rows, self.preferred(rows, indices))


# --------------------------------------------------------------------------- refits as a sidecar


def cached_refits(origin: Origin | None, x: Array, y: Array, maps: Maps, csls_k: int) -> tuple[Maps, Maps]:
    """Return the refits of maps of x (n, d) and y (m, d), from the sidecar or computed and saved as one."""
    # A sidecar holds them in half precision, which changes no cosine that matters. They are used in that precision
    # even when just computed, so that the results do not depend on whether the sidecar exists.
    name, width = f"refits-{csls_k}", x.shape[1]
    shapes = {f"{side}_{number}": (width, width) for side in SIDES for number in range(2)}
    known = sidecars.read(origin, LOOKUPS, name, shapes)
    if known is None:
        known = _tensors(refits(x, y, maps, csls_k=csls_k))
        sidecars.write(origin, LOOKUPS, name, known)
    even, odd = (Maps(*(arrays.asarray(known[f"{side}_{number}"], x) for side in SIDES)) for number in range(2))
    return even, odd


def _tensors(computed: tuple[Maps, Maps]) -> dict[str, np.ndarray]:
    found = {}
    for number, maps in enumerate(computed):
        for side, matrix in zip(SIDES, (maps.src, maps.tgt), strict=True):
            given = np.eye(len(maps.src)) if matrix is None else arrays.to_numpy(matrix)
            # The scale of a map changes no cosine; dividing by it keeps float16 in range.
            found[f"{side}_{number}"] = (given / (np.abs(given).max() or 1.0)).astype(np.float16)
    return found
