"""The map of both vocabularies: t-SNE of the neighbour graph, within each language and across the two.

Each word is attracted equally by its nearest words of its own language and by its best words of the other by CSLS: with
plain distances the two languages would lie apart. Attraction decreases with rank. All words repel each other. The
repulsive force is the gradient of a potential, which an FFT computes on a grid (Linderman et al. 2019).
benchmarks/explore.py compares the map with a projection and with UMAP.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import fft, sparse

from qwp import arrays
from qwp.arrays import AnyFloats, Ints
from qwp.explore.pairs import OnProgress, PairTable
from qwp.results import sidecars
from qwp.results.alignment import Alignment
from qwp.results.saved import EXPLORED
from qwp.spaces.embeddings import Side


@dataclass(frozen=True)
class TSNE:
    """The parameters of the layout; `python -m benchmarks.explore --layouts` compares layouts.

    Attributes:
        reach: ranks over which the attraction of neighbours falls by a factor of e.
        early_steps, late_steps: steps with strong attraction, which forms clusters, and with weak attraction.
        early_attraction, late_attraction: factor of the attraction; 12 in the early steps as in Linderman et al. 2019.
        early_momentum, late_momentum: as in van der Maaten and Hinton 2008.
        max_step: longest way of a word in one step.
        min_cells, max_cells, cell: cells of the grid along a side, and their size if no limit applies.
    """

    reach: float = 5.0
    early_steps: int = 100
    late_steps: int = 250
    early_attraction: float = 12.0
    late_attraction: float = 1.5
    early_momentum: float = 0.5
    late_momentum: float = 0.8
    max_step: float = 5.0
    min_cells: int = 64
    max_cells: int = 512
    cell: float = 0.4


_DEFAULT = TSNE()


def map_positions(
    alignment: Alignment, pairs: PairTable, on_progress: OnProgress, tsne: TSNE = _DEFAULT
) -> dict[Side, AnyFloats]:
    """Return cached or new positions (n, 2) and (m, 2) of the words, from 0 to 1 along the longer side."""
    n, m = len(pairs.src_rows), len(pairs.tgt_rows)
    known = sidecars.read(alignment.origin, EXPLORED, "plane", {"src": (n, 2), "tgt": (m, 2)})
    if known is None:
        both = [arrays.to_numpy(alignment.mapped("src"))[pairs.src_rows]]
        both.append(arrays.to_numpy(alignment.mapped("tgt"))[pairs.tgt_rows])
        positions = embedded(graph(pairs, tsne.reach), projected(np.concatenate(both)), on_progress, tsne)
        known = {"src": positions[:n], "tgt": positions[n:]}
        sidecars.write(alignment.origin, EXPLORED, "plane", known)
    return {"src": known["src"], "tgt": known["tgt"]}


def projected(rows: AnyFloats) -> AnyFloats:
    """Project rows (p, d) onto their first two principal components, (p, 2)."""
    centred = rows - rows.mean(axis=0)
    _, vectors = np.linalg.eigh(centred.T @ centred)
    found = centred @ vectors[:, -2:][:, ::-1]
    if found.shape[1] < 2:  # spaces of one dimension
        found = np.column_stack([found, np.zeros(len(found))])
    return np.asarray(found, dtype=np.float32)


def graph(pairs: PairTable, reach: float = TSNE.reach) -> sparse.csr_matrix:
    """Return the affinities of all words, (p, p) with p = n + m, symmetric, with sum one."""
    n = len(pairs.src_rows)
    parts = (
        (0, 0, pairs.src_near),
        (n, n, pairs.tgt_near),
        (0, n, pairs.src_across),
        (n, 0, pairs.tgt_across),
    )
    p = n + len(pairs.tgt_rows)
    one_way = sum((_affinities(*part, p, reach) for part in parts), sparse.csr_matrix((p, p), dtype=np.float32))
    both = one_way + one_way.T
    both.sum_duplicates()
    both.sort_indices()
    return both / max(both.sum(), np.finfo(np.float32).tiny)


def _affinities(first: int, first_other: int, near: Ints, p: int, reach: float) -> sparse.csr_matrix:
    """Return the affinities of words to their neighbours (r, k), best first; those of each word sum to one."""
    strength = np.where(near >= 0, np.exp(-np.arange(near.shape[1]) / reach), 0.0)
    strength /= np.maximum(strength.sum(axis=1, keepdims=True), 1e-12)
    rows, columns = np.nonzero(strength)
    where = (first + rows, first_other + near[rows, columns])
    return sparse.csr_matrix((strength[rows, columns].astype(np.float32), where), shape=(p, p))


def embedded(
    affinities: sparse.csr_matrix, start: AnyFloats, on_progress: OnProgress, tsne: TSNE = _DEFAULT
) -> AnyFloats:
    """Minimise the t-SNE objective.

    Args:
        affinities: (p, p), symmetric.
        start: initial positions (p, 2) of any scale.
        on_progress: called every ten steps.
        tsne: parameters.

    Returns:
        Positions (p, 2) from 0 to 1.
    """
    p = len(start)
    y: AnyFloats = (start / max(float(start[:, 0].std()), 1e-12) * 1e-2).astype(np.float32)
    moved: AnyFloats = np.zeros_like(y)
    gains: AnyFloats = np.ones_like(y)
    attraction = _Attraction(affinities)
    total = tsne.early_steps + tsne.late_steps
    for step in range(total):
        if step % 10 == 0:
            on_progress("map", step, total)
        early = step < tsne.early_steps
        factor = tsne.early_attraction if early else tsne.late_attraction
        gradient = 4.0 * (factor * attraction.of(y) - _repulsion(y, tsne))
        # A word that keeps its direction speeds up, and one that oscillates slows down (Jacobs 1988).
        gains = np.maximum(np.where(gradient * moved < 0, gains + 0.2, gains * 0.8), 0.01).astype(np.float32)
        rate = max(p / tsne.early_attraction, 50.0) / 4.0
        moved = (tsne.early_momentum if early else tsne.late_momentum) * moved - rate * gains * gradient
        length = np.linalg.norm(moved, axis=1, keepdims=True)
        moved *= np.minimum(1.0, tsne.max_step / np.maximum(length, 1e-12))
        y = (y + moved).astype(np.float32)
        y -= y.mean(axis=0)
    on_progress("map", total, total)
    return _scaled(y)


def _scaled(y: AnyFloats) -> AnyFloats:
    """Scale positions to 0 to 1 along the longer side, centred along the other."""
    low, high = y.min(axis=0), y.max(axis=0)
    size = max(float((high - low).max()), 1e-12)
    return np.asarray((y - (low + high) / 2) / size + 0.5, dtype=np.float32)


@dataclass(frozen=True)
class _Attraction:
    """The attractive force of neighbours."""

    affinities: sparse.csr_matrix

    def of(self, y: AnyFloats) -> AnyFloats:
        """Return the sum over j of p_ij (y_i - y_j) / (1 + |y_i - y_j|^2), (p, 2)."""
        data, columns, starts = self.affinities.data, self.affinities.indices, self.affinities.indptr
        difference = np.repeat(y, np.diff(starts), axis=0)
        difference -= y[columns]
        strength = data / (1.0 + np.einsum("ij,ij->i", difference, difference))
        force = sparse.csr_matrix((strength, columns, starts), shape=self.affinities.shape)
        return np.asarray(y * (force @ np.ones((len(y), 1), dtype=y.dtype)) - force @ y)


def _repulsion(y: AnyFloats, tsne: TSNE = _DEFAULT) -> AnyFloats:
    """Return the sum over j of (y_i - y_j) / (1 + |y_i - y_j|^2)^2, divided by the sum of all
    1 / (1 + |y_i - y_j|^2), (p, 2).

    A grid holds the potential of 1 / (1 + d^2); the force is minus half of its gradient.
    """
    low, high = y.min(axis=0), y.max(axis=0)
    size = max(float((high - low).max()), 1e-3)
    cells = int(np.clip(fft.next_fast_len(int(size / tsne.cell) + 4), tsne.min_cells, tsne.max_cells))
    step = size / (cells - 4)
    at = (y - low) / step + 1.0
    corner = np.minimum(at.astype(np.int64), cells - 2)
    share = (at - corner).astype(np.float32)
    flat, weights = _corners(corner, share, cells)
    mass = sum(np.bincount(where, weight, cells * cells) for where, weight in zip(flat, weights, strict=True))
    potential = _convolved(np.asarray(mass, dtype=np.float32).reshape(cells, cells), step)
    slopes = np.gradient(potential, step)
    fields = (potential, *slopes)
    height, dx, dy = (
        sum(field.ravel()[where] * weight for where, weight in zip(flat, weights, strict=True)) for field in fields
    )
    # Each word contributes exactly 1 to the potential at its own position, but does not repel itself.
    everything = max(float(np.sum(height)) - len(y), 1e-6)
    return np.column_stack([dx, dy]).astype(np.float32) * np.float32(-0.5 / everything)


def _corners(corner: Ints, share: AnyFloats, cells: int) -> tuple[list[Ints], list[AnyFloats]]:
    """Return the flat indices of the four cells around each position, and the weight of each."""
    first = corner[:, 0] * cells + corner[:, 1]
    a, b = share[:, 0], share[:, 1]
    return [first, first + 1, first + cells, first + cells + 1], [
        (1 - a) * (1 - b),
        (1 - a) * b,
        a * (1 - b),
        a * b,
    ]


def _convolved(mass: AnyFloats, step: float) -> AnyFloats:
    """Return the potential of masses on a grid (c, c) with cells of size `step`."""
    cells = len(mass)
    wide = fft.next_fast_len(2 * cells, real=True)
    distance = np.minimum(np.arange(wide), wide - np.arange(wide)).astype(np.float32) * step
    kernel = 1.0 / (1.0 + distance[:, None] ** 2 + distance[None, :] ** 2)
    product = fft.rfft2(mass, s=(wide, wide)) * fft.rfft2(kernel.astype(np.float32))
    return np.asarray(fft.irfft2(product, s=(wide, wide))[:cells, :cells], dtype=np.float32)
