"""The result object: its fields and delegations. Other test files cover saving, searching and inducing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from qwp import Alignment, Embeddings, InputError
from qwp.maps.procrustes import orthogonality_error


def without_tgt_map(alignment: Alignment) -> Alignment:
    return replace(alignment, tgt_side=replace(alignment.tgt_side, map=None))


def test_new_vectors_are_mapped_as_the_training_words_were(aligned: Alignment) -> None:
    raw = aligned.src.vectors[5:9]
    by_word = aligned.transform(aligned.src.words[5:9])
    np.testing.assert_array_equal(aligned.transform(raw), by_word)
    np.testing.assert_allclose(aligned.transform(raw[0]), by_word[0], atol=1e-6)
    np.testing.assert_allclose(aligned.transform("s5"), by_word[0], atol=1e-6)
    # The saved means are used, not those of the new vectors: `unit` undoes scaling, but nothing undoes shifting.
    np.testing.assert_allclose(aligned.transform(3.0 * raw), by_word, atol=1e-5)
    assert np.abs(aligned.transform(raw + 0.5) - by_word).max() > 0.05


def test_target_side_is_normalised_and_mapped(aligned: Alignment) -> None:
    rows = np.asarray(aligned.tgt_side.normalization.apply(aligned.tgt.vectors[:4]))
    assert aligned.tgt_map is not None
    np.testing.assert_allclose(aligned.transform(aligned.tgt.words[:4], side="tgt"), rows @ aligned.tgt_map, atol=1e-6)
    # A target space that is the common one is not rotated.
    as_it_is = without_tgt_map(aligned)
    np.testing.assert_array_equal(as_it_is.transform(aligned.tgt.words[:4], side="tgt"), rows)


def test_default_settings_bring_translations_together_in_the_common_space(aligned: Alignment) -> None:
    # Neither map is a rotation; together they map a word next to its translation.
    assert aligned.tgt_map is not None
    assert min(orthogonality_error(matrix) for matrix in (aligned.src_map, aligned.tgt_map)) > 0.1
    names = range(100)
    src, tgt = aligned.transform([f"s{i}" for i in names]), aligned.transform([f"t{i}" for i in names], side="tgt")
    cosine = np.sum(src * tgt, axis=1) / np.linalg.norm(src, axis=1) / np.linalg.norm(tgt, axis=1)
    assert float(cosine.mean()) > 0.95
    # The source map alone is useless.
    alone = without_tgt_map(aligned).translate([f"s{i}" for i in names], k=1)
    assert np.mean([best[0].word == f"t{word[1:]}" for word, best in alone.items()]) < 0.5


def test_mapped_rows_have_unit_length(aligned: Alignment) -> None:
    for side in ("src", "tgt"):
        np.testing.assert_allclose(np.linalg.norm(np.asarray(aligned.mapped(side)), axis=1), 1.0, atol=1e-5)


def test_missing_estimate_is_computed(aligned: Alignment) -> None:
    assert aligned.quality.estimate is not None
    assert aligned.estimate is aligned.quality.estimate
    before = replace(aligned, quality=replace(aligned.quality, estimate=None))
    # The fit used one thread. With other numbers BLAS may round differently, and another pair may be mutual.
    assert before.estimate.overall.p1 == pytest.approx(aligned.estimate.overall.p1, abs=0.01)
    assert before.estimate.n_words == aligned.estimate.n_words
    # It does not depend on the order of the words if the side has an order.
    turned = np.arange(len(aligned.src))[::-1]
    src = Embeddings([aligned.src.words[i] for i in turned], np.asarray(aligned.src.vectors)[turned])
    reversed_side = replace(aligned.src_side, source=src, order=np.argsort(turned))
    again = replace(before, src_side=reversed_side).estimate
    assert again.overall.p1 == pytest.approx(before.estimate.overall.p1, abs=0.01)


def test_vectors_may_come_as_lists(aligned: Alignment) -> None:
    rows = aligned.src.vectors[5:8]
    expected = aligned.transform(rows)
    for given in (rows.tolist(), list(rows), tuple(rows), rows.astype("f8")):
        np.testing.assert_array_equal(aligned.transform(given), expected)
    assert aligned.transform(rows[0].tolist()).shape == (12,)


def test_items_of_other_types_are_refused(aligned: Alignment) -> None:
    neither: list[Any] = [None, 5, ["s1", 2], [["s1"]], [[1.0], [1.0, 2.0]], {"s1": 1}]
    for items in (*neither, np.array([True] * 12), np.array(1.0)):
        with pytest.raises(InputError, match="expected"):
            aligned.transform(items)
        with pytest.raises(InputError, match="expected"):
            aligned.translate(items)


def test_repr(aligned: Alignment) -> None:
    assert repr(aligned) == "Alignment(400 x 12 -> 400 x 12, qwp, succeeded)"
    record = replace(aligned.provenance.src, path="/data/en.vec.gz", name="en", n_words=20_000)
    named = replace(aligned, provenance=replace(aligned.provenance, src=record))
    failed = replace(named, quality=replace(aligned.quality, verdict="failed"))
    assert repr(failed) == "Alignment(en 20,000 x 12 -> 400 x 12, qwp, failed)"


def test_bad_requests_are_explained(aligned: Alignment) -> None:
    with pytest.raises(InputError, match="'nope'"):
        aligned.transform(["s1", "nope"])
    with pytest.raises(InputError, match="k=0"):
        aligned.translate("s1", k=0)
    with pytest.raises(InputError, match="at least one"):
        aligned.translate([])
    with pytest.raises(InputError, match=r"\(3, 5\)"):
        aligned.transform(np.ones((3, 5)))
    with pytest.raises(InputError, match="NaN"):
        aligned.transform(np.full((1, 12), np.nan))
    with pytest.raises(InputError, match="'left'"):
        aligned.mapped("left")  # type: ignore[arg-type]


def test_names_for_the_package_are_not_listed(aligned: Alignment) -> None:
    listed = dir(aligned)
    assert {"translate", "induce", "quality", "src_map", "save", "load", "__init__"} <= set(listed)
    assert not {"inducer", "write_parts", "_csls_k"} & set(listed)
    assert aligned.inducer is not None


def test_a_missing_estimate_is_announced(aligned: Alignment, caplog: pytest.LogCaptureFixture) -> None:
    unjudged = replace(aligned, quality=replace(aligned.quality, estimate=None))
    assert unjudged.estimate is not None
    assert "qwp judges it now" in caplog.text
