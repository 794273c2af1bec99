"""Parse and format decimal numbers, many at a time.

A token of up to eight characters fits into one 64-bit integer, so a block of tokens is one array of integers. Each step
of parsing is one array operation: mask other characters, find the decimal point, close the gap, weigh the digits.
Tokens of up to sixteen characters take two integers.

The digits form an integer below 2**53 and the power of ten is at most 10**22. Both are exact in float64, so one
division gives the correctly rounded value, the same bits as Python's ``float``.

The parser is hand-written because it is about eight times as fast as ``float`` on each token; `benchmarks/loader.py`
compares the loading time with gensim.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from qwp.arrays import AnyFloats, Bools, Floats, Ints
from qwp.spaces.limits import MAX_DIM

WordArray = npt.NDArray[np.uint64]

PAD_FRONT = 16  # windows start up to sixteen bytes before the end of a token
_PAD_BACK = 8

# No two alternatives begin with the same character, so that matching never backtracks.
_NUMBER_LIKE = re.compile(
    rb"[+-]?(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|nan|inf(?:inity)?)", re.IGNORECASE
)
_MAX_NUMBER_BYTES = 512  # the exact form of the smallest float64 has 1,074 digits, but no program writes it


def _u(value: int) -> np.uint64:
    return np.uint64(value)


_ALL = _u(0xFFFF_FFFF_FFFF_FFFF)
_ZEROS = _u(0x3030_3030_3030_3030)
_ABOVE_NINE = _u(0x7676_7676_7676_7676)
_HIGH_BITS = _u(0x8080_8080_8080_8080)
_POINT = _u(ord(".") ^ ord("0"))
# Multiplying 2**(8j) by this puts 8 - j into the top four bits.
_PLACE = _u(sum((k + 1) << (8 * k + 4) for k in range(8)))

_NEGATIVE = 32  # offset of the negated powers in _SIGNED_POWERS
_SIGNED_POWERS = np.array([sign * float(10**k) for sign in (1, -1) for k in range(_NEGATIVE)])
# Indexed by the position of the point in the first eight of sixteen characters (0: no point there).
_LEAD_WEIGHT = np.array([10**8] + [10**7] * 8, dtype=np.uint64)
_LEAD_PLACES = np.array([0] + [7 + k for k in range(1, 9)], dtype=np.int64)
_EXACT = _u(1 << 53)
_NONE = np.empty(0, dtype=np.int64)


def padded(data: bytes) -> npt.NDArray[np.uint8]:
    """Return a copy of data with padding on both ends, of a length that can be viewed as 64-bit integers.

    A position in data plus PAD_FRONT is the position in the result.
    """
    size = PAD_FRONT + len(data) + _PAD_BACK
    result = np.zeros(size + -size % 8, dtype=np.uint8)
    result[PAD_FRONT : PAD_FRONT + len(data)] = np.frombuffer(data, dtype=np.uint8)
    return result


class DecimalParser:
    """Parses tokens of the form [-]digits[.digits], up to ``capacity`` at a time.

    The working arrays are allocated once, because allocation would cost more than the arithmetic. An object therefore
    serves one thread at a time.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._tail = _Window(capacity)
        self._lead = _Window(capacity)
        self._sizes = np.empty(capacity, dtype=np.int64)
        self._negative = np.empty(capacity, dtype=np.int64)
        self._first = np.empty(capacity, dtype=np.uint8)
        self._divisors = np.empty(capacity, dtype=np.float64)

    def parse(
        self,
        text: npt.NDArray[np.uint8],
        starts: Ints,
        ends: Ints,
        values: Floats,
    ) -> Ints:
        """Parse tokens into ``values``.

        Args:
            text: the result of ``padded``.
            starts: (n,) positions of the first characters, n at most ``capacity``.
            ends: (n,) positions after the last characters.
            values: (n,) receives the numbers.

        Returns:
            indices of the tokens that have another form or are too long; their values are undefined.
        """
        n = len(starts)
        sizes, negative, first = self._sizes[:n], self._negative[:n], self._first[:n]
        text.take(starts, out=first, mode="clip")
        np.copyto(negative, np.equal(first, ord("-"), out=first.view(np.bool_)))
        np.subtract(ends, starts, out=sizes)
        sizes -= negative
        negative *= _NEGATIVE
        words = text.view("<u8").astype(np.uint64, copy=False)
        n_long = int(np.count_nonzero(sizes > 8)) if sizes.max(initial=0) > 8 else 0
        if n_long * 4 > n:
            return np.flatnonzero(self._parse_long(words, ends, sizes, negative, values))
        wrong = self._parse_short(words, ends, sizes, negative, values)
        if n_long:
            longs = np.flatnonzero(sizes > 8)
            found = np.empty(n_long, dtype=np.float64)
            wrong[longs] = self._parse_long(words, ends[longs], sizes[longs], negative[longs], found)
            values[longs] = found
        return np.flatnonzero(wrong) if wrong.any() else _NONE

    def _parse_short(
        self,
        words: WordArray,
        ends: Ints,
        sizes: Ints,
        negative: Ints,
        values: Floats,
    ) -> Bools:
        """Parse tokens of at most eight characters. Return a mask of those that have another form."""
        mantissa, places, wrong = self._tail.read(words, ends, sizes, back=0)
        refused: Bools = wrong != 0
        if sizes.min(initial=2) <= 1:
            refused |= sizes <= (places > 0)  # no digit at all
        negative += places.view(np.int64)
        self._divide(mantissa, negative, values)
        return refused

    def _parse_long(
        self,
        words: WordArray,
        ends: Ints,
        sizes: Ints,
        negative: Ints,
        values: Floats,
    ) -> Bools:
        """Parse tokens of at most sixteen characters. Return a mask of those that have another form."""
        tail, tail_places, wrong = self._tail.read(words, ends, np.minimum(sizes, 8), back=0)
        lead, lead_places, lead_wrong = self._lead.read(words, ends, sizes, back=8)
        wrong |= lead_wrong
        refused: Bools = wrong != 0
        refused |= sizes > 16
        refused |= (tail_places != 0) & (lead_places != 0)
        refused |= sizes <= (tail_places + lead_places > 0)
        places = lead_places.view(np.int64)
        lead *= _LEAD_WEIGHT.take(places, mode="clip")
        lead += tail
        refused |= lead >= _EXACT
        negative += tail_places.view(np.int64)
        negative += _LEAD_PLACES.take(places, mode="clip")
        self._divide(lead, negative, values)
        return refused

    def _divide(self, mantissa: WordArray, powers: Ints, values: Floats) -> None:
        """Set values to mantissa / power of ten; a negative divisor gives "-0.0" its sign."""
        divisors = self._divisors[: len(mantissa)]
        _SIGNED_POWERS.take(powers, out=divisors, mode="clip")
        np.copyto(values, mantissa.view(np.int64))
        values /= divisors


