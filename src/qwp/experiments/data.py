"""The data of experiments: files named after their languages in a folder, or the demo, and a cache of files."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any, TypeAlias

from qwp.arrays import LRUCache
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
# Subfolders in which files are looked for.
_FOLDERS = (".", "vectors", "wiki", "fasttext", "muse", "dictionaries")
# Names in a folder of one direction, such as es-en.
_OF_ONE = {GOLD: ("lexicon.txt", "lexicon.tsv"), TRAIN: ("train.txt", "train.tsv")}
_NAME = re.compile(r"\w+")


def languages(direction: str) -> tuple[str, str, str]:
    """Split a direction such as zhang:es-en into the name of the data ("" for none) and the two languages."""
    name, _, ways = direction.rpartition(":")
    src, _, tgt = ways.partition("-")
    return name, src, tgt


@dataclass(frozen=True)
class DirectionFiles:
    """The files of one direction. train: the dictionary for supervised methods, if there is one."""

    src: Path
    tgt: Path
    gold: Path
    train: Path | None = None


@dataclass(frozen=True)
class Missing:
    """A missing file, which prevents a direction from being run."""

    what: str
    expected: str
    fix: str

    def __str__(self) -> str:
        return f"{self.what}; expected {self.expected}: {self.fix}"


@dataclass(frozen=True)
class DataFolder:
    """A folder of vectors and a folder of dictionaries, which may be the same.

    A subfolder named after a direction, such as es-en, holds all vectors and dictionaries of that direction.
    `name` is the prefix of the directions, "" for none.
    """

    vectors: Path
    lexicons: Path
    name: str = ""

    @classmethod
    def at(cls, text: str | Path, lexicons: Path | None = None) -> DataFolder:
        """Parse DIR or NAME=DIR; the folder must exist."""
        name, equals, path = str(text).partition("=")
        if not equals or Path(text).is_dir():
            name, path = "", str(text)
        elif not _NAME.fullmatch(name):
            raise InputError(f"{text} names its data {name!r}; expected letters and digits, as in novels=DIR")
        for folder in (Path(path), lexicons):
            if folder is not None and not folder.is_dir():
                raise InputError(f"{folder} is not a folder; expected one with vector files such as en.vec and es.vec")
        return cls(Path(path), Path(path) if lexicons is None else lexicons, name)

    def inputs(self, direction: str) -> DirectionFiles | Missing:
        """Return the files of a direction, or the first one that is missing."""
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
        return DirectionFiles(found[0], found[1], gold, self.lexicon(direction, TRAIN))

    def lexicon(self, direction: str, split: str) -> Path | None:
        """Return the dictionary of a direction for evaluation (GOLD) or training (TRAIN), if there is one."""
        own = self._own(direction)
        return _first(self.lexicons if own is None else own, self._lexicons(direction, split))

    def missing_training(self, direction: str) -> Missing:
        """Return the error for a supervised method without a training dictionary."""
        return self._missing(direction, TRAIN)

    def directions(self) -> list[str]:
        """Return all directions whose files exist, with the two directions of a pair as neighbours."""
        found = sorted({lang for name in _files(self.vectors) for lang in _languages(name)})
        ways = (way for one, other in combinations(found, 2) for way in ((one, other), (other, one)))
        own = sorted(path.name for path in self.vectors.iterdir() if path.is_dir() and path.name.count("-") == 1)
        pairs = dict.fromkeys(["-".join(way) for way in ways] + own)
        return [
            f"{self.name}:{pair}" if self.name else pair
            for pair in pairs
            if isinstance(self.inputs(pair), DirectionFiles)
        ]

    def _missing(self, direction: str, split: str) -> Missing:
        pair = "-".join(languages(direction)[1:])
        kind = "training dictionary" if split == TRAIN else "dictionary"
        own = self._own(direction)
        if own is None:
            get = f"`qwp data download {pair}` gets it, --lexicons DIR names another folder"
        else:
            get = "put it there, because no other folder is searched for this direction"
        return Missing(
            f"no {kind} of {pair} in {own or self.lexicons}", f"one of {', '.join(self._lexicons(pair, split))}", get
        )

    def _own(self, direction: str) -> Path | None:
        """Return the folder of this direction, if there is one; then no other folder is searched."""
        path = self.vectors / "-".join(languages(direction)[1:])
        return path if path.is_dir() else None

    def _lexicons(self, direction: str, split: str) -> tuple[str, ...]:
        own = () if self._own(direction) is None else _OF_ONE[split]
        pair = "-".join(languages(direction)[1:])
        return (*own, *(pattern.format(pair=pair) for pattern in _LEXICONS[split]))


@dataclass(frozen=True)
class Data:
    """Folders of data. If several have the same direction without a name, the first one is used."""

    folders: tuple[DataFolder, ...]

    @classmethod
    def demo(cls) -> Data:
        """Return the data of the package."""
        folder = Path(__file__).parents[1] / "data" / "demo"
        return cls((DataFolder(folder, folder),))

    @classmethod
    def below(cls, *folders: str | Path, lexicons: Path | None = None) -> Data:
        """Return folders of the user, DIR or NAME=DIR. lexicons: the folder of the dictionaries, if another."""
        return cls(tuple(DataFolder.at(each, lexicons) for each in folders))

    def folder(self, direction: str) -> DataFolder:
        """Return the folder of a direction, or the one where it is expected."""
        name = languages(direction)[0]
        named = [folder for folder in self.folders if folder.name == name]
        found = (folder for folder in named if isinstance(folder.inputs(direction), DirectionFiles))
        return next(found, (named or self.folders)[0])

    def inputs(self, direction: str) -> DirectionFiles | Missing:
        """Return the files of a direction, or the first one that is missing."""
        return self.folder(direction).inputs(direction)

    def directions(self) -> list[str]:
        """Return all directions whose files exist."""
        return list(dict.fromkeys(direction for folder in self.folders for direction in folder.directions()))


def file_hash(path: Path) -> str:
    """Return the sha256 of a file. A process reads a file again only if it has changed."""
    about = path.stat()
    return _file_hash(path, about.st_size, about.st_mtime_ns)


@cache
def _file_hash(path: Path, _size: int, _changed: int) -> str:
    return file_sha256(path)


def _of(name: str, lang: str, suffix: str) -> str:
    return name.format(lang=lang) + suffix


def _first(folder: Path, names: Iterable[str]) -> Path | None:
    """Return the first of these files that exists."""
    candidates = (folder / below / name for name in names for below in _FOLDERS)
    return next((path for path in candidates if path.is_file()), None)


def _files(folder: Path) -> Iterator[str]:
    for below in _FOLDERS:
        if (folder / below).is_dir():
            yield from (path.name for path in (folder / below).iterdir())


def _languages(file: str) -> Iterator[str]:
    """Yield the languages that the name of a vector file may stand for."""
    for name in reversed(_NAMES):
        before, after = name.split("{lang}")
        for suffix in _SUFFIXES:
            end = after + suffix
            if file.startswith(before) and file.endswith(end):
                lang = file[len(before) : len(file) - len(end)]
                if lang and "." not in lang and "-" not in lang:
                    yield lang


_MAX_WARNINGS = 20


@dataclass(frozen=True)
class Loaded:
    """The content of a file, Embeddings or a Lexicon, with the warnings of reading it."""

    content: Any
    warnings: tuple[str, ...] = ()


Contents: TypeAlias = Mapping[str, Loaded]
"""Contents of files by name."""


@dataclass(frozen=True)
class DataFile:
    """A file. options: arguments of `qwp.load` for vectors; None for a dictionary."""

    path: Path
    options: tuple[tuple[str, Any], ...] | None = None

    @classmethod
    def vectors(cls, path: Path, **options: Any) -> DataFile:
        """Return a file of vectors, which `qwp.load` reads with these options."""
        return cls(path, tuple(sorted(options.items())))

    def load(self) -> Loaded:
        """Read the file."""
        with collected_warnings() as texts:
            content = Lexicon.load(self.path) if self.options is None else io.load(self.path, **dict(self.options))
        return Loaded(content, tuple(texts))


class FileCache(LRUCache[DataFile, Loaded]):
    """A cache of files, because the next job usually needs the same ones.

    By default both sides and two dictionaries of a direction stay, and further files up to 1 GiB of vectors.
    """

    def __init__(self, max_bytes: int = 1 << 30, min_items: int = 4) -> None:
        super().__init__(max_bytes, _vector_bytes, min_items)

    def load(self, source: DataFile, load: Callable[[], Loaded]) -> Loaded:
        """Return a file, and call `load` if it is not cached."""
        loaded = self.get(source)
        if loaded is None:
            loaded = self.add(source, load())
        return loaded


def _vector_bytes(loaded: Loaded) -> int:
    """Return the memory of vectors; dictionaries are small in comparison."""
    return loaded.content.vectors.nbytes if isinstance(loaded.content, Embeddings) else 0


_CACHE = FileCache()


def load_all(sources: Mapping[str, DataFile]) -> Contents:
    """Load files, or take them from the cache of this process."""
    return {name: _CACHE.load(source, source.load) for name, source in sources.items()}


def warnings_of(contents: Contents) -> list[str]:
    """Return the distinct warnings of reading the files."""
    return list(dict.fromkeys(text for part in contents.values() for text in part.warnings))


@contextmanager
def collected_warnings() -> Iterator[list[str]]:
    """Collect the warnings that the library logs in the meantime."""
    texts: list[str] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            add_warnings(texts, [record.getMessage()])

    handler, logger = Collector(logging.WARNING), logging.getLogger("qwp")
    logger.addHandler(handler)
    try:
        yield texts
    finally:
        logger.removeHandler(handler)


def add_warnings(texts: list[str], more: Iterable[str]) -> None:
    """Add new warnings up to a limit."""
    for text in more:
        if len(texts) < _MAX_WARNINGS and text not in texts:
            texts.append(text)
