"""Files of a direction: found by name, or missing with what would help."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from qwp.errors import InputError
from qwp.experiments.data import Data, Folder, Inputs, Missing, file_hash, languages


def test_files_are_found_by_their_languages(folder: Path) -> None:
    assert Data.below(folder).inputs("en-es") == Inputs(folder / "en.vec", folder / "es.vec", folder / "en-es.txt")
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
    assert isinstance(found, Inputs)
    assert found.tgt.name == "cc.ru.300.vec.gz"
    assert found.train is not None
    assert found.train.name == "en-ru.0-5000.txt"
    assert data.directions() == ["en-ru"]
    elsewhere = Folder.at(tmp_path / "vectors", tmp_path)
    assert isinstance(elsewhere.inputs("en-ru"), Missing)
    assert elsewhere.lexicon("en-ru", "gold") == found.gold


def test_several_folders_the_first_counts(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(folder, other)
    (other / "es.vec").rename(other / "fr.vec")
    (other / "en-es.txt").rename(other / "en-fr.txt")
    data = Data.below(folder, other)
    assert data.directions() == ["en-es", "es-en", "en-fr"]
    found = data.inputs("en-fr")
    assert isinstance(found, Inputs)
    assert found.src == other / "en.vec"


def test_directions_of_a_folder_with_a_name_have_it_before_them(folder: Path) -> None:
    data = Data.below(folder, f"again={folder}")
    assert data.directions() == ["en-es", "es-en", "again:en-es", "again:es-en"]
    assert data.inputs("again:en-es") == data.inputs("en-es")
    assert languages("again:en-es") == ("again", "en", "es")
    assert languages("en-es") == ("", "en", "es")
    with pytest.raises(InputError, match="names its data 'a b'; expected letters and digits, as in novels=DIR"):
        Data.below(f"a b={folder}")


def test_a_folder_of_one_direction_has_all_that_belongs_to_it(folder: Path) -> None:
    own = folder / "es-en"
    own.mkdir()
    for name in ("es.vec", "en.vec"):
        shutil.copy(folder / name, own)
    (folder / "es-en.0-5000.txt").write_text("x y\n")
    missing = str(Data.below(folder).inputs("es-en"))
    assert missing.startswith(f"no dictionary of es-en in {own}; expected one of lexicon.txt, lexicon.tsv, es-en.5000-")
    assert missing.endswith(": put it there, what is elsewhere is not taken")
    (own / "lexicon.txt").write_text("x y\n")
    # What is to be learnt from elsewhere may hold what is asked here: it is not taken.
    assert Data.below(folder).inputs("es-en") == Inputs(own / "es.vec", own / "en.vec", own / "lexicon.txt")
    (own / "train.txt").write_text("x y\n")
    assert Folder.at(folder).lexicon("es-en", "train") == own / "train.txt"
    assert Data.below(folder).directions() == ["en-es", "es-en"]


def test_what_is_missing_is_named_with_what_gets_it(folder: Path) -> None:
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


def test_the_demo_is_there() -> None:
    assert isinstance(Data.demo().inputs("en-es"), Inputs)


def test_a_hash_follows_the_content(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("one")
    first = file_hash(path)
    path.write_text("three")
    assert file_hash(path) != first
    (tmp_path / "y").write_text("one")
    assert file_hash(tmp_path / "y") == first
