"""What it costs to match words by what each is alone: parts of a cost, brought to one scale."""

from __future__ import annotations

from qwp import arrays
from qwp.arrays import Array
from qwp.maps.ranks import RANK_OFFSET
from qwp.ot.costs import cost_matrix


def rank_cost(x: Array, y: Array) -> Array:
    """Squared differences of the logarithms of ranks, from zero, x: (n,) and y: (m,), floating. Returns (n, m)."""
    xp = arrays.namespace(x, y)
    log_x, log_y = (xp.expand_dims(xp.log(ranks + RANK_OFFSET), axis=1) for ranks in (x, y))
    return cost_matrix(log_x, log_y)


def unit_deviation(values: Array) -> Array:
    """Divided by their standard deviation, if they have one."""
    spread = float(arrays.namespace(values).std(values))
    return values / spread if spread > 0 else values
