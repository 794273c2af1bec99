"""Words and numbers in a page."""

from __future__ import annotations

import math

import numpy as np

from qwp.report.text import decimals_of, number, percent, shortened, text_width


def test_numbers_in_tables() -> None:
    cases: list[tuple[object, str]] = [
        (True, "yes"),
        (np.bool_(False), "no"),
        (None, "–"),
        (12345, "12,345"),
        (np.int64(12345), "12,345"),
        (0.123456, "0.1235"),
        (np.float32(0.5), "0.5"),
        (12345.67, "12,345.7"),
        (math.inf, "–"),
        (1e-7, "1e-07"),
        ("text", "text"),
    ]
    for value, shown in cases:
        assert number(value) == shown


def test_columns_line_up_also_where_a_value_is_zero() -> None:
    values = [0.0, 0.125, 1.0]
    decimals = decimals_of(values)
    assert [number(value, decimals) for value in values] == ["0.000", "0.125", "1.000"]
    assert decimals_of([1, None]) is None


def test_long_words_are_shortened_and_wide_ones_measured() -> None:
    assert shortened("a" * 24) == "a" * 24
    assert shortened("a" * 25) == "a" * 23 + "…"
    assert text_width("ab") == 14.0
    assert text_width("日本") == 26.0
    assert text_width("e\u0301") == 7.0
    assert (percent(0.1234), percent(math.nan)) == ("12.3", "–")
