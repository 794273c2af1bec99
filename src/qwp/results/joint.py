"""A joint space of several languages, from the lexicons that their pairwise alignments induce.

The maps are orthogonal and solve a generalised Procrustes problem: they minimise the weighted distances of all induced
pairs of all languages (Gower 1975; for word vectors Kementchedjhieva et al. 2018, and Chen and Cardie 2018, who induce
the pairs in the joint space). Weights are the confidences of the pairs. The hub is not rotated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from qwp import arrays
from qwp.arrays import Floats
from qwp.errors import InputError
from qwp.maps.procrustes import polar_svd
from qwp.results.alignment import Alignment
from qwp.results.several import MultiAlignment
from qwp.results.sides import AlignedSide

Pair = tuple[str, str]
MOST_SWEEPS = 100
TOLERANCE = 1e-4
"""The sweeps end when no entry of a map changes by more."""


@dataclass(frozen=True)
class Edge:
    """Two languages whose alignment did not fail.

    product: X^T C Y (width, width) of the induced pairs of rows with confidences C. estimate: of the accuracy, 0 to 1.
    """

    product: Floats
    estimate: float

    @property
    def reversed(self) -> Edge:
        """The same edge from the target to the source."""
        return Edge(self.product.T, self.estimate)


def joint_space(alignments: Mapping[Pair, Alignment], names: Sequence[str], hub: str | None = None) -> MultiAlignment:
    """Return the joint space of all languages that alignments connect with the hub.

    Args:
        alignments: of every two languages, by their names; those that failed are not used.
        names: of the languages.
        hub: the language whose space is the joint one; by default the one with the highest estimates.
    """
    sides: dict[str, AlignedSide] = {}
    for (a, b), each in alignments.items():
        sides |= {a: each.src_side, b: each.tgt_side}
    vectors = {name: normalised(side) for name, side in sides.items()}
    width = max(each.shape[1] for each in vectors.values())
    edges: dict[Pair, Edge] = {}
    for (a, b), alignment in alignments.items():
        if not alignment.quality.failed:
            edges[a, b] = _edge(alignment, vectors[a], vectors[b], width)
            edges[b, a] = edges[a, b].reversed
    hub = strongest(edges, names) if hub is None else hub
    tree = spanning_tree(edges, hub)
    if not tree:
        raise InputError(f"no alignment with {hub} succeeded, so no language can share its space: choose another hub")
    maps = swept(edges, first_maps(edges, tree, hub, width), hub)
    common = sides[hub].space.dim
    onto_hub = {
        name: _onto_hub(alignments, sides, name, hub, maps[name][:, :common])
        for name in names
        if name in maps and name != hub
    }
    return MultiAlignment(hub, onto_hub)


def normalised(side: AlignedSide) -> Floats:
    """Return the vectors of a language as they were aligned, in the order of the file, (n, d)."""
    return np.asarray(side.normalization.at(arrays.HOST).apply(side.space.vectors.astype(np.float32, copy=False)))


def _edge(alignment: Alignment, x: Floats, y: Floats, width: int) -> Edge:
    (src, tgt), confidence = alignment.induced_rows()
    product = np.zeros((width, width))
    product[: x.shape[1], : y.shape[1]] = (x[src] * confidence[:, None].astype(x.dtype)).T @ y[tgt]
    return Edge(product, alignment.estimate.overall.p1)


def strongest(edges: Mapping[Pair, Edge], names: Sequence[str]) -> str:
    """Return the language whose alignments have the largest sum of estimates."""
    totals = {name: sum(edge.estimate for (a, _), edge in edges.items() if a == name) for name in names}
    return max(totals, key=lambda name: totals[name])


def spanning_tree(edges: Mapping[Pair, Edge], root: str) -> list[Pair]:
    """Return the maximum spanning tree of estimates (Prim 1957): new languages and their parents, from the root on."""
    tree: list[Pair] = []
    inside = {root}
    while True:
        leaving = {pair: edge for pair, edge in edges.items() if pair[0] not in inside and pair[1] in inside}
        if not leaving:
            return tree
        best = max(leaving, key=lambda pair: leaving[pair].estimate)
        tree.append(best)
        inside.add(best[0])


def first_maps(edges: Mapping[Pair, Edge], tree: Sequence[Pair], hub: str, width: int) -> dict[str, Floats]:
    """Return the Procrustes maps (width, width) onto the hub along a tree."""
    maps: dict[str, Floats] = {hub: np.eye(width)}
    for child, parent in tree:
        maps[child] = np.asarray(polar_svd(edges[child, parent].product @ maps[parent]))
    return maps


def swept(edges: Mapping[Pair, Edge], maps: Mapping[str, Floats], hub: str) -> dict[str, Floats]:
    """Return the maps after sweeps, each of which solves for one language after the other with all others fixed."""
    current = dict(maps)
    for _ in range(MOST_SWEEPS):
        change = 0.0
        for name in (each for each in current if each != hub):
            total = sum(edge.product @ current[b] for (a, b), edge in edges.items() if a == name and b in current)
            solved = np.asarray(polar_svd(np.asarray(total)))
            change = max(change, float(np.abs(solved - current[name]).max()))
            current[name] = solved
        if change < TOLERANCE:
            break
    return current


def _onto_hub(
    alignments: Mapping[Pair, Alignment], sides: Mapping[str, AlignedSide], name: str, hub: str, w: Floats
) -> Alignment:
    """Return the alignment of a language with the hub in the joint space, with a verdict of its own."""
    stored = alignments.get((name, hub))
    pairwise = alignments[hub, name].reversed() if stored is None else stored
    src = replace(sides[name], map=np.ascontiguousarray(w[: sides[name].space.dim, :], dtype=np.float32))
    of = pairwise.provenance
    provenance = replace(of, config={**of.config, "map": "orthogonal"}, candidates=[], initializer=None, bridges=[])
    found = replace(
        pairwise,
        src_side=src,
        tgt_side=replace(sides[hub], map=None),
        provenance=provenance,
        history=[],
        origin=None,
    )
    return replace(found, quality=found.judge_again())
