from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from qwp import Alignment
from qwp.explore import tsne
from qwp.explore.pairs import find_pairs
from qwp.explore.tsne import embedded, graph, map_positions, projected
from tests.explore.conftest import ignore_progress


def test_repulsion_matches_the_exact_sum() -> None:
    y = np.random.default_rng(0).normal(scale=8.0, size=(300, 2)).astype(np.float32)
    way = y[:, None, :] - y[None, :, :]
    near = 1.0 / (1.0 + (way**2).sum(axis=2))
    everything = near.sum() - len(y)
    expected = (way * (near**2)[:, :, None]).sum(axis=1) / everything
    found = tsne._repulsion(y)
    assert np.corrcoef(found.ravel(), expected.ravel())[0, 1] > 0.98
    assert abs(np.linalg.norm(found) / np.linalg.norm(expected) - 1) < 0.1


def test_attraction_matches_the_exact_sum() -> None:
    rng = np.random.default_rng(0)
    pulls = sparse.random(40, 40, 0.2, random_state=rng, dtype=np.float32, format="csr")
    y = rng.normal(size=(40, 2)).astype(np.float32)
    way = y[:, None, :] - y[None, :, :]
    strength = pulls.toarray() / (1.0 + (way**2).sum(axis=2))
    np.testing.assert_allclose(
        tsne._Attraction(pulls).of(y), (way * strength[:, :, None]).sum(axis=1), rtol=1e-4, atol=1e-5
    )


def test_clusters_are_separated() -> None:
    """Three groups of words, each with affinities only within it."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(3), 60)
    rows = np.repeat(np.arange(180), 8)
    columns = np.concatenate([rng.choice(np.flatnonzero(group == group[i]), 8, replace=False) for i in range(180)])
    pulls = sparse.csr_matrix((np.ones(len(rows), dtype=np.float32), (rows, columns)), shape=(180, 180))
    pulls = (pulls + pulls.T) / (2 * pulls.sum())
    places = embedded(pulls.tocsr(), rng.normal(size=(180, 2)).astype(np.float32), ignore_progress)
    assert places.min() >= 0
    assert places.max() <= 1
    centres = np.stack([places[group == k].mean(axis=0) for k in range(3)])
    nearest = ((places[:, None, :] - centres) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest == group).mean() > 0.95


def laying_out(what: str, done: int, total: int) -> None:
    pytest.fail("it was there")


def test_translations_are_close_and_the_map_is_cached(folder: Path) -> None:
    alignment = Alignment.load(folder)
    found = find_pairs(alignment, 1000, ignore_progress)
    events: list[str] = []
    plane = map_positions(alignment, found, lambda what, done, total: events.append(what))
    assert set(events) == {"map"}
    pairs = np.linalg.norm(plane["src"] - plane["tgt"][found.best_positions], axis=1)
    others = np.linalg.norm(plane["src"] - plane["tgt"][np.roll(found.best_positions, 1)], axis=1)
    assert np.median(pairs) < 0.1 * np.median(others)
    again = map_positions(Alignment.load(folder), found, laying_out)
    np.testing.assert_array_equal(again["src"], plane["src"])


def test_affinities_are_symmetric_and_sum_to_one(saved: Path) -> None:
    found = find_pairs(replace(Alignment.load(saved), origin=None), 60, ignore_progress)
    pulls = graph(found)
    assert pulls.shape == (120, 120)
    assert abs(pulls.sum() - 1) < 1e-5
    assert abs(pulls - pulls.T).max() < 1e-7


def test_a_projection_of_one_dimension_has_two_columns() -> None:
    assert projected(np.arange(5.0)[:, None]).shape == (5, 2)
