from __future__ import annotations

import json
import struct
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


def test_the_library_reads_files_of_qwp(tmp_path: Path) -> None:
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
def test_another_number_of_words_is_refused(tmp_path: Path, words: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load(put(tmp_path, words, np.ones((2, 2))))


def test_a_missing_or_broken_word_file(tmp_path: Path) -> None:
    path = put(tmp_path, {}, np.ones((2, 2)))
    (tmp_path / "x.json").write_text("{")
    with pytest.raises(InputError, match="is not JSON"):
        load(path)
    (tmp_path / "x.json").unlink()
    with pytest.raises(InputError, match=r"words .* are missing, expected .*x\.json"):
        load(path)


def test_other_tensors_are_explained(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds the tensors weight, expected one named vectors"):
        load(put(tmp_path, {"words": ["a"]}, np.ones((1, 2)), name="weight"))
    with pytest.raises(InputError, match=r"I64 of shape \(1, 2\)"):
        load(put(tmp_path, {"words": ["a"]}, np.ones((1, 2), dtype=np.int64)))


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
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


def raw(
    tmp_path: Path, header: bytes | dict[str, object], data: bytes = b"", words: bytes = b'{"words": ["a", "b"]}'
) -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path = tmp_path / "x.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    (tmp_path / "x.json").write_bytes(words)
    return path


def tensor(shape: object = (2, 1), offsets: object = (0, 8), dtype: object = "F32") -> dict[str, object]:
    return {"vectors": {"dtype": dtype, "shape": shape, "data_offsets": offsets}}


DAMAGED: list[bytes | dict[str, object]] = [
    b"{",
    b"{}}",
    b"[" * 5000,
    b'{"vectors":' * 5000,
    b'{"vectors": ' + b"1" * 5000 + b"}",
    b'{"vectors": 1e5}',
    b'{"vectors": [], "vectors": []}',
    b'{"vectors": {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8], "data_offsets": [0, 8]}}',
    b'{"vectors": "\xff"}',
    tensor(offsets=(0, 4)),
    tensor(offsets=(4, 8)),
    tensor(offsets=(8, 0)),
    tensor(offsets=(0, 80)),
    tensor(offsets=(0.0, 8)),
    tensor(offsets=(-8, 8)),
    tensor(offsets=None),
    tensor(shape=None),
    tensor(shape=(2, True)),
    tensor(shape=(1000000000, 300)),
    tensor(shape=(1000000000, 300), offsets=(0, 1200000000000)),
    {**tensor(), "other": {"data_offsets": [8, 99]}},
    {**tensor(), "other": 5},
]


def test_damaged_headers(tmp_path: Path) -> None:
    for header in DAMAGED:
        path = raw(tmp_path, header, bytes(8))
        with pytest.raises(InputError, match="is a damaged safetensors file"):
            load(path, format="safetensors")


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (
            tensor(dtype="BOOL", offsets=(0, 2)),
            r"is BOOL of shape \(2, 1\), expected one of F16, BF16, F32, F64, I8, U8",
        ),
        (tensor(dtype="I64", offsets=(0, 16)), r"is I64 of shape \(2, 1\)"),
        (tensor(dtype=7), "is nothing of shape"),
        (tensor(dtype=["F32"]), "is nothing of shape"),
        (tensor(shape=(2, 1, 1)), r"of shape \(2, 1, 1\)"),
        (tensor(shape=(2, 0), offsets=(0, 0)), r"of shape \(2, 0\)"),
        ({"__metadata__": {"vectors": "x"}}, "holds the tensors nothing"),
        (b"[1, 2]", "holds the tensors nothing"),
    ],
)
def test_other_contents_are_refused(tmp_path: Path, header: bytes | dict[str, object], message: str) -> None:
    places = header.get("vectors", {}) if isinstance(header, dict) else {}
    size = places["data_offsets"][1] if isinstance(places, dict) and places else 0
    with pytest.raises(InputError, match=message):
        load(raw(tmp_path, header, bytes(size)), format="safetensors")


def test_impossible_lengths_are_refused(tmp_path: Path) -> None:
    path = raw(tmp_path, tensor(), bytes(8))
    whole = path.read_bytes()
    for length in (0, 1, len(whole), 2**40, 2**64 - 1):
        path.write_bytes(struct.pack("<Q", length) + whole[8:])
        with pytest.raises(InputError, match=r"its header claims \d+ bytes"):
            load(path, format="safetensors")
    path.write_bytes(b"\0\0")
    with pytest.raises(InputError, match="its header claims 0 bytes"):
        load(path, format="safetensors")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (b"[" * 100_000, "nested more than 64 deep"),
        (b'{"words": ["a", "b"], "count": ' + b"9" * 10_000 + b"}", "a number has 10000 digits"),
        (b'{"words": ["a", "b"], "words": ["c", "d"]}', "the name 'words' occurs more than once"),
        (b'{"words": ["a", "\xff"]}', "can.t decode byte"),
        (b'{"words": ["a", "b"]', "is not JSON"),
        (b'{"words": {"a": 1}}', "no list of strings"),
    ],
)
def test_damaged_words(tmp_path: Path, words: bytes, message: str) -> None:
    with pytest.raises(InputError, match=rf"x\.json .*{message}"):
        load(raw(tmp_path, tensor(), bytes(8), words))


def test_half_a_surrogate_pair_is_refused(tmp_path: Path) -> None:
    path = raw(tmp_path, tensor((3, 1), (0, 12)), bytes(12), rb'{"words": ["a", "x\ud800", "\ud83d\ude00"]}')
    with pytest.raises(InputError, match=r"row 2 of .* half of a surrogate pair"):
        load(path)
    assert load(path, errors="skip").words == ["a", "😀"]


def test_a_sidecar_far_too_large_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"x\.json has .* bytes, expected at most .* for 2 words"):
        load(raw(tmp_path, tensor(), bytes(8), b'{"words": ["a", "b"]}' + b" " * (18 << 20)))


def test_long_words_are_restored(tmp_path: Path) -> None:
    words = ["\x01" * 65535, "😀" * 16383]
    with open_writer(tmp_path / "x.safetensors", 1) as writer:
        writer.write(words, np.ones((2, 1)))
    assert load(tmp_path / "x.safetensors").words == words


@pytest.mark.parametrize(
    ("kind", "rows"),
    [
        ("BF16", np.array([[0x3FC0], [0xC000]], "<u2")),  # 1.5 and -2
        ("I8", np.array([[3], [-4]], "i1")),
        ("U8", np.array([[3], [200]], "u1")),
    ],
)
def test_small_number_types_are_read(tmp_path: Path, kind: str, rows: np.ndarray) -> None:
    entry = {"dtype": kind, "shape": [2, 1], "data_offsets": [0, rows.nbytes]}
    header = json.dumps({"vectors": entry}).encode()
    (tmp_path / "x.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + rows.tobytes())
    (tmp_path / "x.json").write_text('{"words": ["a", "b"]}')
    expected = [[1.5], [-2.0]] if kind == "BF16" else rows.tolist()
    assert load(tmp_path / "x.safetensors").vectors.tolist() == expected
