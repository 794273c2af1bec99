"""One cell of an experiment: a method with its settings and a seed on a direction, fitted and scored.

A cell is known by its address, a hash of all that decides its result and of nothing else: the code, the method, all of
its parameters, the seed, what is in the files, and how it is scored. Where it is computed, what its files are called
and which table asks for it do not count.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from qwp import arrays
from qwp.experiments.data import Inputs, file_hash
from qwp.experiments.engines.jobs import Device
from qwp.experiments.engines.jobs import Record as Record
from qwp.experiments.material import Material, Source, add_warnings, read_all, warnings_kept, warnings_of
from qwp.experiments.packing import packed_ranks
from qwp.experiments.shared import Parts, SharedStages
from qwp.experiments.sketch import sketch_plan
from qwp.judging.evaluation import evaluate
from qwp.methods import make_aligner
from qwp.version import code_version

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
