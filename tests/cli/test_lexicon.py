from __future__ import annotations

import csv
import json
import shutil
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from qwp import Alignment, Lexicon
from qwp.cli import lexicon
from qwp.results.lexicon import InducedPair
from qwp.search.spelling import Spelling
from qwp.spaces.embeddings import SIDES
from tests.cli.conftest import Problem, qwp

HEADER = ["src", "tgt", "score", "margin", "mutual", "confidence"]


def test_tsv_equals_the_induced_lexicon_of_the_library(aligned: Path, tmp_path: Path) -> None:
    ran = qwp("lexicon", aligned, "--out", tmp_path / "l.tsv", "--json")
    assert ran.code == 0
    rows = [line.split("\t") for line in (tmp_path / "l.tsv").read_text().splitlines()]
    expected = Alignment.load(aligned).induce()
    assert rows[0] == HEADER
    assert [(r[0], r[1], r[4]) for r in rows[1:]] == [(p.src, p.tgt, "yes") for p in expected]
    assert float(rows[1][2]) == pytest.approx(expected[0].score, abs=1e-6)
    assert ran.json["pairs"] == ran.json["mutual"] == len(expected)


def test_all_words_a_limit_and_a_threshold(aligned: Path, tmp_path: Path) -> None:
    out = tmp_path / "l.tsv"
    assert qwp("lexicon", aligned, "--out", out, "--all", "--json").json["pairs"] == 300
    assert qwp("lexicon", aligned, "--out", out, "--all", "--max-words", 20, "--json").json["pairs"] == 20
    ran = qwp("lexicon", aligned, "--out", out, "--all", "--min-confidence", 0.8, "--json")
    rows = out.read_text().splitlines()[1:]
    assert ran.json["pairs"] == len(rows)
    assert ran.json["pairs"] + ran.json["below_confidence"] == 300
    assert all(float(row.split("\t")[5]) >= 0.8 for row in rows)


def test_accepted_pairs_are_pinned(aligned: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(aligned, tmp_path / "aligned"))
    before = {pair.src: pair for pair in Alignment.load(folder).induce(mutual_only=False)}
    first, second = list(before)[:2]
    other = before[second].tgt
    Lexicon(((first, other),)).save(folder / "corrections.tsv")
    ran = qwp("lexicon", folder, "--out", tmp_path / "l.tsv", "--json")
    assert ran.json["pinned"] == 1
    rows = [line.split("\t") for line in (tmp_path / "l.tsv").read_text().splitlines()[1:]]
    assert [(row[1], row[4], row[5]) for row in rows if row[0] == first] == [(other, "yes", "1.000000")]
    assert second not in [row[0] for row in rows]  # its translation is taken
    assert all(row[4] == "yes" for row in rows)
    assert "(corrections.tsv), which are pinned: 1" in qwp("lexicon", folder, "--out", tmp_path / "l.tsv").err


def test_approximate_search_shows_its_recall(aligned: Path, tmp_path: Path) -> None:
    pytest.importorskip("faiss", reason='approximate search needs FAISS: pip install "qwp[faiss]"')
    exact, near = tmp_path / "exact.tsv", tmp_path / "near.tsv"
    assert qwp("lexicon", aligned, "--out", exact, "--json").json["recall_at_10"] is None
    ran = qwp("lexicon", aligned, "--out", near, "--approximate", "--json")
    loaded = Alignment.load(aligned)
    assert ran.json["recall_at_10"] == min(loaded.approximate_recall(side) for side in SIDES)
    assert 0.9 <= ran.json["recall_at_10"] <= 1
    both = [{tuple(line.split("\t")[:2]) for line in file.read_text().splitlines()} for file in (exact, near)]
    assert len(both[0] & both[1]) >= 0.95 * len(both[0])
    text = qwp("lexicon", aligned, "--out", near, "--approximate")
    expected = f"approximate search: recall@10 {ran.json['recall_at_10']:.2f}, measured on 300 words"
    assert expected in text.err.splitlines()
    assert "recall" not in qwp("lexicon", aligned, "--out", exact).err


