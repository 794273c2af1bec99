from __future__ import annotations

import pytest

from qwp.aligners import METHODS
from qwp.cli.parameters import HELP
from tests.cli.conftest import qwp


def test_the_table_has_every_method(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = qwp("methods")
    assert ran.code == 0
    lines = ran.out.splitlines()
    for name, method in METHODS.items():
        [line] = [line for line in lines if line.startswith(f"│ {name} ")]
        assert f"│ {method.supervision} " in line
        assert method.paper.split(";")[0] in line
    monkeypatch.setattr(METHODS["qwp"], "needs_torch", True)
    assert qwp("methods").out.count("needs torch") == 1 + sum(m.needs_torch for n, m in METHODS.items() if n != "qwp")


def test_json_is_what_the_library_says() -> None:
    about = qwp("methods", "--json").json
    assert about["command"] == "methods"
    assert [entry["name"] for entry in about["methods"]] == list(METHODS)
    for entry in about["methods"]:
        method = METHODS[entry["name"]]
        assert entry["summary"] == method.summary
        assert entry["supervision"] == method.supervision
        assert entry["paper"] == method.paper
        assert entry["needs_torch"] is method.needs_torch
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
        "help": HELP["seed_pairs"][1],
    }


def test_one_method_shows_its_options_its_own_first() -> None:
    ran = qwp("methods", "proc-b")
    assert ran.code == 0
    assert METHODS["proc-b"].paper in ran.out
    flags = [line.split()[1] for line in ran.out.splitlines() if line.startswith("│ --")]
    assert sorted(flags) == sorted(f"--{name.replace('_', '-')}" for name in METHODS["proc-b"].parameter_names())
    assert flags.index("--growth") < flags.index("--seed")
    [growth] = [line for line in ran.out.splitlines() if "--growth" in line]
    assert "│ int " in growth
    assert "│ 250 " in growth


def test_an_unknown_method_is_explained() -> None:
    ran = qwp("methods", "magic")
    assert (ran.code, ran.out) == (2, "")
    assert "method magic is not known; expected one of qwp, wp" in ran.err
