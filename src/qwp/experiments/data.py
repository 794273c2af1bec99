"""Where the vectors and dictionaries of an experiment are: files named by their languages in a folder, or the demo."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path

from qwp.errors import InputError
from qwp.spaces.io.files import file_sha256

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
class Data:
    """A folder of vectors and one of dictionaries, which may be the same."""

    vectors: Path
    lexicons: Path

    @classmethod
    def demo(cls) -> Data:
        """What comes with the package."""
        folder = Path(__file__).parents[1] / "data" / "demo"
        return cls(folder, folder)

    @classmethod
    def below(cls, folder: Path, lexicons: Path | None = None) -> Data:
        """Files in a folder of the user, which has to be there."""
        for path in (folder, lexicons):
            if path is not None and not path.is_dir():
                raise InputError(f"{path} is not a folder; expected one with vector files such as en.vec and es.vec")
        return cls(folder, folder if lexicons is None else lexicons)

    def inputs(self, direction: str) -> Inputs | Missing:
        """The files of a direction, or the first that is not there."""
        found: list[Path] = []
        for lang in direction.split("-"):
            path = _first(self.vectors, (_of(name, lang, suffix) for name in _NAMES for suffix in _SUFFIXES))
            if path is None:
                names = ", ".join(_of(name, lang, ".vec") for name in _NAMES)
                get = f"`qwp data download {lang}` gets them, --data DIR names another folder"
                return Missing(f"no vectors of {lang!r} in {self.vectors}", f"a file such as {names}", get)
            found.append(path)
        gold = self.lexicon(direction, GOLD)
        if gold is None:
            names = ", ".join(pattern.format(pair=direction) for pattern in _LEXICONS[GOLD])
            get = f"`qwp data download {direction}` gets it, --lexicons DIR names another folder"
            return Missing(f"no dictionary of {direction} in {self.lexicons}", f"one of {names}", get)
        return Inputs(found[0], found[1], gold, self.lexicon(direction, TRAIN))

    def lexicon(self, direction: str, split: str) -> Path | None:
        """The dictionary of a direction to score with, or to learn from."""
        return _first(self.lexicons, (pattern.format(pair=direction) for pattern in _LEXICONS[split]))

    def directions(self) -> list[str]:
        """All directions whose files are there, the two of a pair beside each other."""
        languages = sorted({lang for name in _files(self.vectors) for lang in _languages(name)})
        ways = (way for one, other in combinations(languages, 2) for way in ((one, other), (other, one)))
        pairs = ("-".join(way) for way in ways)
        return [pair for pair in pairs if isinstance(self.inputs(pair), Inputs)]


def missing_training(direction: str, data: Data) -> Missing:
    """What a supervised method says where there is nothing to learn from."""
    names = ", ".join(pattern.format(pair=direction) for pattern in _LEXICONS[TRAIN])
    fix = f"`qwp data download {direction}` gets it, --lexicons DIR names another folder"
    return Missing(f"no training dictionary of {direction} in {data.lexicons}", f"one of {names}", fix)


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
