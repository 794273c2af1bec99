"""Frames come back as they were sent, and nonsense is refused before room is made for it."""

from __future__ import annotations

import numpy as np
import pytest

from qwp.spaces.foreign import frames
from qwp.spaces.foreign.frames import HEAD, Head


def sent(words: frames.Words, vectors: frames.Numbers) -> list[bytes]:
    parts: list[bytes] = []
    frames.send_rows(lambda data: parts.append(bytes(data)), words, vectors)
    return parts


@pytest.mark.parametrize("kind", ["f2", "f4", "f8", "i1", "u1", "i8", ">f4"])
def test_rows_come_back(kind: str) -> None:
    vectors = np.arange(6).reshape(3, 2).astype(kind)
    words: list[str | None] = ["a", None, "\ud800é日\n"]
    head, numbers = sent(words, vectors)
    found = frames.unpacked_head(head[: HEAD.size])
    assert (found.rows, found.dim, found.numbers_bytes) == (3, 2, len(numbers))
    assert frames.unpacked_words(head[HEAD.size :], 3) == words
    assert found.dtype is not None
    np.testing.assert_array_equal(np.frombuffer(numbers, found.dtype).reshape(3, 2), vectors)


def test_many_rows_are_sent_in_several_frames() -> None:
    parts = sent(None, np.zeros((5, 1 << 20), "f4"))
    heads = [frames.unpacked_head(part) for part in parts[::2]]
    assert [head.rows for head in heads] == [2, 2, 1]
    assert {head.text_bytes for head in heads} == {0}


def test_ends_have_a_short_text() -> None:
    parts: list[bytes] = []
    frames.send_end(parts.append, frames.REFUSED, "x" * 100_000)
    frames.send_start(parts.append, 7)
    assert len(parts[0]) == HEAD.size + frames.MAX_TEXT_BYTES
    assert frames.unpacked_head(parts[1]) == Head(frames.START, None, 7, 0, 0)


@pytest.mark.parametrize(
    "head",
    [
        (b"?", b"f4", 1, 1, 0),
        (frames.ROWS, b"O8", 1, 1, 0),
        (frames.ROWS, b"f4", 0, 1, 0),
        (frames.END, b"", 0, 0, 9),
        (frames.REFUSED, b"", 0, 0, 1 << 40),
    ],
)
def test_other_heads_are_refused(head: tuple[bytes, bytes, int, int, int]) -> None:
    with pytest.raises(ValueError, match="received a frame"):
        frames.unpacked_head(HEAD.pack(*head))


@pytest.mark.parametrize(
    "data", [b"", np.array([5], "<i4").tobytes() + b"ab", np.array([1], "<i4").tobytes() + b"\xff"]
)
def test_words_of_another_length_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - of NumPy, of a codec, or our own
        frames.unpacked_words(data, 1)
