"""Where the loop begins: a first orthogonal map.

Two starts need nothing but the two spaces. `profiles` matches words whose sorted similarities to all other words
look alike, because that profile does not change under a rotation (the idea of Artetxe et al. 2018, here with entropic
transport instead of nearest neighbours). `frank-wolfe` is the convex relaxation of Grave et al. (2019): minimise
|P Kx - Ky P| over doubly stochastic P. Frank-Wolfe alone fails on some pairs of spaces, so `auto`, the default, tries
both in turn: a short loop from each, judged without a dictionary, until one is clearly real.

The others take what the user has: `identity` (spaces already close), a matrix, a seed lexicon, or the strings that both
vocabularies share.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from qwp import backend
from qwp.backend import Array
from qwp.checks import at_least
from qwp.errors import InputError
from qwp.lexicon import Lexicon
from qwp.procrustes import Maps, orthogonality_error, polar, polar_svd, procrustes
from qwp.quality import QUICK_YARDSTICK, judge
from qwp.retrieval import unit
from qwp.transport import sinkhorn
from qwp.wasserstein import LoopSettings, StepFigures, make_schedule, wasserstein_procrustes_many

logger = logging.getLogger(__name__)

Ints: TypeAlias = npt.NDArray[np.int64]

STARTS = ("auto", "profiles", "frank-wolfe", "identity", "identical", "lexicon", "matrix")

# Entropy of the profile plan, as a fraction of the spread of its cost.
_PROFILE_EPSILON = 0.1
_PROFILE_NEIGHBOURS = 10

# The trial run of a start: random batches of the most frequent words find the basin of attraction fast.
_TRIAL_WORDS = 5000
_TRIAL_STEPS = 100
_TRIAL_CORESET = 500
_TRIAL_SETTINGS = LoopSettings(coreset="random", learning_rate=2.0, final_rate=0.5, pairs_per_step=2)
_TRIAL_SEED_KEY = 7
_JUDGED_WORDS = 2000
# Well above what a failed run was ever seen to reach; below it the next start gets its chance.
_CLEARLY_REAL = 1.5


@dataclass(frozen=True)
class FrankWolfe:
    """Settings of the convex relaxation.

    words: how many of the most frequent words of each side take part; steps: Frank-Wolfe steps; epsilon:
    entropy of each linear step, as a fraction of the standard deviation of its gradient, so that it means the
    same on every pair of spaces.
    """

    words: int = 2500
    steps: int = 100
    epsilon: float = 0.3
    tol: float = 1e-3
    max_iter: int = 200

    def check(self) -> None:
        """Raise InputError for a setting that cannot work."""
        at_least(1, start_words=self.words, start_steps=self.steps, start_max_iter=self.max_iter)
        if not self.epsilon > 0:
            raise InputError(f"start_epsilon={self.epsilon} should be positive")


def profiles(x: Array, y: Array, words: int) -> Array:
    """First map by similarity profiles. x: (n, d), y: (m, d) normalised, most frequent first. Returns W (d, d).

    Words are described by their sorted similarities to the `words` most frequent words, compared by cosine with the
    CSLS correction for hubs, and matched by entropic transport; Procrustes on the plan gives the map.
    """
    xp = backend.namespace(x, y)
    n = min(words, x.shape[0], y.shape[0])
    x, y = x[:n, :], y[:n, :]
    similarity = _profile_rows(x) @ _profile_rows(y).T
    near_x, _ = backend.top_k(similarity, _PROFILE_NEIGHBOURS)
    near_y, _ = backend.top_k(similarity.T, _PROFILE_NEIGHBOURS)
    cost = xp.expand_dims(xp.mean(near_x, axis=1), axis=1) + xp.mean(near_y, axis=1) - 2.0 * similarity
    spread = float(xp.std(cost))
    mass = xp.full((n,), 1.0 / n, dtype=x.dtype, device=backend.device(x))
    plan = sinkhorn(cost, mass, mass, epsilon=_PROFILE_EPSILON * spread or 1.0, tol=1e-3, max_iter=200)
    return polar(x.T @ plan.apply(y))


def _profile_rows(x: Array) -> Array:
    """Sorted rows of the similarity matrix of x (n, d), unit length. Returns (n, n)."""
    xp = backend.namespace(x)
    u, s = _similarity_factor(x)
    return unit(xp.sort((u * s) @ u.T, axis=1))


StartCallback: TypeAlias = Callable[[int, str, int, int, float], None]
"""Called with the number of the pair, the name of the start, step, number of steps and objective of its trial."""


def best_starts(
    xs: Sequence[Array],
    ys: Sequence[Array],
    settings: FrankWolfe,
    *,
    seeds: Sequence[int],
    csls_k: int = 10,
    callback: StartCallback | None = None,
) -> Array:
    """Try the unsupervised starts in turn for each of P pairs; return the best maps after their trials, (P, d, d).

    xs, ys: P times (n, d) normalised rows, most frequent first. Each start is followed by a short loop and judged by
    `quality.judge`; the first that is clearly real wins, otherwise the one with the highest ratio.
    """
    starts: tuple[tuple[str, Callable[[Array, Array], Array]], ...] = (
        ("profiles", lambda x, y: profiles(x, y, settings.words)),
        ("profiles of more words", lambda x, y: profiles(x, y, 2 * settings.words)),
        ("frank-wolfe", lambda x, y: frank_wolfe(x, y, settings)),
    )
    best: list[tuple[float, Array]] = [(-math.inf, None)] * len(xs)
    for name, start in starts:
        open_pairs = [p for p, (ratio, _) in enumerate(best) if ratio < _CLEARLY_REAL]
        for group in _groups_by_size(open_pairs, xs, ys):
            maps = [start(xs[p], ys[p]) for p in group]
            report = None if callback is None else partial(_report_trial, callback, group, name)
            tried = _trial([xs[p] for p in group], [ys[p] for p in group], maps, [seeds[p] for p in group], report)
            for p, w in zip(group, tried, strict=True):
                x, y = (side[p][:_JUDGED_WORDS, :] for side in (xs, ys))
                ratio = judge(x, y, Maps(w), seed=seeds[p], csls_k=csls_k, yardstick=QUICK_YARDSTICK).ratio
                logger.info("start %s: %.2f times the agreement of a random rotation on held-out words", name, ratio)
                if ratio > best[p][0]:
                    best[p] = ratio, w
    return backend.namespace(xs[0]).stack([w for _, w in best])


def _report_trial(
    callback: StartCallback, numbers: Sequence[int], name: str, figures: list[list[StepFigures]], _: Array
) -> None:
    for number, steps in zip(numbers, figures, strict=True):
        for step in steps:
            callback(number, name, step.step, step.n_steps, step.objective)


def _trial_coreset(x: Array, y: Array) -> int:
    """Points in the random batches of a trial."""
    return int(min(_TRIAL_CORESET, x.shape[0], y.shape[0]))


def _groups_by_size(pairs: Sequence[int], xs: Sequence[Array], ys: Sequence[Array]) -> list[list[int]]:
    """Pairs whose trials have the same shape, and so can run in lock-step."""
    groups: dict[int, list[int]] = {}
    for p in pairs:
        groups.setdefault(_trial_coreset(xs[p], ys[p]), []).append(p)
    return list(groups.values())


def _trial(
    xs: Sequence[Array],
    ys: Sequence[Array],
    maps: Sequence[Array],
    seeds: Sequence[int],
    callback: Callable[[list[list[StepFigures]], Array], None] | None,
) -> list[Array]:
    """A short loop on the most frequent words from each map."""
    k = _trial_coreset(xs[0], ys[0])
    tried = wasserstein_procrustes_many(
        [x[:_TRIAL_WORDS, :] for x in xs],
        [y[:_TRIAL_WORDS, :] for y in ys],
        backend.namespace(xs[0]).stack(list(maps)),
        make_schedule("fixed", steps=_TRIAL_STEPS, k=k, epochs=1, n_max=k),
        _TRIAL_SETTINGS,
        seeds=[int(backend.rng(seed, _TRIAL_SEED_KEY).integers(2**31)) for seed in seeds],
        callback=callback,
    )
    return [tried[i, ...] for i in range(len(maps))]


def frank_wolfe(
    x: Array, y: Array, settings: FrankWolfe, callback: Callable[[int, float], None] | None = None
) -> Array:
    """First map by Frank-Wolfe. x: (n, d), y: (m, d) normalised rows, most frequent first. Returns W (d, d).

    P appears only through P Ux, Uy^T P and P^T Y, which are linear in P, so the n x n iterate itself is never
    kept; with K = U diag(s) U^T the gradient is two rank-d products. callback(step, objective) is called
    after every step.
    """
    xp = backend.namespace(x, y)
    n = min(settings.words, x.shape[0], y.shape[0])
    x, y = x[:n, :], y[:n, :]
    ux, sx = _similarity_factor(x)
    uy, sy = _similarity_factor(y)
    # Equal scale: the relaxation compares the shapes of the two similarity matrices, not their sizes.
    sy = sy * (xp.linalg.vector_norm(sx) / xp.linalg.vector_norm(sy))
    mass = xp.ones(n, dtype=x.dtype, device=backend.device(x))

    # P (n_y, n_x) starts as the uniform doubly stochastic matrix.
    p_ux = xp.broadcast_to(xp.mean(ux, axis=0), ux.shape)
    uy_p = xp.broadcast_to(xp.expand_dims(xp.mean(uy, axis=0), axis=1), (uy.shape[1], n))
    pt_y = xp.broadcast_to(xp.mean(y, axis=0), y.shape)
    init: Array | None = None
    for step in range(1, settings.steps + 1):
        gradient = _half_gradient(p_ux, uy_p, ux, sx, uy, sy)
        epsilon = settings.epsilon * float(xp.std(gradient))
        if not epsilon > 0:
            break
        plan = sinkhorn(gradient, mass, mass, epsilon=epsilon, tol=settings.tol, max_iter=settings.max_iter, init=init)
        init = plan.log_v
        size = 2.0 / (2.0 + step)
        p_ux = (1 - size) * p_ux + size * plan.apply(ux)
        uy_p = (1 - size) * uy_p + size * plan.apply_transposed(uy).T
        pt_y = (1 - size) * pt_y + size * plan.apply_transposed(y)
        if callback is not None:
            callback(step, _objective(p_ux, uy_p, sx, uy, sy))
    return polar(x.T @ pt_y)


def _half_gradient(p_ux: Array, uy_p: Array, ux: Array, sx: Array, uy: Array, sy: Array) -> Array:
    """Half the gradient of |P Kx - Ky P|^2, that is P Kx^2 - 2 Ky P Kx + Ky^2 P, without forming P or K.

    p_ux: (n, r), uy_p: (r, n) the two images of P; ux, uy: (n, r) and sx, sy: (r,) factors of Kx and Ky.
    Returns (n, n).
    """
    xp = backend.namespace(p_ux)
    core = xp.expand_dims(sy, axis=1) * (uy.T @ p_ux) * sx
    gradient = (p_ux * (sx * sx) - 2.0 * (uy @ core)) @ ux.T
    gradient += uy @ (xp.expand_dims(sy * sy, axis=1) * uy_p)
    return gradient


def _objective(p_ux: Array, uy_p: Array, sx: Array, uy: Array, sy: Array) -> float:
    """|P Kx - Ky P|^2 from the two images of P; shapes as in `_half_gradient`."""
    xp = backend.namespace(p_ux)
    column = xp.expand_dims(sy, axis=1)
    mixed = xp.sum(column * (uy.T @ p_ux) ** 2 * sx)
    return float(xp.sum((p_ux * sx) ** 2) + xp.sum((column * uy_p) ** 2) - 2.0 * mixed)


def _similarity_factor(x: Array) -> tuple[Array, Array]:
    """U (n, r) and s (r,) of K = U diag(s) U^T, where s are the singular values of x (n, d).

    K is the matrix of similarities x x^T with its eigenvalues square-rooted. The factors come from the small matrix
    x^T x in float64, on the host: there is nothing in it for a GPU. Directions in which x has no extent are left out.
    """
    xp = backend.namespace(x)
    wide = xp.astype(x, xp.float64)
    squares, axes = np.linalg.eigh(backend.to_numpy(wide.T @ wide))
    kept = squares > squares[-1] * x.shape[1] * np.finfo(np.float64).eps * 100
    s = np.sqrt(squares[kept])[::-1]
    u = wide @ backend.asarray(axes[:, kept][:, ::-1] / s, wide)
    return xp.astype(u, x.dtype), backend.asarray(np.ascontiguousarray(s), x)


def from_pairs(x: Array, y: Array, src_rows: Ints, tgt_rows: Ints) -> Array:
    """Procrustes on given pairs of rows. x: (n, d), y: (m, d); src_rows, tgt_rows: (p,). Returns W (d, d)."""
    return procrustes(*matched_rows(x, y, src_rows, tgt_rows))


def matched_rows(x: Array, y: Array, src_rows: Ints, tgt_rows: Ints) -> tuple[Array, Array]:
    """The vectors of given pairs, (p, d) each. x: (n, d), y: (m, d); src_rows, tgt_rows: (p,)."""
    if len(src_rows) < x.shape[1]:
        logger.warning("%d pairs for %d dimensions leave part of the map undetermined", len(src_rows), x.shape[1])
    xp = backend.namespace(x)
    rows = (backend.asarray(r, x) for r in (src_rows, tgt_rows))
    src, tgt = (xp.take(side, r, axis=0) for side, r in zip((x, y), rows, strict=True))
    return src, tgt


def lexicon_rows(lexicon: Lexicon, src: Mapping[str, int], tgt: Mapping[str, int]) -> tuple[Ints, Ints]:
    """Rows of the pairs of a seed lexicon that both vocabularies cover, (p,) each."""
    covered = [(src[a], tgt[b]) for a, b in lexicon if a in src and b in tgt]
    return _rows(covered, f"seed lexicon of {len(lexicon)} pairs")


def identical_rows(src_words: Sequence[str], tgt_words: Sequence[str]) -> tuple[Ints, Ints]:
    """Rows of the words that both vocabularies hold, numbers and names mostly, (p,) each."""
    tgt_index = {word: j for j, word in enumerate(tgt_words)}
    return _rows([(i, tgt_index[word]) for i, word in enumerate(src_words) if word in tgt_index], "identical strings")


def _rows(pairs: Sequence[tuple[int, int]], what: str) -> tuple[Ints, Ints]:
    if not pairs:
        raise InputError(f"{what}: no pair is covered by the two vocabularies; expected at least one to start from")
    src, tgt = np.asarray(pairs, dtype=np.int64).T
    return src, tgt


def given_matrix(matrix: np.ndarray, dim: int) -> np.ndarray:
    """Check a user's matrix: (d, d), finite, orthogonal to 1e-3; returned exactly orthogonal."""
    if matrix.shape != (dim, dim):
        raise InputError(f"the start matrix has shape {matrix.shape}; the vectors need ({dim}, {dim})")
    if not np.isfinite(matrix).all():
        raise InputError("the start matrix holds NaN or infinite entries; expected finite numbers")
    error = orthogonality_error(matrix)
    if error > 1e-3:
        raise InputError(
            f"the start matrix is not orthogonal (largest entry of |W^T W - I| is {error:.2g}, "
            "at most 0.001 expected): project it with qwp.procrustes.polar first"
        )
    return np.asarray(polar_svd(matrix))
