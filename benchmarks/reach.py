"""How far an alignment without a dictionary reaches: bridges over a third space, and longer searches.

    QWP_BENCH=FOLDER python -m benchmarks.reach [bridges | hard | effort] --device cuda

`bridges` aligns fi-ru over en with and without the transport loop after the joined pairs; the training split chooses
between both. `hard` looks for cuts of pairs that single searches find for some seeds. `effort` repeats the cut that is
found in half of them with `--effort high`. Both score by the training split of MUSE, because they choose the cut.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from typing import TypeAlias

import qwp
from benchmarks import records
from benchmarks.data import bench_file, scored
from benchmarks.records import Record, Run
from qwp import Alignment, Embeddings, Lexicon
from qwp.methods import QWP
from qwp.methods.bridges import Bridge, Leg, joined_pairs
from qwp.stages.init.given import WeightedPairs

RESULTS = records.FOLDER / "reach.jsonl"
SEEDS = 3
HARD_CUTS = tuple(product(("en-ru",), (2000, 2500, 3000, 3500, 4000, 5000)))
HARD_SEEDS = 8
EFFORT_CUT = ("en-ru", 3000)
EFFORT_SEEDS = 20
Cut: TypeAlias = "tuple[str, int]"
"""A pair and the number of its most frequent words that are aligned."""
FOUND = 0.5
"""A search has found a pair if its P@1 is more than this share of the P@1 from known pairs."""


@cache
def pretrained(language: str, words: int | None = None) -> Embeddings:
    """Return pretrained vectors of a language, the most frequent words only if `words` is given."""
    return qwp.load(bench_file(f"pretrained/{language}.npz"), max_vocab=words)


# --------------------------------------------------------------------------- bridges


@dataclass(frozen=True)
class Variant:
    """How the joined pairs initialize a fit. least: confidence of a pair."""

    loop: bool
    least: float

    def aligner(self, pairs: WeightedPairs, **options: object) -> QWP:
        """Return the aligner that begins with pairs."""
        kept = pairs.weights >= self.least
        chosen = WeightedPairs(pairs=(pairs.pairs[0][kept], pairs.pairs[1][kept]), weights=pairs.weights[kept])
        solve = QWP.pipeline.solve if self.loop else None

        class FromPairs(QWP):
            """`qwp` with the joined pairs as its initial map."""

            pipeline = replace(QWP.pipeline, init=chosen, solve=solve)

        return FromPairs(**{name: value for name, value in options.items() if name in FromPairs.parameter_names()})


VARIANTS = (Variant(loop=False, least=0.2), Variant(loop=True, least=0.2), Variant(loop=False, least=0.5))


def bridges_suite(device: str) -> Iterator[Run]:
    """Align fi-ru over en by all variants; score them on the training and on the test split of XLING."""
    for seed, variant in product(range(SEEDS), VARIANTS):
        key = {"suite": "bridges", "pair": "fi-ru", "loop": variant.loop, "least": variant.least, "seed": seed}
        yield Run(key, partial(_bridged, variant, seed, device))


@cache
def _legs(seed: int, device: str) -> tuple[Leg, Leg]:
    src, tgt = (
        QWP(seed=seed, device=device).fit(pretrained(side), pretrained("en")).alignment_ for side in ("fi", "ru")
    )
    return Leg.of(src), Leg.of(tgt)


def _bridged(variant: Variant, seed: int, device: str) -> Record:
    legs = _legs(seed, device)
    begin = time.perf_counter()
    pairs = joined_pairs([Bridge(pretrained("en"), *legs)])
    assert pairs is not None
    aligner = variant.aligner(pairs, seed=seed, device=device)
    found = aligner.fit(pretrained("fi"), pretrained("ru")).alignment_
    seconds = time.perf_counter() - begin
    return {
        **{split: _p1(found, f"xling/xling.fi-ru.{split}.tsv", device) for split in ("train", "test")},
        "joined": len(pairs.weights),
        "legs": [leg.record.estimate for leg in legs],
        "verdict": found.quality.verdict,
        "ratio": found.quality.ratio,
        "estimate": None if found.quality.estimate is None else found.quality.estimate.overall.p1,
        "seconds": seconds,
    }


def _p1(alignment: Alignment, gold: str, device: str) -> float:
    found: float = scored(alignment, Lexicon.load(bench_file(gold)), device)["csls_p1"]
    return found


# --------------------------------------------------------------------------- effort


def hard_suite(device: str) -> Iterator[Run]:
    """Search once on cuts of a pair, and align each cut from known pairs."""
    for seed, cut in product(range(HARD_SEEDS), HARD_CUTS):
        yield Run(_key("hard", cut, seed, "normal"), partial(_searched, cut, seed, "normal", device))
    for pair, words in HARD_CUTS:
        yield Run(
            {"suite": "known pairs", "pair": pair, "words": words}, partial(_from_known_pairs, (pair, words), device)
        )


def effort_suite(device: str) -> Iterator[Run]:
    """Search once and with high effort, with seeds that did not choose the cut."""
    for effort, seed in product(("normal", "high"), range(100, 100 + EFFORT_SEEDS)):
        yield Run(_key("effort", EFFORT_CUT, seed, effort), partial(_searched, EFFORT_CUT, seed, effort, device))


def _key(suite: str, cut: Cut, seed: int, effort: str) -> Record:
    return {"suite": suite, "pair": cut[0], "words": cut[1], "effort": effort, "seed": seed}


def _searched(cut: Cut, seed: int, effort: str, device: str) -> Record:
    aligner = QWP(seed=seed, device=device, start="unsupervised", effort=effort, verdict="quick")
    return _scored_cut(aligner, cut, device)


def _from_known_pairs(cut: Cut, device: str) -> Record:
    return _scored_cut(QWP(device=device, start="lexicon", verdict="quick"), cut, device, _training(cut))


def _training(cut: Cut) -> Lexicon:
    return Lexicon.load(bench_file(f"muse/{cut[0]}.0-5000.txt"))


def _scored_cut(aligner: QWP, cut: Cut, device: str, lexicon: Lexicon | None = None) -> Record:
    src, tgt = (pretrained(side, cut[1]) for side in cut[0].split("-"))
    begin = time.perf_counter()
    found = aligner.fit(src, tgt, lexicon=lexicon).alignment_
    seconds = time.perf_counter() - begin
    gold = scored(found, _training(cut), device)
    candidates = found.provenance.candidates
    return {
        **{name: gold[name] for name in ("csls_p1", "covered", "verdict", "ratio")},
        "initializer": found.provenance.initializer,
        "candidates": len(candidates),
        "seconds": seconds,
    }


SUITES = {"bridges": bridges_suite, "hard": hard_suite, "effort": effort_suite}

if __name__ == "__main__":
    records.main("benchmarks.reach", __doc__, SUITES, RESULTS)
