"""One cell of an experiment: a method with its settings and a seed on a direction, fitted and scored.

The address of a cell is a hash of everything that determines its result: the code, the method, all of its parameters,
the seed, the content of the files, and the evaluation. The device, the names of the files and the table do not count.

Cells share stages, and a process computes each stage once. A fit that finds the state after a stage continues from it,
as an interrupted fit continues from its checkpoint. The result is identical to that of a complete fit, because fits
share states only within a process, with the same device and number of threads. `Pipeline.keys` returns what a state
depends on.
"""

from __future__ import annotations

import base64
import hashlib
import json
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qwp import arrays
from qwp.arrays import Floats, Ints, LRUCache, Stream
from qwp.experiments.data import (
    Contents,
    DataFile,
    DirectionFiles,
    add_warnings,
    collected_warnings,
    file_hash,
    load_all,
    warnings_of,
)
from qwp.experiments.jobs import JobDevice, JobRecord
from qwp.judging.evaluation import QueryRanks, evaluate
from qwp.judging.ranks import AlignedSpaces
from qwp.methods import make_aligner
from qwp.ot.coreset_source import Banks
from qwp.ot.coresets import kmeans_plusplus_bank
from qwp.ot.costs import cost_matrix
from qwp.ot.sinkhorn import sinkhorn
from qwp.stages.stage import State
from qwp.version import code_version

# --------------------------------------------------------------------------- numbers in records

GOLDS = "golds"


def pack(values: npt.ArrayLike) -> str:
    """Compress integers from 0 to 2^32 - 1, (n,): little-endian 32-bit numbers, zlib, base64."""
    return base64.b64encode(zlib.compress(np.asarray(values).astype("<u4").tobytes(), 9)).decode()


def unpack(text: str) -> Ints:
    """Return the integers of `pack`, (n,)."""
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype="<u4").astype(np.int64)


def packed_ranks(ranks: Mapping[str, QueryRanks]) -> dict[str, str]:
    """Pack ranks by retrieval method, and the number of gold words of each query, which all methods share."""
    golds = next(iter(ranks.values())).golds
    return {GOLDS: pack(golds), **{method: pack(each.ranks) for method, each in ranks.items()}}


def unpacked_ranks(packed: Mapping[str, str], method: str) -> QueryRanks:
    """Return the ranks of a retrieval method."""
    return QueryRanks(unpack(packed[GOLDS]), unpack(packed[method]))


# --------------------------------------------------------------------------- a transport plan for a picture

LEVELS = 255
"""Entries of a plan are saved in this many levels."""


def sketch_plan(aligned: AlignedSpaces, *, size: int = 32, words: int = 5000, epsilon: float = 0.05) -> dict[str, Any]:
    """Compute a small transport plan between centres of the most frequent words: k-means++ and one Lloyd step.

    Similar source centres are neighbours and target centres follow their mass, so a plan that matches shows a diagonal.

    Args:
        aligned: both sides in one space.
        size: number of rows and columns; the words of 32 are readable.
        words: most frequent words of each side from which centres are drawn.
        epsilon: entropic regularisation, by default that of the paper.

    Returns:
        The word nearest to each centre, `src` and `tgt`, and `plan`, packed row by row in units of its largest entry.
    """
    sides = (_centres(aligned, number, size, words) for number in (0, 1))
    centres, weights, names = zip(*sides, strict=True)
    plan = np.asarray(sinkhorn(cost_matrix(*centres), *weights, epsilon=epsilon).matrix)
    rows = _by_similarity(centres[0])
    plan = plan[rows]
    columns = np.argsort(np.arange(len(rows)) @ plan / np.maximum(plan.sum(axis=0), 1e-12), kind="stable")
    levels = np.round(LEVELS * plan[:, columns] / plan.max())
    shown = {"src": [names[0][i] for i in rows], "tgt": [names[1][j] for j in columns]}
    return {**shown, "plan": pack(levels.reshape(-1))}


