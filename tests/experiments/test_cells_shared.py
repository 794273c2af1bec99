"""Stages that cells share: results on one machine are identical with and without sharing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qwp.experiments.cells import CachedPart, Cell, PartCache, SharedStages, run_cell
from qwp.experiments.data import DirectionFiles
from qwp.experiments.jobs import JobDevice
from qwp.maps.procrustes import Maps
from qwp.methods import QWP, make_aligner
from qwp.methods.presets import preset
from qwp.parameters import Parameter
from qwp.spaces.embeddings import Embeddings
from qwp.spaces.lexicon import Lexicon
from qwp.stages.stage import State
from tests.libraries import assert_same
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
LEXICON = Lexicon(tuple((f"w{i}", f"w{i}") for i in range(200)))
STARTS = QWP.parameters()["start"].declared.choices or ()
SEARCHES = ("auto", "unsupervised")
DIRECT = [start for start in STARTS if start not in (*SEARCHES, "lexicon", "matrix")]
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
    inputs = DirectionFiles(folder / "en.vec", folder / "es.vec", folder / "en-es.txt")
    return Cell("en-es", "qwp", SMALL, 0, inputs)


def test_results_are_identical_with_and_without_shared_stages(cell: Cell) -> None:
    parts = PartCache()
    for number, (change, shares) in enumerate(CHANGES):
        for seed in (0, 1) if number < 2 else (0,):
            one = replace(cell, options={**SMALL, **change}, seed=seed)
            alone, shared = run_cell(one, JobDevice(), cache=None), run_cell(one, JobDevice(), cache=parts)
            took = {"seconds", "shared_seconds", "stages"}
            assert {k: v for k, v in shared.items() if k not in took} == {
                k: v for k, v in alone.items() if k not in took
            }
            assert alone["shared_seconds"] == 0
            # A Frank-Wolfe initialization draws nothing, so other seeds share it.
            assert (shared["shared_seconds"] > 0) == (shares or seed == 1), change


def spaces() -> list[Embeddings]:
    problem = planted(200, d=8, noise=0.1)
    rows = (problem.src, problem.tgt)
    # Equal words on both sides, for the initializer that needs them.
    return [Embeddings([f"w{i}" for i in range(200)], x.astype(np.float32)) for x in rows]


def maps_of(options: dict[str, Any], parts: PartCache, lexicon: Lexicon | None = None) -> tuple[list[bytes], float]:
    """Return the bits of the maps, and the seconds that other fits have spent on them."""
    shared = SharedStages(parts, [])
    found = make_aligner("qwp", threads=1, **options).fit(*spaces(), lexicon=lexicon, cache=shared).alignment_
    return [x.tobytes() for x in (found.src_map, found.tgt_map) if x is not None], shared.seconds


@pytest.mark.parametrize("backend", ["numpy", "torch"])
def test_maps_have_the_same_bits(backend: str) -> None:
    pytest.importorskip(backend)
    parts = PartCache()
    for change in ({}, {"refine": 0}, {"coreset_size": 40}):
        options = {**SMALL, "backend": backend, **change}
        alone, nothing = maps_of(options, PartCache(0))
        shared, seconds = maps_of(options, parts)
        assert nothing == 0
        assert (seconds > 0) == bool(change)
        assert shared == alone


class Noting(PartCache):
    """A cache that records the coreset size of every bank."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def add(self, key: str, value: CachedPart) -> CachedPart:
        if isinstance(value.content, list):
            self.sizes += [bank.centres.shape[1] for bank in value.content]
        return super().add(key, value)


def test_a_bank_is_drawn_once() -> None:
    parts = Noting()
    for change in ({}, {"ot": "unbalanced"}, {"coreset": "lloyd"}, {"coreset_size": 40}, {"refine": 2}):
        maps_of({**SMALL, **change}, parts)
    assert parts.sizes == [30, 30, 40, 40]


def keys_of(options: dict[str, Any], seed: int = 0) -> dict[str, str]:
    """Return the keys of the states that fits share, by the stage that follows."""
    return make_aligner("qwp", **options).composition.pipeline.keys({}, seed)


