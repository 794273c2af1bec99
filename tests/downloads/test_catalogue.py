from __future__ import annotations

import pytest

from qwp.downloads.catalogue import SOURCES, checked_base, item, item_of, items, names_vectors
from qwp.errors import InputError


def test_names_and_where_they_lead() -> None:
    cases: list[tuple[str, str, str]] = [
        ("en", "https://dl.fbaipublicfiles.com/fasttext/vectors-wiki/wiki.en.vec", "wiki/en.vec"),
        (
            "zh_min_nan",
            "https://dl.fbaipublicfiles.com/fasttext/vectors-wiki/wiki.zh_min_nan.vec",
            "wiki/zh_min_nan.vec",
        ),
        ("crawl:es", "https://dl.fbaipublicfiles.com/fasttext/vectors-crawl/cc.es.300.vec.gz", "crawl/es.vec"),
        ("en-es", "https://dl.fbaipublicfiles.com/arrival/dictionaries/en-es.txt", "muse/en-es.txt"),
        (
            "en-es.train",
            "https://dl.fbaipublicfiles.com/arrival/dictionaries/en-es.0-5000.txt",
            "muse/en-es.0-5000.txt",
        ),
        (
            "en-es.test",
            "https://dl.fbaipublicfiles.com/arrival/dictionaries/en-es.5000-6500.txt",
            "muse/en-es.5000-6500.txt",
        ),
        (
            "xling:en-de.test",
            "https://raw.githubusercontent.com/codogogo/xling-eval/master/bli_datasets/en-de/"
            "yacle.test.freq.2k.en-de.tsv",
            "xling/yacle.test.freq.2k.en-de.tsv",
        ),
    ]
    for name, url, file in cases:
        found = item(name)
        assert (found.name, found.url(), found.file) == (name, url, file)
        assert item_of(file) == found
        assert found.url("http://mirror/x/") == f"http://mirror/x/{found.remote}" == found.url("http://mirror/x")


def test_a_default_source_may_be_named() -> None:
    assert item("wiki:en") == item("en")
    assert item("muse:en-es.test") == item("en-es.test")


def test_a_pair_is_all_parts_of_its_dictionary() -> None:
    assert [each.name for each in items("en-es")] == ["en-es", "en-es.train", "en-es.test"]
    assert [each.name for each in items("xling:en-de")] == ["xling:en-de.train", "xling:en-de.test"]
    assert [each.name for each in items("en-es.test")] == ["en-es.test"]
    assert [each.name for each in items("en")] == ["en"]


def test_other_names_are_refused() -> None:
    cases: list[tuple[str, str]] = [
        ("../x", "expected a language"),
        ("EN", "expected a language"),
        ("en.vec", "expected a language"),
        ("e", "expected a language"),
        ("", "expected a language"),
        ("en-es.full", "expected a language"),
        ("glove:en", "glove in glove:en is not known, expected one of wiki, crawl, muse, xling"),
        ("wiki:en-es", "wiki has vectors"),
        ("muse:en", "muse has pairs"),
        ("en.test", "wiki has vectors"),
        ("xling:de-en.test", "xling has no de-en, but en-de: use xling:en-de with --reverse"),
        ("xling:en-es.test", "xling has no en-es, expected one of de-fi, "),
        ("xling:en-de", "has no whole dictionary: expected xling:en-de.train or xling:en-de.test"),
    ]
    for name, message in cases:
        with pytest.raises(InputError) as caught:
            item(name)
        assert message in str(caught.value)


def test_names_of_vectors() -> None:
    assert names_vectors("en")
    assert names_vectors("crawl:en")
    for text in ("en.vec", "en-es", "xling:en-de", "a/b", "C:en", ""):
        assert not names_vectors(text)


def test_files_of_other_names_are_of_no_source() -> None:
    for file in ("wiki/en.vec.json", "wiki/en.vec.part", "muse/en.txt.json", "other/en.vec", "wiki/EN.vec"):
        assert item_of(file) is None


def test_every_source_says_what_it_is() -> None:
    for source in SOURCES.values():
        assert all((source.what, source.size, source.licence, source.cite))
        assert source.base.startswith("https://")
        assert source.base.endswith("/")
        assert source.page.startswith("https://")
    only = SOURCES["xling"].only
    assert only is not None
    assert len(only) == 28
    assert not any("-".join(reversed(pair.split("-"))) in only for pair in only)


def test_addresses_of_mirrors() -> None:
    cases: list[str] = ["ftp://x/", "x", "http://", "file:///etc", "http://a:b/", "http://x/?a=b", ""]
    for base in cases:
        assert checked_base("http://127.0.0.1:80/x") == "http://127.0.0.1:80/x"
        with pytest.raises(InputError, match="expected an address such as"):
            checked_base(base)
