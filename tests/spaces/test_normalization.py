from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qwp import arrays
from qwp.errors import InputError
from qwp.spaces.normalization import DEFAULT, Normalization, fit, parse_steps
from tests.libraries import as_strict, assert_close, assert_same, host

Array = npt.NDArray[Any]


def rows(n: int = 30, d: int = 5, seed: int = 0) -> Array:
    return np.asarray(np.random.default_rng(seed).standard_normal((n, d)) + 2.0)


def unit(x: Array) -> Array:
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))


def test_the_default_is_unit_center_unit() -> None:
    x = rows()
    fitted, normal = fit(x)
    assert DEFAULT == "unit,center,unit"
    assert fitted.steps == ("unit", "center", "unit")
    mean = unit(x).mean(axis=0)
    assert_close(fitted.means[0], mean, atol=1e-14)
    assert_close(normal, unit(unit(x) - mean), atol=1e-14)


@given(
    steps=st.lists(st.sampled_from(["unit", "center"]), max_size=5),
    dtype=st.sampled_from(["float32", "float64"]),
    seed=st.integers(0, 1000),
)
def test_new_vectors_are_normalised_like_training_rows(steps: list[str], dtype: str, seed: int) -> None:
    x = rows(seed=seed).astype(dtype)
    fitted, normal = fit(x, steps)
    assert len(fitted.means) == steps.count("center")
    assert normal.dtype == dtype
    # The same call repeats exactly; a row alone may round differently.
    assert_same(fitted.apply(x), normal)
    assert_close(fitted.apply(x[7:8]), normal[7:8], rtol=1e-6)
    # A new vector is centred with the mean of the training rows.
    new = (10 * rows(4, seed=seed + 1)).astype(dtype)
    means = iter(fitted.means)
    expected = new
    for step in steps:
        expected = unit(expected) if step == "unit" else expected - next(means)
    assert_close(fitted.apply(new), expected, rtol=1e-5, atol=1e-6)


def test_each_center_has_its_own_mean() -> None:
    fitted, normal = fit(rows(), "center,unit,center")
    assert not np.allclose(host(fitted.means[0]), host(fitted.means[1]))
    assert_close(host(normal).mean(axis=0), 0.0, atol=1e-14)


def test_the_input_is_not_modified() -> None:
    x = rows()
    before = x.copy()
    fitted, _ = fit(x)
    fitted.apply(x)
    assert_same(x, before)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("steps", ["unit", "unit,center,unit", "center,unit"])
def test_zero_vectors_stay_finite(steps: str, dtype: str) -> None:
    x = rows().astype(dtype)
    x[3] = 0.0
    fitted, normal = fit(x, steps)
    assert np.isfinite(host(normal)).all()
    assert np.isfinite(host(fitted.apply(np.zeros((2, 5), dtype=dtype)))).all()
    if steps == "unit":
        assert (host(normal)[3] == 0).all()


def test_all_rows_equal_stay_finite() -> None:
    _, normal = fit(np.full((6, 3), 2.0))
    assert np.isfinite(host(normal)).all()


def test_the_mean_is_accurate_in_float32() -> None:
    # Many rows with a large common offset: a float32 sum would lose digits.
    x = (np.random.default_rng(0).random((200_000, 2)) + 100.0).astype(np.float32)
    fitted, _ = fit(x, "center")
    assert_close(fitted.means[0], x.mean(axis=0, dtype=np.float64), rtol=1e-7)


@pytest.mark.parametrize(
    ("given_steps", "parsed"),
    [
        ("unit,center,unit", ("unit", "center", "unit")),
        (" unit , center ", ("unit", "center")),
        (["center"], ("center",)),
        (("unit", "unit"), ("unit", "unit")),
        ("none", ()),
        ("", ()),
        ([], ()),
    ],
)
def test_parse_steps(given_steps: str | list[str], parsed: tuple[str, ...]) -> None:
    assert parse_steps(given_steps) == parsed


def test_no_steps_keep_the_rows() -> None:
    x = rows()
    fitted, normal = fit(x, "none")
    assert fitted == Normalization((), ())
    assert_same(normal, x)


@pytest.mark.parametrize("bad", ["unit,centre", "Unit", ["unit", "whiten"]])
def test_invalid_steps_are_explained(bad: str | list[str]) -> None:
    with pytest.raises(InputError, match="is not known; expected a comma-separated list of unit, center, or none"):
        fit(rows(), bad)


def test_array_api_strict() -> None:
    x = rows()
    fitted, normal = fit(as_strict(x))
    assert_close(arrays.to_numpy(normal), fit(x)[1], atol=1e-14)
    assert_close(arrays.to_numpy(fitted.apply(as_strict(x))), fit(x)[1], atol=1e-14)
