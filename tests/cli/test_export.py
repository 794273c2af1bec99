from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qwp import Alignment, align, load
from qwp.cli import export
from qwp.cli.results import warn_of_subwords
from qwp.spaces import io
from qwp.spaces.embeddings import Side
from qwp.spaces.io.fasttext import write_mapped
from tests.cli.conftest import QUICK, Problem, Ran, qwp, write
from tests.problems import Array, rotation
from tests.spaces import fasttext_models
from tests.tolerance import rounding


def assert_mapped(written: Array, given: Array, alignment: Alignment, side: Side) -> None:
    """Check that a file holds what `transform` returns. Other batch sizes may round differently."""
    mapping = alignment.src_map if side == "src" else alignment.tgt_map
    assert mapping is not None
    largest = np.linalg.norm(given, axis=1).max() * np.linalg.norm(mapping, axis=0).max()
    tolerance = rounding(np.float32, given.shape[1]) * max(1.0, float(largest))
    np.testing.assert_allclose(written, alignment.transform(given, side), rtol=0, atol=tolerance)


def test_all_words_of_the_files_are_mapped_like_transform(problem: Problem, aligned: Path, tmp_path: Path) -> None:
    ran = qwp("export", aligned, "--src-out", tmp_path / "s.vec", "--tgt-out", tmp_path / "t.bin", "--json")
    assert ran.code == 0
    assert (ran.json["src"]["words"], ran.json["tgt"]["words"]) == (400, 400)
    alignment = Alignment.load(aligned)
    assert len(alignment.src) == 300
    for side, original, out in (("src", problem.src, "s.vec"), ("tgt", problem.tgt, "t.bin")):
        given, written = io.load(original), io.load(tmp_path / out)
        assert written.words == given.words
        assert written.report is not None
        assert written.report.warnings == ()
        assert_mapped(written.vectors, given.vectors, alignment, "src" if side == "src" else "tgt")


def test_saved_words_only(aligned: Path, tmp_path: Path) -> None:
    ran = qwp("export", aligned, "--src-out", tmp_path / "s.vec", "--saved", "--digits", 4)
    assert ran.code == 0
    assert "300 words, 24 dimensions written" in ran.out
    written, alignment = io.load(tmp_path / "s.vec"), Alignment.load(aligned)
    assert written.words == alignment.src.words
    np.testing.assert_allclose(written.vectors, alignment.transform(alignment.src.words), atol=6e-5)


def test_a_complete_alignment_needs_no_file(problem: Problem, tmp_path: Path) -> None:
    src = Path(shutil.copy(problem.src, tmp_path / "a.vec"))
    assert qwp("align", src, problem.tgt, "--out", tmp_path / "d", *QUICK, "-q").code == 0
    src.unlink()
    ran = qwp("export", tmp_path / "d", "--src-out", tmp_path / "s.npz", "--json")
    assert (ran.code, ran.json["src"]["words"], ran.json["src"]["from_file"]) == (0, 400, None)


def test_new_words_of_another_file(aligned: Path, tmp_path: Path) -> None:
    vectors = np.random.default_rng(0).standard_normal((5, 24)).astype(np.float32)
    new = write(tmp_path / "new.vec", "n", vectors)
    ran = qwp("export", aligned, "--tgt", new, "--tgt-out", tmp_path / "t.vec")
    assert ran.code == 0
    written = io.load(tmp_path / "t.vec")
    assert written.words == ["n0", "n1", "n2", "n3", "n4"]
    assert_mapped(written.vectors, vectors, Alignment.load(aligned), "tgt")


ONE_SIDE = "the vectors written here do not match the other side as it was"


@pytest.mark.parametrize("sides", [("src",), ("tgt",), ("src", "tgt")])
@pytest.mark.parametrize("kind", ["reweighted", "orthogonal"])
def test_exporting_one_side_of_a_two_sided_alignment_warns(
    aligned: Path, tmp_path: Path, kind: str, sides: tuple[str, ...]
) -> None:
    alignment = Alignment.load(aligned)
    assert alignment.tgt_map is not None
    if kind == "orthogonal":
        turned = replace(alignment.src_side, map=rotation(24, 0).astype("f4"))
        alignment = replace(alignment, src_side=turned, tgt_side=replace(alignment.tgt_side, map=None))
    folder = alignment.save(tmp_path / "dir")
    outs = [part for side in sides for part in (f"--{side}-out", tmp_path / f"{side}.npz")]
    warned = kind == "reweighted" and len(sides) == 1
    for flags in ((), ("--json",)):
        ran = qwp("export", folder, *outs, "--saved", *flags)
        assert ran.code == 0
        assert (ONE_SIDE in ran.err) == warned
        assert ran.err.count("warning:") == warned
        assert "warning" not in ran.out.replace('"warnings": []', "")
        for side in sides:
            assert len(io.load(tmp_path / f"{side}.npz")) == 300
    assert set(ran.json) == {"command", "verdict", *sides}
    if warned:
        for way_out in ("--src-out", "--tgt-out", "--map orthogonal"):
            assert way_out in ran.err


