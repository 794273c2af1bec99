"""Lines "word number number ...": a fast way for blocks of regular lines, a careful one for the others."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qwp.spaces.embeddings import FloatArray
from qwp.spaces.io.arguments import UTF8, text_in
from qwp.spaces.io.numbers import PAD_FRONT, DecimalParser, IntArray, fits, is_number_like, padded, parse_one
from qwp.spaces.limits import MAX_DIM, MAX_WORD_BYTES

BLANKS = b" \t"
_RUN_OF_BLANKS = re.compile(rb"  +")
_TAB_TO_BLANK = bytes.maketrans(b"\t", b" ")
_TOKENS = 3 << 15  # numbers parsed at a time: usually those of one block
_local = threading.local()


class BadLineError(Exception):
    """Why a line cannot be used: what it holds and what was expected."""


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive lines after parsing.

    Attributes:
        words: the words of the sound lines.
        vectors: (len(words), d).
        bad: line (0 is the first of the block) and explanation of the others.
        n_lines: sound and bad lines together.
    """

    words: list[str]
    vectors: FloatArray
    bad: list[tuple[int, str]]
    n_lines: int


def parse_block(data: bytes, dim: int, dtype: np.dtype[Any], encoding: str = UTF8) -> Block:
    """Parse whole lines, each ended by a newline, into words and vectors of ``dim`` numbers."""
    text = padded(data)
    separators, last = _separators(text, data)
    first = np.concatenate([[0], last[:-1] + 1])  # index of each line's first separator
    rows = np.flatnonzero(_regular_lines(separators, first, last, dim))
    bounds = _bounds(separators, first, rows, dim)
    vectors = np.zeros((len(last), dim), dtype=dtype)
    refused = _parse_numbers(data, text, bounds, rows, vectors)

    ends = separators[last] - PAD_FRONT
    begins = np.concatenate([[0], ends[:-1] + 1])
    words = _decode_words(data, begins, rows, bounds[:, 0] - PAD_FRONT, encoding)
    for line in refused:
        words[line] = None
    bad: list[tuple[int, str]] = []
    for line in [line for line, word in enumerate(words) if word is None]:
        try:
            words[line], vectors[line] = parse_line(data[begins[line] : ends[line]], dim, dtype, encoding)
        except BadLineError as error:
            bad.append((line, str(error)))
    if bad:
        vectors = np.delete(vectors, [line for line, _ in bad], axis=0)
    return Block([word for word in words if word is not None], vectors, bad, len(words))


def parse_line(line: bytes, dim: int, dtype: np.dtype[Any], encoding: str = UTF8) -> tuple[str, list[float]]:
    """One line (without its newline) as a word and its numbers; a word may hold blanks.

    Raises:
        BadLineError: the line is not a word and ``dim`` finite numbers.
    """
    line = line.removesuffix(b"\r").rstrip(BLANKS)
    if not line:
        raise BadLineError(f"is empty, expected a word and {dim} numbers")
    if line[:1] in (b" ", b"\t"):
        raise BadLineError(f"starts with a blank, expected a word before the {dim} numbers")
    tokens = _last_tokens(line, dim + 2)
    if len(tokens) <= dim:
        raise BadLineError(f"holds {len(tokens) - 1} numbers, expected {dim}")
    if len(tokens) > dim + 1 and is_number_like(tokens[-dim - 1]):
        raise BadLineError(f"holds {trailing_numbers(line)} numbers, expected {dim}")
    numbers = [_finite(token, number, dtype) for number, token in enumerate(tokens[-dim:], start=1)]
    return _word(line[: _end_of_word(line, tokens[-dim:])], encoding), numbers


def trailing_numbers(line: bytes) -> int:
    """How many numbers end the line, the first token not counted: it is always part of the word.

    More than MAX_DIM are not counted further.
    """
    line = line.removesuffix(b"\r").strip(BLANKS)
    count = 0
    for token in reversed(_last_tokens(line, MAX_DIM + 2)[1:]):
        if not is_number_like(token):
            break
        count += 1
    return count


def _last_tokens(line: bytes, most: int) -> list[bytes]:
    """The last ``most`` things between blanks, all if there are fewer; the line has no blanks at its ends.

    A line of one-digit numbers has as many of them as half its bytes, and each costs far more in a list: no more
    are made than are looked at.
    """
    text = line.translate(_TAB_TO_BLANK)
    if b"  " in text:
        text = _RUN_OF_BLANKS.sub(b" ", text)
    return text.rsplit(b" ", most)[-most:]


def _end_of_word(line: bytes, tokens: list[bytes]) -> int:
    """Where the word ends that stands before these tokens, the last ones of the line."""
    end = len(line)
    for token in reversed(tokens):
        end -= len(token)
        while line[end - 1] in BLANKS:
            end -= 1
    return end


def _finite(token: bytes, number: int, dtype: np.dtype[Any]) -> float:
    value = parse_one(token)
    if value is None:
        # Not what it holds instead: this may be a file of another kind, and its content is nobody's business.
        raise BadLineError(f"holds something else as number {number}, expected a decimal number")
    if not fits(value, dtype):
        shown = repr(token.decode()) if len(token) <= 40 else f"a number of {len(token)} characters"
        raise BadLineError(f"holds {shown} as number {number}, expected a finite {dtype.name} number")
    return value


