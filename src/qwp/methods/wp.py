"""Wasserstein-Procrustes with random batches (Grave, Joulin, Berthet 2019): qWP without the quantization."""

from __future__ import annotations

from dataclasses import replace

from qwp.methods.aligner import Aligner
from qwp.methods.qwp import QWP
from qwp.methods.supervision import OPTIONAL
from qwp.ot.supply import Coresets
from qwp.stages.wasserstein_procrustes import WassersteinProcrustes


class WP(Aligner):
    """Wasserstein-Procrustes: the same loop on random batches of words with equal weights.

    Their published schedule is `schedule="grave", coreset_size=500, steps=5000, epochs=5, pairs_per_step=1`; the
    defaults are those of QWP, so that the two differ in the coreset alone.
    """

    method = "wp"
    summary = "optimal transport between random batches of words, then refinement"
    paper = "Grave, Joulin, Berthet 2019"
    supervision = OPTIONAL
    takes_matrix = True
    pipeline = replace(QWP.pipeline, solve=WassersteinProcrustes(coresets=Coresets(kind="random")))
