"""One cell of an experiment: a method with its settings and a seed on a direction, fitted and scored.

A cell is known by its address, a hash of all that decides its result and of nothing else: the code, the method, all of
its parameters, the seed, what is in the files, and how it is scored. Where it is computed, what its files are called
and which table asks for it do not count.
"""

from __future__ import annotations

import base64
import hashlib
import json
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qwp import arrays
from qwp.arrays import Stream
from qwp.experiments.data import Inputs, Material, Source, add_warnings, file_hash, read_all, warnings_kept, warnings_of
from qwp.experiments.engines.jobs import Device
from qwp.experiments.engines.jobs import Record as Record
from qwp.experiments.shared import Parts, SharedStages
from qwp.judging.evaluation import QueryRanks, evaluate
from qwp.judging.ranks import AlignedSpaces
from qwp.methods import make_aligner
from qwp.ot.coresets import kmeans_plusplus_bank
from qwp.ot.costs import cost_matrix
from qwp.ot.sinkhorn import sinkhorn
from qwp.version import code_version

Floats = npt.NDArray[np.float64]

CENTRES, WORDS, EPSILON = 32, 5000, 0.05
LEVELS = 255


def sketch_plan(aligned: AlignedSpaces) -> dict[str, Any]:
    """The plan between the centres of the most frequent words of both sides, k-means++ and one step of Lloyd each.

    src, tgt: the word nearest to each centre; plan: row by row, in parts of the largest entry, packed. Similar source
    centres are beside each other, target centres where their mass comes from: a plan that matches shows a diagonal.
    """
    centres, weights, words = zip(*(_centres(aligned, number) for number in (0, 1)), strict=True)
    plan = np.asarray(sinkhorn(cost_matrix(*centres), *weights, epsilon=EPSILON).matrix)
    rows = _in_line(centres[0])
    plan = plan[rows]
    columns = np.argsort(np.arange(len(rows)) @ plan / np.maximum(plan.sum(axis=0), 1e-12), kind="stable")
    shown = np.round(LEVELS * plan[:, columns] / plan.max())
    names = {"src": [words[0][i] for i in rows], "tgt": [words[1][j] for j in columns]}
    return {**names, "plan": pack(shown.reshape(-1))}


def _centres(aligned: AlignedSpaces, number: int) -> tuple[Floats, Floats, list[str]]:
    """The k centres (k, d) of a side, their weights (k,) and names."""
    space = (aligned.src, aligned.tgt)[number]
    x = arrays.to_numpy(aligned.mapped("src" if number == 0 else "tgt")[:WORDS, :]).astype(np.float64)
    bank = kmeans_plusplus_bank(x, min(CENTRES, len(x)), 1, arrays.rng(0, Stream.SKETCH, number))
    centres = np.asarray(bank.centroids(x, 0, on_sphere=True))
    return centres, np.asarray(bank.weights()[0]), [space.words[i] for i in np.argmax(centres @ x.T, axis=1)]


def _in_line(centres: Floats) -> npt.NDArray[np.int64]:
    """An order of centres (k, d) with similar ones near each other, by the Fiedler vector of their similarities."""
    similar = np.maximum(centres @ centres.T, 0.0)
    _, vectors = np.linalg.eigh(np.diag(similar.sum(axis=1)) - similar)
    return np.argsort(vectors[:, min(1, len(centres) - 1)], kind="stable")


Ints = npt.NDArray[np.int64]
GOLDS = "golds"


def pack(values: npt.ArrayLike) -> str:
    """Numbers from 0 below 2^32, (n,), as base64 of what zlib makes of them, four bytes each, the lowest first."""
    return base64.b64encode(zlib.compress(np.asarray(values).astype("<u4").tobytes(), 9)).decode()


def unpack(text: str) -> Ints:
    """The numbers again, (n,)."""
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype="<u4").astype(np.int64)


def packed_ranks(ranks: Mapping[str, QueryRanks]) -> dict[str, str]:
    """Ranks by retrieval method, and how many gold words each query has, which is the same for all of them."""
    golds = next(iter(ranks.values())).golds
    return {GOLDS: pack(golds), **{method: pack(each.ranks) for method, each in ranks.items()}}


