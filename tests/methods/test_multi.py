"""Several languages at once: all pairs translate, both strategies, resuming, and two languages are plain `wp`."""

from __future__ import annotations

import shutil
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qwp import Embeddings, InputError, arrays
from qwp.maps.procrustes import Maps, orthogonality_error, polar_svd
from qwp.methods.compositions import WP
from qwp.methods.multi import Multi
from qwp.results.checkpoints import Checkpoint
from qwp.results.several import MultiAlignment
from qwp.showing.events import Progress
from qwp.stages.refinement import CslsRefinement
from tests.conftest import QUICK, planted_embeddings
from tests.libraries import assert_close, assert_same, host
from tests.problems import Array, rotation, space

# Smaller than QUICK, because a fit of three languages has many loops.
SHARED: dict[str, Any] = {**QUICK, "start": "profiles", "coreset_size": 60, "bank_size": 2, "epochs": 1, "steps": 4}
SHARED |= {"refine": 2, "threads": 1}
OPTIONS: dict[str, Any] = {**SHARED, "joint_epochs": 1}
N, DIM = 220, 12


def languages(names: str = "abc", noise: float = 0.05) -> dict[str, Embeddings]:
    """Return rotated and shuffled copies of one space: word i of language a is "a<i>"."""
    words = space(N, DIM, 0)
    found = {}
    for number, name in enumerate(names):
        rng = np.random.default_rng(number)
        order = rng.permutation(N)
        vectors = words[order] @ rotation(DIM, 50 + number) + noise / DIM**0.5 * rng.standard_normal((N, DIM))
        found[name] = Embeddings([f"{name}{i}" for i in order], vectors.astype("f4"))
    return found


def p1(result: MultiAlignment, src: str, tgt: str) -> float:
    found = result.pair(src, tgt).translate([f"{src}{i}" for i in range(N)], k=1)
    return float(np.mean([best[0].word == f"{tgt}{word[1:]}" for word, best in found.items()]))


def maps(result: MultiAlignment) -> dict[str, bytes]:
    return {name: alignment.src_map.tobytes() for name, alignment in result.alignments.items()}


def records(result: MultiAlignment) -> dict[str, list[tuple[str, int]]]:
    return {
        name: [(record["stage"], record["step"]) for record in alignment.history]
        for name, alignment in result.alignments.items()
    }


@pytest.fixture(scope="session")
def fitted() -> tuple[MultiAlignment, list[Progress]]:
    """Three languages, jointly, and what was reported on the way; read-only."""
    events: list[Progress] = []
    return Multi(**OPTIONS).fit_all(languages(), progress=events.append), events


@pytest.fixture
def joint(fitted: tuple[MultiAlignment, list[Progress]]) -> MultiAlignment:
    return fitted[0]


@pytest.fixture
def events(fitted: tuple[MultiAlignment, list[Progress]]) -> list[Progress]:
    return fitted[1]


# --------------------------------------------------------------------------- three languages


def test_every_pair_of_three_languages_translates(joint: MultiAlignment) -> None:
    assert joint.names == ("a", "b", "c")
    assert joint.hub == "c"
    assert joint.failed == ()
    for src, tgt in permutations("abc", 2):
        assert p1(joint, src, tgt) > 0.95, (src, tgt)
    for alignment in joint.alignments.values():
        assert alignment.quality.verdict == "succeeded"
        assert orthogonality_error(alignment.src_map) < 1e-5
        assert alignment.tgt_map is None


def test_the_maps_are_the_planted_rotations(joint: MultiAlignment) -> None:
    to_hub = rotation(DIM, 52)
    for number, name in enumerate("ab"):
        expected = rotation(DIM, 50 + number).T @ to_hub
        assert_close(joint.alignments[name].src_map, expected, atol=0.02)


@pytest.mark.slow
def test_the_hub_strategy_aligns_each_language_by_itself() -> None:
    spaces = languages()
    result = Multi(strategy="hub", **OPTIONS).fit_all(spaces)
    for src, tgt in permutations("abc", 2):
        assert p1(result, src, tgt) > 0.95, (src, tgt)
    # Each map is that of its pair alone.
    for name in "ab":
        alone = Multi(strategy="hub", **OPTIONS).fit_all({name: spaces[name], "c": spaces["c"]})
        assert_close(result.alignments[name].src_map, alone.alignments[name].src_map, atol=1e-6)
    stages = {stage for stage, _ in records(result)["a"]}
    assert {"loop", "refine", "verdict"} <= stages
    assert not any(record.get("epoch") == "joint" for record in result.alignments["a"].history)


