"""Maps for matched rows: orthogonal (the polar factor, Procrustes), by least squares, and re-weighted on both sides."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from qwp import arrays
from qwp.arrays import Array
from qwp.parameters import REFINE, param
from qwp.search.retrieval import Pairs, Retriever, retriever

KINDS = ("reweighted", "orthogonal")


def map_param(default: str = "orthogonal") -> Any:
    """Declare the parameter `map` of a component."""
    return param(
        default,
        "The final map: reweighted (both sides whitened and re-weighted) or orthogonal (the source only).",
        REFINE,
        choices=KINDS,
    )


def reweight_param(default: float = 1.0) -> Any:
    """Declare the parameter `reweight` of a component."""
    return param(
        default, "Power of the singular values that re-weights the maps; 0 for none.", REFINE, least=0, most=10
    )


class Maps(NamedTuple):
    """The map (d, d) of each side into the common space. tgt: None where that is the target's."""

    src: Array
    tgt: Array | None = None


# Odd polynomials a t + b t^3 + c t^5, each the one that brings the singular values in its interval nearest to one
# (minimax, as in Amsel et al. 2025). With the classical step after them they take all of [0.005, 1] to one within 1e-6.
_QUINTICS = (
    (8.2987, -24.4305, 18.0903),
    (3.9152, -2.9211, 0.5592),
    (3.1746, -2.3804, 0.4978),
    (2.1895, -1.5672, 0.4079),
    (1.8823, -1.2581, 0.3758),
)
# The classical step: moves small singular values by 15/8 and converges cubically near one.
_LAST = (15.0 / 8.0, -10.0 / 8.0, 3.0 / 8.0)
_MAX_ROUNDS = 6
# Matched rows of which moments are taken at a time.
_ROWS_AT_ONCE = 2048


def polar(m: Array) -> Array:
    """The orthogonal matrix nearest to `m`. m: (d, d). Returns (d, d).

    A handful of matrix products when `m` is well conditioned, as it is at every step of the loop; as many again where
    singular values are small, and the singular value decomposition where even those do not do.
    """
    xp = arrays.namespace(m)
    good_enough = 8.0 * arrays.eps(m) * m.shape[0] ** 0.5
    w = polar_steps(m)
    for _ in range(_MAX_ROUNDS):
        gram = w.T @ w
        error = float(xp.linalg.vector_norm(gram - _identity(m)))
        if error <= good_enough:
            return w
        # Close by, one step triples the number of digits.
        w = _step(w, gram, _LAST) if error < 0.1 else polar_steps(w)
    return polar_svd(m)


def polar_steps(m: Array) -> Array:
    """The polar factor of each matrix by a fixed number of products and no look at the result: nothing waits for it.

    m: (..., d, d); its singular values should not be smaller than 0.005 of its Frobenius norm. Returns (..., d, d).
    """
    xp = arrays.namespace(m)
    both = (-2, -1)
    # The largest entry becomes one, so that no sum of squares overflows.
    m = m / _or_one(xp.max(xp.abs(m), axis=both, keepdims=True))
    # Two bounds on the largest singular value; scaled by the smaller one, all of them lie in (0, 1].
    magnitude = xp.abs(m)
    columns, rows = (xp.max(xp.sum(magnitude, axis=a, keepdims=True), axis=both, keepdims=True) for a in both)
    frobenius = xp.sqrt(xp.sum(m * m, axis=both, keepdims=True))
    w = m / _or_one(1.001 * xp.minimum(xp.sqrt(columns) * xp.sqrt(rows), frobenius))
    for coefficients in (*_QUINTICS, _LAST):
        w = _step(w, xp.matrix_transpose(w) @ w, coefficients)
    return w


def _or_one(x: Array) -> Array:
    """x, with ones in place of zeros: something to divide by."""
    xp = arrays.namespace(x)
    return xp.where(x > 0, x, xp.ones_like(x))


