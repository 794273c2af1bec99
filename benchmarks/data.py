"""Spaces that benchmarks align: real pairs with gold dictionaries, and generated pairs.

The real vectors are not part of the repository. They are read from $QWP_BENCH, or ../shared/bench by default.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import qwp
from benchmarks.common import Floats, clustered_space, random_rotation
from benchmarks.records import Record
from qwp import Alignment, Embeddings, Lexicon, arrays
from qwp.spaces import normalization

Array = npt.NDArray[Any]

BENCH = Path(os.environ.get("QWP_BENCH", Path(__file__).parents[2] / "shared" / "bench"))
VOCABULARY = 20_000
_NOISE = 0.3


# --------------------------------------------------------------------------- real pairs


def bench_file(name: str) -> Path:
    """Return the path of a benchmark file; exit with an explanation if the folder is missing."""
    if not BENCH.is_dir():
        raise SystemExit(f"no benchmark vectors in {BENCH}: set QWP_BENCH to their folder")
    return BENCH / name


@dataclass(frozen=True)
class Task:
    """A pair of vector files and the gold dictionary that scores its alignment."""

    name: str
    src: str
    tgt: str
    lexicon: str
    max_vocab: int | None = None

    def load(self) -> tuple[Embeddings, Embeddings, Lexicon]:
        """Return both spaces and the gold dictionary."""
        src, tgt = (qwp.load(bench_file(file), max_vocab=self.max_vocab) for file in (self.src, self.tgt))
        return src, tgt, Lexicon.load(bench_file(self.lexicon))

    @property
    def available(self) -> bool:
        """Whether all files exist."""
        return all((BENCH / file).is_file() for file in (self.src, self.tgt, self.lexicon))

    @property
    def training(self) -> str | None:
        """The training split of MUSE that belongs to the test split; None for other dictionaries."""
        return self.lexicon.replace(".5000-6500.", ".0-5000.") if self.lexicon.startswith("muse/") else None


def zhang(pair: str) -> Task:
    """Return a word2vec pair of Zhang et al. (2017), such as "es-en"."""
    src, tgt = pair.split("-")
    folder = f"zhang2017/{pair}"
    return Task(f"zhang {pair}", f"{folder}/{src}.vec", f"{folder}/{tgt}.vec", f"{folder}/lexicon.txt")


def novels(pair: str) -> Task:
    """Return a pair of 19th-century novels, scored on the test split of MUSE."""
    src, tgt = pair.split("-")
    return Task(f"novels {pair}", f"novels/{src}.npz", f"novels/{tgt}.npz", f"muse/{pair}.5000-6500.txt", VOCABULARY)


def mixed(src: str, tgt: str) -> Task:
    """Return a pair of any two .npz files, scored on the test split of MUSE."""
    languages = "-".join(name.split("/")[1].split("_")[0] for name in (src, tgt))
    return Task(f"{src} to {tgt}", f"{src}.npz", f"{tgt}.npz", f"muse/{languages}.5000-6500.txt", VOCABULARY)


NOVELS = ("en-es", "es-en", "en-fr", "fr-en", "en-de", "de-en")
TASKS = (zhang("es-en"), zhang("it-en"), *(novels(pair) for pair in NOVELS))


def scored(alignment: Alignment, gold: Lexicon, device: str) -> Record:
    """Score an alignment: P@1 and MRR in percent over covered words, coverage and verdict."""
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
        "device": alignment.provenance.backend,
        "version": qwp.__version__,
    }


# --------------------------------------------------------------------------- one pair for benchmarks of stages


@dataclass(frozen=True)
class SpacePair:
    """Two spaces and the gold dictionary that scores a map. rotation: (d, d) the true map of a generated pair."""

    name: str
    src: Embeddings
    tgt: Embeddings
    gold: Lexicon
    rotation: Floats | None = None

    def normalised(self) -> tuple[Array, Array]:
        """Return source (n, d) and target (m, d) as the method prepares them: unit, centred, unit rows."""
        x, y = (arrays.to_numpy(normalization.fit(side.vectors)[1]) for side in (self.src, self.tgt))
        return x, y


def space_pair(n: int = VOCABULARY, d: int = 300, *, generated: bool = False) -> SpacePair:
    """Return at most n words of novels en-es, or n generated words of dimension d if those files are missing."""
    task = replace(novels("en-es"), max_vocab=n)
    if generated or not task.available:
        return generated_pair(n, d)
    return SpacePair(task.name, *task.load())


def generated_pair(n: int, d: int, seed: int = 0, noise: float = _NOISE) -> SpacePair:
    """Return a clustered space (n, d) and its rotated, noisy, shuffled copy. noise: length relative to a row."""
    rng = np.random.default_rng(seed + 1)
    x = clustered_space(n, d, seed)
    rotation = random_rotation(d, rng)
    order = rng.permutation(n)
    y = x[order] @ rotation + noise / d**0.5 * rng.standard_normal((n, d)).astype(np.float32)
    y /= np.linalg.norm(y, axis=1, keepdims=True)
    src = Embeddings([f"s{i}" for i in range(n)], x)
    tgt = Embeddings([f"t{i}" for i in order], y)
    return SpacePair("generated", src, tgt, Lexicon(tuple((f"s{i}", f"t{i}") for i in range(n))), rotation)
