"""How surprising a displacement is among words of like frequency.

Rare words have noisy vectors, and noise moves them; it moves short vectors more than long ones. So a displacement is
first compared with that of words of like frequency and length: it is put on a scale on which noise is symmetric,
Fisher's `log((1 - cos) / (1 + cos))`, and measured from the running median in units of the running spread below it,
which words that moved do not widen (`Expectation`). The result is z.

**The null hypothesis** of a word: it was displaced by noise alone, as the words of its frequency and length are. Where
that noise is to be seen is the question, and there are two answers.

- Sign flips, with two spaces alone. By noise a word is as likely to lie t above the median of its frequency as t below
  it: the null is unchanged when signs of z are flipped. Words that moved are all above. So what is below, mirrored, is
  the null distribution, and p is the share of it at least as far out.
- Exchange, with a control: two spaces in which nothing moved, such as those of two random halves of the text. A word
  that did not move can change places with one of the control of its frequency, so p is the rank among those.

Both are shares of a sample, (1 + how many reach z) / (1 + size), which cannot fall below 1 / size. Beyond the last
tenth of the null the generalised Pareto distribution that fits it takes over, never with a tail lighter than the
exponential (as Knijnenburg et al. 2009 do for permutation tests). q is p adjusted after Benjamini and Hochberg.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

# Below this much of a difference single precision shows nothing.
_LEAST_DISTANCE = 1e-6
_WINDOW, _STEP = 500, 50
# Columns of the design for fewer words than a window has.
_FEW_COLUMNS = 3
# Of a normal distribution, one standard deviation below the median.
_BELOW = 0.158655
# On Fisher's scale: noise is never taken to be smaller, or copies with a rounding error would have moved.
_LEAST_SPREAD = 0.02
_FIRST_SHARE = 0.01
_TAIL_SHARE, _FEWEST_IN_TAIL = 0.1, 30
_HEAVIEST_TAIL = 0.5
# Of the exponential tail, in units of z; that of the normal distribution beyond its last tenth is 0.4.
_LEAST_TAIL = 0.25


def fisher(cosines: npt.NDArray[np.floating]) -> Floats:
    """Displacements (n,) on a scale on which noise is symmetric: log of (1 - cos) / (1 + cos); larger is farther."""
    clipped = np.clip(np.asarray(cosines, dtype=np.float64), _LEAST_DISTANCE - 1.0, 1.0 - _LEAST_DISTANCE)
    return np.asarray(np.log1p(-clipped) - np.log1p(clipped))


@dataclass(frozen=True)
class Expectation:
    """What displacement noise gives words of each frequency and length, and how it spreads.

    trend: coefficients of what is expected from the traits. places: (a,) expected displacements at which centre and
    spread, (a,) each, of what differs from them were measured.
    """

    trend: Floats
    places: Floats
    centre: Floats
    spread: Floats

    @classmethod
    def of(cls, displacements: Floats, traits: Floats, stable: Bools) -> Expectation:
        """From displacements (n,) on Fisher's scale, by the stable (n,) words. traits: (n, 2), see `traits`."""
        values, design = displacements[stable], _design(traits[stable])
        if len(values) < _WINDOW:
            design[:, _FEW_COLUMNS:] = 0.0
        trend = np.asarray(np.linalg.lstsq(design, values, rcond=None)[0], dtype=np.float64)
        expected = design @ trend
        order = np.argsort(expected, kind="stable")
        expected, rest = expected[order], (values - expected)[order]
        window = min(_WINDOW, len(rest))
        views = np.lib.stride_tricks.sliding_window_view(rest, window)[::_STEP]
        below, centre = np.quantile(views, [_BELOW, 0.5], axis=1)
        places = np.median(np.lib.stride_tricks.sliding_window_view(expected, window)[::_STEP], axis=1)
        return cls(trend, places, centre, np.maximum(centre - below, _LEAST_SPREAD))

    def typical(self, traits: Floats) -> Floats:
        """The median displacement of words of these traits (n, 2), on Fisher's scale, (n,)."""
        expected = _design(traits) @ self.trend
        return np.asarray(expected + np.interp(expected, self.places, self.centre))

    def z(self, displacements: Floats, traits: Floats) -> Floats:
        """By how many spreads displacements (n,) exceed those of words of like traits (n, 2). Returns (n,)."""
        spread = np.interp(_design(traits) @ self.trend, self.places, self.spread)
        return np.asarray((displacements - self.typical(traits)) / spread)


