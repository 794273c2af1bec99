"""How much of each side found a partner, where the sides may hold different things.

Two items are partners if each is the nearest of the other among all. What has no counterpart rarely has a partner: what
is nearest to it is, as a rule, the counterpart of something else, and nearer to that.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from qwp import arrays
from qwp.arrays import Array, Stream
from qwp.maps.procrustes import Maps
from qwp.search.retrieval import Retriever, retriever

# Items of the other side among which partners are sought; of more than that, some are left out.
_AMONG = 100_000


@dataclass(frozen=True)
class Partners:
    """The share of the items of each side that have a partner, 0 to 1."""

    src: float
    tgt: float

    def __str__(self) -> str:
        return f"{100 * self.src:.0f} % of src, {100 * self.tgt:.0f} % of tgt"

    def to_dict(self) -> dict[str, float]:
        """Plain JSON types."""
        return asdict(self)


def partners(x: Array, y: Array, maps: Maps, *, seed: int = 0, asked: int = 2000) -> Partners:
    """The shares of a sample of either side. x: (n, d), y: (m, d) normalised rows.

    asked: items in the sample; of 2,000 a share is known to about two points.
    """
    src = arrays.unit(x[:_AMONG, :] @ maps.src)
    tgt = y[:_AMONG, :]
    tgt = arrays.unit(tgt if maps.tgt is None else tgt @ maps.tgt)
    of_src, of_tgt = (retriever(side, side, method="nn") for side in (src, tgt))
    return Partners(_share(src, of_src, tgt, of_tgt, seed, asked), _share(tgt, of_tgt, src, of_src, seed, asked))


def _share(side: Array, of_side: Retriever, others: Array, of_others: Retriever, seed: int, asked: int) -> float:
    """The share of some rows of `side` (n, d) whose nearest among `others` (m, d) has them as its nearest."""
    xp = arrays.namespace(side)
    n = side.shape[0]
    rows = arrays.asarray(arrays.rng(seed, Stream.PARTNERS).permutation(n)[:asked], side)
    nearest, _ = of_others.top_k(xp.take(side, rows, axis=0), 1)
    back, _ = of_side.top_k(xp.take(others, nearest[:, 0], axis=0), 1)
    return float(xp.mean(xp.astype(back[:, 0] == rows, side.dtype)))
