"""The figures of a result for people."""

from __future__ import annotations

from dataclasses import replace

from qwp.judging.estimate import Band, Share, nothing_known
from qwp.judging.verdict import Quality
from qwp.results.rows import quality_rows, times
from qwp.stages.agreement import Agreement


def test_figures_for_people() -> None:
    fitted, held = Agreement(1234, 0.5, 0.25), Agreement(10, 0.1, 0.125)
    quality = Quality("succeeded", "It is real.", 2.5, 4000, fitted, fitted, held, held)
    assert quality_rows(quality) == [
        ("judged on", "the 4,000 most frequent words of each side"),
        ("mutual pairs", "1,234 (50.0 %), mean CSLS 0.250"),
        ("held-out words", "2.50 times what chance reaches"),
    ]
    told = replace(quality, runs=8, deviation=0.02, z=75.0)
    assert quality_rows(told)[2][1] == "2.50 times what chance reaches (± 0.02 in 8 runs, z = 75.0)"
    share = Share(0.46, 0.3, 0.63)
    bands = [Band(1, 1000, Share(0.71, 0.6, 0.8)), Band(1001, 20_000, Share(0.4, 0.3, 0.5))]
    estimated = replace(quality, estimate=replace(nothing_known(3), overall=share, bands=bands))
    assert quality_rows(estimated)[0] == (
        "estimated right",
        "about 46 % (30 to 63); 71 % of words 1 to 1,000; 40 % of words 1,001 to 20,000; not measured",
    )
    # Of a failure there is nothing to be said.
    assert quality_rows(replace(estimated, verdict="failed")) == quality_rows(quality)
    assert times({"loop": 1.0, "refine": 90.0}) == "1 min 31 s (loop 1.0 s, refine 1 min 30 s)"
