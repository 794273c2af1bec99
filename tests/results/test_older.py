"""Results of qwp 0.1 (tests/data/make_saved.py) and of schema 2 (make_saved_2.py) still load."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from qwp import Alignment, InputError, MultiAlignment
from qwp.results.saved import ALIGNMENT, SCHEMA, SEVERAL, upgraded
from qwp.spaces import io
from tests.cli.conftest import qwp

OLDER = Path(__file__).parents[1] / "data" / "saved-0.1"
SCHEMA_2 = Path(__file__).parent / "data" / "saved-2"
TENSORS = "alignment.safetensors"
EXPECTED: dict[str, dict[str, str]] = json.loads((OLDER / "expected.json").read_text("utf-8"))
"""The best translations that qwp 0.1 found with these results."""
ONE_RESULT = ["pair", "mapped", "several/a", "several/c"]


@pytest.fixture
def older(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Copy all results and make the copy the current folder, to which the saved paths are relative."""
    copy = shutil.copytree(OLDER, tmp_path / "older")
    monkeypatch.chdir(copy)
    return copy


def translated(alignment: Alignment) -> dict[str, str]:
    return {word: best[0].word for word, best in alignment.translate(alignment.src.words, k=1).items()}


@pytest.mark.parametrize("name", ONE_RESULT)
def test_results_of_schema_1_load_and_translate(older: Path, name: str) -> None:
    alignment = Alignment.load(older / name)
    assert alignment.provenance.version == "0.1.0"
    assert (alignment.tgt_map is not None) == (name == "mapped")
    assert alignment.src_side.order is None
    assert translated(alignment) == EXPECTED[name]
    assert qwp("translate", older / name, alignment.src.words[3], "--json").code == 0


@pytest.mark.parametrize("name", ONE_RESULT)
def test_info_shows_schema_1(older: Path, name: str) -> None:
    ran = qwp("info", older / name, "--format", "table")
    assert ran.code == 0
    assert "qwp 0.1.0" in ran.out
    assert qwp("info", older / name, "--json").json["provenance"]["version"] == "0.1.0"


@pytest.mark.parametrize("name", ["pair", "mapped"])
def test_schema_1_is_exported_with_all_words_of_its_file(older: Path, name: str) -> None:
    ran = qwp("export", older / name, "--src-out", "src.vec", "--tgt-out", "tgt.vec", "--json")
    assert ran.code == 0
    assert (ran.json["src"]["words"], ran.json["tgt"]["words"]) == (60, 60)
    alignment = Alignment.load(older / name)
    assert len(alignment.src) == 50
    expected = alignment.transform(io.load("a.vec").vectors)
    np.testing.assert_allclose(io.load("src.vec").vectors, expected, atol=1e-6)


def test_several_languages_of_schema_1_load(older: Path) -> None:
    found = MultiAlignment.load(older / "several")
    assert found.names == ("a", "c", "b")
    assert (found.identity().version, found.identity().hub) == ("0.1.0", "b")
    assert translated(found.pair("a", "c")) == EXPECTED["several a-c"]
    ran = qwp("info", older / "several")
    assert ran.code == 2
    assert "holds several alignments: name one of" in ran.err


@pytest.mark.parametrize("name", ["pair", "mapped"])
def test_schema_1_saved_again_is_the_present_schema(older: Path, name: str) -> None:
    alignment = Alignment.load(older / name)
    (older / name / "notes.txt").write_text("mine")
    alignment.save(older / name)
    assert json.loads((older / name / ALIGNMENT).read_text())["schema"] == SCHEMA
    left = sorted(path.name for path in (older / name).iterdir() if not path.name.startswith("parts-"))
    assert left == [ALIGNMENT, "notes.txt"]
    again = Alignment.load(older / name)
    np.testing.assert_array_equal(again.src_map, alignment.src_map)
    assert again.provenance == alignment.provenance


def test_several_languages_of_schema_1_saved_again(older: Path) -> None:
    found = MultiAlignment.load(older / "several")
    found.save(older / "several")
    assert json.loads((older / "several" / SEVERAL).read_text())["schema"] == SCHEMA
    assert found.identity().difference(MultiAlignment.load(older / "several").identity()) is None


# --------------------------------------------------------------------------- schema 2: other names


def test_a_result_of_schema_2_loads_under_the_present_names(tmp_path: Path) -> None:
    expected = json.loads((SCHEMA_2 / "expected.json").read_text("utf-8"))
    alignment = Alignment.load(shutil.copytree(SCHEMA_2 / "pair", tmp_path / "pair"))
    assert translated(alignment) == expected["translations"]
    added: dict[str, object] = dict.fromkeys(
        ("null_exceedances", "measured", "p_value", "statistic", "interval", "null_data")
    )
    assert alignment.quality.to_dict() == {
        **expected["quality"],
        **added,
        "outside_calibration": [],
        "counterparts": {**expected["quality"]["counterparts"], "few": False},
    }
    assert alignment.quality.null_runs == 2
    provenance = alignment.provenance
    assert provenance.initializer == "profiles"
    assert all(set(each) == {"initializer", "order", "score", "rescore"} for each in provenance.candidates)
    assert provenance.candidates[0]["rescore"] == pytest.approx(1.4069, abs=1e-4)
    assert list(provenance.seconds) == ["prepare", "initialize", "coresets", "loop", "refine", "verdict"]
    first = alignment.history[0]
    assert (first["stage"], first["initializer"]) == ("initialize", "profiles")


