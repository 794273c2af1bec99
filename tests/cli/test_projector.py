"""The two files of the TensorFlow projector."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from qwp import Alignment
from tests.cli.conftest import Problem, leftovers, qwp


def test_both_sides_are_in_one_pair_of_files(aligned: Path, tmp_path: Path) -> None:
    out = tmp_path / "projector"
    ran = qwp("export", aligned, "--projector", out, "--json")
    assert ran.code == 0, ran.err
    alignment = Alignment.load(aligned)
    assert ran.json["projector"]["words"] == len(alignment.src) + len(alignment.tgt)
    vectors = np.loadtxt(out / "vectors.tsv", delimiter="\t")
    expected = np.concatenate([np.asarray(alignment.mapped(side)) for side in ("src", "tgt")])
    np.testing.assert_allclose(vectors, expected, atol=1e-6)
    head, *lines = (out / "metadata.tsv").read_text("utf-8").splitlines()
    assert head == "word\tlanguage"
    assert [line.split("\t")[0] for line in lines] == [*alignment.src.words, *alignment.tgt.words]
    assert len({line.split("\t")[1] for line in lines}) == 2
    assert not leftovers(out)
    assert "written to" in qwp("export", aligned, "--projector", out).out


def test_a_folder_that_cannot_be_made_is_refused(problem: Problem, aligned: Path, tmp_path: Path) -> None:
    for folder, message in ((problem.src, "is a file"), (tmp_path / "no" / "where", "does not exist")):
        ran = qwp("export", aligned, "--projector", folder)
        assert ran.code == 2
        assert message in ran.err
