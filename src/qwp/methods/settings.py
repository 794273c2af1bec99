"""What every method takes besides its stages: supervision, the depth of the verdict, and where to compute."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qwp import arrays
from qwp.arrays import BACKENDS, AnyFloats, Device
from qwp.errors import InputError
from qwp.judging.verdict import DEPTHS, FULL
from qwp.parameters import RUN, Settings, param
from qwp.search.retrieval import csls_k_param
from qwp.spaces.lexicon import Lexicon
from qwp.stages.pipeline import Pipeline
from qwp.stages.problem import Problem

NONE, OPTIONAL, REQUIRED, IDENTICAL = "none", "optional lexicon", "lexicon", "identical strings"
"""The supervision that a method may need besides the vectors."""


@dataclass(frozen=True)
class Supervision:
    """What the user knows about the two languages: a lexicon, or an initial map."""

    lexicon: Lexicon | None = None
    start_matrix: AnyFloats | None = None

    def fingerprint(self) -> dict[str, str | None]:
        """Return a hash of the lexicon and of the matrix; None for what was not given."""
        matrix = self.start_matrix
        return {
            "lexicon": None if self.lexicon is None else self.lexicon.sha256(),
            "start_matrix": None if matrix is None else hashlib.sha256(np.asarray(matrix, "f8").tobytes()).hexdigest(),
        }

    def check(self, method: str, wanted: str, *, takes_matrix: bool) -> None:
        """Raise an InputError for supervision that a method lacks or does not use. wanted: NONE, OPTIONAL, ..."""
        if self.lexicon is None and wanted == REQUIRED:
            raise InputError(
                f"method {method!r} is supervised and needs a seed lexicon, none was given: add --lexicon FILE "
                "(in Python lexicon=FILE), or choose a method that needs none, such as qwp"
            )
        if self.lexicon is not None and wanted in (NONE, IDENTICAL):
            raise InputError(f"a lexicon was given, but method {method!r} does not use one: leave it out")
        if self.start_matrix is not None and not takes_matrix:
            raise InputError(f"start_matrix was given, but method {method!r} does not use one: leave it out")


@dataclass(frozen=True, kw_only=True)
class Judging(Settings):
    """The depth of the verdict on the result."""

    csls_k: int = csls_k_param()
    verdict: str = param(
        FULL,
        "How to judge the result: full, exact (in doubt, 19 fits of null data), quick (only clear successes) or none.",
        RUN,
        choices=DEPTHS,
        shared=True,
    )


@dataclass(frozen=True, kw_only=True)
class Execution(Settings):
    """The device, the limits of threads and memory, and the seed."""

    device: str = param(
        "auto",
        "Where to compute: auto (a GPU if torch sees one), cpu, cuda or cuda:N.",
        RUN,
        range="auto, cpu, cuda, cuda:N",
        execution_only=True,
        shared=True,
    )
    backend: str = param(
        "auto",
        "Array library: auto (torch on a GPU, numpy on the CPU), numpy or torch.",
        RUN,
        choices=BACKENDS,
        execution_only=True,
        shared=True,
    )
    threads: int | None = param(
        None,
        "Threads to use.",
        RUN,
        least=1,
        most=4096,
        decided="all, one for small spaces",
        execution_only=True,
        shared=True,
    )
    max_memory: float | None = param(
        None,
        "Bound the blocks of large computations to this many GiB.",
        RUN,
        above=0,
        most=1e6,
        decided="32 MiB for each thread, 1 GiB on a GPU",
        execution_only=True,
        shared=True,
    )
    seed: int = param(0, "Seed of all random choices.", RUN, least=0, most=2**63 - 1, execution_only=True, shared=True)
    small: int = 500_000
    """Numbers in a space up to which one thread is used. Source: two threads save a fifth of its time at most."""

    def choose_device(self, method: str, needs_torch: bool) -> Device:
        """Return the device and the array library of the computation."""
        if not needs_torch:
            return arrays.choose_device(self.device, self.backend)
        if self.backend == "numpy":
            raise InputError(f"method {method!r} needs torch, but backend 'numpy' was asked for: leave it out")
        arrays.require_torch(f"method {method!r}")
        return arrays.choose_device(self.device, "torch")

    def threads_for(self, problems: Sequence[Problem]) -> int | None:
        """Return the limit of threads: that of the user, or one for small spaces."""
        views = [problem.views[0] for problem in problems]
        largest = max(
            max(view.x.shape[0], view.y.shape[0]) * problem.width for view, problem in zip(views, problems, strict=True)
        )
        return 1 if self.threads is None and largest <= self.small else self.threads


@dataclass(frozen=True, kw_only=True)
class Composition(Settings):
    """All components of a method."""

    pipeline: Pipeline
    judging: Judging = Judging()
    execution: Execution = Execution()
