"""Write results in schema 2, the development format before 0.2.

It ran with the code of that format: `python tests/results/data/make_saved_2.py tests/results/data/saved-2`. Forty words
of six dimensions a language. expected.json has the translations that the code of that format found, and the figures of
the verdict under their new names.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

import qwp

NEW_NAMES = {
    "runs": "null_runs",
    "found_again": "null_hits",
    "held_out_random": "null",
    "deviation": "null_deviation",
    "partners": "counterparts",
}


def main(out: Path) -> None:
    out.mkdir(parents=True)
    os.chdir(out)
    rng = np.random.default_rng(0)
    words = rng.standard_normal((40, 6))
    for letter in "ab":
        rotation = np.linalg.qr(rng.standard_normal((6, 6)))[0]
        rows = [" ".join(f"{x:.4f}" for x in row) for row in words @ rotation + 0.02 * rng.standard_normal((40, 6))]
        text = "".join(f"{letter}{i} {row}\n" for i, row in enumerate(rows))
        Path(f"{letter}.vec").write_text(f"40 6\n{text}", "utf-8")
    spaces = {name: qwp.load(f"{name}.vec") for name in "ab"}
    small: dict[str, Any] = {"coreset_size": 20, "bank_size": 2, "epochs": 1, "steps": 2, "refine": 2, "threads": 1}
    found = qwp.align(spaces["a"], spaces["b"], order="none", **small)
    found.save("pair")
    align_all: Any = qwp.align_all  # as it was in that code
    align_all(spaces, hub="b", joint_epochs=1, start="identity", **small).save("several")
    best = found.translate(found.src.words, k=1)
    quality = {NEW_NAMES.get(name, name): value for name, value in found.quality.to_dict().items()}
    expected = {"translations": {word: each[0].word for word, each in best.items()}, "quality": quality}
    Path("expected.json").write_text(json.dumps(expected, indent=0), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