class Watching(SharedStages):
    """Loads nothing, and records the bits of the map of every state by the stage that follows."""

    def __init__(self) -> None:
        super().__init__(PartCache(0), [])
        self.maps: dict[str, bytes] = {}

    def save(self, key: str, state: State, seconds: Mapping[str, float]) -> None:
        self.maps[state.stage] = np.asarray(state.map).tobytes()


def states_of(options: dict[str, Any], seed: int = 0) -> dict[str, bytes]:
    """Return the bits of the maps of all states that fits share, by the stage that follows."""
    aligner, watching = make_aligner("qwp", threads=1, seed=seed, **options), Watching()
    aligner.fit(*spaces(), lexicon=LEXICON if aligner.start == "lexicon" else None, cache=watching)
    return watching.maps


def other(parameter: Parameter, value: Any) -> Any:
    """Return another value of a parameter."""
    declared = parameter.declared
    if declared.choices is not None:
        return next(choice for choice in declared.choices if choice not in (value, "exact"))
    if parameter.type is bool:
        return not value
    if parameter.type is str:
        return {"effort": "low"}.get(parameter.name, "center")
    if value is None:
        return declared.least or 1
    return value + 1 if parameter.type is int else value * 0.5 if value else 0.5


def others(names: Iterable[str], options: dict[str, Any]) -> dict[str, Any]:
    """Return the options with another value for each of these parameters."""
    default = make_aligner("qwp")
    return {name: other(QWP.parameters()[name], options.get(name, getattr(default, name))) for name in names}


def without_effect(stage: str, options: dict[str, Any]) -> set[str]:
    """Return the parameters, perhaps with the seed, that change the key of no state up to this stage, one at a time."""
    before = keys_of(options)[stage]
    names = {name for name, parameter in QWP.parameters().items() if not parameter.declared.execution_only}
    found = {name for name in names if keys_of({**options, **others([name], options)})[stage] == before}
    return found | ({"seed"} if keys_of(options, 7)[stage] == before else set())


@pytest.mark.parametrize("start", DIRECT)
def test_parameters_that_change_no_key_change_no_state(start: str) -> None:
    options = {**SMALL, "start": start, "order": "given"}
    expected = states_of(options)
    assert list(keys_of(options)) == ["refine", "loop"], "the latest state first"
    assert expected.keys() == {"refine", "loop"}
    for stage in expected:
        free = without_effect(stage, options)
        assert {"refine", "refine_words", "verdict"} <= free
        assert ({"coreset_size", "epsilon"} <= free) == (stage == "loop")
        assert not free & {"start", "normalize", "dtype", "order"}
        assert ("start_words" in free) == (start in ("identity", "identical"))
        seed = 7 if "seed" in free else 0
        changes = others(free - {"seed", "anchor_weight"}, options)
        assert states_of({**options, **changes}, seed)[stage] == expected[stage]


@pytest.mark.slow
@pytest.mark.parametrize("start", SEARCHES)
def test_parameters_that_change_no_key_change_no_state_of_a_search(start: str) -> None:
    options = {**SMALL, "start": start, "order": "auto"}
    free = without_effect("loop", options)
    assert not free & {"seed", "csls_k", "start_words"}
    changes = others(free - {"anchor_weight"}, options)
    assert states_of({**options, **changes})["loop"] == states_of(options)["loop"]


@pytest.mark.parametrize("change", [{"refine": 0}, {"refine_weights": "equal"}, {"anchor_weight": 1.0}])
def test_held_out_pairs_distinguish_states(change: dict[str, Any]) -> None:
    """The refinement decides whether pairs of a lexicon are held out, and then the initializer learns from fewer."""
    options = {**SMALL, "start": "lexicon", "refine": 1, "refine_weights": "csls", "refine_map": "orthogonal"}
    changed = {**options, **change}
    assert states_of(changed)["loop"] != states_of(options)["loop"], "no pairs were held out"
    parts = PartCache()
    maps_of(options, parts, LEXICON)
    assert maps_of(changed, parts, LEXICON)[0] == maps_of(changed, PartCache(0), LEXICON)[0]


@pytest.mark.parametrize("order", ["given", "auto", "none"])
def test_seeds_share_a_state_only_if_nothing_was_drawn(order: str) -> None:
    options = {**SMALL, "start": "frank-wolfe", "order": order}
    one, other_seed = keys_of(options, 0), keys_of(options, 1)
    assert (one["loop"] == other_seed["loop"]) == (order == "given")
    assert one["refine"] != other_seed["refine"]


