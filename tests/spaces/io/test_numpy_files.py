from __future__ import annotations

import gzip
import io
import struct
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from qwp import Embeddings
from qwp.errors import InputError
from qwp.spaces.io import load, open_writer, save, sniff, stream
from qwp.spaces.io.numpy_files import read_header
from qwp.spaces.limits import UnpackLimits
from tests.spaces.io.test_sources import read_with

# --------------------------------------------------------------------------- .npz


def test_numpy_archives_are_read(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    vectors = np.arange(6.0).reshape(3, 2)
    for save_arrays in (np.savez, np.savez_compressed):
        for matrix in (vectors, vectors.astype(np.float16), np.asfortranarray(vectors), vectors.astype(int)):
            for words in (np.array(["a", "bé", "c"]), np.array([b"a", "bé".encode(), b"c"])):
                save_arrays(path, words=words, vectors=matrix, other=np.zeros(1))
                found = load(path)
                assert sniff(path) == "npz"
                assert found.words == ["a", "bé", "c"]
                assert found.vectors.dtype == np.float32
                assert np.array_equal(found.vectors, vectors)


def test_numpy_reads_files_of_qwp(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    with open_writer(path, 2) as writer:
        writer.write(["a"], np.array([[1, 2]]))
        writer.write(["日本", "c"], np.array([[3, 4], [5, 6]]))
    with np.load(path) as archive:
        assert archive["words"].tolist() == ["a", "日本", "c"]
        assert archive["vectors"].dtype == np.float32
        assert archive["vectors"].tolist() == [[1, 2], [3, 4], [5, 6]]


def test_bad_rows(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, words=np.array(["a", "b", "", "d"]), vectors=np.array([[1, 2], [np.inf, 1], [1, 1], [3, 4]]))
    with pytest.raises(InputError, match=r"row 2 of .* holds inf as number 1"):
        load(path)
    found = load(path, errors="skip")
    assert found.words == ["a", "d"]
    assert found.report is not None
    assert found.report.skipped == 2


def test_max_vocab_reads_only_what_is_needed(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    vectors = np.ones((5, 2))
    vectors[3:] = np.nan
    np.savez(path, words=np.array(["a", "a", "b", "c", "d"]), vectors=vectors)
    found = load(path, max_vocab=2)
    assert found.words == ["a", "b"]
    assert found.report is not None
    assert (found.report.complete, found.report.duplicates) == (False, 1)


def test_float64_is_preserved_on_request(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, words=np.array(["a"]), vectors=np.array([[0.1]]))
    assert load(path, dtype="float64").vectors[0, 0] == 0.1
    assert load(path).vectors[0, 0] == np.float32(0.1)


def test_missing_names_are_listed(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, vocab=np.array(["a"]), matrix=np.ones((1, 2)))
    with pytest.raises(InputError, match="holds matrix, vocab, expected the arrays words and vectors"):
        load(path)


def test_objects_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, words=np.array(["a", "b"], dtype=object), vectors=np.ones((2, 2)))
    with pytest.raises(InputError, match="pickle"):
        load(path)


@pytest.mark.parametrize(
    ("words", "vectors", "message"),
    [
        (np.array(["a"]), np.ones((2, 2)), "1 words and 2 vectors"),
        (np.array(["a", "b"]), np.ones(2), r"of shape \(2,\), expected real numbers"),
        (np.array([1, 2]), np.ones((2, 2)), "expected strings"),
        (np.array(["a", "b"]), np.ones((2, 2), dtype=complex), "complex128"),
        (np.empty(0, dtype="U1"), np.ones((0, 2)), r"shape \(0, 2\)"),
    ],
)
def test_other_arrays_are_explained(tmp_path: Path, words: np.ndarray, vectors: np.ndarray, message: str) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, words=words, vectors=vectors)
    with pytest.raises(InputError, match=message):
        load(path)


def test_damaged_archives(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez_compressed(path, words=np.array(["a", "b"]), vectors=np.random.default_rng(0).random((2, 500)))
    whole = path.read_bytes()
    path.write_bytes(whole[:-40])
    with pytest.raises(InputError, match="damaged or truncated npz"):
        load(path)
    broken = bytearray(whole)
    broken[len(whole) // 2] ^= 0xFF
    path.write_bytes(bytes(broken))
    with pytest.raises(InputError, match="damaged or truncated npz"):
        load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("words.npy", b"no array")
        archive.writestr("vectors.npy", b"no array")
    with pytest.raises(InputError, match="is not a NumPy array"):
        load(path)


@pytest.mark.parametrize("word", ["", "a\0", "\ud800"])
def test_words_that_the_format_cannot_hold_are_refused(tmp_path: Path, word: str) -> None:
    with pytest.raises(InputError, match="word"), open_writer(tmp_path / "x.npz", 1) as writer:
        writer.write([word], np.ones((1, 1)))
    assert list(tmp_path.iterdir()) == []


def npy(descr: str, shape: str, data: bytes = b"", *, fortran: str = "False", version: int = 1) -> bytes:
    header = f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n".encode()
    size = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + size + header + data


WORDS = npy("'<U1'", "(2,)", "ab".encode("utf-32-le"))
VECTORS = npy("'<f4'", "(2, 2)", np.arange(4, dtype="<f4").tobytes())


def put(path: Path, *members: tuple[str, bytes], method: int = zipfile.ZIP_STORED) -> Path:
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w", method) as archive:
        warnings.simplefilter("ignore")
        for name, content in members:
            archive.writestr(name, content)
    return path


def test_headers_of_other_writers(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    data = np.arange(4, dtype=">f8").tobytes()
    other = b"\x93NUMPY\x01\x00"
    header = b"{'shape':(2L, 2L),'fortran_order':True,'descr':'>f8'}"
    for vectors in (
        VECTORS,
        npy("'<f4'", "(2, 2)", VECTORS[-16:], version=2),
        npy("'<f4'", "(2, 2)", VECTORS[-16:], version=3),
    ):
        put(path, ("words.npy", WORDS), ("vectors.npy", vectors))
        assert load(path).vectors.tolist() == [[0, 1], [2, 3]]
    put(path, ("words.npy", WORDS), ("vectors.npy", other + struct.pack("<H", len(header)) + header + data))
    assert load(path).vectors.tolist() == [[0, 2], [1, 3]]


@pytest.mark.parametrize("twice", ["words.npy", "vectors.npy"])
def test_duplicate_arrays_are_refused(tmp_path: Path, twice: str) -> None:
    path = put(tmp_path / "x.npz", ("words.npy", WORDS), ("vectors.npy", VECTORS), (twice, WORDS))
    with pytest.raises(InputError, match=f"holds the array {twice[:-4]} 2 times, expected it once"):
        load(path)


BAD_HEADERS = [
    b"",
    b"\x93NUMPY",
    b"\x93NUMPY\x09\x00" + WORDS[8:],
    b"\x93NUMPY\x02\x00" + struct.pack("<I", 1_500_000_000) + b" " * 1000,
    b"\x93NUMPY\x01\x00" + struct.pack("<H", 60000) + b"(" * 60000,
    npy("'<U1'", "(2,)")[:40],
    npy("'<U1'", "2"),
    npy("'<U1'", "(-2,)"),
    npy("'<U1'", "(2.5,)"),
    npy("'<U1'", "(" * 200 + ")" * 200),
    npy("'" + "<U1" * 40 + "'", "(2,)"),
    npy("'<U99999999999'", "(2,)"),
    npy("[('a', '<U1')]", "(2,)"),
    npy("__import__('os').abort()", "(2,)"),
    npy("'<U1'", "(2,)", fortran="'x'"),
    npy("'<U1', 'descr': '<U1'", "(2,)"),
    npy("'<U1'", "(2,)").replace(b"shape", b"shepa"),
    npy("'<U1'", "(2,)").replace(b"{", b"["),
]


@pytest.mark.parametrize("content", BAD_HEADERS)
def test_invalid_headers_are_refused(tmp_path: Path, content: bytes) -> None:
    for members in (
        (("words.npy", content), ("vectors.npy", VECTORS)),
        (("words.npy", WORDS), ("vectors.npy", content)),
    ):
        for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            with pytest.raises(InputError, match="is not a NumPy array of numbers or strings"):
                load(put(tmp_path / "x.npz", *members, method=method))


def test_sizes_are_checked_before_memory_is_allocated(tmp_path: Path) -> None:
    huge = npy("'<f4'", "(1000000000, 300)", bytes(40))
    many = npy("'<U1'", "(1000000000,)", bytes(40))
    with pytest.raises(InputError, match=r"has \d+ bytes, expected \d+ for"):
        load(put(tmp_path / "x.npz", ("words.npy", many), ("vectors.npy", huge)))
    long = npy("'<U500000000'", "(2,)", bytes(40))
    with pytest.raises(InputError, match=r"'words' in .* has \d+ bytes, expected 4\d+"):
        load(put(tmp_path / "x.npz", ("words.npy", long), ("vectors.npy", VECTORS)))
    wide = npy("'<i1'", "(2, 524288)", bytes(1 << 20))
    with pytest.raises(InputError, match=r"has 524288 numbers in a row, expected at most"):
        load(put(tmp_path / "x.npz", ("words.npy", WORDS), ("vectors.npy", wide)))
    long = npy("'<U65536'", "(2,)", bytes(8 * 65536))
    with pytest.raises(InputError, match=r"has room for 65536 characters in each word, expected at most 65535"):
        load(put(tmp_path / "x.npz", ("words.npy", long), ("vectors.npy", VECTORS)))


def test_a_member_of_another_size_is_refused(tmp_path: Path) -> None:
    for vectors in (VECTORS[:-1], VECTORS + b"x"):
        with pytest.raises(InputError, match=r"'vectors' in .* has \d+ bytes, expected \d+"):
            load(put(tmp_path / "x.npz", ("words.npy", WORDS), ("vectors.npy", vectors)))


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compression_is_refused(tmp_path: Path, method: int) -> None:
    path = put(tmp_path / "x.npz", ("words.npy", WORDS), ("vectors.npy", VECTORS), method=method)
    with pytest.raises(InputError, match=f"compressed by method {method}, expected none or deflate"):
        load(path)


def test_encryption_is_refused(tmp_path: Path) -> None:
    path = put(tmp_path / "x.npz", ("words.npy", WORDS), ("vectors.npy", VECTORS))
    content = bytearray(path.read_bytes())
    begin = content.index(b"PK\x01\x02")
    content[begin + 8] |= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"'words' in .* is encrypted"):
        load(path)


def test_a_changed_byte_of_stored_vectors_is_noticed(tmp_path: Path) -> None:
    path = put(tmp_path / "x.npz", ("words.npy", WORDS), ("vectors.npy", VECTORS))
    content = bytearray(path.read_bytes())
    content[content.index(VECTORS[-16:]) + 5] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match="damaged or truncated npz"):
        load(path)


def test_truncation_and_changed_bytes_are_an_input_error_or_harmless(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez_compressed(path, words=np.array(["a", "b"]), vectors=np.array([[1.0, 2.0], [3.0, 4.0]]))
    whole = path.read_bytes()
    expected = load(path).sha256()
    for place in range(0, len(whole), 3):
        path.write_bytes(whole[:place])
        with pytest.raises(InputError):
            load(path)
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :])
        try:
            assert load(path).sha256() == expected
        except InputError:
            continue


@pytest.mark.parametrize("code", [0xD800, 0xDFFF, 0x110000, 0xFFFFFFFF])
@pytest.mark.parametrize("order", ["<", ">"])
def test_invalid_characters_are_refused(tmp_path: Path, code: int, order: str) -> None:
    codes = np.array([ord("a"), code, ord("c")], dtype=f"{order}u4")
    words = npy(f"'{order}U1'", "(3,)", codes.tobytes())
    vectors = npy("'<f4'", "(3, 1)", np.arange(3, dtype="<f4").tobytes())
    path = put(tmp_path / "x.npz", ("words.npy", words), ("vectors.npy", vectors))
    with pytest.raises(InputError, match=r"row 2 of .* has a word with broken characters"):
        load(path)
    found = load(path, errors="skip")
    assert found.words == ["a", "c"]
    assert found.vectors.ravel().tolist() == [0, 2]


def test_words_without_characters_are_refused(tmp_path: Path) -> None:
    for descr in ("'<U0'", "'|S0'"):
        path = put(tmp_path / "x.npz", ("words.npy", npy(descr, "(2,)")), ("vectors.npy", VECTORS))
        with pytest.raises(InputError, match=r"row 1 of .* has no word"):
            load(path)


def test_archives_that_unpack_to_too_much_are_refused(tmp_path: Path) -> None:
    limits = UnpackLimits(free_bytes=6 << 20)
    path = tmp_path / "x.npz"
    words = np.array([f"w{i}" for i in range(2000)])
    zeros = np.zeros((2000, 1000), dtype=np.float32)
    np.savez_compressed(path, words=words, vectors=zeros)
    with pytest.raises(InputError, match="looks like a file made to exhaust memory"):
        read_with(limits, path)
    assert read_with(limits, path, max_vocab=5).words == words[:5].tolist()
    np.savez(path, words=words, vectors=zeros)
    assert len(read_with(limits, path)) == 2000
    np.savez_compressed(path, words=words, vectors=np.asfortranarray(zeros))  # one row needs the whole array
    with pytest.raises(InputError, match="looks like a file made to exhaust memory"):
        read_with(limits, path, max_vocab=5)
    long = np.array([str(i) + "x" * 5000 for i in range(700)])
    np.savez_compressed(path, words=long, vectors=np.zeros((700, 1)))
    with pytest.raises(InputError, match="looks like a file made to exhaust memory"):
        read_with(limits, path)
    assert len(read_with(limits, path, max_vocab=2)) == 2


def test_gzipped_archives_are_refused(tmp_path: Path) -> None:
    path = put(tmp_path / "x.npz", ("words.npy", WORDS), ("vectors.npy", VECTORS))
    path.write_bytes(gzip.compress(path.read_bytes()))
    with pytest.raises(InputError, match=r"a zip archive inside gzip, expected a vector file .*: unpack it first"):
        load(path)
    with pytest.raises(InputError, match="is gzip-compressed, expected an npz archive as it is"):
        load(path, format="npz")


def test_one_long_word_does_not_enlarge_the_blocks(tmp_path: Path) -> None:
    words = [*(f"w{i}" for i in range(50)), "x" * 60_000]
    with open_writer(tmp_path / "x.npz", 1) as writer:
        writer.write(words, np.ones((51, 1)))
    assert load(tmp_path / "x.npz").words == words


# --------------------------------------------------------------------------- .npy

ROWS = np.random.default_rng(0).normal(size=(30, 4))


@pytest.mark.parametrize("kind", ["<f2", "<f4", "<f8", ">f4", "i1", "u1", "<i8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_every_number_type_is_read(tmp_path: Path, kind: str, order: str) -> None:
    rows = (10 * ROWS).astype(kind)
    np.save(tmp_path / "x.npy", np.asarray(rows, order=order))  # type: ignore[call-overload]
    found = load(tmp_path / "x.npy", max_vocab=20)
    np.testing.assert_array_equal(found.vectors, rows[:20].astype(np.float32))
    assert np.array_equal(np.concatenate([b.vectors for b in stream(tmp_path / "x.npy", batch=7)]), rows.astype("f4"))


def test_bfloat16_is_read_as_two_bytes_of_a_float32(tmp_path: Path) -> None:
    bits = ROWS.astype(np.float32).view(np.uint32) >> 16
    np.save(tmp_path / "x.npy", bits.astype(np.uint16).view("V2"))
    found = load(tmp_path / "x.npy").vectors
    np.testing.assert_array_equal(found.view(np.uint32), bits << 16)
    np.testing.assert_allclose(found, ROWS, rtol=1 / 128)


def test_float16_is_written_on_request(tmp_path: Path) -> None:
    space = Embeddings([f"w{i}" for i in range(30)], ROWS.astype(np.float32))
    save(space, tmp_path / "x.npy", dtype="float16")
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), ROWS.astype(np.float32).astype(np.float16))
    assert load(tmp_path / "x.npy").words == space.words
    with pytest.raises(InputError, match=r"the vector of 'a' .* is not finite as float16"):
        save(Embeddings(["a"], np.array([[1e5]], np.float32)), tmp_path / "y.npy", dtype="float16")
    assert not (tmp_path / "y.npy").exists()
    with pytest.raises(InputError, match="received dtype='float16' for text, which holds float32"):
        save(space, tmp_path / "x.vec", dtype="float16")
    with pytest.raises(InputError, match="expected 'float32' or 'float16'"):
        save(space, tmp_path / "x.npy", dtype="int8")


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(3), r"of shape \(3,\), expected real numbers"),
        (np.zeros((2, 0)), "expected real numbers"),
        (np.zeros((2, 2), complex), "is an array of complex128"),
        (np.array([["a"]]), "is an array of <U1"),
    ],
)
def test_other_arrays_are_refused(tmp_path: Path, array: np.ndarray, message: str) -> None:
    np.save(tmp_path / "x.npy", array)
    with pytest.raises(InputError, match=message):
        load(tmp_path / "x.npy")


