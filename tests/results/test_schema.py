"""Untrusted JSON: bounds while it is parsed, and one sentence about each problem."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwp import InputError
from qwp.results.schema import (
    HASH,
    Anything,
    Flag,
    Int,
    Kind,
    ListOf,
    MapOf,
    Number,
    Optional,
    Record,
    Scalar,
    Text,
    digest,
    read_object,
)
from qwp.spaces.io.arguments import parse_json

plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(plain)
@settings(max_examples=25)
def test_json_round_trip(value: Any) -> None:
    assert parse_json(json.dumps(value).encode()) == value
    assert digest(parse_json(json.dumps(value, indent=3).encode())) == digest(value)


def test_files_without_an_object_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.json"
    with pytest.raises(InputError, match=r"x.json does not exist: do this"):
        read_object(path, "do this")
    with pytest.raises(InputError, match="is no file"):
        read_object(tmp_path, "do this")
    path.write_text("[1]")
    with pytest.raises(InputError, match=r"x.json is damaged \(it holds \[1\]; expected an object\): do this"):
        read_object(path, "do this")
    path.write_text('{"a": 1}')
    assert read_object(path, "do this") == {"a": 1}
    with pytest.raises(InputError, match="larger than"):
        read_object(path, "do this", most=7)


def test_digest_depends_on_the_content_only(tmp_path: Path) -> None:
    value = {"b": [1, 2.5, None], "a": {"x": "é\ud800"}}
    same = {"a": {"x": "é\ud800"}, "b": [1, 2.5, None]}
    assert digest(value) == digest(same)
    for other in ({**value, "b": [1, 2.5]}, {**value, "b": [1.0, 2.5, None]}, {**value, "c": None}):
        assert digest(other) != digest(value)


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        (Text(), ["", "é", "x" * 10_000], [None, 1, ["x"], "x" * 10_001, "\ud800"]),
        (Text(surrogates=True), ["\ud800"], [1]),
        (Text(pattern="[ab]+"), ["ab"], ["", "abc", "ab\n", 1]),
        (Text(choices=("a", "b")), ["a"], ["c", "", None, ["a"], {}]),
        (HASH, ["0" * 64], ["0" * 63, "G" * 64, None]),
        (Int(), [0, 5, 2**63 - 1], [-1, 2**63, 1.0, True, None, "1", float("nan")]),
        (Int(1, 3), [1, 3], [0, 4]),
        (Number(), [0, -1.5, 10**18], [True, None, "1", float("nan"), float("inf"), [1.0]]),
        (Number(0, 1), [0, 0.5, 1], [-0.1, 1.1]),
        (Flag(), [True, False], [0, 1, None, "true"]),
        (Optional(Flag()), [None, True], [0]),
        (Scalar(), [None, True, 1, 1.5, "x"], [[], {}, float("nan"), "\ud800"]),
        (Anything(), [None, [], {"a": [1]}, float("nan")], []),
        (ListOf(Flag(), least=1, most=2), [[True], [True, False]], [[], [1], [True] * 3, True, {"0": True}]),
        (MapOf(Int()), [{}, {"a": 1}], [{"a": "1"}, [], None, {"\ud800": 1}]),
        (Record({"a": Flag(), "b": Int()}, frozenset({"b"})), [{"a": True}, {"a": True, "b": 1}], [{}, {"b": 1}]),
        (Record({"a": Flag()}), [{"a": True}], [{"a": 1}, {"a": True, "c": 1}, [], None]),
    ],
)
def test_kinds(kind: Kind, right: list[Any], wrong: list[Any]) -> None:
    for value in right:
        assert kind.problem(value, "it") is None
    for value in wrong:
        problem = kind.problem(value, "it")
        assert problem is not None
        assert "it" in problem
        assert len(problem) < 400


def test_problems_name_the_location() -> None:
    kind = Record({"a": ListOf(Record({"b": MapOf(Int())}))})
    assert kind.problem({"a": [{"b": {}}, {"b": {"c": -1}}]}, "") == (
        "a[1].b.c is -1; expected a whole number from 0 to 9223372036854775807"
    )
    assert kind.problem({"a": [{}]}, "") == "a[0].b is missing"
    assert kind.problem({"a": [], "x": 1}, "") == "'x' is not known"
