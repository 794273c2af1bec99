"""Files of reports: the page and its pictures."""

from __future__ import annotations

import importlib.util
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

import qwp
from qwp import InputError, Lexicon
from qwp.report.analysis import Analysis, analyse
from qwp.report.writing import (
    bands,
    check_plots,
    curves,
    default_title,
    measured,
    p_at_k,
    pictures,
    sections,
    write_page,
    write_plots,
    write_report,
)
from qwp.results.alignment import Alignment
from tests.report.pages import SVG, text, tree


def bodies(alignment: Alignment, *lexicons: Lexicon, max_words: int = 1000) -> dict[str, str]:
    found = analyse(alignment, {f"gold{i}": each for i, each in enumerate(lexicons)}, max_words=max_words)
    return {section.name: section.html() for section in sections(found)}


def test_all_sections_with_a_lexicon(alignment: Alignment, lexicon: Lexicon) -> None:
    found = bodies(alignment, lexicon)
    names = ["figures", "scores", "bands", "reliability", "mistakes", "translations", "map", "hubness", "curves"]
    assert list(found) == names
    assert "over 200 covered of 201 source words" in found["figures"]
    assert "cosine (before)" in found["hubness"]
    assert "CSLS (after)" in found["hubness"]
    assert "200 words of the lexicon" in found["reliability"]


def test_scores_have_intervals_and_lead_the_page(alignment: Alignment, lexicon: Lexicon) -> None:
    analysis = analyse(alignment, {"gold": lexicon})
    score = analysis.evaluations["gold"].scores["csls"].covered["P@1"]
    expected = f"Measured with a lexicon: the translation is right for {100 * score.value:.1f} % ("
    assert measured(analysis).startswith(expected)
    assert score.percent() in bodies(alignment, lexicon)["scores"]
    assert measured(analyse(alignment, {})) == ""
    drawn = dict(p_at_k(analysis.evaluations["gold"]).series)
    assert drawn["csls"][0].value == pytest.approx(score.value)
    values = [dot.value for dot in drawn["csls"]]
    assert values == sorted(values)


def test_words_that_the_fit_was_given_are_left_out(alignment: Alignment, lexicon: Lexicon) -> None:
    seeds = Lexicon(tuple((f"word{i}", f"wort{i}") for i in range(50)))
    of = replace(alignment.provenance, supervision={"lexicon": seeds.sha256(), "start_matrix": None})
    supervised = replace(alignment, provenance=of)
    found = analyse(supervised, {"gold": lexicon, "seeds": seeds})
    assert found.left_out == {"gold": 50, "seeds": 50}
    assert list(found.evaluations) == ["gold"]
    assert found.evaluations["gold"].coverage.covered_source_words == 150
    assert found.reliability is not None
    assert found.reliability.measured.words == 150
    scores = bodies(supervised, lexicon, seeds)["scores"]
    assert "50 source words of gold1 are left out of all figures" in scores
    assert "no words are left to score with" in scores
    assert "Caution" in bodies(supervised, lexicon)["scores"]  # the seeds are not found
    assert "Caution" not in bodies(alignment, lexicon)["scores"]


def test_without_a_lexicon_the_page_explains_what_is_missing(alignment: Alignment) -> None:
    found = bodies(alignment)
    assert not {"reliability", "mistakes"} & set(found)
    assert "The report was made without a lexicon" in found["scores"]
    assert "<code>qwp report DIR --lexicon FILE</code>" in found["scores"]
    assert "P@1" not in found["figures"]


def test_a_truncated_vocabulary_is_noted(alignment: Alignment, lexicon: Lexicon) -> None:
    assert "most frequent words. Fewer words compete" in bodies(alignment, lexicon, max_words=100)["figures"]
    assert "Fewer words compete" not in bodies(alignment, lexicon)["figures"]


def test_several_lexicons_are_named(alignment: Alignment, lexicon: Lexicon) -> None:
    found = bodies(alignment, lexicon, Lexicon((("word1", "wort1"),)))
    assert "P@1, gold1" in found["figures"]
    assert "gold0" in found["scores"]
    assert "gold" not in bodies(alignment, lexicon)["scores"]


def test_the_title_names_both_sides(alignment: Alignment) -> None:
    assert default_title(analyse(alignment, {})) == "en and de in one space"


@pytest.mark.parametrize("verdict", ["weak", "undecided", "unjudged", "failed"])
def test_every_verdict_has_its_page(alignment: Alignment, verdict: str) -> None:
    judged = replace(alignment, quality=replace(alignment.quality, verdict=verdict))
    found = bodies(judged)
    assert ("estimated correct" in found["bands"]) == (verdict != "failed")


def test_a_seed_lexicon_and_an_estimated_order_are_mentioned(alignment: Alignment) -> None:
    of = replace(alignment.provenance, supervision={"lexicon": "0" * 64}, order="estimated")
    found = bodies(replace(alignment, provenance=of))["figures"]
    assert "qwp, seed 0, with a lexicon" in found
    assert "estimated from the vectors" in found
    assert "with a lexicon" not in bodies(alignment)["figures"]


