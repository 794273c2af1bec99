"""What spelling brings: tables are those of the records, what is missing runs, known candidates have known scores."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qwp
from benchmarks import spelling
from benchmarks.ablation import back
from benchmarks.common import Record, read_records
from benchmarks.spelling import CHOSEN, PAIRS, TEST, TRAIN, Candidates, Pair
from qwp import Alignment, Lexicon
from qwp.search.spelling import COMPARED, WEIGHT

RECORDS = read_records(spelling.RESULTS)
FINAL = [record for record in RECORDS if record["suite"] == "final"]
CHOICE = [record for record in RECORDS if record["suite"] == "choice"]


def test_the_document_holds_exactly_the_tables_of_the_records() -> None:
    text = spelling.DOCUMENT.read_text()
    assert text.count(spelling.BEGIN) == text.count(spelling.END) == 1
    assert text.split(spelling.BEGIN)[1].split(spelling.END)[0] == "\n" + spelling.tables(RECORDS)


def test_every_pair_was_scored_both_ways_and_once() -> None:
    expected = [(pair.name, split) for pair in PAIRS for split in pair.splits for _ in range(2)]
    assert sorted((r["pair"], r["split"]) for r in FINAL) == sorted(expected)
    assert len({(r["pair"], r["split"], r["direction"]) for r in FINAL}) == len(FINAL)
    chosen_on = [pair.name for pair in PAIRS if pair.one_script and TRAIN in pair.splits for _ in range(2)]
    assert sorted(r["pair"] for r in CHOICE) == sorted(chosen_on)
    assert {r["split"] for r in CHOICE} == {TRAIN}


def test_the_weight_of_the_package_is_the_one_that_was_measured() -> None:
    assert {r["weight"] for r in FINAL} == {WEIGHT}
    assert str(COMPARED) in CHOICE[0]["depths"]
    plain = {(r["pair"], r["direction"]): r for r in FINAL if r["split"] == TRAIN}
    for record in CHOICE:
        # The sketch of the benchmark and the retrieval of the package are of one mind.
        final = plain[record["pair"], record["direction"]]
        assert record["kinds"][CHOSEN][str(WEIGHT)] == pytest.approx(final["spelled"], abs=0.1)
        assert record["plain"] == pytest.approx(final["plain"], abs=0.1)


def test_it_wins_on_the_mean_and_loses_nowhere_by_more_than_a_point() -> None:
    one_script = {pair.name for pair in PAIRS if pair.one_script}
    for split in (TRAIN, TEST):
        gains = {
            (r["pair"], r["direction"]): r["spelled"] - r["plain"]
            for r in FINAL
            if r["split"] == split and r["pair"] in one_script
        }
        assert np.mean(list(gains.values())) > 1
        assert min(gains.values()) > -1
    assert all(r["spelled"] == r["plain"] for r in FINAL if r["pair"] not in one_script)


def test_candidates_with_known_scores() -> None:
    found = Candidates(
        ["nation"],
        ["pueblo", "nación", "casa"],
        np.array([[0, 1, 2]]),
        np.array([[0.5, 0.4, 0.3]]),
        np.array([[False, True, False]]),
    )
    table = np.array([[0.0, 0.5, 0.0]])
    assert found.p1(table, 0.0) == 0.0
    assert found.p1(table, 0.3) == 100.0
    assert found.p1(table, 0.3, depth=1) == 0.0
    choices = spelling.choices(found)
    assert choices["plain"] == 0.0
    assert choices["kinds"]["the same word"]["1.2"] == 0.0
    # Five letters of six: 0.1 is made up for from a weight of 0.144 on.
    assert choices["kinds"][CHOSEN]["0.1"] == 0.0
    assert choices["kinds"][CHOSEN]["0.2"] == 100.0


def test_bigrams_of_known_words() -> None:
    rows = np.array([[0, 1, 2]])
    # ^a ab b$ against the same, against ^a ac c$, and against none.
    found = spelling.shared_bigrams(["ab"], ["Áb", "ac", "x"], rows)
    np.testing.assert_allclose(found, [[1.0, 1 / 3, 0.0]])


def test_what_is_missing_runs_and_nothing_else(
    aligned: Alignment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gold = Lexicon(tuple((f"s{i}", f"t{i}") for i in range(40)))
    fits: list[str] = []

    def fitted(src: Any, tgt: Any, **options: Any) -> Alignment:
        fits.append(options["device"])
        return aligned

    monkeypatch.setattr(spelling, "PAIRS", (Pair("a b-c", None, "b-c"), Pair("a d-e", None, "d-e", one_script=False)))
    monkeypatch.setattr(spelling, "BENCH", tmp_path)
    monkeypatch.setattr(qwp, "align", fitted)
    monkeypatch.setattr(
        Pair, "lexicons", lambda pair, split: {pair.languages: gold, back(pair.languages): gold.reverse()}
    )
    out = tmp_path / "records.jsonl"
    spelling.main(["choice", "--output", str(out), "--device", "cpu"])
    assert fits == ["cpu", "cpu"]
    found = read_records(out)
    assert [(r["suite"], r["pair"], r["direction"], r["words"]) for r in found] == [
        ("choice", "a b-c", "b-c", 40),
        ("choice", "a b-c", "c-b", 40),
    ]
    assert all(r["plain"] > 90 for r in found)
    spelling.main(["--output", str(out), "--device", "cpu"])
    # The alignments were kept.
    assert len(fits) == 2
    final = read_records(out)[2:]
    assert [(r["pair"], r["split"], r["direction"]) for r in final] == [
        (name, split, way)
        for name, ways in (("a b-c", ("b-c", "c-b")), ("a d-e", ("d-e", "e-d")))
        for split in (TRAIN, TEST)
        for way in ways
    ]
    assert all(r["plain"] == r["spelled"] > 90 for r in final)
    before = out.read_text()
    spelling.main(["--output", str(out)])
    assert out.read_text() == before
    assert "| a d-e, e-d |" in capsys.readouterr().out


def test_tables_say_what_the_records_say() -> None:
    def final(split: str, plain: float, spelled: float) -> Record:
        about = {"suite": "final", "pair": "novels en-xx", "direction": "en-xx"}
        return {**about, "split": split, "words": 1234, "plain": plain, "spelled": spelled}

    table = spelling.tables([final(TRAIN, 50.0, 51.26), final(TEST, 40.0, 39.5)])
    assert "| novels en-xx | 50.0 | 51.3 | +1.3 | 1,234 | 40.0 | 39.5 | -0.5 | 1,234 |" in table
    assert "| novels en-xx | - | - | - | - | 40.0 |" in spelling.tables([final(TEST, 40.0, 39.5)])


@pytest.fixture(autouse=True)
def records_stay() -> Iterator[None]:
    before = spelling.RESULTS.read_text()
    assert all(isinstance(json.loads(line), dict) for line in before.splitlines())
    yield
    assert spelling.RESULTS.read_text() == before
