"""Provenance and identity of a run, as objects and as JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from qwp.results.provenance import IDENTITY, PROVENANCE, Identity, InputRecord, Provenance
from qwp.spaces.embeddings import Embeddings

A, B = "a" * 64, "b" * 64
RUN = Identity("1.0", "qwp", {"epsilon": 0.05}, 3, {"src": A, "tgt": B}, {"lexicon": None, "start_matrix": A})
MADE = Provenance.of(
    RUN,
    backend="numpy",
    src=InputRecord("a.vec", A, 10, 3, complete=False),
    tgt=InputRecord(None, B, 12, 3),
    seconds={"loop": 1.5},
    order="estimated",
)


def test_provenance_has_its_identity() -> None:
    assert MADE.identity() == RUN
    assert replace(MADE, seconds={}, backend="torch").identity() == RUN
    assert replace(MADE, src=replace(MADE.src, path="b.vec")).identity() == RUN
    assert replace(MADE, src=replace(MADE.src, sha256=B)).identity() != RUN


def test_json_round_trip() -> None:
    values = json.loads(json.dumps(MADE.to_dict()))
    assert PROVENANCE.problem(values, "provenance") is None
    assert Provenance.from_dict(values) == MADE


def test_optional_entries_may_be_missing() -> None:
    values = MADE.to_dict()
    for name in ("seconds", "supervision", "order"):
        del values[name]
    del values["tgt"]["complete"]
    assert PROVENANCE.problem(values, "provenance") is None
    found = Provenance.from_dict(values)
    assert (found.seconds, found.supervision, found.order, found.tgt.complete) == ({}, {}, "given", True)


def test_other_entries_are_required() -> None:
    for name in ("version", "method", "config", "seed", "backend", "src", "tgt"):
        values = MADE.to_dict()
        del values[name]
        assert PROVENANCE.problem(values, "provenance") == f"provenance.{name} is missing"


def test_vectors_are_shown_under_their_given_name() -> None:
    vectors = np.eye(3, dtype=np.float32)
    words = ["a", "b", "c"]
    assert str(InputRecord.of(Embeddings(words, vectors))) == "3 x 3"
    assert str(InputRecord.of(Embeddings(words, vectors, name="en"))) == "en 3 x 3"
    assert str(InputRecord("de.vec.gz", A, 3, 3)) == "de 3 x 3"  # as results of 0.1 are


NUMBERED = Identity("1.0", "qwp", {"epsilon": 0.05, "k": 3, "on": True}, 1, {"src": A, "tgt": B}, {"lexicon": None})


def test_equal_identities() -> None:
    assert NUMBERED.difference(NUMBERED) is None
    assert NUMBERED.difference(NUMBERED.to_dict()) is None
    assert NUMBERED.difference(replace(NUMBERED, config={"on": True, "k": 3.0, "epsilon": 0.05})) is None
    assert IDENTITY.problem(NUMBERED.to_dict(), "") is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 2}, "seed was 2, now 1"),
        ({"method": "wp"}, "method was 'wp', now 'qwp'"),
        ({"config": {**NUMBERED.config, "epsilon": 0.1}}, "config.epsilon was 0.1, now 0.05"),
        ({"config": {**NUMBERED.config, "on": 1}}, "config.on was 1, now True"),
        ({"config": {**NUMBERED.config, "more": 1}}, "config.more was 1, now None"),
        ({"config": {}}, "config.epsilon was None, now 0.05"),
        (
            {"inputs": {"src": B, "tgt": B}},
            "it had another input for src: sha256 bbbbbbbbbbbb..., now aaaaaaaaaaaa...; another file, or other words "
            "of it, see --max-vocab",
        ),
        ({"inputs": {"tgt": B, "src": A}}, "the languages were tgt, src, now they are src, tgt"),
        ({"supervision": {"lexicon": A}}, "it had another lexicon: sha256 aaaaaaaaaaaa..., now none"),
        ({"hub": "en"}, "hub was 'en', now None"),
        # The version is reported first.
        ({"version": "0.1", "config": {}, "seed": 9}, "it was made by qwp 0.1, this is qwp 1.0"),
    ],
)
def test_differences_in_words(change: dict[str, Any], message: str) -> None:
    assert NUMBERED.difference(replace(NUMBERED, **change)) == message


def test_interrupted_runs_of_other_code_differ() -> None:
    run, changed = replace(NUMBERED, code="1.0+aaaa"), replace(NUMBERED, code="1.0+bbbb")
    assert run.difference(changed) == "it was made by other code: 1.0+bbbb, this is 1.0+aaaa"
    assert run.difference(run) is None


def test_finished_runs_of_other_code_are_equal() -> None:
    # A finished result does not record the code.
    assert replace(NUMBERED, code="1.0+aaaa").difference(NUMBERED) is None
    assert NUMBERED.difference(replace(NUMBERED, code="1.0+aaaa")) is None


def test_missing_supervision_equals_none() -> None:
    assert NUMBERED.difference(replace(NUMBERED, supervision={})) is None
    assert NUMBERED.difference(replace(NUMBERED, supervision={}, seed=2)) == "seed was 2, now 1"


def test_missing_entries_are_differences() -> None:
    assert NUMBERED.difference({}) is not None
    for name in set(NUMBERED.to_dict()) - {"hub", "code"}:
        assert NUMBERED.difference({key: value for key, value in NUMBERED.to_dict().items() if key != name}) is not None