class _Window:
    """Reads the eight characters before each of many positions."""

    def __init__(self, capacity: int) -> None:
        self._memory = np.empty((6, capacity), dtype=np.uint64)

    def read(self, words: WordArray, ends: Ints, sizes: Ints, back: int) -> tuple[WordArray, WordArray, WordArray]:
        """Convert up to eight digits, with at most one point among them, to an integer.

        Args:
            words: the text as 64-bit integers.
            ends: (n,) ends of the tokens.
            sizes: (n,) lengths of the tokens.
            back: number of characters before the ends to skip.

        Returns:
            integers (n,), ten times too large for a window with a point; 1 + the number of digits after the point, or 0
            without a point (n,); a nonzero value for each window with other characters or two points (n,). The next
            call overwrites all of them.
        """
        digits, flags, places, below, wrong, byte = self._memory[:, : len(ends)]
        _gather(words, ends, 8 + back, digits, flags, places)
        _keep_digits(digits, sizes, 8 + back, flags)

        np.add(digits, _ABOVE_NINE, out=flags)
        flags |= digits
        flags &= _HIGH_BITS
        flags >>= _u(7)  # 1 in each byte that is not a digit
        np.subtract(flags, _u(1), out=below)
        np.bitwise_and(below, flags, out=wrong)  # nonzero if there are two such bytes
        np.multiply(flags, _PLACE, out=places)
        places >>= _u(60)
        np.multiply(flags, _u(0xFF), out=byte)
        byte &= digits
        flags *= _POINT
        byte ^= flags  # nonzero if the byte is not a point
        wrong |= byte
        _close_gap(digits, below, flags)
        _weigh(digits)
        return digits, places, wrong


