from __future__ import annotations

import pytest

from qwp.errors import InputError
from qwp.explore.asked import Asked


def test_values_of_a_query() -> None:
    asked = Asked.of_query("a=3&q=caf%C3%A9&least=0.5&side=tgt")
    assert asked.whole("a", 0, 0, 9) == 3
    assert asked.text("q") == "café"
    assert asked.number("least", 0.0, 0.0, 1.0) == 0.5
    assert asked.choice("side", ("src", "tgt")) == "tgt"
    assert asked.whole("k", 10, 1, 50) == 10
    asked.finish()


def test_what_is_out_of_bounds_is_refused() -> None:
    cases: list[tuple[str, str]] = [
        ("a=-1", "a='-1' is out of range; expected a whole number, 0 to 9"),
        ("a=10", "a=10 is out of range"),
        ("a=1.5", "a='1.5' is out of range"),
        ("a=²", "a='²' is out of range"),
        ("a=" + "9" * 30, "is out of range"),
        ("a=1&a=2", "received a name twice"),
        ("a=%FF", "cannot be read"),
        ("a=1&" + "&".join(f"x{i}=1" for i in range(40)), "cannot be read"),
        ("q=" + "a" * 5000, "received a query of 5,002 characters, expected at most 4,096"),
    ]
    for query, message in cases:
        with pytest.raises(InputError, match=message.replace("(", r"\(")):
            Asked.of_query(query).whole("a", 0, 0, 9)


def test_other_kinds_are_refused() -> None:
    with pytest.raises(InputError, match="q is missing"):
        Asked({}).text("q")
    with pytest.raises(InputError, match="should be a text of at most 500 characters"):
        Asked({"q": "a" * 501}).text("q")
    with pytest.raises(InputError, match="should be a text"):
        Asked({"q": 1}).text("q")
    with pytest.raises(InputError, match="expected a number, 0 to 1"):
        Asked({"x": "nan"}).number("x", 0.0, 0.0, 1.0)
    with pytest.raises(InputError, match="expected a number"):
        Asked({"x": True}).number("x", 0.0, 0.0, 1.0)
    with pytest.raises(InputError, match="is not known; expected one of a, b"):
        Asked({"x": ["a"]}).choice("x", ("a", "b"))
    with pytest.raises(InputError, match="received 'x', which is not known here"):
        Asked({"x": 1}).finish()


def test_bodies_are_one_json_object() -> None:
    cases: list[bytes] = [b"", b"[]", b"\xff", b"{", b"1", b"[" * 100_000]
    for body in cases:
        with pytest.raises(InputError, match="expected one"):
            Asked.of_body(body)


def test_pairs_are_lists_of_two_words() -> None:
    cases: list[object] = [None, "ab", [["a"]], [["a", 1]], [["a", ""]], [["a", "b", "c"]], [["a", "b"]] * 3]
    for pairs in cases:
        with pytest.raises(InputError):
            Asked({"pairs": pairs}).pairs("pairs", 2)
        assert Asked({"pairs": [["a", "b"]]}).pairs("pairs", 2) == [("a", "b")]
