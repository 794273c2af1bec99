"""Files of reports: the page and its pictures."""

from __future__ import annotations

import importlib.util
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import qwp
from qwp import InputError, Lexicon
from qwp.report.analysis import Analysis, analyse
from qwp.report.writing import check_plots, write_page, write_plots, write_report
from qwp.results.alignment import Alignment
from tests.report.pages import SVG, text, tree


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
