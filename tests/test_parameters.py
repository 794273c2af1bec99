from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qwp.errors import InputError
from qwp.methods import METHODS
from qwp.methods.settings import Composition
from qwp.parameters import (
    LOOP,
    RUN,
    Declaration,
    Parameter,
    Settings,
    check,
    described,
    fixed,
    param,
    parameters,
    values,
    with_values,
)

ABSURD = (-1, -1e300, 1e300, 10**400, math.inf, -math.inf, math.nan, np.float64("nan"), np.float32("inf"))


def of_types(*types: type) -> list[Parameter]:
    """Return the parameters of all methods with one of these types."""
    every = [parameter for method in METHODS.values() for parameter in method.parameters().values()]
    return [parameter for parameter in every if parameter.type in types]


def refused(parameter: Parameter, value: Any) -> str:
    """Return the message for an invalid value of a parameter."""
    with pytest.raises(InputError) as caught:
        parameter.check(value)
    assert str(caught.value).startswith(f"{parameter.name}="), "the message begins with what the user wrote"
    return str(caught.value)


# --------------------------------------------------------------------------- all parameters of all methods


def test_every_number_has_two_finite_bounds() -> None:
    for parameter in of_types(int, float):
        declared = parameter.declared
        low = declared.above if declared.least is None else declared.least
        assert low is not None, parameter.name
        assert declared.most is not None, parameter.name
        assert -math.inf < low < declared.most < math.inf, parameter.name
        parameter.check(parameter.default)
        parameter.check(declared.most if parameter.type is float else int(declared.most))


def test_no_number_may_be_absurd() -> None:
    for parameter in of_types(int, float):
        for value in ABSURD:
            assert parameter.range in refused(parameter, value)


def test_no_parameter_takes_another_type() -> None:
    others: list[Any] = [[], {}, b"1", 1j, object(), np.zeros(3), np.bool_(True)]
    wrong: dict[type, list[Any]] = {
        int: [True, False, "1", "", 1.0, 0.5],
        float: [True, False, "1", ""],
        str: [True, False, 1, 0.5],
        bool: ["true", 1, 0],
    }
    for parameter in of_types(*wrong):
        for value in (*others, *wrong[parameter.type], *([] if parameter.optional else [None])):
            assert "has another type than expected" in refused(parameter, value)


def test_names_are_chosen_from_a_list() -> None:
    for parameter in of_types(str):
        if parameter.declared.choices is not None:
            assert parameter.default in parameter.declared.choices
            message = refused(parameter, "no such thing")
            assert all(choice in message for choice in parameter.declared.choices)


def test_every_aligner_checks_all_of_its_parameters() -> None:
    aligners: list[Any] = list(METHODS.values())
    for aligner in aligners:
        aligner().check()
        for name, parameter in aligner.parameters().items():
            if parameter.type in (int, float):
                with pytest.raises(InputError, match=f"{name}=-1"):
                    aligner(**{name: -1}).check()
            elif parameter.declared.choices is not None:
                with pytest.raises(InputError, match=f"{name}='bogus' is not known"):
                    aligner(**{name: "bogus"}).check()


def test_default_values_change_no_component() -> None:
    """Components of one method that share a parameter have the same default; the first would win silently."""
    for aligner in METHODS.values():
        composition = Composition(pipeline=aligner.pipeline)
        assert with_values(composition, values(composition)) == composition


def test_devices_are_checked_as_well() -> None:
    for device in ("bogus", "cuda:-1", "cuda:x", "cpu:0", "", "cuda:²", "cuda:" + "9" * 5000):
        with pytest.raises(InputError, match="device"):
            METHODS["procrustes"](device=device).validate()


# --------------------------------------------------------------------------- declarations in general


@dataclass(frozen=True, kw_only=True)
class Engine(Settings):
    size: int | None = param(None, "How large.", LOOP, least=1, most=10, decided="by the weather")
    share: float = param(0.5, "How much.", LOOP, above=0, most=1, option="engine_share")
    kind: str = param("a", "Which.", LOOP, choices=("a", "b"))
    fast: bool = param(True, "Whether.", LOOP)
    limit: int = 7


@dataclass(frozen=True, kw_only=True)
class Machine(Settings):
    device: str = param("cpu", "Where.", RUN, range="cpu", execution_only=True, shared=True)


@dataclass(frozen=True, kw_only=True)
class Whole(Settings):
    machine: Machine = Machine()
    own: int = param(3, "Its own.", RUN, least=0, most=5)
    kind: str = param("a", "Which.", LOOP, choices=("a", "b"))
    engine: Engine = Engine(share=0.25)
    spare: Engine = fixed(Engine(size=1))
    several: tuple[Engine, ...] = (Engine(size=2), Engine(size=3))
    named: Mapping[str, Settings] = field(default_factory=lambda: {"one": Engine(), "other": Machine()})

    def check_together(self) -> None:
        if self.own == 5 and self.kind == "b":
            raise InputError("own=5 does not go with kind='b'")


