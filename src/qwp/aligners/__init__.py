"""Methods by name. Each is one class with the same `fit(src, tgt, ...)`."""

from __future__ import annotations

from typing import Any

from qwp.aligners.adversarial import Adversarial
from qwp.aligners.base import Aligner, Progress
from qwp.aligners.dema import DeMa
from qwp.aligners.gromov import Gromov
from qwp.aligners.identical import Identical
from qwp.aligners.least_squares import LeastSquares
from qwp.aligners.multi import Multi
from qwp.aligners.proc_b import ProcB
from qwp.aligners.procrustes import Procrustes
from qwp.aligners.qwp import QWP
from qwp.aligners.rcsls import RCSLS
from qwp.aligners.self_learning import SelfLearning
from qwp.aligners.wp import WP
from qwp.errors import InputError

METHODS: dict[str, type[Aligner]] = {
    aligner.method: aligner
    for aligner in (
        QWP,
        WP,
        SelfLearning,
        Gromov,
        Adversarial,
        DeMa,
        Identical,
        LeastSquares,
        Procrustes,
        RCSLS,
        ProcB,
        Multi,
    )
}


def make_aligner(method: str, **options: Any) -> Aligner:
    """An unfitted aligner by method name."""
    if method not in METHODS:
        raise InputError(f"method {method!r} is not known; expected one of {', '.join(METHODS)}")
    names = METHODS[method].parameter_names()
    unknown = sorted(set(options) - set(names))
    if unknown:
        raise InputError(f"method {method!r} has no option {', '.join(unknown)}; expected some of {', '.join(names)}")
    return METHODS[method](**options)


__all__ = ["METHODS", "QWP", "WP", "Aligner", "Multi", "Progress", "make_aligner"]
