"""Kinds of maps: the flags, and commands on an alignment with two maps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qwp import Alignment, Lexicon, evaluate
from qwp.maps.procrustes import orthogonality_error
from qwp.spaces import io
from tests.cli.conftest import QUICK, Problem, qwp
from tests.libraries import assert_close
from tests.problems import Array

WORDS = 300
"""Number of words of the alignments here."""


@pytest.fixture(scope="session")
def orthogonal(problem: Problem, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Like `aligned`, with an orthogonal map. Tests must not change the folder."""
    out = tmp_path_factory.mktemp("orthogonal") / "dir"
    flags = ("--max-vocab", WORDS, "--map", "orthogonal", "--quiet")
    assert qwp("align", problem.src, problem.tgt, "--out", out, *QUICK, *flags).code == 0
    return out


@pytest.fixture(params=["reweighted", "orthogonal"])
def kind(request: pytest.FixtureRequest) -> str:
    """Return the kind of the final map."""
    return str(request.param)


@pytest.fixture
def folder(kind: str, aligned: Path, orthogonal: Path) -> Path:
    """Return an alignment with that kind of map."""
    return aligned if kind == "reweighted" else orthogonal


def maps_of(folder: Path) -> dict[str, Array]:
    """Return the maps of a saved alignment by name."""
    alignment = Alignment.load(folder)
    return {name: m for name in ("src_map", "tgt_map") if (m := getattr(alignment, name)) is not None}


def unit(rows: Array) -> Array:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def by_hand(folder: Path, problem: Problem, side: str) -> Array:
    """Map all words of a file by the definition: unit, centre, unit, map. Returns (n, d)."""
    rows = unit(io.load(problem.src if side == "src" else problem.tgt).vectors.astype(np.float64))
    rows = unit(rows - rows[:WORDS].mean(axis=0))
    maps = maps_of(folder)
    return np.asarray(rows @ maps[f"{side}_map"] if f"{side}_map" in maps else rows)


def csls(src: Array, tgt: Array, k: int = 10) -> Array:
    """Return the CSLS of all pairs of unit rows by the definition, (n, m)."""
    cosines = src @ tgt.T
    r_src = np.sort(cosines, axis=1)[:, -k:].mean(axis=1)
    r_tgt = np.sort(cosines, axis=0)[-k:].mean(axis=0)
    return np.asarray(2 * cosines - r_src[:, None] - r_tgt)


def scores(folder: Path, problem: Problem) -> Array:
    """Return the CSLS of all words of an alignment, (n, m)."""
    src, tgt = (unit(by_hand(folder, problem, side)[:WORDS]) for side in ("src", "tgt"))
    return csls(src, tgt)


# --------------------------------------------------------------------------- the flags


def test_the_default_maps_both_sides_and_neither_map_is_orthogonal(aligned: Path) -> None:
    maps = maps_of(aligned)
    for name in ("src_map", "tgt_map"):
        assert maps[name].shape == (24, 24)
        assert np.linalg.matrix_rank(maps[name]) == 24
        assert orthogonality_error(maps[name]) > 0.1


def test_an_orthogonal_map_leaves_the_target_space_as_it_is(problem: Problem, orthogonal: Path, tmp_path: Path) -> None:
    maps = maps_of(orthogonal)
    assert "tgt_map" not in maps
    assert orthogonality_error(maps["src_map"]) < 1e-5
    assert qwp("export", orthogonal, "--tgt-out", tmp_path / "t.npz", "--saved").code == 0
    rows = unit(io.load(problem.tgt).vectors[:WORDS].astype(np.float64))
    assert_close(io.load(tmp_path / "t.npz").vectors, unit(rows - rows.mean(axis=0)), atol=1e-6)


@pytest.mark.slow
def test_an_orthogonal_result_over_a_two_sided_one_leaves_no_target_map(problem: Problem, tmp_path: Path) -> None:
    args = ["align", problem.src, problem.tgt, "--out", tmp_path, *QUICK, "-q"]
    assert qwp(*args).code == 0
    assert "tgt_map" in maps_of(tmp_path)
    assert qwp(*args, "--map", "orthogonal", "--force").code == 0
    assert "tgt_map" not in maps_of(tmp_path)


