"""Bilingual dictionaries: pairs of a source word and one of its translations."""

from __future__ import annotations

import csv
import gzip
import hashlib
import reprlib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from qwp.errors import InputError
from qwp.showing import html
from qwp.spaces.embeddings import invalid_words
from qwp.spaces.io.arguments import as_choice, as_path
from qwp.spaces.io.files import atomic_write
from qwp.spaces.io.line_files import Skipped, numbered_lines, refuse_other_text, split_blanks
from qwp.spaces.io.numbers import BOM
from qwp.spaces.io.sources import explain_failures, open_source
from qwp.spaces.limits import MAX_WORD_BYTES, UNPACK

FORMATS = ("auto", "muse", "xling", "csv")
_HEADER_NAMES = frozenset({"src", "source", "tgt", "target"})
_SAMPLE_LINES = 200
_NOTEBOOK_ROWS = 10


@dataclass(frozen=True)
class Coverage:
    """Coverage of a lexicon by two vocabularies.

    Attributes:
        pairs: number of pairs in the lexicon.
        covered_pairs: number of pairs with both words in their vocabularies.
        source_words: number of unique source words in the lexicon.
        covered_source_words: number of source words in their vocabulary with a translation in the other one.
    """

    pairs: int
    covered_pairs: int
    source_words: int
    covered_source_words: int

    @property
    def share(self) -> float:
        """Share of the source words that are covered."""
        return self.covered_source_words / self.source_words if self.source_words else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the coverage as plain JSON types."""
        return {**asdict(self), "share": self.share}


PairsOfWords: TypeAlias = (
    "Lexicon | str | PathLike[str] | Iterable[tuple[str, str]] | Iterable[Sequence[str]] | Iterable[tuple[int, int]] "
    "| npt.NDArray[np.integer[Any]] "
    "| Mapping[str, str] | Mapping[str, Sequence[str]] | Mapping[str, str | Sequence[str]]"
)
"""Accepted types of a lexicon, see `Lexicon.of`."""


@dataclass(frozen=True)
class Lexicon(html.NotebookCard):
    """Unique pairs (source word, target word), in the given order.

    Attributes:
        pairs: the pairs, without repeated ones.
        skipped: number of lines of the file that could not be used.
        skipped_lines: explanations of the first skipped lines.
        duplicates: number of repeated pairs.
        source: the file of the pairs.
    """

    pairs: tuple[tuple[str, str], ...]
    skipped: int = 0
    skipped_lines: tuple[str, ...] = ()
    duplicates: int = 0
    source: str | None = None

    def __post_init__(self) -> None:
        given = [_as_pair(pair) for pair in self.pairs]
        unique = tuple(dict.fromkeys(given))
        if invalid := invalid_words([word for pair in unique for word in pair]):
            raise InputError(
                f"received the pair {unique[invalid[0] // 2]!r} with half of a surrogate pair, expected text that "
                "UTF-8 can encode: repair or remove the pair"
            )
        object.__setattr__(self, "pairs", unique)
        object.__setattr__(self, "duplicates", self.duplicates + len(given) - len(unique))

    def __len__(self) -> int:
        return len(self.pairs)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self.pairs)

    def _as_html(self) -> str:
        rows = [(src, ", ".join(found)) for src, found in islice(self.targets.items(), _NOTEBOOK_ROWS)]
        return html.join(html.element("div", repr(self)), html.table(rows, ("source", "target")))

    def __repr__(self) -> str:
        first = ", ".join(f"{src!r} -> {tgt!r}" for src, tgt in self.pairs[:1])
        source = "" if self.source is None else f" of {self.source!r}"
        return f"Lexicon({len(self):,} pairs{source}{': ' if first else ''}{first}{', ...' if len(self) > 1 else ''})"

    @classmethod
    def of(cls, given: PairsOfWords) -> Lexicon:
        """Return a lexicon from a Lexicon, the path of a file, pairs of words, or a dict.

        The values of a dict are words or lists of words: ``{"house": "casa", "big": ["grande", "gran"]}``. Pairs of
        numbers, or an array (p, 2), are row numbers of vectors without words.
        """
        if isinstance(given, Lexicon):
            return given
        if isinstance(given, (str, PathLike)):
            return cls.load(given)
        found = cls(tuple(_given_pairs(given)))
        if not found.pairs:
            raise InputError("received a lexicon without pairs, expected at least one pair of words")
        return found

    @classmethod
    def load(cls, path: str | PathLike[str], *, format: str = "auto", case: str = "keep") -> Lexicon:
        """Read a dictionary file.

        Args:
            path: UTF-8 text with one pair per line; may be gzip-compressed.
            format: "muse" (two words separated by blanks), "xling" (two entries separated by one tab), "csv"
                (the first two columns, without a header row), or "auto" to detect it from the name and the content.
            case: "keep", or "lower" to lower-case both words.
        """
        name = as_path(path)
        format = as_choice("format", format, FORMATS)
        case = as_choice("case", case, ("keep", "lower"))
        with open_source(name) as source, explain_failures(name, "pairs of words"):
            refuse_other_text(source)
            format = _detect(name, source.head) if format == "auto" else format
            reader = PairReader(format, lower=case == "lower", max_pairs=source.max_rows)
            with source.plain() as handle:
                for number, line, last in numbered_lines(handle, name, "two words"):
                    reader.add(number, line, last=last)
                    if reader.too_many:
                        raise source.bomb()
        if not reader.pairs:
            raise InputError(
                f"{name} holds no usable pair of words as {format!r} ({reader.skipped.in_words()}): "
                "expected a source and a target word on each line; check the file or pass another format"
            )
        skipped = reader.skipped
        skipped.warn(name)
        return cls(tuple(reader.pairs), skipped.count, tuple(skipped.explanations), reader.duplicates, source=str(name))

    @cached_property
    def targets(self) -> dict[str, tuple[str, ...]]:
        """Translations of each source word, in the order of the pairs."""
        found: dict[str, list[str]] = {}
        for src, tgt in self.pairs:
            found.setdefault(src, []).append(tgt)
        return {src: tuple(tgts) for src, tgts in found.items()}

    def sha256(self) -> str:
        """Return a hash of the pairs in their order."""
        return hashlib.sha256(repr(self.pairs).encode()).hexdigest()

    def coverage(self, src_words: Container[str], tgt_words: Container[str]) -> Coverage:
        """Return the coverage by two vocabularies (sets, dicts or Embeddings)."""
        covered = [(src, tgt) for src, tgt in self.pairs if src in src_words and tgt in tgt_words]
        return Coverage(len(self), len(covered), len(self.targets), len({src for src, _ in covered}))

    def reverse(self) -> Lexicon:
        """Return the pairs with source and target exchanged."""
        return Lexicon(tuple((tgt, src) for src, tgt in self.pairs), source=self.source)

    def save(self, path: str | PathLike[str]) -> None:
        """Write one pair per line, separated by a tab ("xling"), or as CSV if the name ends in .csv.

        A file whose name ends in .gz is compressed. Words that a reader would not restore are refused.
        """
        name = as_path(path)
        line = _csv_line if _is_csv(name) else _tab_line
        with atomic_write(name) as file, ExitStack() as stack:
            packed = name.suffix == ".gz"
            # No file name and no time: the same pairs give the same bytes.
            handle: IO[bytes] | gzip.GzipFile = (
                stack.enter_context(gzip.GzipFile("", "wb", fileobj=file, mtime=0)) if packed else file
            )
            n_bytes = 0
            for number, pair in enumerate(self.pairs):
                text = line(pair).encode()
                if number == 0:
                    text = _first_line(pair, text)
                n_bytes += handle.write(text)
            stack.close()
            size = file.tell()
            if packed and (n_bytes > UNPACK.max_bytes(size) or len(self) > UNPACK.max_rows(size)):
                raise UNPACK.too_compressible(name, size)


def _given_pairs(given: Any) -> Iterable[Any]:
    """Return the pairs of a dict, of a DataFrame with two columns, or of any other iterable."""
    if isinstance(given, Mapping):
        return [(src, tgt) for src, tgts in given.items() for tgt in _translations(src, tgts)]
    if hasattr(given, "to_numpy"):
        given = given.to_numpy()
    if isinstance(given, bytes) or not isinstance(given, Iterable):
        raise InputError(
            f"received {reprlib.repr(given)} ({type(given).__name__}) as a lexicon, expected a Lexicon, the path of a "
            "file, a list of pairs of words, or a dict of words to words"
        )
    return given


def _translations(src: object, tgts: object) -> Iterable[Any]:
    if isinstance(tgts, str):
        return [tgts]
    if isinstance(tgts, Iterable):
        return tgts
    raise InputError(
        f"received {reprlib.repr(tgts)} ({type(tgts).__name__}) as the translation of {src!r}, expected a word or a "
        "list of words"
    )


def _as_pair(pair: Iterable[str]) -> tuple[str, str]:
    words = _two_words(pair)
    if words is None:
        raise InputError(f"received the pair {reprlib.repr(pair)}, expected two non-empty words: (source, target)")
    return words


def _two_words(pair: object) -> tuple[str, str] | None:
    if isinstance(pair, str) or not isinstance(pair, Iterable):
        return None
    words = pair if type(pair) is tuple else tuple(pair)
    if len(words) == 2 and all(_is_row_number(word) for word in words):
        return str(words[0]), str(words[1])
    return words if len(words) == 2 and all(isinstance(word, str) and word for word in words) else None


def _is_row_number(word: object) -> bool:
    return isinstance(word, (int, np.integer)) and not isinstance(word, bool) and bool(word >= 0)


class PairReader:
    """Collects the pairs of a file line by line.

    Args:
        format: one of FORMATS, except "auto".
        lower: whether to lower-case the words.
        max_pairs: number of pairs that a compressed file may hold.
    """

    def __init__(self, format: str, *, lower: bool, max_pairs: int | None) -> None:
        self._split = _SPLITTERS[format]
        self._has_header = format == "csv"
        self._lower = lower
        self._max_pairs = max_pairs
        self.pairs: dict[tuple[str, str], None] = {}
        self.duplicates = 0
        self.skipped = Skipped()

    @property
    def too_many(self) -> bool:
        """Whether the file holds more pairs than allowed."""
        return self._max_pairs is not None and len(self.pairs) > self._max_pairs

    def add(self, number: int, raw: bytes, *, last: bool) -> None:
        """Add a line. last: whether it follows the last newline, so that it may be empty."""
        try:
            line = raw.removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError:
            self.skipped.add(number, "is not UTF-8 text")
            return
        if last and not line.strip(" \t"):
            return
        fields = [field.strip(" \t") for field in self._split(line)]
        if number == 1 and self._has_header and _is_header(fields):
            return
        if len(fields) != 2:
            self.skipped.add(number, f"holds {len(fields)} fields, expected 2")
        elif not all(fields):
            self.skipped.add(number, "has an empty field, expected 2 words")
        elif len(line) > MAX_WORD_BYTES // 4 and any(len(field.encode()) > MAX_WORD_BYTES for field in fields):
            self.skipped.add(number, f"has a word of more than {MAX_WORD_BYTES} bytes, expected less")
        else:
            before = len(self.pairs)
            self.pairs[(fields[0].lower(), fields[1].lower()) if self._lower else (fields[0], fields[1])] = None
            self.duplicates += len(self.pairs) == before


def _split_tab(line: str) -> list[str]:
    return line.split("\t")


def _split_csv(line: str) -> list[str]:
    try:
        return next(csv.reader([line]), [])[:2] if line else []
    except csv.Error:  # a NUL before Python 3.11, or a field beyond the limit of the module: skip the line
        return []


_SPLITTERS: dict[str, Callable[[str], list[str]]] = {
    "muse": split_blanks,
    "xling": _split_tab,
    "csv": _split_csv,
}


def _is_csv(path: Path) -> bool:
    return path.suffixes[-1:] == [".csv"] or path.suffixes[-2:] == [".csv", ".gz"]


def _detect(path: Path, head: bytes) -> str:
    """Detect the format: CSV by its name, XLING if most of the first lines have exactly one tab, else by separators."""
    if _is_csv(path):
        return "csv"
    lines = head.removeprefix(BOM).split(b"\n")
    whole = lines[:-1] if len(lines) > 1 else lines
    sample = [line.removesuffix(b"\r") for line in whole[:_SAMPLE_LINES] if line.strip()]
    one_tab = sum(line.strip(b" \t").count(b"\t") == 1 for line in sample)
    if one_tab * 2 > len(sample):
        return "xling"
    blanks = sum(b" " in line or b"\t" in line for line in sample)
    commas = sum(b"," in line for line in sample)
    return "csv" if commas > blanks else "muse"


def _is_header(fields: list[str]) -> bool:
    return {field.lower() for field in fields[:2]} <= _HEADER_NAMES


def _tab_line(pair: tuple[str, str]) -> str:
    _check_line(pair, "\t\n\r", "a tab or a line break")
    return f"{pair[0]}\t{pair[1]}\n"


def _csv_line(pair: tuple[str, str]) -> str:
    # Python before 3.11 refuses a NUL in CSV.
    _check_line(pair, "\n\r\0", "a line break or a NUL")
    quoted = ('"' + word.replace('"', '""') + '"' if set(word) & set(',"') else word for word in pair)
    return ",".join(quoted) + "\n"


def _check_line(pair: tuple[str, str], forbidden: str, description: str) -> None:
    """Refuse words that a reader would not restore from a line."""
    if any(set(word) & set(forbidden) for word in pair):
        raise InputError(f"the pair {reprlib.repr(pair)} holds {description}, expected words that fit on one line")
    if any(word.strip(" \t") != word for word in pair):
        raise InputError(f"the pair {reprlib.repr(pair)} has a blank at an end, which readers strip: remove it")
    if any(len(word.encode()) > MAX_WORD_BYTES for word in pair):
        raise InputError(f"the pair {reprlib.repr(pair)} has a word of more than {MAX_WORD_BYTES} bytes: remove it")


def _first_line(pair: tuple[str, str], text: bytes) -> bytes:
    """Return the first line of a file, with a header before it if the pair looks like one."""
    if text.startswith((BOM, b'"' + BOM)):
        raise InputError(
            f"the first pair {reprlib.repr(pair)} begins with a byte-order mark, which readers strip: remove it"
        )
    looks_like_header = b"\t" not in text and _is_header(list(pair))
    return b"source,target\n" + text if looks_like_header else text
