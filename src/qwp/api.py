"""The functions most users need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from qwp.methods import Multi, make_aligner
from qwp.methods.inputs import Space
from qwp.methods.run import Progress, ProgressCallback
from qwp.results.alignment import Alignment
from qwp.results.checkpoints import Checkpoint
from qwp.results.several import MultiAlignment
from qwp.spaces.embeddings import FloatArray
from qwp.spaces.lexicon import Lexicon

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from qwp.methods.options import Options


def align(
    src: Space,
    tgt: Space,
    method: str = "qwp",
    seed: int = 0,
    *,
    lexicon: Lexicon | None = None,
    start_matrix: FloatArray | None = None,
    progress: ProgressCallback | None = None,
    checkpoint: Checkpoint | None = None,
    **options: Unpack[Options],
) -> Alignment:
    """Align `src` onto `tgt` and return the result.

    src, tgt: Embeddings, arrays (n, d) or paths. method: one of `qwp.methods.METHODS`; options: its parameters.
    lexicon: for supervised methods, and for others with `start="lexicon"`; start_matrix: with `start="matrix"`.
    """
    aligner = make_aligner(method, seed=seed, **options)
    aligner.fit(src, tgt, lexicon=lexicon, start_matrix=start_matrix, progress=progress, checkpoint=checkpoint)
    return aligner.alignment_


def align_many(
    pairs: Sequence[tuple[Space, Space]],
    method: str = "qwp",
    seed: int = 0,
    *,
    progress: Callable[[int, Progress], None] | None = None,
    **options: Unpack[Options],
) -> list[Alignment]:
    """Align many pairs (src, tgt) with the same settings; on a GPU several in lock-step.

    progress gets the number of the pair before the event. options: parameters of the method.
    """
    return make_aligner(method, seed=seed, **options).fit_many(pairs, progress=progress)


def align_all(
    spaces: Mapping[str, Space],
    hub: str | None = None,
    seed: int = 0,
    *,
    progress: ProgressCallback | None = None,
    checkpoint: Checkpoint | None = None,
    **options: Unpack[Options],
) -> MultiAlignment:
    """Put several languages, by name, into the space of one of them, the hub (by default the last), with `multi`."""
    aligner = make_aligner("multi", seed=seed, **options)
    assert isinstance(aligner, Multi)
    return aligner.fit_all(spaces, hub=hub, progress=progress, checkpoint=checkpoint)
