"""The result of a fit: the maps of two spaces, their quality and provenance. It can be saved and loaded."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, overload

import numpy as np

from qwp import arrays
from qwp.arrays import AnyFloats, Array, Floats
from qwp.errors import InputError, one_of
from qwp.judging.estimate import Estimate
from qwp.judging.verdict import Quality, judge
from qwp.maps.pairs import RowPairs
from qwp.results import parts, saved
from qwp.results.lexicon import InducedPair, LexiconInducer
from qwp.results.provenance import InputRecord, Provenance
from qwp.results.saved import Stored
from qwp.results.sidecars import Origin
from qwp.results.sides import AlignedSide, CommonSpace, Neighbour
from qwp.results.summary import alignment_card, some_words
from qwp.results.translator import Lookup, Search, Translation, Translations, Translator
from qwp.search.retrieval import DEFAULT_CSLS_K
from qwp.showing import html
from qwp.showing.terminal import finite
from qwp.spaces.embeddings import SIDES, Embeddings, Side
from qwp.spaces.frequency import NO_ORDER
from qwp.spaces.objects import Vectors, Words

logger = logging.getLogger(__name__)

# Multiplications of a search that takes a notebook no noticeable time: 5,000 x 5,000 words of 100 dimensions take one
# core 0.15 s.
_QUICK_SEARCH = 3_000_000_000
# Words whose translations a notebook shows.
_EXAMPLES = 8
_FOR_THE_PACKAGE = {
    *("checked_content", "common", "has_lookup", "inducer", "lookup", "origin", "side", "src_side", "tgt_side"),
    *("translator", "write_parts"),
}
CHECKS = ("content", "size")
"""How `Alignment.load` compares the files with the index."""


@dataclass(frozen=True, eq=False)
class Alignment:
    """Two embedding spaces and the maps that bring them into one.

    Attributes:
        src_side: the source language and its map.
        tgt_side: the target language and its map, if it has one.
        quality: the verdict and its figures.
        provenance: how the alignment was made.
        history: what each stage recorded, such as the objective of its steps.
        device: where words are mapped and searched, see `on`.
        origin: the folder it was loaded from, if any.
    """

    src_side: AlignedSide
    tgt_side: AlignedSide
    quality: Quality
    provenance: Provenance
    history: list[dict[str, Any]] = field(default_factory=list)
    device: arrays.Device = arrays.HOST
    origin: Origin | None = None

    def __repr__(self) -> str:
        of, quality = self.provenance, self.quality
        return f"Alignment({of.src} -> {of.tgt}, {of.method}, {quality.short})"

    def _repr_html_(self) -> str:
        """Show the verdict in a notebook, with some translations if the search is quick."""
        return html.never_failing(lambda: alignment_card(self.provenance, self.quality, self._examples()), self)

    def _examples(self, most: int = _QUICK_SEARCH) -> Mapping[str, list[Translation]]:
        """Translate some content words, unless a file must be read or the search takes over `most` multiplications."""
        if not all(self.side(side).in_memory for side in SIDES):
            return {}
        if not self.has_lookup("tgt") and len(self.src) * len(self.tgt) * self.src.dim > most:
            return {}
        return self.translate(some_words(self.src_side, _EXAMPLES), k=3)

    def __dir__(self) -> list[str]:
        """List the names that users need; others serve the rest of the package."""
        return [name for name in super().__dir__() if name not in _FOR_THE_PACKAGE and not re.match("_[^_]", name)]

    @property
    def src(self) -> Embeddings:
        """The source vectors as they were read."""
        return self.src_side.space

    @property
    def tgt(self) -> Embeddings:
        """The target vectors as they were read."""
        return self.tgt_side.space

    @property
    def src_map(self) -> AnyFloats:
        """The map of the source side, (d, common)."""
        assert self.src_side.map is not None, "the source side is always mapped"
        return self.src_side.map

    @property
    def tgt_map(self) -> AnyFloats | None:
        """The map of the target side, (d, common), or None if the target space is the common one."""
        return self.tgt_side.map

    def side(self, side: Side) -> AlignedSide:
        """Return one of the two languages, "src" or "tgt"."""
        return self.common.side(side)

    def on(self, device: str = "auto", library: str = "auto") -> Alignment:
        """Return the same alignment with all searches computed on a device: cpu, cuda, cuda:1, ..."""
        return replace(self, device=arrays.choose_device(device, library))

    # ----------------------------------------------------------------- what computes for it

    @cached_property
    def common(self) -> CommonSpace:
        """Maps words and vectors of both languages into the common space."""
        return CommonSpace({"src": self.src_side, "tgt": self.tgt_side}, self.device)

    @cached_property
    def translator(self) -> Translator:
        """Searches the translations of words."""
        return Translator(self.common, seed=self.provenance.seed, origin=self.origin)

    @cached_property
    def inducer(self) -> LexiconInducer:
        """Induces lexicons with confidences."""
        return LexiconInducer(self.translator, csls_k=self._csls_k(), origin=self.origin)

    # ----------------------------------------------------------------- mapping

    def transform(self, items: Words | Vectors, side: Side = "src") -> AnyFloats:
        """Map words or new vectors into the common space, treated exactly as the training words were.

        Args:
            items: words of that language (a word, a list, a tuple, an array or a column of a frame), or vectors (n, d)
                or (d,) as an array or lists. Words outside the vocabulary need subwords.
            side: the language of the items.

        Returns:
            (n, c), or (c,) for one word or one vector. The dimension c of the common space is d unless the two spaces
            have different dimensions.
        """
        return self.common.transform(items, side)

    def mapped(self, side: Side) -> Array:
        """Return all words of one language in the common space, unit rows (n, c), on the device chosen by `on`."""
        return self.common.mapped(side)

    def similarity(self, src_word: str, tgt_word: str) -> float:
        """Return the cosine of a source word and a target word in the common space, -1 to 1."""
        return self.common.similarity(src_word, tgt_word)

    def most_similar(self, word: str, k: int = 10, *, side: Side = "src", within: str = "both") -> list[Neighbour]:
        """Return the k nearest words by cosine in the common space, nearest first, without the word itself.

        `translate` finds better translations, because it corrects for words that are near to many others.

        side: the language of the word. within: the languages to search, "src", "tgt" or "both".
        """
        return self.common.most_similar(word, k, side, within)

    def to_keyed_vectors(self, side: str = "both") -> Any:
        """Return the words of one language or both in the common space as gensim KeyedVectors.

        side: "src", "tgt", or "both", whose words are then named "src:house" and "tgt:casa".
        """
        return self.common.to_keyed_vectors(side)

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
        """Return the k best translations of each word.

        Args:
            words: words of the source language. Words outside the vocabulary of a fastText model are translated by
                the vectors of their subwords.
            k: translations of each word.
            vectors: vectors (n, d) or (d,) as they were read, instead of words.
            retrieval: "csls", "nn" or "softmax".
            csls_k: neighbourhood size of CSLS.
            side: "tgt" translates target words into the source language.
            approximate: search with FAISS, which is faster for many words but not exact, see `approximate_recall`.
            spelling: weight of a term for words that are spelled alike, which is added to CSLS: 0 for none, True for
                the measured weight. See `qwp.search.spelling`.

        Returns:
            A dict from word to translations, best first, whose attribute `unknown` lists the words without a vector.
            For vectors, a list with the translations of each row.

        Raises:
            InputError: all words are unknown.
        """
        search = Search(side, retrieval, csls_k, approximate)
        if vectors is None:
            if words is None:
                raise InputError("received neither words nor vectors; expected one of them to translate")
            return self.translator.translate(words, k, search, spelling)
        if words is not None:
            raise InputError("received both words and vectors; expected one of them to translate")
        if spelling:
            raise InputError(f"spelling={spelling} was received with vectors; expected words, which are spelled")
        return self.translator.translate_vectors(vectors, k, search)

    def lookup(self, side: Side, csls_k: int = DEFAULT_CSLS_K, callback: Callable[[int], None] | None = None) -> Lookup:
        """Return what is needed to find a few words of one language quickly.

        The first call compares all words of both languages, unless a sidecar file of the saved alignment has the
        result. It writes the sidecar. callback: gets the numbers of words that are done.
        """
        return self.translator.lookup(side, csls_k, callback)

    def has_lookup(self, side: Side, csls_k: int = DEFAULT_CSLS_K) -> bool:
        """Whether `lookup` needs no comparison of all words."""
        return self.translator.has_lookup(side, csls_k)

    def approximate_recall(self, side: Side = "src") -> float:
        """Return recall@10 of the approximate search: the share of the ten nearest words that it finds.

        It is measured against exact search on 500 words of `side`, or on all words if there are fewer.
        """
        return self.translator.approximate_recall(side)

    # ----------------------------------------------------------------- inducing a lexicon

    def induce(
        self,
        *,
        max_words: int | None = None,
        mutual_only: bool = True,
        csls_k: int = 10,
        approximate: bool = False,
        spelling: float = 0.0,
    ) -> list[InducedPair]:
        """Induce a bilingual lexicon, most frequent source words first.

        Args:
            max_words: use only this many of the most frequent source words.
            mutual_only: keep only pairs of words that are the best translations of each other.
            csls_k: neighbourhood size of CSLS.
            approximate: search with FAISS, see `translate`.
            spelling: as for `translate`. Scores, margins and mutual pairs then include the term. The confidence is
                that of the pair by CSLS alone, so it is low where spelling chose another word than CSLS.
        """
        return self.inducer.induce(
            self.estimate.scale,
            max_words=max_words,
            mutual_only=mutual_only,
            csls_k=csls_k,
            approximate=approximate,
            spelling=spelling,
        )

    def induced_rows(self) -> tuple[RowPairs, Floats]:
        """Return the rows of the pairs of the induced lexicon, (p,) each, and their confidences, (p,)."""
        src, tgt = self.src.index, self.tgt.index
        found = self.induce()
        rows = np.asarray([(src[pair.src], tgt[pair.tgt]) for pair in found], dtype=np.int64).reshape(-1, 2)
        return (rows[:, 0], rows[:, 1]), np.asarray([pair.confidence for pair in found], dtype=np.float64)

    def reversed(self) -> Alignment:
        """Return the alignment of the target onto the source by the same maps, with the same verdict."""
        identity = np.eye(self.src_map.shape[1], dtype=self.src_map.dtype)
        src = self.tgt_side if self.tgt_map is not None else replace(self.tgt_side, map=identity)
        provenance = replace(
            self.provenance,
            src=self.provenance.tgt,
            tgt=self.provenance.src,
            bridges=[replace(each, src=each.tgt, tgt=each.src) for each in self.provenance.bridges],
        )
        return replace(self, src_side=src, tgt_side=self.src_side, provenance=provenance, origin=None)

    # ----------------------------------------------------------------- judging

    @cached_property
    def estimate(self) -> Estimate:
        """The estimated accuracy; computed now if the result was saved without one."""
        quality = self.quality
        if quality.estimate is None:
            logger.warning(
                "the alignment has no estimate, which confidences need: qwp judges it now, as long as a fit does"
            )
            quality = self.judge_again()
        assert quality.estimate is not None, "the default effort includes an estimate"
        return quality.estimate

    def judge_again(self) -> Quality:
        """Judge the maps again, with the seed and the neighbourhood size of the fit."""
        x, y, maps = self.common.normalized()
        ordered = self.provenance.config.get("order") != NO_ORDER
        seed, known = self.provenance.seed, self.quality.measured
        return judge(x, y, maps, seed=seed, csls_k=self._csls_k(), ordered=ordered, known=known)

    def _csls_k(self) -> int:
        """Return the neighbourhood size with which the alignment was judged."""
        found = self.provenance.config.get("csls_k", DEFAULT_CSLS_K)
        return found if type(found) is int and found >= 1 else DEFAULT_CSLS_K

    # ----------------------------------------------------------------- saving and loading

    def save(self, folder: str | Path, *, vectors: bool = True, subwords: bool | None = None) -> Path:
        """Write the alignment into a folder, in place of an earlier one.

        A save that is interrupted leaves an earlier result and all other files as they were.

        Args:
            folder: the folder to write.
            vectors: False leaves out the words and vectors; `load` then finds them in the files that were aligned.
            subwords: whether the subword tables of fastText models are saved, or read from the models. None saves up
                to 1 GiB of each side.
        """
        folder = Path(folder)
        fill = partial(self.write_parts, vectors=vectors, subwords=subwords)
        saved.write(folder, self.checked_content(vectors=vectors), fill)
        return folder

    def checked_content(self, *, vectors: bool = True) -> dict[str, Any]:
        """Return `to_dict` as it is saved, or raise an InputError for content that `load` would refuse."""
        content: dict[str, Any] = json.loads(json.dumps(finite(self.to_dict())))
        problem = saved.CONTENT.problem(content, "")
        if problem is not None:
            raise InputError(f"the alignment cannot be saved: {problem}")
        records: dict[Side, InputRecord] = {"src": self.provenance.src, "tgt": self.provenance.tgt}
        for side in SIDES:
            parts.check(side, self.side(side), records[side])
        if not vectors:
            parts.check_originals(records)
        return content

    @property
    def holds_vectors(self) -> bool:
        """Whether the vectors are part of the result, so that the files that were aligned are not needed."""
        return all(isinstance(self.side(side).source, Embeddings) for side in SIDES)

    def write_parts(self, folder: Path, *, vectors: bool = True, subwords: bool | None = None) -> None:
        """Write the vectors, maps, means and orders into a folder."""
        parts.write({side: self.side(side) for side in SIDES}, folder, vectors=vectors, subwords=subwords)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the arrays as plain JSON types."""
        return {
            "provenance": self.provenance.to_dict(),
            "normalization": {side: list(self.side(side).normalization.steps) for side in SIDES},
            "quality": self.quality.to_dict(),
            "history": self.history,
        }

    @classmethod
    def load(cls, folder: str | Path, *, check: str = "content") -> Alignment:
        """Read an alignment that `save` wrote; an InputError if its files have changed since.

        check: "content" compares the hashes of all files. "size" compares only the size of the vector files and
        memory-maps them, so it does not notice a changed number among the vectors.
        """
        one_of(CHECKS, check=check)
        folder = Path(folder)
        read = partial(cls.from_stored, check=check)
        return saved.read(folder, saved.ALIGNMENT, lambda: read(saved.read_alignment_index(folder)))

    @classmethod
    def from_stored(cls, stored: Stored, *, check: str = "content") -> Alignment:
        """Return the alignment of an index. check: as for `load`."""
        unhashed = stored.check_parts(content=check == "content")
        content = stored.content
        provenance = Provenance.from_dict(content["provenance"])
        inputs: dict[Side, InputRecord] = {"src": provenance.src, "tgt": provenance.tgt}
        found = parts.read(stored, inputs, on_disk=check == "size")
        return cls(
            found["src"],
            found["tgt"],
            quality=Quality.from_dict(content["quality"]),
            provenance=provenance,
            history=content["history"],
            origin=None if stored.sha256 is None else Origin(stored.path.parent, stored.sha256, unhashed),
        )
