"""Plans and records with known answers, for tests of reports."""

from __future__ import annotations

from typing import Any

import numpy as np

from qwp.experiments.cells import pack, packed_ranks
from qwp.experiments.run import ExperimentPlan, PlannedTable, Slot
from qwp.judging.evaluation import QueryRanks

SIZES = [200, 500]


def planned(published: str | None, directions: list[str], systems: list[str], sizes: list[int]) -> ExperimentPlan:
    """Return a plan of one table with two seeds; the address of a cell describes it."""
    points: list[dict[str, Any]] = [{"coreset_size": size} for size in sizes] or [{}]
    slots = [
        Slot(direction, system, point, seed, f"{direction} {system} {point.get('coreset_size')} {seed}")
        for direction in directions
        for system in systems
        for point in points
        for seed in (0, 1)
    ]
    grid = {"coreset_size": sizes} if sizes else {}
    table = PlannedTable("table1", "A title", "MAP", "csls", published, grid, directions, systems, slots)
    return ExperimentPlan("x", "A report", (table,))


def done(address: str, csls: float, nn: float = 0.1) -> dict[str, Any]:
    scores = {"csls": {"MAP": csls}, "nn": {"MAP": nn}}
    return {"address": address, "status": "done", "direction": address[:5], "scores": scores}


RECORDS = {
    each["address"]: each
    for each in (
        done("en-es Random 200 0", 0.36),
        done("en-es Random 200 1", 0.38),
        done("es-en Random 200 0", 0.40),
        done("es-en Random 200 1", 0.44),
        done("en-es KMeans++ 500 0", 0.50, nn=0.45),
        {"address": "es-en KMeans++ 500 0", "status": "failed", "direction": "es-en", "method": "qwp", "error": "no"},
    )
}


def sizes_plan() -> ExperimentPlan:
    """Return a plan of two directions, two systems, two sizes and two seeds."""
    return planned("table1", ["en-es", "es-en"], ["Random", "KMeans++"], SIZES)


def ranked(address: str, right: Any, *, seconds: float = 1.0, plan: bool = False) -> dict[str, Any]:
    """Return a record of queries with one gold word each, ranked first if `right`, else second."""
    ranks = QueryRanks(np.ones(len(right), dtype=np.int64), np.where(np.asarray(right), 1, 2))
    scores = {measure: float(np.mean(ranks.shares(measure)[0])) for measure in ("P@1", "MAP")}
    record = {
        "address": address,
        "status": "done",
        "direction": address.split()[0],
        "scores": {"csls": scores, "nn": scores},
        "ranks": packed_ranks({"csls": ranks, "nn": ranks}),
        "seconds": seconds,
        "device": "numpy",
    }
    kept = {"plan": {"src": ["a<b", "c"], "tgt": ["x", "y"], "plan": pack([255, 0, 3, 200])}}
    return {**record, **kept} if plan else record


def known_answers() -> dict[str, dict[str, Any]]:
    """Return records of 400 queries: KMeans++ has 15 more correct than Random at size 200, and 1 more at size 500."""
    records = {}
    for slot in sizes_plan().tables[0].slots:
        first = 200 if slot.system == "Random" else 215 if slot.point["coreset_size"] == 200 else 201
        right = np.arange(400) < first
        records[str(slot.address)] = ranked(str(slot.address), right, plan=slot.seed == 0)
    return records
