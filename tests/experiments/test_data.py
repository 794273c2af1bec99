"""Files of a direction: found by name, or missing with a hint."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import numpy as np
import pytest

from qwp.errors import InputError
from qwp.experiments.data import (
    Data,
    DataFile,
    DataFolder,
    DirectionFiles,
    FileCache,
    Loaded,
    Missing,
    add_warnings,
    collected_warnings,
    file_hash,
    languages,
    load_all,
    warnings_of,
)
from qwp.spaces.embeddings import Embeddings


def test_files_are_found_by_their_languages(folder: Path) -> None:
    assert Data.below(folder).inputs("en-es") == DirectionFiles(
        folder / "en.vec", folder / "es.vec", folder / "en-es.txt"
    )
    assert Data.below(folder).directions() == ["en-es", "es-en"]


def test_other_names_and_folders(tmp_path: Path) -> None:
    (tmp_path / "muse").mkdir()
    (tmp_path / "vectors").mkdir()
    for name in (
        "wiki.en.vec",
        "cc.ru.300.vec.gz",
        "muse/en-ru.5000-6500.txt",
        "muse/en-ru.0-5000.txt",
        "vectors/x.md",
    ):
        (tmp_path / name).write_text("x")
    data = Data.below(tmp_path)
    found = data.inputs("en-ru")
    assert isinstance(found, DirectionFiles)
    assert found.tgt.name == "cc.ru.300.vec.gz"
    assert found.train is not None
    assert found.train.name == "en-ru.0-5000.txt"
    assert data.directions() == ["en-ru"]
    elsewhere = DataFolder.at(tmp_path / "vectors", tmp_path)
    assert isinstance(elsewhere.inputs("en-ru"), Missing)
    assert elsewhere.lexicon("en-ru", "gold") == found.gold


def test_the_first_of_several_folders_wins(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(folder, other)
    (other / "es.vec").rename(other / "fr.vec")
    (other / "en-es.txt").rename(other / "en-fr.txt")
    data = Data.below(folder, other)
    assert data.directions() == ["en-es", "es-en", "en-fr"]
    found = data.inputs("en-fr")
    assert isinstance(found, DirectionFiles)
    assert found.src == other / "en.vec"


def test_directions_of_a_named_folder_have_its_prefix(folder: Path) -> None:
    data = Data.below(folder, f"again={folder}")
    assert data.directions() == ["en-es", "es-en", "again:en-es", "again:es-en"]
    assert data.inputs("again:en-es") == data.inputs("en-es")
    assert languages("again:en-es") == ("again", "en", "es")
    assert languages("en-es") == ("", "en", "es")
    with pytest.raises(InputError, match="names its data 'a b'; expected letters and digits, as in novels=DIR"):
        Data.below(f"a b={folder}")


def test_a_folder_of_one_direction_excludes_others(folder: Path) -> None:
    own = folder / "es-en"
    own.mkdir()
    for name in ("es.vec", "en.vec"):
        shutil.copy(folder / name, own)
    (folder / "es-en.0-5000.txt").write_text("x y\n")
    missing = str(Data.below(folder).inputs("es-en"))
    assert missing.startswith(f"no dictionary of es-en in {own}; expected one of lexicon.txt, lexicon.tsv, es-en.5000-")
    assert missing.endswith(": put it there, because no other folder is searched for this direction")
    (own / "lexicon.txt").write_text("x y\n")
    # A training dictionary from another folder may contain the test words, so it is not used.
    assert Data.below(folder).inputs("es-en") == DirectionFiles(own / "es.vec", own / "en.vec", own / "lexicon.txt")
    (own / "train.txt").write_text("x y\n")
    assert DataFolder.at(folder).lexicon("es-en", "train") == own / "train.txt"
    assert Data.below(folder).directions() == ["en-es", "es-en"]


def test_missing_files_are_explained(folder: Path) -> None:
    data = Data.below(folder)
    assert str(data.inputs("en-fr")) == (
        f"no vectors of 'fr' in {folder}; expected a file such as fr.vec, wiki.fr.vec, cc.fr.300.vec: "
        "`qwp data download fr` gets them, --data DIR names another folder"
    )
    (folder / "en-es.txt").unlink()
    assert str(data.inputs("en-es")).startswith(f"no dictionary of en-es in {folder}; expected one of en-es.5000-6500.")
    assert "`qwp data download en-es` gets it" in str(data.inputs("en-es"))
    assert "no training dictionary of en-es" in str(data.folder("en-es").missing_training("en-es"))
    with pytest.raises(InputError, match="none is not a folder; expected one with vector files"):
        Data.below(folder / "none")


def test_the_demo_has_all_files() -> None:
    assert isinstance(Data.demo().inputs("en-es"), DirectionFiles)


def test_a_hash_follows_the_content(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("one")
    first = file_hash(path)
    path.write_text("three")
    assert file_hash(path) != first
    (tmp_path / "y").write_text("one")
    assert file_hash(tmp_path / "y") == first


def test_every_user_of_a_file_gets_its_warnings(folder: Path) -> None:
    (folder / "en.vec").write_text("5 2\n" + "".join(f"s{i} {i} 1\n" for i in range(4)))
    (folder / "en-es.txt").write_text("s1 t1\nalone\n")
    lexicons = {"gold": DataFile(folder / "en-es.txt"), "train": DataFile(folder / "en-es.txt")}
    first, second = (load_all({"src": DataFile.vectors(folder / "en.vec"), **lexicons}) for _ in range(2))
    assert first["src"].content is second["src"].content
    vectors, lexicon = warnings_of(first)  # that of the dictionary only once
    assert warnings_of(second) == [vectors, lexicon]
    assert "en.vec" in vectors
    assert "1 lines skipped" in lexicon


def test_max_vocab_truncates_vectors(folder: Path) -> None:
    assert len(DataFile.vectors(folder / "en.vec", max_vocab=10).load().content) == 10


def test_collected_warnings_are_distinct_and_limited() -> None:
    with collected_warnings() as texts:
        logging.getLogger("qwp.some").warning("number %d", 1)
        logging.getLogger("qwp.some").warning("number %d", 1)
        logging.getLogger("qwp.some").info("nothing")
    logging.getLogger("qwp.some").warning("later")
    assert texts == ["number 1"]
    add_warnings(texts, [str(i) for i in range(100)])
    assert len(texts) == 20


def test_the_file_cache_is_bounded() -> None:
    loads: list[str] = []

    def get(cache: FileCache, name: str) -> Loaded:
        def load() -> Loaded:
            loads.append(name)
            return Loaded(Embeddings(["w"], np.ones((1, 100), np.float32)))  # 400 bytes

        return cache.load(DataFile.vectors(Path(name)), load)

    for max_bytes, then, again in ((10_000, "cdefab", ""), (2000, "cdefab", "ab"), (0, "abcdef", "abcdef")):
        cache = FileCache(max_bytes, 4)
        for name in "abcdef":
            get(cache, name)
        loads.clear()
        for name in then:
            get(cache, name)
        assert "".join(sorted(loads)) == again
