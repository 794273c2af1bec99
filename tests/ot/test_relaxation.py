"""Longer steps for Sinkhorn."""

from __future__ import annotations

import numpy as np
import pytest

from qwp.ot.bounded import inner_product_plans
from qwp.ot.costs import cost_matrix
from qwp.ot.relaxation import Relaxation, relaxed
from qwp.ot.sinkhorn import sinkhorn
from tests.libraries import assert_close, assert_same, host, pot
from tests.ot.problems import Array, batch


def plain_sweeps(kernel: Array, a: Array, b: Array, tol: float) -> tuple[Array, int]:
    """Sinkhorn by the book: the plan (n, m) and the number of sweeps until both marginals are met to `tol`."""
    v = np.ones_like(b)
    for sweep in range(1, 100_000):
        u = a / (kernel @ v)
        v = b / (kernel.T @ u)
        plan = u[:, None] * kernel * v
        if np.abs(plan.sum(1) - a).sum() + np.abs(plan.sum(0) - b).sum() <= tol:
            return plan, sweep
    raise AssertionError("no convergence")


@pytest.mark.parametrize(("scale", "seed"), [(20.0, 0)])
def test_relaxation_reaches_the_plan_of_pot_with_fewer_sweeps(scale: float, seed: int) -> None:
    x, y, a, b = batch(1, 30, 30, seed)
    tol = 1e-6
    plans = inner_product_plans(x, y, a, b, scale=scale, max_iter=50_000, tol=tol)
    cost = host(cost_matrix(x[0], y[0], "dot"))
    expected = pot().sinkhorn(
        a[0], b[0], cost, 1 / scale, method="sinkhorn_log", numItermax=50_000, stopThr=1e-10, warn=False
    )
    assert_close(plans.matrix[0], expected, atol=1e-6, rtol=0)
    by_the_book, sweeps = plain_sweeps(np.exp(-scale * cost), a[0], b[0], tol)
    assert_close(by_the_book, expected, atol=1e-5, rtol=0)
    assert sweeps > 100
    assert plans.n_iter < 0.5 * sweeps
    assert max(plans.relaxations) > 1.0
    # The general solver makes longer steps as well.
    general = sinkhorn(cost, a[0], b[0], epsilon=1 / scale, max_iter=50_000, tol=tol)
    assert general.n_iter < 0.5 * sweeps
    assert_close(general.matrix, expected, atol=1e-6, rtol=0)


def test_relaxed_known_answers() -> None:
    wanted, old = np.array([2.0, 8.0, 0.0]), np.array([1.0, 2.0, 0.0])
    assert_same(relaxed(wanted, old, 1.0), wanted)
    # In logarithms the step is longer by the factor: old * (wanted / old) ** factor.
    assert_close(relaxed(wanted, old, 1.5), [2.0**1.5, 2.0 * 4.0**1.5, 0.0])
    # A point that was there and has no weight goes to zero.
    assert_same(relaxed(np.zeros(1), np.ones(1), 1.8), [0.0])


def after(rate: float, sweeps: int, start: int = 1, error: float = 1.0) -> Relaxation:
    """What is made of errors that shrink by `rate` with each of so many sweeps."""
    relaxation = Relaxation()
    for i in range(sweeps):
        relaxation.look(start + i, error * rate**i)
    return relaxation


@pytest.mark.parametrize(("rate", "factor"), [(0.0, 1.0), (0.75, 4 / 3), (0.9, 2 / (1 + 0.1**0.5)), (0.9999, 1.98)])
def test_the_relaxation_fits_the_rate(rate: float, factor: float) -> None:
    assert after(rate, 8).factor == 1.0
    assert after(rate, 9).factor == pytest.approx(factor)
    assert 1.0 <= factor < 2.0


def test_errors_that_do_not_fall_bring_no_longer_steps() -> None:
    assert after(1.0, 30).factor == 1.0
    assert after(1.1, 30).factor == 1.0


def test_longer_steps_that_do_not_pay_are_taken_back() -> None:
    relaxation = after(0.9, 9)
    assert relaxation.factor > 1.0
    relaxation.look(17, 2.0)
    assert relaxation.factor == 1.0
    # Plain ones for twice as long, then another try.
    for i in range(1, 16):
        relaxation.look(17 + i, 2.0 * 0.9**i)
        assert relaxation.factor == 1.0
    relaxation.look(33, 2.0 * 0.9**16)
    assert relaxation.factor > 1.0


def test_longer_steps_that_never_pay_are_given_up() -> None:
    relaxation, error, tries, previous = Relaxation(), 1.0, 0, 1.0
    for i in range(2000):
        error *= 0.9 if relaxation.factor == 1.0 else 1.2
        relaxation.look(i, error)
        tries += relaxation.factor > 1.0 and previous == 1.0
        previous = relaxation.factor
    assert tries == 4
    assert relaxation.factor == 1.0


def test_the_factor_grows_as_the_slow_part_of_the_error_comes_out() -> None:
    """Two parts of an error under over-relaxation: rates of plain sweeps 0.3 and 0.96, the slow one small at first."""
    relaxation, parts, seen = Relaxation(), {0.3: 1.0, 0.96: 0.01}, []
    for i in range(120):
        for plain, size in parts.items():
            w = relaxation.factor
            b = w * w * plain / 2 - w + 1
            # The larger root of (l + w - 1)^2 = l w^2 r in absolute value.
            rate = b + (b * b - (w - 1) ** 2) ** 0.5 if b * b > (w - 1) ** 2 else w - 1
            parts[plain] = size * max(rate, 0.0)
        relaxation.look(i, sum(parts.values()))
        seen.append(relaxation.factor)
    assert seen == sorted(seen)
    assert seen[9] < 1.4
    # The best factor for a rate of 0.96 is 2 / (1 + 0.2).
    assert seen[-1] == pytest.approx(2 / 1.2, abs=0.03)
