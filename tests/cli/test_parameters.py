from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
import typer.main
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qwp.cli import parameters
from qwp.cli.main import app
from qwp.cli.parameters import (
    CHOICES,
    DECIDED,
    HELP,
    METHOD_PARAMETERS,
    OTHER,
    PANELS,
    PARAMETERS,
    check_options,
    parameters_of,
    read_config,
    resolve,
)
from qwp.errors import InputError
from qwp.methods import METHODS, QWP, Aligner
from qwp.methods.refined import RefinedAligner


def config(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "settings.toml"
    path.write_text(text)
    return path


def align_flags() -> dict[str, Any]:
    command: Any = typer.main.get_command(app)
    return {parameter.name: parameter for parameter in command.commands["align"].params}


@pytest.mark.parametrize("method", METHODS)
def test_every_parameter_of_every_method_is_a_flag_with_help_and_default(method: str) -> None:
    flags = align_flags()
    for name, default in METHODS[method]().get_params().items():
        assert PARAMETERS[name].flag in flags[name].opts
        assert name in HELP, f"{name} has no help"
        assert default is not None or name in DECIDED, f"nothing says what {name}=None stands for"
        shown = DECIDED[name] if default is None else default
        assert f"{shown}" in flags[name].help.rpartition(" (")[2]


@pytest.mark.parametrize("method", METHODS)
def test_a_name_has_one_type_in_all_methods(method: str) -> None:
    for name, parameter in parameters_of(method).items():
        assert parameter.type is METHOD_PARAMETERS[name].type
        assert METHOD_PARAMETERS[name].by_method[method] == parameter.default


def test_no_method_has_a_parameter_named_like_an_option_of_the_command() -> None:
    own = {name for name, parameter in PARAMETERS.items() if not parameter.by_method}
    assert own == {"method", "lexicon", "max_vocab", "errors"}
    taken = set(align_flags()) - set(PARAMETERS)
    assert not taken & set(METHOD_PARAMETERS)


def test_choices_are_of_parameters_that_exist() -> None:
    assert set(CHOICES) <= set(PARAMETERS)


def test_the_parameters_of_the_default_method_come_first_and_others_have_their_panel() -> None:
    assert list(METHOD_PARAMETERS)[: len(QWP.parameter_names())] == QWP.parameter_names()
    for name, parameter in METHOD_PARAMETERS.items():
        assert (parameter.panel == OTHER) == (name not in QWP.parameter_names())
    panels = [flag.rich_help_panel for name, flag in align_flags().items() if name in PARAMETERS]
    assert panels == sorted(panels, key=PANELS.index)


@dataclass(kw_only=True, eq=False, repr=False)
class Base(RefinedAligner):
    """A method that does nothing."""

    summary: ClassVar[str] = "nothing"
    paper: ClassVar[str] = "none"


@dataclass(kw_only=True, eq=False, repr=False)
class First(Base):
    method: ClassVar[str] = "first"
    share: float = 0.5
    words: int | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class Second(Base):
    method: ClassVar[str] = "second"
    share: float = 0.7
    refine: int = 0


@dataclass(kw_only=True, eq=False, repr=False)
class Third(Base):
    method: ClassVar[str] = "third"
    refine: int = 0
    only: str = "here"


@pytest.fixture
def three_methods(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The three methods above instead of the real ones; returns what the help says after the text."""
    methods: dict[str, type[Aligner]] = {method.method: method for method in (First, Second, Third)}
    monkeypatch.setattr(parameters, "METHODS", methods)
    made = parameters._method_parameters()
    monkeypatch.setattr(parameters, "PARAMETERS", made)
    return {name: parameters._defaults(parameter) for name, parameter in made.items()}


def test_the_help_names_the_methods_where_they_differ(three_methods: dict[str, str]) -> None:
    assert three_methods["csls_k"] == "default: 10"
    assert three_methods["refine"] == "default: 5; second, third: 0"
    assert three_methods["share"] == "not third; default: 0.5; second: 0.7"
    assert three_methods["words"] == "first; default: decided by the data"
    assert three_methods["only"] == "third; default: here"


def test_options_of_other_methods_are_refused_by_their_flags(three_methods: dict[str, str]) -> None:
    check_options("second", ["share", "refine", "refine_max_rank"])
    with pytest.raises(InputError) as caught:
        check_options("second", ["refine", "only", "words"])
    assert str(caught.value) == (
        "--only is an option of third; --words is an option of first, not of second: leave it out "
        "(`qwp methods second` lists what it has)"
    )


def test_no_alias_shows_in_help() -> None:
    shown = {option for parameter in align_flags().values() for option in parameter.opts}
    assert not shown & {"--nmax", "--bsz", "--niter", "--nepoch", "--reg", "--csls", "--max_vocab"}


def test_types_are_those_of_the_method() -> None:
    assert METHOD_PARAMETERS["coreset_size"].type is int
    assert METHOD_PARAMETERS["epsilon"].type is float
    assert METHOD_PARAMETERS["sphere_centroids"].type is bool
    assert PARAMETERS["max_vocab"].type is int


def test_flags_win_over_the_file_and_the_file_over_defaults(tmp_path: Path) -> None:
    path = config(tmp_path, 'coreset-size = 70\nlearning_rate = 2\ncoreset = "lloyd"\nsphere-centroids = false\n')
    flags: dict[str, Any] = dict.fromkeys(PARAMETERS)
    flags["coreset_size"] = 80
    assert resolve(flags, path) == {
        "coreset_size": 80,
        "learning_rate": 2.0,
        "coreset": "lloyd",
        "sphere_centroids": False,
    }
    assert resolve({"refine": 0}, None) == {"refine": 0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("coresetsize = 3", r"sets 'coresetsize', which is not a setting; expected some of .*coreset-size"),
        ("steps = 2.5", r"steps = 2.5 \(float\); expected a whole number"),
        ("steps = true", r"steps = True \(bool\); expected a whole number"),
        ('steps = "5"', r"steps = '5' \(str\); expected a whole number"),
        ("epsilon = false", r"epsilon = False \(bool\); expected a number"),
        ("coreset = 3", r"coreset = 3 \(int\); expected a text in quotes"),
        ("sphere-centroids = 1", r"sphere-centroids = 1 \(int\); expected true or false"),
        ("[loop]\nsteps = 5", "sets 'loop', which is not a setting"),
        ("coreset-size = 3\ncoreset_size = 4", "twice"),
        ("steps = ", "is not TOML"),
        ('coreset = "kmeans"', "--coreset kmeans is not known; expected one of random, kmeans"),
    ],
)
def test_a_broken_file_is_explained(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        resolve({}, config(tmp_path, text))


def test_a_missing_file_is_explained(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.toml cannot be read"):
        read_config(tmp_path / "none.toml")


@pytest.mark.parametrize("name", sorted(CHOICES))
def test_choices_are_checked(name: str) -> None:
    with pytest.raises(InputError, match=f"--{name.replace('_', '-')} bogus is not known; expected one of"):
        resolve({name: "bogus"}, None)
    assert resolve({name: CHOICES[name][0]}, None) == {name: CHOICES[name][0]}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.dictionaries(st.sampled_from([n for n, p in PARAMETERS.items() if p.type is int]), st.integers(0, 2**40)),
    st.booleans(),
)
def test_whole_numbers_come_back_as_written(tmp_path: Path, values: dict[str, int], dashes: bool) -> None:
    lines = (f"{name.replace('_', '-') if dashes else name} = {value}\n" for name, value in values.items())
    assert read_config(config(tmp_path, "".join(lines))) == values
