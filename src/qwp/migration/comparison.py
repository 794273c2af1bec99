"""Comparison of two collections of vectors: whether one model made them, and whether one of them mixes two models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from qwp import arrays
from qwp.arrays import AnyFloats, Ints, Stream
from qwp.errors import InputError
from qwp.maps.procrustes import procrustes
from qwp.migration.adapter import unit_rows
from qwp.migration.measure import AT, overlap
from qwp.migration.sources import all_ids, as_source, known_pairs, vectors_of
from qwp.spaces.objects import Space
from qwp.spaces.stores import ReadableStore

SAME, ROTATED, RELATED, DIFFERENT, MIXED = VERDICTS = (
    *("same model", "same model, rotated", "related models", "different models", "mixed models"),
)


@dataclass(frozen=True)
class Thresholds:
    """What distinguishes the verdicts.

    Measured on encoders of the benchmark data (MiniLM, WordLlama, e5-small, USE): quantisation to 8 bits leaves a mean
    cosine of 0.9999 and a residual of 0.000. Two encoders of the same texts share 0.37 and 0.40 of ten neighbours, with
    residuals of 0.68 and 0.50; of other texts, 0.00 with 0.97.

    Attributes:
        same: mean cosine from which one model made both sides, and cosine from which it made both vectors of an item.
        rotated: residual up to which one side is a rotation of the other.
        related: overlap from which two models are related.
        mixed: smallest share of items that another model made; fewer may be damaged vectors.
        gap: median cosine of the items of the same model minus that of the others. Items with new texts drift a little;
            vectors of two models have cosines as of unrelated vectors.
    """

    same: float = 0.99
    rotated: float = 0.05
    related: float = 0.2
    mixed: float = 0.02
    gap: float = 0.5

    def verdict(self, cosine: float | None, residual: float, overlap: float) -> str:
        """Return the verdict on two sides that are not mixed."""
        if cosine is not None and cosine >= self.same:
            return SAME
        if residual <= self.rotated:
            return ROTATED
        return RELATED if overlap >= self.related else DIFFERENT

    def other_model(self, cosines: AnyFloats | None) -> Ints:
        """Return the rows of the smaller group if some items have the same vector on both sides and others do not."""
        if cosines is None:
            return np.empty(0, dtype=np.int64)
        changed = cosines < self.same
        mixed = self.mixed <= float(np.mean(changed)) <= 1.0 - self.mixed
        gap = mixed and float(np.median(cosines[~changed]) - np.median(cosines[changed])) > self.gap
        return np.flatnonzero(changed) if gap else np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class Moved:
    """An item and its drift: one minus the cosine of its two vectors after the best rotation."""

    id: str
    drift: float


@dataclass(frozen=True)
class Comparison:
    """Figures about two collections of vectors of the same items.

    Attributes:
        verdict: one of VERDICTS.
        items: number of items in both that were compared.
        dims: dimensions of the two sides.
        cosine: mean cosine of the two vectors of an item as they are; None if the dimensions differ.
        cka: linear centred kernel alignment, 0 to 1 (Kornblith et al. 2019).
        overlap: mean share of the ten nearest items of an item that are the same on both sides.
        residual: share of the variance that the best rotation leaves unexplained.
        mean_drift: mean drift of all items.
        moved: the items with the largest drift.
        other_model: ids whose vectors were made by another model than those of the other side, where most were not.
    """

    verdict: str
    items: int
    dims: tuple[int, int]
    cosine: float | None
    cka: float
    overlap: float
    residual: float
    mean_drift: float
    moved: Sequence[Moved]
    other_model: Sequence[str] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return {**asdict(self), "dims": list(self.dims), "other_model": list(self.other_model)}


def compare(
    a: Space | ReadableStore,
    b: Space | ReadableStore,
    *,
    pairs: Sequence[tuple[str, str]] | None = None,
    top: int = 20,
    seed: int = 0,
    max_items: int = 5000,
) -> Comparison:
    """Compare two collections of vectors, and find the items that another model made than the rest.

    Args:
        a: a path, a store, or vectors as `qwp.align` takes them.
        b: likewise.
        pairs: ids of the same item in both; by default the ids in common.
        top: number of most moved items to return.
        seed: of the sample of items.
        max_items: items that are compared, drawn at random. With 5,000 the standard error of a share is at most 0.7
            points.
    """
    sources = as_source(a, "src", {}), as_source(b, "tgt", {})
    ids = all_ids(sources[0]), all_ids(sources[1])
    found = known_pairs(*ids, pairs)
    if len(found) <= AT[-1]:
        raise InputError(
            f"the two sides have {len(found)} items in common, expected more than {AT[-1]}: give pairs of ids, or "
            "vectors with ids"
        )
    chosen = np.sort(arrays.rng(seed, Stream.MIGRATION, 1).permutation(len(found))[:max_items])
    names = [found[row] for row in chosen.tolist()]
    sides = []
    for source, wanted in zip(sources, zip(*names, strict=True), strict=True):
        rows, vectors = vectors_of(source, wanted)
        sides.append(unit_rows(vectors[[rows[id] for id in wanted]]))
    return _compared(sides[0], sides[1], [name for name, _ in names], top)


def _compared(x: AnyFloats, y: AnyFloats, ids: Sequence[str], top: int) -> Comparison:
    """Compare unit rows (n, d) and (n, e) of the same items."""
    same_width = x.shape[1] == y.shape[1]
    cosines = np.sum(x * y, axis=1) if same_width else None
    thresholds = Thresholds()
    others = thresholds.other_model(cosines)
    kept = np.setdiff1d(np.arange(len(x)), others)
    drift, residual = _drift(x, y, kept)
    order = np.argsort(-drift, kind="stable")[:top].tolist()
    shared = overlap(x, y)
    cosine = None if cosines is None else float(np.mean(cosines))
    return Comparison(
        MIXED if len(others) else thresholds.verdict(cosine, residual, shared),
        len(x),
        (int(x.shape[1]), int(y.shape[1])),
        cosine,
        _cka(x, y),
        shared,
        residual,
        float(np.mean(drift)),
        [Moved(ids[row], float(drift[row])) for row in order],
        [ids[row] for row in others.tolist()],
    )


def _drift(x: AnyFloats, y: AnyFloats, kept: Ints) -> tuple[AnyFloats, float]:
    """Return the drift of all items, (n,), under the best rotation of the kept ones, and its residual."""
    mean_x, mean_y = x[kept].mean(axis=0), y[kept].mean(axis=0)
    cx, cy = unit_rows(x - mean_x), unit_rows(y - mean_y)
    rotation = arrays.to_numpy(procrustes(cx[kept], cy[kept]))
    cosines = np.sum(unit_rows(cx @ rotation) * cy, axis=1)
    drift: AnyFloats = 1.0 - cosines
    # With unit rows and the best scale, the unexplained share is one minus the squared correlation.
    explained = float(np.sum((cx[kept] @ rotation) * cy[kept]))
    size = float(np.linalg.norm(cx[kept] @ rotation) * np.linalg.norm(cy[kept]))
    return drift, max(0.0, 1.0 - (explained / max(size, 1e-12)) ** 2)


def _cka(x: AnyFloats, y: AnyFloats) -> float:
    x, y = (side.astype(np.float64) - side.mean(axis=0) for side in (x, y))
    within = float(np.linalg.norm(x.T @ x) * np.linalg.norm(y.T @ y))
    return float(np.linalg.norm(x.T @ y)) ** 2 / max(within, 1e-300)
