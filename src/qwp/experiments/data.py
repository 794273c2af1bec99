"""Where the vectors and dictionaries of an experiment are: files named by their languages in a folder, or the demo."""

from __future__ import annotations

import logging
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any, TypeAlias

from qwp.errors import InputError
from qwp.spaces import io
from qwp.spaces.embeddings import Embeddings
from qwp.spaces.io.files import file_sha256
from qwp.spaces.lexicon import Lexicon

DEMO, FILES = "demo", "files"
GOLD, TRAIN = "gold", "train"

_NAMES = ("{lang}", "wiki.{lang}", "cc.{lang}.300")
_SUFFIXES = (".safetensors", ".npz", ".vec", ".vec.gz", ".txt", ".bin")
_LEXICONS = {
    GOLD: ("{pair}.5000-6500.txt", "{pair}.txt", "{pair}.tsv", "{pair}.csv"),
    TRAIN: ("{pair}.0-5000.txt", "{pair}.train.txt", "{pair}.train.tsv"),
}
# Below the folder that is given.
_FOLDERS = (".", "vectors", "wiki", "fasttext", "muse", "dictionaries")
# In a folder of one direction, named after it, such as es-en.
_OF_ONE = {GOLD: ("lexicon.txt", "lexicon.tsv"), TRAIN: ("train.txt", "train.tsv")}
_NAME = re.compile(r"\w+")


def languages(direction: str) -> tuple[str, str, str]:
    """The name of the data, "" for those without, and the two languages, as in zhang:es-en."""
    name, _, ways = direction.rpartition(":")
    src, _, tgt = ways.partition("-")
    return name, src, tgt


@dataclass(frozen=True)
class Inputs:
    """The files of one direction. train: what a supervised method learns from; None where there is none."""

    src: Path
    tgt: Path
    gold: Path
    train: Path | None = None


@dataclass(frozen=True)
class Missing:
    """What keeps a direction from being run."""

    what: str
    expected: str
    fix: str

    def __str__(self) -> str:
        return f"{self.what}; expected {self.expected}: {self.fix}"


@dataclass(frozen=True)
class Folder:
    """A folder of vectors and one of dictionaries, which may be the same. name: before its directions, "" for none.

    Folders named after a direction below it, such as es-en, have the vectors and dictionaries of that one.
    """

    vectors: Path
    lexicons: Path
    name: str = ""

    @classmethod
    def at(cls, text: str | Path, lexicons: Path | None = None) -> Folder:
        """DIR or NAME=DIR of the user, which has to be there."""
        name, equals, path = str(text).partition("=")
        if not equals or Path(text).is_dir():
            name, path = "", str(text)
        elif not _NAME.fullmatch(name):
            raise InputError(f"{text} names its data {name!r}; expected letters and digits, as in novels=DIR")
        for folder in (Path(path), lexicons):
            if folder is not None and not folder.is_dir():
                raise InputError(f"{folder} is not a folder; expected one with vector files such as en.vec and es.vec")
        return cls(Path(path), Path(path) if lexicons is None else lexicons, name)

    def inputs(self, direction: str) -> Inputs | Missing:
        """The files of a direction, or the first that is not there."""
        own = self._own(direction)
        found: list[Path] = []
        for lang in languages(direction)[1:]:
            names = [_of(name, lang, suffix) for name in _NAMES for suffix in _SUFFIXES]
            path = _first(self.vectors, names) if own is None else _first(own, names)
            if path is None:
                like = ", ".join(_of(name, lang, ".vec") for name in _NAMES)
                get = f"`qwp data download {lang}` gets them, --data DIR names another folder"
                return Missing(f"no vectors of {lang!r} in {own or self.vectors}", f"a file such as {like}", get)
            found.append(path)
        gold = self.lexicon(direction, GOLD)
        if gold is None:
            return self._missing(direction, GOLD)
        return Inputs(found[0], found[1], gold, self.lexicon(direction, TRAIN))

    def lexicon(self, direction: str, split: str) -> Path | None:
        """The dictionary of a direction to score with, or to learn from."""
        own = self._own(direction)
        return _first(self.lexicons if own is None else own, self._lexicons(direction, split))

    def missing_training(self, direction: str) -> Missing:
        """What a supervised method says where there is nothing to learn from."""
        return self._missing(direction, TRAIN)

    def directions(self) -> list[str]:
        """All directions whose files are there, the two of a pair beside each other."""
        found = sorted({lang for name in _files(self.vectors) for lang in _languages(name)})
        ways = (way for one, other in combinations(found, 2) for way in ((one, other), (other, one)))
        own = sorted(path.name for path in self.vectors.iterdir() if path.is_dir() and path.name.count("-") == 1)
        pairs = dict.fromkeys(["-".join(way) for way in ways] + own)
        return [f"{self.name}:{pair}" if self.name else pair for pair in pairs if isinstance(self.inputs(pair), Inputs)]

    def _missing(self, direction: str, split: str) -> Missing:
        pair = "-".join(languages(direction)[1:])
        kind = "training dictionary" if split == TRAIN else "dictionary"
        own = self._own(direction)
        get = f"`qwp data download {pair}` gets it, --lexicons DIR names another folder"
        where, get = (self.lexicons, get) if own is None else (own, "put it there, what is elsewhere is not taken")
        return Missing(f"no {kind} of {pair} in {where}", f"one of {', '.join(self._lexicons(pair, split))}", get)

    def _own(self, direction: str) -> Path | None:
        """The folder of this direction alone, where there is one: nothing is taken from elsewhere then."""
        path = self.vectors / "-".join(languages(direction)[1:])
        return path if path.is_dir() else None

    def _lexicons(self, direction: str, split: str) -> tuple[str, ...]:
        own = () if self._own(direction) is None else _OF_ONE[split]
        pair = "-".join(languages(direction)[1:])
        return (*own, *(pattern.format(pair=pair) for pattern in _LEXICONS[split]))


