"""Where a result came from, as an object, as JSON, and as the identity of a run."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from qwp.results.identity import Identity
from qwp.results.provenance import PROVENANCE, InputRecord, Provenance

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


def test_it_has_the_identity_it_was_made_of() -> None:
    assert MADE.identity() == RUN
    assert replace(MADE, seconds={}, backend="torch").identity() == RUN
    assert replace(MADE, src=replace(MADE.src, path="b.vec")).identity() == RUN
    assert replace(MADE, src=replace(MADE.src, sha256=B)).identity() != RUN


def test_there_and_back() -> None:
    values = json.loads(json.dumps(MADE.to_dict()))
    assert PROVENANCE.problem(values, "provenance") is None
    assert Provenance.from_dict(values) == MADE


def test_the_first_results_had_less() -> None:
    values = MADE.to_dict()
    for name in ("seconds", "supervision", "order"):
        del values[name]
    del values["tgt"]["complete"]
    assert PROVENANCE.problem(values, "provenance") is None
    found = Provenance.from_dict(values)
    assert (found.seconds, found.supervision, found.order, found.tgt.complete) == ({}, {}, "given", True)


@pytest.mark.parametrize("name", ["version", "method", "config", "seed", "backend", "src", "tgt"])
def test_the_rest_is_needed(name: str) -> None:
    values = MADE.to_dict()
    del values[name]
    assert PROVENANCE.problem(values, "provenance") == f"provenance.{name} is missing"
