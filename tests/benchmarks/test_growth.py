from __future__ import annotations

from typing import Any

import pytest

from benchmarks.growth import STAGES, USUAL, exponents, table


def record(n: int, d: int, power: float, **more: float) -> dict[str, Any]:
    return {"n": n, "d": d, "seconds": {"refine": 1e-6 * n**power, "export": 0.0, **more}}


def test_exponents_are_the_slopes_of_the_logarithms() -> None:
    sizes = (5000, 20_000, 80_000)
    found = [record(n, USUAL[1], 1.3) for n in sizes] + [record(USUAL[0], 50, 9.0)]
    # A stage without enough positive times has no exponent.
    assert exponents(found, "n") == {"refine": pytest.approx(1.3)}
    assert exponents(found, "d") == {}


def test_the_table_has_a_row_for_each_size() -> None:
    found = [record(n, USUAL[1], 1.0, lexicon=2.5) for n in (40_000, 5000, 20_000)]
    lines = table(found, "n").splitlines()
    assert [line.split("|")[1].strip() for line in lines[2:]] == ["5,000", "20,000", "40,000", "exponent"]
    assert all(line.count("|") == len(STAGES) + 2 for line in lines)
    assert "2.50 s" in lines[2]
    assert "1.00" in lines[-1]
