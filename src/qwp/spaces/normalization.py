"""Normalisation as a recorded list of steps: a new vector is treated exactly as the training words were.

`unit` scales each row to length one (zero rows stay zero); `center` subtracts the mean that was measured when
the normalisation was fitted. The default is `unit,center,unit`.
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
# Each is a pass over all vectors, and alternating the two changes less and less.
_MOST_STEPS = 20


@dataclass(frozen=True)
class Normalization:
    """A fitted normalisation. `means` holds one (d,) vector for each `center` in `steps`, in order."""

    steps: tuple[str, ...]
    means: tuple[Array, ...]

    def apply(self, x: Array) -> Array:
        """Normalise rows as the training rows were. x: (n, d). Returns (n, d)."""
        means = iter(self.means)
        for step in self.steps:
            x = unit(x) if step == "unit" else x - next(means)
        return x

    def at(self, place: arrays.Device) -> Normalization:
        """The same with its means in another place."""
        means = (arrays.to_numpy(mean) for mean in self.means)
        return Normalization(self.steps, tuple(place.put(mean, mean.dtype.name) for mean in means))


def parse_steps(steps: str | Sequence[str]) -> tuple[str, ...]:
    """`"unit,center,unit"` or a sequence of step names -> tuple; `"none"` or an empty value -> no steps."""
    names = [s.strip() for s in steps.split(",")] if isinstance(steps, str) else list(steps)
    names = [s for s in names if s and s != "none"]
    for name in names:
        if name not in STEPS:
            raise InputError(
                f"the step {reprlib.repr(name)} of normalize is not known; "
                f"expected a comma-separated list of {', '.join(STEPS)}, or none"
            )
    if len(names) > _MOST_STEPS:
        raise InputError(f"normalize has {len(names)} steps, expected at most {_MOST_STEPS}: leave repeated ones out")
    return tuple(names)


def fit(x: Array, steps: str | Sequence[str] = DEFAULT) -> tuple[Normalization, Array]:
    """Measure the steps on `x` (n, d). Returns the fitted normalisation and the normalised rows (n, d)."""
    names = parse_steps(steps)
    xp = arrays.namespace(x)
    means: list[Array] = []
    for name in names:
        if name == "unit":
            x = unit(x)
        else:
            # Summed in float64: a float32 mean over 200,000 rows loses digits that every later vector would
            # inherit.
            mean = xp.astype(xp.sum(x, axis=0, dtype=xp.float64) / x.shape[0], x.dtype)
            means.append(mean)
            x = x - mean
    return Normalization(names, tuple(means)), x
