"""`qwp demo`: align the English and Spanish vectors that come with the package, and show what came out."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from qwp.arrays import to_numpy
from qwp.cli import console, options
from qwp.cli import evaluate as evaluate_command
from qwp.cli.options import Json
from qwp.cli.results import STYLES, quality_rows, times
from qwp.judging.evaluation import Evaluation
from qwp.judging.verdict import SUCCEEDED
from qwp.report.page import Curve, WordPoint
from qwp.results.alignment import Alignment
from qwp.showing.bar import AlignProgress
from qwp.spaces.demo import load_demo as load_demo
from qwp.spaces.lexicon import Lexicon

# Common words, chosen before looking at any result.
EXAMPLES = (
    *("house", "water", "mother", "king", "night", "red", "three", "love", "book", "door", "city"),
    *("write", "beautiful", "monday", "always", "death"),
)
_SHOWN = 3
_MAP_PAIRS = 40

Example = tuple[str, list[tuple[str, float]], bool | None]


@console.guarded
def command(
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Seed of all random choices.")] = 0,
    report: Annotated[Path, typer.Option("--report", metavar="FILE", help="Where the HTML report goes.")] = Path(
        "demo-report.html"
    ),
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Save the alignment and the lexicon there as well.", show_default=False
        ),
    ] = None,
    threads: Annotated[
        int | None, typer.Option("--threads", metavar="N", help="Threads to use. (default: all)", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    """Align the packaged English and Spanish vectors with the default settings and write an HTML report.

    Exit code 3: the alignment failed.
    """
    from qwp.api import align
    from qwp.judging.evaluation import evaluate
    from qwp.spaces.io.files import check_folder

    options.check(seed=seed, threads=threads)
    check_folder(report)
    if out is not None:
        check_folder(out / "alignment.json" if out.is_dir() else out)
    begin = time.perf_counter()
    src, tgt, lexicon = load_demo()
    with AlignProgress() as progress:
        alignment = align(src, tgt, seed=seed, threads=threads, progress=progress)
    result = evaluate(alignment, lexicon)
    examples = example_translations(alignment, lexicon)
    seconds = time.perf_counter() - begin
    write_demo_report(report, alignment, result, examples, lexicon, seconds)
    if out is not None:
        alignment.save(out)
        lexicon.save(out / "lexicon.tsv")
        console.note(f"look at it with `qwp explore {out} --lexicon {out / 'lexicon.tsv'}`")
    if json:
        console.print_json(_as_json(alignment, result, examples, report, seconds))
    else:
        _show(alignment, result, examples, report, seconds)
    if alignment.quality.failed:
        console.fail("the alignment failed" + (f". {alignment.quality.explanation}" if json else ""))
        raise typer.Exit(console.EXIT_FAILED)


def example_translations(alignment: Alignment, lexicon: Lexicon) -> list[Example]:
    """Translations of the example words, and whether the best is in the lexicon (None: not listed)."""
    words = [word for word in EXAMPLES if word in alignment.src]
    found = alignment.translate(words, k=_SHOWN)
    return [
        (
            word,
            [(t.word, t.score) for t in found[word]],
            found[word][0].word in lexicon.targets[word] if word in lexicon.targets else None,
        )
        for word in words
    ]


def _as_json(
    alignment: Alignment, result: Evaluation, examples: list[Example], report: Path, seconds: float
) -> dict[str, Any]:
    return {
        "command": "demo",
        "verdict": alignment.quality.verdict,
        "p_at_1": result.p_at_1(),
        "seconds": seconds,
        "report": str(report),
        "quality": alignment.quality.to_dict(),
        "evaluation": result.to_dict(),
        "translations": [
            {"word": word, "translations": [{"word": w, "score": s} for w, s in found], "right": right}
            for word, found, right in examples
        ],
        "provenance": asdict(alignment.provenance),
    }


def _headline(result: Evaluation) -> str:
    coverage = result.coverage
    return (
        f"{100 * result.p_at_1():.1f} % (CSLS, over {coverage.covered_source_words:,} covered of "
        f"{coverage.source_words:,} source words, {100 * coverage.share:.1f} %)"
    )


def _show(alignment: Alignment, result: Evaluation, examples: list[Example], report: Path, seconds: float) -> None:
    rows = [
        [
            word,
            ", ".join(w for w, _ in found),
            f"{found[0][1]:.3f}",
            "" if right is None else "✓" if right else "✗",
        ]
        for word, found, right in examples
    ]
    console.table(["English", "Spanish, best first", "CSLS", "in lexicon"], rows, title="Example translations")
    evaluate_command.show(result)
    quality = alignment.quality
    console.say(quality.explanation, STYLES[quality.verdict])
    console.figures(
        [
            ("P@1", _headline(result)),
            *quality_rows(quality),
            ("alignment", times(alignment.provenance.seconds)),
            ("in all", console.seconds(seconds)),
            ("report", str(report)),
        ]
    )


# --------------------------------------------------------------------------- the HTML report


def write_demo_report(
    path: Path,
    alignment: Alignment,
    result: Evaluation,
    examples: list[Example],
    lexicon: Lexicon,
    seconds: float,
) -> None:
    """Everything on one HTML page."""
    from qwp.report.page import render_report, write_report

    page = render_report(
        title="qwp demo: English and Spanish words in one space, without a dictionary",
        summary=[
            ("P@1", _headline(result)),
            ("words", f"{len(alignment.src):,} English, {len(alignment.tgt):,} Spanish"),
            ("dimensions", str(alignment.src.dim)),
            *quality_rows(alignment.quality),
            ("alignment", times(alignment.provenance.seconds)),
            ("in all", console.seconds(seconds)),
        ],
        verdict=alignment.quality.explanation,
        verdict_ok=alignment.quality.verdict == SUCCEEDED,
        scores=score_rows(result),
        translations=examples,
        curves=curves(alignment.history),
        points=word_points(alignment, lexicon),
        provenance=asdict(alignment.provenance),
    )
    write_report(path, page)


def score_rows(result: Evaluation) -> list[dict[str, object]]:
    """One row for each retrieval method and denominator, in percent."""
    return [
        {
            "retrieval": method,
            "out of": words,
            **{
                "MAP (XLING)" if name == "MAP" else name: round(100 * score.value, 1)
                for name, score in getattr(scores, key).items()
            },
        }
        for method, scores in result.scores.items()
        for key, words in evaluate_command.DENOMINATORS.items()
    ]


# What each stage measured that is worth a picture: field, title, name of the steps, name of the value.
_CURVES = {
    "start": (("objective", "Start: trial run", "step", "mean squared distance"),),
    "loop": (("objective", "Transport loop", "step", "mean squared distance"),),
    "refine": (
        ("n_pairs", "Refinement: pairs in the dictionary", "round", "pairs"),
        ("mean_csls", "Refinement: how well they match", "round", "mean CSLS"),
    ),
}


def curves(history: list[dict[str, Any]]) -> list[Curve]:
    """The convergence curves that the records of a run hold."""
    drawn = []
    for stage, wanted in _CURVES.items():
        for field, title, x_label, y_label in wanted:
            records = [r for r in history if r["stage"] == stage and isinstance(r.get(field), int | float)]
            if records:
                x = [float(r["step"]) for r in records]
                drawn.append(Curve(title, x_label, y_label, x, [float(r[field]) for r in records]))
    return drawn


def word_points(alignment: Alignment, lexicon: Lexicon) -> list[WordPoint]:
    """The most frequent gold pairs in the plane, each source word with the first of its translations."""
    from qwp.report.page import word_map

    covered = []
    for word, translations in lexicon.targets.items():
        known = [t for t in translations if t in alignment.tgt]
        # Short words are mostly grammar, and their many translations make a poor picture.
        if word in alignment.src and known and len(word) > 3:
            covered.append((alignment.src.index[word], alignment.tgt.index[known[0]]))
    rows = sorted(covered)[:_MAP_PAIRS]
    places = word_map(
        to_numpy(alignment.mapped("src"))[[i for i, _ in rows]], to_numpy(alignment.mapped("tgt"))[[j for _, j in rows]]
    )
    points = []
    for pair, (i, j) in enumerate(rows):
        (sx, sy), (tx, ty) = places[0][pair].tolist(), places[1][pair].tolist()
        points.append(WordPoint(alignment.src.words[i], "src", sx, sy, pair))
        points.append(WordPoint(alignment.tgt.words[j], "tgt", tx, ty, pair))
    return points
