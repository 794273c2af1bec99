from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qwp.cli.commands import loaded
from qwp.cli.parameters import (
    COMMAND_FLAGS,
    FLAGS,
    HELP_PANELS,
    METHOD_FLAGS,
    check_options,
    defaults_of,
    flags_of,
    read_config,
    resolve,
)
from qwp.errors import InputError
from qwp.methods import METHODS, QWP, Aligner, preset
from qwp.parameters import OTHER, RUN, param
from qwp.stages.pipeline import Pipeline
from qwp.stages.refinement import CslsRefinement
from qwp.stages.stage import Stage
from tests.cli.conftest import qwp


def config(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "settings.toml"
    path.write_text(text)
    return path


def align_flags() -> dict[str, Any]:
    return {parameter.name: parameter for parameter in loaded("align").params}


def test_every_parameter_of_every_method_is_a_flag_with_help_and_default() -> None:
    for method in METHODS:
        flags = align_flags()
        for name, parameter in METHODS[method].parameters().items():
            assert parameter.flag in flags[name].opts
            assert parameter.declared.help in flags[name].help
            assert parameter.default is not None or parameter.declared.decided, (
                f"nothing says what {name}=None stands for"
            )
            assert parameter.shown_default in flags[name].help.rpartition(" (")[2]


def test_a_name_has_one_type_in_all_methods() -> None:
    for method in METHODS:
        for name, parameter in METHODS[method].parameters().items():
            assert parameter.type is METHOD_FLAGS[name].parameter.type
            assert METHOD_FLAGS[name].by_method[method] == parameter


def test_no_method_has_a_parameter_named_like_an_option_of_the_command() -> None:
    of_files = {"max_vocab", "errors", "input_format", "encoding"}
    of_files |= {f"{side}_{what}" for side in ("src", "tgt") for what in ("vocab", "words")}
    assert set(COMMAND_FLAGS) == {"method", "preset", "lexicon", "save", *of_files}
    assert not set(COMMAND_FLAGS) & set(METHOD_FLAGS)
    taken = set(align_flags()) - set(FLAGS)
    assert not taken & set(METHOD_FLAGS)


def test_the_parameters_of_the_default_method_come_first_and_others_have_their_panel() -> None:
    assert list(METHOD_FLAGS)[: len(QWP.parameter_names())] == QWP.parameter_names()
    for name, flag in METHOD_FLAGS.items():
        assert (flag.panel == OTHER) == (name not in QWP.parameter_names())
    panels = [flag.rich_help_panel for name, flag in align_flags().items() if name in FLAGS]
    assert panels == sorted(panels, key=HELP_PANELS.index)


@dataclass(frozen=True, kw_only=True)
class Sharing(Stage):
    """A stage that does nothing."""

    share: float = param(0.5, "How much.", RUN, above=0, most=1)
    words: int | None = param(None, "How many.", RUN, least=1, most=9)


@dataclass(frozen=True, kw_only=True)
class OtherSharing(Stage):
    share: float = param(0.7, "How much of it.", RUN, above=0, most=1)


@dataclass(frozen=True, kw_only=True)
class Placing(Stage):
    only: str = param("here", "Where.", RUN, choices=("here", "there"))


class First(Aligner):
    method = "first"
    pipeline = Pipeline(solve=Sharing(), refine=CslsRefinement())


class Second(Aligner):
    method = "second"
    pipeline = Pipeline(solve=OtherSharing(), refine=CslsRefinement(rounds=0))


class Third(Aligner):
    method = "third"
    pipeline = Pipeline(solve=Placing(), refine=CslsRefinement(rounds=0))


THREE: dict[str, type[Aligner]] = {method.method: method for method in (First, Second, Third)}


def test_the_help_names_the_methods_where_they_differ() -> None:
    shown = {name: defaults_of(flag, THREE) for name, flag in flags_of(THREE).items()}
    assert shown["csls_k"] == "default: 10"
    assert shown["refine"] == "default: 5; second, third: 0"
    assert shown["share"] == "not third; default: 0.5; second: 0.7"
    assert shown["words"] == "first; default: decided by the data"
    assert shown["only"] == "third; default: here"


def test_the_help_has_both_texts_where_they_differ() -> None:
    flags = flags_of(THREE)
    assert flags["share"].help == "How much. second: How much of it."
    assert flags["only"].help == "Where."


def test_a_name_with_two_types_is_a_mistake() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Naming(Stage):
        share: str = param("all", "How much.", RUN, choices=("all", "none"))

    class Fourth(Aligner):
        method = "fourth"
        pipeline = Pipeline(solve=Naming())

    with pytest.raises(TypeError, match="share is float in first and str in fourth"):
        flags_of({"first": First, "fourth": Fourth})


def test_options_of_other_methods_are_refused_by_their_flags() -> None:
    flags = flags_of(THREE)
    check_options("second", ["share", "refine", "refine_words"], flags)
    with pytest.raises(InputError) as caught:
        check_options("second", ["refine", "only", "words"], flags)
    assert str(caught.value) == (
        "--only is an option of third; --words is an option of first, not of second: leave it out "
        "(`qwp methods second` lists what it has)"
    )


def test_no_alias_shows_in_help() -> None:
    shown = {option for parameter in align_flags().values() for option in parameter.opts}
    assert not shown & {"--nmax", "--bsz", "--niter", "--nepoch", "--reg", "--csls", "--max_vocab"}


def test_types_are_those_of_the_method() -> None:
    types = {name: FLAGS[name].parameter.type for name in ("coreset_size", "epsilon", "sphere_centroids", "max_vocab")}
    assert types == {"coreset_size": int, "epsilon": float, "sphere_centroids": bool, "max_vocab": int}


def test_flags_win_over_the_file_and_the_file_over_defaults(tmp_path: Path) -> None:
    path = config(tmp_path, 'coreset-size = 70\nlearning_rate = 2\ncoreset = "lloyd"\nsphere-centroids = false\n')
    flags: dict[str, Any] = dict.fromkeys(FLAGS)
    flags["coreset_size"] = 80
    assert resolve(flags, path) == {
        "coreset_size": 80,
        "learning_rate": 2.0,
        "coreset": "lloyd",
        "sphere_centroids": False,
    }
    assert resolve({"refine": 0}, None) == {"refine": 0}


def test_an_invalid_settings_file_is_explained(tmp_path: Path) -> None:
    cases: list[tuple[str, str]] = [
        (
            "coresetsize = 3",
            r"'coresetsize', which is not a setting; expected a parameter of .*, such as coreset-size",
        ),
        ("steps = 2.5", r"steps = 2.5 \(float\); expected a whole number"),
        ("steps = true", r"steps = True \(bool\); expected a whole number"),
        ('steps = "5"', r"steps = '5' \(str\); expected a whole number"),
        ("epsilon = false", r"epsilon = False \(bool\); expected a number"),
        ("coreset = 3", r"coreset = 3 \(int\); expected a text in quotes"),
        ("sphere-centroids = 1", r"sphere-centroids = 1 \(int\); expected true or false"),
        ("[loop]\nsteps = 5", "sets 'loop', which is not a setting"),
        ("coreset-size = 3\ncoreset_size = 4", "twice"),
        ("steps = ", "is not TOML"),
        ('errors = "ignore"', "errors='ignore' is not known; expected one of raise, skip"),
        ("max-vocab = 0", "max_vocab=0 is out of range"),
        ('lexicon = "a\\u0000b"', "expected a text in quotes"),
        ("epsilon = 1" + "0" * 400, r"epsilon = 1000.*\(int\); expected a number"),
        ("steps = " + "9" * 4500, "is not TOML .*digits"),
        ("steps = " + "[" * 4900, "is not TOML"),
        ("steps = " + "{a=" * 1600, "is not TOML"),
        # The reader of older Python versions has another limit.
        ("steps" + ".a" * 2400 + " = 1", r"steps = {.*\(dict\); expected a whole number|is not TOML .*1000 parts"),
        ("a" * 4000 + " = 1", "which is not a setting"),
        ("steps" + ".a" * 2500 + " = 1", "line 1 of .* has 5,009 bytes; expected a name and a value"),
        ("# settings\n" * 6000, "is larger than 65,536 bytes; expected a few lines"),
        ("\n".join(f"a{i}.b.c = 1" for i in range(4000)), "'a0', which is not a setting"),
    ]
    for text, message in cases:
        with pytest.raises(InputError, match=message) as caught:
            resolve({}, config(tmp_path, text))
        assert len(str(caught.value)) < 2500, "whatever the file holds, the message stays short"


@pytest.mark.parametrize("content", [b"\xff\xfe", b"steps = 3\x00", b"\x80abc"])
def test_a_binary_settings_file_is_explained(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "settings.toml"
    path.write_bytes(content)
    with pytest.raises(InputError, match="is not TOML"):
        read_config(path)


def test_a_file_without_an_end_is_explained() -> None:
    with pytest.raises(InputError, match="is larger than"):
        read_config(Path("/dev/zero"))


def test_a_missing_file_is_explained(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.toml cannot be read"):
        read_config(tmp_path / "none.toml")


@pytest.mark.parametrize("name", [name for name, flag in COMMAND_FLAGS.items() if flag.parameter.declared.choices])
def test_choices_of_the_command_are_checked(name: str) -> None:
    [first, *_] = COMMAND_FLAGS[name].parameter.declared.choices or ()
    with pytest.raises(InputError, match=f"{name}='bogus' is not known; expected one of"):
        resolve({name: "bogus"}, None)
    chosen = resolve({name: first}, None)
    assert chosen == (preset("paper") if name == "preset" else {name: first})


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.dictionaries(st.sampled_from([n for n, f in FLAGS.items() if f.parameter.type is int]), st.integers(0, 2**40)),
    st.booleans(),
)
def test_whole_numbers_are_read_exactly(tmp_path: Path, values: dict[str, int], dashes: bool) -> None:
    lines = (f"{name.replace('_', '-') if dashes else name} = {value}\n" for name, value in values.items())
    assert read_config(config(tmp_path, "".join(lines))) == values


def test_values_out_of_range_are_refused_before_reading() -> None:
    cases: list[tuple[list[str], str]] = [
        (["--refine", "-1"], "refine=-1 is out of range"),
        (["--n-refinement", "-1"], "refine=-1 is out of range"),
        (["--epsilon", "nan"], "epsilon=nan is out of range"),
        (["--epsilon", "inf"], "epsilon=inf is out of range"),
        (["--steps", str(10**12)], "steps=1000000000000 is out of range; expected 1 to 1,000,000"),
        (["--max-memory", "inf"], "max_memory=inf is out of range"),
        (["--max-vocab", "0"], "max_vocab=0 is out of range"),
        (["--seed", "-1"], "seed=-1 is out of range"),
        (["--normalize", "unit,unit,x"], "the step 'x' of normalize is not known"),
        (["--normalize", "unit,center," * 11], "normalize has 22 steps, expected at most 20"),
        (["--device", "cuda:x"], "device 'cuda:x' is not known"),
        (["--coreset", "x"], "coreset='x' is not known"),
        (["--method", "x"], "method='x' is not known"),
        (["--input-format", "x"], "input_format='x' is not known"),
    ]
    for args, message in cases:
        ran = qwp("align", "none.vec", "none.vec", "--out", "never", *args)
        assert (ran.code, ran.out) == (2, "")
        assert message in ran.err


def test_a_file_and_flags_override_a_preset(tmp_path: Path) -> None:
    path = config(tmp_path, 'preset = "paper"\nepsilon = 0.1\ncoreset-size = 300\n')
    values = resolve({"coreset_size": 400}, path)
    assert values == {**preset("paper"), "epsilon": 0.1, "coreset_size": 400}
    assert resolve({"preset": "paper-lloyd"}, path)["coreset"] == "lloyd"
    assert "preset" not in values


def test_a_preset_of_another_method_is_refused() -> None:
    with pytest.raises(InputError, match="'paper' has settings of the method 'qwp', but the method is 'wp'"):
        resolve({"preset": "paper", "method": "wp"}, None)
    with pytest.raises(InputError, match="preset='papr' is not known; expected one of paper, paper-lloyd"):
        resolve({"preset": "papr"}, None)
