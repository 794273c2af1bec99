from __future__ import annotations

import gzip
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwp.downloads.filters import DamagedError, GzipFilter, PairFilter, TruncatedError, VectorFilter
from tests.downloads.conftest import DIM, PACKED, PAIRS, VECTORS, WORDS, cut


@settings(max_examples=30)
@given(st.integers(1, 400), st.integers(1, 3000), st.booleans())
def test_pieces_of_any_size_give_the_same_result(most: int, size: int, packed: bool) -> None:
    out: list[bytes] = []
    fed = (GzipFilter if packed else VectorFilter)(out.append, most)
    data = PACKED if packed else VECTORS
    for at in range(0, len(data), size):
        if not fed.done:
            fed.feed(data[at : at + size])
    fed.end(complete=True)
    assert b"".join(out) == cut(VECTORS, min(most, WORDS))
    assert (fed.entries, fed.total, fed.whole) == (min(most, WORDS), min(most, WORDS), most >= WORDS)


@given(st.integers(0, len(VECTORS) - 1), st.booleans())
def test_a_stream_that_ends_early_is_truncated(end: int, complete: bool) -> None:
    made = VectorFilter(lambda data: None, WORDS)
    made.feed(VECTORS[:end])
    with pytest.raises((TruncatedError, DamagedError)):
        made.end(complete=complete)


@given(st.integers(0, len(PACKED) - 1))
def test_a_gzip_stream_that_ends_early_is_truncated(end: int) -> None:
    made = GzipFilter(lambda data: None, WORDS + 1)
    made.feed(PACKED[:end])
    if not made.done:
        with pytest.raises(TruncatedError):
            made.end(complete=True)


def test_gzip_is_unpacked_in_small_pieces() -> None:
    """A small file that unpacks to 40 MB of zeros is refused after its first piece."""
    bomb = gzip.compress(b"9 300\n" + bytes(40 << 20))
    tracemalloc.start()
    with pytest.raises(DamagedError, match="the line of word 1 is longer than"):
        GzipFilter(lambda data: None, 9).feed(bomb)
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()


def test_the_header_has_the_number_of_words_kept() -> None:
    out: list[bytes] = []
    VectorFilter(out.append, 7).feed(VECTORS[:1000])
    assert out[0] == b"7 %d\n" % DIM


@pytest.mark.parametrize("head", [b"0 5\n", b"5 0\n", b"5 999999999\n", b"word 1 2 3\n", b"x" * 64])
def test_other_content_is_refused(head: bytes) -> None:
    with pytest.raises(DamagedError, match="expected vectors after a line 'count dimension'"):
        VectorFilter(lambda data: None, 5).feed(head)


def test_a_dictionary_is_written_when_it_is_complete() -> None:
    out: list[bytes] = []
    made = PairFilter(out.append)
    made.feed(PAIRS[:100])
    made.feed(PAIRS[100:])
    assert (out, made.done) == ([], False)
    made.end(complete=True)
    assert (out, made.entries, made.done) == ([PAIRS], 500, True)


def test_an_endless_dictionary_is_refused() -> None:
    made = PairFilter(lambda data: None)
    for _ in range(32):
        made.feed(bytes(1 << 20))
    with pytest.raises(DamagedError, match="more than"):
        made.feed(b"x")
