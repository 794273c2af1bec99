"""Bilingual dictionaries: pairs of a source word and one of its translations."""

from __future__ import annotations

import csv
import logging
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from qwp.errors import InputError
from qwp.spaces.io.files import check_file, open_plain, replacing

logger = logging.getLogger(__name__)

FORMATS = ("auto", "muse", "xling", "csv")
_HEADER_NAMES = frozenset({"src", "source", "tgt", "target"})
_MAX_EXPLANATIONS = 20


@dataclass(frozen=True)
class Coverage:
    """How much of a lexicon two vocabularies can be tested on.

    Attributes:
        pairs: pairs in the lexicon.
        covered_pairs: pairs with both words in their vocabularies.
        source_words: different source words in the lexicon.
        covered_source_words: source words in the vocabulary with at least one translation in the other one.
    """

    pairs: int
    covered_pairs: int
    source_words: int
    covered_source_words: int

    @property
    def share(self) -> float:
        """Covered source words as a share of all source words."""
        return self.covered_source_words / self.source_words if self.source_words else 0.0

    def to_dict(self) -> dict[str, Any]:
        """The same as plain JSON types."""
        return {**asdict(self), "share": self.share}


@dataclass(frozen=True)
class Lexicon:
    """Pairs (source word, target word), each once, in the order given.

    Attributes:
        pairs: the pairs; repeated ones are dropped and counted.
        skipped: lines of the file that could not be used.
        skipped_lines: explanations of the first of them.
        duplicates: pairs dropped because they were there already.
        source: the file the pairs came from.
    """

    pairs: tuple[tuple[str, str], ...]
    skipped: int = 0
    skipped_lines: tuple[str, ...] = ()
    duplicates: int = 0
    source: str | None = None

    def __post_init__(self) -> None:
        given = [_as_pair(pair) for pair in self.pairs]
        unique = tuple(dict.fromkeys(given))
        object.__setattr__(self, "pairs", unique)
        object.__setattr__(self, "duplicates", self.duplicates + len(given) - len(unique))

    def __len__(self) -> int:
        return len(self.pairs)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self.pairs)

    @classmethod
    def load(cls, path: str | PathLike[str], *, format: str = "auto", case: str = "keep") -> Lexicon:
        """Read a dictionary file.

        Args:
            path: UTF-8 text, one pair a line; may be gzip-compressed.
            format: "muse" (two words separated by blanks), "xling" (two entries separated by one tab), "csv"
                (the first two columns; a first row that names them is left out), or "auto" to tell from the
                name and the content.
            case: "keep", or "lower" to lower-case both words.
        """
        if format not in FORMATS:
            raise InputError(f"received format={format!r}, expected one of {', '.join(FORMATS)}")
        if case not in ("keep", "lower"):
            raise InputError(f"received case={case!r}, expected 'keep' or 'lower'")
        path = Path(path)
        check_file(path)
        with open_plain(path) as handle:
            lines = handle.read().removeprefix(b"\xef\xbb\xbf").split(b"\n")
        if format == "auto":
            format = _detect(path, lines)
        pairs, odd = _read_lines(lines, _SPLITTERS[format], skip_header=format == "csv")
        if not pairs:
            first = odd[0] if odd else "the file holds no text"
            raise InputError(
                f"{path} holds no usable pair of words as {format!r} ({len(odd)} lines skipped; {first}): "
                "expected a source and a target word on each line; check the file or pass another format"
            )
        if odd:
            logger.warning("%s: %d lines skipped, the first: %s", path, len(odd), odd[0])
        if case == "lower":
            pairs = [(src.lower(), tgt.lower()) for src, tgt in pairs]
        return cls(tuple(pairs), len(odd), tuple(odd[:_MAX_EXPLANATIONS]), source=str(path))

    @cached_property
    def targets(self) -> dict[str, tuple[str, ...]]:
        """The translations of each source word, in the order of the pairs."""
        found: dict[str, list[str]] = {}
        for src, tgt in self.pairs:
            found.setdefault(src, []).append(tgt)
        return {src: tuple(tgts) for src, tgts in found.items()}

    def coverage(self, src_words: Container[str], tgt_words: Container[str]) -> Coverage:
        """Count what can be used with only the words of two vocabularies (sets, dicts or Embeddings)."""
        covered = [(src, tgt) for src, tgt in self.pairs if src in src_words and tgt in tgt_words]
        return Coverage(len(self), len(covered), len(self.targets), len({src for src, _ in covered}))

    def reverse(self) -> Lexicon:
        """The same pairs from target to source."""
        return Lexicon(tuple((tgt, src) for src, tgt in self.pairs), source=self.source)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the pairs, one a line: with a tab between ("xling"), or as CSV if the name ends in .csv."""
        path = Path(path)
        line = _csv_line if path.suffix == ".csv" else _tab_line
        with replacing(path) as handle:
            for pair in self.pairs:
                handle.write(line(pair).encode())


def _as_pair(pair: Iterable[str]) -> tuple[str, str]:
    words = tuple(pair) if not isinstance(pair, str) else (pair,)
    if len(words) != 2 or not all(isinstance(word, str) and word for word in words):
        raise InputError(f"received the pair {pair!r}, expected two non-empty words: (source, target)")
    return words[0], words[1]


def _read_lines(
    lines: list[bytes], split: Callable[[str], list[str]], skip_header: bool
) -> tuple[list[tuple[str, str]], list[str]]:
    """The pairs, and an explanation for each line that holds none."""
    pairs: list[tuple[str, str]] = []
    odd: list[str] = []
    for number, raw in enumerate(lines, start=1):
        try:
            line = raw.removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError:
            odd.append(f"line {number}: is not UTF-8 text")
            continue
        fields = [field.strip(" \t") for field in split(line)]
        if number == len(lines) and not line.strip(" \t"):
            continue  # what follows the last newline
        if skip_header and number == 1 and {field.lower() for field in fields[:2]} <= _HEADER_NAMES:
            continue
        if len(fields) != 2:
            odd.append(f"line {number}: holds {len(fields)} fields, expected 2")
        elif not all(fields):
            odd.append(f"line {number}: has an empty field, expected 2 words")
        else:
            pairs.append((fields[0], fields[1]))
    return pairs, odd


def _split_blanks(line: str) -> list[str]:
    # Not str.split(): it would also split at U+00A0 and other characters that belong to words.
    return [field for field in line.replace("\t", " ").split(" ") if field]


def _split_tab(line: str) -> list[str]:
    return line.split("\t")


def _split_csv(line: str) -> list[str]:
    try:
        return next(csv.reader([line]), [])[:2] if line else []
    except csv.Error:  # a NUL before Python 3.11, a field beyond the module's limit: an odd line, not a fatal one
        return []


_SPLITTERS: dict[str, Callable[[str], list[str]]] = {
    "muse": _split_blanks,
    "xling": _split_tab,
    "csv": _split_csv,
}


def _detect(path: Path, lines: list[bytes]) -> str:
    """Tell the format: CSV by name, the other two by whether most lines split at exactly one tab."""
    if path.suffixes[-1:] == [".csv"] or path.suffixes[-2:] == [".csv", ".gz"]:
        return "csv"
    sample = [line.removesuffix(b"\r") for line in lines[:200] if line.strip()]
    one_tab = sum(line.strip(b" \t").count(b"\t") == 1 for line in sample)
    if one_tab * 2 > len(sample):
        return "xling"
    blanks = sum(b" " in line or b"\t" in line for line in sample)
    commas = sum(b"," in line for line in sample)
    return "csv" if commas > blanks else "muse"


def _tab_line(pair: tuple[str, str]) -> str:
    if any("\t" in word or "\n" in word for word in pair):
        raise InputError(f"the pair {pair!r} holds a tab or a line break, expected words that fit on one line")
    return f"{pair[0]}\t{pair[1]}\n"


def _csv_line(pair: tuple[str, str]) -> str:
    if any("\n" in word or "\r" in word for word in pair):
        raise InputError(f"the pair {pair!r} holds a line break, expected words that fit on one line")
    quoted = ('"' + word.replace('"', '""') + '"' if set(word) & set(',"') else word for word in pair)
    return ",".join(quoted) + "\n"
