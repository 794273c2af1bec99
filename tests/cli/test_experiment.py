"""`qwp experiment`: run, report and list."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

import pytest

from qwp.cli import experiment
from tests.cli.conftest import qwp
from tests.documents import section
from tests.experiments.conftest import config as config
from tests.experiments.conftest import folder as folder
from tests.test_documents import CLI, fields_of

TITLE = "qwp experiment"


@pytest.fixture(autouse=True)
def nothing_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the downloads of the user."""
    monkeypatch.setenv("QWP_DATA", str(tmp_path / "downloads"))


def check_documented(about: dict[str, object]) -> None:
    text = "\n".join([*section(CLI, "JSON"), *section(CLI, TITLE)])
    assert not [name for name in sorted(fields_of(about)) if f"`{name}`" not in text]


def test_run_and_report(folder: Path, config: Path, tmp_path: Path) -> None:
    where = ("--results", tmp_path / "r")
    only = ("--data", folder, "--workers", 1, "--device", "cpu", "--directions", "en-es", "--seeds", 1)
    ran = qwp("experiment", "run", config, *only, *where)
    assert ran.code == 0, ran.err
    assert "4 of 4 cells are done, 4 computed now and 0 before" in ran.out
    assert "0/4 cells, 1 running, 0 failed" in ran.err
    assert re.search(r"4/4 cells, 0 running, 0 failed; en-es KMeans\+\+ 60 seed 0 \d", ran.err)
    again = qwp("experiment", "run", config, *only, *where, "--json")
    assert again.json["cells"] == {"wanted": 4, "done": 4, "computed": 0}
    check_documented(again.json)
    shown = qwp("experiment", "report", config, *where)
    assert shown.out.startswith("# Tiny\n")
    assert "| direction | system | 40 | 60 |" in shown.out
    about = qwp("experiment", "report", "tiny", *where, "--json").json
    assert about["tables"][0]["figures"][0]["mean"] > 50
    check_documented(about)
    assert f"written to {tmp_path / 'r' / 'tiny.html'}" in shown.err.replace("\n", "")
    assert "<svg" in (tmp_path / "r" / "tiny.html").read_text()
    for name, content in (("report.tex", r"\toprule"), ("report.html", "<svg"), ("report.json", '"views"')):
        assert qwp("experiment", "report", "tiny", *where, "--out", tmp_path / name).code == 0
        assert content in (tmp_path / name).read_text()
    last = qwp("experiment", "report", *where, "--format", "markdown")
    assert last.out == shown.out
    assert "written" not in last.err


@pytest.mark.slow
def test_a_failed_cell_exits_with_code_3(folder: Path, config: Path, tmp_path: Path) -> None:
    (folder / "en-es.txt").write_text("no such\n")
    only = ("--data", folder, "--workers", 1, "--device", "cpu", "--seeds", 1, "--results", tmp_path / "r")
    ran = qwp("experiment", "run", config, *only, "--json")
    assert ran.code == 3
    assert ran.json["cells"] == {"wanted": 8, "done": 4, "computed": 8}
    assert {each["direction"] for each in ran.json["failures"]} == {"en-es"}
    check_documented(ran.json)
    again = qwp("experiment", "run", config, *only)
    assert again.code == 3
    assert "en-es failed: InputError" in again.err
    assert "--retry-failed computes failed cells again" in again.err


@pytest.mark.slow
def test_missing_data_is_reported_first(folder: Path, config: Path, tmp_path: Path) -> None:
    config.write_text(config.read_text().replace('"es-en"', '"en-fr"'))
    options = ("--data", folder, "--seeds", 1, "--workers", 1, "--device", "cpu", "--results", tmp_path / "r")
    ran = qwp("experiment", "run", config, *options)
    assert ran.code == 0
    assert ran.err.startswith("warning: no vectors of 'fr' in ")
    assert "`qwp data download fr` gets them" in ran.err
    nothing = qwp("experiment", "run", config, *options, "--directions", "en-fr")
    assert nothing.code == 2
    assert "no cell of the experiment 'tiny' can run; expected the data named above" in nothing.err


@pytest.mark.slow
def test_directions_of_several_folders(folder: Path, config: Path, tmp_path: Path) -> None:
    config.write_text(config.read_text().replace('["en-es", "es-en"]', '"found"'))
    several = ("--data", folder, "--data", f"again={folder}", "--results", tmp_path / "r", "--device", "cpu")
    ran = qwp("experiment", "run", config, *several, "--directions", "es-en,again:es-en", "--seeds", 1, "--workers", 1)
    # The same files make the same cells.
    assert "4 of 4 cells are done, 4 computed now" in ran.out
    figures = qwp("experiment", "report", config, "--results", tmp_path / "r", "--json").json["tables"][0]["figures"]
    assert {figure["row"] for figure in figures} == {"es-en", "again:es-en", "average"}


