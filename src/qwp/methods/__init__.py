"""The methods by name. Each is a class with the same `fit(src, tgt, ...)`."""

from __future__ import annotations

import inspect
from typing import Any

from qwp.errors import one_of
from qwp.methods.adversarial import Adversarial
from qwp.methods.aligner import Aligner
from qwp.methods.compositions import QWP, WP, Identical, LeastSquares, Procrustes
from qwp.methods.dema import DeMa
from qwp.methods.gromov import Gromov
from qwp.methods.presets import preset
from qwp.methods.proc_b import ProcB
from qwp.methods.rcsls import RCSLS
from qwp.methods.self_learning import SelfLearning
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
    )
}


def make_aligner(method: str, **options: Any) -> Aligner:
    """Return an unfitted aligner by the name of its method."""
    one_of(METHODS, method=method)
    return METHODS[method](**options)


def lexicon_start(method: str, *, given: bool) -> dict[str, Any]:
    """Return `start="lexicon"` if a lexicon is given and the method can be initialized from it; else no option."""
    return {"start": "lexicon"} if given and method in METHODS and "lexicon" in METHODS[method].initializers() else {}


for _aligner in METHODS.values():
    _aligner.__doc__ = f"{inspect.cleandoc(_aligner.__doc__ or '')}\n\n{described(_aligner.parameters().values())}"


__all__ = ["METHODS", "QWP", "WP", "Aligner", "lexicon_start", "make_aligner", "preset"]
