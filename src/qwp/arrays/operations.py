"""What the array API standard lacks, once for each library that deserves a fast path.

Every operation has a fallback in pure array-API terms for all other libraries.
"""

from __future__ import annotations

import math
from typing import Any, cast

import array_api_compat
import numpy as np

from qwp.arrays.namespaces import Array, Tensor, device, is_cuda, namespace, to_numpy
from qwp.errors import at_least

# Rows with more entries are cut into larger groups.
_WIDE = 10_000


def top_k(x: Array, k: int) -> tuple[Array, Array]:
    """The k largest entries of each row, largest first.

    x: (b, n). Returns values (b, k) and column indices (b, k). k is clamped to n.
    """
    at_least(1, k=k)
    k = min(k, x.shape[1])
    if isinstance(x, np.ndarray):
        return _numpy_top_k(x, k)
    if array_api_compat.is_torch_array(x):
        return _torch_top_k(x, k)
    xp = namespace(x)
    order = xp.argsort(-x, axis=1, stable=True)[:, :k]
    return xp.take_along_axis(x, order, axis=1), order


def mean_of_largest(x: Array, k: int) -> Array:
    """The mean of the k largest entries of each row, which need no order for it. x: (b, n). Returns (b,)."""
    if not isinstance(x, np.ndarray):
        return namespace(x).mean(top_k(x, k)[0], axis=1)
    at_least(1, k=k)
    columns = _columns_with_largest(x, k, 24)
    values = x if columns is None else np.take_along_axis(x, columns, axis=1)
    n = values.shape[1]
    largest = np.partition(values, n - k, axis=1)[:, n - k :] if k < n else values
    means: np.ndarray = largest.mean(axis=1)
    return means


