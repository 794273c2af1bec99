"""Words and numbers as they stand in a page: escaped, rounded, and how wide they are."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable
from numbers import Integral, Real

import numpy as np

MISSING = "–"
_LABEL_CHARACTERS = 24


def number(value: object, decimals: int | None = None) -> str:
    """A cell of a table: whole numbers with separators, others with `decimals` (None: as many as needed)."""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, Integral):
        return f"{int(value):,}"
    if isinstance(value, Real):
        return _fraction(float(value), decimals)
    return MISSING if value is None else str(value)


def _fraction(value: float, decimals: int | None) -> str:
    if not math.isfinite(value):
        return MISSING
    if decimals is not None and (value == 0 or 1e-4 <= abs(value) < 1e12):
        return f"{value:,.{decimals}f}"
    return f"{value:,.1f}" if 1000 <= abs(value) < 1e12 else f"{value:.4g}"


def decimals_of(values: Iterable[object]) -> int | None:
    """How many decimals the fractions in a column need to line up; None where it holds no fractions."""
    cells = [number(v) for v in values if isinstance(v, Real) and not isinstance(v, Integral)]
    return max((len(cell.partition(".")[2]) for cell in cells if "e" not in cell), default=None)


def is_figure(value: object) -> bool:
    """Whether a cell belongs into a column of numbers."""
    return value is None or (isinstance(value, Real) and not isinstance(value, bool))


def percent(share: float) -> str:
    """A share from 0 to 1 in percent."""
    return f"{100 * share:.1f}" if math.isfinite(share) else MISSING


def text_width(text: str) -> float:
    """An estimate in pixels at 12.5px; East Asian wide characters take a full em, combining marks nothing."""
    wide = {"W": 13.0, "F": 13.0}
    return sum(0.0 if unicodedata.combining(c) else wide.get(unicodedata.east_asian_width(c), 7.0) for c in text)


def shortened(word: str) -> str:
    """A word as a label in a picture."""
    return word if len(word) <= _LABEL_CHARACTERS else word[: _LABEL_CHARACTERS - 1] + "…"
