"""The scores of `qwp evaluate`, and their tables, TSV and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from qwp.cli import console
from qwp.cli.outputs import TextRows
from qwp.judging.analogies import ADD, Analogies
from qwp.judging.counterparts import CounterpartRetrieval
from qwp.judging.evaluation import CONFIDENCE, CONVENTIONS, DENOMINATORS, Evaluation, Score
from qwp.judging.sentences import SentenceRetrieval
from qwp.judging.similarity import SPEARMAN, WordSimilarity

LEXICON, SIMILARITY, ANALOGIES, SENTENCES = "lexicon", "similarity", "analogies", "sentences"
COUNTERPARTS = "counterparts"
_COVERED = "covered"
_TITLES = {
    LEXICON: "Dictionaries, percent of the covered source words",
    SIMILARITY: "Word similarity, correlations over the covered pairs",
    ANALOGIES: "Analogies, percent of the covered questions",
    SENTENCES: "Sentences, percent of the queries",
    COUNTERPARTS: "Held-out items that retrieve their counterpart among all of them, percent",
}
_COLUMNS = (
    *("task", "file", "side", "part", "method", "out_of", "measure"),
    *("value", "low", "high", "covered", "total"),
)


@dataclass(frozen=True)
class ScoreLine:
    """One score.

    Args:
        side: of which language, or in which direction.
        part: section of the file.
        covered: number of items of the file that could be scored.
        total: number of items in the file.
        main: whether the summary shows the score.
    """

    task: str
    file: str
    side: str
    part: str
    method: str
    out_of: str
    measure: str
    score: Score
    covered: int
    total: int
    main: bool = False

    def cells(self) -> tuple[str, ...]:
        """Return the cells of a TSV line."""
        numbers = (f"{number:.6f}" for number in (self.score.value, self.score.low, self.score.high))
        names = (self.task, self.file, self.side, self.part, self.method, self.out_of, self.measure)
        return (*names, *numbers, str(self.covered), str(self.total))

    def cell(self, *, intervals: bool) -> console.TableCell:
        """Return a table cell: a correlation, or a percentage."""
        value, low, high = (
            f"{number:.3f}" if self.task == SIMILARITY else f"{100 * number:.1f}"
            for number in (self.score.value, self.score.low, self.score.high)
        )
        return (value, f"{low}–{high}") if intervals else value


@dataclass(frozen=True)
class Scores:
    """All scores of one `qwp evaluate`. lexicons: a description of each dictionary file, and its scores."""

    bootstrap: int
    seed: int
    lexicons: Sequence[tuple[Mapping[str, Any], Evaluation]] = ()
    similarity: Sequence[WordSimilarity] = ()
    analogies: Sequence[Analogies] = ()
    sentences: Sequence[SentenceRetrieval] = ()
    counterparts: Sequence[CounterpartRetrieval] = ()
    warnings: Sequence[str] = field(default_factory=list)

    @property
    def only_lexicon(self) -> Evaluation | None:
        """The scores of the dictionary, if it is the only task."""
        alone = len(self.lexicons) == 1 and not (
            self.similarity or self.analogies or self.sentences or self.counterparts
        )
        return self.lexicons[0][1] if alone else None

    def to_json(self) -> dict[str, Any]:
        """Return all scores by task. Those of a single dictionary are repeated at the top level."""
        each = [{"lexicon": about, **result.to_dict()} for about, result in self.lexicons]
        return {
            "command": "evaluate",
            "bootstrap": {"resamples": self.bootstrap, "confidence": CONFIDENCE, "seed": self.seed},
            **(each[0] if len(each) == 1 else {}),
            "lexicons": each,
            SIMILARITY: [result.to_dict() for result in self.similarity],
            ANALOGIES: [result.to_dict() for result in self.analogies],
            SENTENCES: [result.to_dict() for result in self.sentences],
            COUNTERPARTS: [result.to_dict() for result in self.counterparts],
            "warnings": self.warnings,
        }

    def rows(self) -> TextRows:
        """Return a TSV line for each score: a share from 0 to 1, or a correlation."""
        return TextRows(_COLUMNS, [line.cells() for line in self.lines()])

    def lines(self) -> list[ScoreLine]:
        """Return all scores."""
        found: list[ScoreLine] = []
        for about, result in self.lexicons:
            found += _of_lexicon(str(about["path"]), result)
        for similarity in self.similarity:
            found += _of_similarity(similarity)
        for analogies in self.analogies:
            found += _of_analogies(analogies)
        for sentences in self.sentences:
            found += _of_sentences(sentences)
        for counterparts in self.counterparts:
            found += _of_counterparts(counterparts)
        return found

    def show(self) -> None:
        """Print a table for each task, and a summary of several tasks."""
        lines = self.lines()
        for task, title in _TITLES.items():
            of_task = [line for line in lines if line.task == task and line.out_of == _COVERED]
            if of_task:
                _table(of_task, title, intervals=self.bootstrap > 0)
        for found in self.counterparts:
            ranks = (f"{way}: {each.mean_rank:.1f}, median {each.median_rank:g}" for way, each in found.found.items())
            console.say(f"mean rank of the counterpart by {'; by '.join(ranks)}", "dim")
        main = [line for line in lines if line.main]
        if len(main) > 1:
            _summary(main, intervals=self.bootstrap > 0)


# --------------------------------------------------------------------------- one dictionary


def rows_of(result: Evaluation) -> TextRows:
    """Return a TSV line for each measure of a dictionary, from 0 to 1."""
    return TextRows(
        ("retrieval", "out_of", "measure", "value", "low", "high"),
        (
            (method, key, name, f"{score.value:.6f}", f"{score.low:.6f}", f"{score.high:.6f}")
            for method, scores in result.scores.items()
            for key in DENOMINATORS
            for name, score in getattr(scores, key).items()
        ),
    )


def coverage_of(result: Evaluation) -> str:
    """Return a sentence on the share of a dictionary that the vocabularies cover."""
    coverage = result.coverage
    return (
        f"coverage: {coverage.covered_source_words:,} of {coverage.source_words:,} source words "
        f"({100 * coverage.share:.1f} %), {coverage.covered_pairs:,} of {coverage.pairs:,} pairs; "
        f"vocabularies of {result.n_src:,} and {result.n_tgt:,} words"
    )


def show(result: Evaluation) -> None:
    """Print the coverage and the scores of a dictionary."""
    console.say(coverage_of(result))
    rows, names = [], list(next(iter(result.scores.values())).covered)
    for method, scores in result.scores.items():
        label = f"{method} (k={result.csls_k})" if method == "csls" else method
        for key, words in DENOMINATORS.items():
            measures = getattr(scores, key)
            rows.append([label, words, *(_percent(measures[name], intervals=result.bootstrap > 0) for name in names)])
    headings = ["MAP (XLING)" if name == "MAP" else name for name in names]
    title = "Scores in percent" + (", with 95 % intervals" if result.bootstrap else "")
    console.table(["retrieval", "out of", *headings], rows, title=title)
    for name in ("covered", "all_words", "MRR", "MAP", "AP"):
        console.say(f"{DENOMINATORS.get(name, name)}: {CONVENTIONS[name]}", "dim")


def _percent(score: Score, *, intervals: bool) -> console.TableCell:
    value = f"{100 * score.value:.1f}"
    return (value, f"{100 * score.low:.1f}–{100 * score.high:.1f}") if intervals else value


# --------------------------------------------------------------------------- lines


def _of_lexicon(file: str, result: Evaluation) -> Iterator[ScoreLine]:
    best = "csls" if "csls" in result.scores else next(iter(result.scores))
    counts = result.coverage.covered_source_words, result.coverage.source_words
    for method, scores in result.scores.items():
        for out_of, measures in ((_COVERED, scores.covered), ("all_words", scores.all_words)):
            for name, score in measures.items():
                main = (method, out_of, name) == (best, _COVERED, "P@1")
                yield ScoreLine(LEXICON, file, "src-tgt", "", method, out_of, name, score, *counts, main)


def _of_similarity(result: WordSimilarity) -> Iterator[ScoreLine]:
    for name, score in result.scores.items():
        about = (SIMILARITY, result.source or "", result.where, "", "cosine", _COVERED, name)
        yield ScoreLine(*about, score, result.covered_pairs, result.pairs, name == SPEARMAN)


def _of_analogies(result: Analogies) -> Iterator[ScoreLine]:
    for section in (*result.sections, result.total):
        for out_of, scores in ((_COVERED, section.covered), ("all", section.all)):
            for method, score in scores.items():
                about = (ANALOGIES, result.source or "", result.where, section.name, method, out_of, "accuracy")
                main = section is result.total and (method, out_of) == (ADD, _COVERED)
                yield ScoreLine(*about, score, section.covered_questions, section.questions, main)


def _of_sentences(result: SentenceRetrieval) -> Iterator[ScoreLine]:
    file = " ".join(name or "" for name in result.sources)
    for direction, methods in result.scores.items():
        best = "csls" if "csls" in methods else next(iter(methods))
        for method, measures in methods.items():
            for name, score in measures.items():
                about = (SENTENCES, file, direction, "", method, _COVERED, name)
                main = (method, name) == (best, "P@1")
                yield ScoreLine(*about, score, result.coverage.covered, result.coverage.lines, main)


def _of_counterparts(result: CounterpartRetrieval) -> Iterator[ScoreLine]:
    for way, found in result.found.items():
        for k, score in found.recall.items():
            about = (COUNTERPARTS, "held-out items", "src-tgt", "", way, _COVERED, f"recall@{k}")
            yield ScoreLine(*about, score, result.n, result.n, (way, k) == ("csls", 1))


# --------------------------------------------------------------------------- tables


def _table(lines: Sequence[ScoreLine], title: str, *, intervals: bool) -> None:
    """Print the scores of one task: a row for each file and method, a column for each measure."""
    # Analogies have one measure and two methods, so each method is a column.
    by_method = lines[0].task == ANALOGIES
    names = list(dict.fromkeys(line.method if by_method else line.measure for line in lines))
    rows: dict[tuple[str, ...], dict[str, console.TableCell]] = {}
    for line in lines:
        key = (_short(line), line.side, line.part if by_method else line.method, _coverage(line))
        rows.setdefault(key, {})[line.method if by_method else line.measure] = line.cell(intervals=intervals)
    heading = ["file", "side", "section" if by_method else "method", "covered", *names]
    table = [[*key, *(cells.get(name, "") for name in names)] for key, cells in rows.items()]
    console.table(heading, table, title=title + (", with 95 % intervals" if intervals else ""))


def _summary(lines: Sequence[ScoreLine], *, intervals: bool) -> None:
    rows = [
        [line.task, _short(line), line.side, _coverage(line), _measure(line), line.cell(intervals=intervals)]
        for line in lines
    ]
    console.table(["task", "file", "side", "covered", "measure", "value"], rows, title="Summary")


def _measure(line: ScoreLine) -> str:
    return line.measure if line.task == SIMILARITY else f"{line.measure}, {line.method}"


def _short(line: ScoreLine) -> str:
    """Return the name of the file without its folder; two names for sentences."""
    return Path(line.file).name if line.task != SENTENCES else " ".join(Path(name).name for name in line.file.split())


def _coverage(line: ScoreLine) -> str:
    share = 100 * line.covered / line.total if line.total else 0.0
    return f"{line.covered:,} of {line.total:,} ({share:.0f} %)"