def unpacked_ranks(packed: Mapping[str, str], method: str) -> QueryRanks:
    """The ranks of one retrieval method."""
    return QueryRanks(unpack(packed[GOLDS]), unpack(packed[method]))


DONE, FAILED = "done", "failed"
EVALUATION: Mapping[str, Any] = {"retrieval": ["nn", "csls"], "at": [1, 5, 10], "csls_k": 10}
_PARTS = Parts()
"""What the cells of this process have computed and others may need."""


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
            "version": code_version(),
            "method": self.method,
            "config": make_aligner(self.method, **self.options).config(),
            "seed": self.seed,
            "inputs": {name: file_hash(path) for name, path in files.items()},
            "max_vocab": self.max_vocab,
            "evaluation": EVALUATION,
        }

    def address(self) -> str:
        """The sha256 of the content."""
        return hashlib.sha256(_text(self.content()).encode()).hexdigest()

    def sources(self) -> dict[str, Source]:
        """The files it is computed from."""
        vectors = {"src": self.inputs.src, "tgt": self.inputs.tgt}
        found = {name: Source.vectors(path, max_vocab=self.max_vocab) for name, path in vectors.items()}
        found["gold"] = Source(self.inputs.gold)
        if self.supervised and self.inputs.train is not None:
            found["train"] = Source(self.inputs.train)
        return found

    def compute(self, place: Device, material: Material) -> Record:
        """Fit and score."""
        return run_cell(self, place, material)

    def keep(self, found: Record, material: Material) -> Record:
        """Nothing is left to do: the store keeps it."""
        return found

    def kinship(self) -> tuple[str, ...]:
        """What it may have in common with others, step by step: those that are alike up to a step share all until then.

        The files; the method and all that decides its start; the seed and the size that decide the banks of coresets;
        and all that decides the loop.
        """
        aligner = make_aligner(self.method, **self.options)
        config = aligner.config()
        files = _text([str(self.inputs.src), str(self.inputs.tgt), self.max_vocab])
        banks = _text([self.seed, config.get("coreset_size"), config.get("coreset") == "random"])
        # A method of one stage shares no state with others.
        alone = _text([self.method, config, self.seed])
        keys = [*aligner.composition.pipeline.keys({"method": self.method}, self.seed).values()] or [alone]
        whole, first = keys[0], keys[-1]
        return files, first, banks, whole


def run_cell(cell: Cell, place: Device, material: Material | None = None, parts: Parts | None = _PARTS) -> Record:
    """Fit and score. Scores are 0 to 1, by retrieval and measure, over covered words.

    material: what is in the files, which are read otherwise. parts: what other cells have computed; None to compute all
    of it. `seconds` of the record is what the fit takes alone, `shared_seconds` what others have spent of it; `ranks`:
    of the gold words of every covered query, packed, for comparisons of systems query by query; `plan`: a small
    transport plan for a picture, of the cells of seed 0.
    """
    if material is None:
        material = read_all(cell.sources())
    with arrays.use_threads(place.threads), warnings_kept() as warnings:
        add_warnings(warnings, warnings_of(material))
        machine = {"device": place.device, "threads": place.threads, "seed": cell.seed}
        aligner = make_aligner(cell.method, **{**cell.options, **machine})
        shared = SharedStages(Parts(0) if parts is None else parts, warnings)
        lexicon = material["train"].content if "train" in material else None
        begin = time.perf_counter()
        aligner.fit(material["src"].content, material["tgt"].content, lexicon=lexicon, cache=shared)
        seconds = time.perf_counter() - begin
        alignment = aligner.alignment_
        aligned = alignment.on(place.device)
        found = evaluate(aligned, material["gold"].content, bootstrap=0, **EVALUATION)
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
        "place": alignment.provenance.backend,
        "warnings": warnings,
        **sketch,
    }


def finished(cell: Cell, address: str, found: Record) -> Record:
    """What is kept of a cell. found: what `run_cell` returned, or `error`."""
    status = FAILED if "error" in found else DONE
    return {"address": address, "status": status, "direction": cell.direction, **cell.content(), **found}


def _text(content: Any) -> str:
    return json.dumps(content, sort_keys=True)
