"""Parts that cells share: results on one machine are identical with them and without, within their bounds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qwp.experiments.cells import Cell, run_cell
from qwp.experiments.data import Inputs
from qwp.experiments.engines.jobs import Device
from qwp.experiments.shared import Part, Parts, Sharing
from qwp.methods import QWP, Aligner, make_aligner
from qwp.methods.presets import preset
from qwp.methods.qwp import SEARCHES, STARTS
from qwp.parameters import Parameter
from qwp.results.checkpoints import RunState
from qwp.results.identity import Identity
from qwp.spaces.embeddings import Embeddings
from tests.problems import planted

SMALL: dict[str, Any] = {
    **preset("paper"),
    "start_words": 100,
    "start_steps": 5,
    "steps": 2,
    "epochs": 2,
    "coreset_size": 30,
    "bank_size": 3,
    "refine": 1,
    "verdict": "none",
}
# In the order in which a process would come to them; what each takes from those before it.
CHANGES: list[tuple[dict[str, Any], bool]] = [
    ({}, False),
    ({"refine": 0}, True),  # start and loop
    ({"coreset_size": 40}, True),  # start
    ({"ot": "unbalanced"}, True),  # start and banks
    ({"coreset": "lloyd"}, True),
    ({"coreset": "random"}, True),
    ({"start_words": 90}, True),  # banks
    ({"start_words": 80, "coreset_size": 20}, False),
]


@pytest.fixture
def cell(folder: Path) -> Cell:
    inputs = Inputs(folder / "en.vec", folder / "es.vec", folder / "en-es.txt")
    return Cell("en-es", "qwp", SMALL, 0, inputs)


def test_results_are_the_same_with_shared_parts_and_without(cell: Cell) -> None:
    parts = Parts()
    for number, (change, shares) in enumerate(CHANGES):
        for seed in (0, 1) if number < 2 else (0,):
            one = replace(cell, options={**SMALL, **change}, seed=seed)
            alone, shared = run_cell(one, Device(), parts=None), run_cell(one, Device(), parts=parts)
            took = {"seconds", "shared_seconds", "stages"}
            assert {k: v for k, v in shared.items() if k not in took} == {
                k: v for k, v in alone.items() if k not in took
            }
            assert alone["shared_seconds"] == 0
            # A Frank-Wolfe start draws nothing: other seeds have the same one.
            assert (shared["shared_seconds"] > 0) == (shares or seed == 1), change


def spaces() -> list[Embeddings]:
    problem = planted(200, d=8, noise=0.1)
    rows = (problem.src, problem.tgt)
    # Names that are the same on both sides, for the start that needs some.
    return [Embeddings([f"w{i}" for i in range(200)], x.astype(np.float32)) for x in rows]


def maps_of(options: dict[str, Any], parts: Parts) -> tuple[list[bytes], float]:
    """The bits of the maps, and the seconds that others have spent on them."""
    aligner = make_aligner("qwp", threads=1, **options)
    sharing = Sharing(parts, aligner, "here", [])
    with sharing.banks():
        aligner.fit(*spaces(), checkpoint=sharing)
    found = aligner.alignment_
    return [x.tobytes() for x in (found.src_map, found.tgt_map) if x is not None], sharing.seconds


@pytest.mark.parametrize("backend", ["numpy", "torch"])
def test_maps_have_the_same_bits(backend: str) -> None:
    pytest.importorskip(backend)
    parts = Parts()
    for change in ({}, {"refine": 0}, {"coreset_size": 40}):
        options = {**SMALL, "backend": backend, **change}
        alone, nothing = maps_of(options, Parts(0))
        shared, seconds = maps_of(options, parts)
        assert nothing == 0
        assert (seconds > 0) == bool(change)
        assert shared == alone


class Noting(Parts):
    """Parts that note the size of the coresets in every bank that is drawn."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def put(self, key: str, part: Part) -> None:
        if not isinstance(part.content, RunState):
            self.sizes += [bank.centres.shape[1] for bank in part.content]
        super().put(key, part)


def test_a_bank_is_drawn_once() -> None:
    parts = Noting()
    for change in ({}, {"ot": "unbalanced"}, {"coreset": "lloyd"}, {"coreset_size": 40}, {"refine": 2}):
        maps_of({**SMALL, **change}, parts)
    assert parts.sizes == [30, 30, 40, 40]


