from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from qwp import Alignment
from qwp.explore.pairs import REASONS, PairTable, find_pairs
from tests.explore.conftest import ignore_progress


@pytest.fixture(scope="module")
def alignment(saved: Path) -> Alignment:
    return replace(Alignment.load(saved), origin=None)  # without sidecars


def test_the_pairs_are_those_of_the_induced_lexicon(alignment: Alignment) -> None:
    found = find_pairs(alignment, 1000, ignore_progress)
    pairs = alignment.induce(mutual_only=False)
    assert [alignment.tgt.words[row] for row in found.best] == [pair.tgt for pair in pairs]
    assert found.mutual.tolist() == [pair.mutual for pair in pairs]
    np.testing.assert_allclose(found.confidence, [pair.confidence for pair in pairs], atol=1e-6)
    np.testing.assert_allclose(found.margin, [pair.margin for pair in pairs], atol=1e-5)
    np.testing.assert_allclose(found.score, [pair.score for pair in pairs], atol=1e-5)


def test_the_nearest_of_the_same_language(alignment: Alignment) -> None:
    found = find_pairs(alignment, 1000, ignore_progress)
    rows = np.asarray(alignment.mapped("src"))
    cosines = rows @ rows.T
    np.fill_diagonal(cosines, -1)
    assert (found.src_near[:, 0] == cosines.argmax(axis=1)).mean() > 0.99
    assert not (found.src_near == np.arange(len(rows))[:, None]).any()


def test_fewer_words_and_translations_that_are_rarer(alignment: Alignment) -> None:
    """The order of the target words is reversed, so that the frequent words of the two sides differ."""
    turned = replace(alignment.tgt_side, order=np.arange(400)[::-1].copy())
    other = replace(alignment, tgt_side=turned)
    found = find_pairs(other, 50, ignore_progress)
    assert found.tgt_rows.tolist() == list(range(399, 349, -1))
    pairs = other.induce(max_words=50, mutual_only=False)
    assert [other.tgt.words[row] for row in found.best] == [pair.tgt for pair in pairs]
    np.testing.assert_allclose(found.confidence, [pair.confidence for pair in pairs], atol=1e-6)
    assert (found.best_positions == -1).all()
    assert (found.src_across[:, 0] == -1).all()
    inside = found.src_across >= 0
    assert inside.any()
    assert (found.tgt_rows[found.src_across[inside]] >= 350).all()
    assert (found.back_positions == -1).all()


def searching(what: str, done: int, total: int) -> None:
    pytest.fail("they were there")


def test_pairs_are_cached(folder: Path) -> None:
    first = find_pairs(Alignment.load(folder), 100, ignore_progress)
    again = find_pairs(Alignment.load(folder), 100, searching)
    assert again.mutual.dtype == bool
    for name in ("best", "confidence", "mutual", "src_near", "back"):
        np.testing.assert_array_equal(getattr(first, name), getattr(again, name))


def test_progress_is_reported(alignment: Alignment) -> None:
    events: list[tuple[str, int, int]] = []
    find_pairs(alignment, 300, lambda *event: events.append(event), batch=100)
    assert [event for event in events if event[0] == "translations of src"] == [
        ("translations of src", done, 300) for done in (0, 100, 200)
    ]


def small(best: list[int], back: list[int], margin: list[float]) -> PairTable:
    """Make five words on each side; the neighbours of each are the next two."""
    five = np.arange(5)
    near = np.stack([(five + 1) % 5, (five + 2) % 5], axis=1)
    mutual = np.array([back[t] == s for s, t in enumerate(best)])
    numbers = np.array(margin)
    return PairTable(
        *(five, five, np.array(best), numbers, numbers, numbers, mutual, np.array(back), near, near, near, near),
        pinned=np.zeros(5, dtype=bool),
    )


def test_hubs_and_orphans_are_counted() -> None:
    found = small([0, 0, 0, 0, 4], [0, 1, 2, 3, 4], [0.1] * 5)
    assert found.tgt_occurrences.tolist() == [4, 0, 0, 0, 1]
    assert found.hubness.tolist() == [4, 4, 4, 4, 1]
    assert found.suspects[:, REASONS.index("hub")].tolist() == [True, True, True, True, False]


def test_overlap_is_the_share_of_neighbours_with_neighbouring_translations() -> None:
    same = small([0, 1, 2, 3, 4], [0, 1, 2, 3, 4], [0.1] * 5)
    np.testing.assert_allclose(same.overlap, 1.0)
    # Word 0 translates to 3, whose neighbours are 4 and 0; its own neighbours, 1 and 2, translate to 1 and 2.
    moved = small([3, 1, 2, 3, 4], [0, 1, 2, 3, 4], [0.1] * 5)
    assert moved.overlap[0] == 0
    assert moved.suspects[0].tolist() == [True, True, False, True]


def test_low_margins_and_one_way_pairs_are_suspects() -> None:
    found = small([0, 1, 2, 3, 4], [0, 1, 2, 3, 0], [0.01, 0.5, 0.5, 0.5, 0.5])
    assert found.suspects[:, REASONS.index("margin")].tolist() == [True, False, False, False, False]
    assert found.suspects[:, REASONS.index("one-way")].tolist() == [False, False, False, False, True]
