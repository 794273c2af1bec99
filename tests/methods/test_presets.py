"""Presets: the values of the paper, as they are documented, in a result."""

from __future__ import annotations

import re

import pytest

from qwp import QWP
from qwp.errors import InputError
from qwp.maps.procrustes import orthogonality_error
from qwp.methods import make_aligner, preset
from qwp.methods.presets import PAPER, PRESETS, REMARKS, check_method
from qwp.parameters import values
from qwp.stages.anchored import AnchoredRefinement
from qwp.stages.pipeline import Choice, Pipeline
from tests.problems import planted
from tools.project import ROOT

# Taken from the paper by hand, not from the code.
STATED = {
    "normalize": "unit,center",
    "train_words": 20_000,
    "start": "frank-wolfe",
    "start_words": 2500,
    "coreset": "kmeans++",
    "coreset_size": 2000,
    "weight_power": 1.0,
    "epsilon": 0.05,
    "cost": "sqeuclidean",
    "ot": "balanced",
    "refine": 5,
    "map": "orthogonal",
}


# Not stated in the paper: chosen here.
CHOSEN = {
    "order": "given",
    "sphere_centroids": False,
    "schedule": "budget",
    "epochs": 5,
    "steps": 600,
    "pairs_per_step": 1,
    "bank_size": 300,
    "update": "normalized",
    "learning_rate": 0.8,
    "final_rate": 0.1,
    "refine_words": 15_000,
    "refine_first_words": 0,
    "refine_directions": "mutual",
    "refine_weights": "equal",
    "refine_map": "orthogonal",
}


def test_the_options_of_the_paper_preset() -> None:
    assert dict(preset("paper")) == {**STATED, **CHOSEN}


def test_every_value_of_the_composition_that_is_no_default_is_an_option_of_the_preset() -> None:
    defaults = {name: parameter.default for name, parameter in QWP.parameters().items()}
    changed = {name for name, value in values(PAPER).items() if value != defaults[name]}
    assert changed <= set(REMARKS) <= set(defaults)


def test_the_preset_runs_the_stages_of_the_composition() -> None:
    found = make_aligner("qwp", **preset("paper")).composition.pipeline
    assert isinstance(found.init, Choice)
    assert isinstance(found.refine, AnchoredRefinement)
    assert (found.prepare, found.init.chosen, found.solve) == (PAPER.prepare, PAPER.init, PAPER.solve)
    assert values(found.refine.refinement) == values(PAPER.refine or Pipeline())


def test_the_variants_differ_in_one_value() -> None:
    paper = dict(preset("paper")).items()
    assert dict(preset("paper-lloyd")).items() - paper == {("coreset", "lloyd")}
    assert dict(preset("paper-unbalanced")).items() - paper == {("ot", "unbalanced")}


def test_every_preset_is_valid_and_recorded_as_values() -> None:
    for name in PRESETS:
        aligner = make_aligner("qwp", **preset(name))
        aligner.validate()
        assert preset(name).items() <= aligner.config().items()
        assert "preset" not in aligner.config()


def test_the_document_has_the_values() -> None:
    for name in PRESETS:
        text = (ROOT / "docs" / "method.md").read_text("utf-8")
        table = text.partition("<!-- generated:presets -->")[2].partition("<!-- /generated:presets -->")[0]
        head, _, *rows = [
            [cell.strip().strip("`") for cell in line.split("|")[1:-1]] for line in table.split("\n")[1:-1]
        ]
        found = {row[0]: row[head.index(name)] or row[head.index("paper")] for row in rows}
        assert found == {key: str(value) for key, value in preset(name).items()}
        assert list(found) == list(REMARKS)


def test_a_fit_with_the_settings_of_the_paper_makes_an_orthogonal_map() -> None:
    problem = planted(400, d=10)
    small = {**preset("paper"), "coreset_size": 100, "steps": 10, "bank_size": 50, "start_steps": 20, "verdict": "none"}
    aligner = make_aligner("qwp", **small)
    aligner.fit(problem.src, problem.tgt)
    assert orthogonality_error(aligner.map_) < 1e-4
    assert aligner.alignment_.provenance.config["weight_power"] == 1.0


def test_unknown_presets_are_refused() -> None:
    with pytest.raises(InputError, match=re.escape(f"preset='x' is not known; expected one of {', '.join(PRESETS)}")):
        preset("x")
    with pytest.raises(InputError, match="but the method is 'procrustes'"):
        check_method("paper", "procrustes")
