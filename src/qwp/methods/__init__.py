"""Methods by name. Each is one class with the same `fit(src, tgt, ...)`."""

from __future__ import annotations

from typing import Any

from qwp.checks import one_of
from qwp.errors import InputError
from qwp.methods.adversarial import Adversarial
from qwp.methods.base import Aligner
from qwp.methods.dema import DeMa
from qwp.methods.gromov import Gromov
from qwp.methods.identical import Identical
from qwp.methods.least_squares import LeastSquares
from qwp.methods.multi import Multi
from qwp.methods.proc_b import ProcB
from qwp.methods.procrustes import Procrustes
from qwp.methods.qwp import QWP
from qwp.methods.rcsls import RCSLS
from qwp.methods.run import Progress
from qwp.methods.self_learning import SelfLearning
from qwp.methods.wp import WP
from qwp.parameters import described

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
    one_of(METHODS, method=method)
    names = METHODS[method].parameter_names()
    unknown = sorted(set(options) - set(names))
    if unknown:
        raise InputError(f"method {method!r} has no option {', '.join(unknown)}; expected some of {', '.join(names)}")
    return METHODS[method](**options)


for _aligner in METHODS.values():
    _aligner.__doc__ = f"{_aligner.__doc__}\n{described(_aligner.parameters().values())}"


__all__ = ["METHODS", "QWP", "WP", "Aligner", "Multi", "Progress", "make_aligner"]
