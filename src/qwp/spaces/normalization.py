"""Normalisation as a list of fitted steps, which apply to new vectors as to the training vectors.

`unit` scales each row to length one and keeps zero rows. `center` subtracts the mean of the training rows. The default
is `unit,center,unit`.
"""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from dataclasses import dataclass

from qwp import arrays
from qwp.arrays import Array, unit
from qwp.errors import InputError

STEPS = ("unit", "center")
DEFAULT = "unit,center,unit"
_MAX_STEPS = 20  # each is a pass over all vectors, and alternating the two steps converges


@dataclass(frozen=True)
class Normalization:
    """A fitted normalisation. `means` holds one (d,) vector for each `center` in `steps`, in order."""

    steps: tuple[str, ...]
    means: tuple[Array, ...]

    def apply(self, x: Array) -> Array:
        """Normalise rows in the same way as the training rows. x: (n, d). Returns (n, d)."""
        means = iter(self.means)
        for step in self.steps:
            x = unit(x) if step == "unit" else x - next(means)
        return x

    def at(self, device: arrays.Device) -> Normalization:
        """Return the normalisation with its means on another device."""
        means = (arrays.to_numpy(mean) for mean in self.means)
        return Normalization(self.steps, tuple(device.put(mean, mean.dtype.name) for mean in means))


def parse_steps(steps: str | Sequence[str]) -> tuple[str, ...]:
    """Parse "unit,center,unit" or a sequence of step names; "none" or an empty value gives no steps."""
    names = [s.strip() for s in steps.split(",")] if isinstance(steps, str) else list(steps)
    names = [s for s in names if s and s != "none"]
    for name in names:
        if name not in STEPS:
            raise InputError(
                f"the step {reprlib.repr(name)} of normalize is not known; "
                f"expected a comma-separated list of {', '.join(STEPS)}, or none"
            )
    if len(names) > _MAX_STEPS:
        raise InputError(f"normalize has {len(names)} steps, expected at most {_MAX_STEPS}: leave repeated ones out")
    return tuple(names)


def fit(x: Array, steps: str | Sequence[str] = DEFAULT) -> tuple[Normalization, Array]:
    """Fit the steps to rows `x` (n, d). Return the fitted normalisation and the normalised rows (n, d)."""
    names = parse_steps(steps)
    xp = arrays.namespace(x)
    means: list[Array] = []
    for name in names:
        if name == "unit":
            x = unit(x)
        else:
            # In float64: a float32 mean of 200,000 rows loses digits, and every later vector would inherit the error.
            mean = xp.astype(xp.sum(x, axis=0, dtype=xp.float64) / x.shape[0], x.dtype)
            means.append(mean)
            x = x - mean
    return Normalization(names, tuple(means)), x