def test_gensim_reads_it(aligned: Path, tmp_path: Path) -> None:
    from gensim.models import KeyedVectors

    qwp("export", aligned, "--src-out", tmp_path / "s.vec", "--tgt-out", tmp_path / "t.bin")
    src = KeyedVectors.load_word2vec_format(tmp_path / "s.vec")
    tgt = KeyedVectors.load_word2vec_format(tmp_path / "t.bin", binary=True)
    assert len(src) == len(tgt) == 400
    assert tgt.similar_by_vector(src["s3"], topn=1)[0][0] == "t3"


@pytest.fixture
def moved(problem: Problem, tmp_path: Path) -> Path:
    """Align the first words of a file, then move the file."""
    src = Path(shutil.copy(problem.src, tmp_path / "a.vec"))
    assert qwp("align", src, problem.tgt, "--out", tmp_path / "d", *QUICK, "-q", "--max-vocab", 250).code == 0
    src.rename(tmp_path / "elsewhere.vec")
    return tmp_path


def test_a_missing_or_changed_original_is_explained(moved: Path) -> None:
    ran = qwp("export", moved / "d", "--src-out", moved / "s.vec")
    assert ran.code == 2
    for expected in ("only the first 250 words of", "--src FILE", "--saved"):
        assert expected in ran.err
    write(moved / "a.vec", "other", np.ones((300, 24)))
    ran = qwp("export", moved / "d", "--src-out", moved / "s.vec")
    assert ran.code == 2
    assert "does not begin with the 250 words and vectors that were aligned" in ran.err
    assert not (moved / "s.vec").exists()
    assert qwp("export", moved / "d", "--src-out", moved / "s.vec", "--src", moved / "elsewhere.vec").code == 0
    assert len(io.load(moved / "s.vec")) == 400


def test_the_recorded_file_is_used_only_if_its_vectors_are_unchanged(moved: Path) -> None:
    same_words = io.load(moved / "elsewhere.vec")
    same_words.vectors[249, 3] += 1e-4
    io.save(same_words, moved / "a.vec")
    # The target is fine, but nothing is written before both sides are checked.
    ran = qwp("export", moved / "d", "--src-out", moved / "s.vec", "--tgt-out", moved / "t.vec")
    assert (ran.code, ran.out) == (2, "")
    for expected in ("does not begin with the 250 words and vectors that were aligned", "--src FILE", "--saved"):
        assert expected in ran.err
    for content in ("just a sentence\n", "3 24\na 1 2\n", ""):
        (moved / "a.vec").write_text(content)
        ran = qwp("export", moved / "d", "--src-out", moved / "s.vec", "--tgt-out", moved / "t.vec")
        assert (ran.code, ran.out) == (2, "")
        assert "a.vec cannot be read as it was when it was aligned" in ran.err
        assert "--src FILE" in ran.err
    assert not (moved / "s.vec").exists()
    assert not (moved / "t.vec").exists()
    # Words after the first 250 may differ.
    more = io.load(moved / "elsewhere.vec")
    more.vectors[250:] *= 2
    io.save(more, moved / "a.vec")
    assert qwp("export", moved / "d", "--src-out", moved / "s.vec").code == 0
    assert len(io.load(moved / "s.vec")) == 400


def test_a_result_from_elsewhere_cannot_select_a_file(problem: Problem, aligned: Path, tmp_path: Path) -> None:
    alignment = Alignment.load(aligned)
    for path in (
        str(problem.noise),
        str(problem.lexicon),
        "/dev/zero",
        "/etc/passwd",
        "\x1b]0;title\x07",
        "a\0b",
        None,
    ):
        record = replace(alignment.provenance.tgt, path=path)
        made = replace(alignment, provenance=replace(alignment.provenance, tgt=record))
        folder = made.save(tmp_path / "theirs")
        ran = qwp("export", folder, "--tgt-out", tmp_path / "t.vec")
        assert (ran.code, ran.out) == (2, "")
        assert "--tgt FILE" in ran.err
        assert "\x1b" not in ran.err
        assert not (tmp_path / "t.vec").exists()