def test_curves_come_from_the_history() -> None:
    history = [
        {"stage": "initialize", "step": 1, "objective": 3.0},
        {"stage": "loop", "step": 1, "objective": 2.0},
        {"stage": "loop", "step": 2, "objective": 1.0},
        {"stage": "refine", "step": 1, "n_pairs": 5},
        {"stage": "other", "step": 1},
    ]
    drawn = curves(history)
    assert {name: (list(c.x), list(c.y)) for name, c in drawn.items()} == {
        "initialize-objective": ([1.0], [3.0]),
        "loop-objective": ([1.0, 2.0], [2.0, 1.0]),
        "refine-n_pairs": ([1.0], [5.0]),
    }


def test_pictures_are_those_that_can_be_drawn(alignment: Alignment, lexicon: Lexicon) -> None:
    measured = pictures(analyse(alignment, {"gold": lexicon}))
    assert list(measured) == ["bands", "p-at-k", "reliability", "hubness", "loop-objective", "map"]
    assert all(picture.title and picture.svg() for picture in measured.values())
    assert list(pictures(analyse(alignment, {}))) == ["bands", "hubness", "loop-objective", "map"]


def test_bands_have_a_second_series_only_with_a_lexicon(alignment: Alignment, lexicon: Lexicon) -> None:
    assert [name for name, _ in bands(analyse(alignment, {}).bands).series] == ["estimated"]
    both = bands(analyse(alignment, {"gold": lexicon}).bands)
    assert [name for name, _ in both.series] == ["estimated", "measured with the lexicon"]
    assert both.x_ticks == [(1.0, "300")]


@pytest.fixture(scope="module")
def analysis(alignment: Alignment, lexicon: Lexicon) -> Analysis:
    return analyse(alignment, {"gold": lexicon})


def test_a_report_is_one_page_and_returns_its_figures(alignment: Alignment, lexicon: Lexicon, tmp_path: Path) -> None:
    found = qwp.write_report(alignment, tmp_path / "r.html", lexicon)
    page = tree((tmp_path / "r.html").read_text("utf-8"))
    assert found.evaluations["lexicon"].coverage.covered_source_words == 200
    heading = page.find(".//h1")
    assert heading is not None
    assert text(heading) == "en and de in one space"
    assert len(list(page.iter(f"{SVG}svg"))) == 6
    assert [path.name for path in tmp_path.iterdir()] == ["r.html"]


def test_lexicon_as_dict_and_own_title(alignment: Alignment, tmp_path: Path) -> None:
    write_report(alignment, str(tmp_path / "r.html"), {"word1": "wort1"}, title="<Mine>", words=["word1"])
    assert "<h1>&lt;Mine&gt;</h1>" in (tmp_path / "r.html").read_text("utf-8")


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_an_interrupted_write_keeps_the_old_file(
    analysis: Analysis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    path = tmp_path / "r.html"
    path.write_text("old")

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(error):
        write_page(path, analysis)
    assert [p.name for p in tmp_path.iterdir()] == ["r.html"]
    assert path.read_text() == "old"


def test_a_bad_path_raises_before_the_analysis(alignment: Alignment, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist, expected a folder to write into"):
        write_report(alignment, tmp_path / "none" / "r.html", "no-such-lexicon.txt")
    with pytest.raises(InputError, match="is a directory, expected the name of a file"):
        write_report(alignment, tmp_path)


def test_each_picture_is_a_file(analysis: Analysis, tmp_path: Path) -> None:
    written = write_plots(tmp_path / "svg", analysis)
    assert [path.name for path in written] == [
        f"{name}.svg" for name in ("bands", "p-at-k", "reliability", "hubness", "loop-objective", "map")
    ]
    for path in written:
        assert ET.fromstring(path.read_bytes()).tag == f"{SVG}svg"


@pytest.mark.skipif(importlib.util.find_spec("resvg_py") is None, reason="resvg-py is not installed")
def test_pictures_as_png(analysis: Analysis, tmp_path: Path) -> None:
    written = write_plots(tmp_path / "png", analysis, "png")
    assert len(written) == 6
    head = written[0].read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    assert [int.from_bytes(head[at : at + 4], "big") for at in (16, 20)] == [960, 560]


def test_unwritable_plots_raise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file; expected the name of a folder for the pictures"):
        check_plots(tmp_path / "file", "svg")
    with pytest.raises(InputError, match="none does not exist, expected a folder to put svg into"):
        check_plots(tmp_path / "none" / "svg", "svg")
    with pytest.raises(InputError, match="kind='pdf' is not known; expected one of svg, png"):
        check_plots(tmp_path, "pdf")
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(InputError, match=r'--png needs resvg-py, which is not installed: pip install "qwp\[plot\]"'):
        check_plots(tmp_path, "png")
