"""Results for several languages: any pair of them through the hub, judged anew, saved and loaded."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from qwp import Embeddings, InputError
from qwp.judging.verdict import judge
from qwp.maps.procrustes import Maps
from qwp.results.alignment import Alignment
from qwp.results.provenance import InputRecord, Provenance
from qwp.results.several import MultiAlignment
from qwp.results.sides import AlignedSide
from qwp.spaces import normalization
from tests.problems import Array, rotation, space

N, DIM = 250, 8


def record(words: Embeddings) -> InputRecord:
    return InputRecord(None, words.sha256(), len(words), words.dim)


def onto_hub(src: Embeddings, tgt: Embeddings, w: Array, seed: int = 3) -> Alignment:
    """An alignment with a given map, judged as a fit would."""
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
    """Rotated copies of one space: word i of language x is "x<i>", in an order and at a place of its own."""
    base, found = space(N, DIM, 0), {}
    for number, name in enumerate(("de", "fr", "en")):
        order = np.random.default_rng(number).permutation(N)
        vectors = base[order] @ rotation(DIM, number) + 0.1 * number
        found[name] = Embeddings([f"{name}{i}" for i in order], vectors.astype("f4"))
    return found


@pytest.fixture(scope="module")
def multi(languages: dict[str, Embeddings]) -> MultiAlignment:
    """Two languages on a hub by their true maps; read-only."""
    en = languages["en"]
    spokes = {
        name: onto_hub(languages[name], en, rotation(DIM, number).T @ rotation(DIM, 2))
        for number, name in enumerate(("de", "fr"))
    }
    return MultiAlignment("en", spokes)


def p1(alignment: Alignment, src: str, tgt: str) -> float:
    # Nearest neighbours: CSLS may prefer another word of a dense cluster even to an exact copy.
    found = alignment.translate([f"{src}{i}" for i in range(N)], k=1, retrieval="nn")
    return float(np.mean([best[0].word == f"{tgt}{word[2:]}" for word, best in found.items()]))


# --------------------------------------------------------------------------- pairs


def test_names_have_the_hub_last(multi: MultiAlignment) -> None:
    assert multi.names == ("de", "fr", "en")


def test_every_pair_translates(multi: MultiAlignment) -> None:
    for src, tgt in permutations(multi.names, 2):
        alignment = multi.pair(src, tgt)
        assert p1(alignment, src, tgt) == 1.0
        assert alignment.quality.verdict == "succeeded"


def test_onto_the_hub_it_is_the_alignment_itself(multi: MultiAlignment) -> None:
    assert multi.pair("de", "en") is multi.alignments["de"]


def test_from_the_hub_the_target_is_mapped(multi: MultiAlignment, languages: dict[str, Embeddings]) -> None:
    alignment = multi.pair("en", "de")
    assert (alignment.src, alignment.tgt) == (languages["en"], languages["de"])
    np.testing.assert_array_equal(alignment.src_map, np.eye(DIM))
    assert alignment.tgt_map is not None
    np.testing.assert_array_equal(alignment.tgt_map, multi.alignments["de"].src_map)
    # Both directions live in the same space: what is near one way is near the other way.
    forward, backward = multi.pair("de", "en"), alignment
    np.testing.assert_allclose(backward.transform(["en7"]), forward.transform(["en7"], side="tgt"), atol=1e-6)
    np.testing.assert_allclose(backward.transform(["de7"], side="tgt"), forward.transform(["de7"]), atol=1e-6)


def test_between_others_both_sides_are_mapped(multi: MultiAlignment, languages: dict[str, Embeddings]) -> None:
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


def test_wrong_maps_are_seen_in_the_verdict(multi: MultiAlignment, languages: dict[str, Embeddings]) -> None:
    wrong = onto_hub(languages["fr"], languages["en"], rotation(DIM, 77))
    mixed = MultiAlignment("en", {"de": multi.alignments["de"], "fr": wrong})
    assert mixed.failed == ("fr",)
    assert multi.failed == ()
    for pair in (("de", "fr"), ("fr", "de"), ("en", "fr")):
        assert mixed.pair(*pair).quality.failed
    # Two languages that fit each other need not fit the hub.
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
    # Each language is an ordinary alignment by itself.
    assert p1(Alignment.load(tmp_path / "new" / "result" / "de"), "de", "en") == 1.0


def test_a_pair_can_be_saved_by_itself(multi: MultiAlignment, tmp_path: Path) -> None:
    multi.pair("fr", "de").save(tmp_path)
    assert p1(Alignment.load(tmp_path), "fr", "de") == 1.0