class Watching(Sharing):
    """Keeps the bits of the map at every state of a fit that others may share."""

    def __init__(self, aligner: Aligner) -> None:
        super().__init__(Parts(0), aligner, "here", [])
        self.maps: dict[tuple[str, int], bytes] = {}

    def save(self, state: RunState, identity: Identity) -> None:
        if (state.stage, state.done) in self._later:
            self.maps[state.stage, state.done] = state.map.tobytes()


def maps_at(options: dict[str, Any], seed: int = 0) -> dict[tuple[str, int], bytes]:
    aligner = make_aligner("qwp", threads=1, seed=seed, **options)
    watching = Watching(aligner)
    aligner.fit(*spaces(), checkpoint=watching)
    return watching.maps


def other(parameter: Parameter, value: Any) -> Any:
    """Another value that a parameter can have."""
    declared = parameter.declared
    if declared.choices is not None:
        return next(choice for choice in declared.choices if choice not in (value, "exact"))
    if parameter.type is bool:
        return not value
    if value is None:
        return declared.least or 1
    return value + 1 if parameter.type is int else value * 0.5 if value else 0.5


def others(names: Iterable[str], options: dict[str, Any]) -> dict[str, Any]:
    """The same options with another value for each of these parameters."""
    default = make_aligner("qwp")
    return {name: other(QWP.parameters()[name], options.get(name, getattr(default, name))) for name in names}


@pytest.mark.parametrize("start", [start for start in STARTS if start not in (*SEARCHES, "lexicon", "matrix")])
def test_parameters_of_later_stages_decide_nothing_before(start: str) -> None:
    """All parameters that two fits may differ in and still share a state get other values: the state is the same."""
    options = {**SMALL, "start": start}
    expected = maps_at(options)
    stages = make_aligner("qwp", **options).decided_later()
    assert expected.keys() == stages.keys()
    for state, later in stages.items():
        seed = 7 if "seed" in later else 0
        assert maps_at({**options, **others(later - {"seed"}, options)}, seed)[state] == expected[state]
    assert {"coreset_size", "epsilon", "refine"} <= later
    assert not later & {"start_words", "start", "normalize", "csls_k", "dtype", "order"}


@pytest.mark.slow
@pytest.mark.parametrize("start", SEARCHES)
def test_neither_do_they_in_a_search(start: str) -> None:
    options = {**SMALL, "start": start, "order": "auto"}
    later = make_aligner("qwp", **options).decided_later()["start", 1]
    assert "seed" not in later
    assert maps_at({**options, **others(later, options)})["start", 1] == maps_at(options)["start", 1]


def test_what_decides_a_state_keeps_it_apart() -> None:
    parts = Parts()
    maps_of(SMALL, parts)
    for change in ({"start_words": 90}, {"start_epsilon": 0.2}, {"normalize": "center,unit"}, {"csls_k": 5}):
        options = {**SMALL, "coreset": "random", **change}
        assert maps_of(options, parts) == (maps_of(options, Parts(0))[0], 0.0), change


def test_warnings_of_shared_parts_are_those_of_the_cell() -> None:
    parts, first, second = Parts(), list[str](), list[str]()
    aligner = make_aligner("qwp", **SMALL)
    identity = aligner.identity({"src": "a", "tgt": "b"})
    first.append("of the start")
    state = RunState("start", 1, np.eye(2), seconds={"prepare": 1.0, "start": 2.0})
    Sharing(parts, aligner, "here", first).save(state, identity)
    assert Sharing(parts, aligner, "elsewhere", second).load(identity) is None
    sharing = Sharing(parts, aligner, "here", second)
    found = sharing.load(identity)
    assert found is not None
    found.map[:] = 0
    again = sharing.load(identity)
    assert again is not None
    assert again.map[0, 0] == 1
    assert second == ["of the start"]
    assert sharing.seconds == 4.0  # two times two


def test_parts_are_bounded() -> None:
    parts = Parts(100)
    parts.put("a", Part("A", 40, 1.0))
    parts.put("b", Part("B", 40, 1.0))
    assert parts.get("a") is not None
    parts.put("c", Part("C", 40, 1.0))
    assert parts.get("b") is None  # asked for less lately than a
    assert parts.get("a") is not None
    parts.put("d", Part("D", 400, 1.0))
    assert [parts.get(name) for name in "abcd"] == [None] * 4