def test_approximate_translations_show_their_recall_too(aligned: Path) -> None:
    pytest.importorskip("faiss", reason='approximate search needs FAISS: pip install "qwp[faiss]"')
    ran = qwp("translate", aligned, "t5", "--reverse", "--approximate", "--json")
    assert ran.json["translations"]["t5"][0]["word"] == "s5"
    assert ran.json["recall_at_10"] == Alignment.load(aligned).approximate_recall("tgt")
    assert qwp("translate", aligned, "s3", "--json").json["recall_at_10"] is None
    refused = qwp("translate", aligned, "s3", "--approximate", "--retrieval", "softmax")
    assert (refused.code, refused.out) == (2, "")
    assert "'softmax' cannot be approximated" in refused.err
    text = qwp("translate", aligned, "s3", "--approximate").err
    assert "approximate search: recall@10 1.00, measured on 300 words" in text.splitlines()


def test_missing_faiss_is_explained(aligned: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    ran = qwp("lexicon", aligned, "--out", tmp_path / "l.tsv", "--approximate")
    assert ran.code == 2
    assert 'pip install "qwp[faiss]"' in ran.err
    assert list(tmp_path.iterdir()) == []


def test_csv_and_muse_can_be_read_as_a_dictionary(aligned: Path, tmp_path: Path) -> None:
    expected = tuple((p.src, p.tgt) for p in Alignment.load(aligned).induce())
    for name, args in (("l.csv", []), ("l.txt", ["--format", "muse"])):
        ran = qwp("lexicon", aligned, "--out", tmp_path / name, *args)
        assert ran.out == ""
        assert f"{len(expected)} pairs" in ran.err
        assert Lexicon.load(tmp_path / name).pairs == expected


def test_without_a_file_all_rows_are_on_stdout(aligned: Path, tmp_path: Path) -> None:
    qwp("lexicon", aligned, "--out", tmp_path / "l.tsv")
    ran = qwp("lexicon", aligned)
    assert ran.out == (tmp_path / "l.tsv").read_text()
    assert ran.err == ""
    muse = qwp("lexicon", aligned, "--format", "muse").out.splitlines()
    assert len(muse) == ran.out.count("\n") - 1
    assert muse[0].split(" ") == ran.out.splitlines()[1].split("\t")[:2]


def test_the_table_shows_the_first_pairs_and_counts_the_others(aligned: Path, tmp_path: Path) -> None:
    pairs = Alignment.load(aligned).induce()
    ran = qwp("lexicon", aligned, "--format", "table")
    assert ran.out.count("│ yes") == 20
    assert "judging" not in ran.err
    assert f"{len(pairs) - 20} more pairs: --out FILE writes all, --format tsv prints all" in ran.err
    short = qwp("lexicon", aligned, "--format", "table", "--max-words", 5)
    assert "more pairs" not in short.err
    qwp("lexicon", aligned, "--format", "table", "--out", tmp_path / "l.txt")
    assert (tmp_path / "l.txt").read_text().count("│ yes") == len(pairs)


def test_json_without_a_file_holds_the_pairs(aligned: Path, tmp_path: Path) -> None:
    about = qwp("lexicon", aligned, "--json").json
    assert about == qwp("lexicon", aligned, "--format", "json").json
    assert (about["out"], about["format"], about["pairs"]) == (None, "json", len(about["lexicon"]))
    first = Alignment.load(aligned).induce()[0]
    assert about["lexicon"][0] == asdict(first)
    out = tmp_path / "l.json"
    told = qwp("lexicon", aligned, "--out", out, "--json").json
    assert "lexicon" not in told
    assert json.loads(out.read_text()) == {**told, "lexicon": about["lexicon"]}
    refused = qwp("lexicon", aligned, "--json", "--format", "csv")
    assert refused.code == 2
    assert "--json and --format csv ask for two formats on stdout: add --out FILE for one" in refused.err


def pair(src: str, tgt: str) -> InducedPair:
    return InducedPair(src, tgt, 0.5, 0.1, True, 0.9)


ODD = [
    'a,"b',
    "c d",
    " e",
    "f\u00a0",
    "\x1b[31m",
    "\u202eg",
    "=1+1",
    "+h",
    "-i",
    "@j",
    "'k",
    "\u2028",
    "\x85",
    "\ufeffl",
    "#",
]
UNFIT = ["tab\there", "line\nbreak", "line\rend", "nul\0"]


@pytest.mark.parametrize("format", ["csv", "muse"])
def test_a_word_is_restored_exactly_or_left_out(tmp_path: Path, format: str) -> None:
    path = tmp_path / ("x.csv" if format == "csv" else "x.txt")
    for word in (*ODD, *UNFIT):
        for each in (pair(word, "x"), pair("x", word)):
            if lexicon._fits(each, format):
                path.write_bytes(b"".join(lexicon._encoded([each], format)))
                assert Lexicon.load(path, format=format).pairs == ((each.src, each.tgt),)
            else:
                assert word in UNFIT or word[0] in " \ufeff" or " " in word


def test_odd_words_are_quoted_or_left_out(tmp_path: Path) -> None:
    pairs = [pair('a,"b', "c d"), pair("tab\there", "x")]
    assert [[lexicon._fits(p, f) for p in pairs] for f in lexicon.FILE_FORMATS] == [
        [True, False],
        [True, True],
        [False, False],
    ]
    path = tmp_path / "x.csv"
    path.write_bytes(b"".join(lexicon._encoded(pairs, "csv")))
    with path.open(newline="") as file:
        assert [row[:2] for row in csv.reader(file)] == [HEADER[:2], ['a,"b', "c d"], ["tab\there", "x"]]


def test_help_warns_of_formulas_in_spreadsheets() -> None:
    assert "formula" in " ".join(qwp("lexicon", "--help").out.split())


def test_bad_values(aligned: Path, tmp_path: Path) -> None:
    cases: list[tuple[list[str], str]] = [
        (["--format", "x"], "--format x is not known; expected one of tsv, csv, muse, table, json"),
        (["--min-confidence", "2"], "min_confidence=2.0 is out of range; expected 0 to 1"),
        (["--min-confidence", "nan"], "min_confidence=nan is out of range"),
        (["--max-words", "0"], "max_words=0 is out of range; expected 1 to 100,000,000"),
        (["--max-words", str(10**12)], "max_words=1000000000000 is out of range"),
        (["--csls-k", "-3"], "csls_k=-3 is out of range"),
        (["--max-memory", "1e300"], "max_memory=1e+300 is out of range"),
    ]
    for args, message in cases:
        ran = qwp("lexicon", aligned, "--out", tmp_path / "l.tsv", *args)
        assert ran.code == 2
        assert message in ran.err
        assert list(tmp_path.iterdir()) == []


def test_spelling_is_labelled(aligned: Path, tmp_path: Path) -> None:
    out = tmp_path / "l.tsv"
    plain = qwp("lexicon", aligned, "--out", out, "--json")
    assert plain.json["spelling"] == 0.0
    before = out.read_text()
    ran = qwp("lexicon", aligned, "--out", out, "--spelling", "--json")
    assert ran.json["spelling"] == Spelling.weight
    head, *rows = out.read_text().splitlines()
    assert head.split("\t") == ["src", "tgt", "score (csls + spelling)", "margin", "mutual", "confidence"]
    # The words of the two sides have no letter in common: nothing but the header differs.
    assert rows == before.splitlines()[1:]
    text = qwp("lexicon", aligned, "--out", out, "--spelling")
    expected = "scores are csls + spelling, but the two languages do not share an alphabet: spelling adds nothing"
    assert expected in text.err
    assert "the confidence is that of the pair by CSLS alone" in text.err
    assert "scores are" not in qwp("lexicon", aligned, "--out", out).err


def test_a_missing_judgement_is_announced(problem: Problem, tmp_path: Path) -> None:
    args = ["--method", "procrustes", "--lexicon", problem.lexicon, "--verdict", "none", "-q", "--threads", 1]
    assert qwp("align", problem.src, problem.tgt, "--out", tmp_path / "d", *args).code == 0
    ran = qwp("lexicon", tmp_path / "d", "--max-words", 3)
    assert ran.err == (
        "warning: the alignment has no estimate, which confidences need: qwp judges it now, as long as a fit does\n"
    )
    assert ran.out.count("\n") == 4
