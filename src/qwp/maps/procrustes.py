"""Maps of matched rows: orthogonal (Procrustes), unconstrained (least squares), and re-weighted on both sides."""

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
    """The map (d, d) of each side into the common space. tgt: None if the common space is that of the target."""

    src: Array
    tgt: Array | None = None


# Odd polynomials a t + b t^3 + c t^5. Each maps the singular values in its interval as close to one as possible
# (minimax, as in Amsel et al. 2025). Followed by the Newton-Schulz step, they map [0.005, 1] to one within 1e-6.
_QUINTICS = (
    (8.2987, -24.4305, 18.0903),
    (3.9152, -2.9211, 0.5592),
    (3.1746, -2.3804, 0.4978),
    (2.1895, -1.5672, 0.4079),
    (1.8823, -1.2581, 0.3758),
)
# The Newton-Schulz step of order 5: it converges cubically near one.
_NEWTON_SCHULZ = (15.0 / 8.0, -10.0 / 8.0, 3.0 / 8.0)
_MAX_ROUNDS = 6
# Matched rows in a block of `_moments`.
_ROWS_AT_ONCE = 2048


def polar(m: Array) -> Array:
    """Return the orthogonal matrix nearest to m (d, d), its polar factor.

    A few matrix products suffice if `m` is well conditioned, as at every step of the loop. Small singular values need
    more of them, and the last resort is the singular value decomposition.
    """
    xp = arrays.namespace(m)
    tolerance = 8.0 * arrays.eps(m) * m.shape[0] ** 0.5
    w = polar_steps(m)
    for _ in range(_MAX_ROUNDS):
        gram = w.T @ w
        error = float(xp.linalg.vector_norm(gram - _identity(m)))
        if error <= tolerance:
            return w
        # Near an orthogonal matrix, one step triples the number of correct digits.
        w = _step(w, gram, _NEWTON_SCHULZ) if error < 0.1 else polar_steps(w)
    return polar_svd(m)


