"""The real vectors that methods are scored on, and the figures of a scored run.

The data is not part of the package: it is read from $QWP_BENCH or ../shared/bench.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import qwp

BENCH = Path(os.environ.get("QWP_BENCH", Path(__file__).parents[2] / "shared" / "bench"))


@dataclass(frozen=True)
class Task:
    """A pair of vector files and the gold dictionary that scores it."""

    name: str
    src: str
    tgt: str
    lexicon: str
    max_vocab: int | None = None

    def load(self) -> tuple[qwp.Embeddings, qwp.Embeddings, qwp.Lexicon]:
        """Vectors of both sides and the gold."""
        spaces = [qwp.load(BENCH / f, max_vocab=self.max_vocab) for f in (self.src, self.tgt)]
        return spaces[0], spaces[1], qwp.Lexicon.load(BENCH / self.lexicon)


def zhang(pair: str) -> Task:
    """The word2vec pairs of Zhang et al. (2017)."""
    src, tgt = pair.split("-")
    folder = f"zhang2017/{pair}"
    return Task(f"zhang {pair}", f"{folder}/{src}.vec", f"{folder}/{tgt}.vec", f"{folder}/lexicon.txt")


def novels(pair: str) -> Task:
    """The 19th-century novels, scored on the test split of MUSE."""
    src, tgt = pair.split("-")
    return Task(f"novels {pair}", f"novels/{src}.npz", f"novels/{tgt}.npz", f"muse/{pair}.5000-6500.txt", 20_000)


def pair_of(src: str, tgt: str) -> Task:
    """Two files of the benchmark data by other algorithms or of other origin, scored on the test split of MUSE."""
    languages = "-".join(name.split("/")[1].split("_")[0] for name in (src, tgt))
    return Task(f"{src} to {tgt}", f"{src}.npz", f"{tgt}.npz", f"muse/{languages}.5000-6500.txt", 20_000)


def scored(alignment: qwp.Alignment, gold: qwp.Lexicon, device: str) -> dict[str, Any]:
    """What every record of an alignment holds: scores in per cent over covered words, coverage, verdict, place."""
    found = qwp.evaluate(alignment.on(device), gold, bootstrap=0)
    scores = {
        f"{retrieval}_{name}": 100 * found.scores[retrieval].covered[measure].value
        for retrieval in ("csls", "nn")
        for name, measure in (("p1", "P@1"), ("mrr", "MRR"))
    }
    return {
        **scores,
        "covered": found.coverage.covered_source_words,
        "gold_words": found.coverage.source_words,
        "verdict": alignment.quality.verdict,
        "ratio": alignment.quality.ratio,
        "place": alignment.provenance.backend,
        "version": qwp.__version__,
    }
