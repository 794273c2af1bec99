"""`qwp align` with more than two files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from qwp.maps.procrustes import orthogonality_error
from qwp.results.several import MultiAlignment
from qwp.spaces import io
from qwp.spaces.embeddings import Embeddings
from tests.cli.conftest import QUICK, Problem, interrupted_at, leftovers, qwp, write
from tests.cli.test_align import maps
from tests.problems import planted, rotation

pytestmark = pytest.mark.slow

Files = tuple[Path, Path, Path]


@pytest.fixture(scope="module")
def files(problem: Problem, tmp_path_factory: pytest.TempPathFactory) -> Files:
    """Write source, target (the hub), and a third language: the rotated source with words f<i>."""
    made = planted(400, d=24, noise=0.1, seed=1)
    third = write(tmp_path_factory.mktemp("third") / "third.vec", "f", made.src @ rotation(24, 7))
    return problem.src, problem.tgt, third


@pytest.fixture(scope="module")
def several(files: Files, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a finished run. Tests must not change it."""
    out = tmp_path_factory.mktemp("several")
    ran = qwp("align", *files, "--method", "multi", "--out", out, *QUICK, "-q")
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    return out


def test_all_languages_are_in_the_space_of_the_second(several: Path) -> None:
    found = MultiAlignment.load(several)
    assert (found.hub, found.names) == ("tgt", ("src", "third", "tgt"))
    for name, letter in (("src", "s"), ("third", "f")):
        assert len(list((several / name).glob("lookup-*"))) == 2  # translation is quick
        ran = qwp("translate", several / name, *(f"{letter}{i}" for i in range(50)), "--json")
        best = [candidates[0]["word"] for candidates in ran.json["translations"].values()]
        assert np.mean([word == f"t{i}" for i, word in enumerate(best)]) > 0.95
    between = found.pair("src", "third").translate([f"s{i}" for i in range(50)], k=1)
    assert np.mean([between[f"s{i}"][0].word == f"f{i}" for i in range(50)]) > 0.95


def test_the_hub_keeps_its_space(several: Path) -> None:
    for name in ("src", "third"):
        found = MultiAlignment.load(several).alignments[name]
        assert found.tgt_map is None
        assert orthogonality_error(found.src_map) < 1e-4
        assert found.provenance.config["map"] == "orthogonal"


def test_the_table_has_a_row_for_each_language(files: Files, tmp_path: Path) -> None:
    ran = qwp("align", *files, "--method", "multi", "--out", tmp_path, *QUICK, "--profile")
    assert ran.code == 0
    lines = ran.out.splitlines()
    for name in ("src", "third"):
        [line] = [line for line in lines if line.startswith(f"│ {name} ")]
        assert "│ succeeded │" in line
    for expected in ("Aligned onto tgt", "400 src, 400 third, 400 tgt", f"qwp translate {tmp_path / 'src'} s"):
        assert expected in ran.out
    assert "refine" in ran.out.split("Profile")[1]
    for path in files:
        assert f"reading {path}" in ran.err
    # Three pairs of languages with three rounds each.
    for done in range(1, 10):
        assert ran.err.count(f"refinement {done}/9") == 1


@pytest.mark.usefixtures("short_trials")
def test_json_and_code_3_if_one_language_failed(files: Files, problem: Problem, tmp_path: Path) -> None:
    ran = qwp("align", *files[:2], problem.noise, "--method", "multi", "--out", tmp_path, *QUICK, "--json")
    assert ran.code == 3
    assert (ran.json["hub"], ran.json["verdict"], ran.json["warnings"]) == ("tgt", "failed", [])
    assert [(each["name"], each["verdict"]) for each in ran.json["languages"]] == [
        ("src", "succeeded"),
        ("noise", "failed"),
    ]
    for each in ran.json["languages"]:
        about = qwp("info", each["out"], "--json").json
        assert (each["quality"], each["provenance"]) == (about["quality"], about["provenance"])
    assert ran.json["seconds"] == pytest.approx(sum(each["seconds"] for each in ran.json["languages"]))
    assert "noise: Failed: " in ran.err
    assert "src: Failed" not in ran.err


def test_too_few_words_are_undecided(files: Files, tmp_path: Path) -> None:
    ran = qwp("align", *files, "--method", "multi", "--out", tmp_path, *QUICK, "--max-vocab", 100, "--json")
    assert (ran.code, ran.json["verdict"]) == (0, "undecided")
    assert "src: Undecided: " in ran.err
    assert "third: Undecided: " in ran.err


@pytest.mark.parametrize("stop", [("loop", 5), ("loop", 16), ("refine", 2)])
def test_interrupted_and_resumed(files: Files, several: Path, tmp_path: Path, stop: tuple[str, int]) -> None:
    args = ["align", *files, "--method", "multi", "--out", tmp_path, *QUICK]
    with interrupted_at(*stop):
        ran = qwp(*args)
    assert (ran.code, ran.out) == (130, "")
    assert leftovers(tmp_path) == []
    assert not (tmp_path / "multi.json").exists()
    assert qwp(*args, "--resume").code == 0
    for name in ("src", "third"):
        assert maps(tmp_path / name) == maps(several / name)
    assert not (tmp_path / "checkpoint.safetensors").exists()


