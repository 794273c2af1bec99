from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qwp.errors import InputError
from qwp.methods import METHODS
from qwp.parameters import LOOP, RUN, Parameter, Settings, described, param

ABSURD = (-1, -1e300, 1e300, 10**400, math.inf, -math.inf, math.nan, np.float64("nan"), np.float32("inf"))


def parameters(*types: type) -> list[Parameter]:
    """The parameters of all methods that have one of these types."""
    every = [parameter for method in METHODS.values() for parameter in method.parameters().values()]
    return [parameter for parameter in every if parameter.type in types]


def refused(parameter: Parameter, value: Any) -> str:
    """What a parameter says of a value that it cannot have."""
    with pytest.raises(InputError) as caught:
        parameter.check(value)
    assert str(caught.value).startswith(f"{parameter.name}="), "the message begins with what the user wrote"
    return str(caught.value)


# --------------------------------------------------------------------------- all parameters of all methods


def test_every_number_has_two_finite_bounds() -> None:
    for parameter in parameters(int, float):
        declared = parameter.declared
        low = declared.above if declared.least is None else declared.least
        assert low is not None, parameter.name
        assert declared.most is not None, parameter.name
        assert -math.inf < low < declared.most < math.inf, parameter.name
        parameter.check(parameter.default)
        parameter.check(declared.most if parameter.type is float else int(declared.most))


def test_no_number_may_be_absurd() -> None:
    for parameter in parameters(int, float):
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
    for parameter in parameters(*wrong):
        for value in (*others, *wrong[parameter.type], *([] if parameter.optional else [None])):
            assert "has another type than expected" in refused(parameter, value)


def test_names_are_chosen_from_a_list() -> None:
    for parameter in parameters(str):
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


def test_devices_are_checked_as_well() -> None:
    for device in ("bogus", "cuda:-1", "cuda:x", "cpu:0", "", "cuda:²", "cuda:" + "9" * 5000):
        with pytest.raises(InputError, match="device"):
            METHODS["procrustes"](device=device).validate()


# --------------------------------------------------------------------------- declarations in general


@dataclass(kw_only=True)
class Group(Settings):
    size: int | None = param(None, "How large.", LOOP, least=1, most=10, decided="by the weather")
    share: float = param(0.5, "How much.", LOOP, above=0, most=1)
    kind: str = param("a", "Which.", LOOP, choices=("a", "b"))
    fast: bool = param(True, "Whether.", LOOP)


@dataclass(kw_only=True)
class Shared(Settings):
    shared: ClassVar[bool] = True
    device: str = param("cpu", "Where.", RUN, range="cpu", execution_only=True)


@dataclass(kw_only=True)
class Whole(Shared, Group):
    share: float = 0.25
    own: int = param(3, "Its own.", RUN, least=0, most=5)

    def check_together(self) -> None:
        if self.own == 5 and self.kind == "b":
            raise InputError("own=5 does not go with kind='b'")


def test_a_class_inherits_declarations_and_may_change_defaults() -> None:
    found = Whole.parameters()
    assert list(found) == ["own", "size", "share", "kind", "fast", "device"], "its own first, those of all last"
    assert found["share"].default == 0.25
    assert found["share"].declared is Group.parameters()["share"].declared
    assert Group.parameters()["share"].default == 0.5
    assert (found["size"].type, found["size"].optional) == (int, True)
    assert found["size"].flag == "--size"


def test_values_that_exclude_each_other() -> None:
    Whole(own=5).check()
    with pytest.raises(InputError, match="does not go with"):
        Whole(own=5, kind="b").check()


def test_a_part_of_the_settings() -> None:
    part = Group.of(Whole(size=4, kind="b"))
    assert (part.size, part.share, part.kind) == (4, 0.25, "b")


def test_ranges_in_words() -> None:
    found = Whole.parameters()
    assert {name: parameter.range for name, parameter in found.items()} == {
        "own": "0 to 5",
        "size": "1 to 10",
        "share": "above 0, at most 1",
        "kind": "a, b",
        "fast": "true, false",
        "device": "cpu",
    }
    assert found["size"].shown_default == "by the weather"
    assert "size (int, default by the weather): How large. Range: 1 to 10." in described(found.values())


def test_a_field_without_a_declaration_is_a_mistake() -> None:
    @dataclass(kw_only=True)
    class Forgotten(Settings):
        size: int = 3

    with pytest.raises(TypeError, match=r"Forgotten\.size is not declared"):
        Forgotten.parameters()


@given(st.integers() | st.floats())
def test_numbers_are_taken_exactly_within_their_bounds(value: float) -> None:
    for parameter, inside in (
        (Group.parameters()["size"], isinstance(value, int) and 1 <= value <= 10),
        (Group.parameters()["share"], 0 < value <= 1),
    ):
        if inside:
            parameter.check(value)
        else:
            refused(parameter, value)


def test_whole_numbers_of_numpy_are_whole_numbers() -> None:
    for value in (np.int64(3), np.int8(3), np.uint16(3)):
        Whole.parameters()["own"].check(value)


def test_long_values_are_cut_in_the_message() -> None:
    assert len(refused(Whole.parameters()["own"], "x" * 10**6)) < 200
    assert len(refused(Whole.parameters()["own"], 10**4000)) < 200
    assert len(refused(Whole.parameters()["own"], 10**10_000)) < 200