def _step(w: Array, gram: Array, coefficients: tuple[float, float, float]) -> Array:
    """w times (a I + b gram + c gram^2). w, gram: (..., d, d)."""
    a, b, c = coefficients
    inner = arrays.affine_product(gram, gram, gram, alpha=c, beta=b)
    return arrays.affine_product(w, w, inner, alpha=1.0, beta=a)


def _identity(m: Array) -> Array:
    return arrays.namespace(m).eye(m.shape[-1], dtype=m.dtype, device=arrays.device(m))


def polar_svd(m: Array) -> Array:
    """The polar factor by SVD in float64 (faster and safer than float32 LAPACK at these sizes). m: (d, d)."""
    xp = arrays.namespace(m)
    u, _, vt = xp.linalg.svd(xp.astype(m, xp.float64), full_matrices=False)
    return xp.astype(u @ vt, m.dtype)


def procrustes(x: Array, y: Array, weights: Array | None = None) -> Array:
    """The orthogonal W that minimises |x W - y| for matched rows (Schoenemann 1966).

    x, y: (p, d); weights: (p,) or None. Returns (d, d).
    """
    xp = arrays.namespace(x)
    if weights is not None:
        x = x * xp.expand_dims(weights, axis=1)
    # In float64, where a condition number of millions still leaves digits enough. On a CPU the decomposition takes no
    # longer than the products of `polar`, and half the time where there are few pairs for each dimension.
    correlation = xp.astype(x.T @ y, xp.float64)
    return xp.astype(polar(correlation) if arrays.is_cuda(x) else polar_svd(correlation), x.dtype)


def least_squares(x: Array, y: Array, *, ridge: float = 0.0) -> Array:
    """The W that minimises |x W - y|^2 + ridge |W|^2, the one of least norm if several do. x, y: (p, d). (d, d)."""
    xp = arrays.namespace(x)
    # In float64, by the eigenvectors of the small matrix: directions in which x has no extent get no weight.
    x, y, dtype = xp.astype(x, xp.float64), xp.astype(y, xp.float64), x.dtype
    values, vectors = xp.linalg.eigh(x.T @ x)
    smallest = float(values[-1]) * x.shape[1] * arrays.eps(x)
    kept = values > smallest
    inverse = xp.where(kept, 1.0 / xp.where(kept, values + ridge, xp.ones_like(values)), xp.zeros_like(values))
    return xp.astype((vectors * inverse) @ (vectors.T @ (x.T @ y)), dtype)


def reweighted(x: Array, y: Array, power: float = 0.5, *, weights: Array | None = None, dewhiten: float = 1.0) -> Maps:
    """Maps of both sides into a common space for matched rows, re-weighted by their cross-correlation.

    x, y: (p, d); weights: (p,) or None. Each side is whitened, rotated so that the cross-covariance is diagonal, scaled
    by its singular values to `power`, and de-whitened (Artetxe et al. 2018): all the way back to the extent it had in
    each direction with `dewhiten` 1, not at all with 0. Returns (d, d) for x and (d, d) for y, whose columns are zero
    beyond the dimensions that both sides have.
    """
    xp = arrays.namespace(x)
    of_x, of_y, of_both = _moments(x, y, weights)
    (root_x, white_x), (root_y, white_y) = (_square_roots(gram, dewhiten) for gram in (of_x, of_y))
    u, s, v = _singular(white_x @ of_both @ white_y)
    # Directions in which one side has no extent mean nothing, and nothing of the other side is to lie in them.
    meant = xp.astype(s > xp.max(s) * s.shape[0] * arrays.eps(s), s.dtype)
    maps = (
        white @ (axes * s**power) @ (axes.T @ root @ axes * meant)
        for root, white, axes in ((root_x, white_x, u), (root_y, white_y, v))
    )
    return Maps(*(xp.astype(matrix, x.dtype) for matrix in maps))


