"""The benchmarks run, compare like with like and report what they measured. No time is asserted."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks import common, coreset, run, sinkhorn


def test_in_turns_alternates() -> None:
    calls: list[str] = []
    times = common.in_turns({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, 3)
    assert calls == ["a", "b"] * 3
    assert all(len(values) == 3 and min(values) >= 0 for values in times.values())
    assert common.medians({"x": [5.0, 1.0, 2.0]}) == {"x": 2.0}


def test_the_generated_space_is_sound() -> None:
    x = common.clustered_space(300, 20)
    assert x.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), 1.0, atol=1e-5)
    np.testing.assert_array_equal(x, common.clustered_space(300, 20))


def test_a_small_coreset_run() -> None:
    pytest.importorskip("sklearn")
    result = coreset.run(n=300, d=8, k=5, repeats=1)
    assert result["qwp_seconds"] == pytest.approx(result["times"]["qwp"][0] / coreset.BANK_SIZE)
    assert result["ratio"] == pytest.approx(result["sklearn_seconds"] / result["qwp_seconds"])


def test_sinkhorn_is_compared_at_the_same_error() -> None:
    result = sinkhorn.run(ks=(60, 120), repeats=1, d=20)
    assert [case["k"] for case in result["cases"]] == [60, 120]
    for case in result["cases"]:
        assert 0 < case["qwp_error"] <= case["pot_error"]
        assert case["qwp_iterations"] >= 1
        assert case["pot_iterations"] >= 1
        assert case["ratio"] == pytest.approx(case["pot_seconds"] / case["qwp_seconds"])


def test_the_whole_in_quick_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("sklearn")
    output = tmp_path / "results" / "latest.json"
    run.main(["--quick", "--only", "coreset", "sinkhorn", "--output", str(output)])
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == 3
    assert "scikit-learn" in shown[1]
    assert "POT" in shown[2]
    saved = json.loads(output.read_text(encoding="utf-8"))
    assert saved["quick"] is True
    assert set(saved) == {"quick", "machine", "coreset", "sinkhorn"}
    assert [path.name for path in output.parent.iterdir()] == ["latest.json"]


def test_an_interrupted_save_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run.save({"x": 1}, tmp_path / "latest.json")
    assert list(tmp_path.iterdir()) == []
