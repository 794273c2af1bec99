from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
import typer.main
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qwp import QWP
from qwp.cli.main import app
from qwp.cli.parameters import CHOICES, DECIDED, HELP, METHOD_PARAMETERS, PARAMETERS, read_config, resolve
from qwp.errors import InputError


def config(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "settings.toml"
    path.write_text(text)
    return path


def align_flags() -> dict[str, Any]:
    command: Any = typer.main.get_command(app)
    return {parameter.name: parameter for parameter in command.commands["align"].params}


def test_every_parameter_of_the_method_is_a_flag_with_help_and_default() -> None:
    flags = align_flags()
    for name, parameter in inspect.signature(QWP.__init__).parameters.items():
        if name == "self":
            continue
        assert f"--{name.replace('_', '-')}" in flags[name].opts
        assert name in HELP, f"{name} has no help"
        default = DECIDED[name] if parameter.default is None else parameter.default
        assert f"(default: {default})" in flags[name].help


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
    st.dictionaries(st.sampled_from([p for p in PARAMETERS.values() if p.type is int]), st.integers(0, 2**40)),
    st.booleans(),
)
def test_whole_numbers_come_back_as_written(tmp_path: Path, values: dict[Any, int], dashes: bool) -> None:
    lines = (f"{p.name.replace('_', '-') if dashes else p.name} = {value}\n" for p, value in values.items())
    assert read_config(config(tmp_path, "".join(lines))) == {p.name: value for p, value in values.items()}
