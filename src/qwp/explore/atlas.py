"""The words of the map as a Parquet file, for embedding-atlas and whatever else reads such files (extra `arrow`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from qwp.explore.findings import Told
from qwp.explore.opened import Explored
from qwp.explore.views import points
from qwp.spaces.io.files import replacing
from qwp.spaces.sides import SIDES, Side

_RIGHT = (None, "right", "wrong")


def columns(explored: Explored, tell: Told) -> dict[str, list[Any]]:
    """One entry for each word of the map, the source words first.

    word, language, x, y, rank, translation (the best word of the other side), mutual, confidence (null where it is not
    known), judged (right, wrong or null by the lexicon), chosen (how many words have it as their best).
    """
    plane, findings = explored.lay_out(tell), explored.find(tell)
    shown = points(explored, findings, plane)
    found: dict[str, list[Any]] = {}
    for side in SIDES:
        for name, values in _of_side(explored, shown, side).items():
            found.setdefault(name, []).extend(values)
    return found


def _of_side(explored: Explored, shown: dict[str, Any], side: Side) -> dict[str, list[Any]]:
    own, others = shown[side], shown["tgt" if side == "src" else "src"]["words"]
    n = len(own["words"])
    return {
        "word": own["words"],
        "language": [own["name"]] * n,
        "side": [side] * n,
        "x": [x / shown["grid"] for x in own["x"]],
        "y": [y / shown["grid"] for y in own["y"]],
        "rank": list(range(1, n + 1)),
        "translation": [others[at] if at >= 0 else None for at in own["partner"]],
        "mutual": [bool(value) for value in own["mutual"]],
        "confidence": [value / 100 if value >= 0 else None for value in own["confidence"]],
        "judged": [_RIGHT[value] for value in own["right"]],
        "chosen": own["chosen"],
    }


def write_atlas(explored: Explored, path: Path, tell: Told) -> int:
    """Write the file. Returns how many words are in it."""
    import pyarrow
    from pyarrow import parquet

    table = pyarrow.table(columns(explored, tell))
    with replacing(path) as file:
        parquet.write_table(table, file)
    return int(table.num_rows)
