"""Write results as qwp 0.1.0 saved them. Run with that version: `python tests/data/make_saved.py tests/data/saved-0.1`.

Sixty words of six dimensions a language, of which `pair` and `mapped` know the first fifty source words; the recorded
paths are relative to the folder that holds the vectors. expected.json has what that version translated them to.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

import qwp


def main(out: Path) -> None:
    out.mkdir(parents=True)
    os.chdir(out)
    rng = np.random.default_rng(0)
    words = rng.standard_normal((60, 6))
    for letter in "abc":
        turn = np.linalg.qr(rng.standard_normal((6, 6)))[0]
        rows = [" ".join(f"{x:.4f}" for x in row) for row in words @ turn + 0.02 * rng.standard_normal((60, 6))]
        text = "".join(f"{letter}{i} {row}\n" for i, row in enumerate(rows))
        Path(f"{letter}.vec").write_text(f"60 6\n{text}", "utf-8")
    lexicon = qwp.Lexicon(tuple((f"a{i}", f"b{i}") for i in range(30)))
    src, tgt = qwp.load("a.vec", max_vocab=50), qwp.load("b.vec")
    quick: dict[str, Any] = {"threads": 1, "refine": 2}
    qwp.align(src, tgt, "procrustes", lexicon=lexicon, **quick).save("pair")
    mapped = qwp.align(src, tgt, "procrustes", lexicon=lexicon, map="reweighted", **quick)
    assert mapped.tgt_map is not None
    mapped.save("mapped")
    small: dict[str, Any] = {"start": "identity", "coreset_size": 20, "bank_size": 2, "epochs": 1, "steps": 2}
    spaces = {name: qwp.load(f"{name}.vec") for name in "abc"}
    align_all: Any = qwp.align_all  # as it was in that version
    several = align_all(spaces, hub="b", joint_epochs=1, **small, **quick)
    several.save("several")
    found = {"pair": qwp.Alignment.load("pair"), "mapped": mapped, "several a-c": several.pair("a", "c")}
    found |= {f"several/{name}": alignment for name, alignment in several.alignments.items()}
    best = {name: alignment.translate(alignment.src.words, k=1) for name, alignment in found.items()}
    expected = {name: {word: each[0].word for word, each in words.items()} for name, words in best.items()}
    Path("expected.json").write_text(json.dumps(expected, indent=0), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
