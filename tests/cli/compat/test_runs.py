from __future__ import annotations

import pytest

from qwp.cli.compat import runs
from qwp.cli.compat.runs import MethodSettings, Parser
from qwp.errors import InputError


def test_options_that_were_not_given_are_absent() -> None:
    parser = Parser("tool", "It does something.")
    parser.add_argument("--seed", type=int)
    assert parser.given([]) == {}
    assert parser.given(["--seed", "3", "--json", "--method", "qwp"]) == {"seed": 3, "json": True, "method": "qwp"}
    with pytest.raises(InputError, match=r"unrecognized arguments: --x \(`qwp tool --help` shows what it takes\)"):
        parser.given(["--x"])


def test_parameters_that_a_method_lacks_are_collected(capsys: pytest.CaptureFixture[str]) -> None:
    settings = MethodSettings("procrustes")
    settings.take({"a": 1, "b": 2, "c": 3}, {"a": "seed", "b": "keep", "d": "refine"})
    settings.ignore({"c": 3}, ("c", "e"))
    assert (settings.values, settings.ignored) == ({"seed": 1}, ["b", "c"])
    settings.report_ignored()
    assert capsys.readouterr().err == "note: ignored, without a counterpart in method procrustes: --b, --c\n"


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [("center,renorm", "center,unit"), ("unit, center", "unit,center"), ("", "none"), ("none", "none")],
)
def test_normalisation(theirs: str, ours: str) -> None:
    assert runs.normalize(theirs) == ours


def test_methods_are_checked() -> None:
    runs.check_method({})
    with pytest.raises(InputError, match="method x is not known; expected one of qwp, wp"):
        runs.check_method({"method": "x"})