def _gather(words: WordArray, ends: Ints, back: int, window: WordArray, shift: WordArray, upper: WordArray) -> None:
    """Put the eight bytes from ``back`` before each end into ``window``, the first in the lowest byte.

    NumPy gathers aligned integers several times faster than unaligned ones, hence two gathers and two shifts.
    """
    begins = np.subtract(ends, back)
    np.bitwise_and(begins, 7, out=shift.view(np.int64))
    shift <<= _u(3)
    begins >>= 3
    words.take(begins, out=window, mode="clip")
    words[1:].take(begins, out=upper, mode="clip")
    window >>= shift
    np.subtract(_u(64), shift, out=shift)
    upper <<= shift  # a shift by 64 gives 0
    window |= upper


def _keep_digits(window: WordArray, sizes: Ints, back: int, spare: WordArray) -> None:
    """Replace characters by their digit values, and those outside the token by 0."""
    np.subtract(back, sizes, out=spare.view(np.int64))
    spare <<= _u(3)
    np.left_shift(_ALL, spare, out=spare)
    window ^= _ZEROS
    window &= spare


def _close_gap(digits: WordArray, below: WordArray, moved: WordArray) -> None:
    """Move the digits after the point one byte down, over the point.

    Args:
        digits: (n,) eight digit values each.
        below: (n,) ones in all bits below the point; all ones without a point, so that nothing moves.
        moved: (n,) working memory.
    """
    np.right_shift(digits, _u(8), out=moved)
    digits ^= moved
    digits &= below
    digits ^= moved


def _weigh(digits: WordArray) -> None:
    """Combine eight digit values, the first in the lowest byte, into one integer: by pairs, fours, all."""
    digits *= _u(10 * 2**8 + 1)
    digits >>= _u(8)
    digits &= _u(0x00FF_00FF_00FF_00FF)
    digits *= _u(100 * 2**16 + 1)
    digits >>= _u(16)
    digits &= _u(0x0000_FFFF_0000_FFFF)
    digits *= _u(10000 * 2**32 + 1)
    digits >>= _u(32)


def is_number_like(token: bytes) -> bool:
    """Return whether a token is a decimal number of plausible length, or nan or inf."""
    return len(token) <= _MAX_NUMBER_BYTES and _NUMBER_LIKE.fullmatch(token) is not None


def parse_one(token: bytes) -> float | None:
    """Return the value of a token, nan and inf included; None if it is not a number."""
    return float(token) if is_number_like(token) else None


BLANKS = b" \t"
_RUN_OF_BLANKS = re.compile(rb"  +")
_TAB_TO_BLANK = bytes.maketrans(b"\t", b" ")


def trailing_numbers(line: bytes) -> int:
    """Count the numbers at the end of a line, up to MAX_DIM + 1. The first token is always part of the word."""
    line = line.removesuffix(b"\r").strip(BLANKS)
    count = 0
    for token in reversed(last_tokens(line, MAX_DIM + 2)[1:]):
        if not is_number_like(token):
            break
        count += 1
    return count


def last_tokens(line: bytes, most: int) -> list[bytes]:
    """Return the last `most` tokens of a line without blanks at its ends, or all if there are fewer.

    A line of one-digit numbers has half as many tokens as bytes, each an object: no more are created than needed.
    """
    text = line.translate(_TAB_TO_BLANK)
    if b"  " in text:
        text = _RUN_OF_BLANKS.sub(b" ", text)
    return text.rsplit(b" ", most)[-most:]


def fits(value: float, dtype: np.dtype[Any]) -> bool:
    """Return whether a number is finite in a type."""
    with np.errstate(over="ignore"):
        return bool(np.isfinite(dtype.type(value)))


HEADER = re.compile(rb"[ \t]*([0-9]{1,18})[ \t]+([0-9]{1,18})[ \t]*\r?(?:\n|$)")
BOM = b"\xef\xbb\xbf"


def header_line(count: int, dim: int) -> bytes:
    """Return the header line of a text or word2vec binary file."""
    return b"%d %d\n" % (count, dim)


CharTable = npt.NDArray[np.uint8]

MAX_DIGITS = 12  # a float32 times 10**12 is still exact in float64

