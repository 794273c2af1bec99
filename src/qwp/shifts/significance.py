"""The significance of a displacement among words of similar frequency.

Noise moves rare words more than frequent ones, and short vectors more than long ones. So we compare a displacement with
those of words of similar frequency and length. Fisher's transform `log((1 - cos) / (1 + cos))` makes noise symmetric.
z is the distance from the running median, in units of the running spread below it (`Expectation`). Words that moved do
not widen the spread, because they lie above the median.

**The null hypothesis** of a word: only noise displaced it, as it displaces words of its frequency and length. There are
two null distributions.

- Sign flips, with two spaces alone. Under the null a word is as likely to lie t above the median as t below it. So
  flipping signs of z does not change the null distribution. Words that moved lie above. So the values below, mirrored,
  are the null distribution, and p is the share of it at least as large as z.
- Exchange, with a control: two spaces between which nothing moved, such as those of two random halves of the text. A
  word that did not move is exchangeable with a control word of its frequency, so p is the rank among those.

Both are shares of a sample, (1 + number of values >= z) / (1 + size), and cannot fall below 1 / size. Beyond the last
tenth of the null, p follows the generalised Pareto distribution fitted to that tenth. Its tail is never lighter than
the exponential. Knijnenburg et al. 2009 do so for permutation tests. q is p adjusted by Benjamini and Hochberg.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qwp.arrays import AnyFloats, Bools, Floats

# Single precision does not resolve smaller differences of cosines.
_MIN_DISTANCE = 1e-6
# Columns of a linear design: a constant and both covariates.
_LINEAR_COLUMNS = 3
# Quantile of a normal distribution one standard deviation below the median.
_BELOW = 0.158655


def fisher(cosines: AnyFloats) -> Floats:
    """Return log((1 - cos) / (1 + cos)) of cosines (n,): displacements on a scale on which noise is symmetric."""
    clipped = np.clip(np.asarray(cosines, dtype=np.float64), _MIN_DISTANCE - 1.0, 1.0 - _MIN_DISTANCE)
    return np.asarray(np.log1p(-clipped) - np.log1p(clipped))


@dataclass(frozen=True)
class Expectation:
    """The displacement that noise causes, by frequency and length of the words.

    Attributes:
        trend: coefficients of the expected displacement on the covariates.
        places: expected displacements (a,) at which centre and spread were measured.
        centre, spread: median of the residuals and their spread below it (a,).
    """

    trend: Floats
    places: Floats
    centre: Floats
    spread: Floats

    def typical(self, covariates: Floats) -> Floats:
        """Return the median displacement of words with these covariates (n, 2), on Fisher's scale, (n,)."""
        expected = _design(covariates) @ self.trend
        return np.asarray(expected + np.interp(expected, self.places, self.centre))

    def z(self, displacements: Floats, covariates: Floats) -> Floats:
        """Return by how many spreads displacements (n,) exceed those of words with these covariates (n, 2), (n,)."""
        spread = np.interp(_design(covariates) @ self.trend, self.places, self.spread)
        return np.asarray((displacements - self.typical(covariates)) / spread)


@dataclass(frozen=True)
class NoiseModel:
    """Estimates the displacement that noise causes from words that did not move.

    Attributes:
        window: words in each window of the running median and spread. Fewer words get a linear trend.
        step: words between windows.
        min_spread: smallest spread on Fisher's scale: with less, copies with a rounding error would have moved.
    """

    window: int = 500
    step: int = 50
    min_spread: float = 0.02

    def expectation(self, displacements: Floats, covariates: Floats, stable: Bools) -> Expectation:
        """Return the expectation of the stable words.

        Args:
            displacements: on Fisher's scale (n,).
            covariates: see `covariates` (n, 2).
            stable: the words to use (n,).
        """
        values, design = displacements[stable], _design(covariates[stable])
        if len(values) < self.window:
            design[:, _LINEAR_COLUMNS:] = 0.0
        trend = np.asarray(np.linalg.lstsq(design, values, rcond=None)[0], dtype=np.float64)
        expected = design @ trend
        order = np.argsort(expected, kind="stable")
        expected, rest = expected[order], (values - expected)[order]
        window = min(self.window, len(rest))
        views = np.lib.stride_tricks.sliding_window_view(rest, window)[:: self.step]
        below, centre = np.quantile(views, [_BELOW, 0.5], axis=1)
        places = np.median(np.lib.stride_tricks.sliding_window_view(expected, window)[:: self.step], axis=1)
        return Expectation(trend, places, centre, np.maximum(centre - below, self.min_spread))