def test_resuming_a_finished_run_reports_it(files: Files, several: Path, problem: Problem, tmp_path: Path) -> None:
    args = ["align", *files, "--method", "multi", "--out", several, *QUICK, "--resume"]
    ran = qwp(*args)
    assert ran.code == 0
    assert f"The alignments already exist in {several}: nothing was computed" in ran.out
    assert [each["name"] for each in qwp(*args, "--json").json["languages"]] == ["src", "third"]
    other = qwp(*args, "--seed", 8)
    assert other.code == 2
    assert "seed was 0, now 8" in other.err
    for paths, message in (
        ((files[1], files[0], files[2]), "hub was 'tgt', now 'src'"),
        ((files[2], files[1], files[0]), "the languages were src, third, tgt, now they are third, src, tgt"),
    ):
        turned = qwp("align", *paths, *args[4:])
        assert turned.code == 2
        assert message in turned.err
    # Another file of the same name is another run.
    (tmp_path / "third.vec").write_bytes(problem.noise.read_bytes())
    changed = qwp("align", *files[:2], tmp_path / "third.vec", *args[4:])
    assert changed.code == 2
    assert "it had another input for third: sha256 " in changed.err
    missing = qwp("align", *files[:2], tmp_path / "none" / "third.vec", *args[4:])
    assert missing.code == 2
    assert "third.vec does not exist" in missing.err


def test_a_folder_holds_either_a_pair_or_several(files: Files, tmp_path: Path) -> None:
    pair = ["align", *files[:2], "--out", tmp_path, *QUICK, "-q"]
    assert qwp(*pair).code == 0
    several = ["align", *files, "--method", "multi", "--out", tmp_path, *QUICK, "-q"]
    refused = qwp(*several)
    assert refused.code == 2
    assert "method was 'qwp', now 'multi'" in refused.err
    assert qwp(*several, "--force").code == 0
    for command in (["translate", tmp_path, "s1"], ["info", tmp_path]):
        ran = qwp(*command)
        assert ran.code == 2
        assert f"name one of {tmp_path / 'src'}, {tmp_path / 'third'}" in ran.err
    refused = qwp(*pair, "--method", "multi")
    assert refused.code == 2
    assert "hub was 'tgt', now None" in refused.err
    assert qwp(*pair, "--force").code == 0
    assert qwp("translate", tmp_path, "s1").code == 0


def test_two_files_with_this_method_make_an_ordinary_alignment(files: Files, tmp_path: Path) -> None:
    ran = qwp("align", *files[:2], "--method", "multi", "--out", tmp_path, *QUICK, "--json")
    assert (ran.code, ran.json["provenance"]["method"]) == (0, "multi")
    assert qwp("translate", tmp_path, "s1").code == 0


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "3 vector files were given, but method qwp aligns two: add --method multi, or leave out"),
        (["--method", "multi", "--lexicon", "gold.txt"], "serves two languages, 3 vector files were given"),
        (["--method", "multi", "--strategy", "x"], "strategy='x' is not known; expected one of joint, hub"),
        (["--method", "multi", "--map", "reweighted"], "several languages share one space by orthogonal maps only"),
    ],
)
def test_bad_input_is_explained_before_reading(
    files: Files, problem: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: list[str], message: str
) -> None:
    monkeypatch.chdir(problem.folder)
    ran = qwp("align", *files, "--out", tmp_path / "d", *args)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert "reading" not in ran.err
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize("name", ["con", "a:b", "parts-x", "a\x07b", "x" * 210])
def test_languages_need_names_that_folders_can_have(files: Files, tmp_path: Path, name: str) -> None:
    ran = qwp("align", *files[:2], f"{name}.vec", "--method", "multi", "--out", tmp_path / "d")
    assert ran.code == 2
    assert "cannot name a language" in ran.err
    assert "reading" not in ran.err


def test_a_failed_save_keeps_the_older_result(files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    args = ["align", *files, "--method", "multi", "--out", tmp_path, *QUICK]
    assert qwp(*args, "-q", "--seed", 6).code == 0
    older = {name: maps(tmp_path / name) for name in ("src", "third")}
    save, saved = io.save, []

    def full_at_the_last(space: Embeddings, path: Path) -> None:
        saved.append(path)
        if len(saved) == 4:
            raise OSError(28, "No space left on device")
        save(space, path)

    with monkeypatch.context() as patch:
        patch.setattr(io, "save", full_at_the_last)
        ran = qwp(*args, "--force")
    assert ran.code == 2
    assert "could not be saved" in ran.err
    assert {name: maps(tmp_path / name) for name in ("src", "third")} == older
    assert MultiAlignment.load(tmp_path).identity().seed == 6
    assert leftovers(tmp_path) == []
    assert qwp(*args, "--resume").code == 0
    assert MultiAlignment.load(tmp_path).identity().seed == 0


def test_languages_need_names_of_their_own(files: Files, tmp_path: Path) -> None:
    ran = qwp("align", *files, tmp_path / "third.vec.gz", "--method", "multi", "--out", tmp_path / "d")
    assert ran.code == 2
    assert "is not the only file named 'third'" in ran.err


def test_maps_alone_may_be_saved(files: Files, several: Path, tmp_path: Path) -> None:
    args = ["align", *files, "--method", "multi", "--out", tmp_path, *QUICK, "-q", "--save", "map"]
    assert qwp(*args).code == 0
    kept = [path.name for path in tmp_path.rglob("*.safetensors")]
    assert kept == ["maps.safetensors"] * 2
    found, whole = MultiAlignment.load(tmp_path), MultiAlignment.load(several)
    assert found.alignments["src"].translate("s1") == whole.alignments["src"].translate("s1")
    assert found.pair("src", "third").quality.verdict == whole.pair("src", "third").quality.verdict
    assert qwp(*args).code == 0
