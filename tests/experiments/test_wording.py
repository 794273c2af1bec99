"""Sentences and figures that all forms share."""

from __future__ import annotations

from qwp.experiments import wording
from qwp.experiments.report import Entry, make_report
from tests.experiments.records import known_answers, planned, sizes_plan


def test_figures() -> None:
    assert wording.measured(Entry()) == "-"
    assert wording.measured(Entry((1.0,))) == "1.00"
    assert wording.measured(Entry((1.0, 2.0))) == "1.50 ± 0.71"


def test_times_are_over_places_not_over_averages() -> None:
    records = known_answers()
    for address, record in records.items():
        record["seconds"] = 9.0 if address.startswith("en-es Random 500") else 1.0
    rows = wording.times(make_report(sizes_plan(), records))
    assert rows == [("A title", "Random", "3.0", "1.0", "9.0"), ("A title", "KMeans++", "1.0", "1.0", "1.0")]


def test_marks_are_explained_where_there_are_some() -> None:
    some, none = (make_report(sizes_plan(), records).views[0] for records in (known_answers(), {}))
    assert "in bold" in wording.about(some, best="bold", level="italic")
    assert "in bold" not in wording.about(none, best="bold", level="italic")


def test_averages_that_are_not_of_the_same_directions_are_explained() -> None:
    whole = known_answers()
    part = {address: each for address, each in whole.items() if not address.startswith("es-en Random")}
    texts = [wording.about(make_report(sizes_plan(), each).views[0], best="", level="") for each in (whole, part)]
    assert ["those that lack a direction are not compared" in text for text in texts] == [False, True]


def test_the_paper_is_cited_where_something_of_it_is_there() -> None:
    assert wording.cites(make_report(sizes_plan(), {}))
    assert not wording.cites(make_report(planned(None, ["en-pl"], ["a"], []), {}))


def test_claims_are_counted() -> None:
    text = wording.claims(make_report(sizes_plan(), known_answers()))
    assert text.startswith("4 claims; holds: 1, does not hold here: 1, cannot be said: 2.")
