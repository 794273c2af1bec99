"""How far an alignment without a dictionary reaches: bridges, longer searches, and many languages.

    QWP_BENCH=FOLDER python -m benchmarks.reach [SUITE ...] --device cuda

`bridges` aligns fi-ru over en with and without the transport loop after the joined pairs; the training split chooses
between both. `hard` looks for cuts of pairs that single searches find for some seeds. `effort` repeats the cut that is
found in half of them with `--effort high`. Both score by the training split of MUSE, because they choose the cut.
`planted` does the same on a generated pair, with a short search that takes a second on a CPU.

`languages` aligns every two of the six languages of the novels with `align_all`, `directions` aligns each of the thirty
directions by itself. MUSE test splits score the directions from and to English. Words with the same English translation
in the dictionaries score the others.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import combinations, permutations, product
from pathlib import Path
from typing import TypeAlias

import numpy as np

import qwp
from benchmarks import records
from benchmarks.common import clustered_space, random_rotation
from benchmarks.data import VOCABULARY, bench_file, scored
from benchmarks.memory import peak
from benchmarks.records import Record, Run, cell, markdown, mean, select, share
from qwp import Alignment, AllPairs, Embeddings, Lexicon, MultiAlignment
from qwp.methods import QWP
from qwp.methods.align_all import align_all
from qwp.methods.bridges import Bridge, Leg, joined_pairs
from qwp.methods.compositions import SEARCH, initializers
from qwp.results.all_pairs import PairStore
from qwp.stages.init.given import WeightedPairs
from qwp.stages.init.profiles import Profiles
from qwp.stages.wasserstein_procrustes import Trial

RESULTS = records.FOLDER / "reach.jsonl"
LANGUAGES = ("en", "es", "fr", "de", "hu", "pl")
SEEDS = 3
HARD_CUTS = tuple(product(("en-ru",), (2000, 2500, 3000, 3500, 4000, 5000)))
HARD_SEEDS = 8
EFFORT_CUT = ("en-ru", 3000)
EFFORT_SEEDS = 20
Cut: TypeAlias = "tuple[str, int]"
"""A pair and the number of its most frequent words that are aligned."""
KEYS = ("suite", "pair", "words", "effort")
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


SHORT = replace(
    SEARCH,
    profiles=Profiles(words=300),
    fused=tuple(replace(each, words=300) for each in SEARCH.fused[:2]),
    brief=Trial(words=300, steps=0, coreset=100, epsilon=0.05, batches=1),
    long=Trial(words=300, steps=20, coreset=100, epsilon=0.1, batches=1),
    rounds=1,
    continuations=0,
    accept_ratio=1.4,
    consensus=99.0,
)
"""A search of three candidates, because a whole search hardly ever fails on generated spaces."""


class ShortSearch(QWP):
    """`qwp` with a short search."""

    pipeline = replace(QWP.pipeline, init=initializers(SHORT))


def planted_suite(device: str) -> Iterator[Run]:
    """Search a generated pair whose sides have different strong directions, with seeds that no setting was tried on."""
    for effort, seed in product(("normal", "high"), range(100, 100 + EFFORT_SEEDS)):
        yield Run({"suite": "planted", "effort": effort, "seed": seed}, partial(_planted, effort, seed, device))


def stretched(words: int = 300, dim: int = 16, weak: float = 0.57, noise: float = 0.1) -> tuple[Embeddings, Embeddings]:
    """Return a space and its rotation; each side has half of its directions shortened, and noise."""
    rng, meanings = np.random.default_rng(2), clustered_space(words, dim, 1)
    sides = []
    for first, name in enumerate("st"):
        side = meanings.copy()
        side[:, first::2] *= weak
        side += noise / dim**0.5 * rng.standard_normal(side.shape).astype(np.float32)
        sides.append(Embeddings([f"{name}{i}" for i in range(words)], side))
    return sides[0], Embeddings(sides[1].words, sides[1].vectors @ random_rotation(dim, rng))


def _planted(effort: str, seed: int, device: str) -> Record:
    aligner = ShortSearch(
        seed=seed, device=device, start="unsupervised", effort=effort, order="given", verdict="none", threads=1
    )
    begin = time.perf_counter()
    found = aligner.fit(*stretched()).alignment_
    best = found.translate(found.src.words, k=1)
    right = [translations[0].word[1:] == word[1:] for word, translations in best.items()]
    figures = {"csls_p1": 100 * float(np.mean(right)), "candidates": len(found.provenance.candidates)}
    return {**figures, "seconds": time.perf_counter() - begin}


def _scored_cut(aligner: QWP, cut: Cut, device: str, lexicon: Lexicon | None = None) -> Record:
    src, tgt = (pretrained(side, cut[1]) for side in cut[0].split("-"))
    begin = time.perf_counter()
    found = aligner.fit(src, tgt, lexicon=lexicon).alignment_
    seconds = time.perf_counter() - begin
    scores = scored(found, _training(cut), device)
    candidates = found.provenance.candidates
    return {
        **{name: scores[name] for name in ("csls_p1", "covered", "verdict", "ratio")},
        "initializer": found.provenance.initializer,
        "candidates": len(candidates),
        "seconds": seconds,
    }


# --------------------------------------------------------------------------- many languages


@cache
def spaces() -> dict[str, Embeddings]:
    """Return the vectors of the novels by language."""
    return {name: qwp.load(bench_file(f"novels/{name}.npz"), max_vocab=VOCABULARY) for name in LANGUAGES}


def gold(src: str, tgt: str) -> Lexicon:
    """Return the test split of a direction from or to English, or the pairs that two dictionaries with English join."""
    if "en" in (src, tgt):
        return Lexicon.load(bench_file(f"muse/{src}-{tgt}.5000-6500.txt"))
    over: dict[str, list[str]] = {}
    for english, word in _dictionary(tgt):
        over.setdefault(english, []).append(word)
    return Lexicon(tuple((one, other) for english, one in _dictionary(src) for other in over.get(english, [])))


@cache
def _dictionary(language: str) -> tuple[tuple[str, str], ...]:
    splits = (Lexicon.load(bench_file(f"muse/en-{language}.{split}.txt")) for split in ("0-5000", "5000-6500"))
    return tuple((english, word) for split in splits for english, word in split.pairs)


def languages_suite(device: str) -> Iterator[Run]:
    """Align all languages at once; score all directions pairwise, and every two languages in the joint space."""
    for src, tgt in permutations(LANGUAGES, 2):
        yield Run(_direction("languages", src, tgt), partial(_of_all, src, tgt, device))
    for src, tgt in combinations(LANGUAGES, 2):
        yield Run(_direction("joint", src, tgt), partial(_in_joint, src, tgt, device))


def directions_suite(device: str) -> Iterator[Run]:
    """Align each direction by itself."""
    for src, tgt in permutations(LANGUAGES, 2):
        yield Run(_direction("directions", src, tgt), partial(_alone, src, tgt, device))


def _direction(suite: str, src: str, tgt: str) -> Record:
    return {"suite": suite, "src": src, "tgt": tgt, "words": len(spaces()["en"]), "seed": 0}


@cache
def _all_pairs(device: str) -> tuple[AllPairs, float]:
    """Return all pairs and the seconds of their fits. An interrupted run continues."""
    folder = Path(tempfile.gettempdir()) / f"qwp-languages-{len(spaces()['en'])}"
    found = align_all(QWP(device=device), spaces(), store=PairStore(folder))
    return found, sum(record["seconds"] for record in found.records())


@cache
def _joint(device: str) -> tuple[MultiAlignment, float]:
    found = _all_pairs(device)[0].on(device)
    begin = time.perf_counter()
    return found.joint("en"), time.perf_counter() - begin


def _of_all(src: str, tgt: str, device: str) -> Record:
    found, seconds = _all_pairs(device)
    alignment = found.pair(src, tgt)
    via = [each.space.name for each in alignment.provenance.bridges]
    return {**_figures(alignment, src, tgt, device), "via": via, "seconds_of_all": seconds, "host_bytes": peak()}


def _in_joint(src: str, tgt: str, device: str) -> Record:
    found, seconds = _joint(device)
    return {**_figures(found.pair(src, tgt), src, tgt, device), "seconds_of_all": seconds}


def _alone(src: str, tgt: str, device: str) -> Record:
    begin = time.perf_counter()
    found = QWP(device=device).fit(spaces()[src], spaces()[tgt]).alignment_
    return {**_figures(found, src, tgt, device), "seconds": time.perf_counter() - begin}


def _figures(alignment: Alignment, src: str, tgt: str, device: str) -> Record:
    found = scored(alignment, gold(src, tgt), device)
    estimate = alignment.quality.estimate
    return {
        **{name: found[name] for name in ("csls_p1", "covered", "verdict", "ratio")},
        "estimate": None if estimate is None else estimate.overall.p1,
    }


# --------------------------------------------------------------------------- tables


def tables(found: Sequence[Record]) -> str:
    """Return all tables as Markdown."""
    parts = ["### Bridges", bridges_table(select(found, suite="bridges")), "### Searches", searches_table(found)]
    parts += ["### Planted", planted_table(select(found, suite="planted"))]
    if pairs := select(found, suite="languages"):
        parts += ["### Languages", languages_table(found, pairs)]
    return "\n\n".join(parts)


def bridges_table(found: Sequence[Record]) -> str:
    """Return a row for each variant: the mean over the seeds, and each seed on the test split."""
    rows = []
    for loop, least in dict.fromkeys((record["loop"], record["least"]) for record in found):
        runs = select(found, loop=loop, least=least)
        tests = ", ".join(cell(record["test"]) for record in runs)
        figures = [cell(mean(runs, "train")), cell(mean(runs, "test")), tests, share(runs, "succeeded")]
        rows.append(["with" if loop else "without", cell(least), *figures])
    head = ["transport loop", "least confidence", "P@1, training", "P@1, test", "each seed, test", "succeeded"]
    return markdown(head, rows)


def searches_table(found: Sequence[Record]) -> str:
    """Return a row for each cut and effort: how many searches found it, and the cost of a fit."""
    known = {(record["pair"], record["words"]): record["csls_p1"] for record in select(found, suite="known pairs")}
    searches = [record for record in found if record["suite"] in ("hard", "effort")]
    rows = []
    for suite, pair, words, effort in sorted(
        {tuple(r[k] for k in ("suite", "pair", "words", "effort")) for r in searches}
    ):
        runs = select(searches, suite=suite, pair=pair, words=words, effort=effort)
        right = sum(record["csls_p1"] > FOUND * known[pair, words] for record in runs if (pair, words) in known)
        hits = f"{right} of {len(runs)}" if (pair, words) in known else "-"
        seconds = cell(mean(runs, "seconds"))
        rows.append(
            [pair, f"{words:,}", effort, hits, cell(mean(runs, "csls_p1")), cell(known.get((pair, words))), seconds]
        )
    head = ["pair", "words", "effort", "found", "mean P@1", "P@1 from known pairs", "seconds"]
    return markdown(head, rows)


def planted_table(found: Sequence[Record]) -> str:
    """Return a row for each effort: how many searches found the generated pair, and what they cost."""
    rows = []
    for effort in dict.fromkeys(record["effort"] for record in found):
        runs = select(found, effort=effort)
        hits = sum(record["csls_p1"] > 100 * FOUND for record in runs)
        rows.append([effort, f"{hits} of {len(runs)}", cell(mean(runs, "candidates")), cell(mean(runs, "seconds"))])
    return markdown(["effort", "found", "candidates", "seconds"], rows)


def languages_table(found: Sequence[Record], pairs: Sequence[Record]) -> str:
    """Return a row for each direction: by `align_all`, by a fit of its own, and in the joint space."""
    rows = []
    for record in pairs:
        here = {name: record[name] for name in ("src", "tgt", "words", "seed")}
        alone, joint = (select(found, suite=suite, **here) for suite in ("directions", "joint"))
        scores = [cell(record["csls_p1"]), cell(mean(alone, "csls_p1")), cell(mean(joint, "csls_p1"))]
        rows.append([f"{record['src']}-{record['tgt']}", f"{record['words']:,}", record["verdict"], *scores])
    return markdown(["direction", "words", "verdict", "all pairs", "alone", "joint space"], rows)


SUITES = {
    "bridges": bridges_suite,
    "hard": hard_suite,
    "effort": effort_suite,
    "planted": planted_suite,
    "languages": languages_suite,
    "directions": directions_suite,
}

if __name__ == "__main__":
    records.main("benchmarks.reach", __doc__, SUITES, RESULTS)
