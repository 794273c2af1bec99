"""Both vocabularies in one plane: t-SNE of the graph of neighbours, within each language and across the two.

Each word is drawn to its nearest words of its own language and to its best ones of the other by CSLS, half and half:
by plain distances the two languages would lie apart. How strongly follows from the ranks. All words repel each other;
that is a convolution of the plane with one kernel, by FFT on a grid (Linderman et al. 2019), of which the force is the
gradient. benchmarks/explore.py compares it with a projection and with UMAP.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import fft, sparse

from qwp import arrays
from qwp.explore.findings import Findings, Told
from qwp.results import sidecars
from qwp.results.alignment import Alignment
from qwp.results.saved import EXPLORED
from qwp.spaces.embeddings import FloatArray, Side
from qwp.spaces.frequency import Ints

# Ranks over which the pull of neighbours falls to a third.
_REACH = 5.0
# Steps in which everything is pulled together, and those in which it spreads out; by how much more it is pulled.
_EARLY, _LATE = 100, 250
_EARLY_PULL, _LATE_PULL = 12.0, 1.5
_EARLY_MOMENTUM, _LATE_MOMENTUM = 0.5, 0.8
# The longest way of a word in one step.
_LONGEST = 5.0
# Cells of the grid along one side, and their size where so many suffice.
_FEWEST_CELLS, _MOST_CELLS = 64, 512
_CELL = 0.4
_TOLD_EVERY = 10


def plane_of(alignment: Alignment, findings: Findings, tell: Told) -> dict[Side, FloatArray]:
    """Places (n, 2) and (m, 2) of the words, from 0 to 1 along the longer side; kept beside the alignment."""
    n, m = len(findings.src_rows), len(findings.tgt_rows)
    known = sidecars.read(alignment.origin, EXPLORED, "plane", {"src": (n, 2), "tgt": (m, 2)})
    if known is None:
        both = [arrays.to_numpy(alignment.mapped("src"))[findings.src_rows]]
        both.append(arrays.to_numpy(alignment.mapped("tgt"))[findings.tgt_rows])
        places = laid_out(graph(findings), projected(np.concatenate(both)), tell)
        known = {"src": places[:n], "tgt": places[n:]}
        sidecars.write(alignment.origin, EXPLORED, "plane", known)
    return {"src": known["src"], "tgt": known["tgt"]}


def projected(rows: FloatArray) -> FloatArray:
    """The first two principal components of rows (p, d), (p, 2)."""
    centred = rows - rows.mean(axis=0)
    _, vectors = np.linalg.eigh(centred.T @ centred)
    found = centred @ vectors[:, -2:][:, ::-1]
    if found.shape[1] < 2:  # spaces of one dimension
        found = np.column_stack([found, np.zeros(len(found))])
    return np.asarray(found, dtype=np.float32)


def graph(findings: Findings) -> sparse.csr_matrix:
    """How strongly words pull each other, (p, p) with p = n + m, symmetric, of sum one."""
    n = len(findings.src_rows)
    parts = (
        (0, 0, findings.src_near),
        (n, n, findings.tgt_near),
        (0, n, findings.src_across),
        (n, 0, findings.tgt_across),
    )
    p = n + len(findings.tgt_rows)
    one_way = sum((_pulls(*part, p) for part in parts), sparse.csr_matrix((p, p), dtype=np.float32))
    both = one_way + one_way.T
    both.sum_duplicates()
    both.sort_indices()
    return both / max(both.sum(), np.finfo(np.float32).tiny)


def _pulls(first: int, first_other: int, near: Ints, p: int) -> sparse.csr_matrix:
    """What lists of neighbours (r, k), best first, pull with: the sum of each word is one."""
    strength = np.where(near >= 0, np.exp(-np.arange(near.shape[1]) / _REACH), 0.0)
    strength /= np.maximum(strength.sum(axis=1, keepdims=True), 1e-12)
    rows, columns = np.nonzero(strength)
    where = (first + rows, first_other + near[rows, columns])
    return sparse.csr_matrix((strength[rows, columns].astype(np.float32), where), shape=(p, p))


def laid_out(pulls: sparse.csr_matrix, start: FloatArray, tell: Told) -> FloatArray:
    """Places (p, 2) from 0 to 1 for a graph of pulls (p, p), from places (p, 2) of any size."""
    p = len(start)
    y: FloatArray = (start / max(float(start[:, 0].std()), 1e-12) * 1e-2).astype(np.float32)
    moved: FloatArray = np.zeros_like(y)
    gains: FloatArray = np.ones_like(y)
    attraction = _Attraction(pulls)
    total = _EARLY + _LATE
    for step in range(total):
        if step % _TOLD_EVERY == 0:
            tell("map", step, total)
        early = step < _EARLY
        pull = _EARLY_PULL if early else _LATE_PULL
        gradient = 4.0 * (pull * attraction.of(y) - _repulsion(y))
        # Where a word goes on in its direction it may go faster, where it swings it goes slower (Jacobs 1988).
        gains = np.maximum(np.where(gradient * moved < 0, gains + 0.2, gains * 0.8), 0.01).astype(np.float32)
        rate = max(p / _EARLY_PULL, 50.0) / 4.0
        moved = (_EARLY_MOMENTUM if early else _LATE_MOMENTUM) * moved - rate * gains * gradient
        length = np.linalg.norm(moved, axis=1, keepdims=True)
        moved *= np.minimum(1.0, _LONGEST / np.maximum(length, 1e-12))
        y = (y + moved).astype(np.float32)
        y -= y.mean(axis=0)
    tell("map", total, total)
    return _scaled(y)


def _scaled(y: FloatArray) -> FloatArray:
    """Places from 0 to 1 along the longer side, in the middle along the other."""
    low, high = y.min(axis=0), y.max(axis=0)
    size = max(float((high - low).max()), 1e-12)
    return np.asarray((y - (low + high) / 2) / size + 0.5, dtype=np.float32)


@dataclass(frozen=True)
class _Attraction:
    """What neighbours pull with."""

    pulls: sparse.csr_matrix

    def of(self, y: FloatArray) -> FloatArray:
        """The sum over j of p_ij (y_i - y_j) / (1 + |y_i - y_j|^2), (p, 2)."""
        data, columns, starts = self.pulls.data, self.pulls.indices, self.pulls.indptr
        way = np.repeat(y, np.diff(starts), axis=0)
        way -= y[columns]
        strength = data / (1.0 + np.einsum("ij,ij->i", way, way))
        now = sparse.csr_matrix((strength, columns, starts), shape=self.pulls.shape)
        return np.asarray(y * (now @ np.ones((len(y), 1), dtype=y.dtype)) - now @ y)


def _repulsion(y: FloatArray) -> FloatArray:
    """The sum over j of (y_i - y_j) / (1 + |y_i - y_j|^2)^2, divided by that of all 1 / (1 + |y_i - y_j|^2), (p, 2).

    The potential of 1 / (1 + d^2) on a grid; minus half of its gradient is the force.
    """
    low, high = y.min(axis=0), y.max(axis=0)
    size = max(float((high - low).max()), 1e-3)
    cells = int(np.clip(fft.next_fast_len(int(size / _CELL) + 4), _FEWEST_CELLS, _MOST_CELLS))
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
    # Each word is part of the potential that it meets, with exactly one; it does not repel itself.
    everything = max(float(np.sum(height)) - len(y), 1e-6)
    return np.column_stack([dx, dy]).astype(np.float32) * np.float32(-0.5 / everything)


def _corners(corner: Ints, share: FloatArray, cells: int) -> tuple[list[Ints], list[FloatArray]]:
    """The four cells around each place, flat, and how much of it belongs to each."""
    first = corner[:, 0] * cells + corner[:, 1]
    a, b = share[:, 0], share[:, 1]
    return [first, first + 1, first + cells, first + cells + 1], [
        (1 - a) * (1 - b),
        (1 - a) * b,
        a * (1 - b),
        a * b,
    ]


def _convolved(mass: FloatArray, step: float) -> FloatArray:
    """The potential of masses on a grid (c, c) with cells of this size."""
    cells = len(mass)
    wide = fft.next_fast_len(2 * cells, real=True)
    away = np.minimum(np.arange(wide), wide - np.arange(wide)).astype(np.float32) * step
    kernel = 1.0 / (1.0 + away[:, None] ** 2 + away[None, :] ** 2)
    product = fft.rfft2(mass, s=(wide, wide)) * fft.rfft2(kernel.astype(np.float32))
    return np.asarray(fft.irfft2(product, s=(wide, wide))[:cells, :cells], dtype=np.float32)
