"""Results of several languages: saving, loading, damage, and the figures of each pair."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from qwp import Alignment, AllPairs, InputError
from qwp.results.all_pairs import PairStore, folder_name, pair_record, pairs_of
from qwp.results.saved import ALIGNMENT, ALL_PAIRS


@pytest.fixture
def result(aligned: Alignment) -> AllPairs:
    """Return three languages, of which one pair failed. All pairs have the same maps."""
    failed = replace(aligned, quality=replace(aligned.quality, verdict="failed"))
    return AllPairs(("b", "a", "c"), {("a", "b"): aligned, ("a", "c"): failed, ("b", "c"): aligned})


def test_pairs_do_not_depend_on_the_order_of_the_names() -> None:
    assert pairs_of("cab") == pairs_of("bca") == [("a", "b"), ("a", "c"), ("b", "c")]
    assert folder_name("en", "es") == "en-es"
    with pytest.raises(InputError, match="cannot name a language"):
        folder_name("en", "e/s")


def test_a_result_names_its_failures_and_its_worst_verdict(result: AllPairs) -> None:
    assert result.failed == (("a", "c"),)
    assert result.verdict == "failed"
    assert repr(result) == "AllPairs(b, a, c: 2 pairs aligned, 1 failed)"
    with pytest.raises(InputError, match="language 'x' is not among b, a, c"):
        result.pair("x", "a")
    with pytest.raises(InputError, match="'a' was given twice"):
        result.pair("a", "a")


def test_the_record_of_a_pair_has_no_estimate_if_it_failed(result: AllPairs, aligned: Alignment) -> None:
    one, other, _ = result.records()
    assert aligned.quality.trusted is None or one["estimate"] == aligned.quality.trusted.p1
    assert (other["verdict"], other["estimate"]) == ("failed", None)
    assert one == pair_record("a", "b", aligned)
    json.dumps(one, allow_nan=False)


def test_a_saved_result_is_loaded_with_its_languages_in_order(result: AllPairs, tmp_path: Path) -> None:
    result.save(tmp_path)
    found = AllPairs.load(tmp_path)
    assert found.names == result.names
    for pair, alignment in result.alignments.items():
        assert found.alignments[pair].src_map.tobytes() == alignment.src_map.tobytes()
        assert found.alignments[pair].quality.verdict == alignment.quality.verdict
        assert (tmp_path / folder_name(*pair) / ALIGNMENT).is_file()


def test_damage_is_noticed(result: AllPairs, tmp_path: Path) -> None:
    result.save(tmp_path)
    index = tmp_path / ALL_PAIRS
    text = index.read_text()
    index.write_text(text.replace('"b"', '"x"', 1))
    with pytest.raises(InputError, match="its hash does not match"):
        AllPairs.load(tmp_path)
    index.unlink()
    with pytest.raises(InputError, match=r"holds no all-pairs\.json"):
        AllPairs.load(tmp_path)
    index.write_text(text)
    (tmp_path / "b-c" / ALIGNMENT).unlink()
    with pytest.raises(InputError, match=r"b-c.* holds no alignment\.json"):
        AllPairs.load(tmp_path)
    with pytest.raises(InputError, match=r"but all-pairs\.json, pairs of languages in folders of their own"):
        Alignment.load(tmp_path)


def test_a_store_takes_finished_pairs_of_the_same_run_only(aligned: Alignment, tmp_path: Path) -> None:
    store, pair = PairStore(tmp_path), ("a", "b")
    identity = aligned.provenance.identity()
    hashes = list(identity.inputs.values())
    assert store.load(pair, identity, hashes) is None
    store.save(pair, aligned)
    assert store.load(pair, identity, hashes) is not None
    assert PairStore(tmp_path, force=True).load(pair, identity, hashes) is None
    with pytest.raises(InputError, match=r"a-b holds the result of another run \(seed was \d+, now 99\)"):
        store.load(pair, replace(identity, seed=99), hashes)
    # A checkpoint belongs to a later run, which is to be continued.
    checkpoint = store.checkpoint(pair)
    assert checkpoint is not None
    checkpoint.path.touch()
    assert store.load(pair, identity, hashes) is None
    assert not store.is_finished("ab")
    checkpoint.path.unlink()
    store.finish("ab", [pair])
    assert store.is_finished("ba")
    assert not store.is_finished("abc")
    assert PairStore().path(pair) is None
