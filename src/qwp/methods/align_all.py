"""Align every two of several languages, and bridge the pairs that fail over the languages between them.

Each pair gets a fit of its own, so its maps are as good as those of two languages alone. One fit serves both
directions. A pair without a successful alignment is then aligned over all languages with which both of its sides were
aligned. Pairs found over bridges serve as legs of further bridges, until no more pairs are found.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

from qwp.arrays import thread_map
from qwp.errors import InputError
from qwp.judging.verdict import SUCCEEDED, UNJUDGED
from qwp.methods.aligner import Aligner
from qwp.methods.bridges import Bridge, Leg
from qwp.results.alignment import Alignment
from qwp.results.all_pairs import AllPairs, PairStore, folder_name, pair_of, pairs_of
from qwp.results.joint import Pair
from qwp.results.several import check_languages
from qwp.showing.events import PairCallback, ProgressCallback
from qwp.showing.progress import pair_callback
from qwp.spaces.embeddings import Embeddings
from qwp.spaces.objects import Space, as_embeddings

logger = logging.getLogger(__name__)


def align_all(
    aligner: Aligner,
    spaces: Mapping[str, Space],
    *,
    store: PairStore | None = None,
    progress: bool | PairCallback | None = None,
) -> AllPairs:
    """Align every two of several spaces, by name, with the parameters of an aligner.

    store: keeps finished pairs, and continues an interrupted run. progress: True for a progress bar on stderr, or a
    function that gets the number of the pair before the event.
    """
    check_names(list(spaces))
    aligner.validate()
    embeddings = {name: as_embeddings(space, name).named(name) for name, space in spaces.items()}
    thread_map(Embeddings.sha256, list(embeddings.values()))
    pairs = pairs_of(spaces)
    with pair_callback(progress, len(pairs)) as listener:
        run = _Run(aligner, embeddings, PairStore() if store is None else store, listener)
        for pair in pairs:
            run.align(pair)
        if run.has_fitted or not run.store.is_finished(spaces):
            while run.bridge():
                logger.info("pairs found over bridges may bridge others")
    run.store.finish(spaces, pairs)
    return AllPairs(tuple(spaces), run.found)


def check_names(names: list[str]) -> None:
    """Raise an InputError for names of languages that cannot name the folders of all pairs."""
    if len(names) < 2:
        raise InputError(f"{len(names)} languages were given; expected at least two")
    check_languages(names[0], names[1:])
    folders = [folder_name(*pair) for pair in pairs_of(names)]
    if len({name.casefold() for name in folders}) < len(folders):
        raise InputError(f"two pairs of the languages {', '.join(names)} would have the same folder: rename one")


class _Run:
    """The alignments found so far, by pair."""

    def __init__(
        self, aligner: Aligner, spaces: Mapping[str, Embeddings], store: PairStore, progress: PairCallback | None
    ) -> None:
        self.aligner, self.spaces, self.store, self._progress = aligner, spaces, store, progress
        self.found: dict[Pair, Alignment] = {}
        self._legs: dict[Pair, Leg] = {}
        self._tried: dict[Pair, set[str]] = {}
        self.has_fitted = False

    def align(self, pair: Pair) -> None:
        """Align a pair directly, or take the result of an earlier run."""
        a, b = (self.spaces[name] for name in pair)
        direct = self.aligner.identity({"src": a.sha256(), "tgt": b.sha256()})
        stored = self.store.load(pair, direct, [space.sha256() for space in self.spaces.values()])
        if stored is not None:
            self.found[pair] = _with_spaces(stored, a, b)
            return
        logger.info("aligning %s with %s", *pair)
        self.has_fitted = True
        checkpoint, progress = self.store.checkpoint(pair), self._listener(pair)
        self._keep(pair, self.aligner.fit(a, b, progress=progress, checkpoint=checkpoint).alignment_)

    def bridge(self) -> bool:
        """Try the bridges of all pairs without a successful alignment. Returns whether one was found."""
        if "lexicon" not in self.aligner.initializers():
            return False
        better = [pair for pair in self.found if self._is_open(pair) and self._bridged(pair)]
        return len(better) > 0

    def _is_open(self, pair: Pair) -> bool:
        return self.found[pair].quality.verdict not in (SUCCEEDED, UNJUDGED)

    def _bridged(self, pair: Pair) -> bool:
        """Align a pair over all bridges that were not tried yet, and keep the better alignment."""
        thirds = set(self._thirds(pair))
        if not thirds - self._tried.get(pair, set()):
            return False
        self._tried[pair] = thirds
        logger.info("aligning %s with %s over %s", *pair, ", ".join(sorted(thirds)))
        usable = [Bridge(self.spaces[name], *(self._leg(side, name) for side in pair)) for name in sorted(thirds)]
        before, sides = self.found[pair], [self.spaces[name] for name in pair]
        after = self.aligner.fit_over(sides[0], sides[1], usable, progress=self._listener(pair)).alignment_
        if (after.quality.failed, -after.quality.ratio) >= (before.quality.failed, -before.quality.ratio):
            return False
        self._legs = {legs: leg for legs, leg in self._legs.items() if set(legs) != set(pair)}
        self._keep(pair, after)
        return True

    def _thirds(self, pair: Pair) -> Iterator[str]:
        """Yield the languages with which both sides were aligned."""
        for name in self.spaces:
            if name not in pair and not any(self._between(side, name).quality.failed for side in pair):
                yield name

    def _leg(self, side: str, third: str) -> Leg:
        if (side, third) not in self._legs:
            alignment = self._between(side, third).on(self.aligner.device, self.aligner.backend)
            self._legs[side, third] = Leg.of(alignment if side < third else alignment.reversed())
        return self._legs[side, third]

    def _between(self, one: str, other: str) -> Alignment:
        return self.found[pair_of(one, other)]

    def _keep(self, pair: Pair, alignment: Alignment) -> None:
        self.found[pair] = alignment
        self.store.save(pair, alignment)

    def _listener(self, pair: Pair) -> ProgressCallback | None:
        return None if self._progress is None else partial(self._progress, pairs_of(self.spaces).index(pair))


def _with_spaces(alignment: Alignment, src: Embeddings, tgt: Embeddings) -> Alignment:
    """Return a loaded alignment with vectors that are in memory."""
    sides = [replace(side, source=space) for side, space in ((alignment.src_side, src), (alignment.tgt_side, tgt))]
    return replace(alignment, src_side=sides[0], tgt_side=sides[1])
