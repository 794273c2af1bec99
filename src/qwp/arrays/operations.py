"""Operations that the array API standard lacks, with fast paths for NumPy and torch.

Each operation has a fallback in the standard for all other libraries.
"""

from __future__ import annotations

import math
from typing import Any, cast

import array_api_compat
import numpy as np

from qwp.arrays.namespaces import Array, Tensor, device, is_cuda, namespace, to_numpy
from qwp.errors import at_least

# Rows with more entries are divided into groups of 16 instead of 8.
_WIDE = 10_000


def top_k(x: Array, k: int) -> tuple[Array, Array]:
    """Return the k largest entries of each row in descending order: values (b, k) and columns (b, k).

    x: (b, n). k is clamped to n.
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
    """Return the mean of the k largest entries of each row, (b,), without sorting them. x: (b, n)."""
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
    """Return the top-k of torch arrays. `topk` reads wide rows several times; two narrow calls take a third of that."""
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
    """Return the exact top-k at about the cost of one pass over x.

    The columns are divided into groups. The k largest entries are in the k groups with the largest maxima, which are
    one vectorised pass. So `np.argpartition` gets hundreds of candidates instead of tens of thousands.
    """
    columns = _columns_with_largest(x, k, 4)
    if columns is None:
        return _partition_top_k(x, np.broadcast_to(np.arange(x.shape[1]), x.shape), k)
    return _partition_top_k(np.take_along_axis(x, columns, axis=1), columns, k)


def _columns_with_largest(x: np.ndarray, k: int, groups_for_each: int) -> np.ndarray | None:
    """Return a few columns of each row that contain its k largest entries, (b, c); None if the rows are too short."""
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
    """Return x within bounds. On short arrays this is several times as fast as `np.clip`."""
    if isinstance(x, np.ndarray):
        bounded: np.ndarray = np.maximum(x, low)
        return bounded if high == math.inf else np.minimum(bounded, high)
    return namespace(x).clip(x, low, high)


def contiguous(x: Array) -> Array:
    """Return the array in C order if the library supports it."""
    if isinstance(x, np.ndarray):
        return np.ascontiguousarray(x)
    return x.contiguous() if array_api_compat.is_torch_array(x) else x


def matmul_into(out: Array, a: Array, b: Array) -> Array:
    """Write a @ b into `out`, without a temporary array if possible. Returns out."""
    if _writes_into(out):
        xp: Any = namespace(out)
        xp.matmul(a, b, out=out)
    else:
        out[...] = a @ b
    return out


def affine_product(c: Array, a: Array, b: Array, *, alpha: float, beta: float) -> Array:
    """Return beta * c + alpha * (a @ b), fused if possible. a, b, c: (..., d, d)."""
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
    """Return whether the functions of the library take `out`."""
    return isinstance(out, np.ndarray) or bool(array_api_compat.is_torch_array(out))


def minimum_into(out: Array, other: Array) -> None:
    """Write minimum(out, other) into `out`, without a temporary array if possible."""
    xp: Any = namespace(out)
    if _writes_into(out):
        xp.minimum(out, other, out=out)
    else:
        out[...] = xp.minimum(out, other)


def first_above(running: Array, target: Array) -> Array:
    """Return the first column in which a row of ascending numbers exceeds its target, or the last column, (b,).

    running: (b, c), target: (b,).
    """
    xp, last = namespace(running), running.shape[1] - 1
    if array_api_compat.is_torch_array(running):
        import torch

        targets: Tensor = target[:, None]
        found: Tensor = torch.searchsorted(running, targets, right=True)[:, 0]
        clamped: Array = found.clamp_(max=last)
        return clamped
    if isinstance(running, np.ndarray):  # fewer calls, which dominate the cost of short rows
        passed: np.ndarray = (running <= to_numpy(target)[:, None]).sum(axis=1)
        bounded: np.ndarray = np.minimum(passed, last)
        return bounded
    short = running <= xp.expand_dims(target, axis=1)
    return xp.clip(xp.sum(xp.astype(short, xp.int64), axis=1), None, last)


def put_row(out: Array, number: Array, row: Array) -> None:
    """Write a row into out[number] without reading the number, an array (1,), on the host."""
    if array_api_compat.is_torch_array(out):
        index, source = cast(Tensor, number), cast(Tensor, row[None])
        out.index_copy_(0, index, source)
    else:
        out[int(number[0]), ...] = row


def run_sums(a: Array, b: Array, run: int) -> Array:
    """Return the sums of a * b over runs of the last axis, (..., c / run). a, b: (..., c), c a multiple of `run`."""
    shape = (*a.shape[:-1], a.shape[-1] // run, run)
    if isinstance(a, np.ndarray):
        sums: np.ndarray = np.einsum("...i,...i->...", a.reshape(shape), np.reshape(to_numpy(b), shape))
        return sums
    xp = namespace(a)
    return xp.sum(xp.reshape(a * b, shape), axis=-1)


def exp_in_place(x: Array) -> Array:
    """Write exp(x) into x, without a temporary array if possible. Returns x."""
    if isinstance(x, np.ndarray):
        return np.exp(x, out=x)
    if array_api_compat.is_torch_array(x):
        return x.exp_()
    x[...] = namespace(x).exp(x)
    return x


def segment_sum(values: Array, labels: Array, weights: Array, n_segments: int) -> Array:
    """Return the weighted sums of rows by label, (n_segments, d).

    values: (n, d); labels: (n,) integers below `n_segments`; weights: (n,).
    """
    if isinstance(values, np.ndarray):
        import scipy.sparse  # imported here: it takes as long to load as NumPy, and few runs need it

        n = labels.shape[0]
        selector = scipy.sparse.csr_matrix((weights, (labels, np.arange(n))), shape=(n_segments, n))
        return np.asarray(selector @ values)
    xp = namespace(values)
    if array_api_compat.is_torch_array(values):
        if is_cuda(values):
            # Atomic additions have no fixed order, so their rounding varies; that of a product does not.
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
    """Return the rows of x (n, d) scaled to unit length. Zero rows stay zero."""
    xp = namespace(x)
    norms = xp.sqrt(xp.sum(x * x, axis=1, keepdims=True))
    return x / xp.where(norms > 0, norms, xp.ones_like(norms))


def eigh_to_host(gram: Array) -> tuple[np.ndarray, np.ndarray]:
    """Return the eigenvalues (d,), ascending, and eigenvectors (d, d) of a symmetric matrix, in host memory.

    A GPU takes a third of the time of the CPU for some hundred dimensions in float64.
    """
    if is_cuda(gram):
        values, vectors = namespace(gram).linalg.eigh(gram)
        return to_numpy(values), to_numpy(vectors)
    found = np.linalg.eigh(to_numpy(gram))
    return found.eigenvalues, found.eigenvectors
