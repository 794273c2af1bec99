"""The functions that most users need."""

from __future__ import annotations

import inspect
import logging
import pydoc
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import qwp
from qwp import InputError
from qwp.maps.procrustes import orthogonality_error
from qwp.methods import METHODS
from qwp.showing.events import Progress
from qwp.spaces.demo import load_demo
from tests.conftest import QUICK, planted_embeddings
from tests.libraries import assert_close


@pytest.mark.slow
def test_align_many_gives_the_alignments_of_each_pair() -> None:
    pairs = [planted_embeddings(150, d=10, seed=seed) for seed in (1, 2)]
    quick = {**QUICK, "start": "frank-wolfe", "start_steps": 10, "device": "cpu", "coreset": "kmeans++"}
    events: list[tuple[int, str]] = []

    def note(pair: int, event: Progress) -> None:
        events.append((pair, event.stage))

    together = qwp.align_many(pairs, seed=3, progress=note, **quick)
    for (src, tgt), alignment in zip(pairs, together, strict=True):
        alone = qwp.align(src, tgt, seed=3, **quick)
        assert_close(alignment.src_map, alone.src_map, atol=1e-5)
        assert alignment.tgt_map is not None
        assert alone.tgt_map is not None
        assert_close(alignment.tgt_map, alone.tgt_map, atol=1e-5)
        assert alignment.src is src
        assert alignment.provenance.config == alone.provenance.config
    assert {
        (pair, stage) for pair in (0, 1) for stage in ("initialize", "coresets", "loop", "refine", "verdict")
    } <= set(events)


