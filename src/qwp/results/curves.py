"""What the records of a run show of how it went: the curves that are worth a picture, whoever draws them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

# By stage: field, title, name of the steps, name of the value.
_WORTH_A_PICTURE = {
    "start": (("objective", "Start: trial run", "step", "mean squared distance"),),
    "couple": (("gromov_wasserstein", "Coupling", "stage", "Gromov-Wasserstein"),),
    "loop": (("objective", "Transport loop", "step", "mean squared distance"),),
    "learn": (
        ("n_pairs", "Learning: pairs in the dictionary", "round", "pairs"),
        ("mean_csls", "Learning: how well they match", "step", "mean CSLS"),
    ),
    "train": (
        ("loss", "Training: loss", "step", "loss"),
        ("criterion", "Training: criterion", "epoch", "mean cosine"),
        ("mean_csls", "Training: how well pairs match", "epoch", "mean CSLS"),
    ),
    "refine": (
        ("n_pairs", "Refinement: pairs in the dictionary", "round", "pairs"),
        ("mean_csls", "Refinement: how well they match", "round", "mean CSLS"),
    ),
}


class Recorded(NamedTuple):
    """The values y of a field of a stage at the steps x."""

    stage: str
    field: str
    title: str
    x_label: str
    y_label: str
    x: list[float]
    y: list[float]


def recorded(history: Sequence[Mapping[str, Any]]) -> Iterator[Recorded]:
    """The curves that the records hold, stage by stage."""
    for stage, wanted in _WORTH_A_PICTURE.items():
        for field, title, x_label, y_label in wanted:
            records = [each for each in history if each["stage"] == stage and isinstance(each.get(field), int | float)]
            if records:
                x, y = ([float(each[key]) for each in records] for key in ("step", field))
                yield Recorded(stage, field, title, x_label, y_label, x, y)
