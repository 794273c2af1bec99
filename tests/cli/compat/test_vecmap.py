from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qwp import InputError, Lexicon, evaluate
from qwp.cli.compat import vecmap
from qwp.cli.compat.runs import Request
from qwp.judging.ranks import AlignedFiles
from qwp.methods import make_aligner
from qwp.spaces import io
from tests.cli.conftest import Problem, leftovers, qwp

FILES = ("a.emb", "b.emb", "a.out", "b.out")


def request(*args: str) -> Request:
    return vecmap.request(vecmap.parser().given([*FILES, *args]))


def right(problem: Problem, src: Path, tgt: Path) -> float:
    """Return the P@1 of two written files."""
    aligned = AlignedFiles(io.load(src), io.load(tgt))
    return evaluate(aligned, Lexicon.load(problem.lexicon), bootstrap=0).p_at_1()


@pytest.mark.parametrize("args", [["--supervised", "{gold}"], ["--emnlp2016", "{gold}"], ["-d", "{gold}", "-c"]])
def test_a_supervised_command_line_writes_two_files(problem: Problem, tmp_path: Path, args: list[str]) -> None:
    outs = [tmp_path / "src.out", tmp_path / "tgt.out"]
    asked = [part.format(gold=problem.lexicon) for part in args]
    ran = qwp("vecmap", *asked, problem.src, problem.tgt, *outs, "--seed", 3, "--json")
    assert ran.code == 0, ran.err
    assert (ran.json["command"], ran.json["method"], ran.json["verdict"]) == ("vecmap", "procrustes", "succeeded")
    assert ran.json["files"] == [str(path) for path in outs]
    assert ran.json["provenance"]["seed"] == 3
    assert [path.read_text().split("\n")[0] for path in outs] == ["400 24", "400 24"]
    assert io.load(outs[0]).words == io.load(problem.src).words
    assert right(problem, *outs) > 0.95
    assert leftovers(tmp_path) == []


def test_the_verdict_is_printed_and_a_failure_exits_with_code_3(problem: Problem, tmp_path: Path) -> None:
    outs = [tmp_path / "src.out", tmp_path / "tgt.out"]
    asked = ["vecmap", "--supervised", problem.lexicon, problem.src]
    ran = qwp(*asked, problem.tgt, *outs)
    assert ran.code == 0
    assert "Succeeded: " in ran.out
    told = "note: --supervised is run by method procrustes; its map is orthogonal, the map of VecMap is re-weighted"
    assert told in ran.err
    assert f"400 words, 24 dimensions written to {outs[0]}" in ran.out
    failed = qwp(*asked, problem.noise, *outs)
    assert failed.code == 3
    assert "the alignment failed" in failed.err


@pytest.mark.slow
@pytest.mark.usefixtures("short_trials")
@pytest.mark.parametrize("method", ["qwp", "self-learning"])
def test_an_unsupervised_command_line(problem: Problem, tmp_path: Path, method: str) -> None:
    outs = [tmp_path / "src.out", tmp_path / "tgt.out"]
    chosen = [] if method == "qwp" else ["--method", method]
    ran = qwp("vecmap", "--unsupervised", problem.src, problem.tgt, *outs, *chosen, "--json")
    assert ran.code == 0, ran.err
    assert ran.json["method"] == method
    told = "note: --unsupervised is run by method qwp; --method self-learning is the method of VecMap"
    assert (told in ran.err) == (method == "qwp")
    assert right(problem, *outs) > 0.95


def test_options_are_translated() -> None:
    cases: list[tuple[list[str], str, dict[str, Any]]] = [
        (["--unsupervised"], "qwp", {"device": "cpu"}),
        (["--unsupervised", "--cuda"], "qwp", {"device": "cuda"}),
        (["--acl2018", "--csls"], "self-learning", {"csls_k": 10}),
        (["--identical", "--csls", "5"], "self-learning", {"start": "identical", "csls_k": 5}),
        (["--semi_supervised", "d"], "self-learning", {"start": "lexicon"}),
        (["--init_dictionary", "d", "--self_learning"], "self-learning", {"start": "lexicon"}),
        (["--acl2017_seed", "d"], "self-learning", {"map": "orthogonal", "normalize": "unit,center"}),
        (["--unsupervised", "--normalize", "unit", "center", "--seed", "4"], "qwp", {"normalize": "unit,center"}),
        (["--unsupervised", "--precision", "fp64"], "qwp", {"dtype": "float64"}),
        (["--unsupervised", "--orthogonal", "--vocabulary_cutoff", "9"], "qwp", {"train_words": 9}),
        (["--acl2018", "--stochastic_initial", "0.5", "--threshold", "1e-5"], "self-learning", {"keep": 0.5}),
        (["--acl2018", "--src_reweight", "0.3", "--trg_reweight", "0.3"], "self-learning", {"reweight": 0.3}),
        (["--unsupervised", "--method", "self-learning", "--stochastic_interval", "7"], "self-learning", {}),
    ]
    for args, method, values in cases:
        asked = request(*args)
        assert asked.settings.method == method
        assert values.items() <= asked.settings.values.items()
        assert asked.settings.ignored == []
        make_aligner(method, **asked.settings.values).check()
        assert (asked.lexicon is None) == ("d" not in args)


