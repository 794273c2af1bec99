"""Gain in P@1 from a spelling term in the retrieval, and the choice of its weight.

    QWP_BENCH=FOLDER python -m benchmarks.spelling [choice | final] --device cuda

Each pair is aligned once with the default settings and scored in both directions. `choice` compares similarities of
words, weights and numbers of candidates on the training split of MUSE, for languages with a common script. `final`
chooses nothing: it scores the term of `qwp.search.spelling` on both splits and on the Zhang dictionaries. The
alignments are cached in the folder results/spelling.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import numpy.typing as npt

import qwp
from benchmarks import records
from benchmarks.ablation import reversed_alignment
from benchmarks.data import VOCABULARY, bench_file
from benchmarks.problems import reverse
from benchmarks.records import Record, Run, cell, markdown, select, values
from qwp import Alignment, Lexicon
from qwp.arrays import Floats
from qwp.search.spelling import LABEL, Spelling, folded
from qwp.spaces.demo import load_demo

RESULTS = records.FOLDER / "spelling.jsonl"
ALIGNMENTS = records.FOLDER / "spelling"
TRAIN, TEST = "train", "test"
MUSE = {TRAIN: "0-5000", TEST: "5000-6500"}
WEIGHTS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0, 1.2)
DEPTHS = (10, 25, 50, 100, 200)
CHOSEN = "edit distance, squared"


@dataclass(frozen=True)
class Pair:
    """Two benchmark files, their languages, and the splits of MUSE that score them.

    files: None for the packaged demo. gold: a dictionary used as the test split. one_script: whether the languages
    share an alphabet.
    """

    name: str
    files: tuple[str, str] | None
    languages: str
    splits: tuple[str, ...] = (TRAIN, TEST)
    gold: str | None = None
    one_script: bool = True

    def load(self) -> tuple[qwp.Embeddings, qwp.Embeddings]:
        """Return the vectors."""
        if self.files is None:
            return load_demo()[:2]
        src, tgt = (qwp.load(bench_file(file), max_vocab=VOCABULARY) for file in self.files)
        return src, tgt

    def directions(self) -> tuple[str, str]:
        """Return both directions, such as "en-es" and "es-en"."""
        return self.languages, reverse(self.languages)

    def lexicon(self, split: str, direction: str) -> Lexicon:
        """Return the dictionary of a split in one direction."""
        if self.gold is None:
            return Lexicon.load(bench_file(f"muse/{direction}.{MUSE[split]}.txt"))
        lexicon = Lexicon.load(bench_file(self.gold))
        return lexicon if direction == self.languages else lexicon.reverse()


def _novels(language: str) -> Pair:
    return Pair(f"novels en-{language}", ("novels/en.npz", f"novels/{language}.npz"), f"en-{language}")


def _zhang(languages: str) -> Pair:
    folder = f"zhang2017/{languages}"
    src, tgt = (f"{folder}/{language}.vec" for language in languages.split("-"))
    return Pair(f"zhang {languages}", (src, tgt), languages, (TEST,), f"{folder}/lexicon.txt")


def _pretrained(language: str) -> Pair:
    files = ("pretrained/en.npz", f"pretrained/{language}.npz")
    return Pair(f"pretrained en-{language}", files, f"en-{language}", one_script=False)


PAIRS = (
    *(_novels(language) for language in ("es", "fr", "de", "hu", "pl")),
    Pair("novels en, skip-gram es", ("novels/en.npz", "mixed/es_sgns.npz"), "en-es"),
    Pair("demo en-es", None, "en-es", (TRAIN,)),
    *(_zhang(languages) for languages in ("es-en", "it-en")),
    *(_pretrained(language) for language in ("ru", "ja")),
)


def aligned(pair: Pair, direction: str, device: str) -> Alignment:
    """Return the alignment of a pair in one direction, from its folder if an earlier run saved it."""
    folder = ALIGNMENTS / pair.name.replace(", ", "-").replace(" ", "-")
    if not folder.is_dir():
        qwp.align(*pair.load(), seed=0, device=device, verdict="none").save(folder)
    found = Alignment.load(folder)
    return (found if direction == pair.languages else reversed_alignment(found)).on(device)


# --------------------------------------------------------------------------- similarities of words


@cache
def bigrams(word: str) -> Counter[str]:
    """Count the pairs of neighbouring letters of a word, with marks for its beginning and end."""
    marked = f"^{folded(word)}$"
    return Counter(marked[i : i + 2] for i in range(len(marked) - 1))


def dice(word: str, other: str) -> float:
    """Return the Dice coefficient of the bigrams of two words."""
    a, b = bigrams(word), bigrams(other)
    return 2 * (a & b).total() / (a.total() + b.total())


# Each kind of similarity is a table of `similarity_tables` to a power.
KINDS = {
    "the same word": ("same", 1.0),
    "edit distance": ("edits", 0.5),
    CHOSEN: ("edits", 1.0),
    "edit distance, cubed": ("edits", 1.5),
    "bigrams": ("bigrams", 1.0),
    "bigrams, squared": ("bigrams", 2.0),
}


@dataclass(frozen=True)
class Candidates:
    """The c best translations of n gold words by CSLS. rows, scores, right: (n, c), best first."""

    words: list[str]
    others: list[str]
    rows: npt.NDArray[np.int64]
    scores: Floats
    right: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, alignment: Alignment, lexicon: Lexicon, depth: int = max(DEPTHS)) -> Candidates:
        """Retrieve the candidates of the covered words."""
        gold = lexicon.targets
        words = [w for w, right in gold.items() if w in alignment.src and any(t in alignment.tgt for t in right)]
        found = alignment.translate(words, k=depth)
        index = alignment.tgt.index
        return cls(
            words,
            alignment.tgt.words,
            np.array([[index[t.word] for t in found[word]] for word in words]),
            np.array([[t.score for t in found[word]] for word in words]),
            np.array([[t.word in gold[word] for t in found[word]] for word in words]),
        )

    def similarity_tables(self) -> dict[str, Floats]:
        """Return similarities (n, c) of spelling; "edits" is the squared edit similarity of the package."""
        edits = Spelling().similarities(self.words, self.others, self.rows)
        rows = zip(self.words, self.rows.tolist(), strict=True)
        shared = np.array([[dice(word, self.others[row]) for row in some] for word, some in rows])
        return {"edits": edits, "bigrams": shared, "same": (edits == 1.0).astype(np.float64)}

    def p1(self, similarity: Floats, weight: float, depth: int = Spelling.compared) -> float:
        """Return P@1 in percent with a term `weight * similarity` (n, c) for the first candidates."""
        best = (self.scores + weight * similarity)[:, :depth].argmax(axis=1)
        return 100 * float(np.take_along_axis(self.right, best[:, None], axis=1).mean())


# --------------------------------------------------------------------------- suites


def choice_suite(device: str) -> Iterator[Run]:
    """Compare all kinds and weights on the training split."""
    for pair in (pair for pair in PAIRS if pair.one_script and TRAIN in pair.splits):
        for direction in pair.directions():
            key = {"suite": "choice", "pair": pair.name, "direction": direction, "split": TRAIN}
            yield Run(key, partial(_choice, pair, direction, device))


def _choice(pair: Pair, direction: str, device: str) -> Record:
    candidates = Candidates.of(aligned(pair, direction, device), pair.lexicon(TRAIN, direction))
    tables = candidates.similarity_tables()
    return {
        "words": len(candidates.words),
        "plain": candidates.p1(tables["edits"], 0.0),
        "kinds": {
            kind: {str(weight): candidates.p1(tables[table] ** power, weight) for weight in WEIGHTS}
            for kind, (table, power) in KINDS.items()
        },
        "depths": {str(depth): candidates.p1(tables["edits"], Spelling.weight, depth) for depth in DEPTHS},
    }


def final_suite(device: str) -> Iterator[Run]:
    """Score the shipped term on all splits."""
    for pair in PAIRS:
        for split in pair.splits:
            for direction in pair.directions():
                key = {"suite": "final", "pair": pair.name, "direction": direction, "split": split}
                yield Run(key, partial(_final, pair, direction, split, device))


def _final(pair: Pair, direction: str, split: str, device: str) -> Record:
    alignment = aligned(pair, direction, device)
    lexicon = pair.lexicon(split, direction)
    found = qwp.evaluate(alignment, lexicon, retrieval="csls", bootstrap=0, spelling=Spelling.weight)
    return {
        "words": found.coverage.covered_source_words,
        "plain": 100 * found.p_at_1("csls"),
        "spelled": 100 * found.p_at_1(LABEL),
        "weight": found.spelling,
        "device": alignment.provenance.backend,
        "version": qwp.__version__,
    }


SUITES: dict[str, Callable[[str], Iterator[Run]]] = {"choice": choice_suite, "final": final_suite}


# --------------------------------------------------------------------------- tables


def kind_table(found: Sequence[Record]) -> str:
    """Return kinds by weights: mean and lowest gain over all pairs and directions."""

    def gains(kind: str, weight: float) -> list[float]:
        return [r["kinds"][kind][str(weight)] - r["plain"] for r in found]

    rows = [
        [f"**{kind}**" if kind == CHOSEN else kind]
        + [f"{statistics.mean(gains(kind, w)):+.1f} ({min(gains(kind, w)):+.1f})" for w in WEIGHTS]
        for kind in KINDS
    ]
    return markdown(["", *(f"{w:g}" for w in WEIGHTS)], rows)


def depth_table(found: Sequence[Record]) -> str:
    """Return the mean gain by the number of compared words."""
    means = [statistics.mean(r["depths"][str(depth)] - r["plain"] for r in found) for depth in DEPTHS]
    return markdown(["words compared", *map(str, DEPTHS)], [["mean gain", *(f"{gain:+.1f}" for gain in means)]])


def final_table(found: Sequence[Record]) -> str:
    """Return scores with and without the term on both splits, each pair in both directions."""
    rows = []
    for pair in values(found, "pair"):
        for direction in values(select(found, pair=pair), "direction"):
            runs = [select(found, pair=pair, direction=direction, split=split) for split in (TRAIN, TEST)]
            shown = pair if direction in pair else f"{pair}, {direction}"
            rows.append([shown, *(each for run in runs for each in _cells(run))])
    head = [f"{split}{what}" for split in (TRAIN, TEST) for what in (", CSLS", ", with spelling", "", " words")]
    return markdown(["", *head], rows)


def _cells(run: Sequence[Record]) -> list[str]:
    if not run:
        return ["-"] * 4
    [record] = run
    gain = record["spelled"] - record["plain"]
    return [cell(record["plain"]), cell(record["spelled"]), f"{gain:+.1f}", f"{record['words']:,}"]


def tables(found: Sequence[Record]) -> str:
    """Return all tables as Markdown."""
    choice, final = select(found, suite="choice"), select(found, suite="final")
    parts = []
    if choice:
        title = (
            f"Kinds and weights, training split: mean gain in P@1 over CSLS, lowest gain of {len(choice)} directions:"
        )
        parts += [title, kind_table(choice)]
        parts += [f"{CHOSEN.capitalize()}, weight {Spelling.weight:g}, training split:", depth_table(choice)]
    if final:
        parts += [f"P@1 with the weight {Spelling.weight:g}, one seed:", final_table(final)]
    return "\n\n".join(parts)


if __name__ == "__main__":
    records.main("benchmarks.spelling", __doc__, SUITES, RESULTS)
