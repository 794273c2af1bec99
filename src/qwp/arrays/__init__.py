"""Arrays of any library that follows the array API standard: the lowest layer, and the only one that knows which it is.

Algorithms ask `namespace(x)` for the library of their inputs and stay inside the standard. What the standard lacks
(`operations`), where and with how much of the machine to compute (`places`, `resources`), steps that record themselves
(`recorded`) and random streams (`streams`) are here. All public names can be had from the package: `arrays.top_k`.
"""

from __future__ import annotations

from qwp.arrays.devices import BACKENDS, DTYPES, HOST, Device, check_dtype, choose_device, require_torch
from qwp.arrays.namespaces import (
    Array,
    Namespace,
    Tensor,
    asarray,
    device,
    eps,
    is_cuda,
    namespace,
    read,
    to_numpy,
    wait_for,
)
from qwp.arrays.operations import (
    affine_product,
    clamped,
    contiguous,
    eigh_to_host,
    exp_in_place,
    first_above,
    matmul_into,
    mean_of_largest,
    minimum_into,
    put_row,
    run_sums,
    segment_sum,
    top_k,
    unit,
)
from qwp.arrays.recorded import Repeated
from qwp.arrays.resources import (
    BLOCK_ELEMENTS,
    CACHE_ELEMENTS,
    GPU_BLOCK_ELEMENTS,
    MIN_BLOCK_ROWS,
    block_rows,
    cache_blocks,
    in_threads,
    map_blocks,
    side_by_side,
    threads,
    turned,
    use_memory,
    use_threads,
)
from qwp.arrays.streams import Stream, poisson, rng, torch_generator

__all__ = [
    "BACKENDS",
    "BLOCK_ELEMENTS",
    "CACHE_ELEMENTS",
    "DTYPES",
    "GPU_BLOCK_ELEMENTS",
    "HOST",
    "MIN_BLOCK_ROWS",
    "Array",
    "Device",
    "Namespace",
    "Repeated",
    "Stream",
    "Tensor",
    "affine_product",
    "asarray",
    "block_rows",
    "cache_blocks",
    "check_dtype",
    "choose_device",
    "clamped",
    "contiguous",
    "device",
    "eigh_to_host",
    "eps",
    "exp_in_place",
    "first_above",
    "in_threads",
    "is_cuda",
    "map_blocks",
    "matmul_into",
    "mean_of_largest",
    "minimum_into",
    "namespace",
    "poisson",
    "put_row",
    "read",
    "require_torch",
    "rng",
    "run_sums",
    "segment_sum",
    "side_by_side",
    "threads",
    "to_numpy",
    "top_k",
    "torch_generator",
    "turned",
    "unit",
    "use_memory",
    "use_threads",
    "wait_for",
]
