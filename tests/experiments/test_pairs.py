"""Lists of pairs, and pairs as jobs."""

from __future__ import annotations

from pathlib import Path

import pytest

from qwp.errors import InputError
from qwp.experiments.data import DataFile, load_all
from qwp.experiments.jobs import JobDevice
from qwp.experiments.pairs import ListedPair, PairJob, digests, read_pairs
from qwp.results.alignment import Alignment


def test_read_a_list_of_pairs(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("# all\n\nen.vec\twiki.es.vec\nen.vec\tfr.vec\tone\nfr.vec\ten.vec\t\tfr-en.txt\n")
    assert read_pairs(path) == [
        ListedPair(Path("en.vec"), Path("wiki.es.vec"), "en-wiki.es"),
        ListedPair(Path("en.vec"), Path("fr.vec"), "one"),
        ListedPair(Path("fr.vec"), Path("en.vec"), "fr-en", Path("fr-en.txt")),
    ]


def test_invalid_lists_raise(tmp_path: Path) -> None:
    for text, message in (
        ("en.vec es.vec\n", "line 1 has 1 columns, or empty ones; expected SRC<tab>TGT"),
        ("a\t\n", "line 1 has 2 columns, or empty ones"),
        ("a\tb\tc\td\te\n", "line 1 has 5 columns"),
        ("a\tb\nc/a\tc/b\n", "line 2 has the name 'a-b' of an earlier line: rename one of them"),
        ("a\tb\t../x\n", r"line 1 names the result '\.\./x'; expected the name of a folder"),
        ("a\tb\t..\n", r"names the result '\.\.'"),
        ("# nothing\n", "names no pairs; expected lines of SRC<tab>TGT"),
    ):
        path = tmp_path / "pairs.tsv"
        path.write_text(text)
        with pytest.raises(InputError, match=message):
            read_pairs(path)


def test_a_missing_list_raises(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_pairs(tmp_path / "none.tsv")


def test_results_travel_without_vectors_and_are_saved_with_them(folder: Path, tmp_path: Path) -> None:
    sides = [DataFile.vectors(folder / name) for name in ("en.vec", "es.vec")]
    options = {"start": "profiles", "start_words": 100, "steps": 3, "coreset_size": 50, "verdict": "none", "seed": 3}
    job = PairJob(sides[0], sides[1], None, tmp_path / "out", "qwp", options)
    assert job.affinity() == (str(sides[0]), str(sides[1]))
    contents = load_all(job.sources())
    found = job.compute(JobDevice(), contents)
    assert len(found.alignment.src) == 0
    record = job.finish(found, contents)
    assert record["warnings"] == list(found.warnings)
    assert (record["verdict"], record["failed"], record["estimate"]) == ("unjudged", False, None)
    saved = Alignment.load(tmp_path / "out")
    assert len(saved.src) == 200
    assert saved.provenance.seed == 3
    hashes = digests({"src": job.src, "tgt": job.tgt}, {})
    assert saved.provenance.identity().inputs == hashes
