"""qwp: put two word-embedding spaces into one, with no dictionary, and say how well it went.

>>> import qwp
>>> en, es = qwp.load("en.vec", max_vocab=200_000), qwp.load("es.vec", max_vocab=200_000)  # doctest: +SKIP
>>> alignment = qwp.align(en, es, seed=0)  # doctest: +SKIP
>>> alignment.quality.verdict, alignment.translate("house", k=3)  # doctest: +SKIP
"""

from __future__ import annotations

__version__ = "0.1.0"

from qwp.aligners import QWP
from qwp.alignment import Alignment
from qwp.api import align, align_all, align_many
from qwp.embeddings import Embeddings
from qwp.errors import InputError, QwpError
from qwp.evaluation import evaluate
from qwp.io import load
from qwp.lexicon import Lexicon
from qwp.multi_alignment import MultiAlignment

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
    "evaluate",
    "load",
]