def polar_steps(m: Array) -> Array:
    """Return the polar factor of each matrix by a fixed number of products, so that the host waits for no result.

    m: (..., d, d); its singular values should be at least 0.005 of its Frobenius norm. The result is not checked.
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
    for coefficients in (*_QUINTICS, _NEWTON_SCHULZ):
        w = _step(w, xp.matrix_transpose(w) @ w, coefficients)
    return w


def _or_one(x: Array) -> Array:
    """Return x with ones instead of zeros, to divide by."""
    xp = arrays.namespace(x)
    return xp.where(x > 0, x, xp.ones_like(x))


def _step(w: Array, gram: Array, coefficients: tuple[float, float, float]) -> Array:
    """Return w (a I + b gram + c gram^2). w, gram: (..., d, d)."""
    a, b, c = coefficients
    inner = arrays.affine_product(gram, gram, gram, alpha=c, beta=b)
    return arrays.affine_product(w, w, inner, alpha=1.0, beta=a)


def _identity(m: Array) -> Array:
    return arrays.namespace(m).eye(m.shape[-1], dtype=m.dtype, device=arrays.device(m))


def polar_svd(m: Array) -> Array:
    """Return the polar factor of m (d, d) by SVD in float64, which is faster and safer than float32 LAPACK."""
    xp = arrays.namespace(m)
    u, _, vt = xp.linalg.svd(xp.astype(m, xp.float64), full_matrices=False)
    return xp.astype(u @ vt, m.dtype)


def procrustes(x: Array, y: Array, weights: Array | None = None) -> Array:
    """Return the orthogonal W (d, d) that minimises |x W - y| for matched rows (Schoenemann 1966).

    x, y: (p, d); weights: (p,) or None.
    """
    xp = arrays.namespace(x)
    if weights is not None:
        x = x * xp.expand_dims(weights, axis=1)
    # Float64 keeps enough digits for condition numbers of millions. On a CPU the SVD takes no longer than the products
    # of `polar`, and half as long with few pairs for each dimension.
    correlation = xp.astype(x.T @ y, xp.float64)
    return xp.astype(polar(correlation) if arrays.is_cuda(x) else polar_svd(correlation), x.dtype)


def least_squares(x: Array, y: Array, *, ridge: float = 0.0) -> Array:
    """Return the W (d, d) of least norm that minimises |x W - y|^2 + ridge |W|^2. x, y: (p, d)."""
    xp = arrays.namespace(x)
    # In float64, by the eigenvectors of x^T x. Directions without variance have weight zero.
    x, y, dtype = xp.astype(x, xp.float64), xp.astype(y, xp.float64), x.dtype
    values, vectors = xp.linalg.eigh(x.T @ x)
    smallest = float(values[-1]) * x.shape[1] * arrays.eps(x)
    nonzero = values > smallest
    inverse = xp.where(nonzero, 1.0 / xp.where(nonzero, values + ridge, xp.ones_like(values)), xp.zeros_like(values))
    return xp.astype((vectors * inverse) @ (vectors.T @ (x.T @ y)), dtype)


def reweighted(x: Array, y: Array, power: float = 0.5, *, weights: Array | None = None, dewhiten: float = 1.0) -> Maps:
    """Return maps of both sides into a common space, re-weighted by the cross-correlation of matched rows.

    Each side is whitened, rotated so that the cross-covariance is diagonal, scaled by its singular values to `power`,
    and de-whitened (Artetxe et al. 2018). Columns beyond the rank of both sides are zero.

    x, y: (p, d); weights: (p,) or None. dewhiten: power of the square root of the covariance that restores the variance
    of each direction; 1 restores it fully, 0 not at all.
    """
    xp = arrays.namespace(x)
    of_x, of_y, of_both = _moments(x, y, weights)
    (root_x, white_x), (root_y, white_y) = (_square_roots(gram, dewhiten) for gram in (of_x, of_y))
    u, s, v = _singular(white_x @ of_both @ white_y)
    # Directions in which one side has no variance are removed from both.
    shared = xp.astype(s > xp.max(s) * s.shape[0] * arrays.eps(s), s.dtype)
    maps = (
        white @ (axes * s**power) @ (axes.T @ root @ axes * shared)
        for root, white, axes in ((root_x, white_x, u), (root_y, white_y, v))
    )
    return Maps(*(xp.astype(matrix, x.dtype) for matrix in maps))


def _moments(x: Array, y: Array, weights: Array | None) -> tuple[Array, Array, Array]:
    """Return X^T diag(w) X, Y^T diag(w) Y and X^T diag(w) Y in float64, (d, d) each. weights: (p,) or None."""
    xp = arrays.namespace(x)
    shares = None if weights is None else xp.expand_dims(xp.sqrt(xp.astype(weights, xp.float64)), axis=1)

    def block(rows: slice) -> tuple[Array, Array, Array]:
        # A float64 copy of all rows would not fit the cache.
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
    """Return the maps of a kind (one of KINDS) for matched rows x, y (p, d) with weights (p,)."""
    if kind == "orthogonal":
        return Maps(procrustes(x, y, weights))
    return reweighted(x, y, reweight, weights=weights, dewhiten=dewhiten)


def _singular(m: Array) -> tuple[Array, Array, Array]:
    """Return U, s and V of m = U diag(s) V^T, float64 (d, d), with singular values in any order.

    On a GPU, the polar factor and the eigenvectors of the symmetric factor take half the time of the SVD.
    """
    xp = arrays.namespace(m)
    if not arrays.is_cuda(m):
        u, s, vt = xp.linalg.svd(m, full_matrices=False)
        return u, s, vt.T
    return _by_polar(m)


def _by_polar(m: Array) -> tuple[Array, Array, Array]:
    """Return the result of `_singular` by the polar decomposition."""
    xp = arrays.namespace(m)
    rotation = polar(m)
    symmetric = rotation.T @ m
    s, v = xp.linalg.eigh((symmetric + symmetric.T) / 2.0)
    return rotation @ v, xp.clip(s, 0.0, None), v


def _square_roots(gram: Array, power: float = 1.0) -> tuple[Array, Array]:
    """Return R^power and the pseudo-inverse of R, the square root of a positive semi-definite matrix (d, d)."""
    xp = arrays.namespace(gram)
    values, vectors = xp.linalg.eigh(gram)
    smallest = float(values[-1]) * gram.shape[0] * arrays.eps(gram)
    values = xp.clip(values, 0.0, None)
    root = xp.sqrt(values)
    inverse = xp.where(values > smallest, 1.0 / _or_one(root), xp.zeros_like(root))
    return (vectors * root**power) @ vectors.T, (vectors * inverse) @ vectors.T


def clip_singular_values(m: Array) -> Array:
    """Return the matrix nearest to m (d, d) whose singular values are at most one."""
    xp = arrays.namespace(m)
    u, s, vt = xp.linalg.svd(xp.astype(m, xp.float64), full_matrices=False)
    return xp.astype((u * xp.clip(s, None, 1.0)) @ vt, m.dtype)


def orthogonality_error(w: Array) -> float:
    """Return the largest entry of |W^T W - I|. w: (d, d)."""
    xp = arrays.namespace(w)
    return float(xp.max(xp.abs(w.T @ w - _identity(w))))


MOST_RESTORED, HALF_RESTORED = 0.75, 0.5
"""The two values of `dewhiten` that qWP chooses from. Source: docs/accuracy.md."""


def choose_dewhiten(x: Array, y: Array, pairs: Pairs, *, reweight: float, csls_k: int, fewest_pairs: int = 4) -> float:
    """Return the better power of de-whitening for maps fitted to mutual pairs: MOST_RESTORED or HALF_RESTORED.

    x: (n, d), y: (m, d) normalised rows. fewest_pairs: pairs for each dimension that a reliable choice needs.
    """
    if len(pairs) < fewest_pairs * x.shape[1]:
        return MOST_RESTORED
    with_all, with_most = (
        held_out_margin(x, y, pairs, power, reweight=reweight, csls_k=csls_k) for power in (1.0, MOST_RESTORED)
    )
    return HALF_RESTORED if with_most > with_all else MOST_RESTORED


def held_out_margin(x: Array, y: Array, pairs: Pairs, dewhiten: float, *, reweight: float, csls_k: int) -> float:
    """Return the mean CSLS margin of every other pair over its best rival, under maps fitted to the remaining pairs.

    Both directions are searched. The queries themselves serve as the neighbourhoods of CSLS.
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
    margins = []
    for keys, answers, words, rows in ((tgt, asked_tgt, src, asked_src), (src, asked_src, tgt, asked_tgt)):
        queries = xp.take(words, rows, axis=0)
        margins.append(_margins(retriever(keys, queries, csls_k=csls_k), queries, answers))
    return float(xp.mean(xp.concat(margins)))


def _margins(found: Retriever, queries: Array, answers: Array) -> Array:
    """Return the score of the answer (n,) of each query (n, d) minus that of its best rival, (n,)."""
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
