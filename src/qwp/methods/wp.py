"""Wasserstein-Procrustes with random batches (Grave, Joulin, Berthet 2019): qWP without the quantization."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qwp.methods.qwp import QWP


@dataclass(kw_only=True, eq=False, repr=False)
class WP(QWP):
    """Wasserstein-Procrustes: the same loop on random batches of words with equal weights.

    Their published schedule is `schedule="grave", coreset_size=500, steps=5000, epochs=5, pairs_per_step=1`; the
    defaults are those of QWP, so that the two differ in the coreset alone.
    """

    method: ClassVar[str] = "wp"
    summary: ClassVar[str] = "optimal transport between random batches of words, then refinement"
    paper: ClassVar[str] = "Grave, Joulin, Berthet 2019"

    coreset: str = "random"
