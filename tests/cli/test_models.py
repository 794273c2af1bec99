"""fastText models from `qwp align` to `qwp translate` and `qwp export`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qwp import Alignment, align, load
from qwp.cli.results import tell_of_subwords
from qwp.spaces.io.fasttext import write_mapped
from tests.cli.conftest import Ran, qwp
from tests.spaces import fasttext_models

gensim: Any = pytest.importorskip("gensim.models.fasttext")
NEW = "abcdeabcde"


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model and the same model rotated, and a lexicon of words onto themselves."""
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
    assert f"'{NEW}' is not among the 60 words of out, so its vector is that of its subwords" in ran.err
    alignment = Alignment.load("out")
    assert alignment.translate(NEW).composed == [NEW]
    np.testing.assert_allclose(alignment.transform(NEW), alignment.transform(NEW, "tgt"), atol=1e-4)
    np.testing.assert_allclose(alignment.transform(NEW), alignment.transform(space[NEW]), atol=1e-5)


def test_many_subwords_stay_in_the_model(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "subwords" not in aligned().err
    found = Alignment.load("out")
    tell_of_subwords([found], few=100)
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
    assert "en.bin, where they were, is not there: put it back, or save them with" in ran.err
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


def test_the_words_alone_are_exported_where_that_is_asked_for(models: Path) -> None:
    assert aligned().code == 0
    assert qwp("export", "out", "--src-out", "en.vec", "--tgt-out", "es.vec").code == 0
    assert load("en.vec").subwords is None
    for more in (("--saved",), ("--format", "word2vec-binary")):
        assert qwp("export", "out", "--src-out", "en.words.bin", *more).code == 0
        found = load("en.words.bin")
        assert found.report is not None
        assert found.report.format == "word2vec-binary"


def test_a_model_that_is_gone_or_has_changed_is_not_exported(models: Path) -> None:
    assert aligned().code == 0
    write_mapped("es.bin", "en.bin", np.eye(fasttext_models.DIM))
    ran = qwp("export", "out", "--src-out", "x.bin", "--tgt-out", "y.bin")
    assert ran.code == 2
    assert "en.bin is no longer the fastText model that was aligned: give --src FILE" in ran.err
    (models / "en.bin").unlink()
    ran = qwp("export", "out", "--src-out", "x.bin", "--tgt-out", "y.bin")
    assert "en.bin, the fastText model that was aligned, is not there" in ran.err
    assert not (models / "y.bin").exists()
    ran = qwp("export", "out", "--src-out", "x.bin", "--src", "es.bin")
    assert ran.code == 0
