"""qwp: put two word-embedding spaces into one, with no dictionary, and say how well it went.

>>> import qwp
>>> en, es = qwp.load("en.vec", max_vocab=200_000), qwp.load("es.vec", max_vocab=200_000)  # doctest: +SKIP
>>> alignment = qwp.align(en, es, seed=0)  # doctest: +SKIP
>>> alignment.quality.verdict, alignment.translate("house", k=3)  # doctest: +SKIP
"""

from __future__ import annotations

from qwp.api import align, align_all, align_many, demo
from qwp.errors import InputError, QwpError
from qwp.judging.evaluation import evaluate
from qwp.methods import QWP
from qwp.results.alignment import Alignment
from qwp.results.several import MultiAlignment
from qwp.spaces.embeddings import Embeddings
from qwp.spaces.io import load
from qwp.spaces.lexicon import Lexicon
from qwp.version import __version__

__all__ = [
    "QWP",
    "Alignment",
    "Embeddings",
    "InputError",
    "Lexicon",
    "MultiAlignment",
    "QwpError",
    "__version__",
    "align",
    "align_all",
    "align_many",
    "demo",
    "evaluate",
    "load",
]
