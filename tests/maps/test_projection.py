"""Spaces of different width, and their principal axes."""

from __future__ import annotations

import numpy as np

from qwp.maps import projection
from qwp.maps.procrustes import Maps, procrustes, reweighted
from tests.libraries import assert_close, assert_same
from tests.problems import rotation, space
from tests.tolerance import rounding


def unequal(n: int = 400, narrow: int = 6, wide: int = 9) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a space, its image in a wider space, and the map (narrow, wide) with orthonormal rows."""
    x, w = space(n, narrow, 0), rotation(wide, 1)[:narrow, :]
    return x, x @ w, w


def test_zeros_widen_and_nothing_else() -> None:
    x = space(5, 4, 0)
    assert projection.pad(x, 4) is x
    wide = projection.pad(x, 7)
    assert_same(wide[:, :4], x)
    assert_same(wide[:, 4:], np.zeros((5, 3)))


def test_procrustes_between_widened_spaces_is_the_semi_orthogonal_map() -> None:
    x, y, w = unequal()
    there = projection.unpad(Maps(procrustes(projection.pad(x, 9), y)), 6, 9)
    assert there.tgt is None
    assert_close(there.src, w, atol=1e-9)
    back = projection.unpad(projection.within_target(Maps(procrustes(y, projection.pad(x, 9))), 6), 9, 6)
    assert_close(back.src, w.T, atol=1e-9)


def test_a_map_stays_within_the_target() -> None:
    maps = Maps(rotation(9, 0))
    assert projection.within_target(maps, 9) is maps
    inside = projection.within_target(maps, 6).src
    assert_same(inside[:, :6], maps.src[:, :6])
    assert not np.any(np.asarray(inside)[:, 6:])
    both = Maps(rotation(9, 0), rotation(9, 1))
    assert projection.within_target(both, 6) is both


def test_two_maps_lead_into_what_both_sides_can_fill() -> None:
    x, y, _ = unequal()
    maps = reweighted(projection.pad(x, 9), y, 1.0)
    cut = projection.unpad(maps, 6, 9)
    assert cut.tgt is not None
    assert (cut.src.shape, cut.tgt.shape) == ((6, 6), (9, 6))
    # Unpadding keeps all variance, and matched rows coincide.
    assert_close(
        x @ cut.src, (projection.pad(x, 9) @ maps.src)[:, np.abs(np.asarray(maps.src)).max(axis=0) > 0], atol=1e-12
    )
    assert_close(x @ cut.src, y @ cut.tgt, atol=1e-6)
    again = projection.pad_maps(cut, 9)
    assert again.tgt is not None
    assert again.src.shape == again.tgt.shape == (9, 9)
    assert_same(again.src[:6, :6], cut.src)


def test_maps_of_equal_spaces_are_not_touched() -> None:
    maps = Maps(rotation(5, 0), rotation(5, 1))
    assert projection.unpad(maps, 5, 5) is maps
    again = projection.pad_maps(maps, 5)
    assert_same(again.src, maps.src)


def test_the_main_directions_hold_a_narrow_space_in_a_wide_one() -> None:
    x, y, w = unequal()
    seen = projection.project_spaces(projection.pad(x, 9), y, 6, 9)
    assert seen.x.shape == seen.y.shape == (400, 6)
    within = procrustes(seen.x, seen.y)
    assert_close(seen.x @ within, seen.y, atol=1e-9)
    whole = seen.unproject(within)
    assert whole.shape == (9, 9)
    assert_close(whole[:6, :], w, atol=1e-9)
    assert_close(seen.project(Maps(whole)).src, within, atol=1e-9)
    rows = seen.of(projection.pad(x[:7], 9), y[:3])
    # Products of other shapes round differently: nine terms each, and norms of six terms.
    assert_close(rows[0], seen.x[:7], atol=rounding("float64", 9 + 6))
    assert_close(rows[1], seen.y[:3], atol=rounding("float64", 9 + 6))


def test_two_maps_do_the_same_to_the_main_directions() -> None:
    x, y, _ = unequal()
    wide = projection.pad(x, 9)
    seen, maps = projection.project_spaces(wide, y, 6, 9), reweighted(wide, y, 1.0)
    project = seen.project(maps)
    assert maps.tgt is not None
    assert project.tgt is not None
    assert_close(seen.x @ project.src, wide @ maps.src, atol=1e-9)
    assert_close(seen.y @ project.tgt, y @ maps.tgt, atol=1e-9)


def test_narrow_spaces_are_not_projected() -> None:
    x, y = space(50, 5, 0), space(50, 5, 1)
    seen = projection.project_spaces(x, y, 5, 5)
    assert seen.x is x
    maps = Maps(rotation(5, 0))
    assert seen.unproject(maps.src) is maps.src
    assert seen.project(maps) is maps
    assert seen.of(x, y) == (x, y)


def test_very_wide_spaces_are_seen_in_some_directions() -> None:
    x = space(50, 5, 0)
    seen = projection.project_spaces(x, x, 5, 5, most=3)
    assert seen.x.shape == (50, 3)
    u, s, _ = np.linalg.svd(x, full_matrices=False)
    rows = u[:, :3] * s[:3]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    assert_close(np.abs(np.asarray(seen.x)), np.abs(rows), atol=1e-9)
