"""One cell of an experiment: a method with its settings and a seed on a direction, fitted and scored.

A cell is known by its address, a hash of all that decides its result and of nothing else: the version, the method, all
of its parameters, the seed, what is in the files, and how it is scored. Where it is computed, what its files are called
and which table asks for it do not count.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from qwp import arrays
from qwp.experiments.data import Inputs, file_hash
from qwp.experiments.packing import packed_ranks
from qwp.experiments.sketch import sketch_plan
from qwp.judging.evaluation import evaluate
from qwp.methods import make_aligner
from qwp.spaces import io
from qwp.spaces.embeddings import Embeddings
from qwp.spaces.lexicon import Lexicon
from qwp.version import __version__

Record = dict[str, Any]

DONE, FAILED = "done", "failed"
EVALUATION: Mapping[str, Any] = {"retrieval": ["nn", "csls"], "at": [1, 5, 10], "csls_k": 10}
_MOST_WARNINGS = 20


@dataclass(frozen=True)
class Cell:
    """options: parameters of the method, those of its preset among them; supervised: whether it gets `inputs.train`."""

    direction: str
    method: str
    options: Mapping[str, Any]
    seed: int
    inputs: Inputs
    supervised: bool = False
    max_vocab: int | None = None

    def content(self) -> dict[str, Any]:
        """All that decides the result."""
        files = {"src": self.inputs.src, "tgt": self.inputs.tgt, "gold": self.inputs.gold}
        if self.supervised and self.inputs.train is not None:
            files["train"] = self.inputs.train
        return {
            "version": __version__,
            "method": self.method,
            "config": make_aligner(self.method, **self.options).config(),
            "seed": self.seed,
            "inputs": {name: file_hash(path) for name, path in files.items()},
            "max_vocab": self.max_vocab,
            "evaluation": EVALUATION,
        }

    def address(self) -> str:
        """The sha256 of the content."""
        return hashlib.sha256(json.dumps(self.content(), sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Place:
    """Where a cell is computed."""

    device: str = "cpu"
    threads: int | None = 1


def run_cell(cell: Cell, place: Place) -> Record:
    """Fit and score. Scores are 0 to 1, by retrieval and measure, over covered words.

    ranks: of the gold words of every covered query, packed, for comparisons of systems query by query; plan: a small
    transport plan for a picture, of the cells of seed 0.
    """
    with arrays.use_threads(place.threads), _warnings() as warnings:
        src, tgt = (_space(path, cell.max_vocab) for path in (cell.inputs.src, cell.inputs.tgt))
        gold = Lexicon.load(cell.inputs.gold)
        train = Lexicon.load(cell.inputs.train) if cell.supervised and cell.inputs.train is not None else None
        machine = {"device": place.device, "threads": place.threads, "seed": cell.seed}
        aligner = make_aligner(cell.method, **{**cell.options, **machine})
        begin = time.perf_counter()
        aligner.fit(src, tgt, lexicon=train)
        seconds = time.perf_counter() - begin
        alignment = aligner.alignment_
        aligned = alignment.on(place.device)
        found = evaluate(aligned, gold, bootstrap=0, **EVALUATION)
        sketch = {"plan": sketch_plan(aligned)} if cell.seed == 0 else {}
    return {
        "scores": {
            retrieval: {measure: score.value for measure, score in scores.covered.items()}
            for retrieval, scores in found.scores.items()
        },
        "coverage": {"covered": found.coverage.covered_source_words, "words": found.coverage.source_words},
        "verdict": alignment.quality.verdict,
        "ranks": packed_ranks(found.ranks),
        "seconds": seconds,
        "stages": dict(alignment.provenance.seconds),
        "place": alignment.provenance.backend,
        "warnings": warnings,
        **sketch,
    }


def finished(cell: Cell, address: str, found: Record) -> Record:
    """What is kept of a cell. found: what `run_cell` returned, or `error`."""
    status = FAILED if "error" in found else DONE
    return {"address": address, "status": status, "direction": cell.direction, **cell.content(), **found}


@lru_cache(maxsize=4)
def _space(path: Path, max_vocab: int | None) -> Embeddings:
    """Vectors, kept for the next cells of this process, which mostly want the same."""
    return io.load(path, max_vocab=max_vocab)


@contextmanager
def _warnings() -> Iterator[list[str]]:
    """What the library warns of meanwhile."""
    texts: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if len(texts) < _MOST_WARNINGS and record.getMessage() not in texts:
                texts.append(record.getMessage())

    handler, logger = Kept(logging.WARNING), logging.getLogger("qwp")
    logger.addHandler(handler)
    try:
        yield texts
    finally:
        logger.removeHandler(handler)
