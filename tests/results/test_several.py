"""Results for several languages: pairs through the hub, their verdicts, saving and loading."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qwp import Embeddings, InputError
from qwp.judging.verdict import judge
from qwp.maps.procrustes import Maps
from qwp.results.alignment import Alignment
from qwp.results.provenance import InputRecord, Provenance
from qwp.results.saved import ALIGNMENT, SEVERAL
from qwp.results.schema import digest
from qwp.results.several import MultiAlignment, check_language
from qwp.results.sides import AlignedSide
from qwp.spaces import normalization
from tests.problems import Array, rotation, space
from tests.results.test_saved import failing

N, DIM = 250, 8


def record(words: Embeddings) -> InputRecord:
    return InputRecord(None, words.sha256(), len(words), words.dim)


def onto_hub(src: Embeddings, tgt: Embeddings, w: Array, seed: int = 3) -> Alignment:
    """Return an alignment with a given map and the verdict of a fit."""
    (src_norm, x), (tgt_norm, y) = (normalization.fit(words.vectors) for words in (src, tgt))
    return Alignment(
        AlignedSide(src, w.astype("f4"), src_norm),
        AlignedSide(tgt, None, tgt_norm),
        quality=judge(x, y, Maps(w.astype("f4")), seed=seed),
        provenance=Provenance("0", "multi", {"csls_k": 10}, seed, "numpy", record(src), record(tgt), {"loop": 1.0}),
        history=[{"stage": "loop", "step": 1}],
    )


@pytest.fixture(scope="module")
def languages() -> dict[str, Embeddings]:
    """Return rotated, shuffled copies of one space: word i of language x is "x<i>"."""
    base, found = space(N, DIM, 0), {}
    for number, name in enumerate(("de", "fr", "en")):
        order = np.random.default_rng(number).permutation(N)
        vectors = base[order] @ rotation(DIM, number) + 0.1 * number
        found[name] = Embeddings([f"{name}{i}" for i in order], vectors.astype("f4"))
    return found


@pytest.fixture(scope="module")
def multi(languages: dict[str, Embeddings]) -> MultiAlignment:
    """Return two languages on a hub with their true maps; read-only."""
    en = languages["en"]
    spokes = {
        name: onto_hub(languages[name], en, rotation(DIM, number).T @ rotation(DIM, 2))
        for number, name in enumerate(("de", "fr"))
    }
    return MultiAlignment("en", spokes)


def p1(alignment: Alignment, src: str, tgt: str) -> float:
    # Nearest neighbours, because CSLS may prefer another word of a dense cluster even to an exact copy.
    found = alignment.translate([f"{src}{i}" for i in range(N)], k=1, retrieval="nn")
    return float(np.mean([best[0].word == f"{tgt}{word[2:]}" for word, best in found.items()]))


# --------------------------------------------------------------------------- pairs


def test_names_have_the_hub_last(multi: MultiAlignment) -> None:
    assert multi.names == ("de", "fr", "en")


def test_repr(multi: MultiAlignment) -> None:
    verdicts = [multi.alignments[name].quality.verdict for name in ("de", "fr")]
    assert repr(multi) == f"MultiAlignment(de {verdicts[0]}, fr {verdicts[1]} -> en)"


def test_every_pair_translates(multi: MultiAlignment) -> None:
    for src, tgt in permutations(multi.names, 2):
        alignment = multi.pair(src, tgt)
        assert p1(alignment, src, tgt) == 1.0
        assert alignment.quality.verdict == "succeeded"


def test_pair_with_the_hub_is_the_alignment_itself(multi: MultiAlignment) -> None:
    assert multi.pair("de", "en") is multi.alignments["de"]


def test_pair_from_the_hub_maps_the_target(multi: MultiAlignment, languages: dict[str, Embeddings]) -> None:
    alignment = multi.pair("en", "de")
    assert (alignment.src, alignment.tgt) == (languages["en"], languages["de"])
    np.testing.assert_array_equal(alignment.src_map, np.eye(DIM))
    assert alignment.tgt_map is not None
    np.testing.assert_array_equal(alignment.tgt_map, multi.alignments["de"].src_map)
    # Both directions use the same space, so the cosines are the same.
    forward, backward = multi.pair("de", "en"), alignment
    np.testing.assert_allclose(backward.transform(["en7"]), forward.transform(["en7"], side="tgt"), atol=1e-6)
    np.testing.assert_allclose(backward.transform(["de7"], side="tgt"), forward.transform(["de7"]), atol=1e-6)


def test_pair_of_other_languages_maps_both_sides(multi: MultiAlignment, languages: dict[str, Embeddings]) -> None:
    alignment = multi.pair("de", "fr")
    np.testing.assert_array_equal(alignment.src_map, multi.alignments["de"].src_map)
    assert alignment.tgt_map is not None
    np.testing.assert_array_equal(alignment.tgt_map, multi.alignments["fr"].src_map)
    for name, side in (("de", "src"), ("fr", "tgt")):
        hub = multi.alignments[name].transform([f"{name}3"])
        np.testing.assert_allclose(alignment.transform([f"{name}3"], side=side), hub, atol=1e-6)  # type: ignore[arg-type]
    assert alignment.provenance.src == record(languages["de"])
    assert alignment.provenance.tgt == record(languages["fr"])
    assert alignment.history == []


def test_a_pair_is_judged_by_its_own_words(multi: MultiAlignment) -> None:
    alignment = multi.pair("de", "fr")
    sides = (alignment.src_side, alignment.tgt_side)
    x, y = (np.asarray(side.normalization.apply(side.space.vectors)) for side in sides)
    expected = judge(x, y, Maps(alignment.src_map, alignment.tgt_map), seed=3)
    assert alignment.quality == expected


@pytest.mark.slow
def test_wrong_maps_fail(multi: MultiAlignment, languages: dict[str, Embeddings]) -> None:
    wrong = onto_hub(languages["fr"], languages["en"], rotation(DIM, 77))
    mixed = MultiAlignment("en", {"de": multi.alignments["de"], "fr": wrong})
    assert mixed.failed == ("fr",)
    assert multi.failed == ()
    assert mixed.pair("en", "fr").quality.failed
    # Two languages that match each other need not match the hub.
    turn = rotation(DIM, 78)
    spokes = {
        name: onto_hub(one.src, one.tgt, one.src_map.astype("f8") @ turn) for name, one in multi.alignments.items()
    }
    turned = MultiAlignment("en", spokes)
    assert turned.failed == ("de", "fr")
    assert not turned.pair("de", "fr").quality.failed


def test_bad_names_are_refused(multi: MultiAlignment) -> None:
    for pair in (("de", "xx"), ("xx", "de"), ("xx", "en"), ("en", "xx"), ("xx", "xx")):
        with pytest.raises(InputError, match="language 'xx' is not among de, fr, en"):
            multi.pair(*pair)
    for name in multi.names:
        with pytest.raises(InputError, match=f"'{name}' was given twice; expected two languages of de, fr, en"):
            multi.pair(name, name)


# --------------------------------------------------------------------------- keeping


def test_save_and_load(multi: MultiAlignment, tmp_path: Path) -> None:
    assert multi.save(tmp_path / "new" / "result") == tmp_path / "new" / "result"
    loaded = MultiAlignment.load(tmp_path / "new" / "result")
    assert loaded.names == multi.names
    for name, alignment in multi.alignments.items():
        again = loaded.alignments[name]
        np.testing.assert_array_equal(again.src_map, alignment.src_map)
        assert (again.quality, again.provenance, again.history) == (
            alignment.quality,
            alignment.provenance,
            alignment.history,
        )
    for src, tgt in permutations(multi.names, 2):
        words = [f"{src}{i}" for i in range(5)]
        assert loaded.pair(src, tgt).translate(words) == multi.pair(src, tgt).translate(words)
    # Each language is an ordinary alignment.
    assert p1(Alignment.load(tmp_path / "new" / "result" / "de"), "de", "en") == 1.0


def test_size_check_memory_maps_the_vectors(multi: MultiAlignment, tmp_path: Path) -> None:
    multi.save(tmp_path)
    found = MultiAlignment.load(tmp_path, check="size")
    assert not any(each.src.vectors.flags.writeable for each in found.alignments.values())
    a, b = multi.names[:2]
    word = multi.alignments[a].src.words[0]
    best = multi.pair(a, b).translate(word, k=1)[word][0].word
    assert found.pair(a, b).translate(word, k=1)[word][0].word == best
    with pytest.raises(InputError, match="check='all' is not known; expected one of content, size"):
        MultiAlignment.load(tmp_path, check="all")


def test_a_pair_can_be_saved(multi: MultiAlignment, tmp_path: Path) -> None:
    multi.pair("fr", "de").save(tmp_path)
    assert p1(Alignment.load(tmp_path), "fr", "de") == 1.0


def test_saving_again_replaces_the_result(multi: MultiAlignment, tmp_path: Path) -> None:
    multi.save(tmp_path)
    MultiAlignment("en", {"fr": multi.alignments["fr"]}).save(tmp_path)
    assert MultiAlignment.load(tmp_path).names == ("fr", "en")
    # The folder of a removed language is still an alignment.
    assert p1(Alignment.load(tmp_path / "de"), "de", "en") == 1.0


def index(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / SEVERAL).read_text("ascii"))
    return found


def write_index(folder: Path, content: dict[str, Any]) -> None:
    """Write an index with any content and the right hash."""
    content = {name: value for name, value in content.items() if name != "sha256"}
    (folder / SEVERAL).write_text(json.dumps({**content, "sha256": digest(content)}))


def test_index_lists_the_hub_and_the_hashes_of_the_languages(multi: MultiAlignment, tmp_path: Path) -> None:
    multi.save(tmp_path)
    about = index(tmp_path)
    own = about.pop("sha256")
    assert own == digest(about)
    languages = [
        {"name": name, "sha256": json.loads((tmp_path / name / ALIGNMENT).read_text())["sha256"]}
        for name in ("de", "fr")
    ]
    assert about == {"schema": 3, "hub": "en", "languages": languages}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["de", "fr", SEVERAL]


@pytest.fixture
def older(multi: MultiAlignment) -> MultiAlignment:
    """Return another run of the same languages."""
    others = {
        name: replace(found, provenance=replace(found.provenance, seed=8)) for name, found in multi.alignments.items()
    }
    return MultiAlignment("en", others)


@pytest.mark.parametrize("fails_at", [2, 8, 17])
def test_a_failed_save_keeps_the_earlier_result(
    multi: MultiAlignment, older: MultiAlignment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    older.save(tmp_path / "old")
    for name in ("old", "new"):
        with monkeypatch.context() as patch:
            failing(os, "fsync", fails_at, OSError(28, "No space left on device"), patch)
            with pytest.raises(OSError, match="No space left"):
                multi.save(tmp_path / name)
    assert MultiAlignment.load(tmp_path / "old").identity().seed == 8
    for name in ("de", "fr"):
        assert len(list((tmp_path / "old" / name).iterdir())) == 2
    assert not (tmp_path / "new").exists()
    multi.save(tmp_path / "old")
    assert MultiAlignment.load(tmp_path / "old").identity().seed == 3


def test_a_mix_of_two_runs_is_refused(multi: MultiAlignment, older: MultiAlignment, tmp_path: Path) -> None:
    multi.save(tmp_path / "a")
    older.save(tmp_path / "b")
    shutil.rmtree(tmp_path / "a" / "fr")
    shutil.copytree(tmp_path / "b" / "fr", tmp_path / "a" / "fr")
    with pytest.raises(InputError, match=r"fr/alignment.json is not of the same run as .*a/multi.json"):
        MultiAlignment.load(tmp_path / "a")
    # The language itself still loads.
    assert Alignment.load(tmp_path / "a" / "fr").provenance.seed == 8


def test_languages_that_do_not_share_the_hub_are_refused(
    multi: MultiAlignment, languages: dict[str, Embeddings], tmp_path: Path
) -> None:
    elsewhere = onto_hub(languages["fr"], languages["de"], rotation(DIM, 1).T @ rotation(DIM, 0))
    with pytest.raises(InputError, match="not aligned onto the same vectors of 'en'"):
        MultiAlignment("en", {"de": multi.alignments["de"], "fr": elsewhere}).save(tmp_path)
    with pytest.raises(InputError, match="no language is aligned onto 'en'"):
        MultiAlignment("en", {}).save(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is damaged"),
        ("not json", "is damaged"),
        ("[]", "is damaged"),
        ("{}", "has schema None, this version of qwp reads 1, 2 and 3: install the version that wrote it"),
        ('{"schema": 4, "hub": "en", "languages": []}', "has schema 4, this version of qwp reads 1, 2 and 3"),
        ('{"schema": 1, "hub": "en"}', "languages is missing"),
        ('{"schema": 1, "hub": "en", "languages": []}', "languages is"),
        ('{"schema": 1, "hub": 7, "languages": ["de"]}', "hub is 7"),
        ('{"schema": 1, "hub": "en", "languages": "de"}', "languages is 'de'"),
        ('{"schema": 1, "hub": "en", "languages": ["de", "de"]}', "have the same name"),
        ('{"schema": 1, "hub": "en", "languages": ["De", "dE"]}', "differ by case only"),
        ('{"schema": 1, "hub": "en", "languages": ["en"]}', "have the same name"),
        ('{"schema": 3, "hub": "en", "languages": ["de"]}', "was edited"),
    ],
)
def test_a_damaged_index_is_explained(multi: MultiAlignment, text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no multi.json; expected a folder written by `qwp align --out`"):
        MultiAlignment.load(tmp_path)
    multi.save(tmp_path)
    with pytest.raises(InputError, match=r"holds no alignment.json but multi.json, several .* qwp.MultiAlignment.load"):
        Alignment.load(tmp_path)
    with pytest.raises(InputError, match=r"holds no multi.json but alignment.json, one alignment, which qwp.Alignment"):
        MultiAlignment.load(tmp_path / next(iter(multi.alignments)))
    (tmp_path / SEVERAL).write_text(text)
    with pytest.raises(InputError, match=message):
        MultiAlignment.load(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"hub": "de"},
        {"languages": [{"name": "../x", "sha256": "0" * 64}]},
        {"languages": [{"name": "de"}]},
        {"languages": ["de"]},
        {"languages": {}},
        {"parts": {}},
        {"more": 1},
    ],
)
def test_invalid_content_with_the_right_hash_is_refused(
    multi: MultiAlignment, tmp_path: Path, change: dict[str, Any]
) -> None:
    multi.save(tmp_path)
    write_index(tmp_path, {**index(tmp_path), **change})
    with pytest.raises(InputError, match=r"multi\.json is damaged"):
        MultiAlignment.load(tmp_path)


def test_a_missing_language_is_an_error(multi: MultiAlignment, tmp_path: Path) -> None:
    multi.save(tmp_path)
    about = index(tmp_path)
    about["languages"][1]["name"] = "it"
    write_index(tmp_path, about)
    with pytest.raises(InputError, match=r"it does not exist; expected a folder written by"):
        MultiAlignment.load(tmp_path)


# --------------------------------------------------------------------------- names and identity

UNUSABLE = ["", ".", "..", "../x", "a/b", "a\\b", "a\0b", ".hidden", "a\nb", "a\x1b[0m", "x" * 201, "é" * 101, "con"]
UNUSABLE += [
    "NUL.txt",
    "com1",
    "a:b",
    "a?",
    "a*",
    "a.",
    "a ",
    "a|b",
    "\ud800",
    "parts-x",
    "multi.json",
    "Alignment.JSON",
]
UNUSABLE += ["checkpoint.safetensors"]


def test_invalid_folder_names_are_refused(multi: MultiAlignment, tmp_path: Path) -> None:
    for name in UNUSABLE:
        with pytest.raises(InputError, match="cannot name a language"):
            check_language(name)
    for hub, spoke in (("en", "../x"), ("a/b", "de"), ("en", "con")):
        with pytest.raises(InputError, match="cannot name a language"):
            MultiAlignment(hub, {spoke: multi.alignments["de"]}).save(tmp_path / "sub" / "sub")
    assert list(tmp_path.iterdir()) == []


def test_names_cannot_lead_outside_the_folder(multi: MultiAlignment, tmp_path: Path) -> None:
    multi.save(tmp_path / "mine")
    (tmp_path / "theirs").mkdir()
    for name in ("../mine/de", str(tmp_path / "mine" / "de")):
        (tmp_path / "theirs" / SEVERAL).write_text(json.dumps({"schema": 1, "hub": "en", "languages": [name]}))
        with pytest.raises(InputError, match=r"multi.json is damaged .*cannot name a language"):
            MultiAlignment.load(tmp_path / "theirs")


def test_valid_folder_names() -> None:
    for name in ("de", "zh-Hans", "日本語", "a b", "x" * 200, "en.wiki", "con-1", "lpt"):
        assert check_language(name) == name


def test_identity_has_the_inputs_of_all_languages(
    multi: MultiAlignment, languages: dict[str, Embeddings], tmp_path: Path
) -> None:
    found = multi.identity()
    assert (found.method, found.seed, found.hub) == ("multi", 3, "en")
    assert list(found.inputs.items()) == [(name, languages[name].sha256()) for name in ("de", "fr", "en")]
    multi.save(tmp_path)
    assert found.difference(MultiAlignment.load(tmp_path).identity()) is None


# --------------------------------------------------------------------------- a pair or several


def test_a_folder_contains_one_alignment_or_several_languages(multi: MultiAlignment, tmp_path: Path) -> None:
    pair = multi.pair("de", "fr")
    pair.save(tmp_path)
    multi.save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["de", "fr", SEVERAL]
    assert MultiAlignment.load(tmp_path).names == multi.names
    pair.save(tmp_path)
    assert not (tmp_path / SEVERAL).exists()
    assert p1(Alignment.load(tmp_path), "de", "fr") == 1.0


def test_a_failed_save_of_a_pair_keeps_several_languages(
    multi: MultiAlignment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    multi.save(tmp_path)
    error = OSError(28, "No space left on device")
    with monkeypatch.context() as patch:
        # After four vector files.
        failing(Path, "replace", 5, error, patch)
        with pytest.raises(OSError, match="No space"):
            multi.pair("de", "fr").save(tmp_path)
    assert MultiAlignment.load(tmp_path).names == multi.names
    multi.pair("de", "fr").save(tmp_path / "pair")
    with monkeypatch.context() as patch:
        failing(Path, "replace", 9, error, patch)
        with pytest.raises(OSError, match="No space"):
            multi.save(tmp_path / "pair")
    assert p1(Alignment.load(tmp_path / "pair"), "de", "fr") == 1.0
    assert not (tmp_path / "pair" / "de").exists()


def test_a_config_without_a_neighbourhood_is_judged_with_ten(multi: MultiAlignment) -> None:
    odd = {
        name: replace(found, provenance=replace(found.provenance, config={"csls_k": "many"}))
        for name, found in multi.alignments.items()
    }
    assert MultiAlignment("en", odd).pair("de", "fr").quality == multi.pair("de", "fr").quality
