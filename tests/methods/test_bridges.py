"""Bridges: pairs joined over a third space find what a direct search does not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qwp
from qwp import Alignment, Embeddings, InputError
from qwp.methods.bridges import Bridge, Leg, joined_pairs, remark
from qwp.results.checkpoints import Checkpoint
from qwp.results.provenance import LegRecord, Provenance
from qwp.showing.events import Progress
from tests.conftest import QUICK
from tests.libraries import assert_close, assert_same
from tests.problems import rotation, space

pytestmark = pytest.mark.usefixtures("short_trials")

N, DIM = 400, 16
OPTIONS: dict[str, Any] = {**QUICK, "order": "given"}


def embeddings(prefix: str, vectors: Any, name: str) -> Embeddings:
    """Return embeddings whose words are a prefix and the number of the row."""
    return Embeddings([f"{prefix}{i}" for i in range(len(vectors))], np.asarray(vectors, dtype="f4"), name=name)


def triple() -> tuple[Embeddings, Embeddings, Embeddings]:
    """Return a source, a target and a bridge with the same meanings.

    The source nearly lacks one half of the directions, the target the other half, so that their similarities differ.
    The bridge has all.
    """
    meanings, rng = space(N, DIM, 1), np.random.default_rng(2)
    found = []
    for prefix, seed, weak, name in (("s", 3, [0], "source"), ("t", 4, [1], "target"), ("b", 5, [], "bridge")):
        vectors = meanings.copy()
        for first in weak:
            vectors[:, first::2] *= 0.42
        vectors += 0.1 * rng.standard_normal(vectors.shape) / np.sqrt(DIM)
        found.append(embeddings(prefix, vectors @ rotation(DIM, seed), name))
    return found[0], found[1], found[2]


def share_right(found: Alignment) -> float:
    """Return the share of source words that are translated correctly."""
    best = found.translate(found.src.words, k=1)
    return float(np.mean([best[word][0].word == f"t{word[1:]}" for word in found.src.words]))


UNRELATED = embeddings("u", space(N, DIM, 9), "unrelated")


def test_a_bridge_finds_what_a_direct_search_does_not_and_is_recorded(tmp_path: Path) -> None:
    src, tgt, bridge = triple()
    assert share_right(qwp.align(src, tgt, **OPTIONS)) < 0.1
    events: list[Progress] = []
    found = qwp.align(src, tgt, via=[UNRELATED, bridge], progress=events.append, **OPTIONS)
    assert share_right(found) > 0.8
    assert found.quality.verdict == "succeeded"
    unused, used = found.provenance.bridges
    assert (used.src.verdict, used.tgt.verdict, used.problem) == ("succeeded", "succeeded", None)
    assert used.pairs > N / 2
    assert used.src.estimate is not None
    assert used.src.estimate > 0.5
    assert found.provenance.seconds["bridges"] == pytest.approx(
        sum(leg.seconds for each in (unused, used) for leg in (each.src, each.tgt))
    )
    # A failed leg is reported and not used.
    assert (unused.src.verdict, unused.src.estimate, unused.pairs) == ("failed", None, 0)
    assert unused.problem == "the alignment of src and tgt with it failed"
    assert f"Initialized by {used.pairs:,} pairs over bridge." in found.quality.explanation
    assert "The bridge unrelated was not used: the alignment of src and tgt" in found.quality.explanation
    legs = [event for event in events if event.stage == "bridges"]
    assert [(event.done, event.total, event.figures["leg"]) for event in legs] == [
        (1, 4, "source - unrelated"),
        (2, 4, "target - unrelated"),
        (3, 4, "source - bridge"),
        (4, 4, "target - bridge"),
    ]
    # The record is saved, and the bridges with their hashes identify the run.
    found.save(tmp_path)
    loaded = Alignment.load(tmp_path).provenance
    assert loaded.bridges == found.provenance.bridges
    assert loaded.identity().inputs == {
        "src": src.sha256(),
        "tgt": tgt.sha256(),
        "via 1": UNRELATED.sha256(),
        "via 2": bridge.sha256(),
    }


def test_without_a_usable_bridge_the_two_spaces_are_aligned_directly() -> None:
    _, tgt, bridge = triple()
    direct = qwp.align(bridge, tgt, **OPTIONS)
    found = qwp.align(bridge, tgt, via=[UNRELATED], **OPTIONS)
    assert_same(found.src_map, direct.src_map)
    assert found.quality.explanation.startswith(direct.quality.explanation)
    assert found.quality.explanation.endswith("No bridge could be used, so the two spaces were aligned directly.")


class InterruptedRunError(Exception):
    """Raised by the progress callback."""


@pytest.mark.parametrize("where", ["in a leg", "between legs", "in the fit"])
def test_an_interrupted_run_does_not_compute_finished_legs_again(where: str, tmp_path: Path) -> None:
    src, tgt, bridge = triple()
    stages: list[tuple[str, int]] = []
    finished = 0

    def interrupt(event: Progress) -> None:
        nonlocal finished
        finished = event.done if event.stage == "bridges" else finished
        wanted = {"in a leg": ("refine", 1), "between legs": ("bridges", 1), "in the fit": ("refine", 2)}[where]
        if (event.stage, finished) == wanted and event.done > (1 if event.stage == "refine" else 0):
            raise InterruptedRunError

    checkpoint = Checkpoint(tmp_path, interval=0.0)
    with pytest.raises(InterruptedRunError):
        qwp.align(src, tgt, via=[bridge], progress=interrupt, checkpoint=checkpoint, **OPTIONS)

    def record(event: Progress) -> None:
        stages.append((event.stage, event.done))

    resumed = qwp.align(
        src, tgt, via=[bridge], progress=record, checkpoint=Checkpoint(tmp_path, resume=True), **OPTIONS
    )
    whole = qwp.align(src, tgt, via=[bridge], **OPTIONS)
    assert_same(resumed.src_map, whole.src_map)
    assert resumed.quality == whole.quality
    verdicts = stages.index(("bridges", 1)), stages.index(("bridges", 2))
    assert verdicts[0] == 0  # the first leg was finished
    assert (verdicts[1] == 1) == (where == "in the fit")
    if where == "in a leg":
        assert ("refine", 1) not in stages[: verdicts[1]]
    # The checkpoint belongs to this bridge.
    with pytest.raises(InputError, match="input for via 1"):
        qwp.align(src, tgt, via=[UNRELATED], checkpoint=Checkpoint(tmp_path, resume=True), **OPTIONS)


def leg(pairs: list[tuple[int, int, float]], verdict: str = "succeeded") -> Leg:
    """Return a leg with pairs of rows and their confidences."""
    rows = np.asarray([pair[:2] for pair in pairs], dtype=np.int64).reshape(-1, 2)
    confidence = np.asarray([pair[2] for pair in pairs])
    return Leg(LegRecord(verdict, 1.5, 0.5, len(pairs), 1.0), (rows[:, 0], rows[:, 1]), confidence)


def test_pairs_are_joined_and_weighted_by_confidence() -> None:
    many = range(100, 150)
    sure = [(i, i, 1.0) for i in many]
    one = Bridge(UNRELATED, leg([(0, 7, 0.8), (1, 8, 0.9), (2, 9, 0.5), *sure]), leg([(4, 7, 0.5), (5, 9, 0.2), *sure]))
    # Row 1 has no partner; the pair (2, 5) is too uncertain.
    assert one.joined() == {(0, 4): pytest.approx(0.4), **{(i, i): 1.0 for i in many}}
    two = Bridge(UNRELATED, leg([(0, 3, 0.5), *sure]), leg([(4, 3, 1.0), *sure]))
    found = joined_pairs([one, two])
    assert found is not None
    weights = dict(zip(zip(found.pairs[0].tolist(), found.pairs[1].tolist(), strict=True), found.weights, strict=True))
    assert_close(weights[0, 4], 1 - 0.6 * 0.5, atol=1e-12)
    assert set(weights) == {(0, 4), *((i, i) for i in many)}


def test_a_bridge_with_few_pairs_or_a_failed_leg_is_not_used() -> None:
    sure = [(i, i, 1.0) for i in range(50)]
    few = Bridge(UNRELATED, leg(sure[1:]), leg(sure))
    failed = Bridge(UNRELATED, leg(sure), leg([], "failed"))
    assert few.problem == "it joins only 49 pairs, 50 are needed"
    assert replace(few, fewest_pairs=49).problem is None
    assert failed.problem == "the alignment of tgt with it failed"
    assert joined_pairs([few, failed]) is None
    assert "not used: it joins only" in remark([few])
    assert few.record().pairs == 0


def test_methods_that_do_not_start_from_pairs_and_two_kinds_of_pairs_are_refused() -> None:
    src, tgt, bridge = triple()
    with pytest.raises(InputError, match="method 'gromov' does not start from pairs: use --method qwp"):
        qwp.align(src, tgt, "gromov", via=[bridge])
    with pytest.raises(InputError, match="a bridge and a lexicon were given"):
        qwp.align(src, tgt, via=[bridge], lexicon=[("s1", "t1")])


def test_older_results_have_no_bridges() -> None:
    src, tgt, _ = triple()
    values = qwp.align(src, tgt, start="identity", verdict="none", **OPTIONS).provenance.to_dict()
    assert values.pop("bridges") == []
    assert Provenance.from_dict(values).bridges == []


@pytest.mark.slow
@pytest.mark.bench
def test_finnish_and_russian_are_found_over_english(bench: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # the search of users

    def language(name: str) -> Embeddings:
        with np.load(bench / "pretrained" / f"{name}.npz") as file:
            return Embeddings([str(word) for word in file["words"]], file["vectors"].astype("f4"), name=name)

    found = qwp.align(language("fi"), language("ru"), via=[language("en")], threads=1, device="cpu")
    scores = qwp.evaluate(found, qwp.Lexicon.load(bench / "xling" / "xling.fi-ru.test.tsv"), bootstrap=0)
    assert not found.quality.failed
    assert 100 * scores.p_at_1() >= 22