def covariates(rarity: Floats, lengths: Floats, rank_offset: float = 0.01) -> Floats:
    """Return the logarithms of rarity and length, on which noise depends, (n, 2).

    Lengths are relative to the median of their time. The longer one counts: a word that moved may have a short vector
    at one time, between its old and its new meaning, which must not explain its displacement.

    Args:
        rarity: such as the sum of both ranks (n,).
        lengths: lengths of the vectors at the two times (n, 2).
        rank_offset: part of the largest rarity that is added before the logarithm. Without it the first ranks are far
            from all others, and the polynomial oscillates there: among 20,000 words with uneven noise it finds 4 words
            although none moved (benchmarks/shift.py).
    """
    relative = np.log(lengths / np.median(lengths, axis=0))
    return np.stack([np.log(rarity + rank_offset * rarity.max()), relative.max(axis=1)], axis=1)


def _design(covariates: Floats) -> Floats:
    """Return polynomials of the covariates (n, 2), in order of degree, (n, 7)."""
    rarity, length = covariates.T
    rarity = rarity - 8.0  # about the logarithm of a rank: powers of values near zero are less collinear
    columns = [np.ones_like(rarity), rarity, length, rarity**2, rarity**3, length**2, rarity * length]
    return np.stack(columns, axis=1)


@dataclass(frozen=True)
class SignificanceTest:
    """p-values from a null sample, whose tail is a generalised Pareto distribution.

    Attributes:
        tail_share: part of the sample that is its tail (Knijnenburg et al. 2009).
        min_tail: values that a fit needs. A sample with fewer than twice as many has ranks only.
        min_scale: smallest scale, in units of z; beyond its last tenth the normal distribution has 0.4.
    """

    tail_share: float = 0.1
    min_tail: int = 30
    min_scale: float = 0.25

    def by_sign_flips(self, z: Floats) -> Floats:
        """Return p-values (n,) of z (n,); their null distribution is the mirrored part below the median."""
        below = -z[z <= 0]
        upper = self._upper_tail(np.abs(z), below, 2 * len(below))
        return np.asarray(np.where(z > 0, upper, 1.0 - upper + 1.0 / (1 + 2 * len(below))).clip(0.0, 1.0))

    def by_exchange(self, z: Floats, control: Floats) -> Floats:
        """Return p-values (n,) of z (n,) from the z (m,) of a control, between whose spaces nothing moved."""
        return self._upper_tail(z, control, len(control))

    def _upper_tail(self, z: Floats, null: Floats, total: int) -> Floats:
        """Return the share of a null distribution at or above z (n,).

        Args:
            z: values to test (n,).
            null: values of the upper part of the null sample (m,).
            total: size of the null sample.
        """
        ordered = np.sort(null)
        above = len(ordered) - np.searchsorted(ordered, z, side="left")
        ranks = (1.0 + above) / (1.0 + total)
        in_tail = max(self.min_tail, round(self.tail_share * len(ordered)))
        if len(ordered) < 2 * in_tail:
            return np.asarray(ranks)
        start = ordered[-in_tail - 1]
        shape, scale = self.pareto(ordered[-in_tail:] - start)
        beyond = np.maximum(z - start, 0.0) / scale
        survival = np.exp(-beyond) if shape == 0 else (1.0 + shape * beyond) ** (-1.0 / shape)
        return np.asarray(np.where(z > start, in_tail / total * survival, ranks))

    def pareto(self, exceedances: Floats) -> tuple[float, float]:
        """Fit shape and scale of the generalised Pareto distribution by weighted moments (Hosking and Wallis 1987)."""
        ordered = np.sort(exceedances)
        k = len(ordered)
        mean = float(ordered.mean())
        weighted = float(np.mean((1.0 - (np.arange(1, k + 1) - 0.35) / k) * ordered))
        spread = mean - 2.0 * weighted
        shape = 2.0 - mean / spread if spread > 0 else 0.0
        if shape <= 0:
            return 0.0, max(mean, self.min_scale)
        return shape, max(mean * (1.0 - shape), self.min_scale)


def adjusted(p: Floats) -> Floats:
    """Adjust p-values (n,) by Benjamini and Hochberg: the least false discovery rate that rejects each, (n,)."""
    order = np.argsort(p, kind="stable")
    n = len(p)
    scaled = p[order] * n / np.arange(1, n + 1)
    found = np.empty(n)
    found[order] = np.minimum.accumulate(scaled[::-1])[::-1].clip(0.0, 1.0)
    return found
