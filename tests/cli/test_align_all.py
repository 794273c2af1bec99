"""`qwp align-all`: a folder for each pair, a matrix of languages, a joint space, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import qwp as library
from qwp import AllPairs
from qwp.cli import align_all
from qwp.spaces import io
from tests.cli.conftest import QUICK, InterruptedProgress, Problem, leftovers, qwp, write
from tests.problems import planted, rotation

FLAGS = QUICK


@pytest.fixture(scope="module")
def files(problem: Problem, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """Write source, target, and a third language: the rotated source with words f<i>."""
    made = planted(400, d=24, noise=0.1, seed=1)
    folder = tmp_path_factory.mktemp("languages")
    third = write(folder / "third.vec", "f", made.src @ rotation(24, 7))
    return problem.src, problem.tgt, third


@pytest.fixture(scope="module")
def out(files: tuple[Path, Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a finished run. Tests must not change it."""
    folder = tmp_path_factory.mktemp("all") / "out"
    ran = qwp("align-all", *files, "--out", folder, *FLAGS, "--joint-out", folder.parent / "joint")
    assert ran.code == 0, ran.err
    # Not a terminal: TSV.
    head, *lines = [line.split("\t") for line in ran.out.splitlines()]
    assert head == ["src", "tgt", "verdict", "estimate", "ratio", "via", "seconds"]
    assert [line[:3] for line in lines] == [
        ["src", "tgt", "succeeded"],
        ["src", "third", "succeeded"],
        ["tgt", "third", "succeeded"],
    ]
    assert "tgt-third (pair 3 of 3): succeeded" in ran.err
    return folder


def test_each_pair_has_a_folder_that_all_commands_take(out: Path) -> None:
    found = AllPairs.load(out)
    assert found.names == ("src", "tgt", "third")
    ran = qwp("translate", out / "src-third", *(f"s{i}" for i in range(50)), "--json")
    best = [candidates[0]["word"] for candidates in ran.json["translations"].values()]
    assert np.mean([word == f"f{i}" for i, word in enumerate(best)]) > 0.95
    ran = qwp("translate", out, "s1")
    assert ran.code == 2
    assert f"{out} holds several alignments: name one of {out / 'src-tgt'}, " in ran.err


def test_the_joint_space_has_a_file_for_each_language(out: Path) -> None:
    joint = out.parent / "joint"
    spaces = {name: io.load(joint / f"{name}.vec") for name in ("src", "tgt", "third")}
    assert leftovers(joint) == []
    src, third = (spaces[name].vectors for name in ("src", "third"))
    best = (src @ third.T).argmax(axis=1)
    assert np.mean(best == np.arange(len(src))) > 0.95


def test_a_finished_run_is_not_repeated_and_json_has_the_matrix(
    out: Path, files: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library.QWP, "fit", None)
    ran = qwp("align-all", *files, "--out", out, *FLAGS, "--json")
    assert ran.code == 0, ran.err
    assert (ran.json["languages"], ran.json["verdict"], ran.json["joint"]) == (
        ["src", "tgt", "third"],
        "succeeded",
        None,
    )
    assert [pair["out"] for pair in ran.json["pairs"]] == [str(out / f) for f in ("src-tgt", "src-third", "tgt-third")]
    assert {"verdict", "estimate", "ratio", "via", "seconds", "explanation"} < set(ran.json["pairs"][0])


def test_the_matrix_on_a_terminal(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    align_all.show(AllPairs.load(out), align_all.AllOuts(out=out))
    text = capsys.readouterr().out
    assert "Estimated accuracy" in text
    assert "third" in text
    assert "3, 0 failed" in text
    assert f"qwp report {out} --out languages.html" in text


def test_the_report_has_a_heat_map(out: Path, tmp_path: Path) -> None:
    page = tmp_path / "languages.html"
    ran = qwp("report", out, "--out", page)
    assert ran.code == 0, ran.err
    text = page.read_text("utf-8")
    assert 'class="heat"' in text
    assert "3 of 3 pairs succeeded." in text
    ran = qwp("report", out, "--out", page, "--lexicon", page)
    assert (ran.code, "takes no --lexicon" in ran.err) == (2, True)


def test_an_interrupted_run_continues(
    files: tuple[Path, Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    args = ("align-all", *files, "--out", tmp_path, *FLAGS, "--verdict", "none")
    with monkeypatch.context() as patched:
        patched.setattr(align_all, "AlignProgress", InterruptedProgress)
        patched.setattr(InterruptedProgress, "at", ("refine", 2))
        ran = qwp(*args)
    assert ran.code == 130
    assert "finished pairs are kept; give the same command again to continue" in ran.err
    assert not (tmp_path / "all-pairs.json").exists()
    assert qwp(*args, "--quiet").code == 0
    assert (tmp_path / "all-pairs.json").exists()
    assert leftovers(tmp_path) == []
    ran = qwp(*args, "--seed", 4)
    assert ran.code == 2
    assert "holds the result of another run (seed was 0, now 4): give --force" in ran.err


def test_a_failed_pair_gives_exit_code_3(problem: Problem, tmp_path: Path) -> None:
    ran = qwp("align-all", problem.src, problem.noise, "--out", tmp_path, *FLAGS, "--quiet")
    assert ran.code == 3
    assert ran.err == f"error: 1 of 1 pairs failed: noise-src; `qwp info {tmp_path / 'noise-src'}` shows why\n"
    # The command that the message names shows the reasons.
    assert "Failed: " in qwp("info", tmp_path / "noise-src").out


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["{src}"], "1 languages were given; expected at least two"),
        (["{src}", "{src}"], "is not the only file named 'src'"),
        (["{src}", "missing.vec"], "missing.vec"),
        (["{src}", "{tgt}", "--hub", "src"], "--hub src expects --joint-out FOLDER"),
        (["{src}", "{tgt}", "--joint-out", "{folder}"], "would replace the vectors"),
        (["{src}", "{tgt}", "--start", "lexicon:x"], "--start lexicon:x: not of several pairs; leave it out"),
        (["{src}", "{tgt}", "--method", "procrustes"], "needs a seed lexicon"),
    ],
)
def test_bad_input_is_explained(problem: Problem, tmp_path: Path, args: list[str], message: str) -> None:
    named = {"src": problem.src, "tgt": problem.tgt, "folder": problem.src.parent}
    ran = qwp("align-all", *(arg.format(**named) for arg in args), "--out", tmp_path / "d")
    assert ran.code == 2
    assert message in ran.err
    assert not (tmp_path / "d").exists()
