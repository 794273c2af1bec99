from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qwp.errors import InputError
from qwp.migration.adapter import Adapter, fit
from qwp.migration.onnx import model
from tests.libraries import optional_module
from tests.migration.problems import encoders

onnxruntime: Any = optional_module("onnxruntime")
TEXTS = encoders(200)


def test_the_model_holds_the_numbers_of_the_adapter() -> None:
    adapter = fit("orthogonal", TEXTS.old, TEXTS.new)
    written = model(adapter.matrix, adapter.offset)
    assert adapter.matrix.astype("<f4").tobytes() in written
    assert adapter.offset.astype("<f4").tobytes() in written
    assert written.count(b"LpNormalization") == 2


@pytest.mark.skipif(onnxruntime is None, reason="not installed: pip install onnxruntime")
def test_onnxruntime_gives_the_vectors_of_numpy(tmp_path: Path) -> None:
    adapter = fit("ridge", TEXTS.old, TEXTS.new, 0.1)
    session = onnxruntime.InferenceSession(str(adapter.save(tmp_path / "a.onnx")), providers=["CPUExecutionProvider"])
    [found] = session.run(None, {"input": 3 * TEXTS.old})
    np.testing.assert_allclose(found, adapter(TEXTS.old), atol=1e-5)


def test_a_model_is_written_and_not_read(tmp_path: Path) -> None:
    path = fit("orthogonal", TEXTS.old, TEXTS.new).save(tmp_path / "a.onnx")
    with pytest.raises(InputError, match=r"a\.onnx is written for other programs; expected .npz or .json"):
        Adapter.load(path)
