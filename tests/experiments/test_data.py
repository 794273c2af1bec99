"""Files of a direction: found by name, or missing with what would help."""

from __future__ import annotations

from pathlib import Path

import pytest

from qwp.errors import InputError
from qwp.experiments.data import Data, Inputs, Missing, file_hash, missing_training


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
    elsewhere = Data.below(tmp_path / "vectors", tmp_path)
    assert isinstance(elsewhere.inputs("en-ru"), Missing)
    assert elsewhere.lexicon("en-ru", "gold") == found.gold


def test_what_is_missing_is_named_with_what_gets_it(folder: Path) -> None:
    data = Data.below(folder)
    assert str(data.inputs("en-fr")) == (
        f"no vectors of 'fr' in {folder}; expected a file such as fr.vec, wiki.fr.vec, cc.fr.300.vec: "
        "`qwp data download fr` gets them, --data DIR names another folder"
    )
    (folder / "en-es.txt").unlink()
    assert str(data.inputs("en-es")).startswith(f"no dictionary of en-es in {folder}; expected one of en-es.5000-6500.")
    assert "`qwp data download en-es` gets it" in str(data.inputs("en-es"))
    assert "no training dictionary of en-es" in str(missing_training("en-es", data))
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