def test_joint_fits_listen_to_the_other_languages(joint: MultiAlignment) -> None:
    spaces = languages()
    alone = Multi(**OPTIONS).fit_all({"a": spaces["a"], "c": spaces["c"]})
    assert np.abs(alone.alignments["a"].src_map - joint.alignments["a"].src_map).max() > 1e-5
    assert any(record.get("epoch") == "joint" for record in joint.alignments["a"].history)
    assert not any(record.get("epoch") == "joint" for record in alone.alignments["a"].history)


@pytest.mark.slow
def test_any_language_can_be_the_hub() -> None:
    result = Multi(**OPTIONS).fit_all(languages(), hub="b")
    assert result.hub == "b"
    assert result.names == ("a", "c", "b")
    for src, tgt in combinations("abc", 2):
        assert p1(result, src, tgt) > 0.95


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["joint", "hub"])
def test_refinement_solves_for_all_maps_from_the_last_dictionary_of_every_pair(
    strategy: str,
) -> None:
    options = {**OPTIONS, "strategy": strategy, "dtype": "float64"}
    begun, result = (Multi(**{**options, "refine": n}).fit_all(languages(noise=0.4)) for n in (0, 3))
    one = begun.alignments["a"]
    sides = [*(each.src_side for each in begun.alignments.values()), one.tgt_side]
    rows = [host(side.normalization.apply(side.space.vectors.astype("f8"))) for side in sides]
    before, after = ([*(one.src_map for one in each.alignments.values()), np.eye(DIM)] for each in (begun, result))
    # As `wp` finds them for each pair, from the same maps.
    settings = CslsRefinement(
        rounds=3,
        words=20_000,
        first_words=4000,
        directions="union",
        weights="csls",
        search_map="reweighted",
        map="orthogonal",
    )
    products: dict[tuple[int, int], Array] = {}
    for i, j in combinations(range(3), 2) if strategy == "joint" else [(0, 2), (1, 2)]:
        *_, (_, _, pairs) = settings.iterate(rows[i], rows[j], Maps(before[i], before[j]))
        weights = np.maximum(host(pairs.scores), 0.0)
        products[i, j] = (rows[i][host(pairs.src)] * weights[:, None]).T @ rows[j][host(pairs.tgt)]
        products[j, i] = products[i, j].T
    for i in range(2):
        total = sum(product @ after[j] for (of, j), product in products.items() if of == i)
        # The maps of a hub depend on no other; ten sweeps over several come this near to where they settle.
        assert_close(after[i], polar_svd(total), atol=1e-7 if strategy == "hub" else 2e-3)
        assert np.abs(after[i] - before[i]).max() > 1e-3
        assert orthogonality_error(after[i]) < 1e-10


@pytest.mark.slow
def test_unequal_sizes_and_tiny_vocabularies() -> None:
    spaces = languages()
    cut = {"a": spaces["a"], "b": Embeddings(spaces["b"].words[:180], spaces["b"].vectors[:180]), "c": spaces["c"]}
    result = Multi(**OPTIONS).fit_all(cut)
    found = result.pair("b", "a").translate(cut["b"].words, k=1)
    assert np.mean([best[0].word == f"a{word[1:]}" for word, best in found.items()]) > 0.9
    tiny = {name: Embeddings(words.words[:10], words.vectors[:10]) for name, words in spaces.items()}
    small = Multi(**OPTIONS).fit_all(tiny)
    assert all(np.isfinite(alignment.src_map).all() for alignment in small.alignments.values())
    assert small.pair("a", "b").quality.verdict == "undecided"


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes_and_another_seed_does_not(joint: MultiAlignment) -> None:
    assert maps(Multi(**OPTIONS).fit_all(languages())) == maps(joint)
    assert maps(Multi(seed=1, **OPTIONS).fit_all(languages())) != maps(joint)


