"""What was measured: by spot and seed, with shared resamples on the same queries."""

from __future__ import annotations

import numpy as np

from qwp.experiments.measured import Measured, Spot
from tests.experiments.records import known_answers, ranked, sizes_plan

SIZE = (("coreset_size", 200),)


def test_scores_seconds_and_estimates() -> None:
    found = Measured(sizes_plan().tables, known_answers())
    spot = Spot("table1", "en-es", "KMeans++", SIZE)
    assert found.scores[spot] == {0: 76.875, 1: 76.875}
    assert found.mean(spot) == 76.875
    assert found.estimates[spot].value == 76.875
    assert (found.seconds[spot], spot.size) == ({0: 1.0, 1: 1.0}, 200)
    assert found.mean(Spot("table1", "xx-yy", "KMeans++", SIZE)) is None


def test_seeds_are_averaged_for_each_query() -> None:
    records = known_answers()
    records["en-es Random 200 0"] = ranked("en-es Random 200 0", np.arange(400) < 400)
    records["en-es Random 200 1"] = ranked("en-es Random 200 1", np.arange(400) < 0)
    found = Measured(sizes_plan().tables, records).estimates[Spot("table1", "en-es", "Random", SIZE)]
    # Each query has 1 with one seed and 1/2 with the other: which are drawn makes no difference.
    assert found.value == 75.0
    assert found.resamples.std() < 1e-9


def test_resamples_of_one_direction_are_shared_and_of_two_are_not() -> None:
    found = Measured(sizes_plan().tables, known_answers()).estimates
    here, there = (Spot("table1", direction, "Random", SIZE) for direction in ("en-es", "es-en"))
    same = Spot("table1", "en-es", "Random", (("coreset_size", 500),))
    assert np.array_equal(found[here].resamples, found[same].resamples)
    assert not np.array_equal(found[here].resamples, found[there].resamples)


def test_records_without_ranks_and_of_other_queries_are_left_out() -> None:
    records = known_answers()
    del records["en-es Random 200 0"]["ranks"]
    records["es-en Random 200 0"]["inputs"] = {"gold": "another"}
    found = Measured(sizes_plan().tables, records)
    for direction in ("en-es", "es-en"):
        spot = Spot("table1", direction, "Random", SIZE)
        assert spot in found.scores
        assert spot not in found.estimates
