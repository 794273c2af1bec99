"""The functions that most users need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from qwp.arrays import AnyFloats
from qwp.methods import lexicon_start, make_aligner
from qwp.methods.align_all import align_all as every_two
from qwp.results.alignment import Alignment
from qwp.results.all_pairs import AllPairs, PairStore
from qwp.results.checkpoints import Checkpoint
from qwp.showing.events import PairCallback, ProgressCallback
from qwp.spaces.lexicon import PairsOfWords
from qwp.spaces.objects import Space

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from qwp.methods.options import Method, Options


def align(
    src: Space,
    tgt: Space,
    method: Method = "qwp",
    seed: int = 0,
    *,
    lexicon: PairsOfWords | None = None,
    start_matrix: AnyFloats | None = None,
    via: Sequence[Space] = (),
    progress: bool | ProgressCallback | None = None,
    checkpoint: Checkpoint | None = None,
    **options: Unpack[Options],
) -> Alignment:
    """Align `src` onto `tgt` and return the alignment.

    Args:
        src: Embeddings, a path, an array (n, d), a DataFrame, gensim KeyedVectors, a dict of words to vectors or a pair
            (words, array). `qwp.spaces.objects` documents how each is read.
        tgt: likewise, (m, d').
        method: one of `qwp.methods.METHODS`.
        seed: seed of all random choices.
        lexicon: known pairs for supervised methods and for the initialization of others: a Lexicon, a path, pairs of
            words or a dict.
        start_matrix: an initial map (d, d') for `start="matrix"`.
        via: third spaces, for two spaces that are hard to align directly. Both are aligned with each of these bridges,
            and the joined lexicons initialize the alignment, which is judged on its own.
        progress: True for a progress bar on stderr, or a function that gets every event.
        checkpoint: saves the state of a long run and continues an interrupted one.
        options: parameters of the method.
    """
    aligner = make_aligner(method, seed=seed, **{**lexicon_start(method, given=lexicon is not None), **options})
    aligner.fit(src, tgt, lexicon=lexicon, start_matrix=start_matrix, via=via, progress=progress, checkpoint=checkpoint)
    return aligner.alignment_


def align_many(
    pairs: Sequence[tuple[Space, Space]],
    method: Method = "qwp",
    seed: int = 0,
    *,
    progress: bool | PairCallback | None = None,
    **options: Unpack[Options],
) -> list[Alignment]:
    """Align many pairs (src, tgt) with the same parameters, on a GPU several in lock-step.

    progress: True for a progress bar on stderr, or a function that gets the number of the pair before the event.
    options: parameters of the method.
    """
    return make_aligner(method, seed=seed, **options).fit_many(pairs, progress=progress)


def align_all(
    spaces: Mapping[str, Space],
    method: Method = "qwp",
    seed: int = 0,
    *,
    out: str | Path | None = None,
    progress: bool | PairCallback | None = None,
    **options: Unpack[Options],
) -> AllPairs:
    """Align every two of several languages, by name, and bridge the pairs that fail over the others.

    Args:
        spaces: two or more, by the names of their languages; each as `align` takes it.
        method: one of `qwp.methods.METHODS`.
        seed: seed of all random choices.
        out: a folder that keeps each finished pair; an interrupted run continues from it.
        progress: True for a progress bar on stderr, or a function that gets the number of the pair before the event.
        options: parameters of the method.
    """
    store = PairStore(None if out is None else Path(out))
    return every_two(make_aligner(method, seed=seed, **options), spaces, store=store, progress=progress)


def demo(seed: int = 0, *, progress: bool | ProgressCallback | None = None, **options: Unpack[Options]) -> Alignment:
    """Align the English and Spanish vectors that the package contains."""
    from qwp.spaces.demo import load_demo

    src, tgt, _ = load_demo()
    return align(src, tgt, seed=seed, progress=progress, **options)
