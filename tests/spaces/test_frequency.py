"""The order of a vocabulary: checked, estimated, and without effect on correct results.

The synthetic spaces have the traces of frequency of real vectors: frequent words have longer vectors, and a larger
share of them along the first principal axes.
"""

from __future__ import annotations

import logging
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

import qwp
from qwp import Alignment, Embeddings, InputError, Lexicon, arrays
from qwp.arrays import Ints
from qwp.methods import Aligner, make_aligner
from qwp.methods.compositions import Identical, Procrustes
from qwp.results.checkpoints import Checkpoint
from qwp.showing.events import Progress
from qwp.spaces import io
from qwp.spaces.frequency import RULES, OrderRules, orders, orders_of_items
from qwp.stages.problem import Prepare, PreparedSpace
from tests.libraries import as_strict, assert_close, assert_same
from tests.problems import Array, rotation

N, DIM = 1200, 30
FEWEST_WORDS = RULES.min_words
# The verdict takes most of the time of these fits.
EXACT: dict[str, Any] = {"threads": 1, "dtype": "float64", "verdict": "none"}


WARNING = "do not all seem to be sorted by frequency"


def with_traces(n: int, d: int, seed: int, *, length: float = 0.6, concentration: float = 2.0) -> Array:
    """Return rows from frequent to rare (n, d). Their length, and their share along eight axes, decreases with rank."""
    rng = np.random.default_rng(seed)
    frequent = 1.0 - np.arange(n) / n
    rows = rng.standard_normal((n, d))
    rows[:, :8] *= (1.0 + concentration * frequent)[:, None]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows *= np.exp(length * frequent + 0.3 * (length > 0) * rng.standard_normal(n))[:, None]
    return np.asarray(rows @ rotation(d, seed), dtype="f4")


def shuffled(space: Array, seed: int) -> tuple[Array, Ints]:
    """Return the rows in random order, and their original ranks."""
    ranks = np.random.default_rng(seed).permutation(len(space))
    return space[ranks], ranks


def likeness(order: Ints | None, ranks: Ints) -> float:
    """Return the Spearman correlation of an estimated order with the true ranks of the rows."""
    assert order is not None
    return float(spearmanr(ranks[order], np.arange(len(ranks)))[0])


def is_permutation(order: Ints | None, n: int) -> bool:
    return order is not None and np.array_equal(np.sort(order), np.arange(n))


# --------------------------------------------------------------------------- checking the order


@pytest.mark.parametrize("seed", range(1))
@pytest.mark.parametrize(
    "traces",
    [{}, {"length": 0.0}, {"concentration": 0.0}],
    ids=["both traces", "concentration alone", "length alone"],
)
def test_ordered_spaces_keep_their_order(traces: dict[str, float], seed: int) -> None:
    spaces = [with_traces(N, DIM, seed + more, **traces) for more in (0, 100, 200)]
    assert orders(spaces[:2]) == [None, None]
    assert orders(spaces) == [None, None, None]
    assert orders(spaces[:1]) == [None]


@pytest.mark.parametrize("seed", range(1))
@pytest.mark.parametrize("n", [FEWEST_WORDS, N, 4500])
def test_the_estimated_order_of_a_shuffled_space_correlates_with_the_truth(n: int, seed: int) -> None:
    ordered = with_traces(n, DIM, seed + 100)
    mixed, ranks = shuffled(with_traces(n, DIM, seed), seed)
    for spaces, at in (([mixed, ordered], 0), ([ordered, mixed], 1)):
        found = orders(spaces)
        assert is_permutation(found[at], n)
        assert likeness(found[at], ranks) > 0.5
        # The order of the other one is estimated too, by the same rule.
        assert is_permutation(found[1 - at], n)
        assert likeness(found[1 - at], np.arange(n)) > 0.5


@pytest.mark.parametrize("seed", range(1))
def test_if_both_spaces_are_shuffled_both_orders_are_estimated(seed: int) -> None:
    sides = [shuffled(with_traces(N, DIM, seed + more), seed + more) for more in (0, 100)]
    found = orders([space for space, _ in sides])
    for order, (_, ranks) in zip(found, sides, strict=True):
        assert is_permutation(order, N)
        assert likeness(order, ranks) > 0.5


