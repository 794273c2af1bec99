from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from benchmarks.common import clustered_space
from qwp import arrays
from qwp.arrays import Floats
from qwp.search import one_pass as module
from qwp.search.one_pass import Bars, OnePass, one_pass
from tests.tolerance import rounding

# Fewer words for each bar, so that small spaces take part.
SHARE = 4


BARS = Bars(share=SHARE)


@dataclass(frozen=True)
class Shifted(Bars):
    """Bars that are too high or too low."""

    shift: float = 0.0

    def of(self, queries: Floats, keys: Floats, rank: int) -> Floats:
        found: Floats = super().of(queries, keys, rank)
        return found + self.shift


def unit(rows: Floats) -> Floats:
    return np.asarray(arrays.unit(rows))


def gaussian(n: int, d: int, seed: int) -> Floats:
    return unit(np.random.default_rng(seed).standard_normal((n, d)))


def with_hubs(n: int, d: int, seed: int) -> Floats:
    """Rows with a common direction, to which some are far closer than others."""
    rows = gaussian(n, d, seed)
    rows[:, 0] += np.linspace(0, 3, n) ** 2
    return unit(rows)


def with_zeros(n: int, d: int, seed: int) -> Floats:
    rows = gaussian(n, d, seed)
    rows[::5] = 0.0
    return rows


SPACES = {
    "independent": (gaussian(331, 12, 0), gaussian(402, 12, 1)),
    "hubs on one side": (gaussian(331, 12, 0), with_hubs(402, 12, 1)),
    "hubs": (with_hubs(331, 12, 0), with_hubs(402, 12, 1)),
    "clusters": (clustered_space(331, 12, 0, 5).astype(float), clustered_space(402, 12, 0, 5).astype(float)),
    "zero rows": (with_zeros(331, 12, 0), with_zeros(402, 12, 1)),
    # The sample has only rows that are far from all others, so the bars are far too low.
    "unusual sample": (gaussian(331, 12, 0), np.where(np.arange(402)[:, None] % SHARE, gaussian(402, 12, 1), 0.0)),
}


def dense(src: Floats, tgt: Floats, k: int) -> tuple[Floats, Floats, Floats]:
    """The neighbourhood means of both sides and CSLS, from the whole matrix."""
    similarity = src @ tgt.T
    of_src = np.sort(similarity, axis=1)[:, -k:].mean(axis=1)
    of_tgt = np.sort(similarity, axis=0)[-k:].mean(axis=0)
    return of_src, of_tgt, 2 * similarity - of_src[:, None] - of_tgt


def check(found: OnePass | None, src: Floats, tgt: Floats, k: int) -> None:
    assert found is not None
    of_src, of_tgt, csls = dense(src, tgt, k)
    tolerance = rounding(np.float64, 100)
    np.testing.assert_allclose(found.src_means, of_src, atol=tolerance)
    np.testing.assert_allclose(found.tgt_means, of_tgt, atol=tolerance)
    forward, forward_scores, backward, backward_scores = found.nearest()
    np.testing.assert_allclose(forward_scores, csls.max(axis=1), atol=tolerance)
    np.testing.assert_allclose(backward_scores, csls.max(axis=0), atol=tolerance)
    # Rows without direction have equally good neighbours, so the score of the neighbour counts, not its number.
    np.testing.assert_allclose(csls[np.arange(len(src)), forward], csls.max(axis=1), atol=tolerance)
    np.testing.assert_allclose(csls[backward, np.arange(len(tgt))], csls.max(axis=0), atol=tolerance)


@pytest.mark.parametrize("k", [1, 10, 25])
@pytest.mark.parametrize("name", SPACES)
def test_the_result_is_exact(name: str, k: int) -> None:
    src, tgt = SPACES[name]
    check(one_pass(src, tgt, k, bars=BARS), src, tgt, k)


@pytest.mark.parametrize("shift", [-0.3, 0.1, 0.3])
@pytest.mark.parametrize("name", ["independent", "hubs", "clusters"])
def test_the_bars_do_not_matter(name: str, shift: float) -> None:
    # High bars leave many words in doubt, low bars keep many entries.
    src, tgt = SPACES[name]
    check(one_pass(src, tgt, 10, bars=Shifted(SHARE, most=1000, shift=shift)), src, tgt, 10)


def test_few_words_are_in_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []
    in_blocks = module._in_blocks

    def counted(function: Any, queries: Floats, keys: Floats) -> list[Any]:
        compared.append(len(queries) * len(keys))
        return in_blocks(function, queries, keys)

    monkeypatch.setattr(module, "_in_blocks", counted)
    src, tgt = clustered_space(1200, 30, 0), clustered_space(1000, 30, 0)
    assert one_pass(src, tgt, 10) is not None
    assert sum(compared) < 0.2 * len(src) * len(tgt)


def test_nearly_equal_similarities_are_left_to_the_usual_way() -> None:
    assert one_pass(*SPACES["independent"], 10, bars=Shifted(SHARE, most=1, shift=-4.0)) is None


def test_small_sides_and_other_arrays_are_left_to_the_usual_way() -> None:
    src, tgt = SPACES["independent"]
    assert one_pass(src[:20], tgt, 10, bars=BARS) is None
    assert one_pass(src, tgt[:20], 10, bars=BARS) is None
    torch = pytest.importorskip("torch")
    assert one_pass(torch.asarray(src), torch.asarray(tgt), 10, bars=BARS) is None


def test_threads_and_memory_do_not_matter() -> None:
    src, tgt = SPACES["hubs"]
    reports: list[int] = []
    with arrays.use_threads(2), arrays.use_memory(1e-4):
        assert arrays.block_rows(len(tgt), src) < 100
        check(one_pass(src, tgt, 10, reports.append, bars=BARS), src, tgt, 10)
    assert sum(reports) == len(src)
