"""`qwp evaluate`: score an alignment, or two aligned files, against dictionaries, word similarities and other tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from qwp.arrays import use_memory
from qwp.cli import options
from qwp.cli.aliases import EVALUATE_ALIASES, EXPLAINED_BY_EVALUATE, AliasedCommand
from qwp.cli.options import Computing, GoldReading, HeadReading, among, complete_results, count, of_methods, option
from qwp.cli.outputs import TABLE, Output
from qwp.cli.scores import Scores, coverage_of, rows_of, show
from qwp.errors import InputError
from qwp.judging.analogies import AnalogyQuestions, evaluate_analogies
from qwp.judging.counterparts import evaluate_counterparts
from qwp.judging.evaluation import evaluate
from qwp.judging.ranks import AUTO, WHERE, AlignedFiles, check_methods
from qwp.judging.sentences import MOST_SENTENCES, QUERIES, TextPair, evaluate_sentences
from qwp.judging.similarity import SimilarityPairs, evaluate_similarity
from qwp.results.alignment import Alignment
from qwp.results.corrections import anchors, held_out
from qwp.showing import terminal
from qwp.spaces.lexicon import Lexicon


class Command(AliasedCommand):
    """`qwp evaluate`, which accepts options of the evaluation scripts of MUSE and VecMap."""

    aliases, explained = EVALUATE_ALIASES, EXPLAINED_BY_EVALUATE


@dataclass(frozen=True)
class GoldFiles:
    """Options that name files with correct answers."""

    lexicon: list[Path] | None = option("A gold dictionary; may be given several times.", flags=("--lexicon", "-l"))
    similarity: list[str] | None = option(
        "Word pairs with human scores; may be given several times. SIDE: src, tgt or cross. (default: the side that "
        "covers most words)",
        "[SIDE:]FILE",
    )
    analogies: list[str] | None = option(
        "Questions `a b c d`, sections after `: name`; may be given several times. SIDE as for --similarity.",
        "[SIDE:]FILE",
    )
    sentences: tuple[Path, Path] | None = option(
        "Two files of sentences, translations of each other line by line: sentence retrieval in both directions.",
        "SRC TGT",
    )
    idf: tuple[Path, Path] | None = option(
        "Texts from which to take the rarity of words for --sentences. (default: those of --sentences)", "SRC TGT"
    )
    held_out: tuple[Path, Path] | None = option(
        "Two files of vectors of the same items, row by row: how often an item retrieves its counterpart.", "SRC TGT"
    )
    queries: int = count("Number of sentences of --sentences to look for, drawn at random with --seed.", QUERIES)
    max_sentences: int = count("Read only the first N lines of each text.", MOST_SENTENCES)

    def check(self) -> None:
        """Refuse options without a file to score against."""
        if not (self.lexicon or self.similarity or self.analogies or self.sentences or self.held_out):
            raise InputError(
                "nothing to score against was given; expected --lexicon FILE, --similarity FILE, --analogies FILE, "
                "--sentences SRC TGT or --held-out SRC TGT"
            )
        if self.idf and not self.sentences:
            raise InputError(f"--idf {self.idf[0]} {self.idf[1]} is for --sentences, which was not given")


@dataclass(frozen=True)
class Spaces(HeadReading):
    """Options that name the aligned vectors: a saved alignment, or two files."""

    folder: Annotated[
        Path | None,
        typer.Argument(metavar="[DIR]", help="A folder written by `qwp align --out`.", autocompletion=complete_results),
    ] = None
    src: Path | None = option("Source vectors, already aligned.")
    tgt: Path | None = option("Target vectors in the same space.")

    def load(self) -> tuple[Alignment | AlignedFiles, list[str]]:
        """Read the vectors. Returns the warnings about the files, too."""
        if self.folder is None:
            if self.src is None or self.tgt is None:
                raise InputError("nothing to evaluate was given; expected a folder, or both --src FILE and --tgt FILE")
            (src, of_src), (tgt, of_tgt) = (
                options.load_space(path, **self.arguments()) for path in (self.src, self.tgt)
            )
            return AlignedFiles(src, tgt), of_src + of_tgt
        if self.src is not None or self.tgt is not None:
            raise InputError(f"both the folder {self.folder} and --src/--tgt were given; expected one of them")
        for flag, value in (("--max-vocab", self.max_vocab), ("--input-format", self.input_format)):
            if value is not None:
                raise InputError(f"{flag} {value} is for --src and --tgt; a folder is evaluated as it was aligned")
        return options.load_alignment(self.folder), []


@dataclass(frozen=True)
class Scoring:
    """Options that say how to compute scores."""

    retrieval: str = option(
        "A comma-separated list of nn, csls and softmax.",
        "LIST",
        "nn,csls",
        completer=among(("nn", "csls", "softmax", "nn,csls", "nn,csls,softmax")),
    )
    csls_k: options.CslsK = 10
    spelling: options.SpellingWeight = False
    bootstrap: int = count("Resamples for the 95 % intervals; 0 for no intervals.", 1000, least=0)
    seed: Annotated[int, of_methods("seed", "Seed of the resamples.")] = 0

    def search(self) -> dict[str, Any]:
        """Return the arguments of the search for translations."""
        return {
            "retrieval": check_methods([name.strip() for name in self.retrieval.split(",") if name.strip()]),
            "csls_k": self.csls_k,
        }

    def resampling(self) -> dict[str, Any]:
        """Return the arguments of the bootstrap."""
        return {"bootstrap": self.bootstrap, "seed": self.seed}


@options.with_options
def command(
    files: GoldFiles, gold_reading: GoldReading, scoring: Scoring, spaces: Spaces, computing: Computing, output: Output
) -> None:
    """Score an alignment DIR, or two files already in one space (--src, --tgt), against a dictionary.

    Other tasks are similarities of words rated by people, analogies, translated sentences and held-out items. Each
    score comes with its coverage. Scores of dictionaries are given twice: over covered source words, and over all
    source words of the dictionary with uncovered ones scoring 0.
    """
    output.check()
    search = scoring.search()
    files.check()
    gold = _Gold.read(files, gold_reading)
    if files.held_out is not None and spaces.folder is None:
        raise InputError("--held-out is for new items of an alignment; expected the folder of one, not --src and --tgt")
    aligned, warnings = spaces.load()
    with use_memory(computing.max_memory):
        scores = gold.score(aligned.on(computing.device), scoring, search, warnings)
    _write(output, scores)
    if scoring.spelling and scores.lexicons:
        terminal.note(options.spelling_note(scores.lexicons[0][1].spelling, aligned.src, aligned.tgt))


@dataclass(frozen=True)
class _Gold:
    """The contents of the files with correct answers. similarity, analogies: each with its side."""

    lexicons: Sequence[tuple[Path, Lexicon]]
    similarity: Sequence[tuple[str, SimilarityPairs]]
    analogies: Sequence[tuple[str, AnalogyQuestions]]
    sentences: TextPair | None
    idf: TextPair | None
    files: GoldFiles
    reverse: bool

    @classmethod
    def read(cls, files: GoldFiles, reading: GoldReading) -> _Gold:
        case = reading.case

        def text(pair: tuple[Path, Path] | None) -> TextPair | None:
            return pair and TextPair.load(*pair, case=case, max_sentences=files.max_sentences)

        similarity, analogies = (map(_side_and_file, given or []) for given in (files.similarity, files.analogies))
        return cls(
            [(path, reading.load(path)) for path in files.lexicon or []],
            [(side, SimilarityPairs.load(path, case=case)) for side, path in similarity],
            [(side, AnalogyQuestions.load(path, case=case)) for side, path in analogies],
            text(files.sentences),
            text(files.idf),
            files,
            reading.reverse,
        )

    def score(
        self,
        aligned: Alignment | AlignedFiles,
        scoring: Scoring,
        search: Mapping[str, Any],
        warnings: Sequence[str],
    ) -> Scores:
        """Compute the scores of all tasks."""
        resampling, queries = scoring.resampling(), self.files.queries
        untaught, warned = self.untaught(aligned)
        for text in warned:
            terminal.note(text, "yellow")
        return Scores(
            **resampling,
            lexicons=[
                (_about(path, lexicon), evaluate(aligned, lexicon, spelling=scoring.spelling, **search, **resampling))
                for path, lexicon in untaught
            ],
            similarity=[
                evaluate_similarity(aligned, pairs, side=side, **resampling) for side, pairs in self.similarity
            ],
            analogies=[evaluate_analogies(aligned, each, side=side, **resampling) for side, each in self.analogies],
            sentences=[]
            if self.sentences is None
            else [evaluate_sentences(aligned, self.sentences, idf=self.idf, queries=queries, **search, **resampling)],
            counterparts=[]
            if self.files.held_out is None or isinstance(aligned, AlignedFiles)
            else [
                evaluate_counterparts(
                    aligned, *self.files.held_out, csls_k=scoring.csls_k, reverse=self.reverse, **resampling
                )
            ],
            warnings=[*warnings, *warned],
        )

    def untaught(self, aligned: Alignment | AlignedFiles) -> tuple[list[tuple[Path, Lexicon]], list[str]]:
        """Return the dictionaries without the words of the known pairs that the fit was given, and the warnings."""
        if isinstance(aligned, AlignedFiles) or not self.lexicons:
            return list(self.lexicons), []
        trained = anchors(aligned, *(lexicon for _, lexicon in self.lexicons))
        if trained is None:
            return list(self.lexicons), [
                "the fit was given known pairs, and its folder does not hold them: scores may count pairs that it "
                "learned from"
            ]
        found, warned = [], []
        for path, lexicon in self.lexicons:
            left, words = held_out(lexicon, trained), len(lexicon.targets)
            if words and not left.targets:
                raise InputError(
                    f"{path}: the fit was given pairs of all of its {words:,} source words; expected other words to "
                    "score"
                )
            if len(left.targets) < words:
                warned.append(
                    f"{path}: the fit was given pairs of {words - len(left.targets):,} of its {words:,} source words: "
                    f"they are not scored, {len(left.targets):,} are"
                )
            found.append((path, left))
        return found, warned


def _about(path: Path, lexicon: Lexicon) -> dict[str, Any]:
    return {
        "path": str(path),
        "pairs": len(lexicon),
        "skipped": lexicon.skipped,
        "duplicates": lexicon.duplicates,
    }


def _side_and_file(given: str) -> tuple[str, str]:
    """Split "src:FILE" into side and file. Without a side, the coverage of the words decides."""
    side, colon, path = given.partition(":")
    return (side, path) if colon and side in WHERE else (AUTO, given)


def _write(output: Output, scores: Scores) -> None:
    """Write the scores. A single dictionary has its own table and TSV."""
    alone = scores.only_lexicon
    if alone is not None:
        output.write(json=scores.to_json, rows=lambda: rows_of(alone), show=lambda: show(alone))
    else:
        output.write(json=scores.to_json, rows=scores.rows, show=scores.show)
    if output.kind != TABLE:
        for about, result in scores.lexicons:
            terminal.note(("" if alone else f"{about['path']}: ") + coverage_of(result))
        for other in (*scores.similarity, *scores.analogies, *scores.sentences, *scores.counterparts):
            terminal.note(repr(other))
