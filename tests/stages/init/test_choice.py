"""The choice of an initializer by name."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from qwp.errors import InputError
from qwp.parameters import Settings, check, parameters, with_values
from qwp.stages.init.choice import Choice
from qwp.stages.init.fused import FusedGromovWasserstein
from qwp.stages.init.given import GivenMatrix, Identity, LexiconPairs
from qwp.stages.init.profiles import Profiles

CHOICE = Choice(
    start="profiles",
    among={
        "profiles": Profiles(),
        "fused": FusedGromovWasserstein(),
        "identity": Identity(),
        "lexicon": LexiconPairs(),
        "matrix": GivenMatrix(),
    },
    help="profiles or another one.",
)


def test_the_initializer_is_chosen_by_name() -> None:
    assert CHOICE.chosen == Profiles()
    assert with_values(CHOICE, {"start": "identity"}).chosen == Identity()


def test_the_choices_of_the_parameter_are_the_initializers() -> None:
    start = parameters(CHOICE)["start"]
    assert (start.default, start.declared.help) == ("profiles", "profiles or another one.")
    assert start.declared.choices == tuple(CHOICE.among)
    check(CHOICE)
    message = "start='random' is not known; expected one of profiles, fused, identity, lexicon, matrix"
    with pytest.raises(InputError, match=message):
        check(with_values(CHOICE, {"start": "random"}))


def test_a_value_reaches_every_initializer_that_has_the_parameter() -> None:
    changed = with_values(CHOICE, {"start_words": 70, "frequency_prior": 1.5})
    assert changed.among["profiles"] == Profiles(words=70)
    assert changed.among["fused"] == FusedGromovWasserstein(words=70, frequency_prior=1.5)
    assert changed.among["identity"] == Identity()
    assert {"start_words", "frequency_prior"} <= parameters(CHOICE).keys()


@pytest.mark.parametrize(
    ("start", "lexicon", "matrix", "message"),
    [
        ("lexicon", False, False, r"start='lexicon' needs lexicon=\.\.\.; none was given"),
        ("matrix", False, False, r"start='matrix' needs start_matrix=\.\.\.; none was given"),
        ("identity", True, False, "lexicon was given but start='identity' does not use it: set start='lexicon'"),
        ("profiles", False, True, "start_matrix was given but start='profiles' does not use it: set start='matrix'"),
        ("lexicon", True, True, "start_matrix was given but start='lexicon' does not use it: set start='matrix'"),
        ("matrix", True, True, "lexicon was given but start='matrix' does not use it: set start='lexicon'"),
    ],
)
def test_supervision_that_does_not_go_with_the_initializer_is_refused(
    start: str, lexicon: bool, matrix: bool, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        with_values(CHOICE, {"start": start}).check_supervision(lexicon, matrix)


@pytest.mark.parametrize(("start", "lexicon", "matrix"), [("lexicon", True, False), ("matrix", False, True)])
def test_supervision_that_the_initializer_uses_is_accepted(start: str, lexicon: bool, matrix: bool) -> None:
    with_values(CHOICE, {"start": start}).check_supervision(lexicon, matrix)
    CHOICE.check_supervision(lexicon=False, matrix=False)


def test_a_composition_has_the_parameters_of_all_initializers() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Method(Settings):
        init: Choice = CHOICE

    assert {"start", "start_words", "frequency_prior"} == parameters(Method()).keys()
    assert with_values(Method(), {"start": "fused", "start_words": 9}).init.chosen == FusedGromovWasserstein(words=9)
