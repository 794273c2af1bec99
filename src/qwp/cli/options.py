"""Options that several commands share, and the pieces of input handling around them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from qwp.cli import completion, console
from qwp.cli.parameters import COMMAND_FLAGS, DEVICES
from qwp.cli.results import expect_alignment
from qwp.methods import Aligner
from qwp.parameters import MOST_SIZE, MOST_WORDS, RUN, Declaration, Parameter
from qwp.results.alignment import Alignment
from qwp.search.approximate import RECALL_K, RECALL_SAMPLE
from qwp.search.spelling import LABEL, one_alphabet
from qwp.spaces.embeddings import Embeddings, LoadReport, Side
from qwp.spaces.io import FORMATS
from qwp.spaces.io.reading import Reading
from qwp.spaces.io.writing import WRITTEN
from qwp.spaces.lexicon import Lexicon

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else there.")]
AlignmentFolder = Annotated[
    Path,
    typer.Argument(
        metavar="DIR",
        help="A folder written by `qwp align --out`.",
        show_default=False,
        autocompletion=completion.result_folders,
    ),
]
MaxVocab = Annotated[
    int | None,
    typer.Option(
        "--max-vocab",
        metavar="N",
        help="Read only the first N words of each file. (default: all)",
        show_default=False,
    ),
]
Device = Annotated[
    str,
    completion.choice(
        "--device",
        DEVICES,
        "Where to compute: auto (a GPU if torch sees one), cpu, cuda or cuda:N.",
        metavar="NAME",
    ),
]
MaxMemory = Annotated[
    float | None,
    typer.Option(
        "--max-memory",
        metavar="GIB",
        help="Bound the blocks of large computations to this many GiB. (default: 32 MiB a thread, 1 GiB on a GPU)",
        show_default=False,
    ),
]
CslsK = Annotated[int, typer.Option("--csls-k", metavar="N", help="Neighbourhood size of CSLS.")]
Approximate = Annotated[
    bool,
    typer.Option(
        "--approximate",
        help="Search with FAISS: faster for many words, not exact. Its recall is measured and shown.",
    ),
]
Spelling = Annotated[
    bool,
    typer.Option(
        "--spelling",
        help="Add a term for words that are spelled alike to CSLS. For languages of one script, which it helps much.",
    ),
]
Case = Annotated[str, completion.choice("--case", ("keep", "lower"), "keep, or lower to lower-case the lexicon.")]
LexiconFormat = Annotated[
    str,
    completion.choice(
        "--lexicon-format",
        ("auto", "muse", "xling", "csv"),
        "auto, muse (blanks), xling (one tab) or csv.",
        metavar="NAME",
    ),
]
Reverse = Annotated[bool, typer.Option("--reverse", help="Swap the columns of the lexicon.")]
Errors = Annotated[
    str,
    completion.choice("--errors", ("raise", "skip"), "Damaged lines: raise (stop) or skip (leave out and count)."),
]
Digits = Annotated[
    int | None,
    typer.Option(
        "--digits",
        metavar="N",
        help="Digits after the point in text. (default: as many as give the same float32 back)",
        show_default=False,
    ),
]
InputFormat = Annotated[
    str | None,
    completion.choice(
        "--input-format",
        FORMATS,
        f"Format to read: {', '.join(FORMATS)}. (default: told from the content)",
        metavar="NAME",
        show_default=False,
    ),
]
Encoding = Annotated[
    str,
    typer.Option(
        "--encoding", metavar="NAME", help="Encoding of the words in text and binary files, such as latin-1 or cp1251."
    ),
]
Words = Annotated[
    Path | None,
    typer.Option(
        "--words",
        metavar="FILE",
        help="Words of vectors that have none, one a line. (default: x.words.txt for x.npy, if that is there)",
        show_default=False,
    ),
]
Dtype = Annotated[
    str,
    completion.choice("--dtype", WRITTEN, "Numbers to write: float32, or float16 where the format holds arrays."),
]
OutFormat = Annotated[
    str | None,
    completion.choice(
        "--format",
        FORMATS,
        f"Format to write: {', '.join(FORMATS)}. (default: by the suffix)",
        metavar="NAME",
        show_default=False,
    ),
]

# A file can have thousands of damaged lines; these are enough to see what is wrong with it.
_SHOWN_LINES = 3


def _whole(name: str, least: int, most: int) -> Parameter:
    return Parameter(name, int, True, None, Declaration("", RUN, least=least, most=most))


# Ranges of options that mean the same as a parameter of the methods, and of those that only commands have.
_RANGES: dict[str, Parameter] = {
    **{name: Aligner.parameters()[name] for name in ("csls_k", "seed", "threads", "max_memory")},
    **{name: COMMAND_FLAGS[name].parameter for name in ("max_vocab", "errors", "encoding")},
    "k": _whole("k", 1, MOST_SIZE),
    "max_words": _whole("max_words", 1, MOST_WORDS),
    "queries": _whole("queries", 1, MOST_SIZE),
    "max_sentences": _whole("max_sentences", 1, MOST_SIZE),
    "top": _whole("top", 1, MOST_SIZE),
    "neighbours": _whole("neighbours", 1, 1000),
    "fdr": Parameter("fdr", float, False, 0.05, Declaration("", RUN, above=0, most=0.999)),
    "bootstrap": _whole("bootstrap", 0, MOST_SIZE),
    "min_confidence": Parameter("min_confidence", float, False, 0.0, Declaration("", RUN, least=0, most=1)),
}


def spelling_note(weight: float, src: Embeddings, tgt: Embeddings) -> str:
    """What is said beside results that spelling had a part in."""
    if not one_alphabet(src.words, tgt.words):
        return f"scores are {LABEL}, but the two languages do not share an alphabet: spelling adds nothing"
    return f"scores are {LABEL}: {weight:g} times the similarity of the letters is added to CSLS"


def check(**values: Any) -> None:
    """Raise an InputError for values of options that no command can work with. Called before any file is read."""
    for name, value in values.items():
        _RANGES[name].check(value)


def notes_of(found: LoadReport | Reading) -> list[str]:
    """What reading a file found that its user should know, beyond the warnings already logged."""
    notes = []
    if found.duplicates:
        notes.append(f"{found.path}: {found.duplicates:,} repeated words dropped, the first of each kept")
    if found.skipped:
        shown = "; ".join(found.skipped_lines[:_SHOWN_LINES])
        more = "; ..." if found.skipped > _SHOWN_LINES else ""
        notes.append(f"{found.path}: {found.skipped:,} damaged lines left out ({shown}{more})")
    if isinstance(found, LoadReport) and found.zero_vectors:
        notes.append(f"{found.path}: {found.zero_vectors:,} words have a vector of zeros and cannot be placed")
    return notes


def warn_of(found: LoadReport | Reading) -> list[str]:
    """Show the notes, and return them with the warnings that were logged while reading."""
    notes = notes_of(found)
    for text in notes:
        console.warn(text)
    return [f"{found.path}: {text}" for text in found.warnings] + notes


def load_space(path: Path, **reading: Any) -> tuple[Embeddings, list[str]]:
    """A vector file and the warnings about it, which are shown. reading: arguments of `qwp.load`."""
    from qwp.spaces import io

    space = io.load(path, **reading)
    return space, warn_of(space.report) if space.report is not None else []


def load_lexicon(path: Path, format: str = "auto", case: str = "keep", *, reverse: bool = False) -> Lexicon:
    """A lexicon file; the loader logs the lines it could not use."""
    lexicon = Lexicon.load(path, format=format, case=case)
    return lexicon.reverse() if reverse else lexicon


@dataclass(frozen=True)
class Recall:
    """Recall of an approximate search, 0 to 1, and how many words it was measured on."""

    value: float
    words: int

    def __str__(self) -> str:
        return f"approximate search: recall@{RECALL_K} {self.value:.2f}, measured on {self.words:,} words"


def lowest_recall(alignment: Alignment, *sides: Side) -> Recall:
    """Recall of the approximate search for the words of these sides; the lower one where there are two."""
    value, side = min((alignment.approximate_recall(side), side) for side in sides)
    return Recall(value, min(RECALL_SAMPLE, len(getattr(alignment, side))))


def load_alignment(folder: Path, *, check: str = "content") -> Alignment:
    """A saved alignment, with a warning where it is known to have failed. check: as that of `Alignment.load`."""
    expect_alignment(folder)
    alignment = Alignment.load(folder, check=check)
    if alignment.quality.failed:
        console.warn(
            "this alignment failed and its translations are not to be trusted. " + alignment.quality.explanation
        )
    return alignment