def _word(raw: bytes, encoding: str) -> str:
    if len(raw) > MAX_WORD_BYTES:
        raise BadLineError(f"has a word of {len(raw)} bytes, expected at most {MAX_WORD_BYTES}")
    try:
        return raw.decode(encoding)
    except UnicodeError as error:
        start = error.start if isinstance(error, UnicodeDecodeError) else 0
        raise BadLineError(
            f"has a word with the byte 0x{raw[start]:02x} at position {start}, expected {text_in(encoding)}"
        ) from None


def _separators(text: npt.NDArray[np.uint8], data: bytes) -> tuple[IntArray, IntArray]:
    """Positions of blanks and newlines in the padded text, and which of them are the newlines."""
    body = text[PAD_FRONT : PAD_FRONT + len(data)]
    is_separator = body == ord(" ")
    is_separator |= body == ord("\n")
    if b"\t" in data:
        is_separator |= body == ord("\t")
    if b"\r" in data:
        # Only directly before a newline; elsewhere it belongs to the word or makes a bad number.
        is_separator[:-1] |= (body[:-1] == ord("\r")) & (body[1:] == ord("\n"))
    separators = np.flatnonzero(is_separator)
    last = np.flatnonzero(body.take(separators) == ord("\n"))
    separators += PAD_FRONT
    return separators, last


def _regular_lines(separators: IntArray, first: IntArray, last: IntArray, dim: int) -> npt.NDArray[np.bool_]:
    """Lines made of a word and dim tokens, with single blanks between and any number of them at the end.

    Args:
        separators: (s,) positions of blanks and newlines.
        first, last: (lines,) indices into separators of each line's first one and of its newline.
    """
    regular = last - first >= dim
    after = np.minimum(first + dim, last)  # the separator after the last number
    regular &= separators[last] - separators[after] == last - after
    begins = np.concatenate([[PAD_FRONT], separators[last[:-1]] + 1])
    regular &= separators[first] > begins  # there is a word
    return regular


def _bounds(separators: IntArray, first: IntArray, rows: IntArray, dim: int) -> IntArray:
    """Separators before, between and after the numbers of the given lines, (len(rows), dim + 1)."""
    n_lines = len(first)
    if len(rows) == n_lines and len(separators) % n_lines == 0:
        table = separators.reshape(n_lines, -1)
        if np.array_equal(first, np.arange(n_lines) * table.shape[1]):
            return table[:, : dim + 1]
    bounds: IntArray = separators[first[rows, None] + np.arange(dim + 1)]
    return bounds


def _parse_numbers(
    data: bytes, text: npt.NDArray[np.uint8], bounds: IntArray, rows: IntArray, vectors: FloatArray
) -> list[int]:
    """Read the numbers of regular lines.

    Args:
        data: the lines.
        text: the same, padded.
        bounds: (r, d + 1) separators around the numbers of the regular lines.
        rows: (r,) which lines these are.
        vectors: (lines, d) receives the numbers.

    Returns:
        the lines among them in which something is not a finite number.
    """
    dim = bounds.shape[1] - 1
    parser, values = _workspace(dim)
    step = parser.capacity // dim
    refused: list[int] = []
    for begin in range(0, len(rows), step):
        some = bounds[begin : begin + step]
        found = values[: len(some) * dim]
        starts = (some[:, :-1] + 1).ravel()
        ends = some[:, 1:].ravel()
        odd = parser.parse(text, starts, ends, found)
        for index in odd.tolist():
            token = data[starts[index] - PAD_FRONT : ends[index] - PAD_FRONT]
            value = parse_one(token)
            if value is None or not fits(value, vectors.dtype):
                refused.append(int(rows[begin + index // dim]))
            else:
                found[index] = value
        with np.errstate(over="ignore", invalid="ignore"):  # of what odd tokens left behind
            if len(rows) == len(vectors):
                vectors[begin : begin + step] = found.reshape(-1, dim)
            else:
                vectors[rows[begin : begin + step]] = found.reshape(-1, dim)
    return refused


def _workspace(dim: int) -> tuple[DecimalParser, npt.NDArray[np.float64]]:
    """This thread's parser with its output array, large enough for one line at least."""
    parser: DecimalParser | None = getattr(_local, "parser", None)
    if parser is None or parser.capacity < dim:
        capacity = max(_TOKENS, dim)
        _local.parser = parser = DecimalParser(capacity)
        _local.values = np.empty(capacity, dtype=np.float64)
    return parser, _local.values


def _decode_words(
    data: bytes, begins: IntArray, rows: IntArray, word_ends: IntArray, encoding: str
) -> list[str | None]:
    """The words of the given lines; None for other lines and for words that are too long or in another encoding."""
    words: list[str | None] = [None] * len(begins)
    for row, begin, end in zip(rows.tolist(), begins[rows].tolist(), word_ends.tolist(), strict=True):
        if end - begin > MAX_WORD_BYTES:
            continue
        try:
            words[row] = data[begin:end].decode(encoding)
        except UnicodeError:
            continue
    return words
