"""`qwp align-many` aligns every pair once, into a folder of its own."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from qwp.cli import align_many
from qwp.results.alignment import Alignment
from tests.cli.conftest import QUICK, qwp
from tests.documents import section
from tests.experiments.conftest import folder as folder
from tests.test_documents import CLI, fields_of
from tests.tolerance import rounding

# Reweighted maps of these vectors are not unique, because directions have equal variance.
ALONE = (*QUICK, "--device", "cpu", "--verdict", "none", "--map", "orthogonal")
FAST = (*ALONE[: ALONE.index("--threads")], *ALONE[ALONE.index("--threads") + 2 :], "--workers", "1")
TITLE = "qwp align-many"


@pytest.fixture
def pairs(folder: Path, tmp_path: Path) -> Path:
    path = tmp_path / "pairs.tsv"
    names = (folder / "en.vec", folder / "es.vec")
    path.write_text(f"{names[0]}\t{names[1]}\n{names[1]}\t{names[0]}\tback\t{folder / 'es-en.txt'}\n")
    return path


def assert_same_result(first: Path, second: Path) -> None:
    """Compare two results of one problem. Another number of threads may round differently."""
    ours, theirs = Alignment.load(first), Alignment.load(second)
    np.testing.assert_allclose(ours.src_map, theirs.src_map, rtol=0, atol=rounding(np.float32, len(ours.src)))
    assert ours.quality.verdict == theirs.quality.verdict
    assert ours.src.sha256() == theirs.src.sha256()
    assert ours.tgt.sha256() == theirs.tgt.sha256()


def test_every_pair_is_aligned_once_and_equals_qwp_align(pairs: Path, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ran = qwp("align-many", pairs, "--out", out, *FAST)
    assert ran.code == 0, ran.err
    assert "0/2 pairs, 1 running, 0 failed" in ran.err
    assert [[cell.strip() for cell in line.split("│")][1:4] for line in ran.out.splitlines() if "unjudged" in line] == [
        ["en-es", "done", "unjudged"],
        ["back", "done", "unjudged"],
    ]
    again = qwp("align-many", pairs, "--out", out, *FAST, "--json")
    assert again.code == 0
    assert [each["status"] for each in again.json["pairs"]] == ["already there", "already there"]
    text = "\n".join([*section(CLI, "JSON"), *section(CLI, TITLE)])
    assert not [name for name in sorted(fields_of(again.json)) if f"`{name}`" not in text]
    assert json.loads((out / "pairs.json").read_text()) == again.json["pairs"]
    # `qwp align` recognises the result as its own.
    files = (folder / "en.vec", folder / "es.vec")
    alone = qwp("align", *files, "--out", tmp_path / "alone", *ALONE)
    assert alone.code == 0
    assert_same_result(tmp_path / "alone", out / "en-es")
    known = qwp("align", *files, "--out", out / "en-es", *ALONE, "--json")
    assert known.json["already_there"]
    assert Alignment.load(out / "back").provenance.config["start"] == "lexicon"


@pytest.mark.slow
def test_a_failed_pair_is_recorded_and_the_others_continue(pairs: Path, folder: Path, tmp_path: Path) -> None:
    (folder / "es-en.txt").write_text("no such\n")
    options = ("--out", tmp_path / "out", *FAST)
    ran = qwp("align-many", pairs, *options)
    assert ran.code == 3
    assert "back failed: InputError" in ran.err
    assert (tmp_path / "out" / "en-es" / "alignment.json").is_file()
    (folder / "es-en.txt").write_text("t1 s1\n" * 3 + "".join(f"t{i} s{i}\n" for i in range(40)))
    other = qwp("align-many", pairs, *options, "--seed", 5, "--json")
    assert other.code == 3
    first, second = other.json["pairs"]
    assert "holds the finished result of another run (seed was 0, now 5)" in first["error"]
    assert second["status"] == "done"
    forced = qwp("align-many", pairs, *options, "--seed", 5, "--force", "--json")
    assert [each["status"] for each in forced.json["pairs"]] == ["done", "done"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--engine", "spark"), "--engine spark is not known; expected one of local, ray"),
        (("--address", "auto"), "--address auto is that of a Ray cluster; expected --engine ray with it"),
        (("--start", "lexicon:x"), "--start lexicon:x: not of several pairs; expected lexicons in the fourth column"),
        (("--workers", "0"), "workers=0 is out of range"),
        (("--coreset-size", "0"), "coreset_size=0 is out of range"),
        (("--method", "procrustes", "--epochs", "3"), "--epochs is an option of"),
    ],
)
def test_mistakes_are_explained(options: tuple[str, ...], message: str, pairs: Path, tmp_path: Path) -> None:
    ran = qwp("align-many", pairs, "--out", tmp_path / "out", *options)
    assert ran.code == 2
    assert message in " ".join(ran.err.split())


def test_a_missing_file_is_reported_before_any_is_read(pairs: Path, folder: Path, tmp_path: Path) -> None:
    pairs.write_text(pairs.read_text() + f"{folder / 'en.vec'}\t{folder / 'none.vec'}\n")
    ran = qwp("align-many", pairs, "--out", tmp_path / "out")
    assert ran.code == 2
    assert "none.vec does not exist" in " ".join(ran.err.split())
    assert not (tmp_path / "out").exists()


def test_an_interrupt_reports_how_to_continue(pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(align_many.ListRun, "all", interrupted)
    ran = qwp("align-many", pairs, "--out", tmp_path / "out")
    assert ran.code == 130
    assert "interrupted: finished pairs are kept, the same command continues" in ran.err


@pytest.mark.slow
def test_warnings_of_workers_are_recorded_and_stay_out_of_the_table(
    pairs: Path, folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text = (folder / "en.vec").read_text()
    (folder / "en.vec").write_text("999" + text[text.index(" ") :])  # more words than the file has
    pairs.write_text(pairs.read_text().splitlines()[0])
    ran = qwp("align-many", pairs, "--out", tmp_path / "out", *FAST, "--json")
    assert ran.code == 0, ran.err
    [one] = ran.json["pairs"]
    assert any("999" in text for text in one["warnings"])
    assert "999" not in capfd.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")
def test_ray_gives_the_same_results(pairs: Path, tmp_path: Path) -> None:
    assert qwp("align-many", pairs, "--out", tmp_path / "local", *FAST).code == 0
    ran = qwp("align-many", pairs, "--out", tmp_path / "ray", *FAST, "--engine", "ray")
    assert ran.code == 0, ran.err
    for name in ("en-es", "back"):
        assert_same_result(tmp_path / "ray" / name, tmp_path / "local" / name)
