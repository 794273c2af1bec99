"""How much a file may ask for: sizes beyond which it is damaged, or made to fill the memory of whoever opens it.

A file that is stored as it is cannot hold more than its bytes. A compressed one can unpack to a thousand times its
size, so what it unpacks to is bounded by the size it has: vectors pack to a half or a third, lists of words to a
quarter, and both are far from these limits.
"""

from __future__ import annotations

from qwp.errors import InputError

MAX_DIM = 1 << 18  # numbers in a vector
MAX_WORD_BYTES = (1 << 16) - 1  # of UTF-8
MAX_LINE_BYTES = 1 << 23  # a line of text: MAX_DIM numbers of 30 characters

_RATIO = 12
_FREE_BYTES = 64 << 20  # unpacked without question
_BYTES_PER_ROW = 8
_FREE_ROWS = 1_000_000


def unpacked_bytes(size: int) -> int:
    """What a compressed file of this many bytes may unpack to."""
    return _RATIO * size + _FREE_BYTES


def packed_rows(size: int) -> int:
    """How many words, or pairs of words, a compressed file of this many bytes may hold."""
    return size // _BYTES_PER_ROW + _FREE_ROWS


def bomb(path: object, size: int) -> InputError:
    """The refusal of a compressed file that holds more than it should."""
    return InputError(
        f"{path} has {size:,} compressed bytes and unpacks to more than {unpacked_bytes(size):,} bytes or "
        f"{packed_rows(size):,} rows, expected less: it looks like a file made to fill the memory; if you trust it, "
        "unpack it yourself and read the unpacked file"
    )


def too_compressible(path: object, size: int) -> InputError:
    """The refusal to write a file that would be refused when it is read."""
    return InputError(
        f"{path} would be {size:,} compressed bytes and unpack to more than {unpacked_bytes(size):,} bytes or "
        f"{packed_rows(size):,} rows, which is refused when it is read: its rows repeat each other; write them "
        "uncompressed (without .gz; words of many characters not as .npz)"
    )