@dataclass(frozen=True)
class Data:
    """Folders. What several have without a name is taken from the first."""

    folders: tuple[Folder, ...]

    @classmethod
    def demo(cls) -> Data:
        """What comes with the package."""
        folder = Path(__file__).parents[1] / "data" / "demo"
        return cls((Folder(folder, folder),))

    @classmethod
    def below(cls, *folders: str | Path, lexicons: Path | None = None) -> Data:
        """Folders of the user, DIR or NAME=DIR. lexicons: where the dictionaries are, if not there."""
        return cls(tuple(Folder.at(each, lexicons) for each in folders))

    def folder(self, direction: str) -> Folder:
        """Where a direction is, or should be."""
        name = languages(direction)[0]
        named = [folder for folder in self.folders if folder.name == name]
        found = (folder for folder in named if isinstance(folder.inputs(direction), Inputs))
        return next(found, (named or self.folders)[0])

    def inputs(self, direction: str) -> Inputs | Missing:
        """The files of a direction, or the first that is not there."""
        return self.folder(direction).inputs(direction)

    def directions(self) -> list[str]:
        """All directions whose files are there."""
        return list(dict.fromkeys(direction for folder in self.folders for direction in folder.directions()))


def file_hash(path: Path) -> str:
    """The sha256 of a file; one that has not changed is read once by a process."""
    about = path.stat()
    return _file_hash(path, about.st_size, about.st_mtime_ns)


@cache
def _file_hash(path: Path, _size: int, _changed: int) -> str:
    return file_sha256(path)


def _of(name: str, lang: str, suffix: str) -> str:
    return name.format(lang=lang) + suffix


def _first(folder: Path, names: Iterable[str]) -> Path | None:
    """The first of these files that is there."""
    candidates = (folder / below / name for name in names for below in _FOLDERS)
    return next((path for path in candidates if path.is_file()), None)


def _files(folder: Path) -> Iterator[str]:
    for below in _FOLDERS:
        if (folder / below).is_dir():
            yield from (path.name for path in (folder / below).iterdir())


def _languages(file: str) -> Iterator[str]:
    """The language that the name of a vector file may stand for."""
    for name in reversed(_NAMES):
        before, after = name.split("{lang}")
        for suffix in _SUFFIXES:
            end = after + suffix
            if file.startswith(before) and file.endswith(end):
                lang = file[len(before) : len(file) - len(end)]
                if lang and "." not in lang and "-" not in lang:
                    yield lang


_MOST_WARNINGS = 20
# What a process keeps: so many files at least, and others as long as they take no more memory than this together.
_KEPT_FILES = 4
_KEPT_BYTES = 1 << 30


@dataclass(frozen=True)
class Read:
    """The content of a file: Embeddings or a Lexicon. warnings: of everything that is computed with it."""

    content: Any
    warnings: tuple[str, ...] = ()


Material: TypeAlias = Mapping[str, Read]
"""Contents by name."""


@dataclass(frozen=True)
class Source:
    """A file. reading: the arguments of `qwp.load`, for vectors; None for a dictionary."""

    path: Path
    reading: tuple[tuple[str, Any], ...] | None = None

    @classmethod
    def vectors(cls, path: Path, **reading: Any) -> Source:
        """A file of vectors."""
        return cls(path, tuple(sorted(reading.items())))

    def read(self) -> Read:
        """What is in the file."""
        with warnings_kept() as texts:
            content = Lexicon.load(self.path) if self.reading is None else io.load(self.path, **dict(self.reading))
        return Read(content, tuple(texts))


class Shelf:
    """Contents of files that are kept, because what comes next mostly needs the same; the least recent ones go."""

    def __init__(self, most_bytes: int = _KEPT_BYTES) -> None:
        self._most_bytes = most_bytes
        self._kept: OrderedDict[Source, Read] = OrderedDict()

    def take(self, source: Source, read: Callable[[], Read]) -> Read:
        """What is in a file. read: gets it where it is not kept."""
        if source not in self._kept:
            self._kept[source] = read()
        self._kept.move_to_end(source)
        while len(self._kept) > _KEPT_FILES and sum(map(_size, self._kept.values())) > self._most_bytes:
            self._kept.popitem(last=False)
        return self._kept[source]


def _size(read: Read) -> int:
    """The memory of vectors; that of all else is small beside it."""
    return read.content.vectors.nbytes if isinstance(read.content, Embeddings) else 0


_SHELF = Shelf()


def read_all(sources: Mapping[str, Source]) -> Material:
    """Read files, or take what this process has read before."""
    return {name: _SHELF.take(source, source.read) for name, source in sources.items()}


def warnings_of(material: Material) -> list[str]:
    """What reading warned of, once."""
    return list(dict.fromkeys(text for part in material.values() for text in part.warnings))


@contextmanager
def warnings_kept() -> Iterator[list[str]]:
    """What the library warns of meanwhile."""
    texts: list[str] = []

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            add_warnings(texts, [record.getMessage()])

    handler, logger = Kept(logging.WARNING), logging.getLogger("qwp")
    logger.addHandler(handler)
    try:
        yield texts
    finally:
        logger.removeHandler(handler)


def add_warnings(texts: list[str], more: Iterable[str]) -> None:
    """Add those that are new, until there are enough."""
    for text in more:
        if len(texts) < _MOST_WARNINGS and text not in texts:
            texts.append(text)
