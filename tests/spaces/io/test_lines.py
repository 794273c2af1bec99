from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qwp.spaces.io.lines import BadLineError, parse_block, parse_line, trailing_numbers
from qwp.spaces.limits import MAX_DIM, MAX_WORD_BYTES

F32 = np.dtype("float32")

numbers = st.one_of(
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr),
    st.floats(-5, 5).map(lambda x: f"{x:.4f}"),
    st.floats(-1e30, 1e30).map(lambda x: f"{x:.18e}"),
    st.sampled_from(["-0.0", "1", ".5", "5.", "+1.5", "1e-5", "1E+3", "0", "-0", "1e-50", "0.1000000000000000055"]),
)
words = st.text(st.characters(exclude_characters=" \t\n\r", exclude_categories=["Cs"]), min_size=1, max_size=8)


@given(st.data(), st.integers(1, 5))
def test_blocks_agree_with_python(data: st.DataObject, dim: int) -> None:
    rows = data.draw(st.lists(st.tuples(words, st.lists(numbers, min_size=dim, max_size=dim)), min_size=1))
    ending = data.draw(st.sampled_from(["\n", " \n", "\r\n", " \r\n"]))
    text = "".join(f"{word} {' '.join(values)}{ending}" for word, values in rows)
    block = parse_block(text.encode(), dim, F32)
    assert block.bad == []
    assert block.words == [word for word, _ in rows]
    expected = np.array([[np.float32(float(value)) for value in values] for _, values in rows], dtype=np.float32)
    assert np.array_equal(block.vectors.view(np.uint32), expected.view(np.uint32))


@given(st.binary(max_size=200), st.integers(1, 3))
def test_the_fast_way_and_the_careful_way_agree_on_any_bytes(noise: bytes, dim: int) -> None:
    # Bytes of numbers and blanks are frequent in this noise, so that some lines are sound.
    data = bytes(b"0123456789.- \nab\t\r"[byte % 18] if byte < 200 else byte for byte in noise) + b"\n"
    block = parse_block(data, dim, F32)
    good: list[tuple[str, list[float]]] = []
    bad: list[tuple[int, str]] = []
    lines = data.split(b"\n")[:-1]
    for number, line in enumerate(lines):
        try:
            good.append(parse_line(line, dim, F32))
        except BadLineError as error:
            bad.append((number, str(error)))
    assert block.n_lines == len(lines)
    assert block.bad == bad
    assert block.words == [word for word, _ in good]
    assert block.vectors.tolist() == [np.array(values, dtype=np.float32).tolist() for _, values in good]


def test_bad_lines_leave_the_others_in_place() -> None:
    block = parse_block(b"a 1 2\nb 1\nc 3 4\nd 1 x\n e 5 6\n\xff 1 2\nf 5 6\n", 2, F32)
    assert block.words == ["a", "c", "f"]
    assert block.vectors.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert [line for line, _ in block.bad] == [1, 3, 4, 5]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"", "is empty, expected a word and 2 numbers"),
        (b"word 1", "holds 1 numbers, expected 2"),
        (b"word 1 2 3", "holds 3 numbers, expected 2"),
        (b"word 1 2 3 4", "holds 4 numbers, expected 2"),
        (b" 1 2", "starts with a blank, expected a word before the 2 numbers"),
        (b"word 1 two", "holds something else as number 2, expected a decimal number"),
        (b"word nan 1", "holds 'nan' as number 1, expected a finite float32 number"),
        (b"word 1 -inf", "holds '-inf' as number 2, expected a finite float32 number"),
        (b"word 1e39 1", "holds '1e39' as number 1, expected a finite float32 number"),
        (b"word 1_0 1", "holds something else as number 1, expected a decimal number"),
        (
            b"w\xff 1 2",
            "has a word with the byte 0xff at position 1, expected UTF-8 text (--encoding names another)",
        ),
    ],
)
def test_complaints(line: bytes, message: str) -> None:
    with pytest.raises(BadLineError, match=f"^{re.escape(message)}$"):
        parse_line(line, 2, F32)
    assert parse_block(b"ok 1 2\n" + line + b"\n", 2, F32).bad == [(1, message)]


@pytest.mark.parametrize(
    ("line", "word"),
    [
        (b". . . 1 2", ". . ."),
        (b"at  name 1 2 ", "at  name"),
        (b"1990 1 2", "1990"),
        (b"tab\t1\t2", "tab"),
        (b"double  1  2", "double"),
        ("a\u00a0b 1 2".encode(), "a\u00a0b"),
        ("\u0085\u2028 1 2".encode(), "\u0085\u2028"),
        (b"a\rb 1 2\r", "a\rb"),
        (b"v\x0bt 1 2", "v\x0bt"),
    ],
)
def test_words(line: bytes, word: str) -> None:
    block = parse_block(line + b"\n", 2, F32)
    assert block.words == [word]
    assert block.vectors.tolist() == [[1, 2]]


def test_more_numbers_in_a_line_than_are_parsed_at_a_time() -> None:
    values = np.arange(40_000)
    block = parse_block(b"w " + b" ".join(b"%d.5" % value for value in values) + b"\n", 40_000, F32)
    assert block.vectors.tolist() == [(values + 0.5).tolist()]


def test_float64() -> None:
    block = parse_block(b"a 0.1 1e39\n", 2, np.dtype("float64"))
    assert block.vectors.tolist() == [[0.1, 1e39]]


@pytest.mark.parametrize(("line", "count"), [(b"a 1 2", 2), (b"1 2 3", 2), (b"a b 1", 1), (b"a 1 b", 0), (b"", 0)])
def test_trailing_numbers(line: bytes, count: int) -> None:
    assert trailing_numbers(line) == count


def test_words_that_are_too_long() -> None:
    longest = b"w" * MAX_WORD_BYTES
    block = parse_block(longest + b" 1 2\nw" + longest + b" 3 4\nx 5 6\n", 2, F32)
    assert block.words == [longest.decode(), "x"]
    assert block.bad == [(1, "has a word of 65536 bytes, expected at most 65535")]


def test_many_blanks_and_many_numbers_cost_one_pass() -> None:
    line = b"w" + b" " * 300_000 + b"1" + b" \t" * 300_000 + b"2"
    assert parse_line(line, 2, F32) == ("w", [1.0, 2.0])
    assert trailing_numbers(b"w" + b" 0" * 600_000) == MAX_DIM + 1
    with pytest.raises(BadLineError, match="numbers, expected 2"):
        parse_line(b"w" + b"  0" * 600_000, 2, F32)
