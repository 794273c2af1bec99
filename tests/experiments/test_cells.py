"""Cells: their addresses, records and transport plans."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qwp.experiments.cells import (
    LEVELS,
    Cell,
    pack,
    packed_ranks,
    run_cell,
    saved_record,
    sketch_plan,
    unpack,
    unpacked_ranks,
)
from qwp.experiments.data import DirectionFiles
from qwp.experiments.jobs import JobDevice
from qwp.judging.evaluation import QueryRanks
from qwp.judging.ranks import AlignedFiles
from qwp.spaces.embeddings import Embeddings
from qwp.version import code_version

OPTIONS = {"start": "profiles", "start_words": 100, "steps": 2, "refine": 1, "verdict": "none", "bank_size": 2}


@pytest.fixture
def cell(folder: Path) -> Cell:
    inputs = DirectionFiles(folder / "en.vec", folder / "es.vec", folder / "en-es.txt")
    return Cell("en-es", "qwp", {**OPTIONS, "coreset_size": 40}, 0, inputs)


def test_an_address_depends_on_what_determines_the_result(cell: Cell, folder: Path) -> None:
    changes: tuple[dict[str, Any], ...] = ({"seed": 1}, {"method": "wp"}, {"max_vocab": 100}, {"options": OPTIONS})
    addresses = [cell.address(), *(replace(cell, **change).address() for change in changes)]
    for name in ("en.vec", "es.vec", "en-es.txt"):
        text = (folder / name).read_text()
        (folder / name).write_text(text[: text.rindex("\n", 0, -1) + 1])
        addresses.append(cell.address())
    assert len(set(addresses)) == len(addresses)


def test_an_address_depends_on_the_code(cell: Cell) -> None:
    assert cell.content()["version"] == code_version()
    assert cell.address() == hashlib.sha256(json.dumps(cell.content(), sort_keys=True).encode()).hexdigest()


def test_only_addresses_of_supervised_methods_depend_on_the_training_dictionary(cell: Cell, folder: Path) -> None:
    shutil.copy(folder / "en-es.txt", folder / "en-es.0-5000.txt")
    given = replace(cell, inputs=replace(cell.inputs, train=folder / "en-es.0-5000.txt"))
    assert given.address() == cell.address()
    supervised = replace(given, method="procrustes", options={}, supervised=True)
    before = supervised.address()
    (folder / "en-es.0-5000.txt").write_text("s1 t1\n")
    assert supervised.address() != before
    assert given.address() == cell.address()


def test_an_address_depends_on_nothing_else(cell: Cell, folder: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    shutil.copytree(folder, moved)
    (moved / "es.vec").rename(moved / "other.vec")
    inputs = DirectionFiles(moved / "en.vec", moved / "other.vec", moved / "en-es.txt")
    # Another folder, other names, options in another order, and an explicit default.
    options = dict(reversed({**cell.options, "epsilon": 0.05}.items()))
    assert replace(cell, inputs=inputs, options=options, direction="x-y").address() == cell.address()


def test_affinity_reflects_shared_stages(cell: Cell) -> None:
    def shared(one: Cell, other: Cell) -> int:
        steps = [a == b for a, b in zip(one.affinity(), other.affinity(), strict=True)]
        return steps.index(False) if False in steps else len(steps)

    options = dict(cell.options)
    assert shared(cell, replace(cell, options={**options, "refine": 0})) == 4, "files, start, banks and loop"
    assert shared(cell, replace(cell, options={**options, "epsilon": 0.1})) == 3
    assert shared(cell, replace(cell, options={**options, "coreset_size": 50})) == 2
    assert shared(cell, replace(cell, seed=1, options={**options, "order": "given"})) == 1, "another estimated order"
    given = replace(cell, options={**options, "order": "given"})
    assert shared(given, replace(given, seed=1)) == 2
    assert shared(cell, replace(cell, options={**options, "start_words": 50})) == 1
    assert shared(cell, replace(cell, max_vocab=100)) == 0
    # Methods with one stage share nothing.
    single = [replace(cell, method=name, options={}) for name in ("least-squares", "rcsls", "proc-b")]
    assert {shared(single[0], other) for other in single[1:]} == {1}
    assert shared(single[0], replace(single[0], options={"ridge": 1.0})) == 1


def test_a_cell_is_fitted_and_scored(cell: Cell) -> None:
    # Without the cache, because shared stages were timed in other fits.
    found = json.loads(json.dumps(run_cell(cell, JobDevice("cpu", 1), cache=None)))
    assert found["scores"]["nn"]["P@1"] > 0.9  # a rotated copy
    assert set(found["scores"]["csls"]) == {"P@1", "P@5", "P@10", "MRR", "MAP", "AP"}
    assert found["coverage"] == {"covered": 50, "words": 50}
    assert found["verdict"] == "unjudged"
    for retrieval in ("nn", "csls"):
        ranks = unpacked_ranks(found["ranks"], retrieval)
        assert ranks.golds.tolist() == [1] * 50
        for measure in ("P@1", "MAP"):
            shares, weights = ranks.shares(measure)
            assert shares.sum() / weights.sum() == pytest.approx(found["scores"][retrieval][measure])
    assert {"initialize", "loop", "refine"} <= set(found["stages"])
    assert sum(found["stages"].values()) <= found["seconds"]
    assert unpack(found["plan"]["plan"]).size == len(found["plan"]["src"]) * len(found["plan"]["tgt"])
    again = run_cell(cell, JobDevice("cpu", 1))
    assert (again["scores"], again["ranks"]) == (found["scores"], found["ranks"])
    # Only cells of seed 0 save a plan.
    assert "plan" not in run_cell(replace(cell, seed=1), JobDevice())


def test_a_supervised_cell_learns_from_its_dictionary(cell: Cell) -> None:
    inputs = replace(cell.inputs, train=cell.inputs.gold)
    supervised = replace(cell, method="procrustes", options={"verdict": "none"}, supervised=True, inputs=inputs)
    assert run_cell(supervised, JobDevice())["scores"]["nn"]["P@1"] == 1.0


def test_the_saved_record_of_a_cell(cell: Cell) -> None:
    record = saved_record(cell, cell.address(), {"error": "no"})
    assert (record["status"], record["direction"], record["config"]["coreset_size"]) == ("failed", "en-es", 40)
    assert saved_record(cell, "x", {"scores": {}})["status"] == "done"


def test_packing_round_trip() -> None:
    numbers = [0, 1, 255, 65_536, 2**32 - 1]
    assert unpack(pack(numbers)).tolist() == numbers
    assert unpack(pack([])).tolist() == []


def test_packed_small_numbers_are_compact() -> None:
    assert len(pack(np.ones(10_000))) < 100


def test_packed_ranks_round_trip() -> None:
    golds = np.array([2, 1])
    ranks = {"nn": QueryRanks(golds, np.array([1, 3, 7])), "csls": QueryRanks(golds, np.array([1, 2, 9]))}
    packed = packed_ranks(ranks)
    assert all(isinstance(text, str) for text in packed.values())
    found = unpacked_ranks(packed, "csls")
    assert (found.golds.tolist(), found.ranks.tolist()) == ([2, 1], [1, 2, 9])


def spaces(*, matched: bool) -> AlignedFiles:
    """Make 40 clouds of 20 words on each side; the target side is the same, or has other clouds."""
    rng = np.random.default_rng(0)
    clouds = np.repeat(rng.normal(size=(40, 50)), 20, axis=0)
    other = clouds if matched else np.repeat(rng.normal(size=(40, 50)), 20, axis=0)
    sides = [cloud + 0.05 * rng.normal(size=cloud.shape) for cloud in (clouds, other)]
    src, tgt = (Embeddings([f"{name}{i}" for i in range(800)], x) for name, x in zip("st", sides, strict=True))
    return AlignedFiles(src, tgt)


def off_the_diagonal(aligned: AlignedFiles) -> float:
    """Return the mean distance of the mass of the plan from the diagonal, in rows."""
    found = sketch_plan(aligned)
    plan = unpack(found["plan"]).reshape(len(found["src"]), len(found["tgt"]))
    assert (plan.max(), len(found["src"])) == (LEVELS, 32)
    rows, columns = np.indices(plan.shape)
    return float((plan * np.abs(rows - columns)).sum() / plan.sum())


def test_a_plan_that_matches_shows_a_diagonal() -> None:
    assert off_the_diagonal(spaces(matched=True)) < 3 < off_the_diagonal(spaces(matched=False))


def test_centres_are_named_by_words_of_their_side() -> None:
    found = sketch_plan(spaces(matched=True))
    assert all(word.startswith("s") for word in found["src"])
    assert all(word.startswith("t") for word in found["tgt"])
    assert sketch_plan(spaces(matched=True)) == found
    assert len(sketch_plan(spaces(matched=True), size=8, words=100)["src"]) == 8


def test_fewer_words_than_centres() -> None:
    rng = np.random.default_rng(0)
    src, tgt = (Embeddings(["a", "b", "c"], rng.normal(size=(3, 4))) for _ in range(2))
    assert len(sketch_plan(AlignedFiles(src, tgt))["src"]) == 3
