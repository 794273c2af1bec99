from __future__ import annotations

import importlib.util
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qwp import InputError, Lexicon, arrays, evaluate
from qwp.cli.compat import muse
from qwp.cli.compat.runs import Request
from qwp.judging.ranks import AlignedFiles
from qwp.methods import make_aligner
from qwp.spaces import io
from tests.cli.conftest import Problem, leftovers, qwp

FILES = ("--src_emb", "a.vec", "--tgt_emb", "b.vec")


def request(script: str, *args: str) -> Request:
    return muse.request(script, muse.parser(script).given([*args, *FILES]), Path("f"))


def asked(problem: Problem, tmp_path: Path, *more: object) -> list[object]:
    return [
        *("--src_lang", "en", "--tgt_lang", "xx", "--src_emb", problem.src, "--tgt_emb", problem.tgt),
        *("--exp_path", tmp_path, "--exp_name", "n", "--exp_id", "i", "--cuda", "false", *more),
    ]


def right(folder: Path, problem: Problem) -> float:
    """Return the P@1 of two written files."""
    aligned = AlignedFiles(io.load(folder / "vectors-en.txt"), io.load(folder / "vectors-xx.txt"))
    return evaluate(aligned, Lexicon.load(problem.lexicon), bootstrap=0).p_at_1()


@pytest.mark.parametrize("script", ["supervised", "supervised.py", "some/where/supervised.py"])
def test_a_supervised_command_line_writes_its_folder(problem: Problem, tmp_path: Path, script: str) -> None:
    folder = tmp_path / "n" / "i"
    more = ["--dico_train", problem.lexicon, "--dico_eval", problem.lexicon, "--max_vocab", 300, "--emb_dim", 24]
    ran = qwp("muse", script, *asked(problem, tmp_path, *more, "--n_refinement", 2, "--json"))
    assert ran.code == 0, ran.err
    assert (ran.json["command"], ran.json["method"], ran.json["verdict"]) == ("muse", "procrustes", "succeeded")
    assert ran.json["provenance"]["config"]["refine"] == 2
    assert ran.json["provenance"]["src"]["n_words"] == 300
    assert ran.json["evaluation"]["scores"]["csls"]["covered"]["P@1"]["value"] > 0.95
    # Like MUSE, write all words of the files.
    assert (folder / "vectors-en.txt").read_text().startswith("400 24")
    assert right(folder, problem) > 0.95
    mapping = "best_mapping.pth" if find_spec("torch") else "best_mapping.npy"
    assert sorted(path.name for path in folder.iterdir()) == [mapping, "vectors-en.txt", "vectors-xx.txt"]
    assert leftovers(tmp_path) == []


def test_the_mapping_has_the_convention_of_muse(problem: Problem, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="the mapping is a torch file only where torch is installed")
    more = ["--dico_train", problem.lexicon, "--normalize_embeddings", ""]
    assert qwp("muse", "supervised", *asked(problem, tmp_path, *more)).code == 0
    w = torch.load(tmp_path / "n" / "i" / "best_mapping.pth", weights_only=False)
    mapped = io.load(tmp_path / "n" / "i" / "vectors-en.txt").vectors
    np.testing.assert_allclose(io.load(problem.src).vectors @ w.T, mapped, atol=1e-5)
    np.testing.assert_allclose(w @ w.T, np.eye(24), atol=1e-5)


