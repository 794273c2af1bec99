"""Numbers as decimal text, many at once: the counterpart of ``numbers``.

Each number becomes an integer part and a fixed count of decimals, both integers, whose digits are then
written column by column into a table of characters. The characters that belong to the text are picked from
it at the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

CharTable = npt.NDArray[np.uint8]
MaskTable = npt.NDArray[np.bool_]

MAX_DIGITS = 12  # a float32 times 10**12 is still exact in float64

# Shortest form: numbers in this range are written without an exponent by the table, others one by one.
_SMALLEST = 1e-5
_LARGEST = 1e6
_THRESHOLDS = np.array(
    [float(f"1e{k}") for k in range(-4, 6)]
)  # a number's place among them is 5 + its decimal exponent
_POWERS = np.array([float(10**k) for k in range(23)])
_PLACES = 13  # decimals that nine significant digits of the smallest number need
_SIGNIFICANT = (
    6,
    7,
    8,
    9,
)  # nine always identify a float32; six hold every shorter form, with zeros at the end
_PLACEHOLDER = b"\0"


def format_rows(vectors: npt.NDArray[np.float32], digits: int | None) -> list[bytes]:
    """One text for each row, numbers separated by single blanks.

    Args:
        vectors: (b, d) finite float32.
        digits: digits after the point, 0 to MAX_DIGITS; None for the shortest text that gives the same
            float32 back.
    """
    flat = vectors.ravel()
    size = np.abs(flat.astype(np.float64))
    if digits is None:
        scaled, places, tabled = _shortest(flat, size)
    else:
        tabled = size < 10.0 ** (15 - digits)
        scaled = np.rint(np.where(tabled, size, 0.0) * 10.0**digits)
        places = digits
    characters, keep = _table(scaled, places, strip=digits is None)
    _sign_and_separate(characters, keep, flat, vectors.shape[1])
    others = np.flatnonzero(~tabled)
    if len(others):
        _reserve(characters, keep, others)
    text = characters[keep].tobytes()
    if len(others):
        text = _fill(text, [_one(value, digits) for value in flat[others]])
    return text.split(b"\n")[:-1]


def _one(value: np.float32, digits: int | None) -> bytes:
    if digits is not None:
        return f"{value:.{digits}f}".encode()
    # Which of the two str() gives depends on the NumPy version.
    forms = (
        np.format_float_positional(value, unique=True, trim="0"),
        np.format_float_scientific(value, unique=True, trim="-"),
    )
    text = min(forms, key=len)
    # The reader rounds twice, to float64 and then to float32; where that ends elsewhere, all digits are written.
    return (text if np.float32(float(text)) == value else repr(float(value))).encode()


def _shortest(
    flat: npt.NDArray[np.float32], size: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], int, MaskTable]:
    """Decimals that round to the same float32, as few as possible.

    Args:
        flat: (n,) the numbers.
        size: (n,) their absolute values.

    Returns:
        the absolute values as integers after multiplying by 10**places (n,), places, and which of them hold
        (n,).
    """
    size32 = np.abs(flat)
    tabled = (size >= _SMALLEST) & (size < _LARGEST)
    safe = np.where(tabled, size, 1.0)
    exponent = np.searchsorted(_THRESHOLDS, safe, side="right") - 5
    scaled = np.zeros_like(size)
    left = np.arange(len(flat))
    for significant in _SIGNIFICANT:
        decimals = significant - 1 - exponent[left]
        power = _POWERS[decimals]
        digits = np.rint(safe[left] * power)
        # The reader divides in the same way, so what passes here comes back as it was.
        same = (digits / power).astype(np.float32) == size32[left]
        scaled[left] = digits * _POWERS[_PLACES - decimals]
        left = left[~same]
        if not len(left):
            break
    tabled[left] = False
    zero = size == 0
    scaled[zero] = 0.0
    return scaled, _PLACES, tabled | zero


def _table(scaled: npt.NDArray[np.float64], places: int, strip: bool) -> tuple[CharTable, MaskTable]:
    """Characters and which to keep, (n, 1 sign + integer digits + point + places + 1 separator).

    Args:
        scaled: (n,) integers: the absolute values times 10**places.
        places: digits after the point.
        strip: leave out zeros at the end, except for one after the point.
    """
    rest = scaled.astype(np.uint64)
    whole_digits = max(1, len(str(int(rest.max(initial=0)))) - places)
    point = 1 + whole_digits
    width = point + 1 + places + 1
    characters = np.empty((len(rest), width), dtype=np.uint8)
    keep = np.ones((len(rest), width), dtype=np.bool_)
    wanted = np.zeros(len(rest), dtype=np.bool_)
    for column in range(point + places, point, -1):
        rest, digit = _last_digit(rest)
        characters[:, column] = digit
        if strip and column > point + 1:
            wanted |= digit != ord("0")
            keep[:, column] = wanted
    characters[:, point] = ord(".")
    keep[:, point] = places > 0
    for column in range(point - 1, 0, -1):
        if column < point - 1:
            keep[:, column] = rest > 0
        rest, digit = _last_digit(rest)
        characters[:, column] = digit
    return characters, keep


def _last_digit(numbers: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint8]]:
    """The numbers without their last digit, and that digit as a character."""
    tenth = numbers // np.uint64(10)
    digit = (numbers - tenth * np.uint64(10)).astype(np.uint8)
    digit += np.uint8(ord("0"))
    return tenth, digit


def _sign_and_separate(characters: CharTable, keep: MaskTable, flat: npt.NDArray[np.floating[Any]], dim: int) -> None:
    """Fill in the first column (a minus where needed) and the last (a blank, or a newline after each row)."""
    characters[:, 0] = ord("-")
    keep[:, 0] = np.signbit(flat)
    characters[:, -1] = ord(" ")
    characters[dim - 1 :: dim, -1] = ord("\n")


def _reserve(characters: CharTable, keep: MaskTable, rows: npt.NDArray[np.int64]) -> None:
    """Leave one placeholder where a number is to be written another way."""
    keep[rows, :-1] = False
    keep[rows, 0] = True
    characters[rows, 0] = ord(_PLACEHOLDER)


def _fill(text: bytes, numbers: list[bytes]) -> bytes:
    pieces = text.split(_PLACEHOLDER)
    parts = [pieces[0]]
    for number, piece in zip(numbers, pieces[1:], strict=True):
        parts += (number, piece)
    return b"".join(parts)