@pytest.mark.parametrize("seed", range(1))
@pytest.mark.parametrize(
    ("traces", "beside_ordered", "alone"),
    [({}, 0.6, 0.6), ({"length": 0.0}, 0.6, 0.5), ({"concentration": 0.0}, 0.3, 0.15)],
    ids=["both traces", "concentration alone", "length alone"],
)
def test_a_vocabulary_sorted_by_ascending_frequency_is_reversed(
    traces: dict[str, float], beside_ordered: float, alone: float, seed: int
) -> None:
    # Its correlation with frequency is as strong as that of an ordered one, with the opposite sign.
    ordered, other = (with_traces(N, DIM, seed + more, **traces) for more in (100, 0))
    rare_first, ranks = other[::-1], np.arange(N)[::-1]
    for spaces, at, needed in (
        ([rare_first, ordered], 0, beside_ordered),
        ([ordered, rare_first], 1, beside_ordered),
        ([rare_first, ordered[::-1]], 0, alone),
        ([rare_first], 0, alone),
    ):
        found = orders(spaces)
        assert is_permutation(found[at], N)
        assert likeness(found[at], ranks) > needed


def test_only_the_space_sorted_by_ascending_frequency_is_reversed() -> None:
    ordered, other = with_traces(N, DIM, 100), with_traces(N, DIM, 0)
    kept, turned = orders([ordered, other[::-1]])
    assert kept is None
    assert_same(turned, np.arange(N)[::-1])


def test_real_vectors_sorted_by_ascending_frequency_are_reversed() -> None:
    en, es = (io.load(Path(qwp.__file__).parent / "data" / "demo" / f"{name}.npz").vectors for name in ("en", "es"))
    assert orders([en, es]) == [None, None]
    ranks = np.arange(len(en))[::-1]
    for other in (es, es[::-1]):
        assert_same(orders([en[::-1], other])[0], ranks)


def test_translations_get_similar_ranks() -> None:
    # The purpose of the estimate: after any two shuffles a word and its translation get similar ranks.
    space = with_traces(N, DIM, 0)
    (src, src_ranks), (tgt, tgt_ranks) = shuffled(space, 1), shuffled(space @ rotation(DIM, 9), 2)
    by_src, by_tgt = orders([src, tgt])
    assert by_src is not None
    assert by_tgt is not None
    # Not the same order, because each side has its own reference words.
    shared = set(src_ranks[by_src][:300].tolist()) & set(tgt_ranks[by_tgt][:300].tolist())
    assert len(shared) > 200  # 75 by chance


def test_equal_lengths_do_not_count_as_ordered() -> None:
    # Ties ranked by position would correlate perfectly with it.
    signs = [np.sign(np.random.default_rng(seed).standard_normal((N, 16))).astype("f4") for seed in (0, 1)]
    assert len(set(np.linalg.norm(signs[0], axis=1).tolist())) == 1
    found = orders(signs)
    assert all(is_permutation(order, N) for order in found)
    assert likeness(found[0], np.arange(N)) < 0.5


@pytest.mark.parametrize("space", [np.zeros((600, 5)), np.ones((600, 5)), np.eye(600)[:, :3]], ids=["0", "1", "few"])
def test_spaces_without_traces_raise_no_warning(space: Array) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for dtype in ("f4", "f8"):
            found = orders([space.astype(dtype), with_traces(600, 5, 0)])
            assert all(is_permutation(order, 600) for order in found)


def test_small_vocabularies_keep_their_order() -> None:
    few, _ = shuffled(with_traces(FEWEST_WORDS - 1, DIM, 0), 0)
    many, ranks = shuffled(with_traces(N, DIM, 1), 1)
    assert orders([few, few]) == [None, None]
    assert orders([few, with_traces(N, DIM, 2)]) == [None, None]
    # A small vocabulary keeps its order also next to a shuffled one.
    short, long = orders([few, many])
    assert short is None
    assert likeness(long, ranks) > 0.5