def test_ignored_options_are_reported_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    asked = request("--unsupervised", "--batch_size", "10", "--log", "x", "--stochastic_initial", "0.1", "-v")
    capsys.readouterr()
    asked.settings.report_ignored()
    assert capsys.readouterr().err == (
        "note: ignored, without a counterpart in method qwp: --stochastic_initial, --batch_size, --log\n"
    )
    request("--unsupervised", "--precision", "fp16")
    assert "note: --precision fp16 has no counterpart: float32 is used" in capsys.readouterr().err


def test_unsupported_options_are_refused() -> None:
    cases: list[tuple[list[str], str]] = [
        ([], "no mode was given; expected --unsupervised, --identical, --supervised DICTIONARY"),
        (["--acl2017"], "--acl2017 is not supported: initialization from numerals has no counterpart"),
        (["--unsupervised", "--dim_reduction", "50"], "--dim_reduction is not supported"),
        (["--unsupervised", "--encoding", "latin-1"], "`iconv -f latin-1 -t utf-8` converts them"),
        (["--unsupervised", "--src_reweight", "1"], "expected the same for both sides"),
        (["--unsupervised", "--src_dewhiten", "trg"], "each side is de-whitened on its own"),
        (["--unsupervised", "--normalize", "unitdim"], "unitdim of VecMap scales columns"),
        (["--unsupervised", "--identical"], "not allowed with argument"),
        (["--unsupervised", "--bogus"], "unrecognized arguments: --bogus"),
        (["--unsupervised", "--seed", "x"], "invalid int value: 'x'"),
        (["--unsupervised", "--method", "magic"], "method magic is not known; expected one of qwp, wp"),
    ]
    for args, message in cases:
        ran = qwp("vecmap", *FILES, *args)
        assert (ran.code, ran.out) == (2, "")
        assert message in ran.err
        told = qwp("vecmap", *FILES, *args, "--json")
        assert told.json["error"]["kind"] == "bad input"


def test_options_are_checked_before_reading(problem: Problem, tmp_path: Path) -> None:
    ran = qwp("vecmap", "--unsupervised", problem.src, problem.tgt, tmp_path / "none" / "a", tmp_path / "b")
    assert ran.code == 2
    assert "does not exist" in ran.err
    with pytest.raises(InputError, match="the following arguments are required: trg_output"):
        vecmap.parser().given(["--unsupervised", "a", "b", "c"])


def test_help_lists_the_options_of_vecmap() -> None:
    ran = qwp("vecmap", "--help")
    assert ran.code == 0
    assert max(len(line) for line in ran.out.splitlines()) <= 80
    assert "--semi_supervised DICTIONARY" in ran.out
    assert "usage: qwp vecmap" in ran.out


def test_the_map_is_applied_to_all_words_of_the_files(problem: Problem, tmp_path: Path) -> None:
    outs = [tmp_path / "src.out", tmp_path / "tgt.out"]
    asked = ["vecmap", "--supervised", problem.lexicon, problem.src, problem.tgt, *outs]
    assert qwp(*asked, "--normalize", "none").code == 0
    # Without normalization an orthogonal map does not change the target.
    np.testing.assert_allclose(io.load(outs[1]).vectors, io.load(problem.tgt).vectors, atol=1e-6)


def test_inputs_are_not_overwritten(problem: Problem, tmp_path: Path) -> None:
    src, tgt = (tmp_path / path.name for path in (problem.src, problem.tgt))
    for copied, original in ((src, problem.src), (tgt, problem.tgt)):
        copied.write_bytes(original.read_bytes())
    ran = qwp("vecmap", "--supervised", problem.lexicon, src, tgt, src, tgt)
    assert (ran.code, src.read_bytes()) == (2, problem.src.read_bytes())
    assert f"{src}, to be written, is one of the files to read; expected another name" in ran.err
    ran = qwp("vecmap", "--supervised", problem.lexicon, src, tgt, tmp_path / "x", tmp_path / "x")
    assert ran.code == 2
    assert f"both languages would be written to {tmp_path / 'x'}; expected two files" in ran.err
