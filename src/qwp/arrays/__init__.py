"""Arrays of any library that follows the array API standard, and the only layer that depends on the library.

Algorithms call `namespace(x)` for the library of their inputs and use the standard alone. This package adds operations
that the standard lacks, devices, limits of threads and memory, CUDA graphs and random streams. All public names are
attributes of the package, such as `arrays.top_k`.
"""

from __future__ import annotations

from qwp.arrays.cuda_graphs import RepeatedStep
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
    synchronize,
    to_floats,
    to_numpy,
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
from qwp.arrays.resources import (
    BLOCK_ELEMENTS,
    CACHE_ELEMENTS,
    GPU_BLOCK_ELEMENTS,
    MIN_BLOCK_ROWS,
    block_rows,
    cache_blocks,
    map_blocks,
    parallel_map,
    thread_map,
    threads,
    transposed,
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
    "RepeatedStep",
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
    "is_cuda",
    "map_blocks",
    "matmul_into",
    "mean_of_largest",
    "minimum_into",
    "namespace",
    "parallel_map",
    "poisson",
    "put_row",
    "require_torch",
    "rng",
    "run_sums",
    "segment_sum",
    "synchronize",
    "thread_map",
    "threads",
    "to_floats",
    "to_numpy",
    "top_k",
    "torch_generator",
    "transposed",
    "unit",
    "use_memory",
    "use_threads",
]