def test_list() -> None:
    about = qwp("experiment", "list", "--json").json
    assert [each["name"] for each in about["experiments"]] == ["table1", "table2", "table3", "table4", "bench", "smoke"]
    check_documented(about)
    assert about["experiments"][0]["cells"] == 10 * 5 * 5 * 5
    assert about["experiments"][4]["cells"] is None
    shown = " ".join(qwp("experiment", "list").out.split())
    assert "MAP without refinement" in shown
    assert "for each direction" in shown


def test_a_dry_run_counts_cells_and_computes_nothing(folder: Path, config: Path, tmp_path: Path) -> None:
    args = ("experiment", "run", config, "--data", folder, "--results", tmp_path / "r", "--seeds", 1)
    ran = qwp(*args, "--dry-run")
    assert ran.code == 0, ran.err
    assert "0 done" in ran.out
    assert not (tmp_path / "r").exists()
    about = qwp(*args, "--dry-run", "--json").json
    assert about["cells"]["done"] == 0
    assert about["cells"]["wanted"] == about["tables"][0]["wanted"]
    assert about["expected_seconds"] is None
    check_documented(about)
    qwp(*args, "--directions", "en-es", "--workers", 1, "--device", "cpu")
    about = qwp(*args, "--dry-run", "--json").json
    assert about["cells"]["done"] == 4
    assert about["expected_seconds"] > 0
    assert "of fits" in qwp(*args, "--dry-run").out


def test_mistakes_are_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases: list[tuple[tuple[str, ...], str]] = [
        (("walk",), "action walk is not known; expected one of run, report, list"),
        (("run",), "no experiment was named; expected `qwp experiment run NAME`"),
        (("run", "table1"), "the experiment 'table1' needs vectors; expected --data DIR"),
        (("run", "smoke", "--format", "latex"), "--format: of `qwp experiment report`, not of run; leave it out"),
        (("report", "smoke", "--workers", "2"), "--workers: of `qwp experiment run`, not of report; leave it out"),
        (("report", "smoke"), "expected the plan that `qwp experiment run smoke` saves: run it first"),
        (
            ("report", "smoke", "--format", "pdf"),
            "--format pdf is not known; expected one of markdown, latex, html, json",
        ),
        (("report",), "qwp-experiments has no experiment; expected the plan that `qwp experiment run NAME` saves"),
        (("report", "smoke", "--json", "--out", "x"), "--json and --format or --out ask for two formats"),
        (("run", "smoke", "--seeds", "0"), "seeds=0 is out of range; expected 1 to 10,000"),
        (("run", "smoke", "--data", "none"), "none is not a folder"),
    ]
    for args, message in cases:
        monkeypatch.chdir(tmp_path)
        ran = qwp("experiment", *args)
        assert ran.code == 2
        assert message in " ".join(ran.err.split())


def test_an_interrupt_reports_how_to_continue(
    folder: Path, config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(experiment, "run", interrupted)
    ran = qwp("experiment", "run", config, "--data", folder, "--device", "cpu", "--results", tmp_path / "r")
    assert ran.code == 130
    assert "interrupted: finished cells are kept, the same command continues" in ran.err


@pytest.mark.slow
def test_smoke_runs(tmp_path: Path) -> None:
    """Run one size and one seed: other cells would test nothing more."""
    shipped = resources.files("qwp.experiments") / "configs" / "smoke.toml"
    (tmp_path / "smoke.toml").write_text(shipped.read_text("utf-8").replace("[200, 500]", "[200]"))
    options = ("--results", tmp_path, "--device", "cpu", "--seeds", 1, "--json")
    ran = qwp("experiment", "run", tmp_path / "smoke.toml", *options)
    assert ran.code == 0, ran.err
    about = qwp("experiment", "report", "smoke", "--results", tmp_path, "--json").json
    assert all(figure["mean"] > 60 and figure["seeds"] == 1 for figure in about["tables"][0]["figures"])


def test_downloaded_data_is_the_default_folder(tmp_path: Path) -> None:
    wiki = tmp_path / "downloads" / "wiki"
    wiki.mkdir(parents=True)
    ran = qwp("experiment", "run", "table4", "--results", tmp_path / "r", "--directions", "en-es")
    assert ran.code == 2
    assert "`qwp data download en` gets them" in ran.err
