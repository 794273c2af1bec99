from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qwp.spaces.io.numbers import (
    HEADER,
    MAX_DIGITS,
    PAD_FRONT,
    DecimalParser,
    fits,
    format_rows,
    header_line,
    is_number_like,
    padded,
    parse_one,
)


def parse(tokens: list[bytes]) -> tuple[list[float], list[int]]:
    """Parse tokens separated by blanks. Return the values and the indices of refused tokens."""
    data = b" ".join(tokens) + b"\n"
    sizes = np.array([len(token) for token in tokens])
    ends = np.cumsum(sizes + 1) - 1 + PAD_FRONT
    values = np.empty(len(tokens))
    odd = DecimalParser(len(tokens)).parse(padded(data), ends - sizes, ends, values)
    return values.tolist(), odd.tolist()


def same(value: float, token: bytes) -> bool:
    expected = float(token)
    return value == expected and np.signbit(value) == np.signbit(expected)


plain = st.from_regex(rb"-?([0-9]{1,9}\.[0-9]{0,9}|\.[0-9]{1,9}|[0-9]{1,12})", fullmatch=True)
typical = st.floats(-10, 10, width=32).map(lambda x: f"{x:.4f}".encode())
precise = st.floats(-10, 10, width=32).map(lambda x: f"{x:.9g}".encode())


@given(st.lists(st.one_of(plain, typical, precise), min_size=1, max_size=40))
def test_values_equal_those_of_python(tokens: list[bytes]) -> None:
    values, odd = parse(tokens)
    for index, token in enumerate(tokens):
        if index not in odd:
            assert same(values[index], token), token


@pytest.mark.slow
@given(st.lists(st.from_regex(rb"-?[0-9]{1,3}\.[0-9]{1,11}", fullmatch=True), min_size=1, max_size=40))
def test_plain_tokens_up_to_fifteen_digits_take_the_fast_path(tokens: list[bytes]) -> None:
    assert parse(tokens)[1] == []


@given(st.lists(st.binary(min_size=0, max_size=20).map(lambda b: b.replace(b" ", b"")), min_size=1, max_size=30))
def test_other_tokens_are_refused(tokens: list[bytes]) -> None:
    values, odd = parse(tokens)
    for index, token in enumerate(tokens):
        if index not in odd:
            assert parse_one(token) is not None
            assert same(values[index], token)


@given(st.text("0123456789.-+eE/:", max_size=17).map(str.encode))
def test_almost_numbers_are_parsed_correctly_or_refused(token: bytes) -> None:
    values, odd = parse([token, b"0.5"])
    assert 1 not in odd
    if odd == []:
        assert parse_one(token) is not None
        assert same(values[0], token)


PLAIN = [
    b"0",
    b"1",
    b"-3",
    b"-0.0",
    b"0.0",
    b".5",
    b"-.5",
    b"5.",
    b"12345678",
    b"123456789",
    b"0.1234567",
    b"9007199254740991",
    b"0.123456789",
    b"-123.4567",
    b"-1234.5678",
    b"00000000.5",
    b"0000000000000.5",
]


def test_known_plain_tokens() -> None:
    for token in PLAIN:
        values, odd = parse([token])
        assert odd == [], token
        assert same(values[0], token), token


OTHERS = [
    b"",
    b".",
    b"-",
    b"-.",
    b"+1",
    b"1e5",
    b"1.2.3",
    b"..",
    b"1-2",
    b"1/2",
    b"nan",
    b"1_0",
    b"0x1",
    b"--1",
    b"9007199254740993",
    b"1.23456789012345678",
    b"1234567.1234567.1",
    b"12345678.123456/8",
    b"\xff",
]


def test_other_notations_are_left_to_the_caller() -> None:
    for token in OTHERS:
        assert parse([b"0.1", token, b"0.1"])[1] == [1], token


def test_short_and_long_tokens_together() -> None:
    tokens = [b"0.1"] * 20 + [b"-0.123456789"] + [b"2"] * 20 + [b"1e3"]
    values, odd = parse(tokens)
    assert odd == [41]
    assert values[:41] == [float(token) for token in tokens[:41]]


def test_parse_one() -> None:
    tokens = (b"+1.5", b"1e-5", b"1E+3", b"-2.5e2", b"inf")
    assert [parse_one(token) for token in tokens] == [1.5, 1e-5, 1000.0, -250.0, float("inf")]