def _moments(x: Array, y: Array, weights: Array | None) -> tuple[Array, Array, Array]:
    """X^T diag(w) X, Y^T diag(w) Y and X^T diag(w) Y in float64, (d, d) each. x, y: (p, d); weights: (p,) or None."""
    xp = arrays.namespace(x)
    shares = None if weights is None else xp.expand_dims(xp.sqrt(xp.astype(weights, xp.float64)), axis=1)

    def block(rows: slice) -> tuple[Array, Array, Array]:
        # Copies in float64 of all rows would not stay in any cache.
        a, b = (xp.astype(side[rows, :], xp.float64) for side in (x, y))
        if shares is not None:
            a, b = a * shares[rows, :], b * shares[rows, :]
        return a.T @ a, b.T @ b, a.T @ b

    at_once = _ROWS_AT_ONCE if isinstance(x, np.ndarray) else max(1, x.shape[0])
    first, *others = arrays.map_blocks(block, x.shape[0], at_once, x) or [block(slice(0, 0))]
    of_x, of_y, of_both = first
    for part in others:
        of_x, of_y, of_both = of_x + part[0], of_y + part[1], of_both + part[2]
    return of_x, of_y, of_both


def fitted(
    kind: str, x: Array, y: Array, *, weights: Array | None = None, reweight: float = 0.5, dewhiten: float = 1.0
) -> Maps:
    """The maps of a kind (one of KINDS) for matched rows x, y (p, d) with weights (p,)."""
    if kind == "orthogonal":
        return Maps(procrustes(x, y, weights))
    return reweighted(x, y, reweight, weights=weights, dewhiten=dewhiten)


def _singular(m: Array) -> tuple[Array, Array, Array]:
    """U, s and V of m = U diag(s) V^T, float64 (d, d), in any order of the values.

    On a GPU by the polar factor and the eigenvectors of the other one: that takes half the time of the SVD there.
    """
    xp = arrays.namespace(m)
    if not arrays.is_cuda(m):
        u, s, vt = xp.linalg.svd(m, full_matrices=False)
        return u, s, vt.T
    return _by_polar(m)


def _by_polar(m: Array) -> tuple[Array, Array, Array]:
    """`_singular` by the polar decomposition."""
    xp = arrays.namespace(m)
    turn = polar(m)
    extent = turn.T @ m
    s, v = xp.linalg.eigh((extent + extent.T) / 2.0)
    return turn @ v, xp.clip(s, 0.0, None), v


def _square_roots(gram: Array, power: float = 1.0) -> tuple[Array, Array]:
    """The square root of a positive semi-definite matrix (d, d) to `power`, and the inverse of the square root itself.

    The inverse is taken on the directions with any extent.
    """
    xp = arrays.namespace(gram)
    values, vectors = xp.linalg.eigh(gram)
    smallest = float(values[-1]) * gram.shape[0] * arrays.eps(gram)
    values = xp.clip(values, 0.0, None)
    root = xp.sqrt(values)
    inverse = xp.where(values > smallest, 1.0 / _or_one(root), xp.zeros_like(root))
    return (vectors * root**power) @ vectors.T, (vectors * inverse) @ vectors.T


def clip_singular_values(m: Array) -> Array:
    """The nearest matrix whose singular values are at most one. m: (d, d). Returns (d, d)."""
    xp = arrays.namespace(m)
    u, s, vt = xp.linalg.svd(xp.astype(m, xp.float64), full_matrices=False)
    return xp.astype((u * xp.clip(s, None, 1.0)) @ vt, m.dtype)


def orthogonality_error(w: Array) -> float:
    """Largest entry of |W^T W - I|. w: (d, d)."""
    xp = arrays.namespace(w)
    return float(xp.max(xp.abs(w.T @ w - _identity(w))))


MOST_RESTORED, HALF_RESTORED = 0.75, 0.5
# Fewer pairs for each dimension than this would choose by chance.
_FEWEST_PAIRS = 4


def choose_dewhiten(x: Array, y: Array, pairs: Pairs, *, reweight: float, csls_k: int) -> float:
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
    maps = reweighted(
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