@pytest.mark.slow
def test_the_kind_of_map_is_an_option() -> None:
    src, tgt = planted_embeddings(300, d=10, noise=0.1)
    quick = {**QUICK, "start": "profiles", "device": "cpu"}
    default, orthogonal = qwp.align(src, tgt, **quick), qwp.align(src, tgt, map="orthogonal", **quick)
    assert orthogonal.tgt_map is None
    assert orthogonality_error(orthogonal.src_map) < 1e-5
    for matrix in (default.src_map, default.tgt_map):
        assert matrix is not None
        assert orthogonality_error(matrix) > 0.1
    # Only the last fit differs: what was measured on the way is the same.
    steps = [[r for r in each.history if r["stage"] != "verdict"] for each in (default, orthogonal)]
    assert steps[0] == steps[1]
    assert [r["stage"] for r in steps[0]].count("refine") == 10
    for each in (default, orthogonal):
        best = each.translate(src.words, k=1)
        assert np.mean([best[f"s{i}"][0].word == f"t{i}" for i in range(300)]) > 0.95


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"map": "affine"}, "map='affine' is not known; expected one of reweighted, orthogonal"),
        ({"refine_map": "affine"}, "refine_map='affine' is not known"),
        ({"refine_weights": "cosine"}, "refine_weights='cosine' is not known; expected one of equal, csls"),
        ({"order": "random"}, "order='random' is not known; expected one of auto, given"),
        ({"dewhiten": 2.0}, "dewhiten=2.0 is out of range; expected 0 to 1"),
    ],
)
def test_a_wrong_value_is_explained(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        qwp.align("none.vec", "none.vec", **options)


def test_align_many_of_nothing_is_nothing() -> None:
    assert qwp.align_many([]) == []


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(InputError, match="colour"):
        qwp.align_many([], colour="red")  # type: ignore[call-arg]


# --------------------------------------------------------------------------- lexicons, progress, the demo


def test_a_lexicon_may_be_a_path_pairs_or_a_dict(tmp_path: Path) -> None:
    src, tgt = planted_embeddings(60)
    pairs = [(f"s{i}", f"t{i}") for i in range(30)]
    path = tmp_path / "pairs.txt"
    path.write_text("".join(f"{one} {two}\n" for one, two in pairs))
    expected = qwp.align(src, tgt, method="procrustes", lexicon=qwp.Lexicon(tuple(pairs)), threads=1)
    for lexicon in (path, str(path), pairs, dict(pairs)):
        found = qwp.align(src, tgt, method="procrustes", lexicon=lexicon, threads=1)
        assert_close(found.src_map, expected.src_map, atol=0)
        assert found.provenance.supervision == expected.provenance.supervision
        score = qwp.evaluate(found, lexicon, bootstrap=0)
        assert score.to_dict() == qwp.evaluate(found, qwp.Lexicon(tuple(pairs)), bootstrap=0).to_dict()


@pytest.mark.slow
def test_a_lexicon_initializes_methods_that_do_not_require_one() -> None:
    src, tgt = planted_embeddings(120)
    lexicon = {f"s{i}": f"t{i}" for i in range(40)}
    found = qwp.align(src, tgt, lexicon=lexicon, **QUICK)
    assert found.provenance.config["start"] == "lexicon"
    assert found.translate("s100", k=1)["s100"][0].word == "t100"
    with pytest.raises(InputError, match="start='profiles' does not use it"):
        qwp.align(src, tgt, lexicon=lexicon, start="profiles")


IDENTICAL: dict[str, Any] = {"method": "identical", "refine": 2, "threads": 1}


def shared_words(n: int = 250) -> tuple[qwp.Embeddings, qwp.Embeddings]:
    src, tgt = planted_embeddings(n)
    return src, qwp.Embeddings([f"s{word[1:]}" for word in tgt.words], tgt.vectors)


def test_progress_is_shown_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    src, tgt = shared_words()
    for progress in (None, False):
        qwp.align(src, tgt, progress=progress, **IDENTICAL)
        assert capsys.readouterr() == ("", "")
    events: list[Progress] = []
    qwp.align(src, tgt, progress=events.append, **IDENTICAL)
    assert events[-1].stage == "verdict"
    assert capsys.readouterr() == ("", "")
    qwp.align(src, tgt, progress=True, **IDENTICAL)
    out, err = capsys.readouterr()
    assert out == ""
    assert [line.partition(":")[0] for line in err.splitlines()] == ["refinement 1/2", "refinement 2/2"]
    with pytest.raises(InputError, match=r"progress=1 \(int\) is not known"):
        qwp.align(src, tgt, progress=1, **IDENTICAL)  # type: ignore[arg-type]


def test_progress_of_many_pairs(capsys: pytest.CaptureFixture[str]) -> None:
    qwp.align_many([shared_words(), shared_words()], progress=True, **IDENTICAL)
    assert [line for line in capsys.readouterr().err.splitlines() if line.startswith("pair")] == [
        "pair 1 of 2: succeeded",
        "pair 2 of 2: succeeded",
    ]


@pytest.mark.slow
def test_progress_of_several_languages(capsys: pytest.CaptureFixture[str]) -> None:
    src, tgt = planted_embeddings(60)
    quick = {**QUICK, "start": "identity", "refine": 1}
    result = qwp.align_all({"a": src, "b": tgt, "c": src}, progress=True, **quick)
    assert "pair 3 of 3: " in capsys.readouterr().err
    assert repr(result).startswith("AllPairs(a, b, c: ")


def test_stages_and_the_verdict_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    src, tgt = shared_words()
    with caplog.at_level(logging.INFO, logger="qwp"):
        found = qwp.align(src, tgt, **IDENTICAL)
    told = [re.sub(r"\d+\.\d s", "N s", record.getMessage()) for record in caplog.records]
    assert told == [
        *("prepare begins", "prepare ends after N s: 250 x 12, 250 x 12"),
        *("initialize begins", "initialize ends after N s", "refine begins", "refine ends after N s"),
        *("verdict begins", "verdict ends after N s"),
        f"succeeded: {found.quality.explanation}",
    ]
    assert all(record.levelno == logging.INFO and record.name.startswith("qwp.") for record in caplog.records)


def test_the_library_is_quiet_by_default(capfd: pytest.CaptureFixture[str]) -> None:
    qwp.align(*shared_words(), **IDENTICAL)
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_the_demo_returns_its_alignment(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    src, tgt, lexicon = load_demo()
    monkeypatch.setattr("qwp.spaces.demo.load_demo", lambda: (src.head(1000), tgt.head(1000), lexicon))
    found = qwp.demo(threads=1)
    assert capfd.readouterr() == ("", "")
    assert repr(found).startswith("Alignment(en 1,000 x ")
    assert found.quality.verdict == "succeeded"
    assert found.provenance.method == "qwp"
    assert found.provenance.config == qwp.QWP().config()
    assert qwp.evaluate(found, lexicon, bootstrap=0).p_at_1() > 0.6


# --------------------------------------------------------------------------- types and help


if TYPE_CHECKING:
    # mypy reports a wrong name or value here, and an unused `ignore` where it no longer sees one.
    alignment = qwp.align("en.vec", {"a": [1.0]}, method="wp", start="lexicon", lexicon="pairs.txt", coreset="lloyd")
    words: list[str] = alignment.translate(np.array(["house"])).unknown
    first: str = alignment.translate(vectors=np.ones(3))[0][0].word
    qwp.align((["a"], [[1.0]]), [[1.0]], lexicon={"a": "b"}, progress=True)
    qwp.align_many([("en.vec", np.ones((2, 2)))], progress=lambda number, event: logging.info("%s", event.stage))
    qwp.evaluate(alignment, [("house", "casa")])
    qwp.align_all({"en": "en.vec", "es": "es.vec"}, map="orthogonal", out="all")
    qwp.demo(seed=1)
    qwp.align("a", "b", corset="x")  # type: ignore[call-arg]
    qwp.align("a", "b", start="lexikon")  # type: ignore[arg-type]
    qwp.align("a", "b", method="qpw")  # type: ignore[arg-type]
    qwp.align_many([], ot="exactly")  # type: ignore[arg-type]
    qwp.align("a", "b", progress="yes")  # type: ignore[arg-type]
    qwp.align("a", 5)  # type: ignore[arg-type]


def test_help_explains_every_parameter() -> None:
    for aligner in METHODS.values():
        text = pydoc.plain(pydoc.render_doc(aligner))
        for name, parameter in aligner.parameters().items():
            kind = parameter.type.__name__
            assert f" {name} ({kind}, default {parameter.shown_default}): {parameter.declared.help}" in text
        # As every docstring: the first line, a blank line, and nothing indented further than its section.
        doc = aligner.__doc__ or ""
        assert doc == inspect.cleandoc(doc)
        assert "\n\nParameters:\n    " in doc
