"""`qwp evaluate`: score an alignment, or two aligned files, against a lexicon."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from qwp.arrays import use_memory
from qwp.cli import console, options
from qwp.errors import InputError
from qwp.judging.evaluation import CONVENTIONS, AlignedFiles, Evaluation, Score
from qwp.results.alignment import Alignment

DENOMINATORS = {"covered": "covered words", "all_words": "all words"}


@console.guarded
def command(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="[DIR]", help="A folder written by `qwp align --out`.", show_default=False),
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
        str, typer.Option("--retrieval", help="A comma-separated list of nn, csls and softmax.")
    ] = "nn,csls",
    csls_k: options.CslsK = 10,
    spelling: options.Spelling = False,
    case: Annotated[str, typer.Option("--case", help="keep, or lower to lower-case the lexicon.")] = "keep",
    lexicon_format: Annotated[
        str, typer.Option("--lexicon-format", help="auto, muse (blanks), xling (one tab) or csv.")
    ] = "auto",
    reverse: Annotated[bool, typer.Option("--reverse", help="Swap the columns of the lexicon.")] = False,
    max_vocab: options.MaxVocab = None,
    errors: options.Errors = "raise",
    input_format: options.InputFormat = None,
    bootstrap: Annotated[
        int, typer.Option("--bootstrap", help="Resamples behind the 95 % intervals; 0 for none.")
    ] = 1000,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the resamples.")] = 0,
    device: options.Device = "auto",
    max_memory: options.MaxMemory = None,
    json: options.Json = False,
) -> None:
    """Score an alignment DIR, or two files already in one space (--src, --tgt), against a dictionary.

    Coverage comes first. Scores are given twice: over covered source words, and over all source words of the
    lexicon with uncovered ones scoring 0.
    """
    from qwp.judging.evaluation import evaluate

    options.check(
        csls_k=csls_k, max_vocab=max_vocab, errors=errors, bootstrap=bootstrap, seed=seed, max_memory=max_memory
    )
    if lexicon is None:
        raise InputError("no dictionary was given; expected --lexicon FILE")
    gold = options.load_lexicon(lexicon, lexicon_format, case, reverse=reverse)
    aligned, warnings = _aligned(folder, src, tgt, max_vocab=max_vocab, errors=errors, format=input_format)
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
    if json:
        about = {
            "path": str(lexicon),
            "pairs": len(gold),
            "skipped": gold.skipped,
            "duplicates": gold.duplicates,
        }
        console.print_json({"command": "evaluate", "lexicon": about, **result.to_dict(), "warnings": warnings})
    else:
        show(result)
        if result.spelling:
            console.note(options.spelling_note(result.spelling, aligned.src, aligned.tgt))


def _aligned(
    folder: Path | None, src: Path | None, tgt: Path | None, *, max_vocab: int | None, errors: str, format: str | None
) -> tuple[Alignment | AlignedFiles, list[str]]:
    if folder is not None:
        if src is not None or tgt is not None:
            raise InputError(f"both the folder {folder} and --src/--tgt were given; expected one of them")
        if max_vocab is not None:
            raise InputError(f"--max-vocab {max_vocab} is for --src and --tgt; a folder is evaluated as it was aligned")
        if format is not None:
            raise InputError(f"--input-format {format} is for --src and --tgt; a folder knows its formats")
        return options.load_alignment(folder), []
    if src is None or tgt is None:
        raise InputError("nothing to evaluate was given; expected a folder, or both --src FILE and --tgt FILE")
    spaces = [options.load_space(path, max_vocab, errors, format) for path in (src, tgt)]
    return AlignedFiles(spaces[0][0], spaces[1][0]), spaces[0][1] + spaces[1][1]


def show(result: Evaluation) -> None:
    """Coverage and the table of scores on stdout."""
    coverage = result.coverage
    console.say(
        f"coverage: {coverage.covered_source_words:,} of {coverage.source_words:,} source words "
        f"({100 * coverage.share:.1f} %), {coverage.covered_pairs:,} of {coverage.pairs:,} pairs; "
        f"vocabularies of {result.n_src:,} and {result.n_tgt:,} words"
    )
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