def _centres(aligned: AlignedSpaces, number: int, size: int, words: int) -> tuple[Floats, Floats, list[str]]:
    """Return the k centres (k, d) of a side, their weights (k,) and the word nearest to each."""
    space = (aligned.src, aligned.tgt)[number]
    x = arrays.to_numpy(aligned.mapped("src" if number == 0 else "tgt")[:words, :]).astype(np.float64)
    bank = kmeans_plusplus_bank(x, min(size, len(x)), 1, arrays.rng(0, Stream.SKETCH, number))
    centres = np.asarray(bank.centroids(x, 0, on_sphere=True))
    return centres, np.asarray(bank.weights()[0]), [space.words[i] for i in np.argmax(centres @ x.T, axis=1)]


def _by_similarity(centres: Floats) -> Ints:
    """Order centres (k, d) so that similar ones are neighbours, by the Fiedler vector of their similarities."""
    similar = np.maximum(centres @ centres.T, 0.0)
    _, vectors = np.linalg.eigh(np.diag(similar.sum(axis=1)) - similar)
    return np.argsort(vectors[:, min(1, len(centres) - 1)], kind="stable")


# --------------------------------------------------------------------------- shared stages


@dataclass(frozen=True)
class CachedPart:
    """A state or coreset bank of `size` bytes that took `seconds` to compute, with the warnings up to it."""

    content: Any
    size: int
    seconds: float
    warnings: tuple[str, ...] = ()


class PartCache(LRUCache[str, CachedPart]):
    """A cache of what cells share, by key."""

    def __init__(self, max_bytes: int = 512 << 20) -> None:
        super().__init__(max_bytes, lambda part: part.size)


class SharedStages:
    """The `StageCache` of one fit, backed by the cache of its process.

    Attributes:
        seconds: time that other fits have spent on the parts this fit takes from the cache.
    """

    def __init__(self, cache: PartCache, warnings: list[str]) -> None:
        """warnings: the warnings of the fit; those of the parts it takes from the cache are added."""
        self._cache, self._warnings = cache, warnings
        self.seconds = self._bank_seconds = 0.0

    def load(self, keys: Mapping[str, str]) -> tuple[State, Mapping[str, float]] | None:
        """Return the latest cached state, and the seconds spent on it."""
        for key in keys.values():
            part = self._cache.get(key)
            if part is not None:
                self.seconds += part.seconds
                add_warnings(self._warnings, part.warnings)
                state, seconds = part.content
                return state, seconds
        return None

    def save(self, key: str, state: State, seconds: Mapping[str, float]) -> None:
        """Cache a state for other fits."""
        # Each fit prepares its spaces itself, and spends no time on cached banks.
        spent = {stage: each for stage, each in seconds.items() if stage != "prepare"}
        assert state.maps is not None
        size = sum(arrays.to_numpy(w).nbytes for w in state.maps if w is not None)
        total = self._bank_seconds + sum(spent.values())
        self._cache.add(key, CachedPart((state, spent), size, total, tuple(self._warnings)))

    def banks(self, key: str, draw: Callable[[], Banks]) -> Banks:
        """Return the coreset banks of a key, and draw them if they are not cached."""
        part = self._cache.get(key)
        if part is None:
            begin = time.perf_counter()
            banks = draw()
            arrays.synchronize(banks[0].centres)
            part = CachedPart(banks, sum(bank.nbytes for bank in banks), time.perf_counter() - begin)
            self._cache.add(key, part)
        else:
            self.seconds += part.seconds
            self._bank_seconds += part.seconds
        return list(part.content)


# --------------------------------------------------------------------------- cells

DONE, FAILED = "done", "failed"
EVALUATION: Mapping[str, Any] = {"retrieval": ["nn", "csls"], "at": [1, 5, 10], "csls_k": 10}
_CACHE = PartCache()


