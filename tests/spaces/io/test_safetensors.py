from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from qwp.errors import InputError
from qwp.spaces.io import load, open_writer, sniff


def put(tmp_path: Path, words: object, vectors: np.ndarray, name: str = "vectors") -> Path:
    path = tmp_path / "x.safetensors"
    save_file({name: vectors}, path)
    (tmp_path / "x.json").write_text(json.dumps(words))
    return path


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_files_of_the_library_are_read(tmp_path: Path, dtype: str) -> None:
    path = put(tmp_path, {"words": ["a", "b"], "more": 1}, np.array([[1, 2], [3, 4]], dtype=dtype))
    assert sniff(path) == "safetensors"
    found = load(path)
    assert found.words == ["a", "b"]
    assert found.vectors.dtype == np.float32
    assert found.vectors.tolist() == [[1, 2], [3, 4]]


def test_the_library_reads_what_is_written(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    with open_writer(path, 2) as writer:
        writer.write(['"a\n'], np.array([[1, 2]]))
        writer.write(["日本"], np.array([[3, 4]]))
    assert load_file(path)["vectors"].tolist() == [[1, 2], [3, 4]]
    assert json.loads((tmp_path / "x.json").read_bytes())["words"] == ['"a\n', "日本"]
    assert load(path).words == ['"a\n', "日本"]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["x.json", "x.safetensors"]


def test_max_vocab_and_bad_rows(tmp_path: Path) -> None:
    vectors = np.array([[1, 2], [3, 4], [np.nan, 1]], dtype=np.float32)
    path = put(tmp_path, {"words": ["a", "b", "c"]}, vectors)
    found = load(path, max_vocab=2)
    assert found.words == ["a", "b"]
    assert found.report is not None
    assert found.report.complete is False
    with pytest.raises(InputError, match=r"row 3 of .* holds nan as number 1"):
        load(path)
    assert load(path, errors="skip").words == ["a", "b"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"words": ["a"]}, "holds 1 words and .* 2 vectors"),
        ({"vocab": ["a", "b"]}, 'no list of strings "words"'),
        ({"words": [1, 2]}, 'no list of strings "words"'),
        (["a", "b"], 'no list of strings "words"'),
    ],
)
def test_words_that_do_not_fit(tmp_path: Path, words: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load(put(tmp_path, words, np.ones((2, 2))))


def test_a_missing_or_broken_word_file(tmp_path: Path) -> None:
    path = put(tmp_path, {}, np.ones((2, 2)))
    (tmp_path / "x.json").write_text("{")
    with pytest.raises(InputError, match="is not JSON"):
        load(path)
    (tmp_path / "x.json").unlink()
    with pytest.raises(InputError, match=r"words .* are missing: expected .*x\.json"):
        load(path)


def test_other_tensors_are_explained(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds the tensors weight, expected one named vectors"):
        load(put(tmp_path, {"words": ["a"]}, np.ones((1, 2)), name="weight"))
    with pytest.raises(InputError, match=r"I64 of shape \(1, 2\)"):
        load(put(tmp_path, {"words": ["a"]}, np.ones((1, 2), dtype=np.int64)))


def test_a_cut_file(tmp_path: Path) -> None:
    path = put(tmp_path, {"words": ["a", "b"]}, np.ones((2, 2)))
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(InputError, match="damaged safetensors"):
        load(path)


def test_another_json_file_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"settings": 1}')
    with (
        pytest.raises(InputError, match="would be overwritten"),
        open_writer(tmp_path / "x.safetensors", 1) as writer,
    ):
        writer.write(["a"], np.ones((1, 1)))
    assert (tmp_path / "x.json").read_text() == '{"settings": 1}'
    assert [file.name for file in tmp_path.iterdir()] == ["x.json"]
