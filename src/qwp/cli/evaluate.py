"""`qwp evaluate`: score an alignment, or two aligned files, against a lexicon."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from qwp.arrays import use_memory
from qwp.cli import completion, console, options, outputs
from qwp.cli.outputs import TABLE, Output, Rows
from qwp.errors import InputError
from qwp.judging.evaluation import CONVENTIONS, DENOMINATORS, AlignedFiles, Evaluation, Score
from qwp.results.alignment import Alignment
from qwp.spaces.io.arguments import UTF8


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
        Path | None,
        typer.Option("--lexicon", "-l", metavar="FILE", help="The gold dictionary.", show_default=False),
    ] = None,
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

    Coverage comes first. Scores are given twice: over covered source words, and over all source words of the
    lexicon with uncovered ones scoring 0.
    """
    from qwp.judging.evaluation import evaluate

    options.check(csls_k=csls_k, bootstrap=bootstrap, seed=seed, max_memory=max_memory)
    options.check(max_vocab=max_vocab, errors=errors, encoding=encoding)
    output = Output.chosen(format, out, json=json)
    if lexicon is None:
        raise InputError("no dictionary was given; expected --lexicon FILE")
    gold = options.load_lexicon(lexicon, lexicon_format, case, reverse=reverse)
    reading = {"max_vocab": max_vocab, "errors": errors, "format": input_format, "encoding": encoding}
    aligned, warnings = _aligned(folder, src, tgt, reading)
    methods = [name.strip() for name in retrieval.split(",") if name.strip()]
    with use_memory(max_memory):
        result = evaluate(
            aligned.on(device),
            gold,
            retrieval=methods,
            csls_k=csls_k,
            bootstrap=bootstrap,
            seed=seed,
            spelling=spelling,
        )
    about = {
        "path": str(lexicon),
        "pairs": len(gold),
        "skipped": gold.skipped,
        "duplicates": gold.duplicates,
    }
    output.write(
        json=lambda: {"command": "evaluate", "lexicon": about, **result.to_dict(), "warnings": warnings},
        rows=lambda: _rows(result),
        show=lambda: show(result),
    )
    if output.format != TABLE:
        console.note(_coverage(result))
    if result.spelling:
        console.note(options.spelling_note(result.spelling, aligned.src, aligned.tgt))


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
