"""`qwp report` on results of every kind."""

from __future__ import annotations

import json
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from qwp.results import schema
from tests.cli.conftest import QUICK, Problem, leftovers, qwp

SVG = "{http://www.w3.org/2000/svg}"


def sections(path: Path) -> dict[str, str]:
    page = ET.fromstring(path.read_text("utf-8"))
    return {section.attrib["id"]: "".join(section.itertext()) for section in page.iter("section")}


def test_a_page_with_a_lexicon_and_its_figures_as_json(aligned: Path, problem: Problem, tmp_path: Path) -> None:
    out = tmp_path / "r.html"
    ran = qwp("report", aligned, "--lexicon", problem.lexicon, "-o", out, "--svg", tmp_path / "plots", "--json")
    assert ran.code == 0, ran.err
    about = ran.json
    assert (about["command"], about["out"], about["verdict"]) == ("report", str(out), "succeeded")
    scores = about["evaluations"][str(problem.lexicon)]["scores"]["csls"]["covered"]
    assert about["reliability"]["measured"]["share"] == pytest.approx(scores["P@1"]["value"])
    assert about["words"] == about["words_in_all"] == {"src": 300, "tgt": 300}
    assert about["hubness"]["k"] == 10
    assert about["provenance"]["method"] == "qwp"
    assert {"reliability", "mistakes", "hubness", "map"} <= set(sections(out))
    assert sorted(path.name for path in (tmp_path / "plots").iterdir()) == sorted(
        Path(name).name for name in about["plots"]
    )
    assert "map.svg" in {Path(name).name for name in about["plots"]}
    assert leftovers(tmp_path) == []


def test_without_a_lexicon_it_says_what_is_missing(aligned: Path, tmp_path: Path) -> None:
    ran = qwp("report", aligned, "-o", tmp_path / "r.html", "--title", "Mine & yours")
    assert ran.code == 0, ran.err
    assert "no --lexicon was given: the page has no scores against a dictionary" in ran.err
    assert "skewness" in ran.out
    found = sections(tmp_path / "r.html")
    assert "qwp report DIR --lexicon FILE" in found["scores"]
    assert "reliability" not in found
    assert "<h1>Mine &amp; yours</h1>" in (tmp_path / "r.html").read_text("utf-8")


def test_only_frequent_words_of_large_vocabularies_are_analysed(aligned: Path, tmp_path: Path) -> None:
    ran = qwp("report", aligned, "-o", tmp_path / "r.html", "--max-words", 50, "--json")
    assert ran.json["words"] == {"src": 50, "tgt": 50}
    assert "All figures below are for the 50 and 50 most frequent words" in sections(tmp_path / "r.html")["figures"]


def test_the_lexicon_can_be_reversed_and_repeated(aligned: Path, problem: Problem, tmp_path: Path) -> None:
    turned = tmp_path / "turned.txt"
    lines = [line.split() for line in problem.lexicon.read_text().splitlines()]
    turned.write_text("".join(f"{tgt} {src}\n" for src, tgt in lines))
    ran = qwp("report", aligned, "-l", turned, "-o", tmp_path / "r.html")
    assert ran.code == 2
    assert "no word of the lexicon is covered" in ran.err
    assert not (tmp_path / "r.html").exists()
    assert qwp("report", aligned, "-l", turned, "--reverse", "-o", tmp_path / "r.html").code == 0
    ran = qwp("report", aligned, "-l", turned, "-l", turned, "-o", tmp_path / "r.html")
    assert ran.code == 2
    assert "was given twice; expected each dictionary once" in ran.err


def test_a_result_without_vectors_is_reported_if_its_files_exist(problem: Problem, tmp_path: Path) -> None:
    src = tmp_path / "moving.vec"
    shutil.copy(problem.src, src)
    options = (*QUICK, "--max-vocab", 250, "--save", "map", "--verdict", "none", "--quiet")
    assert qwp("align", src, problem.tgt, "--out", tmp_path / "map", *options).code == 0
    ran = qwp("report", tmp_path / "map", "-o", tmp_path / "r.html")
    assert ran.code == 0, ran.err
    assert "judging the alignment first" in ran.err
    assert "Not judged" in (tmp_path / "r.html").read_text("utf-8")
    src.unlink()
    ran = qwp("report", tmp_path / "map", "-o", tmp_path / "again.html")
    assert ran.code == 2
    assert "holds the maps but not the vectors of src (--save map)" in ran.err
    assert "put back the file that was aligned, or align again without --save map" in ran.err
    assert not (tmp_path / "again.html").exists()


def test_the_page_of_a_failed_alignment_reports_the_failure(aligned: Path, tmp_path: Path) -> None:
    failed = tmp_path / "failed"
    shutil.copytree(aligned, failed)
    index = json.loads((failed / "alignment.json").read_text())
    index["quality"].update(verdict="failed", explanation="It failed & badly.")
    del index["sha256"]
    index["sha256"] = schema.digest(index)
    (failed / "alignment.json").write_text(json.dumps(index))
    ran = qwp("report", failed, "-o", tmp_path / "r.html")
    assert ran.code == 0
    assert "this alignment failed" in ran.err
    assert 'class="verdict bad"' in (tmp_path / "r.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--max-words", 0), "max_words"),
        (("--lexicon", "none.txt"), "none.txt does not exist"),
        (("-o", "none/r.html"), "the folder none does not exist"),
        (("--svg", "none/plots"), "the folder none does not exist, expected a folder to put plots into"),
    ],
)
def test_bad_options_are_refused_before_the_work(aligned: Path, args: tuple[str, ...], message: str) -> None:
    ran = qwp("report", aligned, *args)
    assert ran.code == 2
    assert message in ran.err
