"""Reports on known records: means, deviations, published figures, differences, averages, sentences."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from qwp.experiments.report import (
    Entry,
    about_claims,
    about_table,
    as_json,
    cites,
    make_report,
    score_text,
    time_rows,
)
from qwp.experiments.run import ExperimentPlan
from tests.experiments.records import RECORDS, done, known_answers, planned, sizes_plan


@pytest.fixture
def sizes() -> ExperimentPlan:
    return sizes_plan()


def test_means_spreads_and_differences() -> None:
    entry = Entry((36.0, 38.0), 36.4)
    assert entry.mean == 37.0
    assert entry.spread == pytest.approx(2**0.5)
    assert entry.difference == pytest.approx(0.6)
    assert Entry((1.0,)).spread is None
    assert (Entry().mean, Entry(published=1.0).difference) == (None, None)


def test_the_published_average_needs_all_directions() -> None:
    ways = ["en-es", "es-en", "en-fr", "fr-en", "en-de", "de-en", "en-ru", "ru-en"]
    plan = planned("table4", [*ways, "en-it", "it-en"], ["RCSLS"], [])
    records = {
        slot.address: done(slot.address, 0.9 if "it" in slot.direction else 0.8)
        for slot in plan.tables[0].slots
        if slot.address
    }
    [view] = make_report(plan, records).views
    average = view.rows[0].entries[-1]
    assert average.ours == pytest.approx((80.0, 80.0))  # without Italian, for which the paper has no figures
    assert average.published == 77.3


def test_json(sizes: ExperimentPlan) -> None:
    about = json.loads(json.dumps(as_json(make_report(sizes, RECORDS))))
    [table] = about["tables"]
    assert table["cells"] == {"wanted": 16, "done": 5, "failed": 1}
    first = table["figures"][0]
    assert (first["row"], first["system"], first["column"], first["seeds"]) == ("en-es", "Random", "200", 2)
    assert first["difference"] == pytest.approx(0.6)


def test_systems_on_the_same_direction_are_marked(sizes: ExperimentPlan) -> None:
    [view] = make_report(sizes, known_answers()).views
    found = {(row.group, row.label): [entry.mark for entry in row.entries] for row in view.rows}
    # 15 of 400 are significant, 1 of 400 is not.
    for group in ("en-es", "es-en", "average"):
        assert found[group, "KMeans++"] == ["best", "best"]
        assert found[group, "Random"] == ["worse", "level"]
    random = view.rows[0].entries
    assert (random[0].p or 1) < 0.05 < (random[1].p or 0)
    assert random[0].seconds == 1.0


def test_averages_of_systems_that_lack_a_direction_are_not_compared(sizes: ExperimentPlan) -> None:
    records = {address: each for address, each in known_answers().items() if not address.startswith("es-en Random")}
    [view] = make_report(sizes, records).views
    marks = {(row.group, row.label): {entry.mark for entry in row.entries} for row in view.rows}
    assert marks["average", "Random"] == marks["average", "KMeans++"] == {""}
    assert marks["es-en", "KMeans++"] == {""}  # alone
    assert marks["en-es", "KMeans++"] == {"best"}


def test_an_average_of_a_system_that_the_paper_does_not_have_is_over_its_directions() -> None:
    plan = planned("table1", ["en-es", "en-pl"], ["Random", "ours"], [200])
    plan = replace(plan, tables=(replace(plan.tables[0], grid={"coreset_size": [200]}),))
    records = {
        str(slot.address): done(str(slot.address), 0.2 if "pl" in slot.direction else 0.4)
        for slot in plan.tables[0].slots
    }
    [view] = make_report(plan, records).views
    assert {row.label: row.entries[-1].mean for row in view.rows} == {
        "Random": pytest.approx(40),
        "ours": pytest.approx(40),
    }


def test_the_plan_of_the_best_cell_of_each_direction_is_shown(sizes: ExperimentPlan) -> None:
    plans = make_report(sizes, known_answers()).plans
    assert [(each.direction, each.about) for each in plans] == [
        (direction, "KMeans++, coresets of 200 points, MAP 76.9") for direction in ("en-es", "es-en")
    ]


def test_devices_are_reported(sizes: ExperimentPlan) -> None:
    records = known_answers()
    assert make_report(sizes, records).devices == ("numpy",)
    older = {address: {**record, "place": record.get("device")} for address, record in records.items()}
    for record in older.values():
        record.pop("device", None)
    assert make_report(sizes, older).devices == ("numpy",)


# --------------------------------------------------------------------------- sentences


def test_figures() -> None:
    assert score_text(Entry()) == "-"
    assert score_text(Entry((1.0,))) == "1.00"
    assert score_text(Entry((1.0, 2.0))) == "1.50 ± 0.71"


def test_times_are_over_conditions_without_averages() -> None:
    records = known_answers()
    for address, record in records.items():
        record["seconds"] = 9.0 if address.startswith("en-es Random 500") else 1.0
    rows = time_rows(make_report(sizes_plan(), records))
    assert rows == [("A title", "Random", "3.0", "1.0", "9.0"), ("A title", "KMeans++", "1.0", "1.0", "1.0")]


def test_marks_are_explained_if_there_are_any() -> None:
    some, none = (make_report(sizes_plan(), records).views[0] for records in (known_answers(), {}))
    assert "in bold" in about_table(some, best="bold", level="italic")
    assert "in bold" not in about_table(none, best="bold", level="italic")


def test_averages_of_different_directions_are_explained() -> None:
    whole = known_answers()
    part = {address: each for address, each in whole.items() if not address.startswith("es-en Random")}
    texts = [about_table(make_report(sizes_plan(), each).views[0], best="", level="") for each in (whole, part)]
    assert ["averages that lack a direction are not compared" in text for text in texts] == [False, True]


def test_the_paper_is_cited_only_if_shown() -> None:
    assert cites(make_report(sizes_plan(), {}))
    assert not cites(make_report(planned(None, ["en-pl"], ["a"], []), {}))


def test_claims_are_counted() -> None:
    text = about_claims(make_report(sizes_plan(), known_answers()))
    assert text.startswith("6 claims; holds: 1, does not hold here: 1, undecided: 4.")
