"""Wasserstein-Procrustes with random batches (Grave, Joulin, Berthet 2019): qWP without the quantization."""

from __future__ import annotations

from typing import Any

from qwp.aligners.qwp import QWP


class WP(QWP):
    """Wasserstein-Procrustes: the same loop on random batches of words with equal weights.

    Their published schedule is `schedule="grave", coreset_size=500, steps=5000, epochs=5, pairs_per_step=1`; the
    defaults are those of QWP, so that the two differ in the coreset alone.
    """

    method = "wp"

    def __init__(self, *, coreset: str = "random", **options: Any) -> None:
        super().__init__(coreset=coreset, **options)

    @classmethod
    def _parameter_names(cls) -> list[str]:
        return QWP._parameter_names()