def traits(rarity: Floats, lengths: Floats) -> Floats:
    """What noise depends on, as logarithms, (n, 2): rarity (n,), as ranks are, and lengths (n, 2) at the two times.

    Lengths are measured by the median of their time. The longer one counts: a word that moved may have a short vector
    at one time, between its old and its new meaning, and this must not excuse it.
    """
    relative = np.log(lengths / np.median(lengths, axis=0))
    # The very first ranks are far from all others in logarithms alone: a curve through the others would swing there.
    rank = np.log(rarity + _FIRST_SHARE * rarity.max())
    return np.stack([rank, relative.max(axis=1)], axis=1)


def _design(traits: Floats) -> Floats:
    """Polynomials of the traits (n, 2), the simple ones first, (n, 7)."""
    rarity, length = traits.T
    rarity = rarity - 8.0  # of the order of the logarithm of a rank: powers of what is near zero are told apart
    columns = [np.ones_like(rarity), rarity, length, rarity**2, rarity**3, length**2, rarity * length]
    return np.stack(columns, axis=1)


def by_sign_flips(z: Floats) -> Floats:
    """p-values (n,) of z (n,), whose null distribution is what lies below the median, mirrored."""
    below = -z[z <= 0]
    upper = _upper_tail(np.abs(z), below, 2 * len(below))
    return np.asarray(np.where(z > 0, upper, 1.0 - upper + 1.0 / (1 + 2 * len(below))).clip(0.0, 1.0))


def by_exchange(z: Floats, control: Floats) -> Floats:
    """p-values (n,) of z (n,) by those (m,) of the words of a control, in which nothing moved."""
    return _upper_tail(z, control, len(control))


def _upper_tail(z: Floats, null: Floats, total: int) -> Floats:
    """The share of a null distribution at z (n,) or beyond. null: (m,) values of it, of a sample of `total`."""
    ordered = np.sort(null)
    reached = len(ordered) - np.searchsorted(ordered, z, side="left")
    ranks = (1.0 + reached) / (1.0 + total)
    in_tail = max(_FEWEST_IN_TAIL, round(_TAIL_SHARE * len(ordered)))
    if len(ordered) < 2 * in_tail:
        return np.asarray(ranks)
    start = ordered[-in_tail - 1]
    shape, scale = _pareto(ordered[-in_tail:] - start)
    beyond = np.maximum(z - start, 0.0) / scale
    survival = np.exp(-beyond) if shape == 0 else (1.0 + shape * beyond) ** (-1.0 / shape)
    return np.asarray(np.where(z > start, in_tail / total * survival, ranks))


def _pareto(exceedances: Floats) -> tuple[float, float]:
    """Shape and scale of the generalised Pareto distribution, by weighted moments (Hosking and Wallis 1987)."""
    ordered = np.sort(exceedances)
    k = len(ordered)
    mean = float(ordered.mean())
    weighted = float(np.mean((1.0 - (np.arange(1, k + 1) - 0.35) / k) * ordered))
    spread = mean - 2.0 * weighted
    shape = 2.0 - mean / spread if spread > 0 else 0.0
    if shape <= 0:
        return 0.0, max(mean, _LEAST_TAIL)
    shape = min(shape, _HEAVIEST_TAIL)
    return shape, max(mean * (1.0 - shape), _LEAST_TAIL)


def adjusted(p: Floats) -> Floats:
    """p-values (n,) adjusted for many tests: the least false discovery rate at which each is rejected. (n,)."""
    order = np.argsort(p, kind="stable")
    n = len(p)
    scaled = p[order] * n / np.arange(1, n + 1)
    found = np.empty(n)
    found[order] = np.minimum.accumulate(scaled[::-1])[::-1].clip(0.0, 1.0)
    return found