def test_the_input_format_is_used(aligned: Path, tmp_path: Path) -> None:
    # A first line of two numbers would be read as a header.
    vectors = np.random.default_rng(0).standard_normal((3, 24))
    new = tmp_path / "new.txt"
    new.write_text("".join(f"{i} {' '.join(map(str, row))}\n" for i, row in enumerate(vectors)))
    ran = qwp("export", aligned, "--src", new, "--input-format", "glove", "--src-out", tmp_path / "s.vec", "--json")
    assert (ran.code, ran.json["src"]["words"], ran.json["src"]["from_file"]) == (0, 3, str(new))
    wrong = qwp("export", aligned, "--src", new, "--input-format", "npz", "--src-out", tmp_path / "t.vec")
    assert (wrong.code, (tmp_path / "t.vec").exists()) == (2, False)
    unknown = qwp("export", aligned, "--src", new, "--input-format", "x", "--src-out", tmp_path / "t.vec")
    assert unknown.code == 2


def test_bad_input_writes_no_file(problem: Problem, aligned: Path, tmp_path: Path) -> None:
    cases: list[tuple[list[str], str]] = [
        ([], "expected --src-out FILE, --tgt-out FILE or both"),
        (["--src-out", "{tmp}/x.what"], "ends in '.what', expected one of"),
        (["--src-out", "{tmp}/none/x.vec"], "does not exist, expected a folder to write into"),
        (
            ["--src-out", "{tmp}/s.vec", "--tgt-out", "{tmp}/t.npz", "--digits", "3"],
            "expected it for text only",
        ),
        (["--src-out", "{tmp}/s.vec", "--saved", "--src", "x.vec"], "expected one"),
        (["--src-out", "{tmp}/s.vec", "--src", "x.vec"], "x.vec does not exist"),
        (["--src-out", "{tmp}/s.vec", "--src", "{gold}"], "gold.txt"),
        (["--src-out", "{tmp}/s.vec", "--format", "x"], "expected one of text"),
    ]
    for args, message in cases:
        ran = qwp("export", aligned, *(a.format(tmp=tmp_path, gold=problem.lexicon) for a in args))
        assert (ran.code, ran.out) == (2, "")
        assert message in ran.err
        assert list(tmp_path.iterdir()) == []


def test_another_dimension_is_explained(aligned: Path, tmp_path: Path) -> None:
    thin = write(tmp_path / "thin.vec", "n", np.ones((2, 7)))
    ran = qwp("export", aligned, "--src", thin, "--src-out", tmp_path / "s.vec")
    assert ran.code == 2
    assert "thin.vec has 7 dimensions, the alignment 24" in ran.err


def test_words_are_mapped_in_batches(problem: Problem, aligned: Path, tmp_path: Path) -> None:
    alignment = Alignment.load(aligned)
    for source, words in ((problem.src, 400), (None, 300)):
        out = tmp_path / "s.npz"
        found = export.write_sides(alignment, {"src": out}, {"src": source}, {"src": {}}, batch=64, saved=True)
        assert found["src"]["words"] == words
        given = io.load(problem.src)
        assert io.load(out).words == given.words[:words]
        assert_mapped(io.load(out).vectors, given.vectors[:words], alignment, "src")


def test_files_are_read_again_with_the_recorded_options(problem: Problem, tmp_path: Path) -> None:
    latin = tmp_path / "latin.vec"
    latin.write_bytes(problem.src.read_text("utf-8").replace("\ns1 ", "\nniño ").encode("latin-1"))
    args = ["align", latin, problem.tgt, "--out", tmp_path / "d", *QUICK, "-q", "--max-vocab", 300]
    assert qwp(*args, "--encoding", "latin-1").code == 0
    ran = qwp("export", tmp_path / "d", "--src-out", tmp_path / "s.vec", "--tgt-out", tmp_path / "t.vec", "--json")
    assert (ran.code, ran.json["src"]["words"]) == (0, 400)
    assert io.load(tmp_path / "s.vec").words[1] == "niño"


