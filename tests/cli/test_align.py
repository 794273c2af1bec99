from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qwp import QWP, Alignment, Embeddings
from qwp.cli.align import source_fingerprint
from qwp.cli.process import Terminated
from qwp.methods import METHODS
from qwp.methods.settings import OPTIONAL, REQUIRED
from qwp.spaces import io
from qwp.version import __version__
from tests.cli.conftest import QUICK, SEARCHED, Problem, interrupted_at, leftovers, qwp, write
from tests.problems import planted

pytestmark = pytest.mark.slow

OLDER = Path(__file__).parents[1] / "data" / "saved-0.1"


def maps(folder: Path) -> bytes:
    """Return the bytes of the maps, means and orders of a saved alignment."""
    [path] = folder.glob("parts-*/maps.safetensors")
    return path.read_bytes()


def history(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / "alignment.json").read_text())["history"]
    return found


# --------------------------------------------------------------------------- a run


def test_a_run_prints_the_verdict_and_the_next_commands(problem: Problem, tmp_path: Path) -> None:
    out = tmp_path / "new" / "dir"
    ran = qwp("align", problem.src, problem.tgt, "--out", out, *SEARCHED)
    assert ran.code == 0
    assert "Succeeded: " in ran.out
    for expected in (
        "estimated accuracy  ",
        f"saved in            {out}",
        "qwp evaluate",
        "qwp export",
        "mutual pairs",
    ):
        assert expected in ran.out
    assert re.search(rf"  qwp translate {re.escape(str(out))} s\d\d\d s\d\d\d s\d\d\d\n", ran.out)
    for expected in ("initialization 10/", "epoch 3 (step 24/24): coreset size 100", "refinement 3/3"):
        assert expected in ran.err
    assert not (out / "checkpoint.safetensors").exists()
    alignment = Alignment.load(out)
    found = alignment.translate([f"s{i}" for i in range(400)], k=1)
    assert np.mean([found[f"s{i}"][0].word == f"t{i}" for i in range(400)]) > 0.95


def test_json_is_the_only_output_on_stdout(problem: Problem, tmp_path: Path) -> None:
    ran = qwp("align", problem.src, problem.tgt, "--out", tmp_path / "d", *QUICK, "--json", "--seed", 4)
    assert ran.code == 0
    assert ran.json["verdict"] == "succeeded"
    assert ran.json["provenance"]["seed"] == 4
    assert ran.json["provenance"]["src"]["n_words"] == 400
    assert ran.json["warnings"] == []
    assert "epoch 1" in ran.err


def test_a_bridge_is_reported_and_belongs_to_the_run(problem: Problem, tmp_path: Path) -> None:
    bridge, out = tmp_path / "third.vec", tmp_path / "d"
    src = io.load(problem.src)
    write(bridge, "b", src.vectors)
    command = ("align", problem.src, problem.tgt, "--via", bridge, "--out", out, *QUICK)
    ran = qwp(*command)
    assert ran.code == 0
    assert re.search(r"bridge third +source succeeded \(\d+ %\), target succeeded \(\d+ %\); \d+ joined pairs", ran.out)
    assert "bridges 2/2: leg " in ran.err
    again = qwp(*command, "--json").json
    assert again["already_there"]
    assert [each["src"]["verdict"] for each in again["provenance"]["bridges"]] == ["succeeded"]
    # A run without the bridge is another run.
    other = qwp("align", problem.src, problem.tgt, "--out", out, *QUICK)
    assert other.code == 2
    assert "the languages were src, tgt, via 1, now they are src, tgt" in other.err


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--via", "missing.vec"), "missing.vec"),
        (("--via", "{src}", "--lexicon", "{lexicon}"), "a bridge and a lexicon were given"),
        (("--via", "{src}", "--method", "gromov"), "does not start from pairs"),
        (("{tgt}",), "3 vector files were given; expected two. `qwp align-all"),
    ],
)
def test_a_bridge_that_cannot_be_used_is_refused(
    flags: tuple[str, ...], expected: str, problem: Problem, tmp_path: Path
) -> None:
    lexicon = tmp_path / "seeds.txt"
    lexicon.write_text("s1 t1\n")
    names = {"src": problem.src, "tgt": problem.tgt, "lexicon": lexicon}
    ran = qwp("align", problem.src, problem.tgt, *(f.format(**names) for f in flags), "--out", tmp_path / "d")
    assert ran.code == 2
    assert expected in ran.err
    assert not (tmp_path / "d").exists()


def test_the_profile_shows_time_and_share_of_every_stage(problem: Problem, tmp_path: Path) -> None:
    stages = ["read", "prepare", "initialize", "coresets", "loop", "refine", "verdict", "save"]
    ran = qwp("align", problem.src, problem.tgt, "--out", tmp_path, *QUICK, "--profile", "--json", "--device", "cpu")
    assert ran.code == 0
    assert [row["stage"] for row in ran.json["profile"]] == stages
    assert sum(row["share"] for row in ran.json["profile"]) == pytest.approx(1.0)
    seconds = {row["stage"]: row["seconds"] for row in ran.json["profile"]}
    assert min(seconds.values()) >= 0.0
    assert {k: seconds[k] for k in stages[1:-1]} == ran.json["provenance"]["seconds"]
    again = ["--profile", "--device", "cpu", "--force"]
    shown = qwp("align", problem.src, problem.tgt, "--out", tmp_path, *QUICK, *again).out
    assert "Profile (numpy)" in shown
    for stage in stages:
        assert stage in shown.split("Profile")[1]


def test_the_profile_is_optional(problem: Problem, tmp_path: Path) -> None:
    ran = qwp("align", problem.src, problem.tgt, "--out", tmp_path, *QUICK, "--json")
    assert "profile" not in ran.json


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--device", "tpu"), "expected auto, cpu, cuda"),
        (("--device", "cuda", "--backend", "numpy"), "leave one of them out"),
        (("--backend", "jax"), "expected one of auto, numpy, torch"),
        (("--max-memory", "0"), "max_memory=0.0 is out of range"),
    ],
)
def test_unknown_devices_are_refused(flags: tuple[str, ...], expected: str, problem: Problem, tmp_path: Path) -> None:
    ran = qwp("align", problem.src, problem.tgt, "--out", tmp_path / "d", *QUICK, *flags)
    assert ran.code == 2
    assert expected in ran.err
    assert not (tmp_path / "d" / "alignment.json").exists()


