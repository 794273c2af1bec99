"""Configs: the shipped experiments, and error messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from qwp.errors import InputError
from qwp.experiments.config import CONFIGS, SHIPPED, read_experiment
from qwp.experiments.paper import published
from qwp.methods import make_aligner, preset
from tests.experiments.conftest import TINY


def test_all_shipped_experiments_are_listed() -> None:
    assert sorted(SHIPPED) == sorted(path.stem for path in CONFIGS.glob("*.toml"))


def test_the_tables_cover_the_published_ones() -> None:
    for name in ("table1", "table2", "table3", "table4"):
        [table] = read_experiment(name).tables
        paper = published().tables[name]
        assert table.measure == paper.measure
        assert set(paper.systems) <= {system.name for system in table.systems}
        assert tuple(table.grid.get("coreset_size", ())) == paper.sizes
        directions = {direction for system in paper.systems for direction in paper.directions(system)}
        assert set(table.directions or ()) == directions


def test_cells_have_the_settings_of_the_paper() -> None:
    [table] = read_experiment("table1").tables
    random, quantized, equal, lloyd, ours = table.systems
    point = {"coreset_size": 500}
    expected = {**preset("paper"), "refine": 0, "verdict": "none", "coreset_size": 500}
    assert table.options_of(quantized, point) == expected
    # Each coreset has its own learning rate.
    assert table.options_of(random, point) == {**expected, "coreset": "random", "learning_rate": 0.4}
    assert table.options_of(equal, point) == {**expected, "weight_power": 0.0}
    assert table.options_of(lloyd, point) == {**expected, "coreset": "lloyd"}
    assert table.options_of(ours, point) == {"refine": 0, "verdict": "none", "coreset_size": 500}
    refined = read_experiment("table3").tables[0]
    by_default = make_aligner("qwp").config()["refine"]
    assert refined.options_of(refined.systems[-1], point)["refine"] == by_default
    assert refined.options_of(refined.systems[1], point) == {**expected, "refine": 5}


def test_bench_is_the_same_without_the_published_figures() -> None:
    bench = read_experiment("bench")
    assert [table.name for table in bench.tables] == ["table1", "table2", "table3", "table4"]
    assert all(table.directions is None and table.published is None for table in bench.tables)
    assert bench.tables[0].systems == read_experiment("table1").tables[0].systems


def test_smoke_needs_no_files() -> None:
    assert not read_experiment("smoke").needs_files
    assert read_experiment("table1").needs_files


def test_mistakes_are_explained(tmp_path: Path) -> None:
    for old, new, message in (
        ("seeds = [0, 1]", "seeds = [0.5]", r"seeds\[0\] is 0.5; expected a whole number"),
        ("seeds = [0, 1]", "seeds = 3", "seeds is 3; expected a list"),
        ("seeds = [0, 1]", "sedes = [0]", "'sedes' is not known. Expected a file with the keys title, measure"),
        ('"en-es", "es-en"', '"enes"', r"directions\[0\] is 'enes'; expected a text like"),
        ('"en-es", "es-en"', "1", r"directions\[0\] is 1; expected a text"),
        ('measure = "P@1"', 'measure = "P1"', "measure is 'P1'; expected one of P@1"),
        ('retrieval = "nn"', 'retrieval = "x"', "retrieval is 'x'; expected one of nn, csls"),
        ("steps = 3", "steps = 0", "steps=0 is out of range"),
        ("steps = 3", "stepz = 3", "method 'qwp' has no option stepz"),
        ("steps = 3", 'device = "cpu"', "sets device for 'Random': leave it out of the options"),
        ('name = "KMeans++"', 'name = "Random"', "names two systems alike"),
        ('name = "KMeans++"', "", r"systems\[1\].name is missing"),
        ('name = "KMeans++"', 'name = "x"\nmethod = "wp"', "the preset 'paper' has settings of the method 'qwp'"),
        ('title = "Tiny"', "title = 3", "title is 3; expected a text"),
        ("coreset_size = [40, 60]", "coreset_size = 40", "grid.coreset_size is 40; expected a list"),
        ("[options]", "[[options]]", r"options is \[.*\]; expected an object"),
        ('title = "Tiny"', 'published = "table9"', "published is 'table9'; expected one of"),
    ):
        path = tmp_path / "x.toml"
        assert old in TINY
        path.write_text(TINY.replace(old, new, 1))
        with pytest.raises(InputError, match=message):
            read_experiment(str(path))


def test_a_config_without_systems_raises(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text('title = "x"\n')
    with pytest.raises(InputError, match="systems is missing"):
        read_experiment(str(path))


def test_an_unknown_experiment_raises() -> None:
    with pytest.raises(
        InputError, match=r"experiment 'table9' is not known; expected one of table1, .*or a \.toml file"
    ):
        read_experiment("table9")