# Shortest form: numbers in this range are formatted in bulk, without an exponent; others one by one.
_SMALLEST = 1e-5
_LARGEST = 1e6
_THRESHOLDS = np.array([float(f"1e{k}") for k in range(-4, 6)])  # the insertion index is 5 + the decimal exponent
_POWERS = np.array([float(10**k) for k in range(23)])
_PLACES = 13  # decimals that nine significant digits of _SMALLEST need
_SIGNIFICANT = (6, 7, 8, 9)  # nine digits identify every float32; six include all shorter forms, with trailing zeros
_PLACEHOLDER = b"\0"


def format_rows(vectors: npt.NDArray[np.float32], digits: int | None) -> list[bytes]:
    """Format each row as numbers separated by single blanks.

    Args:
        vectors: (b, d) finite float32.
        digits: digits after the point, 0 to MAX_DIGITS; None for the shortest text that restores the same float32.
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
    # Which of the two forms str() returns depends on the NumPy version.
    forms = (
        np.format_float_positional(value, unique=True, trim="0"),
        np.format_float_scientific(value, unique=True, trim="-"),
    )
    text = min(forms, key=len)
    # The reader rounds twice, to float64 and then to float32. If that gives another float32, write all digits.
    return (text if np.float32(float(text)) == value else repr(float(value))).encode()


def _shortest(flat: npt.NDArray[np.float32], size: Floats) -> tuple[Floats, int, Bools]:
    """Find the fewest decimals that round to the same float32.

    Args:
        flat: (n,) the numbers.
        size: (n,) their absolute values.

    Returns:
        absolute values times 10**places, rounded (n,); places; and a mask of the numbers for which that works (n,).
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
        # The reader divides in the same way, so it restores every number that passes here.
        same = (digits / power).astype(np.float32) == size32[left]
        scaled[left] = digits * _POWERS[_PLACES - decimals]
        left = left[~same]
        if not len(left):
            break
    tabled[left] = False
    zero = size == 0
    scaled[zero] = 0.0
    return scaled, _PLACES, tabled | zero


def _table(scaled: Floats, places: int, strip: bool) -> tuple[CharTable, Bools]:
    """Return characters and a mask of those to keep, (n, sign + integer digits + point + places + separator).

    Args:
        scaled: (n,) integers: the absolute values times 10**places.
        places: digits after the point.
        strip: leave out trailing zeros, except one directly after the point.
    """
    rest = scaled.astype(np.uint64)
    whole_digits = max(1, len(str(int(rest.max(initial=0)))) - places)
    point = 1 + whole_digits
    width = point + 1 + places + 1
    characters = np.empty((len(rest), width), dtype=np.uint8)
    keep = np.ones((len(rest), width), dtype=np.bool_)
    needed = np.zeros(len(rest), dtype=np.bool_)
    for column in range(point + places, point, -1):
        rest, digit = _last_digit(rest)
        characters[:, column] = digit
        if strip and column > point + 1:
            needed |= digit != ord("0")
            keep[:, column] = needed
    characters[:, point] = ord(".")
    keep[:, point] = places > 0
    for column in range(point - 1, 0, -1):
        if column < point - 1:
            keep[:, column] = rest > 0
        rest, digit = _last_digit(rest)
        characters[:, column] = digit
    return characters, keep


def _last_digit(numbers: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint8]]:
    """Return numbers without their last digit, and that digit as a character."""
    tenth = numbers // np.uint64(10)
    digit = (numbers - tenth * np.uint64(10)).astype(np.uint8)
    digit += np.uint8(ord("0"))
    return tenth, digit


def _sign_and_separate(characters: CharTable, keep: Bools, flat: AnyFloats, dim: int) -> None:
    """Fill in the first column (the sign) and the last (a blank, or a newline at the end of each row)."""
    characters[:, 0] = ord("-")
    keep[:, 0] = np.signbit(flat)
    characters[:, -1] = ord(" ")
    characters[dim - 1 :: dim, -1] = ord("\n")


def _reserve(characters: CharTable, keep: Bools, rows: Ints) -> None:
    """Put one placeholder in place of each number that is formatted one by one."""
    keep[rows, :-1] = False
    keep[rows, 0] = True
    characters[rows, 0] = ord(_PLACEHOLDER)


def _fill(text: bytes, numbers: list[bytes]) -> bytes:
    pieces = text.split(_PLACEHOLDER)
    parts = [pieces[0]]
    for number, piece in zip(numbers, pieces[1:], strict=True):
        parts += (number, piece)
    return b"".join(parts)
