"""Catalogue of public vectors and dictionaries: addresses, sizes, licences, citations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from qwp.errors import InputError

VECTORS, PAIRS = "vectors", "pairs"
# Suffixes of names for parts of a dictionary; a name without suffix is the whole dictionary.
WHOLE, TRAIN, TEST = "", "train", "test"


@dataclass(frozen=True, eq=False)
class Collection:
    """A collection of files.

    Attributes:
        name: prefix of the names of its files, before the colon.
        kind: VECTORS or PAIRS.
        what: description.
        base: address of the server.
        files: path of each part on the server, with {0} for the language or the pair.
        size: size of a file, as text.
        licence: licence of the data.
        cite: publication to cite.
        page: page that lists all files.
        only: available languages or pairs, if known.
        pairs: number of pairs in each part of a dictionary, if known.
    """

    name: str
    kind: str
    what: str
    base: str
    files: Mapping[str, str]
    size: str
    licence: str
    cite: str
    page: str
    only: frozenset[str] | None = None
    pairs: Mapping[str, int] = field(default_factory=dict)


_META = "https://dl.fbaipublicfiles.com/"
_XLING_PAIRS = (
    "de-fi de-fr de-hr de-it de-ru de-tr en-de en-fi en-fr en-hr en-it en-ru en-tr fi-fr fi-hr fi-it fi-ru hr-fr "
    "hr-it hr-ru it-fr ru-fr ru-it tr-fi tr-fr tr-hr tr-it tr-ru"
)

SOURCES = {
    source.name: source
    for source in (
        Collection(
            "wiki",
            VECTORS,
            "fastText vectors of Wikipedia, 294 languages, 300 dimensions",
            _META,
            {WHOLE: "fasttext/vectors-wiki/wiki.{0}.vec"},
            "about 0.5 GB for 200,000 words; the file on the server up to about 6.6 GB (en)",
            "CC BY-SA 3.0",
            "Bojanowski et al., Enriching Word Vectors with Subword Information, TACL 2017",
            "https://fasttext.cc/docs/en/pretrained-vectors.html",
        ),
        Collection(
            "crawl",
            VECTORS,
            "fastText vectors of Common Crawl and Wikipedia, 157 languages, 300 dimensions",
            _META,
            {WHOLE: "fasttext/vectors-crawl/cc.{0}.300.vec.gz"},
            "about 0.45 GB for 200,000 words; the file on the server up to about 1.3 GB (compressed)",
            "CC BY-SA 3.0",
            "Grave et al., Learning Word Vectors for 157 Languages, LREC 2018",
            "https://fasttext.cc/docs/en/crawl-vectors.html",
        ),
        Collection(
            "muse",
            PAIRS,
            "MUSE dictionaries: English and 45 languages both ways, six European ones among each other",
            _META,
            {
                WHOLE: "arrival/dictionaries/{0}.txt",
                TRAIN: "arrival/dictionaries/{0}.0-5000.txt",
                TEST: "arrival/dictionaries/{0}.5000-6500.txt",
            },
            "about 0.05 to 3 MB a file",
            "CC BY-NC 4.0 (not for commercial use)",
            "Conneau et al., Word Translation Without Parallel Data, ICLR 2018",
            "https://github.com/facebookresearch/MUSE",
        ),
        Collection(
            "xling",
            PAIRS,
            "XLING dictionaries: 28 pairs of eight languages, each one way",
            "https://raw.githubusercontent.com/",
            {
                TRAIN: "codogogo/xling-eval/master/bli_datasets/{0}/yacle.train.freq.5k.{0}.tsv",
                TEST: "codogogo/xling-eval/master/bli_datasets/{0}/yacle.test.freq.2k.{0}.tsv",
            },
            "about 0.1 MB",
            "none stated in its repository: ask its authors before passing it on",
            "Glavas et al., How to (Properly) Evaluate Cross-Lingual Word Embeddings, ACL 2019",
            "https://github.com/codogogo/xling-eval",
            frozenset(_XLING_PAIRS.split()),
            {TRAIN: 5000, TEST: 2000},  # section 3 of the paper
        ),
    )
}
_DEFAULTS = {VECTORS: "wiki", PAIRS: "muse"}
_CODE = "[a-z][a-z_]{1,15}"
_NAME = re.compile(rf"(?:(?P<source>[a-z]+):)?(?P<what>{_CODE}(?P<pair>-{_CODE})?)(?:\.(?P<part>{TRAIN}|{TEST}))?")
EXPECTED = "a language (en, crawl:en), a pair (en-es, xling:en-de) or a part of one (en-es.train, en-es.test)"


@dataclass(frozen=True)
class Item:
    """A file of a source. what: the language or the pair; part: WHOLE, TRAIN or TEST."""

    source: Collection
    what: str
    part: str = WHOLE

    @property
    def name(self) -> str:
        """Name of the file, such as "crawl:en"."""
        prefix = "" if self.source.name == _DEFAULTS[self.source.kind] else f"{self.source.name}:"
        return prefix + self.what + (f".{self.part}" if self.part else "")

    @property
    def remote(self) -> str:
        """Path on the server."""
        return self.source.files[self.part].format(self.what)

    @property
    def original(self) -> str:
        """File name on the server."""
        return self.remote.rpartition("/")[2]

    @property
    def pairs(self) -> int | None:
        """Number of pairs, if known."""
        return self.source.pairs.get(self.part)

    @property
    def file(self) -> str:
        """Path in the data folder: vectors are named after their language."""
        return (
            f"{self.source.name}/{self.what}.vec"
            if self.source.kind == VECTORS
            else f"{self.source.name}/{self.original}"
        )

    def url(self, base: str | None = None) -> str:
        """Return the address. base: address of a mirror with the same paths."""
        return (self.source.base if base is None else base.rstrip("/") + "/") + self.remote


def items(name: str) -> list[Item]:
    """Return the files of a name; for a pair all parts of its dictionary, the whole dictionary first."""
    source, what, part = _parsed(name)
    parts = source.files if part is None else (part,)
    return [Item(source, what, each) for each in parts]


def item(name: str) -> Item:
    """Return the file of a name: a language, a whole dictionary or a part of one."""
    source, what, part = _parsed(name)
    if part is None and WHOLE not in source.files:
        parts = " or ".join(f"{name}.{each}" for each in source.files)
        raise InputError(f"{name} has no whole dictionary: expected {parts}")
    return Item(source, what, part or WHOLE)


def item_of(file: str) -> Item | None:
    """Return the item of a path in the data folder; None for another file."""
    for source in SOURCES.values():
        for part in source.files:
            shape = re.escape(Item(source, "{0}", part).file).replace(re.escape("{0}"), f"({_CODE}(?:-{_CODE})?)")
            if found := re.fullmatch(shape, file):
                return Item(source, found[1], part)
    return None


def names_vectors(text: str) -> bool:
    """Return whether a text is the name of vectors in the catalogue."""
    try:
        return item(text).source.kind == VECTORS
    except InputError:
        return False


def _parsed(name: str) -> tuple[Collection, str, str | None]:
    found = _NAME.fullmatch(name)
    if found is None:
        raise InputError(f"received {name!r}, expected {EXPECTED}")
    kind = PAIRS if found["pair"] else VECTORS
    if found["source"] is not None and found["source"] not in SOURCES:
        raise InputError(f"{found['source']} in {name} is not known, expected one of {', '.join(SOURCES)}")
    source = SOURCES[found["source"] or _DEFAULTS[kind]]
    if source.kind != kind or (kind == VECTORS and found["part"]):
        raise InputError(f"{name} is not known: {source.name} has {source.kind}; expected {EXPECTED}")
    if source.only is not None and found["what"] not in source.only:
        raise InputError(_not_among(source, found["what"]))
    return source, found["what"], found["part"]


def _not_among(source: Collection, what: str) -> str:
    assert source.only is not None
    reverse = "-".join(reversed(what.split("-")))
    if reverse in source.only:
        return f"{source.name} has no {what}, but {reverse}: use {source.name}:{reverse} with --reverse"
    return f"{source.name} has no {what}, expected one of {', '.join(sorted(source.only))}"


def checked_base(base: str) -> str:
    """Return the address of a mirror; raise an InputError for an invalid one."""
    try:
        parts = urlsplit(base)
        _ = parts.port
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise InputError(f"received --base-url {base}, expected an address such as https://example.org/mirror")
    return base