def _torch_top_k(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """As `_numpy_top_k`. `topk` reads wide rows several times; two on narrow ones take a third of that."""
    n = x.shape[1]
    group = 16
    if n < 4 * group * k:
        found = x.topk(k, dim=1)
        return found.values, found.indices
    xp, m = namespace(x), n // group
    maxima: Tensor = xp.max(xp.reshape(x[:, : m * group], (-1, group, m)), axis=1)
    best = maxima.topk(k, dim=1).indices
    columns = xp.arange(n, device=device(x))
    members = xp.reshape(best[:, :, None] + columns[:group] * m, (-1, k * group))
    rest = xp.broadcast_to(columns[m * group :], (x.shape[0], n - m * group))
    candidates: Tensor = xp.concat([members, rest], axis=1)
    found = x.gather(1, candidates).topk(k, dim=1)
    return found.values, candidates.gather(1, found.indices)


def _numpy_top_k(x: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Exact top-k at about the cost of one pass over `x`.

    The columns are dealt into groups; the k largest entries can only lie in the k groups with the largest
    maxima, and the maxima are one vectorised pass. `np.argpartition` then sees hundreds of candidates, not
    tens of thousands.
    """
    columns = _columns_with_largest(x, k, 4)
    if columns is None:
        return _partition_top_k(x, np.broadcast_to(np.arange(x.shape[1]), x.shape), k)
    return _partition_top_k(np.take_along_axis(x, columns, axis=1), columns, k)


def _columns_with_largest(x: np.ndarray, k: int, groups_for_each: int) -> np.ndarray | None:
    """Few columns of each row that hold its k largest entries, (b, c); None where there are too few to choose from."""
    n = x.shape[1]
    group = 8 if n < _WIDE else 16
    if n < groups_for_each * group * k:
        return None
    m = n // group
    maxima = x[:, : m * group].reshape(x.shape[0], group, m).max(axis=1)
    best = np.argpartition(maxima, m - k, axis=1)[:, m - k :]
    members = (best[:, :, None] + np.arange(group) * m).reshape(x.shape[0], k * group)
    rest = np.broadcast_to(np.arange(m * group, n), (x.shape[0], n - m * group))
    return np.concatenate([members, rest], axis=1)


def _partition_top_k(values: np.ndarray, columns: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    n = values.shape[1]
    if k == 1:
        chosen = values.argmax(axis=1)[:, None]
    else:
        chosen = (
            np.argpartition(values, n - k, axis=1)[:, n - k :] if k < n else np.broadcast_to(np.arange(n), values.shape)
        )
        order = np.argsort(-np.take_along_axis(values, chosen, axis=1), axis=1, kind="stable")
        chosen = np.take_along_axis(chosen, order, axis=1)
    return np.take_along_axis(values, chosen, axis=1), np.take_along_axis(columns, chosen, axis=1)


def clamped(x: Array, low: float, high: float) -> Array:
    """x within bounds. NumPy's own way is several times as quick on short arrays."""
    if isinstance(x, np.ndarray):
        unproject: np.ndarray = np.maximum(x, low)
        return unproject if high == math.inf else np.minimum(unproject, high)
    return namespace(x).clip(x, low, high)


def contiguous(x: Array) -> Array:
    """The same array laid out row after row, where the library lets one say so."""
    if isinstance(x, np.ndarray):
        return np.ascontiguousarray(x)
    return x.contiguous() if array_api_compat.is_torch_array(x) else x


def matmul_into(out: Array, a: Array, b: Array) -> Array:
    """out[...] = a @ b without a temporary where the library allows it. Returns out."""
    if _writes_into(out):
        xp: Any = namespace(out)
        xp.matmul(a, b, out=out)
    else:
        out[...] = a @ b
    return out


def affine_product(c: Array, a: Array, b: Array, *, alpha: float, beta: float) -> Array:
    """beta * c + alpha * (a @ b) in one go where the library can. a, b, c: (..., d, d)."""
    if array_api_compat.is_torch_array(a):
        product: Array = _torch_affine_product(c, a, b, alpha, beta)
        return product
    product = (alpha * a) @ b
    product += beta * c
    return product


def _torch_affine_product(c: Tensor, a: Tensor, b: Tensor, alpha: float, beta: float) -> Tensor:
    import torch

    if a.ndim > 3:
        flat = (x.reshape(-1, *x.shape[-2:]) for x in (c, a, b))
        return torch.baddbmm(*flat, alpha=alpha, beta=beta).reshape(c.shape)
    fused: Any = torch.addmm if a.ndim == 2 else torch.baddbmm
    return fused(c, a, b, alpha=alpha, beta=beta)


def _writes_into(out: Array) -> bool:
    """Whether the library of an array can write a result into one that is there."""
    return isinstance(out, np.ndarray) or bool(array_api_compat.is_torch_array(out))


def minimum_into(out: Array, other: Array) -> None:
    """out[...] = minimum(out, other) without a temporary where the library allows it."""
    xp: Any = namespace(out)
    if _writes_into(out):
        xp.minimum(out, other, out=out)
    else:
        out[...] = xp.minimum(out, other)


def first_above(running: Array, target: Array) -> Array:
    """First column in which a row of ascending numbers exceeds its target, at most the last.

    running: (b, c), target: (b,). Returns (b,).
    """
    xp, last = namespace(running), running.shape[1] - 1
    if array_api_compat.is_torch_array(running):
        import torch

        targets: Tensor = target[:, None]
        found: Tensor = torch.searchsorted(running, targets, right=True)[:, 0]
        clamped: Array = found.clamp_(max=last)
        return clamped
    if isinstance(running, np.ndarray):  # half the calls: of short rows they are all that costs
        passed: np.ndarray = (running <= to_numpy(target)[:, None]).sum(axis=1)
        bounded: np.ndarray = np.minimum(passed, last)
        return bounded
    short = running <= xp.expand_dims(target, axis=1)
    return xp.clip(xp.sum(xp.astype(short, xp.int64), axis=1), None, last)


def put_row(out: Array, number: Array, row: Array) -> None:
    """out[number] = row, the number being an array (1,) that a CUDA device need not show to the host."""
    if array_api_compat.is_torch_array(out):
        index, source = cast(Tensor, number), cast(Tensor, row[None])
        out.index_copy_(0, index, source)
    else:
        out[int(number[0]), ...] = row


def run_sums(a: Array, b: Array, run: int) -> Array:
    """Sums of a * b over runs along the last axis. a, b: (..., c), c a multiple of `run`. Returns (..., c / run)."""
    shape = (*a.shape[:-1], a.shape[-1] // run, run)
    if isinstance(a, np.ndarray):
        sums: np.ndarray = np.einsum("...i,...i->...", a.reshape(shape), np.reshape(to_numpy(b), shape))
        return sums
    xp = namespace(a)
    return xp.sum(xp.reshape(a * b, shape), axis=-1)


def exp_in_place(x: Array) -> Array:
    """x[...] = exp(x), without a temporary where the library allows it. Returns x."""
    if isinstance(x, np.ndarray):
        return np.exp(x, out=x)
    if array_api_compat.is_torch_array(x):
        return x.exp_()
    x[...] = namespace(x).exp(x)
    return x


def segment_sum(values: Array, labels: Array, weights: Array, n_segments: int) -> Array:
    """Weighted sums of rows by label.

    values: (n, d); labels: (n,) integers below `n_segments`; weights: (n,). Returns (n_segments, d).
    """
    if isinstance(values, np.ndarray):
        import scipy.sparse  # here, because it takes as long to load as NumPy and few runs need it

        n = labels.shape[0]
        selector = scipy.sparse.csr_matrix((weights, (labels, np.arange(n))), shape=(n_segments, n))
        return np.asarray(selector @ values)
    xp = namespace(values)
    if array_api_compat.is_torch_array(values):
        if is_cuda(values):
            # Atomic additions come in any order and round differently each time; a product does not.
            segments = xp.arange(n_segments, device=device(values))
            return ((labels == segments[:, None]) * weights) @ values
        sums: Tensor = xp.zeros((n_segments, values.shape[1]), dtype=values.dtype, device=device(values))
        added: Array = sums.index_add(0, labels, values * weights[:, None])
        return added
    rows = [
        xp.sum(
            xp.where(xp.expand_dims(labels == s, axis=1), values * xp.expand_dims(weights, axis=1), 0.0),
            axis=0,
        )
        for s in range(n_segments)
    ]
    return xp.stack(rows)


def unit(x: Array) -> Array:
    """Rows scaled to length one; zero rows stay zero. x: (n, d)."""
    xp = namespace(x)
    norms = xp.sqrt(xp.sum(x * x, axis=1, keepdims=True))
    return x / xp.where(norms > 0, norms, xp.ones_like(norms))


def eigh_to_host(gram: Array) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues (d,), ascending, and eigenvectors (d, d) of a symmetric matrix, in host memory.

    A GPU takes a third of the time of the host for some hundred dimensions in float64.
    """
    if is_cuda(gram):
        values, vectors = namespace(gram).linalg.eigh(gram)
        return to_numpy(values), to_numpy(vectors)
    found = np.linalg.eigh(to_numpy(gram))
    return found.eigenvalues, found.eigenvectors