def parameter_of(name: str) -> Parameter:
    return parameters(Whole())[name]


def test_the_parameters_of_a_composition_are_those_of_its_parts() -> None:
    found = parameters(Whole())
    assert list(found) == ["own", "kind", "size", "engine_share", "fast", "device"], "those of all methods last"
    assert found["engine_share"].default == 0.25
    assert found["engine_share"].declared is parameters(Engine())["engine_share"].declared
    assert parameters(Engine())["engine_share"].default == 0.5
    assert (found["size"].type, found["size"].optional) == (int, True)
    assert found["size"].flag == "--size"
    assert values(Whole()) == {name: parameter.default for name, parameter in found.items()}


def test_values_reach_every_part_that_declares_them() -> None:
    whole = with_values(Whole(), {"size": 4, "kind": "b", "engine_share": 0.75, "device": "gpu", "limit": 9})
    assert (whole.own, whole.kind, whole.machine.device) == (3, "b", "gpu")
    assert whole.engine == Engine(size=4, kind="b", share=0.75)
    assert whole.several == (whole.engine, whole.engine)
    assert whole.named == {"one": whole.engine, "other": Machine(device="gpu")}
    assert whole.spare == Engine(size=1), "no user can change a fixed part"
    assert with_values(Whole(), {}) == Whole()


def test_the_first_of_equal_names_gives_the_default() -> None:
    assert parameter_of("kind").default == "a"
    assert parameters(Whole(engine=Engine(kind="b")))["kind"].default == "a"
    assert parameters(Whole(kind="b"))["kind"].default == "b"


def test_a_component_may_change_a_declaration() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Choosing(Engine):
        def declaration(self, name: str, declared: Declaration) -> Declaration:
            return replace(declared, choices=("a", "c")) if name == "kind" else declared

    check(Choosing(kind="c"))
    with pytest.raises(InputError, match="kind='b' is not known; expected one of a, c"):
        check(Choosing(kind="b"))


def test_all_parts_are_checked() -> None:
    check(Whole())
    for wrong, message in (
        (Whole(own=9), "own=9 is out of range"),
        (Whole(machine=Machine(device=3)), "device=3"),  # type: ignore[arg-type]
        (Whole(engine=Engine(size=11)), "size=11 is out of range"),
    ):
        with pytest.raises(InputError, match=message):
            check(wrong)


def test_values_that_exclude_each_other() -> None:
    check(Whole(own=5))
    with pytest.raises(InputError, match="does not go with"):
        check(Whole(own=5, kind="b"))


def test_parts_exclude_values_as_well() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Outer(Settings):
        inner: Whole = Whole()

    with pytest.raises(InputError, match="does not go with"):
        check(Outer(inner=Whole(own=5, kind="b")))


def test_ranges_in_words() -> None:
    found = parameters(Whole())
    assert {name: parameter.range for name, parameter in found.items()} == {
        "own": "0 to 5",
        "size": "1 to 10",
        "engine_share": "above 0, at most 1",
        "kind": "a, b",
        "fast": "true, false",
        "device": "cpu",
    }
    assert found["size"].shown_default == "by the weather"
    assert "size (int, default by the weather): How large. Range: 1 to 10." in described(found.values())


def test_a_field_without_a_declaration_is_a_constant() -> None:
    assert "limit" not in parameters(Engine())
    assert "leak" not in METHODS["adversarial"].parameters()
    assert with_values(Engine(limit=8), {"limit": 9, "size": 2}) == Engine(limit=8, size=2)


@given(st.integers() | st.floats())
def test_numbers_are_taken_exactly_within_their_bounds(value: float) -> None:
    for parameter, inside in (
        (parameter_of("size"), isinstance(value, int) and 1 <= value <= 10),
        (parameter_of("engine_share"), 0 < value <= 1),
    ):
        if inside:
            parameter.check(value)
        else:
            refused(parameter, value)


def test_whole_numbers_of_numpy_are_whole_numbers() -> None:
    for value in (np.int64(3), np.int8(3), np.uint16(3)):
        parameter_of("own").check(value)


def test_long_values_are_cut_in_the_message() -> None:
    assert len(refused(parameter_of("own"), "x" * 10**6)) < 200
    assert len(refused(parameter_of("own"), 10**4000)) < 200
    assert len(refused(parameter_of("own"), 10**10_000)) < 200