@pytest.mark.parametrize("order", ["auto", "none"])
def test_states_in_an_estimated_order_are_those_of_their_seed(order: str) -> None:
    rows = np.random.default_rng(0).permutation(600)
    made = planted(600, d=8, noise=0.1)
    pair = [Embeddings([f"w{i}" for i in rows], x[rows].astype(np.float32)) for x in (made.src, made.tgt)]
    parts, options = PartCache(), {**SMALL, "start": "frank-wolfe", "order": order, "threads": 1}
    for seed in (0, 1):
        aligner = make_aligner("qwp", seed=seed, **options)
        shared = aligner.fit(*pair, cache=SharedStages(parts, [])).alignment_
        alone = aligner.fit(*pair).alignment_
        assert_same(shared.src_map, alone.src_map)
        assert shared.provenance.order == alone.provenance.order


def test_keys_depend_on_what_determines_a_state() -> None:
    parts = PartCache()
    maps_of(SMALL, parts)
    for change in ({"start_words": 90}, {"start_epsilon": 0.2}, {"normalize": "center,unit"}, {"dtype": "float64"}):
        options = {**SMALL, "coreset": "random", **change}
        assert maps_of(options, parts) == (maps_of(options, PartCache(0))[0], 0.0), change


def test_keys_depend_on_method_inputs_and_threads() -> None:
    pipeline = make_aligner("qwp", **SMALL).composition.pipeline
    context: dict[str, Any] = {"method": "qwp", "inputs": {"src": "a"}, "threads": 1}
    contexts = [context, *({**context, **new} for new in ({"method": "wp"}, {"inputs": {"src": "b"}}, {"threads": 2}))]
    for stage in ("loop", "refine"):
        assert len({pipeline.keys(context, 0)[stage] for context in contexts}) == len(contexts)


def test_a_fit_does_not_modify_shared_states() -> None:
    parts = PartCache()
    first = maps_of(SMALL, parts)[0]
    states = {key: part.content[0] for key, part in parts._values.items() if isinstance(part.content, tuple)}
    before = {key: np.array(state.map) for key, state in states.items()}
    assert len(before) == 2
    for change in ({}, {"refine": 0}, {"epochs": 3}):
        maps_of({**SMALL, **change}, parts)
    for key, expected in before.items():
        part = parts.get(key)
        assert part is not None
        assert_same(part.content[0].map, expected)
    assert maps_of(SMALL, parts)[0] == first


def test_a_cell_inherits_warnings_and_seconds_of_shared_parts() -> None:
    parts, first, second = PartCache(), list[str](), list[str]()
    first.append("of the initializer")
    state = State(Maps(np.eye(2)), stage="loop")
    SharedStages(parts, first).save("key", state, {"prepare": 1.0, "start": 2.0})
    assert SharedStages(parts, second).load({"refine": "other", "loop": "another"}) is None
    shared = SharedStages(parts, second)
    for _ in range(2):
        found = shared.load({"refine": "other", "loop": "key"})
        assert found is not None
        assert found[0] is state
        assert found[1] == {"start": 2.0}, "each fit prepares its spaces"
    assert second == ["of the initializer"]
    assert shared.seconds == 4.0  # two times two


def test_the_latest_state_is_loaded() -> None:
    parts = PartCache()
    for key, stage in (("early", "loop"), ("late", "refine")):
        SharedStages(parts, []).save(key, State(Maps(np.eye(2)), stage=stage), {})
    found = SharedStages(parts, []).load({"refine": "late", "loop": "early"})
    assert found is not None
    assert found[0].stage == "refine"


def test_the_part_cache_is_bounded() -> None:
    parts = PartCache(100)
    parts.add("a", CachedPart("A", 40, 1.0))
    parts.add("b", CachedPart("B", 40, 1.0))
    assert parts.get("a") is not None
    parts.add("c", CachedPart("C", 40, 1.0))
    assert parts.get("b") is None  # used less recently than a
    assert parts.get("a") is not None
    parts.add("d", CachedPart("D", 400, 1.0))
    assert [parts.get(name) for name in "abcd"] == [None] * 4
