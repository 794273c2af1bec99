"""Tables and types made from the declared parameters."""

from __future__ import annotations

import ast

import pytest

from qwp.methods import METHODS
from tools import parameters

GROUPS = ("shared", "command", "refinement", "qwp.coresets", "qwp.transport", "qwp.start", "qwp.run", "multi", "dema")


def rows(argument: str) -> list[list[str]]:
    head, rule, *body = parameters.table(argument).splitlines()
    assert set(rule) <= set("|- ")
    split = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in body]
    assert {len(row) for row in split} == {head.count(" | ") + 1}
    return split


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_has_a_row_for_each_parameter_with_default_range_and_meaning(group: str) -> None:
    assert all(cell for row in rows(group) for cell in row)


def test_every_parameter_of_every_method_is_in_a_table() -> None:
    shared, refined, ours = ({row[0] for row in rows(g)} for g in ("shared", "refinement", "qwp"))
    for method, aligner in METHODS.items():
        own = set() if method in ("wp", "identical", "procrustes") else {row[0] for row in rows(method)}
        known = shared | refined | own | (ours if method in ("wp", "multi") else set())
        assert {f"`{name}`" for name in aligner.parameters()} <= known, method


def test_a_method_that_differs_from_the_others_is_named() -> None:
    by_name = {row[0]: row for row in rows("refinement")}
    assert by_name["`refine`"][1:3] == ["`10`", "`5`"]
    assert "`procrustes`: 0" in by_name["`refine`"][4]
    assert "`multi`: orthogonal" in by_name["`map`"][4]


def test_the_options_are_valid_python_and_hold_every_parameter_but_the_seed() -> None:
    [options] = [node for node in ast.parse(parameters.options_module()).body if isinstance(node, ast.ClassDef)]
    names = {
        node.target.id for node in options.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    assert names == {name for aligner in METHODS.values() for name in aligner.parameters()} - {"seed"}
