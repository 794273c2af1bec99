"""The choice between the starts: which are tried, and which wins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pytest

from qwp.maps.procrustes import Maps, orthogonality_error
from qwp.starts import choice, frank_wolfe, profiles
from qwp.starts.choice import best_starts
from qwp.starts.frank_wolfe import FrankWolfeSettings
from tests.problems import planted, rotation

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Ratio:
    """As much of a verdict as the choice of a start looks at."""

    ratio: float


@dataclass
class Staged:
    """Starts whose maps are known and whose verdicts are given: which of them are tried, and on what."""

    ratios: Sequence[dict[str, float]]
    tried: list[tuple[int, str]]

    MAPS: ClassVar[dict[str, Array]] = {
        "profiles": rotation(3, 0),
        "profiles of more words": rotation(3, 1),
        "frank-wolfe": rotation(3, 2),
    }

    def name(self, w: Any) -> str:
        return next(name for name, matrix in self.MAPS.items() if (matrix == w).all())

    def profiles(self, x: Array, y: Array, words: int) -> Array:
        return self.MAPS[{40: "profiles", 80: "profiles of more words"}[words]]

    def frank_wolfe(self, x: Array, y: Array, settings: FrankWolfeSettings) -> Array:
        assert settings.start_words == 40
        return self.MAPS["frank-wolfe"]

    def judge(self, x: Array, y: Array, maps: Maps, *, seed: int, **_: Any) -> Ratio:
        """Pairs are told apart by their seeds."""
        assert maps.tgt is None
        self.tried.append((seed, self.name(maps.src)))
        return Ratio(self.ratios[seed][self.name(maps.src)])


def staged_starts(monkeypatch: pytest.MonkeyPatch, *ratios: Sequence[float]) -> tuple[list[str], list[tuple[int, str]]]:
    """The names of the starts that win for pairs with these ratios, and all that were tried."""
    stage = Staged([dict(zip(Staged.MAPS, each, strict=True)) for each in ratios], [])
    monkeypatch.setattr(profiles, "first_map", stage.profiles)
    monkeypatch.setattr(frank_wolfe, "first_map", stage.frank_wolfe)
    monkeypatch.setattr(choice, "judge", stage.judge)
    monkeypatch.setattr(choice, "_trial", lambda xs, ys, maps, seeds, callback: maps)
    spaces = [np.zeros((50, 3))] * len(ratios)
    found = best_starts(spaces, spaces, FrankWolfeSettings(start_words=40), seeds=range(len(ratios)))
    assert found.shape == (len(ratios), 3, 3)
    return [stage.name(w) for w in found], stage.tried


def test_the_first_start_that_is_clearly_real_is_the_last_one_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    names = list(Staged.MAPS)
    for number, ratios in enumerate([(1.9, 9.0, 9.0), (1.1, 1.5, 9.0), (1.1, 1.4, 1.7)]):
        found, tried = staged_starts(monkeypatch, ratios)
        assert found == [names[number]]
        assert tried == [(0, name) for name in names[: number + 1]]


@pytest.mark.parametrize("best", [0, 1, 2])
def test_where_none_is_clearly_real_the_best_one_wins(best: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ratios = [1.0, 1.1, 1.05]
    ratios[best] = 1.3
    found, tried = staged_starts(monkeypatch, ratios)
    assert found == [list(Staged.MAPS)[best]]
    assert len(tried) == 3


def test_each_pair_goes_on_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = Staged.MAPS
    found, tried = staged_starts(monkeypatch, (1.2, 1.1, 1.0), (2.0, 9.0, 9.0), (1.0, 1.6, 9.0))
    assert found == [first, first, second]
    assert tried == [(0, first), (1, first), (2, first), (0, second), (2, second), (0, third)]


@pytest.mark.slow
def test_trials_are_reported_by_the_name_of_their_start(monkeypatch: pytest.MonkeyPatch) -> None:
    # Nothing is ever clearly real, so that all three get their trial; and the best of them is still the answer.
    monkeypatch.setattr(choice, "_CLEARLY_REAL", 99.0)
    monkeypatch.setattr(choice, "_TRIAL_STEPS", 20)
    problem = planted(250, d=12, noise=0.05, shuffle=True, seed=1)
    seen: list[tuple[int, str, int, int]] = []
    found = best_starts(
        [problem.src],
        [problem.tgt],
        FrankWolfeSettings(start_words=120, start_steps=10),
        seeds=[0],
        callback=lambda pair, name, step, total, _: seen.append((pair, name, step, total)),
    )
    assert seen == [(0, name, step, 20) for name in Staged.MAPS for step in range(1, 21)]
    assert orthogonality_error(found[0]) < 1e-5
    assert problem.accuracy(found[0]) > 0.5  # chance is 1 in 250
