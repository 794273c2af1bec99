"""Short loops from many maps."""

from __future__ import annotations

import numpy as np

from qwp.maps.procrustes import orthogonality_error, polar_svd
from qwp.stages.trials import Trial
from tests.libraries import assert_close, host
from tests.problems import planted, rotation

BRIEF = Trial(words=250, steps=20, coreset=500, epsilon=0.05, batches=2)


def test_a_trial_improves_a_map_that_is_nearly_right() -> None:
    problem = planted(400, d=12, noise=0.2, seed=2)
    start = host(polar_svd(0.5 * problem.w + 0.5 * rotation(12, 8)))
    [found] = BRIEF.run([problem.src], [problem.tgt], [start], [0])
    assert orthogonality_error(found) < 1e-5
    assert problem.accuracy(found) > problem.accuracy(start) + 0.1


def test_trials_in_lock_step_are_those_one_by_one() -> None:
    one, other = planted(300, d=8, noise=0.2, seed=2), planted(350, 280, d=8, noise=0.2, seed=3)
    starts = [rotation(8, 1), rotation(8, 2)]
    both = BRIEF.run([one.src, other.src], [one.tgt, other.tgt], starts, [4, 5])
    for problem, start, seed, found in ((one, starts[0], 4, both[0]), (other, starts[1], 5, both[1])):
        assert_close(BRIEF.run([problem.src], [problem.tgt], [start], [seed])[0], found, atol=1e-5)


def test_batches_are_a_part_of_the_words() -> None:
    sizes = {n: BRIEF.points(np.zeros((n, 2)), np.zeros((2 * n, 2))) for n in (10, 150, 240, 5000)}
    assert sizes == {10: 10, 150: 150, 240: 200, 5000: 200}
    many = Trial(words=6000, steps=1, coreset=1000, epsilon=0.1, batches=1)
    assert [many.points(np.zeros((n, 2)), np.zeros((9000, 2))) for n in (1000, 2000, 6000, 8000)] == [
        250,
        500,
        1000,
        1000,
    ]
