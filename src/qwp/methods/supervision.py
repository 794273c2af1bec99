"""What the user knows about the two languages, and which methods want it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from qwp.errors import InputError
from qwp.spaces.embeddings import FloatArray
from qwp.spaces.lexicon import Lexicon

NONE, OPTIONAL, REQUIRED, IDENTICAL = "none", "optional lexicon", "lexicon", "identical strings"


@dataclass(frozen=True)
class Supervision:
    """What the user knows about the two languages; most methods need none of it."""

    lexicon: Lexicon | None = None
    start_matrix: FloatArray | None = None

    def fingerprint(self) -> dict[str, str | None]:
        """Hashes that tell one supervision from another."""
        matrix = self.start_matrix
        return {
            "lexicon": None if self.lexicon is None else _digest(repr(self.lexicon.pairs).encode()),
            "start_matrix": None if matrix is None else _digest(np.asarray(matrix, "f8").tobytes()),
        }

    def check(self, method: str, wanted: str, *, takes_matrix: bool) -> None:
        """Refuse what a method needs and does not get, or gets and does not use. wanted: NONE, OPTIONAL, ..."""
        if self.lexicon is None and wanted == REQUIRED:
            raise InputError(
                f"method {method!r} is supervised and needs a seed lexicon, none was given: add --lexicon FILE "
                "(in Python lexicon=FILE), or choose a method that needs none, such as qwp"
            )
        if self.lexicon is not None and wanted in (NONE, IDENTICAL):
            raise InputError(f"a lexicon was given, but method {method!r} does not use one: leave it out")
        if self.start_matrix is not None and not takes_matrix:
            raise InputError(f"start_matrix was given, but method {method!r} does not use one: leave it out")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