@pytest.mark.slow
def test_the_kind_may_come_from_the_config_file_and_flags_win(problem: Problem, tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text('map = "orthogonal"\nrefine-weights = "equal"\nrefine_first_words = 200\ndewhiten = 1\n')
    args = ["align", problem.src, problem.tgt, *QUICK, "--config", path, "--json", "--out"]
    config = qwp(*args, tmp_path / "a").json["provenance"]["config"]
    assert (config["map"], config["refine_weights"], config["dewhiten"]) == ("orthogonal", "equal", 1.0)
    assert "tgt_map" not in maps_of(tmp_path / "a")
    config = qwp(*args, tmp_path / "b", "--map", "reweighted").json["provenance"]["config"]
    assert (config["map"], config["refine_first_words"]) == ("reweighted", 200)
    assert "tgt_map" in maps_of(tmp_path / "b")


def run(problem: Problem, out: Path, *flags: object) -> tuple[dict[str, Array], list[dict[str, Any]]]:
    """Return the arrays and refinement records of a run from a lexicon, which every setting solves."""
    start = ("--lexicon", problem.lexicon, "--start", "lexicon")
    ran = qwp("align", problem.src, problem.tgt, "--out", out, *QUICK, *start, *flags, "-q", "--force")
    assert ran.code == 0, ran.err
    return maps_of(out), [record for record in Alignment.load(out).history if record["stage"] == "refine"]


@pytest.fixture(scope="session")
def plain(problem: Problem, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Array]:
    """The maps of such a run without flags."""
    return run(problem, tmp_path_factory.mktemp("plain"))[0]


@pytest.mark.slow
def test_the_words_of_the_rounds_grow_from_the_first_to_all(problem: Problem, tmp_path: Path) -> None:
    _, rounds = run(problem, tmp_path, "--refine-first-words", 100)
    assert [record["n_words"] for record in rounds] == [100, 200, 400]
    _, rounds = run(problem, tmp_path, "--refine-first-words", 100, "--refine-words", 225)
    assert [record["n_words"] for record in rounds] == [100, 150, 225]
    _, rounds = run(problem, tmp_path, "--refine-first-words", 0)
    assert [record["n_words"] for record in rounds] == [400, 400, 400]


def test_no_reweighting_and_no_dewhitening_rotate_each_side(problem: Problem, tmp_path: Path) -> None:
    maps, _ = run(problem, tmp_path, "--reweight", 0, "--dewhiten", 1)
    for name in ("src_map", "tgt_map"):
        assert orthogonality_error(maps[name]) < 1e-4


def test_without_dewhitening_the_pairs_stay_white_up_to_the_weights(problem: Problem, tmp_path: Path) -> None:
    # All pairs are found with equal weights, so the mapped words of each side have the identity as covariance.
    flags = ("--reweight", 0, "--dewhiten", 0, "--refine-weights", "equal")
    maps, rounds = run(problem, tmp_path, *flags)
    assert rounds[-1]["n_pairs"] == 400
    for side, path in (("src", problem.src), ("tgt", problem.tgt)):
        rows = unit(io.load(path).vectors.astype(np.float64))
        rows = unit(rows - rows.mean(axis=0)) @ maps[f"{side}_map"]
        covariance = rows.T @ rows
        assert_close(covariance / covariance[0, 0], np.eye(24), atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "flags", [("--refine-weights", "equal"), ("--reweight", 0.5), ("--dewhiten", 0.25), ("--refine-map", "orthogonal")]
)
def test_every_flag_changes_the_map_and_keeps_it_good(
    problem: Problem, plain: dict[str, Array], tmp_path: Path, flags: tuple[object, ...]
) -> None:
    changed, _ = run(problem, tmp_path / "a", *flags)
    assert not np.allclose(changed["src_map"], plain["src_map"], rtol=1e-3)
    found = evaluate(Alignment.load(tmp_path / "a"), Lexicon.load(problem.lexicon), bootstrap=0)
    assert found.scores["csls"].covered["P@1"].value > 0.95


@pytest.mark.slow
@pytest.mark.parametrize("method", ["procrustes", "identical"])
def test_other_methods_may_map_both_sides(problem: Problem, tmp_path: Path, method: str) -> None:
    tgt, seeds = (problem.src, []) if method == "identical" else (problem.tgt, ["--lexicon", problem.lexicon])
    args = ["align", problem.src, tgt, "--method", method, *seeds, "--refine", 2, "--threads", 1, "-q"]
    assert qwp(*args, "--out", tmp_path / "one").code == 0
    assert qwp(*args, "--out", tmp_path / "two", "--map", "reweighted").code == 0
    assert "tgt_map" not in maps_of(tmp_path / "one")
    assert "tgt_map" in maps_of(tmp_path / "two")


# --------------------------------------------------------------------------- the commands that read it


def test_export_writes_both_sides_in_the_common_space(folder: Path, problem: Problem, tmp_path: Path) -> None:
    ran = qwp("export", folder, "--src-out", tmp_path / "s.npz", "--tgt-out", tmp_path / "t.npz", "--json")
    assert ran.code == 0
    for side, name in (("src", "s.npz"), ("tgt", "t.npz")):
        written = io.load(tmp_path / name).vectors
        assert written.shape == (400, 24)
        assert_close(written, by_hand(folder, problem, side), atol=2e-6)


def test_exported_files_score_as_the_alignment_does(folder: Path, problem: Problem, tmp_path: Path) -> None:
    src, tgt = tmp_path / "s.npz", tmp_path / "t.npz"
    assert qwp("export", folder, "--src-out", src, "--tgt-out", tgt, "--saved").code == 0
    args = ["--lexicon", problem.lexicon, "--bootstrap", 0, "--json"]
    files = qwp("evaluate", "--src", src, "--tgt", tgt, *args).json["scores"]
    direct = qwp("evaluate", folder, *args).json["scores"]
    for method in ("nn", "csls"):
        for name, score in direct[method]["covered"].items():
            assert files[method]["covered"][name]["value"] == pytest.approx(score["value"], abs=0.005)


@pytest.mark.parametrize("reverse", [False, True])
def test_translations_and_their_scores(folder: Path, problem: Problem, reverse: bool) -> None:
    expected = scores(folder, problem)
    expected = expected.T if reverse else expected
    of, to = ("t", "s") if reverse else ("s", "t")
    ran = qwp("translate", folder, *(f"{of}{i}" for i in range(20)), "--json", *(["--reverse"] if reverse else []))
    for i in range(20):
        found = ran.json["translations"][f"{of}{i}"]
        # Words with equal scores up to float32 rounding may swap ranks.
        assert_close([each["score"] for each in found], np.sort(expected[i])[::-1][:5], atol=1e-5)
        for each in found:
            assert each["score"] == pytest.approx(expected[i, int(each["word"].removeprefix(to))], abs=1e-5)


def test_the_lexicon_uses_both_maps(folder: Path, problem: Problem, tmp_path: Path) -> None:
    expected = scores(folder, problem)
    forward, backward = expected.argmax(axis=1), expected.argmax(axis=0)
    mutual = [(f"s{i}", f"t{j}") for i, j in enumerate(forward) if backward[j] == i]
    ran = qwp("lexicon", folder, "--out", tmp_path / "l.tsv", "--json")
    assert ran.json["mutual"] == len(mutual)
    rows = [line.split("\t") for line in (tmp_path / "l.tsv").read_text().splitlines()[1:]]
    assert [(row[0], row[1]) for row in rows] == mutual
    found = [float(row[2]) for row in rows]
    assert_close(found, [expected[int(s[1:]), int(t[1:])] for s, t in mutual], atol=1e-5)


def test_the_evaluation_uses_both_maps(folder: Path, problem: Problem) -> None:
    ran = qwp("evaluate", folder, "--lexicon", problem.lexicon, "--bootstrap", 0, "--json")
    src, tgt = (unit(by_hand(folder, problem, side)[:WORDS]) for side in ("src", "tgt"))
    for method, table in (("nn", src @ tgt.T), ("csls", csls(src, tgt))):
        right = np.mean(table.argmax(axis=1) == np.arange(WORDS))
        assert ran.json["scores"][method]["covered"]["P@1"]["value"] == pytest.approx(right)


def test_info_shows_the_kind_of_map(folder: Path, kind: str) -> None:
    assert qwp("info", folder, "--json").json["provenance"]["config"]["map"] == kind
    lines = qwp("info", folder, "--format", "table").out.splitlines()
    assert [line.split() for line in lines if line.startswith("map ")] == [["map", kind]]
    if kind == "reweighted":
        assert "orthogonal" not in " ".join(lines)


def test_the_printed_figures_use_both_maps(folder: Path, problem: Problem) -> None:
    quality = qwp("info", folder, "--json").json["quality"]
    expected = scores(folder, problem)
    forward, backward = expected.argmax(axis=1), expected.argmax(axis=0)
    mutual = np.flatnonzero(backward[forward] == np.arange(WORDS))
    assert quality["n_words"] == WORDS
    assert quality["fitted"]["pairs"] == len(mutual)
    assert quality["fitted"]["mean_csls"] == pytest.approx(expected[mutual, forward[mutual]].mean(), abs=1e-4)
