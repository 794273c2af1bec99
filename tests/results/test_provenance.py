"""Where a result came from, as an object, as JSON, and as the identity of a run."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np

from qwp.results.identity import Identity
from qwp.results.provenance import PROVENANCE, InputRecord, Provenance
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


def test_the_rest_is_needed() -> None:
    for name in ("version", "method", "config", "seed", "backend", "src", "tgt"):
        values = MADE.to_dict()
        del values[name]
        assert PROVENANCE.problem(values, "provenance") == f"provenance.{name} is missing"


def test_vectors_are_shown_under_a_name_that_somebody_gave() -> None:
    vectors = np.eye(3, dtype=np.float32)
    words = ["a", "b", "c"]
    assert str(InputRecord.of(Embeddings(words, vectors))) == "3 x 3"
    assert str(InputRecord.of(Embeddings(words, vectors, name="en"))) == "en 3 x 3"
    assert str(InputRecord("de.vec.gz", A, 3, 3)) == "de 3 x 3"  # as results of 0.1 are
