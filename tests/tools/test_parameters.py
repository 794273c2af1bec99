"""Tables and types generated from the declared parameters."""

from __future__ import annotations

import ast
from typing import Literal, get_args, get_origin, get_type_hints

from qwp.methods import METHODS, options
from tools import parameters

QWP_PANELS = ("qwp.coresets", "qwp.transport", "qwp.initialization", "qwp.run")
TABLES = ("shared", "command", "refinement", *QWP_PANELS, "dema")


def rows(argument: str) -> list[list[str]]:
    head, rule, *body = parameters.table(argument).splitlines()
    assert set(rule) <= set("|- ")
    split = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in body]
    assert {len(row) for row in split} == {head.count(" | ") + 1}
    return split


def test_every_parameter_of_a_table_has_a_default_a_range_and_a_meaning() -> None:
    for group in TABLES:
        assert all(cell for row in rows(group) for cell in row), group


def test_every_parameter_of_every_method_is_in_a_table() -> None:
    shared, refined, ours = ({row[0] for row in rows(g)} for g in ("shared", "refinement", "qwp"))
    for method, aligner in METHODS.items():
        own = set() if method in ("wp", "identical", "procrustes") else {row[0] for row in rows(method)}
        known = shared | refined | own | (ours if method == "wp" else set())
        assert {f"`{name}`" for name in aligner.parameters()} <= known, method


def test_a_method_that_differs_from_the_others_is_named() -> None:
    by_name = {row[0]: row for row in rows("refinement")}
    assert by_name["`refine`"][1:3] == ["`10`", "`5`"]
    assert "`procrustes`: 0" in by_name["`refine`"][4]


def test_the_options_are_valid_python_and_hold_every_parameter_but_the_seed() -> None:
    [options] = [node for node in ast.parse(parameters.options_module()).body if isinstance(node, ast.ClassDef)]
    names = {
        node.target.id for node in options.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    assert names == {name for aligner in METHODS.values() for name in aligner.parameters()} - {"seed"}


def test_the_options_name_the_choices_of_all_methods_that_have_them() -> None:
    # test_generate checks that the module is up to date.
    hints = get_type_hints(options.Options)
    assert get_args(options.Method) == tuple(METHODS)
    for name, hint in hints.items():
        every = [aligner.parameters()[name] for aligner in METHODS.values() if name in aligner.parameters()]
        choices = [p.declared.choices for p in every]
        if None in choices:
            assert get_origin(hint) is not Literal, name
        else:
            assert set(get_args(hint)) == {choice for each in choices for choice in each or ()}, name
    assert hints["device"] is hints["normalize"] is str
    assert {"auto", "lexicon", "random", "procrustes"} <= set(get_args(hints["start"]))