def test_without_torch_the_mapping_is_a_numpy_file(
    problem: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    ran = qwp("muse", "supervised", *asked(problem, tmp_path, "--dico_train", problem.lexicon))
    assert ran.code == 0
    path = tmp_path / "n" / "i" / "best_mapping.npy"
    assert f"note: torch is not installed: the mapping is in {path}, for numpy.load" in ran.err
    assert np.load(path).shape == (24, 24)
    assert "Succeeded: " in ran.out


@pytest.mark.slow
@pytest.mark.usefixtures("short_trials")
def test_an_unsupervised_command_line(problem: Problem, tmp_path: Path) -> None:
    ran = qwp("muse", "unsupervised", *asked(problem, tmp_path, "--dis_layers", 3, "--n_epochs", 2, "--json"))
    assert ran.code == 0, ran.err
    assert ran.json["method"] == "qwp"
    assert "note: unsupervised.py is run by method qwp; --method adversarial is the method of MUSE" in ran.err
    assert "note: ignored, without a counterpart in method qwp: --n_epochs, --dis_layers" in ran.err
    assert right(tmp_path / "n" / "i", problem) > 0.95


def test_a_failed_alignment_exits_with_code_3(problem: Problem, tmp_path: Path) -> None:
    args = [problem.noise if part == problem.tgt else part for part in asked(problem, tmp_path)]
    ran = qwp("muse", "supervised", *args, "--dico_train", problem.lexicon, "--export", "")
    assert ran.code == 3
    assert not (tmp_path / "n" / "i" / "vectors-en.txt").exists()


def test_options_are_translated() -> None:
    cases: list[tuple[str, list[str], str, dict[str, Any]]] = [
        ("unsupervised", [], "qwp", {"map": "orthogonal"}),
        ("unsupervised", ["--n_refinement", "0", "--seed", "5"], "qwp", {"refine": 0, "seed": 5}),
        ("unsupervised", ["--seed", "-1", "--cuda", "True"], "qwp", {"device": "cuda"}),
        ("unsupervised", ["--normalize_embeddings", "center,renorm"], "qwp", {"normalize": "center,unit"}),
        ("unsupervised", ["--normalize_embeddings", ""], "qwp", {"normalize": "none"}),
        ("unsupervised", ["--dico_method", "csls_knn_5", "--dico_build", "S2T&T2S"], "qwp", {"csls_k": 5}),
        (
            "unsupervised",
            ["--method", "adversarial", "--n_epochs", "3", "--dis_hid_dim", "64", "--dico_max_rank", "900"],
            "adversarial",
            {"epochs": 3, "hidden_size": 64, "refine_words": 900},
        ),
        ("supervised", ["--dico_train", "identical_char"], "identical", {"refine": 5}),
    ]
    for script, args, method, values in cases:
        found = request(script, *args)
        assert found.settings.method == method
        assert values.items() <= found.settings.values.items()
        assert found.settings.ignored == []
        assert found.max_vocab == 200_000
        make_aligner(method, **found.settings.values).check()


def test_all_words_and_no_files() -> None:
    found = request("unsupervised", "--max_vocab", "-1", "--export", "")
    assert (found.max_vocab, found.outs) == (None, {})


def test_mistakes_are_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases: list[tuple[list[str], str]] = [
        ([], "no script was named; expected `qwp muse unsupervised ...` or `qwp muse supervised ...`"),
        (["train"], "received 'train'; expected `qwp muse unsupervised ...`"),
        (["evaluate.py"], "evaluate.py of MUSE is `qwp evaluate --src FILE --tgt FILE --lexicon FILE` here"),
        (["unsupervised"], "the following arguments are required: --src_emb, --tgt_emb"),
        (["unsupervised", *FILES, "--export", "pth"], "--export pth is not supported"),
        (["unsupervised", *FILES, "--adversarial", "false"], "--adversarial false is not supported"),
        (["unsupervised", *FILES, "--src_lang", "es"], "--src_lang and --tgt_lang are both es"),
        (["unsupervised", *FILES, "--cuda", "maybe"], "invalid boolean value: 'maybe'"),
        (["unsupervised", *FILES, "--method", "magic"], "method magic is not known"),
        (["supervised", *FILES], "the dictionary data/crosslingual/dictionaries/en-es.0-5000.txt of --dico_train"),
        (["supervised", *FILES, "--dico_train", "none.txt"], "the dictionary none.txt of --dico_train none.txt"),
        (["supervised", *FILES, "--dico_eval", "none.txt"], "none.txt does not exist"),
        (["unsupervised", *FILES], "a.vec does not exist"),
    ]
    for args, message in cases:
        monkeypatch.chdir(tmp_path)
        ran = qwp("muse", *args)
        assert (ran.code, ran.out) == (2, "")
        assert message in ran.err
        assert list(tmp_path.iterdir()) == []


def test_the_dimension_is_checked(problem: Problem, tmp_path: Path) -> None:
    ran = qwp("muse", "supervised", *asked(problem, tmp_path, "--dico_train", problem.lexicon, "--emb_dim", 300))
    assert ran.code == 2
    assert "src.vec has 24 dimensions, but --emb_dim is 300: correct the option" in ran.err


def test_default_dictionaries_are_read_from_the_folder_of_muse(
    problem: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "data" / "crosslingual" / "dictionaries"
    folder.mkdir(parents=True)
    (folder / "en-xx.0-5000.txt").write_text(problem.lexicon.read_text())
    ran = qwp("muse", "supervised", *asked(problem, tmp_path, "--dico_eval", "default"))
    assert ran.code == 0
    assert "en-xx.5000-6500.txt does not exist, the result is not scored" in ran.err
    (folder / "en-xx.5000-6500.txt").write_text("unknown words\n")
    ran = qwp("muse", "supervised", *asked(problem, tmp_path))
    assert ran.code == 0
    assert "warning: the result is not scored" in ran.err


def test_a_folder_without_an_id_gets_a_random_name(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (muse._folder({}) for _ in range(2))
    assert first.parent == second.parent == Path("dumped") / "debug"
    assert first != second
    assert muse._folder({"exp_path": "a", "exp_name": "b", "exp_id": "c"}) == Path("a/b/c")


def test_help_names_the_scripts_options() -> None:
    ran = qwp("muse", "unsupervised", "--help")
    assert ran.code == 0
    assert "--dis_most_frequent" in ran.out
    assert "--src_emb FILE" in qwp("muse", "--help").out


def test_a_device_without_torch_leaves_no_folder(
    problem: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: object, **__: object) -> None:
        raise InputError("torch is not installed")

    monkeypatch.setattr(arrays, "choose_device", missing)
    ran = qwp("muse", "supervised", *asked(problem, tmp_path, "--dico_train", problem.lexicon, "--cuda", "true"))
    assert ran.code == 2
    assert "torch is not installed" in ran.err
    assert not (tmp_path / "n").exists()