# --------------------------------------------------------------------------- two languages


def test_with_two_languages_fit_is_wp() -> None:
    spaces = planted_embeddings(N, noise=0.1, shuffle=True)
    expected = WP(map="orthogonal", **SHARED).fit(*spaces)
    assert_same(Multi(**OPTIONS).fit(*spaces).map_, expected.map_)


@pytest.mark.parametrize("strategy", ["joint", "hub"])
def test_with_two_languages_fit_all_is_wp_up_to_rounding(strategy: str) -> None:
    src, tgt = planted_embeddings(N, noise=0.1, shuffle=True)
    expected = WP(map="orthogonal", **SHARED).fit(src, tgt)
    result = Multi(strategy=strategy, **OPTIONS).fit_all({"src": src, "tgt": tgt})
    assert_close(result.alignments["src"].src_map, expected.map_, atol=1e-5)
    assert result.alignments["src"].quality.ratio == pytest.approx(expected.quality_.ratio, rel=1e-3)


# --------------------------------------------------------------------------- resuming


def interrupted_at(where: int, folder: Path, spaces: dict[str, Embeddings]) -> Progress:
    """Fit until the event of this number raises. Returns that event."""
    seen: list[Progress] = []

    def stop(event: Progress) -> None:
        seen.append(event)
        if len(seen) == where:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Multi(**OPTIONS).fit_all(spaces, hub="c", progress=stop, checkpoint=Checkpoint(folder))
    return seen[-1]


