"""`qwp evaluate`: score an alignment, or two aligned files, against lexicons, word similarities, analogies, texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from qwp.arrays import use_memory
from qwp.cli import completion, console, options, outputs
from qwp.cli.aliases import EVALUATE_ALIASES, EXPLAINED_BY_EVALUATE, AliasedCommand
from qwp.cli.outputs import TABLE, Output, Rows
from qwp.cli.scores import Scored
from qwp.errors import InputError
from qwp.judging.analogies import AnalogyQuestions, evaluate_analogies
from qwp.judging.counterparts import evaluate_counterparts
from qwp.judging.evaluation import CONVENTIONS, DENOMINATORS, AlignedFiles, Evaluation, Score, evaluate
from qwp.judging.ranks import AUTO, WHERE, check_methods
from qwp.judging.sentences import MOST_SENTENCES, QUERIES, TextPair, evaluate_sentences
from qwp.judging.similarity import SimilarityPairs, evaluate_similarity
from qwp.results.alignment import Alignment
from qwp.spaces.io.arguments import UTF8
from qwp.spaces.lexicon import Lexicon


class Command(AliasedCommand):
    """`qwp evaluate`, which accepts options of the scripts of MUSE and VecMap that evaluate."""

    aliases, explained = EVALUATE_ALIASES, EXPLAINED_BY_EVALUATE


@console.guarded
def command(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DIR]",
            help="A folder written by `qwp align --out`.",
            show_default=False,
            autocompletion=completion.result_folders,
        ),
    ] = None,
    lexicon: Annotated[
        list[Path] | None,
        typer.Option(
            "--lexicon", "-l", metavar="FILE", help="A gold dictionary; may be given again.", show_default=False
        ),
    ] = None,
    similarity: Annotated[
        list[str] | None,
        typer.Option(
            "--similarity",
            metavar="[SIDE:]FILE",
            help="Pairs of words with scores; may be given again. SIDE: src, tgt or cross. (default: by coverage)",
            show_default=False,
        ),
    ] = None,
    analogies: Annotated[
        list[str] | None,
        typer.Option(
            "--analogies",
            metavar="[SIDE:]FILE",
            help="Questions `a b c d`, sections after `: name`; may be given again. SIDE as for --similarity.",
            show_default=False,
        ),
    ] = None,
    sentences: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            "--sentences",
            metavar="SRC TGT",
            help="Two files, line by line translations of each other: retrieval of sentences, both ways.",
            show_default=False,
        ),
    ] = None,
    idf: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            "--idf",
            metavar="SRC TGT",
            help="Texts that say how rare words are, for --sentences. (default: those of --sentences)",
            show_default=False,
        ),
    ] = None,
    held_out: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            "--held-out",
            metavar="SRC TGT",
            help="Two files of vectors, row by row the same items: how many find their counterpart among all of them.",
            show_default=False,
        ),
    ] = None,
    queries: Annotated[
        int, typer.Option("--queries", metavar="N", help="Sentences of --sentences to look for, drawn by the seed.")
    ] = QUERIES,
    max_sentences: Annotated[
        int, typer.Option("--max-sentences", metavar="N", help="Read only the first N lines of each text.")
    ] = MOST_SENTENCES,
    src: Annotated[
        Path | None,
        typer.Option("--src", metavar="FILE", help="Source vectors, already aligned.", show_default=False),
    ] = None,
    tgt: Annotated[
        Path | None,
        typer.Option("--tgt", metavar="FILE", help="Target vectors in the same space.", show_default=False),
    ] = None,
    retrieval: Annotated[
        str,
        typer.Option(
            "--retrieval",
            metavar="LIST",
            help="A comma-separated list of nn, csls and softmax.",
            autocompletion=completion.among(("nn", "csls", "softmax", "nn,csls", "nn,csls,softmax")),
        ),
    ] = "nn,csls",
    csls_k: options.CslsK = 10,
    spelling: options.Spelling = False,
    case: options.Case = "keep",
    lexicon_format: options.LexiconFormat = "auto",
    reverse: options.Reverse = False,
    max_vocab: options.MaxVocab = None,
    errors: options.Errors = "raise",
    input_format: options.InputFormat = None,
    encoding: options.Encoding = UTF8,
    bootstrap: Annotated[
        int, typer.Option("--bootstrap", metavar="N", help="Resamples behind the 95 % intervals; 0 for none.")
    ] = 1000,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Seed of the resamples.")] = 0,
    device: options.Device = "auto",
    max_memory: options.MaxMemory = None,
    format: outputs.Format = None,
    out: outputs.Out = None,
    json: outputs.Json = False,
) -> None:
    """Score an alignment DIR, or two files already in one space (--src, --tgt), against a dictionary.

    Or against several, pairs of words with the similarity that people gave them, analogies, and translated sentences.
    Coverage is always said. Scores of dictionaries are given twice: over covered source words, and over all source
    words of the lexicon with uncovered ones scoring 0.
    """
    options.check(csls_k=csls_k, bootstrap=bootstrap, seed=seed, max_memory=max_memory)
    options.check(max_vocab=max_vocab, errors=errors, encoding=encoding)
    options.check(queries=queries, max_sentences=max_sentences)
    output = Output.chosen(format, out, json=json)
    methods = check_methods([name.strip() for name in retrieval.split(",") if name.strip()])
    gold = _Gold.read(
        lexicon or [],
        similarity or [],
        analogies or [],
        sentences,
        idf,
        held_out=held_out,
        reading=_GoldReading(lexicon_format, case, reverse, max_sentences),
    )
    if held_out is not None and folder is None:
        raise InputError("--held-out is for new items of an alignment; expected the folder of one, not --src and --tgt")
    reading = {"max_vocab": max_vocab, "errors": errors, "format": input_format, "encoding": encoding}
    aligned, warnings = _aligned(folder, src, tgt, reading)
    chance: dict[str, Any] = {"bootstrap": bootstrap, "seed": seed}
    search = {"retrieval": methods, "csls_k": csls_k}
    with use_memory(max_memory):
        scored = gold.scored(aligned.on(device), warnings, chance, search, spelling=spelling, queries=queries)
    _write(output, scored)
    if spelling and gold.lexicons:
        console.note(options.spelling_note(scored.lexicons[0][1].spelling, aligned.src, aligned.tgt))


@dataclass(frozen=True)
class _GoldReading:
    """How the files with the right answers are read."""

    lexicon_format: str
    case: str
    reverse: bool
    max_sentences: int


@dataclass(frozen=True)
class _Gold:
    """The files with the right answers, read before any vectors are; those with a side have it first."""

    lexicons: Sequence[tuple[Path, Lexicon]]
    similarity: Sequence[tuple[str, SimilarityPairs]]
    analogies: Sequence[tuple[str, AnalogyQuestions]]
    sentences: TextPair | None
    idf: TextPair | None
    held_out: tuple[Path, Path] | None = None

    @classmethod
    def read(
        cls,
        lexicons: Sequence[Path],
        similarity: Sequence[str],
        analogies: Sequence[str],
        sentences: tuple[Path, Path] | None,
        idf: tuple[Path, Path] | None,
        *,
        held_out: tuple[Path, Path] | None,
        reading: _GoldReading,
    ) -> _Gold:
        if not (lexicons or similarity or analogies or sentences or held_out):
            raise InputError(
                "nothing to score against was given; expected --lexicon FILE, --similarity FILE, --analogies FILE, "
                "--sentences SRC TGT or --held-out SRC TGT"
            )
        if idf and not sentences:
            raise InputError(f"--idf {idf[0]} {idf[1]} is for --sentences, which was not given")
        case = reading.case

        def text(files: tuple[Path, Path] | None) -> TextPair | None:
            return files and TextPair.load(*files, case=case, max_sentences=reading.max_sentences)

        return cls(
            [
                (path, options.load_lexicon(path, reading.lexicon_format, case, reverse=reading.reverse))
                for path in lexicons
            ],
            [(side, SimilarityPairs.load(path, case=case)) for side, path in map(_side_and_file, similarity)],
            [(side, AnalogyQuestions.load(path, case=case)) for side, path in map(_side_and_file, analogies)],
            text(sentences),
            text(idf),
            held_out,
        )

    def scored(
        self,
        aligned: Alignment | AlignedFiles,
        warnings: Sequence[str],
        chance: Mapping[str, Any],
        search: Mapping[str, Any],
        *,
        spelling: bool,
        queries: int,
    ) -> Scored:
        """All scores. chance: bootstrap and seed; search: retrieval and csls_k."""
        return Scored(
            **chance,
            lexicons=[
                (_about(path, lexicon), evaluate(aligned, lexicon, spelling=spelling, **search, **chance))
                for path, lexicon in self.lexicons
            ],
            similarity=[evaluate_similarity(aligned, pairs, side=side, **chance) for side, pairs in self.similarity],
            analogies=[evaluate_analogies(aligned, each, side=side, **chance) for side, each in self.analogies],
            sentences=[]
            if self.sentences is None
            else [evaluate_sentences(aligned, self.sentences, idf=self.idf, queries=queries, **search, **chance)],
            counterparts=[]
            if self.held_out is None or isinstance(aligned, AlignedFiles)
            else [evaluate_counterparts(aligned, *self.held_out, csls_k=search["csls_k"], **chance)],
            warnings=warnings,
        )


def _about(path: Path, lexicon: Lexicon) -> dict[str, Any]:
    return {
        "path": str(path),
        "pairs": len(lexicon),
        "skipped": lexicon.skipped,
        "duplicates": lexicon.duplicates,
    }


def _side_and_file(given: str) -> tuple[str, str]:
    """The side and the file of "src:FILE"; the side of a file alone is told by its words."""
    side, colon, path = given.partition(":")
    return (side, path) if colon and side in WHERE else (AUTO, given)


def _write(output: Output, scored: Scored) -> None:
    """One dictionary alone has its own table and TSV; all else has a line a score, and a table a task."""
    alone = scored.only_lexicon
    if alone is not None:
        output.write(json=scored.to_json, rows=lambda: _rows(alone), show=lambda: show(alone))
    else:
        output.write(json=scored.to_json, rows=scored.rows, show=scored.show)
    if output.format != TABLE:
        for about, result in scored.lexicons:
            console.note(("" if alone else f"{about['path']}: ") + _coverage(result))
        for other in (*scored.similarity, *scored.analogies, *scored.sentences, *scored.counterparts):
            console.note(repr(other))


def _aligned(
    folder: Path | None, src: Path | None, tgt: Path | None, reading: dict[str, Any]
) -> tuple[Alignment | AlignedFiles, list[str]]:
    if folder is not None:
        if src is not None or tgt is not None:
            raise InputError(f"both the folder {folder} and --src/--tgt were given; expected one of them")
        if (most := reading["max_vocab"]) is not None:
            raise InputError(f"--max-vocab {most} is for --src and --tgt; a folder is evaluated as it was aligned")
        if reading["format"] is not None:
            raise InputError(f"--input-format {reading['format']} is for --src and --tgt; a folder knows its formats")
        return options.load_alignment(folder), []
    if src is None or tgt is None:
        raise InputError("nothing to evaluate was given; expected a folder, or both --src FILE and --tgt FILE")
    spaces = [options.load_space(path, **reading) for path in (src, tgt)]
    return AlignedFiles(spaces[0][0], spaces[1][0]), spaces[0][1] + spaces[1][1]


def _rows(result: Evaluation) -> Rows:
    """A line for each measure, from 0 to 1."""
    return Rows(
        ("retrieval", "out_of", "measure", "value", "low", "high"),
        (
            (method, key, name, f"{score.value:.6f}", f"{score.low:.6f}", f"{score.high:.6f}")
            for method, scores in result.scores.items()
            for key in DENOMINATORS
            for name, score in getattr(scores, key).items()
        ),
    )


def _coverage(result: Evaluation) -> str:
    coverage = result.coverage
    return (
        f"coverage: {coverage.covered_source_words:,} of {coverage.source_words:,} source words "
        f"({100 * coverage.share:.1f} %), {coverage.covered_pairs:,} of {coverage.pairs:,} pairs; "
        f"vocabularies of {result.n_src:,} and {result.n_tgt:,} words"
    )


def show(result: Evaluation) -> None:
    """Coverage and the table of scores on stdout."""
    console.say(_coverage(result))
    rows, names = [], list(next(iter(result.scores.values())).covered)
    for method, scores in result.scores.items():
        label = f"{method} (k={result.csls_k})" if method == "csls" else method
        for key, words in DENOMINATORS.items():
            measures = getattr(scores, key)
            rows.append([label, words, *(_cell(measures[name], result.bootstrap) for name in names)])
    headings = ["MAP (XLING)" if name == "MAP" else name for name in names]
    title = "Scores in percent" + (", with 95 % intervals" if result.bootstrap else "")
    console.table(["retrieval", "out of", *headings], rows, title=title)
    for name in ("covered", "all_words", "MRR", "MAP", "AP"):
        console.say(f"{DENOMINATORS.get(name, name)}: {CONVENTIONS[name]}", "dim")


def _cell(score: Score, bootstrap: int) -> console.Cell:
    value = f"{100 * score.value:.1f}"
    return (value, f"{100 * score.low:.1f}–{100 * score.high:.1f}") if bootstrap else value
