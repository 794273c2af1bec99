"""A small transport plan between two aligned spaces, for a picture: few centres, each named by a word."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from qwp import arrays
from qwp.arrays import Stream
from qwp.experiments.packing import pack
from qwp.judging.aligned import AlignedSpaces
from qwp.ot.coresets import kmeans_plusplus_bank
from qwp.ot.costs import cost_matrix
from qwp.ot.sinkhorn import sinkhorn

Floats = npt.NDArray[np.float64]

CENTRES, WORDS, EPSILON = 32, 5000, 0.05
LEVELS = 255


def sketch_plan(aligned: AlignedSpaces) -> dict[str, Any]:
    """The plan between the centres of the most frequent words of both sides, k-means++ and one step of Lloyd each.

    src, tgt: the word nearest to each centre; plan: row by row, in parts of the largest entry, packed. Similar source
    centres are beside each other, target centres where their mass comes from: a plan that matches shows a diagonal.
    """
    centres, weights, words = zip(*(_centres(aligned, number) for number in (0, 1)), strict=True)
    plan = np.asarray(sinkhorn(cost_matrix(*centres), *weights, epsilon=EPSILON).matrix)
    rows = _in_line(centres[0])
    plan = plan[rows]
    columns = np.argsort(np.arange(len(rows)) @ plan / np.maximum(plan.sum(axis=0), 1e-12), kind="stable")
    shown = np.round(LEVELS * plan[:, columns] / plan.max())
    names = {"src": [words[0][i] for i in rows], "tgt": [words[1][j] for j in columns]}
    return {**names, "plan": pack(shown.reshape(-1))}


def _centres(aligned: AlignedSpaces, number: int) -> tuple[Floats, Floats, list[str]]:
    """The k centres (k, d) of a side, their weights (k,) and names."""
    space = (aligned.src, aligned.tgt)[number]
    x = arrays.to_numpy(aligned.mapped("src" if number == 0 else "tgt")[:WORDS, :]).astype(np.float64)
    bank = kmeans_plusplus_bank(x, min(CENTRES, len(x)), 1, arrays.rng(0, Stream.SKETCH, number))
    centres = np.asarray(bank.centroids(x, 0, on_sphere=True))
    return centres, np.asarray(bank.weights()[0]), [space.words[i] for i in np.argmax(centres @ x.T, axis=1)]


def _in_line(centres: Floats) -> npt.NDArray[np.int64]:
    """An order of centres (k, d) with similar ones near each other, by the Fiedler vector of their similarities."""
    similar = np.maximum(centres @ centres.T, 0.0)
    _, vectors = np.linalg.eigh(np.diag(similar.sum(axis=1)) - similar)
    return np.argsort(vectors[:, min(1, len(centres) - 1)], kind="stable")