@given(n=st.integers(FEWEST_WORDS, 700), m=st.integers(1, 700), d=st.integers(1, 60), seed=st.integers(0, 2**31 - 1))
@settings(max_examples=25)
def test_estimated_orders_are_permutations_of_the_rows(n: int, m: int, d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = orders([rng.standard_normal((n, d)), rng.standard_normal((m, d))], seed=seed)
    assert first is None or is_permutation(first, n)
    assert second is None or is_permutation(second, m)
    assert m >= FEWEST_WORDS or second is None


def test_the_same_seed_gives_the_same_orders() -> None:
    mixed, _ = shuffled(with_traces(N, DIM, 0), 0)
    spaces = [mixed, with_traces(N, DIM, 1)]
    one, same, other = (orders(spaces, seed=seed) for seed in (3, 3, 4))
    for a, b, c in zip(one, same, other, strict=True):
        assert a is not None
        assert c is not None
        assert_same(a, b)
        # Another seed has other reference words and gives nearly the same order.
        assert not np.array_equal(a, c)
        assert float(spearmanr(np.argsort(a), np.argsort(c))[0]) > 0.95


def test_rotation_and_scale_do_not_change_the_estimate() -> None:
    # In float64, so that rounding does not exchange words.
    mixed = shuffled(with_traces(N, DIM, 0), 0)[0].astype("f8")
    expected = orders([mixed, mixed])[0]
    for same in (mixed @ rotation(DIM, 5), 7.0 * mixed):
        found = orders([same, same])[0]
        assert found is not None
        assert expected is not None
        assert np.mean(found == expected) > 0.99


# --------------------------------------------------------------------------- in a fit


def planted(seed: int = 0, *, shuffle: str = "tgt", noise: float = 0.0) -> tuple[Embeddings, Embeddings, Array]:
    """Return source words "s<rank>", rotated copies "t<rank>", and the rotation. shuffle: src, tgt, both or none."""
    rng = np.random.default_rng(seed)
    rows, w = with_traces(N, DIM, seed).astype("f8"), rotation(DIM, seed + 40)
    blur = noise * np.linalg.norm(rows, axis=1, keepdims=True) * rng.standard_normal(rows.shape) / DIM**0.5
    sides = []
    for name, vectors in (("src", rows), ("tgt", (rows + blur) @ w)):
        order = rng.permutation(N) if shuffle in (name, "both") else np.arange(N)
        sides.append(Embeddings([f"{name[0]}{i}" for i in order], vectors[order].astype("f4")))
    return sides[0], sides[1], w


def seeds(n: int = 100, first: int = 0, tgt: str = "t") -> Lexicon:
    return Lexicon(tuple((f"s{i}", f"{tgt}{i}") for i in range(first, first + n)))


def prepared(*spaces: Embeddings, order: str = "auto") -> list[PreparedSpace]:
    """Return the spaces as a fit prepares them."""
    return Prepare(order=order, dtype="float64").spaces(spaces, arrays.HOST, seed=0)


def p1(aligner: Aligner) -> float:
    """Return the share of source words s<i> whose nearest target word is t<i>."""
    found = aligner.alignment_.translate(aligner.alignment_.src.words, k=1, retrieval="nn")
    return float(np.mean([best[0].word[1:] == word[1:] for word, best in found.items()]))


def test_prepared_spaces_map_rows_to_positions() -> None:
    src, tgt, _ = planted(shuffle="both")
    for given_side, space in zip(prepared(src, tgt), (src, tgt), strict=True):
        assert given_side.order is None
        side = given_side.in_estimated_order()
        assert is_permutation(side.order, N)
        assert side.order is not None
        rows = np.asarray(side.normalization.apply(space.vectors.astype("f8")))
        assert_close(side.vectors, rows[side.order], atol=1e-12)
        some = np.array([7, 0, N - 1, 7])
        assert_close(side.vectors[side.positions(some)], rows[some], atol=1e-12)
        assert side.space is space
    for side in prepared(src, tgt, order="given"):
        assert side.order is None
        assert side.positions(some) is some


@pytest.mark.parametrize("shuffle", ["tgt", "both"])
def test_a_lexicon_gives_the_map_in_any_order(shuffle: str, caplog: pytest.LogCaptureFixture) -> None:
    src, tgt, w = planted(shuffle=shuffle)
    with caplog.at_level(logging.WARNING, logger="qwp"):
        aligner = Procrustes(**EXACT).fit(src, tgt, lexicon=seeds())
    assert (WARNING in caplog.text) == (shuffle != "none")
    assert_close(aligner.map_, w, atol=1e-4)
    # The result has the words in file order.
    assert aligner.alignment_.src.words == src.words
    assert aligner.alignment_.tgt.words == tgt.words
    assert_same(aligner.alignment_.tgt.vectors, tgt.vectors)
    assert p1(aligner) == 1.0
    caplog.clear()
    kept = Procrustes(order="given", **EXACT).fit(src, tgt, lexicon=seeds())
    assert WARNING not in caplog.text
    assert_close(aligner.map_, kept.map_, atol=1e-10)
    # The provenance records the order.
    assert aligner.alignment_.provenance.order == ("given" if shuffle == "none" else "estimated")
    assert kept.alignment_.provenance.order == "given"


@pytest.mark.parametrize("shuffle", ["both"])
def test_identical_strings_give_the_map_in_any_order(shuffle: str) -> None:
    src, tgt, w = planted(shuffle=shuffle)
    # Every fifth word has the same spelling on both sides.
    alike = {f"t{i}": f"s{i}" for i in range(0, N, 5)}
    tgt = Embeddings([alike.get(word, word) for word in tgt.words], tgt.vectors)
    aligner = Identical(refine=0, **EXACT).fit(src, tgt)
    assert_close(aligner.map_, w, atol=1e-4)
    assert p1(aligner) == 1.0


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("least-squares", {}),
        ("rcsls", {"steps": 2}),
        ("proc-b", {"rounds": 2, "growth": 50}),
        ("self-learning", {"start": "lexicon", "max_steps": 3}),
        ("qwp", {"start": "lexicon", "coreset_size": 50, "bank_size": 2, "epochs": 1, "steps": 2, "refine": 1}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_every_method_with_a_lexicon_handles_shuffled_words(method: str, options: dict[str, Any]) -> None:
    src, tgt, _ = planted(shuffle="both")
    aligner = make_aligner(method, threads=1, device="cpu", backend="numpy", verdict="quick", **options).fit(
        src, tgt, lexicon=seeds()
    )
    assert p1(aligner) > 0.95
    assert aligner.quality_.verdict == "succeeded"


def test_the_given_order_is_kept_on_request(caplog: pytest.LogCaptureFixture) -> None:
    src, tgt, _ = planted(shuffle="both", noise=0.5)
    options: dict[str, Any] = {"refine": 1, "refine_words": 200, "refine_directions": "forward", **EXACT}
    auto, kept = (Procrustes(order=order, **options).fit(src, tgt, lexicon=seeds()) for order in ("auto", "given"))
    # Other 200 words give another dictionary.
    assert np.abs(auto.map_ - kept.map_).max() > 0.01
    assert kept.alignment_.provenance.config["order"] == "given"
    # Compare with the first 200 rows in file order.
    cut = [Embeddings(side.words[:200], side.vectors[:200]) for side in (src, tgt)]
    sides = prepared(src, tgt, order="given")
    for side, first in zip(sides, cut, strict=True):
        rows = np.asarray(side.normalization.apply(first.vectors.astype("f8")))
        assert_close(side.vectors[:200], rows, atol=1e-12)


@pytest.mark.parametrize("seed", range(1))
def test_an_estimated_order_finds_the_words_that_both_sides_share(seed: int) -> None:
    # Only frequent words have translations: a dictionary of 500 random words is mostly wrong.
    shared, w = 500, rotation(DIM, 3)
    rng = np.random.default_rng(seed)
    src, other = (with_traces(1500, DIM, seed + more).astype("f8") for more in (0, 50))
    tgt = np.vstack([src[:shared], other[shared:]])
    tgt = (tgt + 0.3 / DIM**0.5 * np.linalg.norm(tgt, axis=1, keepdims=True) * rng.standard_normal(tgt.shape)) @ w
    spaces = []
    for name, vectors in (("s", src), ("t", tgt)):
        order = rng.permutation(1500)
        spaces.append(Embeddings([f"{name}{i}" for i in order], vectors[order].astype("f4")))
    error = {}
    for kind in ("auto", "given"):
        aligner = Procrustes(order=kind, refine=5, refine_words=500, **EXACT).fit(*spaces, lexicon=seeds(40))
        error[kind] = float(np.linalg.norm(aligner.map_ - w))
    # Measured: 1.7 to 1.8 and 3.1 to 3.3.
    assert error["auto"] < 0.7 * error["given"]


def test_an_interrupted_run_in_an_estimated_order_resumes_to_the_same_bytes(tmp_path: Path) -> None:
    src, tgt, _ = planted(shuffle="both", noise=0.5)
    aligner = Procrustes(
        refine=3, refine_first_words=200, refine_map="reweighted", map="reweighted", threads=1, verdict="none"
    )

    def interrupt(event: Progress) -> None:
        if (event.stage, event.done) == ("refine", 2):
            raise KeyboardInterrupt

    whole = aligner.fit(src, tgt, lexicon=seeds()).alignment_
    with pytest.raises(KeyboardInterrupt):
        aligner.fit(src, tgt, lexicon=seeds(), progress=interrupt, checkpoint=Checkpoint(tmp_path))
    resumed = aligner.fit(src, tgt, lexicon=seeds(), checkpoint=Checkpoint(tmp_path, resume=True)).alignment_
    for side in ("src", "tgt"):
        assert_same(resumed.mapped(side), whole.mapped(side))
    # The provenance records the estimated order, and a saved file restores it.
    again = Alignment.load(resumed.save(tmp_path / "saved"))
    assert [found.provenance.order for found in (whole, resumed, again)] == ["estimated"] * 3
    assert resumed.history == whole.history
    # A checkpoint of rows in one order cannot be used with another.
    with pytest.raises(InputError, match=r"config\.order was 'auto', now 'given'"):
        aligner.set_params(order="given").fit(src, tgt, lexicon=seeds(), checkpoint=Checkpoint(tmp_path, resume=True))


# --------------------------------------------------------------------------- invalid arguments


def test_an_unknown_order_is_refused() -> None:
    src, tgt, _ = planted()
    with pytest.raises(InputError, match="order='alphabetical' is not known; expected one of auto, given"):
        Procrustes(order="alphabetical").fit(src, tgt, lexicon=seeds())


@pytest.mark.parametrize(
    ("seed", "message"),
    [
        (-1, "seed=-1 is out of range; expected 0 to 9,223,372,036,854,775,807"),
        (1.5, r"seed=1\.5 \(float\) has another type than expected: a whole number, 0 to"),
    ],
)
def test_an_invalid_seed_is_explained_before_the_order_is_estimated(seed: Any, message: str) -> None:
    src, tgt, _ = planted()
    with pytest.raises(InputError, match=message):
        Procrustes(seed=seed).fit(src, tgt, lexicon=seeds())


def test_a_lexicon_decides_between_the_given_and_the_estimated_order() -> None:
    src, tgt, _ = planted(shuffle="none")
    doubted = [np.random.default_rng(1).permutation(N) for _ in range(2)]
    sides = [replace(side, estimate=order) for side, order in zip(prepared(src, tgt), doubted, strict=True)]

    def chosen(lexicon: Lexicon) -> str:
        return Prepare(dtype="float64").problem(sides, seed=0, lexicon=lexicon).views[0].order

    right = Lexicon(tuple((src.words[i], tgt.words[i]) for i in range(0, N, 3)))  # pairs of equal rank as given
    assert chosen(right) == "given"
    wrong = Lexicon(tuple((src.words[i], tgt.words[j]) for i, j in list(zip(*doubted, strict=True))[::3]))
    assert chosen(wrong) == "estimated"
    assert chosen(Lexicon(right.pairs[:20])) == "estimated", "too few pairs to decide"


@pytest.mark.parametrize("block", [300, 10**9])
def test_blocks_and_libraries_hardly_change_an_estimate(block: int) -> None:
    spaces = [shuffled(with_traces(N, DIM, seed), seed)[0].astype("f8") for seed in (0, 1)]
    expected = orders_of_items(spaces)
    torch = pytest.importorskip("torch")
    for library in (as_strict, torch.asarray):
        found = orders_of_items([library(space) for space in spaces], rules=OrderRules(block=block))
        for one, other in zip(found, expected, strict=True):
            assert one is not None
            assert other is not None
            # Sums in another order move a word by two ranks at most.
            assert spearmanr(np.argsort(one), np.argsort(other)).statistic > 0.9999