def test_maps_alone_are_enough(problem: Problem, tmp_path: Path) -> None:
    src = Path(shutil.copy(problem.src, tmp_path / "a.vec"))
    args = ["align", src, problem.tgt, *QUICK, "-q", "--max-vocab", 300]
    whole, bare = tmp_path / "whole", tmp_path / "bare"
    assert qwp(*args, "--out", whole).code == qwp(*args, "--out", bare, "--save", "map").code == 0
    for folder in (whole, bare):
        outs = ["--src-out", folder / "s.vec", "--tgt-out", folder / "t.vec"]
        assert qwp("export", folder, *outs).code == 0
    for name in ("s.vec", "t.vec"):
        assert (whole / name).read_bytes() == (bare / name).read_bytes()
    # If the file is missing, another one can be mapped, but not the aligned words.
    moved = src.rename(tmp_path / "moved.vec")
    assert qwp("export", bare, "--src", moved, "--src-out", bare / "again.vec").code == 0
    assert (bare / "again.vec").read_bytes() == (bare / "s.vec").read_bytes()
    saved = qwp("export", bare, "--src-out", bare / "x.vec", "--saved")
    assert (saved.code, saved.out) == (2, "")
    assert f"{bare} holds the maps but not the vectors of src (--save map), and their file {src}" in saved.err


def test_aligned_files_are_not_overwritten(problem: Problem, aligned: Path, tmp_path: Path) -> None:
    before = problem.tgt.read_bytes()
    other = Path(shutil.copy(problem.src, tmp_path / "other.vec"))
    for args in (["--src-out", problem.tgt, "--saved"], ["--src-out", other, "--src", other]):
        ran = qwp("export", aligned, *args)
        assert ran.code == 2
        assert f"{args[1]}, to be written, is one of the files to read; expected another name" in ran.err
    assert (problem.tgt.read_bytes(), other.read_bytes()) == (before, problem.src.read_bytes())


def test_saved_words_are_not_offered_without_saved_vectors(problem: Problem, tmp_path: Path) -> None:
    src = Path(shutil.copy(problem.src, tmp_path / "a.vec"))
    args = ["--out", tmp_path / "d", *QUICK, "-q", "--max-vocab", 250, "--save", "map"]
    assert qwp("align", src, problem.tgt, *args).code == 0
    src.unlink()
    ran = qwp("export", tmp_path / "d", "--src-out", tmp_path / "s.vec")
    assert ran.code == 2
    assert "is missing: give --src FILE to export all words of a file of your choice\n" in ran.err
    about = qwp("info", tmp_path / "d", "--format", "table").out
    assert "not saved: commands that need them read these files" in about
    assert qwp("info", tmp_path / "d", "--json").json["vectors_saved"] is False


