"""The joint space: the maximum spanning tree, and maps that solve the generalised Procrustes problem."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from qwp import Alignment, InputError
from qwp.results.joint import Edge, first_maps, joint_space, spanning_tree, strongest, swept
from tests.problems import Array, rotation, space

DIM, N = 6, 80
NAMES = "abcd"


def rotated(noise: float) -> dict[str, Array]:
    """Return rotated, noisy copies of one space."""
    rows, rng = space(N, DIM, 0), np.random.default_rng(1)
    return {name: rows @ rotation(DIM, i) + noise * rng.standard_normal((N, DIM)) for i, name in enumerate(NAMES)}


def edges_between(spaces: dict[str, Array], estimates: dict[tuple[str, str], float]) -> dict[tuple[str, str], Edge]:
    """Return the edges of all pairs with an estimate, in both directions."""
    found = {}
    for (a, b), estimate in estimates.items():
        found[a, b] = Edge(spaces[a].T @ spaces[b], estimate)
        found[b, a] = found[a, b].reversed
    return found


def objective(edges: dict[tuple[str, str], Edge], maps: dict[str, Array]) -> float:
    return float(sum(np.trace(maps[a].T @ edge.product @ maps[b]) for (a, b), edge in edges.items()))


def test_the_tree_takes_the_highest_estimates_and_leaves_out_what_it_cannot_reach() -> None:
    edges = edges_between(rotated(0.0), {("a", "b"): 0.5, ("a", "c"): 0.2, ("b", "c"): 0.4})
    assert spanning_tree(edges, "a") == [("b", "a"), ("c", "b")]
    assert spanning_tree(edges, "c") == [("b", "c"), ("a", "b")]
    assert spanning_tree(edges, "d") == []
    assert strongest(edges, NAMES) == "b"


def test_without_noise_the_maps_are_the_planted_rotations() -> None:
    spaces = rotated(0.0)
    edges = edges_between(spaces, {("a", "b"): 0.5, ("b", "c"): 0.4, ("c", "d"): 0.3})
    maps = first_maps(edges, spanning_tree(edges, "b"), "b", DIM)
    for name in NAMES:
        np.testing.assert_allclose(spaces[name] @ maps[name], spaces["b"], atol=1e-10)
    again = swept(edges, maps, "b")
    assert all(np.allclose(again[name], maps[name], atol=1e-10) for name in NAMES)


def test_sweeps_improve_the_objective_until_no_language_can_be_improved() -> None:
    spaces = rotated(1.0)
    estimates = {(a, b): 0.5 for a, b in permutations(NAMES, 2) if a < b}
    edges = edges_between(spaces, estimates)
    begun = first_maps(edges, spanning_tree(edges, "a"), "a", DIM)
    maps = swept(edges, begun, "a")
    assert objective(edges, maps) > objective(edges, begun)
    np.testing.assert_array_equal(maps["a"], np.eye(DIM))
    rng = np.random.default_rng(2)
    for name in "bcd":
        np.testing.assert_allclose(maps[name].T @ maps[name], np.eye(DIM), atol=1e-10)
        for _ in range(20):
            turn = np.linalg.qr(np.eye(DIM) + 0.05 * rng.standard_normal((DIM, DIM)))[0]
            turn = turn * np.sign(np.diag(turn))
            assert objective(edges, {**maps, name: maps[name] @ turn}) <= objective(edges, maps) + 1e-9


def test_the_joint_space_of_two_languages_translates_as_their_alignment(aligned: Alignment) -> None:
    joint = joint_space({("a", "b"): aligned}, ["a", "b"], "b")
    words = aligned.src.words[:50]
    one, other = joint.pair("a", "b").translate(words, k=1), aligned.translate(words, k=1)
    assert np.mean([one[word][0].word == other[word][0].word for word in words]) > 0.95
    # The other language can be the hub, too.
    turned = joint_space({("a", "b"): aligned}, ["a", "b"], "a")
    best = turned.pair("a", "b").translate(words, k=1)
    assert np.mean([best[word][0].word == other[word][0].word for word in words]) > 0.95
    with pytest.raises(InputError, match="no alignment with x succeeded"):
        joint_space({("a", "b"): aligned}, ["a", "b"], "x")
