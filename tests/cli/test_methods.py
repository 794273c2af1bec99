from __future__ import annotations

from pathlib import Path

import pytest

from qwp.methods import METHODS
from tests.cli.conftest import qwp


def test_the_table_has_every_method() -> None:
    ran = qwp("methods", "--format", "table")
    assert ran.code == 0
    lines = ran.out.splitlines()
    for name, method in METHODS.items():
        [line] = [line for line in lines if line.startswith(f"│ {name} ")]
        assert f"│ {method.supervision} " in line
        assert method.paper.split(";")[0] in line
    assert ran.out.count("needs torch") == sum(method.needs_torch for method in METHODS.values())


def test_json_equals_the_library() -> None:
    about = qwp("methods", "--json").json
    assert about["command"] == "methods"
    assert [entry["name"] for entry in about["methods"]] == list(METHODS)
    for entry in about["methods"]:
        method = METHODS[entry["name"]]
        assert entry["summary"] == method.summary
        assert entry["supervision"] == method.supervision
        assert entry["paper"] == method.paper
        assert entry["needs_torch"] is method.needs_torch
        assert entry["needs_pot"] is method.needs_pot
        assert {option["name"]: option["default"] for option in entry["options"]} == method().get_params()


def test_an_option_in_json() -> None:
    [entry] = qwp("methods", "proc-b", "--json").json["methods"]
    assert entry["name"] == "proc-b"
    options = {option["name"]: option for option in entry["options"]}
    assert options["seed_pairs"] == {
        "name": "seed_pairs",
        "flag": "--seed-pairs",
        "type": "int",
        "default": None,
        "range": "1 to 100,000,000",
        "help": "Use only the first N covered pairs of the seed lexicon.",
    }


REFINEMENT = {
    "refine": ("int", 10),
    "refine_words": ("int", 20_000),
    "refine_first_words": ("int", 4_000),
    "refine_directions": ("str", "union"),
    "refine_weights": ("str", "csls"),
    "refine_map": ("str", "reweighted"),
    "map": ("str", "reweighted"),
    "reweight": ("float", 1.0),
    "dewhiten": ("float", None),
    "order": ("str", "auto"),
}


@pytest.mark.parametrize("method", ["qwp", "wp"])
def test_the_refinement_of_the_default_method_in_json_and_in_the_table(method: str) -> None:
    [entry] = qwp("methods", method, "--json").json["methods"]
    options = {option["name"]: option for option in entry["options"]}
    assert {name: (options[name]["type"], options[name]["default"]) for name in REFINEMENT} == REFINEMENT
    lines = qwp("methods", method, "--format", "table").out.splitlines()
    for name, (_, default) in REFINEMENT.items():
        assert options[name]["flag"] == f"--{name.replace('_', '-')}"
        declared = METHODS[method].parameters()[name]
        assert (options[name]["help"], options[name]["range"]) == (declared.declared.help, declared.range)
        [line] = [line for line in lines if line.startswith(f"│ {options[name]['flag']} ")]
        assert f"│ {'0.75, or 0.5' if default is None else default} " in line


@pytest.mark.parametrize("method", ["gromov", "identical", "procrustes"])
def test_other_methods_keep_their_refinement(method: str) -> None:
    [entry] = qwp("methods", method, "--json").json["methods"]
    options = {option["name"]: option["default"] for option in entry["options"]}
    plain = {"refine_words": 15_000, "refine_first_words": 0, "refine_directions": "mutual"}
    plain |= {"refine_weights": "equal", "refine_map": "orthogonal", "map": "orthogonal"}
    assert {name: options[name] for name in plain} == plain


def test_the_options_of_a_method_come_before_the_common_ones() -> None:
    ran = qwp("methods", "proc-b", "--format", "table")
    assert ran.code == 0
    assert METHODS["proc-b"].paper in ran.out
    flags = [line.split()[1] for line in ran.out.splitlines() if line.startswith("│ --")]
    assert sorted(flags) == sorted(f"--{name.replace('_', '-')}" for name in METHODS["proc-b"].parameter_names())
    assert flags.index("--growth") < flags.index("--seed")
    [growth] = [line for line in ran.out.splitlines() if "--growth" in line]
    assert "│ 250 " in growth


def test_tsv_in_a_pipe_and_in_a_file(tmp_path: Path) -> None:
    lines = [line.split("\t") for line in qwp("methods").out.splitlines()]
    assert lines[0] == ["method", "supervision", "summary", "paper", "needs_torch", "needs_pot"]
    assert [line[0] for line in lines[1:]] == list(METHODS)
    assert {len(line) for line in lines} == {6}
    ran = qwp("methods", "rcsls", "--out", tmp_path / "rcsls.tsv")
    assert (ran.out, ran.err) == ("", f"written to {tmp_path / 'rcsls.tsv'}\n")
    header, *options = (tmp_path / "rcsls.tsv").read_text().splitlines()
    assert header == "option\ttype\tdefault\trange\tmeaning"
    assert len(options) == len(METHODS["rcsls"].parameter_names())


def test_an_unknown_method_is_explained() -> None:
    ran = qwp("methods", "magic")
    assert (ran.code, ran.out) == (2, "")
    assert "method magic is not known; expected one of qwp, wp" in ran.err