gensim: Any = pytest.importorskip("gensim.models.fasttext")
NEW = "abcdeabcde"


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a model, a rotated copy, and a lexicon that maps each word to itself."""
    monkeypatch.chdir(tmp_path)
    fasttext_models.saved(tmp_path, "en.bin")
    rotation = np.linalg.qr(np.random.default_rng(3).normal(size=(fasttext_models.DIM, fasttext_models.DIM)))[0]
    write_mapped("en.bin", "es.bin", rotation)
    words = load("en.bin").words
    Path("pairs.txt").write_text("".join(f"{word} {word}\n" for word in words), encoding="utf-8")
    return tmp_path


def aligned(*more: str) -> Ran:
    how = ("--method", "procrustes", "--lexicon", "pairs.txt", "--refine", "0", "--verdict", "none", "-q")
    return qwp("align", "en.bin", "es.bin", "--out", "out", *how, *more)


def test_words_outside_of_the_vocabulary_are_translated_without_the_models(models: Path) -> None:
    assert aligned("--max-vocab", "60").code == 0
    space = load("en.bin", max_vocab=60)
    expected = align(space, space, method="procrustes", lexicon=[(w, w) for w in space.words], refine=0, verdict="none")
    nearest = [found.word for found in expected.translate(vectors=space[NEW], k=3)[0]]
    for path in ("en.bin", "es.bin"):
        (models / path).unlink()
    ran = qwp("translate", "out", NEW, space.words[0], "</s>", "-k", 3, "--json")
    assert ran.code == 0
    assert [found["word"] for found in ran.json["translations"][NEW]] == nearest
    assert (ran.json["composed"], ran.json["unknown"]) == ([NEW], ["</s>"])
    assert f"'{NEW}' is not among the 60 words of out, so its vector is made from its subwords" in ran.err
    alignment = Alignment.load("out")
    assert alignment.translate(NEW).composed == [NEW]
    np.testing.assert_allclose(alignment.transform(NEW), alignment.transform(NEW, "tgt"), atol=1e-4)
    np.testing.assert_allclose(alignment.transform(NEW), alignment.transform(space[NEW]), atol=1e-5)


def test_many_subwords_stay_in_the_model(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "subwords" not in aligned().err
    found = Alignment.load("out")
    warn_of_subwords(found, few=100)
    assert (
        "the subwords of en (0.0 GiB) are not saved: words outside of its vocabulary are translated as long as"
        in capsys.readouterr().err
    )
    found.save("out", subwords=False)
    assert not list(models.glob("out/*/*subwords*"))
    assert qwp("translate", "out", NEW, "--json").json["composed"] == [NEW]
    Alignment.load("out").save("whole", subwords=True)
    fasttext_models.saved(models, "other.bin")
    write_mapped("other.bin", "en.bin", 2 * np.eye(fasttext_models.DIM))
    ran = qwp("translate", "out", NEW, load("es.bin").words[0])
    assert ran.code == 0
    assert "en.bin does not hold the subwords of the model that was aligned" in ran.err
    assert f"'{NEW}' is not among the" in ran.err
    (models / "en.bin").unlink()
    ran = qwp("translate", "out", NEW)
    assert ran.code == 2
    assert "en.bin does not exist: put it back, or save the table with" in ran.err
    assert Alignment.load("whole").translate(NEW).composed == [NEW]


def test_vectors_of_gensim_keep_their_subwords(models: Path) -> None:
    wv = gensim.load_facebook_vectors("en.bin")
    alignment = align(wv, wv, method="procrustes", lexicon=[(w, w) for w in wv.index_to_key], refine=0, verdict="none")
    np.testing.assert_allclose(alignment.src[NEW], wv[NEW], atol=1e-6)
    alignment.save(models / "out")
    assert Alignment.load(models / "out").translate(NEW).composed == [NEW]


def test_a_model_is_exported_as_a_model(models: Path) -> None:
    assert aligned("--max-vocab", "60").code == 0
    ran = qwp("export", "out", "--src-out", "en.mapped.bin", "--tgt-out", "es.mapped.bin", "--json")
    assert ran.code == 0
    original, alignment = load("en.bin"), Alignment.load("out")
    assert ran.json["src"]["words"] == len(original) > len(alignment.src)
    assert (ran.json["src"]["from_file"], ran.json["src"]["dim"]) == ("en.bin", 10)
    en, es = (gensim.load_facebook_vectors(f"{name}.mapped.bin") for name in ("en", "es"))
    for word in (*original.words, NEW):
        assert np.abs(en[word] - original[word] @ alignment.src_map).max() < 1e-5
        assert np.abs(en[word] - es[word]).max() < 1e-4


def test_a_model_may_be_exported_as_words_only(models: Path) -> None:
    assert aligned().code == 0
    assert qwp("export", "out", "--src-out", "en.vec", "--tgt-out", "es.vec").code == 0
    assert load("en.vec").subwords is None
    for more in (("--saved",), ("--format", "word2vec-binary")):
        assert qwp("export", "out", "--src-out", "en.words.bin", *more).code == 0
        found = load("en.words.bin")
        assert found.report is not None
        assert found.report.format == "word2vec-binary"


def test_a_missing_or_changed_model_is_not_exported(models: Path) -> None:
    assert aligned().code == 0
    write_mapped("es.bin", "en.bin", np.eye(fasttext_models.DIM))
    ran = qwp("export", "out", "--src-out", "x.bin", "--tgt-out", "y.bin")
    assert ran.code == 2
    assert "en.bin is no longer the fastText model that was aligned: give --src FILE" in ran.err
    (models / "en.bin").unlink()
    ran = qwp("export", "out", "--src-out", "x.bin", "--tgt-out", "y.bin")
    assert "en.bin, the fastText model that was aligned, is missing" in ran.err
    assert not (models / "y.bin").exists()
    ran = qwp("export", "out", "--src-out", "x.bin", "--src", "es.bin")
    assert ran.code == 0