@pytest.fixture(scope="session")
def stopped(fitted: tuple[MultiAlignment, list[Progress]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a fit that was interrupted in its last round of refinement; read-only."""
    folder = tmp_path_factory.mktemp("stopped")
    last = max(i for i, event in enumerate(fitted[1]) if event.stage == "refine")
    interrupted_at(last + 1, folder, languages())
    return folder


def copy_of(folder: Path, to: Path) -> Checkpoint:
    """A checkpoint to resume from that may be written to."""
    shutil.copytree(folder, to, dirs_exist_ok=True)
    return Checkpoint(to, resume=True)


@pytest.mark.slow
@pytest.mark.parametrize("where", ["second language", "joint loop", "first round", "refinement", "verdict"])
def test_an_interrupted_fit_resumes_to_the_same_maps(
    where: str, tmp_path: Path, joint: MultiAlignment, events: list[Progress]
) -> None:
    stages = [event.stage for event in events]
    in_joint_loop = [i for i, event in enumerate(events) if event.figures.get("epoch") == "joint"]
    place = {
        "second language": in_joint_loop[0] - 1,
        "joint loop": in_joint_loop[-1],
        "first round": stages.index("refine"),
        "refinement": stages.index("refine") + 2,
        "verdict": stages.index("verdict"),
    }[where]
    assert interrupted_at(place + 1, tmp_path, languages()) == events[place]
    resumed = Multi(**OPTIONS).fit_all(languages(), hub="c", checkpoint=Checkpoint(tmp_path, resume=True))
    assert maps(resumed) == maps(joint)
    assert records(resumed) == records(joint)


@pytest.mark.slow
@pytest.mark.usefixtures("short_trials")
def test_a_resumed_fit_knows_the_initializers_of_each_language(tmp_path: Path) -> None:
    aligner = Multi(**{**OPTIONS, "start": "auto", "verdict": "none"})

    def stop(event: Progress) -> None:
        if event.stage == "refine":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        aligner.fit_all(languages(), progress=stop, checkpoint=Checkpoint(tmp_path))
    resumed = aligner.fit_all(languages(), checkpoint=Checkpoint(tmp_path, resume=True))
    for alignment in resumed.alignments.values():
        assert alignment.provenance.initializer == "profiles"
        assert [tried["initializer"] for tried in alignment.provenance.candidates] == ["profiles"]


def test_finished_stages_are_not_repeated(stopped: Path, tmp_path: Path) -> None:
    seen: list[Progress] = []
    Multi(**OPTIONS).fit_all(languages(), hub="c", progress=seen.append, checkpoint=copy_of(stopped, tmp_path))
    # Two of the three dictionaries were finished; the third begins with its first round.
    assert {(event.stage, event.done) for event in seen if event.stage != "verdict"} == {("refine", 5), ("refine", 6)}


def test_a_checkpoint_of_other_languages_is_refused(stopped: Path, tmp_path: Path) -> None:
    checkpoint = copy_of(stopped, tmp_path)
    with pytest.raises(InputError, match="hub was 'c', now 'b'"):
        Multi(**OPTIONS).fit_all(languages(), hub="b", checkpoint=checkpoint)
    with pytest.raises(InputError, match=r"belongs to another run \(.*\ba\b"):
        Multi(**OPTIONS).fit_all({**languages(), "a": languages(noise=0.2)["a"]}, hub="c", checkpoint=checkpoint)
    with pytest.raises(InputError, match=r"config\.joint_epochs was 1, now 2"):
        Multi(**{**OPTIONS, "joint_epochs": 2}).fit_all(languages(), hub="c", checkpoint=checkpoint)


def test_resuming_with_the_languages_in_another_order_is_refused_or_right(stopped: Path, tmp_path: Path) -> None:
    turned = {name: languages()[name] for name in "bac"}
    try:
        result = Multi(**OPTIONS).fit_all(turned, hub="c", checkpoint=copy_of(stopped, tmp_path))
    except InputError:
        return
    assert p1(result, "a", "c") > 0.95


# --------------------------------------------------------------------------- what is refused


def test_bad_parameters_are_refused() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"strategy": "magic"}, "strategy='magic' is not known; expected one of joint, hub"),
        ({"joint_epochs": -1}, "joint_epochs=-1 is out of range; expected 0 to"),
        ({"joint_rate": 0.0}, r"joint_rate=0\.0 is out of range; expected above 0"),
        ({"joint_rate": float("nan")}, "joint_rate=nan is out of range; expected above 0"),
        ({"refine": -1}, "refine=-1 is out of range; expected 0 to"),
        ({"map": "reweighted"}, "map='reweighted': several languages share one space by orthogonal maps only"),
        ({"refine_map": "affine"}, "refine_map='affine' is not known"),
        ({"refine_weights": "cosine"}, "refine_weights='cosine' is not known"),
        ({"order": "alphabetical"}, "order='alphabetical' is not known"),
        ({"start": "lexicon"}, "start='lexicon' needs lexicon"),
        ({"seed": -1}, "seed=-1"),
    ]
    for options, message in cases:
        with pytest.raises(InputError, match=message):
            Multi(**{**OPTIONS, **options}).fit_all(languages())


def test_bad_languages_are_refused() -> None:
    spaces = languages()
    with pytest.raises(InputError, match="hub 'x' is not among the languages a, b, c"):
        Multi(**OPTIONS).fit_all(spaces, hub="x")
    with pytest.raises(InputError, match="1 languages were given; expected at least two"):
        Multi(**OPTIONS).fit_all({"a": spaces["a"]})


@pytest.mark.parametrize("hub", ["a", "b"])
def test_languages_of_different_width_share_the_space_of_the_hub(hub: str) -> None:
    spaces = languages()
    wide = np.linalg.qr(np.random.default_rng(3).standard_normal((15, 15)))[0][:12, :].astype("f4")
    spaces["b"] = Embeddings(spaces["b"].words, spaces["b"].vectors @ wide)
    found = Multi(**OPTIONS).fit_all(spaces, hub=hub)
    common = 15 if hub == "b" else 12
    others = [name for name in spaces if name != hub]
    assert [found.alignments[name].src_map.shape[1] for name in others] == [common, common]
    assert p1(found, *others) > 0.9


def test_no_language_at_all_is_refused() -> None:
    with pytest.raises(InputError, match="0 languages were given"):
        Multi(**OPTIONS).fit_all({})


@pytest.mark.slow
def test_small_languages_are_computed_by_one_thread() -> None:
    options = {**SHARED, "start": "identity", "refine": 1, "verdict": "none"}
    seen: list[int] = []

    def watch(_: Progress) -> None:
        seen.append(arrays.threads())

    for threads, expected in ((None, 1), (2, 2)):
        with arrays.use_threads(2):
            aligner = Multi(**{**options, "threads": threads})
            aligner.fit_all(languages(), hub="c", progress=watch)
        assert set(seen) == {expected}
        seen.clear()