def test_quiet_is_quiet(problem: Problem, tmp_path: Path) -> None:
    ran = qwp("align", problem.src, problem.tgt, "--out", tmp_path, *QUICK, "--quiet")
    assert (ran.code, ran.out, ran.err) == (0, "", "")


@pytest.mark.usefixtures("short_trials")
def test_an_alignment_of_noise_is_saved_and_exits_with_code_3(problem: Problem, tmp_path: Path) -> None:
    ran = qwp("align", problem.src, problem.noise, "--out", tmp_path, *QUICK)
    assert ran.code == 3
    assert "Failed: " in ran.out
    assert "failed" in ran.err
    assert Alignment.load(tmp_path).quality.failed
    quiet = qwp("align", problem.src, problem.noise, "--out", tmp_path, *QUICK, "--quiet")
    assert quiet.code == 3
    assert quiet.out == ""
    assert "Failed: " in quiet.err
    as_json = qwp("align", problem.src, problem.noise, "--out", tmp_path, *QUICK, "--json")
    assert (as_json.code, as_json.json["verdict"]) == (3, "failed")
    translated = qwp("translate", tmp_path, "s1")
    assert translated.code == 0
    assert "do not trust its translations" in translated.err


def test_too_few_words_are_undecided_and_exit_with_code_0(problem: Problem, tmp_path: Path) -> None:
    ran = qwp("align", problem.src, problem.tgt, "--out", tmp_path, *QUICK, "--max-vocab", 100)
    assert ran.code == 0
    assert "Undecided: 100 words are too few" in ran.out
    assert "warning: " in ran.err


def test_flags_of_other_tools(problem: Problem, tmp_path: Path) -> None:
    older = [
        "--nmax=250",
        "--n_refinement",
        "2",
        "--reg",
        "0.06",
        "--csls=7",
        "--dico_max_rank",
        "200",
        "--bsz=80",
    ]
    older += ["--nepoch", "2", "--niter=5", "--train_words", "240", "--start_words", "200"]
    ran = qwp("align", problem.src, problem.tgt, "--out", tmp_path, *older, "--json")
    config = ran.json["provenance"]["config"]
    expected = {"refine": 2, "epsilon": 0.06, "csls_k": 7, "refine_words": 200, "coreset_size": 80}
    expected |= {"epochs": 2, "steps": 5, "train_words": 240, "start_words": 200}
    assert {name: config[name] for name in expected} == expected
    assert ran.json["provenance"]["src"]["n_words"] == 250


