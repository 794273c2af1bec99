"""What a spelling term brings to the retrieval, and how its weight was chosen. `python -m benchmarks.spelling --help`.

    python -m benchmarks.spelling --device cuda

Each pair of the benchmark data is aligned once, with the default settings, and scored in both directions. `choice`
compares similarities of words, weights and numbers of candidates on the training split of MUSE, for languages of one
script; `final` scores the term of `qwp.search.spelling` as it is on both splits and on the Zhang lexicons, and chooses
nothing. The data is not part of the package: it is read from $QWP_BENCH or ../shared/bench. Alignments are kept beside
the results file; each record goes there as soon as it is made, and a run that was stopped goes on where it was.
`--table` runs nothing; it puts the tables of that file into docs/accuracy.md and prints them.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

import qwp
from benchmarks.ablation import back, cell, markdown, names, of_suite, turned
from benchmarks.common import Record, keep_record, read_records, show_tables, suite_options
from benchmarks.tasks import BENCH
from qwp import Alignment, Lexicon
from qwp.search.spelling import COMPARED, LABEL, WEIGHT, folded, similarities
from qwp.spaces.demo import load_demo

Floats = npt.NDArray[np.float64]

RESULTS = Path(__file__).parent / "results" / "spelling.jsonl"
DOCUMENT = Path(__file__).parents[1] / "docs" / "accuracy.md"
BEGIN, END = "<!-- spelling -->", "<!-- /spelling -->"
TRAIN, TEST = "train", "test"
MUSE = {TRAIN: "0-5000", TEST: "5000-6500"}
WEIGHTS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0, 1.2)
DEPTHS = (10, 25, 50, 100, 200)
CHOSEN = "edit distance, squared"
SHOWN = ("suite", "pair", "direction", "split", "words", "plain", "spelled")


@dataclass(frozen=True)
class Pair:
    """Two files of the benchmark data, their languages, and which splits of MUSE score them.

    gold: a dictionary of its own instead, for the test. one_script: whether there is anything to gain.
    """

    name: str
    files: tuple[str, str] | None
    languages: str
    splits: tuple[str, ...] = (TRAIN, TEST)
    gold: str | None = None
    one_script: bool = True

    def load(self) -> tuple[qwp.Embeddings, qwp.Embeddings]:
        """The vectors; those of the package where there are no files."""
        if self.files is None:
            return load_demo()[:2]
        src, tgt = (qwp.load(BENCH / file, max_vocab=20_000) for file in self.files)
        return src, tgt

    def lexicons(self, split: str) -> dict[str, Lexicon]:
        """The gold of a split, by direction."""
        if self.gold is not None:
            lexicon = Lexicon.load(BENCH / self.gold)
            return {self.languages: lexicon, back(self.languages): lexicon.reverse()}
        return {
            way: Lexicon.load(BENCH / f"muse/{way}.{MUSE[split]}.txt") for way in (self.languages, back(self.languages))
        }


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


def aligned(pair: Pair, folder: Path, device: str) -> Alignment:
    """The alignment of a pair, from the folder where it was kept before."""
    kept = folder / pair.name.replace(", ", "-").replace(" ", "-")
    if kept.is_dir():
        return Alignment.load(kept)
    found = qwp.align(*pair.load(), seed=0, device=device, verdict="none")
    found.save(kept)
    return found


def directions(pair: Pair, alignment: Alignment, split: str) -> Iterator[tuple[str, Alignment, Lexicon]]:
    """Both ways of an alignment, each with its gold."""
    for way, lexicon in pair.lexicons(split).items():
        yield way, alignment if way == pair.languages else turned(alignment), lexicon


# --------------------------------------------------------------------------- kinds of similarity


@cache
def bigrams(word: str) -> Counter[str]:
    """Pairs of neighbouring letters of a word, its beginning and its end among them."""
    marked = f"^{folded(word)}$"
    return Counter(marked[i : i + 2] for i in range(len(marked) - 1))


def shared_bigrams(words: Sequence[str], others: Sequence[str], rows: npt.NDArray[np.int64]) -> Floats:
    """The Dice coefficient of the bigrams, as `similarities`."""

    def dice(a: Counter[str], b: Counter[str]) -> float:
        return 2 * (a & b).total() / (a.total() + b.total())

    return np.array(
        [
            [dice(bigrams(word), bigrams(others[row])) for row in some]
            for word, some in zip(words, rows.tolist(), strict=True)
        ]
    )


def tables_of(words: Sequence[str], others: Sequence[str], rows: npt.NDArray[np.int64]) -> dict[str, Floats]:
    """The similarities that kinds are made of, (n, c) each. `edits` is that of the package, a square."""
    edits = similarities(words, others, rows)
    return {"edits": edits, "bigrams": shared_bigrams(words, others, rows), "same": (edits == 1.0).astype(np.float64)}


# Each a table to a power.
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
    """The best translations of n gold words by CSLS. rows, scores, right: (n, c), best first."""

    words: list[str]
    others: list[str]
    rows: npt.NDArray[np.int64]
    scores: Floats
    right: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, alignment: Alignment, lexicon: Lexicon, depth: int = max(DEPTHS)) -> Candidates:
        """Those of the covered words."""
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

    def p1(self, similarity: Floats, weight: float, depth: int = COMPARED) -> float:
        """P@1 in per cent with a term for the first candidates. similarity: (n, c)."""
        best = (self.scores + weight * similarity)[:, :depth].argmax(axis=1)
        return 100 * float(np.take_along_axis(self.right, best[:, None], axis=1).mean())


def choices(candidates: Candidates) -> Record:
    """P@1 without the term, by kinds and weights, and by the number of words that are compared."""
    made = tables_of(candidates.words, candidates.others, candidates.rows)
    return {
        "plain": candidates.p1(made["edits"], 0.0),
        "kinds": {
            kind: {str(weight): candidates.p1(made[table] ** power, weight) for weight in WEIGHTS}
            for kind, (table, power) in KINDS.items()
        },
        "depths": {str(depth): candidates.p1(made["edits"], WEIGHT, depth) for depth in DEPTHS},
    }


# --------------------------------------------------------------------------- suites


def choice_suite(pair: Pair, alignment: Alignment, device: str) -> Iterator[Record]:
    """Every kind and weight on the training split."""
    if pair.one_script and TRAIN in pair.splits:
        for way, one_way, lexicon in directions(pair, alignment, TRAIN):
            candidates = Candidates.of(one_way.on(device), lexicon)
            yield {"direction": way, "split": TRAIN, "words": len(candidates.words), **choices(candidates)}


def final_suite(pair: Pair, alignment: Alignment, device: str) -> Iterator[Record]:
    """The term as it is on all splits."""
    for split in pair.splits:
        for way, one_way, lexicon in directions(pair, alignment, split):
            found = qwp.evaluate(one_way.on(device), lexicon, retrieval="csls", bootstrap=0, spelling=WEIGHT)
            yield {
                "direction": way,
                "split": split,
                "words": found.coverage.covered_source_words,
                "plain": 100 * found.p_at_1("csls"),
                "spelled": 100 * found.p_at_1(LABEL),
                "weight": found.spelling,
                "place": alignment.provenance.backend,
                "version": qwp.__version__,
            }


SUITES: dict[str, Callable[[Pair, Alignment, str], Iterator[Record]]] = {"choice": choice_suite, "final": final_suite}


def missing(suites: Sequence[str], folder: Path, device: str, known: set[tuple[str, str]]) -> Iterator[Record]:
    """The records of the suites for pairs that have none."""
    for pair in PAIRS:
        wanted = [suite for suite in suites if (suite, pair.name) not in known]
        if wanted:
            alignment = aligned(pair, folder, device)
            for suite in wanted:
                for record in [*SUITES[suite](pair, alignment, device)]:
                    yield {"suite": suite, "pair": pair.name, **record}


# --------------------------------------------------------------------------- tables


def kind_table(records: Sequence[Record]) -> str:
    """Kinds by weights: the mean gain over all pairs and directions, and the least one."""

    def gains(kind: str, weight: float) -> list[float]:
        return [r["kinds"][kind][str(weight)] - r["plain"] for r in records]

    rows = [
        [f"**{kind}**" if kind == CHOSEN else kind]
        + [f"{statistics.mean(gains(kind, w)):+.1f} ({min(gains(kind, w)):+.1f})" for w in WEIGHTS]
        for kind in KINDS
    ]
    return markdown(["", *(f"{w:g}" for w in WEIGHTS)], rows)


def depth_table(records: Sequence[Record]) -> str:
    """The mean gain by the number of words that are compared."""
    means = [statistics.mean(r["depths"][str(depth)] - r["plain"] for r in records) for depth in DEPTHS]
    return markdown(["words compared", *map(str, DEPTHS)], [["mean gain", *(f"{mean:+.1f}" for mean in means)]])


def final_table(records: Sequence[Record]) -> str:
    """With and without the term on both splits, each pair in both directions."""
    rows = []
    for pair in names(records, "pair"):
        group = [r for r in records if r["pair"] == pair]
        for way in names(group, "direction"):
            found = {r["split"]: r for r in group if r["direction"] == way}
            shown = pair if way in pair else f"{pair}, {way}"
            rows.append([shown, *(c for split in (TRAIN, TEST) for c in _cells(found.get(split)))])
    head = [f"{split}{what}" for split in (TRAIN, TEST) for what in (", CSLS", ", with spelling", "", " words")]
    return markdown(["", *head], rows)


def _cells(record: Record | None) -> list[str]:
    if record is None:
        return ["-"] * 4
    gain = record["spelled"] - record["plain"]
    return [cell(record["plain"]), cell(record["spelled"]), f"{gain:+.1f}", f"{record['words']:,}"]


def tables(records: Sequence[Record]) -> str:
    """All tables as Markdown."""
    chosen, final = of_suite(records, "choice"), of_suite(records, "final")
    parts = []
    if chosen:
        ways = f"{len(chosen)} directions"
        parts += [f"Kinds and weights, training split, gain in P@1 over CSLS, mean of {ways} (the least of them):"]
        parts += [kind_table(chosen), f"{CHOSEN.capitalize()}, weight {WEIGHT:g}, training split:", depth_table(chosen)]
    if final:
        parts += [f"P@1 with the weight {WEIGHT:g}, one seed:", final_table(final)]
    return "\n\n".join(parts) + "\n"


# --------------------------------------------------------------------------- command line


def main(arguments: list[str] | None = None) -> None:
    """Run what is missing, keep every record, print the tables."""
    options = suite_options("benchmarks.spelling", __doc__, SUITES, RESULTS, BENCH, arguments)
    if not options.table:
        known = {(r["suite"], r["pair"]) for r in read_records(options.output)}
        folder = options.output.with_suffix("")
        for record in missing(options.suites or [*SUITES], folder, options.device, known):
            keep_record(record, options.output, SHOWN)
    show_tables(options, tables, DOCUMENT, BEGIN, END)


if __name__ == "__main__":
    main()
