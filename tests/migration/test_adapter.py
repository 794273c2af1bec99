from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qwp import align
from qwp.errors import InputError
from qwp.migration.adapter import KINDS, Adapter, fit, onnx_model, unit_rows
from qwp.results.alignment import Alignment
from tests.libraries import optional_module
from tests.migration.problems import encoders

TEXTS = encoders()


@pytest.fixture(scope="module")
def alignment() -> Alignment:
    """An alignment that maps both sides, as alignments do by default."""
    pairs = [(f"src:{row}", f"tgt:{row}") for row in range(300)]
    found = align(TEXTS.old, TEXTS.new, lexicon=pairs, order="none", start="lexicon", steps=1, refine=2, verdict="none")
    assert found.tgt_map is not None
    return found


def test_queries_of_the_unchanged_new_model_find_converted_documents(alignment: Alignment) -> None:
    adapter = Adapter.of_alignment(alignment)
    assert adapter.dims == (24, 20)
    assert TEXTS.recall(adapter(TEXTS.old), TEXTS.new) > 0.9
    # The vectors of the common space, which look as if they were migrated, are not found.
    common = alignment.transform(TEXTS.old)
    assert TEXTS.recall(common, TEXTS.new) < 0.5
    back = Adapter.of_alignment(alignment, "tgt")
    assert TEXTS.recall(TEXTS.old, back(TEXTS.new)) > 0.9


def test_alignments_that_connect_nothing_are_refused(alignment: Alignment) -> None:
    failed = replace(alignment, quality=replace(alignment.quality, verdict="failed"))
    with pytest.raises(InputError, match="the alignment failed, so nothing can be converted"):
        Adapter.of_alignment(failed)
    noise = np.random.default_rng(5).standard_normal((600, 24)).astype(np.float32)
    wrong = replace(alignment, src_side=replace(alignment.src_side, source=type(alignment.src)(TEXTS.ids, noise)))
    with pytest.raises(InputError, match=r"test queries found their converted counterpart|mutual pairs"):
        Adapter.of_alignment(wrong)


@pytest.mark.parametrize(("kind", "strength"), [("orthogonal", 0.0), ("ridge", 0.1), ("residual", 4.0)])
def test_every_kind_maps_held_out_texts(kind: str, strength: float) -> None:
    assert kind in KINDS
    adapter = fit(kind, 3 * TEXTS.old[:300], 5 * TEXTS.new[:300], strength)
    mapped = adapter(TEXTS.old)
    np.testing.assert_allclose(np.linalg.norm(mapped, axis=1), 1, atol=1e-5)
    assert TEXTS.recall(mapped[300:], TEXTS.new[300:]) > 0.9
    np.testing.assert_allclose(adapter(7 * TEXTS.old[0]), mapped[0], atol=1e-5)


def test_a_rotation_with_a_shift_is_restored() -> None:
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((24, 24)))[0]
    adapter = fit("orthogonal", TEXTS.old, TEXTS.old @ turn)
    np.testing.assert_allclose(adapter.matrix, turn, atol=1e-4)
    np.testing.assert_allclose(adapter.offset, 0, atol=1e-4)


@pytest.mark.parametrize("suffix", [".npz", ".json"])
def test_a_saved_adapter_is_restored(tmp_path: Path, suffix: str) -> None:
    adapter = fit("ridge", TEXTS.old, TEXTS.new, 0.1)
    loaded = Adapter.load(adapter.save(tmp_path / f"a{suffix}"))
    np.testing.assert_array_equal(loaded(TEXTS.old), adapter(TEXTS.old))
    assert loaded.kind == "ridge"


def test_ten_lines_of_numpy_apply_a_saved_adapter(tmp_path: Path) -> None:
    adapter = fit("orthogonal", TEXTS.old, TEXTS.new)
    stored = np.load(adapter.save(tmp_path / "a.npz"))
    query = TEXTS.old[3] / np.linalg.norm(TEXTS.old[3]) @ stored["matrix"] + stored["offset"]
    np.testing.assert_allclose(query / np.linalg.norm(query), adapter(TEXTS.old[3]), atol=1e-6)


def test_bad_adapters_are_explained(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected one that ends in \.npz, \.json, \.onnx"):
        fit("ridge", TEXTS.old, TEXTS.new).save(tmp_path / "a.bin")
    (tmp_path / "a.npz").write_bytes(b"PK")
    (tmp_path / "a.json").write_text(json.dumps({"matrix": [[1.0]], "kind": "ridge"}))
    (tmp_path / "b.json").write_text(json.dumps({"matrix": [[1.0]], "offset": [1.0, 2.0], "kind": "ridge"}))
    for name in ("a.npz", "a.json", "b.json"):
        with pytest.raises(InputError, match=r"is not an adapter"):
            Adapter.load(tmp_path / name)
    with pytest.raises(InputError, match=r"received vectors of shape \(600, 20\), expected \(24,\)"):
        fit("ridge", TEXTS.old, TEXTS.new)(TEXTS.new)
    assert not unit_rows(np.zeros((2, 3), dtype=np.float32)).any()


onnxruntime: Any = optional_module("onnxruntime")
MODELS = encoders(200)


def test_the_model_holds_the_numbers_of_the_adapter() -> None:
    adapter = fit("orthogonal", MODELS.old, MODELS.new)
    written = onnx_model(adapter.matrix, adapter.offset)
    assert adapter.matrix.astype("<f4").tobytes() in written
    assert adapter.offset.astype("<f4").tobytes() in written
    assert written.count(b"LpNormalization") == 2


@pytest.mark.skipif(onnxruntime is None, reason="not installed: pip install onnxruntime")
def test_onnxruntime_gives_the_vectors_of_numpy(tmp_path: Path) -> None:
    adapter = fit("ridge", MODELS.old, MODELS.new, 0.1)
    session = onnxruntime.InferenceSession(str(adapter.save(tmp_path / "a.onnx")), providers=["CPUExecutionProvider"])
    [found] = session.run(None, {"input": 3 * MODELS.old})
    np.testing.assert_allclose(found, adapter(MODELS.old), atol=1e-5)


def test_a_model_is_written_and_not_read(tmp_path: Path) -> None:
    path = fit("orthogonal", MODELS.old, MODELS.new).save(tmp_path / "a.onnx")
    with pytest.raises(InputError, match=r"a\.onnx is written for other programs; expected .npz or .json"):
        Adapter.load(path)
