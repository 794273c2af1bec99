"""How far re-weighted maps restore the extent of each direction, chosen by pairs that were held out.

Spaces differ in how much of their extent lies in few directions. Where it is spread out, most of it is worth restoring;
where a few directions are long, those say little about single words and drown the others. So maps are fitted to every
other pair of a dictionary, and the remaining pairs tell by how much they lead over their best rivals: if less with all
of the extent than with most of it, half is restored. Half of the pairs make noisier maps, which prefer more of the
extent than those of all pairs do; therefore the question is about one step more than what is chosen.
"""

from __future__ import annotations

from qwp import arrays
from qwp.arrays import Array
from qwp.maps import procrustes
from qwp.search.retrieval import Pairs, Retriever, retriever

MOST_RESTORED, HALF_RESTORED = 0.75, 0.5
# Fewer pairs for each dimension than this would choose by chance.
_FEWEST_PAIRS = 4


def chosen(x: Array, y: Array, pairs: Pairs, *, reweight: float, csls_k: int) -> float:
    """The power of de-whitening for maps fitted to these pairs: MOST_RESTORED or HALF_RESTORED.

    x: (n, d), y: (m, d) normalised rows; pairs: each other's best partners among them.
    """
    if len(pairs) < _FEWEST_PAIRS * x.shape[1]:
        return MOST_RESTORED
    with_all, with_most = (
        held_out_lead(x, y, pairs, power, reweight=reweight, csls_k=csls_k) for power in (1.0, MOST_RESTORED)
    )
    return HALF_RESTORED if with_most > with_all else MOST_RESTORED


def held_out_lead(x: Array, y: Array, pairs: Pairs, dewhiten: float, *, reweight: float, csls_k: int) -> float:
    """By how much CSLS the held-out pairs lead over their best rivals on the mean, under maps fitted to the others.

    Either side is searched for the partners of the other. The words that ask tell which answers are hubs.
    """
    xp = arrays.namespace(x)
    weights = xp.clip(pairs.scores[::2], 0.0, None)
    maps = procrustes.reweighted(
        xp.take(x, pairs.src[::2], axis=0),
        xp.take(y, pairs.tgt[::2], axis=0),
        reweight,
        weights=weights if bool(xp.any(weights > 0)) else None,
        dewhiten=dewhiten,
    )
    src, tgt = arrays.unit(x @ maps.src), arrays.unit(y @ maps.tgt)
    asked_src, asked_tgt = pairs.src[1::2], pairs.tgt[1::2]
    leads = []
    for keys, answers, words, rows in ((tgt, asked_tgt, src, asked_src), (src, asked_src, tgt, asked_tgt)):
        queries = xp.take(words, rows, axis=0)
        leads.append(_leads(retriever(keys, queries, csls_k=csls_k), queries, answers))
    return float(xp.mean(xp.concat(leads)))


def _leads(found: Retriever, queries: Array, answers: Array) -> Array:
    """The score of the answer of each query minus that of its best rival. queries: (n, d), answers: (n,). (n,)."""
    xp = arrays.namespace(queries)
    keys = xp.arange(found.keys.shape[0], device=arrays.device(queries))

    def block(rows: slice) -> Array:
        scores = found.scores(queries[rows, :])
        own = xp.expand_dims(keys, axis=0) == xp.expand_dims(answers[rows], axis=1)
        lowest = xp.min(scores, axis=1, keepdims=True)
        rivals = xp.max(xp.where(own, lowest, scores), axis=1)
        return xp.max(xp.where(own, scores, lowest), axis=1) - rivals

    return xp.concat(
        arrays.map_blocks(block, queries.shape[0], arrays.block_rows(found.keys.shape[0], queries), queries)
    )