def test_a_truncated_array_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", ROWS)
    (tmp_path / "x.npy").write_bytes((tmp_path / "x.npy").read_bytes()[:-1])
    with pytest.raises(InputError, match="it is truncated; copy or save it again"):
        load(tmp_path / "x.npy")


def stored(array: np.ndarray, version: tuple[int, int] | None = None) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version)
    return file.getvalue()


@given(
    arrays.arrays(
        st.sampled_from(["<f4", ">f8", "<i8", "|u1", "<U3", "|S5"]), arrays.array_shapes(min_dims=0, max_dims=3)
    ),
    st.sampled_from([None, (1, 0), (2, 0), (3, 0)]),
    st.booleans(),
)
def test_headers_of_numpy_are_read_as_numpy_reads_them(
    array: np.ndarray, version: tuple[int, int] | None, fortran: bool
) -> None:
    if fortran:
        array = np.asfortranarray(array)
    data = stored(array, version)
    header = read_header(io.BytesIO(data), "x")
    assert (header.dtype, header.shape) == (array.dtype, array.shape)
    assert header.fortran == (array.flags.f_contiguous and not array.flags.c_contiguous)
    assert header.n_bytes + header.data_bytes == len(data)


def with_text(text: str) -> io.BytesIO:
    raw = text.encode("latin-1")
    return io.BytesIO(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(raw)) + raw)


@pytest.mark.parametrize(
    "text",
    [
        "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'shape': (2,)}",
        "{'descr': '|O8x', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (__import__('os').getpid(),)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
        "[" * 5000,
        "",
    ],
)
def test_other_headers_are_refused_and_nothing_is_evaluated(text: str) -> None:
    with pytest.raises(InputError, match="x is not a NumPy array"):
        read_header(with_text(text), "x")


@pytest.mark.parametrize("data", [b"", b"\x93NUMPY", b"\x93NUMPY\x09\x00", b"\x93NUMPY\x02\x00\xff\xff\xff\x7f", b"PK"])
def test_truncated_and_huge_headers_are_refused(data: bytes) -> None:
    with pytest.raises(InputError, match="x is not a NumPy array"):
        read_header(io.BytesIO(data), "x")
