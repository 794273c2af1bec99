"""One real run of the demo, and properties that do not depend on tuning."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from qwp import Alignment, Lexicon
from qwp.cli import demo
from qwp.judging.verdict import Quality
from qwp.spaces.demo import load_demo
from qwp.spaces.embeddings import Embeddings
from tests.cli.conftest import leftovers, qwp

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.slow
def test_the_demo_works_and_writes_its_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Use the most frequent words only; `make wheel` runs the whole demo.
    src, tgt, lexicon = load_demo()
    monkeypatch.setattr(demo, "load_demo", lambda: (src.head(2000), tgt.head(2000), lexicon))
    report = tmp_path / "r.html"
    ran = qwp("demo", "--report", report, "--json", "--threads", 1)
    assert ran.code == 0, ran.err
    about = ran.json
    assert about["verdict"] == "succeeded"
    assert about["p_at_1"] == about["evaluation"]["scores"]["csls"]["covered"]["P@1"]["value"] > 0.65
    assert about["evaluation"]["coverage"]["covered_source_words"] > 700
    assert about["provenance"]["src"]["path"] == "en.npz"
    assert len(about["translations"]) >= 14
    assert sum(bool(t["right"]) for t in about["translations"]) >= 8
    assert "epoch 1" in ran.err
    page = ET.fromstring(report.read_text("utf-8"))
    assert (
        len(list(page.iter(f"{SVG}svg"))) == 9
    )  # bands, P@k, reliability, map, hubs, start, loop, two of the refinement
    assert sum(e.get("class") == "word src" for e in page.iter(f"{SVG}text")) == 40
    assert leftovers(tmp_path) == []


def test_the_folder_of_the_report_is_checked_first(tmp_path: Path) -> None:
    ran = qwp("demo", "--report", tmp_path / "none" / "r.html")
    assert ran.code == 2
    assert "does not exist, expected a folder" in ran.err
    assert "initialization" not in ran.err


@pytest.fixture
def instead(aligned: Path, monkeypatch: pytest.MonkeyPatch) -> Alignment:
    """Replace the alignment of the demo by a small one."""
    from qwp import Lexicon, api

    alignment = Alignment.load(aligned)
    words = list(alignment.src.words)
    words[1], words[299] = demo.EXAMPLES[:2]  # the only example words in the vocabulary
    src = replace(alignment.src_side, source=Embeddings(words, alignment.src.vectors))
    alignment = replace(alignment, src_side=src)
    monkeypatch.setattr(api, "align", lambda *_, **__: alignment)
    lexicon = Lexicon(tuple((words[i], f"t{i}") for i in range(200)))
    monkeypatch.setattr(demo, "load_demo", lambda: (alignment.src, alignment.tgt, lexicon))
    return alignment


def test_the_table_ticks_what_the_lexicon_confirms(instead: Alignment, tmp_path: Path) -> None:
    ran = qwp("demo", "--report", tmp_path / "r.html")
    assert ran.code == 0
    [first] = [line for line in ran.out.splitlines() if f"│ {demo.EXAMPLES[0]} " in line]
    [last] = [line for line in ran.out.splitlines() if f"│ {demo.EXAMPLES[1]} " in line]
    assert "✓" in first
    assert "✓" not in last
    assert "✗" not in last
    for expected in ("P@1", "CSLS, over 200 covered of 200 source words", "Succeeded: ", "in all"):
        assert expected in ran.out


def test_the_result_is_saved_with_the_lexicon(instead: Alignment, tmp_path: Path) -> None:
    out = tmp_path / "demo"
    ran = qwp("demo", "--report", tmp_path / "r.html", "--out", out)
    assert ran.code == 0, ran.err
    assert Alignment.load(out).src.words == instead.src.words
    assert Lexicon.load(out / "lexicon.tsv").pairs
    assert f"qwp explore {out} --lexicon" in ran.err.replace("\n", "")
    refused = qwp("demo", "--report", tmp_path / "r.html", "--out", tmp_path / "none" / "demo")
    assert refused.code == 2
    assert "does not exist" in refused.err


def test_the_report_has_all_sections(instead: Alignment, tmp_path: Path) -> None:
    assert qwp("demo", "--report", tmp_path / "r.html").code == 0
    page = ET.fromstring((tmp_path / "r.html").read_text("utf-8"))
    names = [section.get("id") for section in page.iter("section")]
    assert names == [
        *("figures", "scores", "bands", "reliability", "mistakes", "translations", "map", "hubness", "curves"),
        "provenance",
    ]
    provenance = page.find(".//section[@id='provenance']")
    assert provenance is not None
    rows = {row[0].text: "".join(row[1].itertext()) for row in provenance.iter("tr")}
    assert (rows["config.map"], rows["config.refine_map"]) == ("reweighted", "reweighted")


def test_a_failed_demo_exits_with_code_3(instead: Alignment, tmp_path: Path) -> None:
    failed = Quality.from_dict({**instead.quality.to_dict(), "verdict": "failed", "explanation": "It failed."})
    object.__setattr__(instead, "quality", failed)
    ran = qwp("demo", "--report", tmp_path / "r.html", "--json")
    assert (ran.code, ran.json["verdict"]) == (3, "failed")
    assert "verdict bad" in (tmp_path / "r.html").read_text()
