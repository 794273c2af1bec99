"""What tells one run from another, and how the difference is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from qwp.results.identity import IDENTITY, Identity

A, B = "a" * 64, "b" * 64
RUN = Identity("1.0", "qwp", {"epsilon": 0.05, "k": 3, "on": True}, 1, {"src": A, "tgt": B}, {"lexicon": None})


def test_the_same_run() -> None:
    assert RUN.difference(RUN) is None
    assert RUN.difference(RUN.to_dict()) is None
    assert RUN.difference(replace(RUN, config={"on": True, "k": 3.0, "epsilon": 0.05})) is None
    assert IDENTITY.problem(RUN.to_dict(), "") is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 2}, "seed was 2, now 1"),
        ({"method": "wp"}, "method was 'wp', now 'qwp'"),
        ({"config": {**RUN.config, "epsilon": 0.1}}, "config.epsilon was 0.1, now 0.05"),
        ({"config": {**RUN.config, "on": 1}}, "config.on was 1, now True"),
        ({"config": {**RUN.config, "more": 1}}, "config.more was 1, now None"),
        ({"config": {}}, "config.epsilon was None, now 0.05"),
        (
            {"inputs": {"src": B, "tgt": B}},
            "it had another input for src: sha256 bbbbbbbbbbbb..., now aaaaaaaaaaaa...; another file, or other words "
            "of it as by --max-vocab",
        ),
        ({"inputs": {"tgt": B, "src": A}}, "the languages were tgt, src, now they are src, tgt"),
        ({"supervision": {"lexicon": A}}, "it had another lexicon: sha256 aaaaaaaaaaaa..., now none"),
        ({"hub": "en"}, "hub was 'en', now None"),
        # Whatever else is different, too.
        ({"version": "0.1", "config": {}, "seed": 9}, "it was made by qwp 0.1, this is qwp 1.0"),
    ],
)
def test_differences_in_words(change: dict[str, Any], message: str) -> None:
    assert RUN.difference(replace(RUN, **change)) == message


def test_an_interrupted_run_of_other_code_is_another_one() -> None:
    run, changed = replace(RUN, code="1.0+aaaa"), replace(RUN, code="1.0+bbbb")
    assert run.difference(changed) == "it was made by other code: 1.0+bbbb, this is 1.0+aaaa"
    assert run.difference(run) is None


def test_a_finished_run_of_other_code_is_the_same() -> None:
    # A finished result says nothing of the code.
    assert replace(RUN, code="1.0+aaaa").difference(RUN) is None
    assert RUN.difference(replace(RUN, code="1.0+aaaa")) is None


def test_supervision_that_is_missing_is_none() -> None:
    assert RUN.difference(replace(RUN, supervision={})) is None
    assert RUN.difference(replace(RUN, supervision={}, seed=2)) == "seed was 2, now 1"


def test_a_dictionary_that_lacks_something_differs() -> None:
    assert RUN.difference({}) is not None
    for name in set(RUN.to_dict()) - {"hub", "code"}:
        assert RUN.difference({key: value for key, value in RUN.to_dict().items() if key != name}) is not None