def test_parse_one_is_strict() -> None:
    for token in (b"1_000", b" 1", b"1\x0b", b"abc", b"", b"\xd9\xa1", b"1e", b"e5", b"0x10"):
        assert parse_one(token) is None, token


def test_fits() -> None:
    assert fits(1e38, np.dtype("float32"))
    assert not fits(1e39, np.dtype("float32"))
    assert fits(1e39, np.dtype("float64"))
    assert not fits(float("nan"), np.dtype("float64"))


@pytest.mark.parametrize("size", [10_000, 1_000_000])
def test_matching_long_tokens_takes_linear_time(size: int) -> None:
    """A pattern with backtracking would take hours."""
    for token in (b"1" * size, b"1" * size + b"x", b"." + b"1" * size + b"x", b"1e" + b"1" * size, b"-" * size):
        assert not is_number_like(token)
        assert parse_one(token) is None


def test_the_longest_number() -> None:
    assert parse_one(b"1" * 300) == float("1" * 300)
    assert parse_one(b"0." + b"0" * 510) == 0.0
    assert parse_one(b"0." + b"0" * 511) is None
    assert parse_one(b"1" * 512) == float("inf")


@given(st.text("0123456789.+-eEnaifty", max_size=12).map(str.encode))
def test_is_number_like_agrees_with_python(token: bytes) -> None:
    try:
        float(token)
        expected = True
    except ValueError:
        expected = False
    assert is_number_like(token) == expected


@given(st.integers(0, 10**18 - 1), st.integers(0, 10**18 - 1))
def test_header_lines_match_the_header_pattern(count: int, dim: int) -> None:
    match = HEADER.fullmatch(header_line(count, dim))
    assert match is not None
    assert (int(match[1]), int(match[2])) == (count, dim)


@pytest.mark.parametrize("line", [b"2 3\n", b"2\t3\r\n", b"  2  3   \n", b"2 3"])
def test_blanks_and_line_ends_do_not_matter(line: bytes) -> None:
    match = HEADER.match(line)
    assert match is not None
    assert match.end() == len(line)


@pytest.mark.parametrize("line", [b"2\n", b"2 3 4\n", b"-2 3\n", b"2 3.0\n", b"a 3\n", b"", b"1" * 19 + b" 3\n"])
def test_other_lines_are_not_headers(line: bytes) -> None:
    assert HEADER.match(line) is None


finite = st.floats(width=32, allow_nan=False, allow_infinity=False)
usual = st.floats(-8, 8, width=32)
rounded = st.integers(-99999, 99999).map(lambda n: float(np.float32(n / 10_000)))


@given(st.lists(st.one_of(finite, usual, rounded), min_size=1, max_size=60))
def test_shortest_text_is_exact_and_not_longer_than_that_of_numpy(values: list[float]) -> None:
    array = np.array([values], dtype=np.float32)
    tokens = format_rows(array, None)[0].split(b" ")
    back = np.array([float(token) for token in tokens]).astype(np.float32)
    assert np.array_equal(back.view(np.uint32), array[0].view(np.uint32))
    for token, value in zip(tokens, array[0], strict=True):
        assert len(token) <= len(np.format_float_positional(value, unique=True, trim="0"))


@given(st.lists(st.one_of(finite, usual, rounded), min_size=1, max_size=60), st.integers(0, MAX_DIGITS))
def test_fixed_digits_equal_those_of_python(values: list[float], digits: int) -> None:
    array = np.array([values], dtype=np.float32)
    tokens = format_rows(array, digits)[0].decode().split(" ")
    assert tokens == [f"{float(value):.{digits}f}" for value in array[0]]


def test_known_rows() -> None:
    array = np.array([[0.1, -2.5, 0.0], [1e-9, 123456.0, -0.0]], dtype=np.float32)
    assert format_rows(array, None) == [b"0.1 -2.5 0.0", b"1e-09 123456.0 -0.0"]
    assert format_rows(array, 2) == [b"0.10 -2.50 0.00", b"0.00 123456.00 -0.00"]


@pytest.mark.parametrize("shape", [(1, 1), (3, 1), (1, 3), (5, 4)])
def test_rows_and_columns(shape: tuple[int, int]) -> None:
    array = (np.arange(shape[0] * shape[1]).reshape(shape) / 8).astype(np.float32)
    rows = [[float(token) for token in row.split(b" ")] for row in format_rows(array, None)]
    assert rows == array.tolist()
