"""Results of `qwp align`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from qwp import InputError
from qwp.cli.results import (
    PairTask,
    example_words,
    expect_alignment,
)
from qwp.methods import make_aligner
from qwp.methods.settings import Supervision
from qwp.results.alignment import Alignment
from qwp.results.checkpoints import FILE_NAME
from qwp.spaces import io
from qwp.spaces.embeddings import Embeddings
from tests.cli.conftest import Problem


def named(alignment: Alignment, src: list[str], tgt: list[str]) -> Alignment:
    """Return the same vectors with other words."""
    sides = {}
    for side, words in (("src_side", src), ("tgt_side", tgt)):
        old = getattr(alignment, side)
        sides[side] = replace(old, source=Embeddings(words, old.space.vectors))
    return replace(alignment, **sides)


def test_example_words_are_content_words_with_a_reliable_translation(aligned: Path) -> None:
    alignment = Alignment.load(aligned)
    found = example_words(alignment)
    assert found == example_words(alignment)
    assert len(found) == 3
    ranks = [alignment.src.index[word] for word in found]
    assert ranks == sorted(ranks)
    assert ranks[0] >= 100
    best = alignment.translate(found, k=1)
    assert all(best[word][0].word == word.replace("s", "t") for word in found)


def test_example_words_have_several_letters(aligned: Path) -> None:
    alignment = Alignment.load(aligned)
    n = len(alignment.src)
    words = [f"w{i:02}"[:3] + "." * (i // 90) if i % 10 else f"word{i}" for i in range(n)]
    odd = named(alignment, [w if w.startswith("word") else f"{i},." for i, w in enumerate(words)], alignment.tgt.words)
    assert all(word.startswith("word") for word in example_words(odd))
    # Words with the same spelling on both sides are used only if there are no others.
    alike = named(alignment, alignment.tgt.words, alignment.tgt.words)
    assert len(example_words(alike)) == 3
    # Without content words, use the first words.
    numbers = [f"{i}" for i in range(n)]
    assert example_words(named(alignment, numbers, numbers)) == ["0", "1", "2"]


def test_a_loaded_pair_equals_the_fitted_pair(problem: Problem, aligned: Path) -> None:
    aligner = make_aligner("qwp")
    task = PairTask(aligner, Supervision())
    alignment = Alignment.load(aligned)
    assert task.load(aligned) == alignment.provenance.identity()
    assert task.as_json(aligned)["provenance"] == alignment.provenance.to_dict()
    assert task.seconds() == alignment.provenance.seconds
    paths = {"src": problem.src, "tgt": problem.tgt}
    hashes = {side: io.load(path, max_vocab=300).sha256() for side, path in paths.items()}
    # The inputs are equal, the settings differ.
    assert task.identity(hashes).inputs == alignment.provenance.identity().inputs
    difference = task.identity(hashes).difference(task.load(aligned))
    assert difference is not None
    assert difference.startswith("config.")


def test_folders_of_several_languages_and_unfinished_runs_are_refused(tmp_path: Path) -> None:
    expect_alignment(tmp_path)
    (tmp_path / FILE_NAME).touch()
    with pytest.raises(InputError, match=f"{tmp_path} holds an interrupted run and no finished alignment: give its"):
        expect_alignment(tmp_path)
    for index in ("multi.json", "all-pairs.json"):
        folder = tmp_path / index.partition(".")[0]
        for name in ("de", "fr"):
            (folder / name).mkdir(parents=True)
            (folder / name / "alignment.json").touch()
        (folder / index).touch()
        with pytest.raises(InputError, match=f"holds several alignments: name one of {folder / 'de'}, {folder / 'fr'}"):
            expect_alignment(folder)
