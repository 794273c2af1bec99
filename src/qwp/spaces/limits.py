"""Limits for files: sizes beyond which a file is damaged, or made to exhaust the memory of its reader.

An uncompressed file cannot hold more than its bytes. A compressed one can unpack to a thousand times its size, so the
unpacked size is limited in proportion to the file. Vectors compress to a half or a third, word lists to a quarter; both
are far from the limits.
"""

from __future__ import annotations

from dataclasses import dataclass

from qwp.errors import InputError

MAX_DIM = 1 << 18  # numbers in a vector
MAX_WORD_BYTES = (1 << 16) - 1  # UTF-8 bytes
MAX_LINE_BYTES = 1 << 23  # a line of text: MAX_DIM numbers of 30 characters


@dataclass(frozen=True)
class UnpackLimits:
    """Limits for compressed files.

    Attributes:
        ratio: unpacked bytes for each compressed byte.
        free_bytes: unpacked bytes that every file may have in addition.
        bytes_per_row: compressed bytes for each row.
        free_rows: rows that every file may have in addition.
    """

    ratio: int = 12
    free_bytes: int = 64 << 20
    bytes_per_row: int = 8
    free_rows: int = 1_000_000

    def max_bytes(self, size: int) -> int:
        """Return how many bytes a file of `size` compressed bytes may unpack to."""
        return self.ratio * size + self.free_bytes

    def max_rows(self, size: int) -> int:
        """Return how many words, or pairs of words, a file of `size` compressed bytes may hold."""
        return size // self.bytes_per_row + self.free_rows

    def bomb(self, path: object, size: int) -> InputError:
        """Return the error for a compressed file beyond the limits."""
        return InputError(
            f"{path} has {size:,} compressed bytes and unpacks to more than {self.max_bytes(size):,} bytes or "
            f"{self.max_rows(size):,} rows, expected less: it looks like a file made to exhaust memory; if you trust "
            "it, unpack it yourself and read the unpacked file"
        )

    def too_compressible(self, path: object, size: int) -> InputError:
        """Return the error for a file to write that its reader would refuse."""
        return InputError(
            f"{path} would be {size:,} compressed bytes and unpack to more than {self.max_bytes(size):,} bytes or "
            f"{self.max_rows(size):,} rows, which its reader refuses: its rows repeat each other; write them "
            "uncompressed (without .gz; words of many characters not as .npz)"
        )


UNPACK = UnpackLimits()
"""The limits in use unless a test passes others."""
