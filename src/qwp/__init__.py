"""qwp: align two word-embedding spaces without a dictionary, and estimate how well it succeeded.

>>> import qwp
>>> en, es = qwp.load("en.vec", max_vocab=200_000), qwp.load("es.vec", max_vocab=200_000)  # doctest: +SKIP
>>> alignment = qwp.align(en, es, seed=0)  # doctest: +SKIP
>>> alignment.quality.verdict, alignment.translate("house", k=3)  # doctest: +SKIP
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from qwp.errors import InputError, QwpError
from qwp.version import __version__

# Modules that import NumPy are imported on first use, because commands such as `qwp --version` do not need it.
if TYPE_CHECKING:
    from qwp.api import align, align_all, align_many, demo
    from qwp.downloads.folders import data_path
    from qwp.judging.analogies import evaluate_analogies
    from qwp.judging.counterparts import evaluate_counterparts
    from qwp.judging.evaluation import evaluate
    from qwp.judging.sentences import evaluate_sentences
    from qwp.judging.similarity import evaluate_similarity
    from qwp.methods import QWP
    from qwp.migration.comparison import compare
    from qwp.migration.run import migrate
    from qwp.report.writing import write_report
    from qwp.results.alignment import Alignment
    from qwp.results.all_pairs import AllPairs
    from qwp.results.several import MultiAlignment
    from qwp.shifts.compare import Shift, shift
    from qwp.spaces.embeddings import Embeddings
    from qwp.spaces.io import load
    from qwp.spaces.lexicon import Lexicon
else:
    _HOMES = {
        "QWP": "qwp.methods",
        "Alignment": "qwp.results.alignment",
        "AllPairs": "qwp.results.all_pairs",
        "Embeddings": "qwp.spaces.embeddings",
        "Lexicon": "qwp.spaces.lexicon",
        "MultiAlignment": "qwp.results.several",
        "Shift": "qwp.shifts.compare",
        "align": "qwp.api",
        "align_all": "qwp.api",
        "align_many": "qwp.api",
        "data_path": "qwp.downloads.folders",
        "demo": "qwp.api",
        "evaluate": "qwp.judging.evaluation",
        "evaluate_analogies": "qwp.judging.analogies",
        "evaluate_counterparts": "qwp.judging.counterparts",
        "evaluate_sentences": "qwp.judging.sentences",
        "evaluate_similarity": "qwp.judging.similarity",
        "compare": "qwp.migration.comparison",
        "load": "qwp.spaces.io",
        "migrate": "qwp.migration.run",
        "shift": "qwp.shifts.compare",
        "write_report": "qwp.report.writing",
    }
    _LAYERS = (
        "api",
        "arrays",
        "downloads",
        "judging",
        "maps",
        "methods",
        "migration",
        "results",
        "search",
        "shifts",
        "spaces",
        "stages",
        "ot",
    )

    def __getattr__(name: str) -> object:
        if name in _LAYERS:
            return importlib.import_module(f"qwp.{name}")
        if name not in _HOMES:
            raise AttributeError(f"module 'qwp' has no attribute {name!r}")
        value = globals()[name] = getattr(importlib.import_module(_HOMES[name]), name)
        return value

    def __dir__() -> list[str]:
        return sorted({*__all__, *_LAYERS, *(name for name in globals() if name.startswith("__"))})


__all__ = [
    "QWP",
    "Alignment",
    "AllPairs",
    "Embeddings",
    "InputError",
    "Lexicon",
    "MultiAlignment",
    "QwpError",
    "Shift",
    "__version__",
    "align",
    "align_all",
    "align_many",
    "compare",
    "data_path",
    "demo",
    "evaluate",
    "evaluate_analogies",
    "evaluate_counterparts",
    "evaluate_sentences",
    "evaluate_similarity",
    "load",
    "migrate",
    "shift",
    "write_report",
]
