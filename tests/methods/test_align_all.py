"""Every two of several languages: all directions translate, failed pairs are bridged, interrupted runs continue."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qwp
from qwp import AllPairs, Embeddings, InputError
from qwp.methods import QWP, make_aligner
from qwp.methods.align_all import align_all, check_names
from qwp.results.all_pairs import PairStore
from qwp.results.saved import ALL_PAIRS
from qwp.showing.events import Progress
from tests.conftest import QUICK
from tests.methods.test_bridges import UNRELATED, triple
from tests.problems import rotation, space

pytestmark = pytest.mark.usefixtures("short_trials")

N, DIM = 400, 16
OPTIONS: dict[str, Any] = {**QUICK, "order": "given"}


def languages() -> dict[str, Embeddings]:
    """Return two languages that can be aligned with a third one only, and with each other over it."""
    src, tgt, bridge = triple()
    return {"s": src, "t": tgt, "b": bridge}


def share_right(found: AllPairs, src: str, tgt: str) -> float:
    """Return the share of the words of one language that are translated correctly into another."""
    best = found.pair(src, tgt).translate([f"{src}{i}" for i in range(N)], k=1)
    return float(np.mean([translations[0].word == f"{tgt}{word[1:]}" for word, translations in best.items()]))


@pytest.fixture(scope="session")
def events() -> list[tuple[int, Progress]]:
    return []


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("all") / "out"


@pytest.fixture
def found(folder: Path, events: list[tuple[int, Progress]]) -> AllPairs:
    """Three languages; read from the folder after the first test."""
    return qwp.align_all(languages(), out=folder, progress=lambda *event: events.append(event), **OPTIONS)


def test_all_directions_translate_and_a_failed_pair_is_bridged(found: AllPairs) -> None:
    assert found.names == ("s", "t", "b")
    assert found.failed == ()
    assert list(found.alignments) == [("b", "s"), ("b", "t"), ("s", "t")]
    for src, tgt in permutations("stb", 2):
        assert share_right(found, src, tgt) > 0.8, (src, tgt)
    [used] = found.pair("s", "t").provenance.bridges
    assert (used.space.name, used.problem) == ("b", None)
    assert found.pair("b", "s").provenance.bridges == []
    record = found.records()[-1]
    assert (record["src"], record["tgt"], record["verdict"], record["via"]) == ("s", "t", "succeeded", ["b"])


def test_a_pair_is_the_alignment_of_its_two_languages_alone(found: AllPairs) -> None:
    src, _, bridge = triple()
    alone = qwp.align(bridge, src, **OPTIONS)
    assert found.pair("b", "s").src_map.tobytes() == alone.src_map.tobytes()
    assert found.pair("b", "s").quality.ratio == alone.quality.ratio


def test_both_directions_have_the_same_maps(found: AllPairs) -> None:
    one, other = found.pair("s", "b"), found.pair("b", "s")
    assert one.similarity("s1", "b1") == pytest.approx(other.similarity("b1", "s1"))
    assert (one.provenance.src, one.provenance.tgt) == (other.provenance.tgt, other.provenance.src)
    assert one.quality is other.quality
    src, _, bridge = triple()
    orthogonal = qwp.align(src, bridge, map="orthogonal", **{**OPTIONS, "start": "profiles", "verdict": "none"})
    back = orthogonal.reversed()
    assert back.similarity("b1", "s1") == pytest.approx(orthogonal.similarity("s1", "b1"))
    assert back.reversed().similarity("s1", "b1") == pytest.approx(orthogonal.similarity("s1", "b1"))


def test_the_joint_space_has_all_languages_by_orthogonal_maps(found: AllPairs) -> None:
    joint = found.joint("b")
    assert (joint.hub, joint.names) == ("b", ("s", "t", "b"))
    for alignment in joint.alignments.values():
        assert alignment.tgt_map is None
        assert np.abs(alignment.src_map.T @ alignment.src_map - np.eye(DIM)).max() < 1e-5
        assert alignment.quality.verdict == "succeeded"
    best = joint.pair("s", "t").translate([f"s{i}" for i in range(N)], k=1)
    assert np.mean([each[0].word == f"t{word[1:]}" for word, each in best.items()]) > 0.6
    # The hub by default has the highest estimates: both others are aligned with it best.
    assert found.joint().hub == "b"
    with pytest.raises(InputError, match="hub 'x' is not among the languages s, t, b"):
        found.joint("x")


def test_a_finished_run_is_read_again(found: AllPairs, folder: Path) -> None:
    computed: list[Progress] = []
    again = qwp.align_all(languages(), out=folder, progress=lambda _, event: computed.append(event), **OPTIONS)
    assert computed == []
    loaded = AllPairs.load(folder)
    for pair, alignment in found.alignments.items():
        assert again.alignments[pair].src_map.tobytes() == alignment.src_map.tobytes()
        assert loaded.alignments[pair].src_map.tobytes() == alignment.src_map.tobytes()
    # The order of the arguments does not matter.
    turned = dict(reversed(languages().items()))
    assert qwp.align_all(turned, out=folder, progress=lambda _, event: computed.append(event), **OPTIONS).names == (
        "b",
        "t",
        "s",
    )
    assert computed == []


def test_results_of_other_runs_are_refused(found: AllPairs, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"b-s holds the result of another run \(seed was 0, now 1\): give --force"):
        qwp.align_all(languages(), out=folder, seed=1, **OPTIONS)
    with pytest.raises(InputError, match="input for src"):
        qwp.align_all({**languages(), "b": UNRELATED}, out=folder, **OPTIONS)
    found.save(tmp_path)
    assert AllPairs.load(tmp_path).names == found.names
    # A pair that was replaced after the index does not look like a part of the result.
    found.alignments["b", "t"].save(tmp_path / "b-s")
    with pytest.raises(InputError, match=r"b-s.*was replaced after .*all-pairs.json"):
        AllPairs.load(tmp_path)


def test_an_interrupted_run_continues_and_does_not_look_finished(found: AllPairs, tmp_path: Path) -> None:
    seen: list[tuple[int, str]] = []

    def stop(number: int, event: Progress) -> None:
        seen.append((number, event.stage))
        if number == 1 and event.stage == "refine":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        qwp.align_all(languages(), out=tmp_path, progress=stop, **OPTIONS)
    assert not (tmp_path / ALL_PAIRS).exists()
    with pytest.raises(InputError, match=r"holds no all-pairs.json"):
        AllPairs.load(tmp_path)
    seen.clear()
    resumed = qwp.align_all(
        languages(), out=tmp_path, progress=lambda number, event: seen.append((number, event.stage)), **OPTIONS
    )
    assert 0 not in {number for number, _ in seen}
    for pair, alignment in found.alignments.items():
        assert resumed.alignments[pair].src_map.tobytes() == alignment.src_map.tobytes()


def test_a_language_can_be_added(tmp_path: Path) -> None:
    spaces = languages()
    two = qwp.align_all({name: spaces[name] for name in "st"}, out=tmp_path, **OPTIONS)
    assert two.failed == (("s", "t"),)
    numbers: set[int] = set()
    three = qwp.align_all(spaces, out=tmp_path, progress=lambda number, _: numbers.add(number), **OPTIONS)
    # The failed pair is not searched again, but bridged over the new language.
    assert three.failed == ()
    assert numbers == {0, 1, 2}
    assert len(three.pair("s", "t").provenance.candidates) == 0


def test_a_language_that_cannot_be_aligned_is_reported_and_left_out_of_the_joint_space() -> None:
    spaces = {"b": languages()["b"], "t": languages()["t"], "u": UNRELATED}
    found = qwp.align_all(spaces, **OPTIONS)
    assert found.failed == (("b", "u"), ("t", "u"))
    assert found.verdict == "failed"
    assert repr(found) == "AllPairs(b, t, u: 1 pairs aligned, 2 failed)"
    assert found.joint("b").names == ("t", "b")
    with pytest.raises(InputError, match="no alignment with u succeeded"):
        found.joint("u")


def test_bridges_over_bridges_connect_the_ends_of_a_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, meanings, n = np.random.default_rng(0), space(200, 12, 1), 200
    spaces = {}
    for number, name in enumerate("abcd"):
        vectors = meanings @ rotation(12, number) + 0.05 * rng.standard_normal((n, 12)) / 12**0.5
        spaces[name] = Embeddings([f"{name}{i}" for i in range(n)], vectors.astype("f4"))
    aligner = make_aligner("qwp", **{**OPTIONS, "start": "profiles"})
    fit = QWP.fit

    def only_neighbours(self: Any, src: Embeddings, tgt: Embeddings, **kwargs: Any) -> Any:
        """Fit, and let the alignment of languages that are no neighbours fail."""
        fit(self, src, tgt, **kwargs)
        if abs(ord(src.name) - ord(tgt.name)) > 1:
            quality = replace(self.alignment_.quality, verdict="failed")
            wrong = replace(self.alignment_.src_side, map=rotation(12, 9))
            self.alignment_ = replace(self.alignment_, src_side=wrong, quality=quality)
        return self

    monkeypatch.setattr(QWP, "fit", only_neighbours)
    found = align_all(aligner, spaces)
    assert found.failed == ()
    for src, tgt in permutations("abcd", 2):
        best = found.pair(src, tgt).translate([f"{src}{i}" for i in range(n)], k=1)
        assert np.mean([each[0].word == f"{tgt}{word[1:]}" for word, each in best.items()]) > 0.9, (src, tgt)
    bridges = {pair: [each.space.name for each in a.provenance.bridges] for pair, a in found.alignments.items()}
    assert bridges["a", "b"] == bridges["b", "c"] == bridges["c", "d"] == []
    assert bridges["a", "c"] == ["b"]
    # At first only this pair had a bridge, over which the ends are connected.
    assert bridges["a", "d"] == ["c"]


def test_bad_names_are_refused() -> None:
    cases = [
        (["a"], "1 languages were given; expected at least two"),
        (["a", "A"], "have the same name, or differ by case only"),
        (["a", "b/c"], "cannot name a language"),
        (["a-b", "c", "a", "b-c"], "two pairs of the languages .* would have the same folder"),
    ]
    for names, message in cases:
        with pytest.raises(InputError, match=message):
            check_names(names)


def test_results_without_vectors_are_not_taken_for_complete_ones(tmp_path: Path) -> None:
    spaces = languages()
    for name, each in spaces.items():
        qwp.spaces.io.save(each, tmp_path / f"{name}.vec")
    files = {name: qwp.load(tmp_path / f"{name}.vec") for name in spaces}
    del files["t"]
    aligner = make_aligner("qwp", **{**OPTIONS, "start": "profiles", "verdict": "none"})
    align_all(aligner, files, store=PairStore(tmp_path / "out", vectors=False))
    assert not AllPairs.load(tmp_path / "out").pair("b", "s").holds_vectors
    with pytest.raises(InputError, match="holds its result without vectors"):
        align_all(aligner, files, store=PairStore(tmp_path / "out"))