def test_several_languages_of_schema_2_load() -> None:
    found = MultiAlignment.load(SCHEMA_2 / "several")
    assert found.names == ("a", "b")
    assert found.alignments["a"].quality.null_runs >= 1


def test_a_result_of_schema_2_saved_again_loads_unchanged(tmp_path: Path) -> None:
    folder = shutil.copytree(SCHEMA_2 / "pair", tmp_path / "pair")
    before = Alignment.load(folder)
    before.save(folder)
    index = json.loads((folder / ALIGNMENT).read_text())
    assert (index["schema"], "held_out_random" in index["quality"]) == (SCHEMA, False)
    assert Alignment.load(folder).to_dict() == before.to_dict()


@pytest.mark.parametrize("value", [None, 3, [], {}, [None], {"candidates": 3, "seconds": []}])
def test_upgraded_leaves_other_types_unchanged(value: object) -> None:
    content = {"provenance": value, "quality": value, "history": value}
    assert upgraded(content) == content
    assert upgraded({}) == {}


# --------------------------------------------------------------------------- what can be noticed without hashes


def edit_index(folder: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    about = json.loads((folder / ALIGNMENT).read_text())
    edit(about)
    (folder / ALIGNMENT).write_text(json.dumps(about))


def reverse_words(folder: Path) -> None:
    about = json.loads((folder / "src.json").read_text())
    (folder / "src.json").write_text(json.dumps({**about, "words": about["words"][::-1]}, indent=1))


def edit_tensors(folder: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    tensors = load_file(folder / TENSORS)
    edit(tensors)
    save_file(tensors, folder / TENSORS)


def nan(tensors: dict[str, Any]) -> None:
    tensors["src_map"][0, 0] = np.nan


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / TENSORS).unlink(), "alignment.safetensors is missing"),
        (lambda f: (f / TENSORS).write_bytes(b"junk"), "alignment.safetensors cannot be read"),
        (lambda f: (f / "tgt.json").unlink(), "tgt.json is missing"),
        (lambda f: (f / ALIGNMENT).write_text("{"), "is damaged"),
        (lambda f: edit_tensors(f, nan), "src_map holds NaN"),
        (lambda f: edit_tensors(f, lambda t: t.pop("src_map")), "src_map is missing"),
        (lambda f: edit_tensors(f, lambda t: t.update(tgt_map=t["src_map"][:3])), "tgt_map is float32 of shape"),
        (reverse_words, "are not those that were aligned"),
        (lambda f: shutil.copy(OLDER / "several/c/src.safetensors", f), "src"),
        (lambda f: io.save(io.load(f / "src.safetensors").head(10), f / "src.safetensors"), "holds 10 x 6 vectors"),
        (lambda f: edit_index(f, lambda a: a["provenance"].update(seed="x")), "provenance.seed is 'x'"),
        (lambda f: edit_index(f, lambda a: a["quality"].pop("fitted")), "quality.fitted is missing"),
        (lambda f: edit_index(f, lambda a: a["normalization"].update(src=["whiten"])), "'whiten'"),
        (lambda f: edit_index(f, lambda a: a["provenance"]["src"].update(sha256="0" * 64)), "are not those that were"),
        (lambda f: edit_index(f, lambda a: a.update(schema=2)), "was edited"),
    ],
)
def test_damage_is_explained(older: Path, damage: Callable[[Path], object], message: str) -> None:
    damage(older / "pair")
    with pytest.raises(InputError, match=message):
        Alignment.load(older / "pair")
    assert qwp("info", older / "pair").code in (0, 2)


def test_vectors_that_were_float64_in_python_cannot_be_compared(older: Path) -> None:
    # They were saved in float32, so their hash differs.
    def of_an_array(about: dict[str, Any]) -> None:
        about["provenance"]["src"].update(sha256="0" * 64, path=None)

    edit_index(older / "pair", of_an_array)
    Alignment.load(older / "pair")


def test_first_version_of_schema_1_is_read(older: Path) -> None:
    def first_version(about: dict[str, Any]) -> None:
        for name in ("supervision", "order", "seconds"):
            del about["provenance"][name]
        del about["provenance"]["tgt"]["complete"]

    edit_index(older / "pair", first_version)
    assert Alignment.load(older / "pair").provenance.order == "given"
    assert qwp("info", older / "pair").code == 0


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda a: a["provenance"].update(seed=7), "the languages are of different runs: seed was 7, now 0"),
        (lambda a: a["provenance"]["config"].update(steps=9), "the languages are of different runs: config.steps"),
        (lambda a: a["provenance"]["tgt"].update(sha256="0" * 64, path=None), "not aligned onto the same vectors"),
    ],
)
def test_languages_of_different_runs_are_refused(
    older: Path, edit: Callable[[dict[str, Any]], None], message: str
) -> None:
    edit_index(older / "several" / "c", edit)
    with pytest.raises(InputError, match=message):
        MultiAlignment.load(older / "several")