@dataclass(frozen=True)
class Cell:
    """A fit and its evaluation.

    Attributes:
        direction: such as en-es.
        method: name of the method.
        options: parameters of the method, including those of its preset.
        seed: seed of the fit.
        inputs: files of the direction.
        supervised: whether the method learns from `inputs.train`.
        max_vocab: words to read of each side.
    """

    direction: str
    method: str
    options: Mapping[str, Any]
    seed: int
    inputs: DirectionFiles
    supervised: bool = False
    max_vocab: int | None = None

    def content(self) -> dict[str, Any]:
        """Return everything that determines the result."""
        files = {"src": self.inputs.src, "tgt": self.inputs.tgt, "gold": self.inputs.gold}
        if self.supervised and self.inputs.train is not None:
            files["train"] = self.inputs.train
        return {
            "version": code_version(),
            "method": self.method,
            "config": make_aligner(self.method, **self.options).config(),
            "seed": self.seed,
            "inputs": {name: file_hash(path) for name, path in files.items()},
            "max_vocab": self.max_vocab,
            "evaluation": EVALUATION,
        }

    def address(self) -> str:
        """Return the sha256 of the content."""
        return hashlib.sha256(_text(self.content()).encode()).hexdigest()

    def sources(self) -> dict[str, DataFile]:
        """Return the files to load."""
        vectors = {"src": self.inputs.src, "tgt": self.inputs.tgt}
        found = {name: DataFile.vectors(path, max_vocab=self.max_vocab) for name, path in vectors.items()}
        found["gold"] = DataFile(self.inputs.gold)
        if self.supervised and self.inputs.train is not None:
            found["train"] = DataFile(self.inputs.train)
        return found

    def compute(self, device: JobDevice, contents: Contents) -> JobRecord:
        """Fit and score."""
        return run_cell(self, device, contents)

    def finish(self, result: JobRecord, contents: Contents) -> JobRecord:
        """Return the result: it is a record already."""
        return result

    def affinity(self) -> tuple[str, ...]:
        """Return keys of the files, the initialization, the coreset banks and the loop."""
        aligner = make_aligner(self.method, **self.options)
        config = aligner.config()
        files = _text([str(self.inputs.src), str(self.inputs.tgt), self.max_vocab])
        banks = _text([self.seed, config.get("coreset_size"), config.get("coreset") == "random"])
        # A method with one stage shares no state with others.
        alone = _text([self.method, config, self.seed])
        keys = [*aligner.composition.pipeline.keys({"method": self.method}, self.seed).values()] or [alone]
        return files, keys[-1], banks, keys[0]


def run_cell(
    cell: Cell, device: JobDevice, contents: Contents | None = None, cache: PartCache | None = _CACHE
) -> JobRecord:
    """Fit and score a cell.

    Args:
        cell: what to compute.
        device: the device and threads to use.
        contents: the contents of its files, if they are loaded already.
        cache: the parts that other cells have computed; None computes all of them.

    Returns:
        A record. `scores` are from 0 to 1 by retrieval and measure, over covered words. `seconds` is the time of the
        whole fit, and `shared_seconds` the part of it that other cells have spent. `ranks` holds the ranks of the gold
        words of every covered query, packed, to compare systems query by query. Cells of seed 0 have a small `plan`.
    """
    if contents is None:
        contents = load_all(cell.sources())
    with arrays.use_threads(device.threads), collected_warnings() as warnings:
        add_warnings(warnings, warnings_of(contents))
        machine = {"device": device.name, "threads": device.threads, "seed": cell.seed}
        aligner = make_aligner(cell.method, **{**cell.options, **machine})
        shared = SharedStages(PartCache(0) if cache is None else cache, warnings)
        lexicon = contents["train"].content if "train" in contents else None
        begin = time.perf_counter()
        aligner.fit(contents["src"].content, contents["tgt"].content, lexicon=lexicon, cache=shared)
        seconds = time.perf_counter() - begin
        alignment = aligner.alignment_
        aligned = alignment.on(device.name)
        found = evaluate(aligned, contents["gold"].content, bootstrap=0, **EVALUATION)
        sketch = {"plan": sketch_plan(aligned)} if cell.seed == 0 else {}
    return {
        "scores": {
            retrieval: {measure: score.value for measure, score in scores.covered.items()}
            for retrieval, scores in found.scores.items()
        },
        "coverage": {"covered": found.coverage.covered_source_words, "words": found.coverage.source_words},
        "verdict": alignment.quality.verdict,
        "ranks": packed_ranks(found.ranks),
        "seconds": seconds + shared.seconds,
        "shared_seconds": shared.seconds,
        "stages": dict(alignment.provenance.seconds),
        "device": alignment.provenance.backend,
        "warnings": warnings,
        **sketch,
    }


def saved_record(cell: Cell, address: str, record: JobRecord) -> JobRecord:
    """Return the record of a cell as it is saved. record: the result of `run_cell`, or `error`."""
    status = FAILED if "error" in record else DONE
    return {"address": address, "status": status, "direction": cell.direction, **cell.content(), **record}


def _text(content: Any) -> str:
    return json.dumps(content, sort_keys=True)