def test_defaults_then_config_then_flags(problem: Problem, tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text(
        'coreset-size = 90\nepochs = 2\nsteps = 4\nmethod = "wp"\nmax-vocab = 260\n'
        "seed = 9\nstart_words = 200\nbank_size = 4\n"
    )
    ran = qwp("align", problem.src, problem.tgt, "--out", tmp_path / "d", "--config", path, "--epochs", 1, "--json")
    provenance = ran.json["provenance"]
    assert (provenance["method"], provenance["seed"], provenance["src"]["n_words"]) == ("wp", 9, 260)
    config = provenance["config"]
    assert (config["coreset_size"], config["epochs"], config["steps"], config["coreset"]) == (
        90,
        1,
        4,
        "random",
    )
    assert config["start_steps"] == QWP().start_steps
    ran = qwp(
        "align",
        problem.src,
        problem.tgt,
        "--out",
        tmp_path / "e",
        "--config",
        path,
        "--method",
        "qwp",
        "--json",
    )
    assert ran.json["provenance"]["config"]["coreset"] == "random"


@pytest.mark.parametrize("kind", ["lexicon", "matrix", "identical", "identity"])
def test_initial_maps(problem: Problem, tmp_path: Path, kind: str) -> None:
    tgt, start = problem.tgt, kind
    if kind == "lexicon":
        start = f"lexicon:{problem.lexicon}"
    elif kind == "matrix":
        np.save(tmp_path / "w.npy", np.eye(24))
        start = f"matrix:{tmp_path / 'w.npy'}"
    else:
        tgt = problem.src
    ran = qwp("align", problem.src, tgt, "--out", tmp_path / "d", *QUICK, "--start", start, "--json")
    assert ran.code == (3 if kind == "matrix" and ran.json["verdict"] == "failed" else 0)
    assert ran.json["provenance"]["config"]["start"] == kind
    if kind != "matrix":
        assert ran.json["verdict"] == "succeeded"


@pytest.mark.parametrize("method", [name for name, m in METHODS.items() if m.supervision in (REQUIRED, OPTIONAL)])
def test_every_method_with_supervision_learns_from_a_lexicon(problem: Problem, tmp_path: Path, method: str) -> None:
    seeds = tmp_path / "seeds.txt"
    seeds.write_text("".join(f"s{i} t{i}\n" for i in range(100)))
    args = ["align", problem.src, problem.tgt, "--out", tmp_path / "d", "--method", method, "--lexicon", seeds]
    ran = qwp(*args, "--threads", 1, "--json")
    assert ran.code == 0, ran.err
    provenance = ran.json["provenance"]
    assert provenance["method"] == method
    if METHODS[method].supervision == OPTIONAL:
        assert provenance["config"]["start"] == "lexicon"
    found = Alignment.load(tmp_path / "d").translate([f"s{i}" for i in range(100, 400)], k=1)
    assert np.mean([found[f"s{i}"][0].word == f"t{i}" for i in range(100, 400)]) > 0.9


def test_a_lexicon_may_come_from_the_config_and_the_start_from_a_flag(problem: Problem, tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text(f"lexicon = {json.dumps(str(problem.lexicon))}\nmax-vocab = 250\n")
    args = ["align", problem.src, problem.tgt, "--out", tmp_path / "d", *QUICK, "--config", path]
    assert qwp(*args, "--start", "lexicon", "--json").json["provenance"]["config"]["start"] == "lexicon"
    other = qwp(*args, "--start", "profiles")
    assert other.code == 2
    assert "lexicon was given but start='profiles' does not use it" in other.err


@pytest.mark.parametrize("method", [name for name, m in METHODS.items() if m.supervision == REQUIRED])
def test_a_supervised_method_without_a_lexicon_stops_before_reading(tmp_path: Path, method: str) -> None:
    ran = qwp("align", "none.vec", "none.vec", "--out", tmp_path / "d", "--method", method)
    assert (ran.code, ran.out) == (2, "")
    assert f"method '{method}' is supervised and needs a seed lexicon" in ran.err
    assert "--lexicon FILE" in ran.err
    assert not (tmp_path / "d").exists()


def test_warnings_about_the_files_are_shown(problem: Problem, tmp_path: Path) -> None:
    lines = problem.src.read_text().splitlines()
    numbers = lines[1].split(" ", 1)[1]
    odd = tmp_path / "odd.vec"
    odd.write_text("\n".join(["999 24", *lines[1:], f"s1 {numbers}", "broken 1 2 3"]) + "\n")
    ran = qwp("align", odd, problem.tgt, "--out", tmp_path / "d", *QUICK, "--errors", "skip", "--json")
    assert ran.code == 0
    for expected in ("1 repeated words dropped", "1 damaged lines left out", "header says 999 words"):
        assert expected in ran.err
        assert any(expected in text for text in ran.json["warnings"])
    strict = qwp("align", odd, problem.tgt, "--out", tmp_path / "e", *QUICK)
    assert strict.code == 2
    assert "line 403" in strict.err
    assert "--errors skip" in strict.err


# --------------------------------------------------------------------------- order of the words

ESTIMATED = "do not all seem to be sorted by frequency, so qwp estimates an order from the vectors"
FREQUENT = (
    *("--start", "profiles", "--start-words", "100", "--train-words", "100"),
    *("--refine-words", "100", "--coreset-size", "50"),
)
"""Only the 100 most frequent words take part, so the order of the words decides the result."""


@pytest.fixture(scope="module")
def shuffled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """Write source and target by frequency, which the lengths show, and the target in random order."""
    folder = tmp_path_factory.mktemp("shuffled")
    made = planted(600, d=24, noise=0.1, seed=1)
    lengths = np.linspace(3.0, 1.0, 600)[:, None]
    order = np.random.default_rng(0).permutation(600)
    tgt = (made.tgt * lengths).astype(np.float32)
    io.save(Embeddings([f"t{i}" for i in order], tgt[order]), folder / "shuffled.vec")
    src = write(folder / "src.vec", "s", made.src * lengths)
    return src, write(folder / "tgt.vec", "t", tgt), folder / "shuffled.vec"


def right(folder: Path, n: int = 600) -> float:
    """Return the share of words s<i> whose best translation is t<i>."""
    found = Alignment.load(folder).translate([f"s{i}" for i in range(n)], k=1)
    return float(np.mean([found[f"s{i}"][0].word == f"t{i}" for i in range(n)]))


def test_the_order_of_a_shuffled_vocabulary_is_estimated_unless_order_is_given(
    shuffled: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    src, _, tgt = shuffled
    args = ["align", src, tgt, *QUICK, *FREQUENT, "-q", "--out"]
    auto = qwp(*args, tmp_path / "auto")
    assert (auto.code, auto.out) == (0, "")
    assert f"warning: the words of src and shuffled {ESTIMATED}" in auto.err
    assert "--order none" in auto.err
    given = qwp(*args, tmp_path / "given", "--order", "given")
    assert "order" not in given.err
    assert right(tmp_path / "auto") > 0.95
    assert right(tmp_path / "given") < 0.5
    # The result keeps the order of the file.
    for folder in ("auto", "given"):
        assert Alignment.load(tmp_path / folder).tgt.words == io.load(tgt).words
    assert Alignment.load(tmp_path / "given").provenance.config["order"] == "given"
    assert Alignment.load(tmp_path / "auto").provenance.order == "estimated"
    assert Alignment.load(tmp_path / "given").provenance.order == "given"


def test_an_estimated_order_is_reported(shuffled: tuple[Path, Path, Path], tmp_path: Path) -> None:
    src, ordered, mixed = shuffled
    for tgt, order in ((mixed, "estimated"), (ordered, "given")):
        args = ["align", src, tgt, *QUICK, *FREQUENT, "--out", tmp_path / order]
        lines = [line.split() for line in qwp(*args).out.splitlines()]
        assert (["order", "of", "words", "estimated", "from", "the", "vectors"] in lines) == (order == "estimated")
        assert any(line[:3] == ["order", "of", "words"] for line in lines) == (order == "estimated")
        assert qwp("info", tmp_path / order, "--json").json["provenance"]["order"] == order


def test_the_order_of_a_sorted_vocabulary_is_kept(shuffled: tuple[Path, Path, Path], tmp_path: Path) -> None:
    src, tgt, _ = shuffled
    args = ["align", src, tgt, *QUICK, *FREQUENT, "-q", "--out"]
    for order in ("auto", "given"):
        ran = qwp(*args, tmp_path / order, "--order", order)
        assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert maps(tmp_path / "auto") == maps(tmp_path / "given")


def test_another_order_makes_another_run(shuffled: tuple[Path, Path, Path], tmp_path: Path) -> None:
    args = ["align", *shuffled[:2], *QUICK, *FREQUENT, "--out", tmp_path]
    assert qwp(*args, "-q").code == 0
    ran = qwp(*args, "--order", "given")
    assert ran.code == 2
    assert "config.order was 'auto', now 'given'" in ran.err


# --------------------------------------------------------------------------- bad input


def test_a_bad_value_is_explained(problem: Problem, tmp_path: Path) -> None:
    cases: list[tuple[list[str], str]] = [
        (["--cost", "manhattan"], "cost='manhattan' is not known; expected one of sqeuclidean, dot"),
        (["--coreset", "grid"], "coreset='grid' is not known; expected one of random, kmeans++, lloyd"),
        (["--start", "magic"], "'magic' is not known; expected one of auto"),
        (["--start", "lexicon"], "--start lexicon names no file; expected --start lexicon:FILE"),
        (["--start", "lexicon:none.txt"], "none.txt does not exist"),
        (["--start", "matrix:none.npy"], "none.npy cannot be read"),
        (["--start", "identity:x"], "only lexicon:FILE and matrix:FILE take a file"),
        (["--start", "lexicon:a.txt", "--lexicon", "b.txt"], "name two lexicons: leave one of them out"),
        (["--lexicon", "none.txt"], "none.txt does not exist"),
        (["--method", "magic"], "method='magic' is not known; expected one of qwp, wp"),
        (["--growth", "5"], "--growth is an option of proc-b, not of qwp: leave it out"),
        (["--method", "procrustes", "--start", "identity"], "not of procrustes: leave it out (`qwp methods procrus"),
        (["--method", "rcsls", "--constraint", "x"], "constraint='x' is not known; expected one of none, spectral"),
        (["--epsilon", "-1"], "epsilon=-1.0 is out of range; expected above 0"),
        (["--epochs", "0"], "epochs=0 is out of range; expected 1 to"),
        (["--max-vocab", "0"], "max_vocab=0 is out of range; expected 1 to"),
        (["--seed", "-3"], "seed=-3 is out of range; expected 0 to"),
        (["--threads", "0"], "threads=0 is out of range; expected 1 to"),
        (["--normalize", "whiten"], "'whiten'"),
        (["--config", "none.toml"], "none.toml cannot be read"),
        (["--map", "affine"], "map='affine' is not known; expected one of reweighted, orthogonal"),
        (["--refine-map", "affine"], "refine_map='affine' is not known; expected one of reweighted, orthogonal"),
        (["--refine-weights", "cosine"], "refine_weights='cosine' is not known; expected one of equal, csls"),
        (["--order", "random"], "order='random' is not known; expected one of auto, given"),
        (["--refine-first-words", "-1"], "refine_first_words=-1 is out of range; expected 0 to"),
        (["--refine-first-words", "many"], "--refine-first-words"),
        (["--reweight", "-0.5"], "reweight=-0.5 is out of range; expected 0 to 10"),
        (["--reweight", "nan"], "reweight=nan is out of range; expected 0 to 10"),
        (["--dewhiten", "1.5"], "dewhiten=1.5 is out of range; expected 0 to 1"),
        (["--dewhiten", "-0.1"], "dewhiten=-0.1 is out of range; expected 0 to 1"),
        (["--dewhiten", "nan"], "dewhiten=nan is out of range; expected 0 to 1"),
        (["--method", "proc-b", "--refine-weights", "csls"], "not of proc-b: leave it out (`qwp methods proc-b`"),
        (["--steps", "many"], "--steps"),
    ]
    for args, message in cases:
        ran = qwp("align", problem.src, problem.tgt, "--out", tmp_path / "d", *args)
        assert (ran.code, ran.out) == (2, "")
        assert message in ran.err
        assert "Traceback" not in ran.err
        assert not (tmp_path / "d").exists()


def test_bad_files_are_reported_before_any_is_read(problem: Problem, tmp_path: Path) -> None:
    missing = qwp("align", problem.src, tmp_path / "none.vec", "--out", tmp_path / "d")
    assert missing.code == 2
    assert "none.vec does not exist" in missing.err
    assert "reading" not in missing.err
    taken = qwp("align", problem.src, problem.tgt, "--out", problem.lexicon)
    assert taken.code == 2
    assert "is a file" in taken.err


@pytest.mark.parametrize("content", [np.zeros(3), np.zeros((2, 2, 2)), np.array([["a"]])])
def test_a_start_matrix_of_the_wrong_kind(problem: Problem, tmp_path: Path, content: Any) -> None:
    np.save(tmp_path / "w.npy", content)
    ran = qwp("align", problem.src, problem.tgt, "--out", tmp_path / "d", "--start", f"matrix:{tmp_path / 'w.npy'}")
    assert ran.code == 2
    assert "does not hold one matrix of numbers" in ran.err


# --------------------------------------------------------------------------- interrupted and resumed


@pytest.fixture(scope="module")
def uninterrupted(problem: Problem, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("whole")
    assert qwp("align", problem.src, problem.tgt, "--out", out, *QUICK, "-q").code == 0
    return out


@pytest.mark.parametrize(
    "stops", [[("loop", 10)], [("refine", 2)], [("verdict", 1)], [("loop", 1), ("loop", 24), ("refine", 1)]]
)
def test_a_resumed_run_ends_as_an_uninterrupted_one(
    problem: Problem,
    tmp_path: Path,
    uninterrupted: Path,
    stops: list[tuple[str, int]],
) -> None:
    args = ["align", problem.src, problem.tgt, "--out", tmp_path, *QUICK]
    for number, stop in enumerate(stops):
        with interrupted_at(*stop):
            ran = qwp(*args, *(["--resume"] if number % 2 else []))
        assert (ran.code, ran.out) == (130, "")
        assert "checkpoint.safetensors is kept" in ran.err
        assert "give the same command again to continue" in ran.err
        assert leftovers(tmp_path) == []
        assert not (tmp_path / "alignment.json").exists()
    ran = qwp(*args, "--resume")
    assert ran.code == 0
    assert f"continuing the interrupted run in {tmp_path}" in ran.err
    assert maps(tmp_path) == maps(uninterrupted)
    assert history(tmp_path) == history(uninterrupted)
    assert not (tmp_path / "checkpoint.safetensors").exists()


def test_interrupted_before_the_first_checkpoint(problem: Problem, tmp_path: Path) -> None:
    with interrupted_at("initialize", 3):
        ran = qwp("align", problem.src, problem.tgt, "--out", tmp_path, *SEARCHED)
    assert ran.code == 130
    assert "nothing was saved" in ran.err
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def interrupted(problem: Problem, tmp_path: Path) -> Path:
    with interrupted_at("loop", 5):
        assert qwp("align", problem.src, problem.tgt, "--out", tmp_path, *QUICK).code == 130
    return tmp_path


def test_without_resume_the_same_run_is_continued_and_another_needs_force(
    problem: Problem, interrupted: Path, uninterrupted: Path
) -> None:
    args = ["align", problem.src, problem.tgt, "--out", interrupted, *QUICK]
    other = qwp(*args, "--seed", 1)
    assert (other.code, other.out) == (2, "")
    assert "belongs to another run (seed was 0, now 1): " in other.err
    assert "reading" not in other.err
    assert "continuing" not in other.err
    assert "start afresh (--force)" in other.err
    ran = qwp(*args)
    assert ran.code == 0
    assert f"continuing the interrupted run in {interrupted} (--force would start afresh)" in ran.err
    assert maps(interrupted) == maps(uninterrupted)


def test_force_discards_an_interrupted_run(problem: Problem, interrupted: Path) -> None:
    args = ["align", problem.src, problem.tgt, "--out", interrupted, *QUICK, "--seed", 1, "--force"]
    both = qwp(*args, "--resume")
    assert (both.code, both.out) == (2, "")
    assert "--resume and --force were both given; expected one" in both.err
    ran = qwp(*args)
    assert ran.code == 0
    assert "an interrupted run is in" in ran.err
    assert "continuing" not in ran.err
    assert "epoch 1 " in ran.err


def test_an_interrupted_forced_run_reports_how_to_continue(
    problem: Problem, tmp_path: Path, uninterrupted: Path
) -> None:
    args = ["align", problem.src, problem.tgt, "--out", tmp_path, *QUICK]
    assert qwp(*args, "--seed", 6, "-q").code == 0
    with interrupted_at("loop", 5):
        ran = qwp(*args, "--force")
    assert ran.code == 130
    assert "give the same command again without --force to continue" in ran.err
    assert Alignment.load(tmp_path).provenance.seed == 6
    assert qwp(*args).code == 0
    assert maps(tmp_path) == maps(uninterrupted)


def test_a_checkpoint_of_another_run_is_refused(problem: Problem, interrupted: Path) -> None:
    ran = qwp("align", problem.src, problem.tgt, "--out", interrupted, *QUICK, "--epsilon", 0.07, "--resume")
    assert ran.code == 2
    assert "config.epsilon was 0.05, now 0.07" in ran.err
    ran = qwp("align", problem.src, problem.tgt, "--out", interrupted, *QUICK, "--map", "orthogonal", "--resume")
    assert ran.code == 2
    assert "config.map was 'reweighted', now 'orthogonal'" in ran.err
    assert (interrupted / "checkpoint.safetensors").exists()
    info = qwp("info", interrupted)
    assert info.code == 2
    assert "give its `qwp align` command again to continue it" in info.err


@pytest.mark.usefixtures("short_trials")
def test_resuming_a_finished_run_reports_it(problem: Problem, uninterrupted: Path, tmp_path: Path) -> None:
    before = (uninterrupted / "alignment.json").read_bytes()
    args = ["align", problem.src, problem.tgt, "--out", uninterrupted, *QUICK]
    for resume in ([], ["--resume"]):
        ran = qwp(*args, *resume)
        assert ran.code == 0
        assert f"The alignment already exists in {uninterrupted}: nothing was computed" in ran.out
        assert "Succeeded: " in ran.out
        assert "epoch" not in ran.err
        found = qwp(*args, *resume, "--json").json
        assert (found["verdict"], found["already_there"]) == ("succeeded", True)
    assert (uninterrupted / "alignment.json").read_bytes() == before
    assert leftovers(uninterrupted) == []
    noise = ["align", problem.src, problem.noise, "--out", tmp_path, *QUICK]
    assert qwp(*noise, "-q").code == 3
    assert qwp(*noise).code == 3
    assert qwp(*noise, "--resume").code == 3


def test_a_result_of_other_settings_or_inputs_is_refused(problem: Problem, uninterrupted: Path, tmp_path: Path) -> None:
    before = (uninterrupted / "alignment.json").read_bytes()
    changed = io.load(problem.tgt)
    changed.vectors[399, 0] += 1e-3
    io.save(changed, tmp_path / "changed.vec")
    copied = tmp_path / "copied.vec"
    copied.write_bytes(problem.tgt.read_bytes())
    same = ["--out", uninterrupted, *QUICK]
    for args, message in (
        ([problem.src, problem.tgt, "--seed", 8], "seed was 0, now 8"),
        ([problem.src, problem.tgt, "--map", "orthogonal"], "config.map was 'reweighted', now 'orthogonal'"),
        ([problem.src, problem.tgt, "--max-vocab", 399], "it had another input for src: sha256 "),
        ([problem.tgt, problem.src], "it had another input for src: sha256 "),
        ([problem.src, tmp_path / "changed.vec"], "it had another input for tgt: sha256 "),
        ([problem.src, problem.tgt, "--method", "wp"], "method was 'qwp', now 'wp'"),
        ([problem.src, tmp_path / "none.vec"], "none.vec does not exist"),
    ):
        for resume in ([], ["--resume"]):
            other = qwp("align", *args, *same, *resume)
            assert (other.code, other.out) == (2, "")
            assert message in other.err
            if "none.vec" not in message:
                assert f"{uninterrupted} holds the finished result of another run (" in other.err
                assert "give --force to replace it, or another --out" in other.err
    assert (uninterrupted / "alignment.json").read_bytes() == before
    # The path of the vectors does not matter.
    assert "already exists" in qwp("align", problem.src, copied, *same).out


def test_a_result_of_another_version_is_refused(problem: Problem, tmp_path: Path) -> None:
    older = shutil.copytree(OLDER / "pair", tmp_path / "older")
    lexicon = tmp_path / "lexicon.txt"
    lexicon.write_text("".join(f"a{i} b{i}\n" for i in range(30)))
    args = ["align", OLDER / "a.vec", OLDER / "b.vec", "--out", older, "--method", "procrustes", "--lexicon", lexicon]
    ran = qwp(*args, "--max-vocab", 50, "--refine", 2, "--resume")
    assert ran.code == 2
    assert f"it was made by qwp 0.1.0, this is qwp {__version__}): give --force to replace it" in ran.err
    assert qwp(*args, "--max-vocab", 50, "--refine", 2, "--force").code == 0
    assert Alignment.load(older).provenance.version == __version__
    # The files of the earlier result are removed.
    kept = {path.name for path in older.iterdir() if not path.name.startswith(("parts-", "lookup-"))}
    assert kept == {"alignment.json", "anchors.tsv"}


def test_a_damaged_result_is_refused(problem: Problem, uninterrupted: Path, tmp_path: Path) -> None:
    out = shutil.copytree(uninterrupted, tmp_path / "out")
    [path] = out.glob("parts-*/maps.safetensors")
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    ran = qwp("align", problem.src, problem.tgt, "--out", out, *QUICK, "--resume")
    assert (ran.code, ran.out) == (2, "")
    assert f"{out} holds a result that cannot be used ({path} has changed since it was saved" in ran.err
    assert "give --force to replace it" in ran.err
    (out / "alignment.json").write_text("{}")
    ran = qwp("align", "none.vec", problem.tgt, "--out", out, *QUICK)
    assert (ran.code, ran.out) == (2, "")
    assert f"{out} holds a result that cannot be used ({out / 'alignment.json'} has schema None" in ran.err


def test_another_run_is_refused_before_reading_and_force_replaces_the_result(
    problem: Problem, uninterrupted: Path, tmp_path: Path
) -> None:
    out = shutil.copytree(uninterrupted, tmp_path / "out")
    ran = qwp("align", "none.vec", "none.vec", "--out", out, *QUICK, "--seed", 9)
    assert ran.code == 2
    assert "seed was 0, now 9" in ran.err
    ran = qwp("align", problem.src, problem.tgt, "--out", out, *QUICK, "--seed", 9, "--force", "--json")
    assert (ran.code, ran.json["already_there"]) == (0, False)
    assert Alignment.load(out).provenance.seed == 9


def test_a_result_of_another_lexicon_is_refused(problem: Problem, tmp_path: Path) -> None:
    seeds = tmp_path / "seeds.txt"
    seeds.write_text("".join(f"s{i} t{i}\n" for i in range(100)))
    args = ["align", problem.src, problem.tgt, "--out", tmp_path / "d", "--method", "procrustes", "--lexicon", seeds]
    assert len(qwp(*args, "--json").json["provenance"]["supervision"]["lexicon"]) == 64
    assert "already exists" in qwp(*args, "--resume").out
    seeds.write_text("".join(f"s{i} t{i}\n" for i in range(99)))
    other = qwp(*args, "--resume")
    assert other.code == 2
    assert "it had another lexicon: sha256 " in other.err


def test_resume_without_an_interrupted_run(problem: Problem, tmp_path: Path, uninterrupted: Path) -> None:
    ran = qwp("align", problem.src, problem.tgt, "--out", tmp_path, *QUICK, "--resume")
    assert ran.code == 0
    assert "starting from the beginning" in ran.err
    assert maps(tmp_path) == maps(uninterrupted)


def test_a_process_stopped_by_ctrl_c(problem: Problem, tmp_path: Path) -> None:
    args = ["align", str(problem.src), str(problem.tgt), *QUICK, "--epochs", "8", "--steps", "60"]
    args += ["--start", "profiles"]
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    process = subprocess.Popen(
        [sys.executable, "-m", "qwp", *args, "--out", str(cut)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Background jobs of a shell, such as this test, may inherit an ignored Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stderr is not None
    while not process.stderr.readline().startswith("epoch 1 "):
        assert process.poll() is None
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert out == ""
    assert "is kept" in err
    assert "Traceback" not in err
    assert [p.name for p in cut.iterdir()] == ["checkpoint.safetensors"]
    assert qwp(*args, "--out", cut, "--resume").code == 0
    assert qwp(*args, "--out", whole, "-q").code == 0
    assert maps(cut) == maps(whole)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), Terminated(15), OSError(28, "No space left on device")])
def test_an_interrupted_save_keeps_the_earlier_result_and_the_checkpoint(
    problem: Problem,
    tmp_path: Path,
    uninterrupted: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
) -> None:
    args = ["align", problem.src, problem.tgt, "--out", tmp_path, *QUICK]
    assert qwp(*args, "-q", "--seed", 6).code == 0
    older = maps(tmp_path)
    args = [*args, "--force"]
    save = io.save

    def stop_at_the_second(space: Embeddings, path: Path) -> None:
        if path.name == "tgt.safetensors":
            raise error
        save(space, path)

    with monkeypatch.context() as patch:
        patch.setattr(io, "save", stop_at_the_second)
        ran = qwp(*args)
    code = {KeyboardInterrupt: 130, Terminated: 143, OSError: 2}[type(error)]
    assert (ran.code, ran.out) == (code, "")
    assert "give the same command again without --force" in ran.err
    if isinstance(error, OSError):
        [line] = [line for line in ran.err.splitlines() if line.startswith("error: ")]
        assert f"the result could not be saved in {tmp_path} (No space left on device)" in line
        assert "the folder is unchanged, and the checkpoint is kept" in line
    assert maps(tmp_path) == older
    assert qwp("translate", tmp_path, "s1").code == 0
    assert leftovers(tmp_path) == []
    again = qwp(*args[:-1], "--resume")
    assert again.code == 0
    assert "continuing the interrupted run" in again.err
    assert "loop" not in again.err
    assert maps(tmp_path) == maps(uninterrupted)


def test_a_missing_input_keeps_the_checkpoint(problem: Problem, interrupted: Path) -> None:
    for resume in ([], ["--resume"]):
        ran = qwp("align", problem.src, "none.vec", "--out", interrupted, *QUICK, *resume)
        assert ran.code == 2
        assert "none.vec does not exist" in ran.err
        assert (interrupted / "checkpoint.safetensors").exists()


def test_a_damaged_checkpoint_is_explained(problem: Problem, interrupted: Path) -> None:
    path = interrupted / "checkpoint.safetensors"
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    ran = qwp("align", problem.src, problem.tgt, "--out", interrupted, *QUICK, "--resume")
    assert (ran.code, ran.out) == (2, "")
    assert f"{path} is not a checkpoint that this version of qwp can continue" in ran.err
    assert "delete it, or start afresh (--force)" in ran.err


# --------------------------------------------------------------------------- exporting in the same step


def test_the_vectors_are_exported_in_the_same_step(problem: Problem, tmp_path: Path) -> None:
    args = ["align", problem.src, problem.tgt, *QUICK, "--max-vocab", 300]
    outs = ["--src-out", tmp_path / "s.vec", "--tgt-out", tmp_path / "t.npz"]
    ran = qwp(*args, "--out", tmp_path / "d", *outs)
    assert ran.code == 0
    assert f"400 words, 24 dimensions written to {tmp_path / 's.vec'}" in ran.out
    then = ["--src-out", tmp_path / "then-s.vec", "--tgt-out", tmp_path / "then-t.npz"]
    assert qwp("export", tmp_path / "d", *then).code == 0
    assert (tmp_path / "s.vec").read_bytes() == (tmp_path / "then-s.vec").read_bytes()
    np.testing.assert_array_equal(io.load(tmp_path / "t.npz").vectors, io.load(tmp_path / "then-t.npz").vectors)
    # An existing result is exported, too.
    (tmp_path / "s.vec").unlink()
    again = qwp(*args, "--out", tmp_path / "d", *outs, "--json")
    assert (again.code, again.json["already_there"]) == (0, True)
    assert again.json["exported"]["src"]["words"] == 400
    assert (tmp_path / "s.vec").read_bytes() == (tmp_path / "then-s.vec").read_bytes()


def test_a_result_may_be_exported_without_being_saved(problem: Problem, tmp_path: Path) -> None:
    args = ["align", problem.src, problem.tgt, *QUICK, "--map", "orthogonal", "--src-out", tmp_path / "s.vec"]
    ran = qwp(*args)
    assert ran.code == 0
    assert "Succeeded: " in ran.out
    assert "saved in" not in ran.out
    assert "Next:" not in ran.out
    found = qwp(*args, "--json", "--profile")
    assert (found.json["out"], list(found.json["exported"])) == (None, ["src"])
    assert [path.name for path in tmp_path.iterdir()] == ["s.vec"]
    failed = qwp("align", problem.src, problem.noise, *QUICK, "--src-out", tmp_path / "s.vec")
    assert failed.code == 3
    assert "error: the alignment failed" in failed.err
    assert "saved" not in failed.err


def test_an_interrupted_run_without_a_folder_saves_nothing(problem: Problem, tmp_path: Path) -> None:
    with interrupted_at("loop", 5):
        ran = qwp("align", problem.src, problem.tgt, *QUICK, "--src-out", tmp_path / "s.vec")
    assert ran.code == 130
    assert "interrupted: nothing was saved, because --out was not given" in ran.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "nothing to write was asked for; expected --out DIR, or --src-out FILE and --tgt-out FILE"),
        (["--src-out", "SRC"], "is one of the files to read; expected another name"),
        (["--src-out", "x.vec", "--tgt-out", "./x.vec"], "--src-out and --tgt-out both name x.vec; expected two files"),
        (["--src-out", "x.unknown"], "x.unknown ends in '.unknown', expected one of"),
        (["--src-out", "none/x.vec"], "none"),
        (["SRC", "--out", "d"], "3 vector files were given; expected two"),
        (["--out", "d", "--resume", "--force"], "--resume and --force were both given"),
    ],
)
def test_impossible_outputs_are_refused_before_reading(
    problem: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = qwp("align", problem.src, problem.tgt, *(problem.src if arg == "SRC" else arg for arg in args))
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert "reading" not in ran.err
    assert list(tmp_path.iterdir()) == []


# --------------------------------------------------------------------------- which words are read, and how


def test_vocabularies_restrict_the_words_that_are_read(problem: Problem, tmp_path: Path) -> None:
    some, out = tmp_path / "some.txt", tmp_path / "d"
    some.write_text("".join(f"s{i}\n" for i in range(399, 149, -1)) + "absent\n")
    args = ["align", problem.src, problem.tgt, "--out", out, *QUICK, "--src-vocab", some, "--max-vocab", 220]
    ran = qwp(*args)
    assert ran.code in (0, 3)
    assert f"220 of the 251 words of {some} found in {problem.src}" in ran.err
    alignment = Alignment.load(out)
    assert alignment.src.words == [f"s{i}" for i in range(150, 370)]
    assert len(alignment.tgt) == 220
    record = alignment.provenance.src
    assert (record.vocab_words, record.n_words, alignment.provenance.tgt.vocab_words) == (251, 220, None)
    assert "220 x 24, of 251 in a vocabulary, from" in qwp("info", out, "--format", "table").out
    # Only the selected words are exported.
    ran = qwp("export", out, "--src-out", tmp_path / "s.vec", "--tgt-out", tmp_path / "t.vec", "--json")
    assert (ran.json["src"]["words"], ran.json["tgt"]["words"]) == (220, 400)
    some.write_text("s1\n")
    assert "another input for src" in qwp(*args).err
    none = tmp_path / "none.txt"
    none.write_text("nothing\n")
    refused = qwp("align", problem.src, problem.tgt, "--out", tmp_path / "e", "--tgt-vocab", none)
    assert (refused.code, refused.out) == (2, "")
    assert "none of the 1 words of the vocabulary is among the 400 of" in refused.err
    missing = qwp("align", problem.src, problem.tgt, "--out", tmp_path / "e", "--tgt-vocab", tmp_path / "no.txt")
    assert missing.code == 2
    assert "no.txt does not exist" in missing.err
    assert "reading" not in missing.err


def test_files_in_another_encoding(problem: Problem, tmp_path: Path) -> None:
    latin = tmp_path / "latin.vec"
    latin.write_bytes(problem.src.read_text("utf-8").replace("\ns1 ", "\nniño ").encode("latin-1"))
    args = ["align", latin, problem.tgt, "--out", tmp_path / "d", *QUICK]
    refused = qwp(*args)
    assert refused.code == 2
    assert "expected UTF-8 text (--encoding names another)" in refused.err
    unknown = qwp(*args, "--encoding", "klingon")
    assert unknown.code == 2
    assert "received encoding='klingon', expected one that Python knows" in unknown.err
    assert "reading" not in unknown.err
    ran = qwp(*args, "--encoding", "latin-1", "--max-vocab", 300, "--src-out", tmp_path / "s.vec")
    assert ran.code == 0
    assert Alignment.load(tmp_path / "d").src.words[1] == "niño"
    assert io.load(tmp_path / "s.vec").words[1] == "niño"


# --------------------------------------------------------------------------- the map without the vectors


def test_commands_work_on_a_result_without_vectors(problem: Problem, tmp_path: Path) -> None:
    args = ["align", problem.src, problem.tgt, *QUICK]
    whole, bare = tmp_path / "whole", tmp_path / "bare"
    assert qwp(*args, "--out", whole, "-q").code == 0
    ran = qwp(*args, "--out", bare, "--save", "map")
    assert ran.code == 0
    assert sorted(path.name for path in bare.rglob("*.safetensors")) == ["maps.safetensors"]
    assert maps(bare) == maps(whole)
    for command in (["translate", "DIR", "s1", "s2"], ["evaluate", "DIR", "--lexicon", problem.lexicon, "--json"]):
        shown = [qwp(*(folder if arg == "DIR" else arg for arg in command)).out for folder in (whole, bare)]
        assert shown[0] == shown[1] != ""
    assert qwp("info", bare).code == 0
    # The result of the same run is found again, unless its vectors are needed.
    assert "already exists" in qwp(*args, "--out", bare, "--save", "map").out
    assert "already exists" in qwp(*args, "--out", whole, "--save", "map").out
    refused = qwp(*args, "--out", bare)
    assert (refused.code, refused.out) == (2, "")
    assert f"{bare} holds the result of this run without its vectors (--save map): give --force" in refused.err
    assert qwp(*args, "--out", bare, "--force", "-q").code == 0
    assert Alignment.load(bare).holds_vectors


def test_missing_or_changed_files_of_a_result_without_vectors_are_reported(problem: Problem, tmp_path: Path) -> None:
    src, out = Path(shutil.copy(problem.src, tmp_path / "a.vec")), tmp_path / "d"
    assert qwp("align", src, problem.tgt, "--out", out, *QUICK, "--save", "map", "-q").code == 0
    original = src.read_bytes()
    what = f"error: {out} holds the maps but not the vectors of src (--save map), and"
    src.write_bytes(original.replace(b"\ns7 ", b"\nz7 "))
    changed = qwp("translate", out, "s1")
    assert (changed.code, changed.out) == (2, "")
    assert f"{what} {src} has changed since it was aligned: put back the file" in changed.err
    src.write_bytes(original[:1000])
    assert f"{what} {src} cannot be read as before (" in qwp("translate", out, "s1").err
    src.unlink()
    assert f"{what} their file {src} does not exist: put back the file" in qwp("translate", out, "s1").err
    assert len(changed.err.splitlines()) == 1
    src.write_bytes(original)
    assert qwp("translate", out, "s1").code == 0


def test_a_result_whose_vectors_are_missing_is_refused(problem: Problem, tmp_path: Path) -> None:
    src, out = Path(shutil.copy(problem.src, tmp_path / "a.vec")), tmp_path / "d"
    options = ["--out", out, *QUICK, "--save", "map", "-q"]
    assert qwp("align", src, problem.tgt, *options).code == 0
    src.unlink()
    # The same vectors in another file are the same run.
    refused = qwp("align", problem.src, problem.tgt, *options)
    assert refused.code == 2
    assert f"(--save map), and their files {src} are missing: give --force to align again" in refused.err
    assert qwp("align", problem.src, problem.tgt, *options, "--force").code == 0
    assert qwp("translate", out, "s1").code == 0


def test_arrays_without_words_are_aligned_and_exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows without words are called src:0, ... and tgt:0, ..., even when they are read again."""
    monkeypatch.chdir(tmp_path)
    problem = planted(150, d=6, noise=0.0, shuffle=False, seed=0)
    for name, rows in (("old", problem.src), ("new", problem.tgt)):
        np.save(f"{name}.npy", rows.astype(np.float32))
    Path("pairs.txt").write_text("".join(f"src:{row} tgt:{row}\n" for row in range(100)))
    how = ("--method", "procrustes", "--lexicon", "pairs.txt", "--refine", "0", "--verdict", "none", "-q")
    assert qwp("align", "old.npy", "new.npy", "--out", "d", "--save", "map", "--max-vocab", 100, *how).code == 0
    assert qwp("translate", "d", "src:7", "-k", 1, "--json").json["translations"]["src:7"][0]["word"] == "tgt:7"
    assert qwp("export", "d", "--src-out", "o.npy", "--tgt-out", "n.npy").code == 0
    assert np.load("o.npy").shape == (150, 6)
    np.testing.assert_allclose(np.load("o.npy"), np.load("n.npy"), atol=1e-3)
    Path("w.txt").write_text("".join(f"w{row}\n" for row in range(150)))
    ran = qwp("align", "old.npy", "new.npy", "--src-words", "w.txt", "--out", "e", "--method", "qwp", *QUICK, "--json")
    assert ran.json["provenance"]["src"]["reading"]["words"] == "w.txt"
    assert Alignment.load("e").src.words[:2] == ["w0", "w1"]


# --------------------------------------------------------------------------- an existing result


def test_a_finished_run_is_recognised_without_reading_the_vectors(problem: Problem, uninterrupted: Path) -> None:
    def shown(*paths: Path) -> str:
        ran = qwp("align", *paths, "--out", uninterrupted, *QUICK)
        assert (ran.code, "nothing was computed" in ran.out) == (0, True)
        return ran.err

    assert shown(problem.src, problem.tgt) == ""
    # A file of another format may hold the same vectors, so it is read.
    other = problem.folder / "tgt.npz"
    io.save(io.load(problem.tgt), other)
    assert shown(problem.src, other) == f"reading {problem.src}\nreading {other}\n"


def test_a_source_fingerprint_covers_everything_that_decides_the_vectors(problem: Problem, tmp_path: Path) -> None:
    path, words = tmp_path / "a.npy", tmp_path / "a.words.txt"
    np.save(path, np.eye(3, dtype=np.float32))
    plain = {"max_vocab": None, "format": None, "label": "src", "words": None}
    found = [source_fingerprint(path, None, plain)]
    words.write_text("one\ntwo\nthree\n")
    found.append(source_fingerprint(path, None, plain))
    found.append(source_fingerprint(path, None, {**plain, "max_vocab": 2}))
    found.append(source_fingerprint(path, words, plain))
    found.append(source_fingerprint(path, None, {**plain, "words": words}))
    found.append(source_fingerprint(path, None, {**plain, "label": "tgt"}))
    np.save(path, np.eye(3, dtype=np.float64))
    found.append(source_fingerprint(path, None, plain))
    assert None not in found
    assert len(set(found)) == len(found)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes in the file system")
def test_a_pipe_has_no_fingerprint(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert source_fingerprint(tmp_path / "pipe", None, {"words": None}) is None
